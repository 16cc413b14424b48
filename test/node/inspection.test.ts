/** Rules by paths and hosts: no spelling of a path or a host avoids its rule. */
import fc from "fast-check";
import { Minimatch } from "minimatch";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Decision, verdictOf } from "../../src/policy/gate.ts";
import { inspect, MAX_FOUND } from "../../src/policy/inspection.ts";
import { type PolicyRule, policyOf } from "../../src/policy/policy.ts";
import type { JsonObject } from "../../src/shared/json.ts";

const CONTEXT = {
  tenant: "t",
  projectId: "p",
  agentId: "a",
  conversationId: "c",
  toolCallId: "c",
  taint: [],
};
const tool = { name: "read", description: "", inputSchema: {}, effect: "pure", timeoutMs: 1 } as const;

type Rule = Omit<PolicyRule, "id" | "then">;
const decide = (input: JsonObject, rule: Rule, then: Decision = "deny") =>
  verdictOf(
    policyOf([
      { id: "rule", ...rule, then },
      { id: "rest", then: then === "allow" ? "deny" : "allow" },
    ])(tool, input, CONTEXT),
  ).rule === "rule";
const matches = (text: string, ...paths: string[]) => decide({ path: text }, { paths });
const reaches = (text: string, ...hosts: string[]) => decide({ text }, { hosts });

const name = fc.stringMatching(/^[a-z_-]{1,6}$/);
const path = fc.tuple(fc.array(name, { minLength: 1, maxLength: 4 }), name).map(([folders, last]) => ({
  ...{ folders, path: [...folders, `${last}.txt`].join("/") },
}));

/** Ways to write a path that leave it the same path. */
const spelling = fc.constantFrom<(path: string) => string>(
  (given) => `./${given}`,
  (given) => `/workspace/${given}`,
  (given) => `../../${given}`,
  (given) => `/${given.replaceAll("/", "//")}`,
  (given) => given.replace("/", "/./"),
  (given) => given.replace("/", "/other/../"),
  (given) => given.replaceAll("/", "\\"),
  (given) => ` ${given}\n`,
);

/** Ways to encode a text. */
const encoding = fc.constantFrom<(text: string) => string>(
  encodeURIComponent,
  (text) =>
    [...new TextEncoder().encode(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""),
  (text) => text.replace(/[./]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`),
  (text) => text.replaceAll("%", "%25"),
  (text) => text.replaceAll("%2", "%%32"),
  (text) => JSON.stringify({ deep: [{ path: text }] }),
  (text) => JSON.stringify([text]),
  (text) => JSON.stringify({ [text]: 1 }),
  (text) => JSON.stringify(text),
  (text) => JSON.stringify({ text }).replace(/[./o]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`),
);
const encodings = fc.array(encoding, { maxLength: 6 });

/** Ways to place a text in an input. */
const place = fc.constantFrom<(text: string) => JsonObject>(
  (text) => ({ path: text }),
  (text) => ({ all: [1, null, { files: { [text]: true } }] }),
  (text) => ({ deep: { deep: [[{ path: [text] }]] } }),
);
const through = (steps: readonly ((text: string) => string)[], text: string) =>
  steps.reduce((last, step) => step(last), text);

describe("E26 CALLTEXT-1 POLICY-6 a rule with paths", () => {
  test("sees each spelling, in each encoding, at each place", () => {
    fc.assert(
      fc.property(
        path,
        fc.uniqueArray(spelling, { maxLength: 3 }),
        encodings,
        place,
        (given, spellings, encoded, put) => {
          const input = put(through(encoded, through(spellings, given.path)));
          const globs = [given.path, `${given.folders[0]}/**`, "*.txt", given.path.toUpperCase()];
          for (const glob of globs)
            expect(decide(input, { paths: [glob] }), JSON.stringify([glob, input])).toBe(true);
          expect(decide(input, { paths: ["zzzzzzz/**", "*.zzz"] }), JSON.stringify(input)).toBe(false);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("sees the words of a command of any length, but none in the content of a file", () => {
    expect(matches("cat 'src/a.ts'|wc", "src/**")).toBe(true);
    expect(matches("tar --file=src/a.ts", "src/**")).toBe(true);
    expect(matches("true\ncat src/a.ts", "src/**")).toBe(true);
    expect(matches(`cat src/a.ts #${"x".repeat(5_000)}`, "src/**")).toBe(true);
    const written = { path: "docs/a.md", content: "See src/a.ts", before: "src/b.ts", after: "src/c.ts" };
    expect(decide(written, { paths: ["src/**"] })).toBe(false);
    expect(decide({ ...written, path: "src/a.ts" }, { paths: ["src/**"] })).toBe(true);
    expect(decide({ all: [{ content: "src/a.ts" }] }, { paths: ["src/**"] })).toBe(true);
    expect(matches("src", "src/**")).toBe(true);
    expect(matches("src2/a", "src/**")).toBe(false);
    expect(matches("docs/src/a", "src/**")).toBe(false);
    expect(matches("a/.env", ".env")).toBe(true);
    expect(matches("a/.env/b", ".env")).toBe(false);
    expect(matches(".github/a.yml", "*.yml", "x")).toBe(true);
    expect(matches("src/deep/a.test.ts", "src/**/*.test.{ts,js}")).toBe(true);
  });

  test("CALLTEXT-3 takes an input that it cannot read to its end for a match", () => {
    const deep = Array.from({ length: 20 }).reduce<string>((text) => text.replaceAll("2", "%32"), "%2e");
    expect(matches(deep, "secret")).toBe(true);
    expect(decide({ deep }, { hosts: ["*.example.com"] }, "allow")).toBe(false);
  });

  test.each([
    ["paths", "command", "a/", { paths: ["secret", "secrets/**"] } as Rule],
    ["hosts", "content", "https://h.com", { hosts: ["example.org"] } as Rule],
  ] as const)(
    "CALLTEXT-3 takes an input with too many %s for a match, and compares none",
    (kind, member, text, rule) => {
      const inputOf = (count: number) => ({
        [member]: Array.from({ length: count }, (_, at) => `${text}${at}`).join(" "),
      });
      const { [kind]: found, isOpaque } = inspect(inputOf(50_000));
      expect([found.length, isOpaque]).toEqual([MAX_FOUND, true]);
      const match = vi.spyOn(Minimatch.prototype, "match");
      onTestFinished(() => match.mockRestore());
      expect(decide(inputOf(50_000), rule)).toBe(true);
      expect(match).not.toHaveBeenCalled();
      expect(decide(inputOf(2_000), rule)).toBe(false);
      // All globs of a rule are one pattern.
      expect(match).toHaveBeenCalledTimes(kind === "paths" ? 2_001 : 0);
    },
  );
});

describe("E26 CALLTEXT-2 POLICY-6 a rule with hosts", () => {
  test("sees each spelling of a URL, in each encoding, at each place", () => {
    const spelled = fc.constantFrom(
      "https://api.example.com/x",
      "HTTPS://API.EXAMPLE.COM:8443/x",
      "https:api.example.com",
      "https:\\\\api.example.com\\x",
      "https://user:pw@api.example.com./x",
      "//api.example.com/x",
      "https://%61pi.example.com",
      "https://ok.com/?next=https://api.example.com/",
      "ftp://api.example.com",
      "git+ssh://api.example.com/x",
      "curl -s 'https://api.example.com'",
      "[a](https://api.example.com), b",
      "h\tttps://api.exam\nple.com/",
    );
    fc.assert(
      fc.property(spelled, encodings, place, (text, encoded, put) => {
        const input = put(through(encoded, text));
        for (const hosts of [["api.example.com"], ["*.example.com"], ["*"]])
          expect(decide(input, { hosts }), JSON.stringify(input)).toBe(true);
        expect(decide(input, { hosts: ["example.com", "*.api.example.com"] }), JSON.stringify(input)).toBe(
          false,
        );
      }),
      { numRuns: 200 },
    );
  });

  test("sees addresses as a URL has them, and no hosts in other texts", () => {
    for (const text of ["http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/"])
      expect(reaches(text, "127.0.0.1"), text).toBe(true);
    expect(reaches("http://[0:0:0:0::1]/", "[::1]")).toBe(true);
    for (const text of ["src/a.example.com", "a.example.com", "note: x", "1 // 2", "https://", "a:b"])
      expect(reaches(text, "*"), text).toBe(false);
  });

  test("that allows matches only if all hosts match", () => {
    const allows = (...urls: string[]) => decide({ urls }, { hosts: ["a.com", "*.b.com"] }, "allow");
    expect([allows("https://a.com/x"), allows("https://a.com", "https://c.b.com")]).toEqual([true, true]);
    expect([allows(), allows("https://a.com", "https://b.com"), allows("x")]).toEqual([false, false, false]);
  });
});

test.each([
  [{ paths: ["/src/**"] }, "glob from the root"],
  [{ paths: ["./a"] }, "glob from the root"],
  [{ paths: ["!a"] }, "glob from the root"],
  [{ paths: ["a/../b"] }, "glob from the root"],
  [{ paths: [] }, "paths"],
  [{ hosts: ["https://a.com"] }, "host as in a URL"],
  [{ hosts: ["A.com"] }, "host as in a URL"],
  [{ hosts: ["a.com:80"] }, "host as in a URL"],
  [{ hosts: ["a.*.com"] }, "host as in a URL"],
  [{ paths: ["a"], then: "allow" as const }, 'The rule "r" allows by `paths`'],
])("E26 POLICY-6 a rule with %j is refused", (rule, problem) => {
  expect(() => policyOf([{ id: "r", then: "deny", ...rule }])).toThrow(problem);
});

test("E26 the inspection of a large hostile input ends", () => {
  const texts = ["/", "https:", "//a", "%25", "a ", "../", '{"', "://", "\\", "é%C3"].map((part) =>
    part.repeat(1_900_000 / part.length),
  );
  for (const text of texts) {
    expect(decide({ text }, { paths: ["src/**"], hosts: ["a.com"] })).toBeTypeOf("boolean");
  }
});
