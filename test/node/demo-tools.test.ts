import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { calculator } from "../../examples/demo/calculator.ts";
import { dates } from "../../examples/demo/dates.ts";
import { notes } from "../../examples/demo/notes.ts";
import { defineDocsSearch } from "../../examples/demo/search-docs.ts";
import { docsSections } from "../../scripts/docs-sections.ts";
import type { Tool, ToolContext } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ToolErrorCode, ToolState } from "../../src/protocol/executor-api.ts";
import { memoryToolState, noHandles } from "../../src/testing/world/local-executor.ts";
import { noMemory } from "../support/no-memory.ts";

const NOW = Date.UTC(2026, 1, 28, 23, 30);

function contextOf(operationId: string, state: ToolState, now = NOW): ToolContext {
  return {
    operationId,
    signal: new AbortController().signal,
    context: { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "t" },
    state,
    memory: noMemory({
      context: { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "t" },
    }),
    workspace: { perform: noHandles },
    artifacts: { perform: noHandles },
    skills: [],
    now: () => now,
    defer: noHandles,
    progress() {},
  };
}

function run(tool: Tool, input: unknown): Promise<unknown> {
  return tool.run(input, contextOf("op_1", memoryToolState()));
}

function refusal(message: RegExp, code: ToolErrorCode = "INVALID_INPUT") {
  return expect.objectContaining({ name: "ToolError", code, message: expect.stringMatching(message) });
}

describe("calculator", () => {
  test.each<[string, number | string]>([
    ["1 + 2 * 3", 7],
    ["(1 + 2) * 3", 9],
    ["8 / 2 / 2", 2],
    ["10 - 4 - 3", 3],
    ["7 % 4", 3],
    ["-2^2", -4],
    ["(-2)^2", 4],
    ["2^3^2", 512],
    ["2^-1", 0.5],
    ["2 - -3", 5],
    ["2**10", 1024],
    ["6 × 7 ÷ 2 − 1", 20],
    ["0.1 + 0.2", 0.3],
    ["1 / 3", 0.333333333333333],
    ["1/3*3", 1],
    [".5 + 1.", 1.5],
    ["1.5e3 + 2E-1", 1500.2],
    ["sqrt(2)^2", 2],
    ["max(1, min(5, 9), 3)", 5],
    ["round(2.5) + floor(-0.5) + ceil(0.2) + abs(-3)", 6],
    ["ln(e) + log10(1000)", 4],
    ["PI - pi", 0],
    ["123456789 * 987654321", "121932631112635269"],
    ["2^100", "1267650600228229401496703205376"],
    ["10^400", "1e+400"],
    ["1 / 10^400", "1e-400"],
  ])("EXPR-1 %s = %s", async (expression, result) => {
    expect(await run(calculator, { expression })).toEqual({ result });
  });

  test.each([
    ["1 / 0", /[Dd]ivision by zero/],
    ["1 % (2 - 2)", /[Dd]ivision by zero/],
    ["sqrt(-1)", /not a real number/],
    ["0^-1", /not a real number/],
    ["10^9999999", /beyond 10\^10000/],
    ["9^9^9^9", /beyond 10\^10000/],
    ["1 +", /character 4: a number is missing before "the end"/],
    ["(1 + 2", /"\)" is missing/],
    ["1 2", /character 3: "2" is not expected/],
    ["2 (3)", /"\(" is not expected/],
    ["1,000", /"," is not expected/],
    ["foo(1)", /"foo" is unknown.*sqrt/],
    ["constructor", /"constructor" is unknown/],
    ["sqrt 2", /"\(" is missing before "2"/],
    ["sqrt(1, 2)", /sqrt takes 1 value/],
    ["  $5", /character 3: "\$" is not understood/],
    ["1 + 😀", /"😀" is not understood/],
    ["(".repeat(500), /nested too deeply/],
    ["-".repeat(900), /nested too deeply/],
    ["", /\/expression/],
  ])("EXPR-2 %s is refused, saying why", async (expression, message) => {
    await expect(run(calculator, { expression })).rejects.toEqual(refusal(message));
  });

  test("agrees with JavaScript on whole numbers", async () => {
    const whole = fc.integer({ min: -1000, max: 1000 });
    await fc.assert(
      fc.asyncProperty(whole, whole, whole, async (a, b, c) => {
        const expression = `${a} + ${b} * (${c} - ${a}) - ${b}`;
        expect(await run(calculator, { expression })).toEqual({ result: a + b * (c - a) - b + 0 });
      }),
    );
  });

  test("EXPR-2 any text has a value or is refused", async () => {
    const text = fc.array(fc.constantFrom(..."0123.+-*/%^(),e ", "sqrt", "max", "pi", "x"), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(text, async (parts) => {
        const answer = await run(calculator, { expression: parts.join("") }).catch((error: unknown) => error);
        expect([{ result: expect.anything() }, refusal(/./)]).toContainEqual(answer);
      }),
      { numRuns: 500 },
    );
  });
});

describe("dates", () => {
  test.each([
    [{ action: "today" }, { date: "2026-02-28", weekday: "Saturday" }],
    [
      { action: "weekday", date: "1969-07-20" },
      { date: "1969-07-20", weekday: "Sunday" },
    ],
    [
      { action: "weekday", date: "0001-01-01" },
      { date: "0001-01-01", weekday: "Monday" },
    ],
    [
      { action: "add", days: 1 },
      { date: "2026-03-01", weekday: "Sunday" },
    ],
    [
      { action: "add", date: "2024-01-31", months: 1 },
      { date: "2024-02-29", weekday: "Thursday" },
    ],
    [
      { action: "add", date: "2024-02-29", years: 1 },
      { date: "2025-02-28", weekday: "Friday" },
    ],
    [
      { action: "add", date: "2024-03-31", months: -1, days: 1 },
      { date: "2024-03-01", weekday: "Friday" },
    ],
    [
      { action: "add", date: "2025-12-31", weeks: 1 },
      { date: "2026-01-07", weekday: "Wednesday" },
    ],
    [
      { action: "difference", date: "2024-02-28", until: "2024-03-01" },
      { from: "2024-02-28", until: "2024-03-01", days: 2 },
    ],
    [
      { action: "difference", date: "2026-03-01" },
      { from: "2026-03-01", until: "2026-02-28", days: -1 },
    ],
  ])("%j", async (input, answer) => {
    expect(await run(dates, input)).toEqual(answer);
  });

  test.each([
    [{ action: "weekday", date: "2026-02-29" }, /\/date/],
    [{ action: "weekday", date: "28.2.2026" }, /\/date/],
    [{ action: "tomorrow" }, /\/action/],
    [{ action: "add", date: "9999-12-31", days: 1 }, /outside the years/],
    [{ action: "add", date: "0000-01-01", days: -1 }, /outside the years/],
    [{ action: "add", days: 1.5 }, /\/days/],
  ])("%j is refused", async (input, message) => {
    await expect(run(dates, input)).rejects.toEqual(refusal(message));
  });

  test("adding days and taking the difference agree", async () => {
    const day = fc.date({ min: new Date("1600-01-01"), max: new Date("2400-01-01"), noInvalidDate: true });
    await fc.assert(
      fc.asyncProperty(day, fc.integer({ min: -100_000, max: 100_000 }), async (from, days) => {
        const date = from.toISOString().slice(0, 10);
        const added = await run(dates, { action: "add", date, days });
        expect(added).toHaveProperty("date");
        const until = (added as { date: string }).date;
        expect(await run(dates, { action: "difference", date, until })).toMatchObject({ days });
      }),
    );
  });
});

describe("notes", () => {
  test("adds, lists and removes", async () => {
    const state = memoryToolState();
    const call = (operation: string, input: unknown, now = NOW) =>
      notes.run(input, contextOf(operation, state, now));
    const milk = { id: "op_2", text: "milk", createdAt: "2026-02-28T23:30:00.000Z" };
    const bread = { id: "op_1", text: "bread", createdAt: "2026-02-28T23:30:00.001Z" };
    expect(await call("op_2", { action: "add", text: "  milk " })).toEqual({ notes: [milk] });
    expect(await call("op_1", { action: "add", text: "bread" }, NOW + 1)).toEqual({ notes: [milk, bread] });
    expect(await call("op_3", { action: "list" })).toEqual({ notes: [milk, bread] });
    expect(await call("op_4", { action: "remove", id: "op_2" })).toEqual({ notes: [bread] });
  });

  test("NOTES-1 the same operation twice has the effect and the answer of once", async () => {
    const state = memoryToolState();
    const add = (now: number) => notes.run({ action: "add", text: "milk" }, contextOf("op_1", state, now));
    const first = await add(NOW);
    expect(await add(NOW + 60_000)).toEqual(first);
    const remove = () => notes.run({ action: "remove", id: "op_1" }, contextOf("op_2", state));
    expect(await remove()).toEqual({ notes: [] });
    expect(await remove()).toEqual({ notes: [] });
  });

  test.each([
    [{ action: "add" }, /needs "text"/],
    [{ action: "add", text: "   " }, /\/text/],
    [{ action: "remove" }, /needs "id"/],
  ])("%j is refused", async (input, message) => {
    await expect(run(notes, input)).rejects.toEqual(refusal(message));
  });
});

describe("search_docs", () => {
  const guide = [
    "Before the title.",
    "# Guide",
    "How to begin.",
    "## Durable turns ##",
    `${"Filler words. ".repeat(80)}A turn survives eviction. ${"More filler. ".repeat(80)}`,
    "```sh",
    "# eviction is no heading here",
    "```",
    "### Empty",
    "#### Deeper",
    "Deeper text.",
  ].join("\n");

  const sections = [
    ...docsSections("docs/guide.md", guide),
    ...docsSections("README.md", "# Dramatis\r\nAn actor runtime.\r\n"),
  ];

  test("documents are cut at their headings, not inside code", () => {
    expect(sections.map(({ path, title, heading }) => [path, title, heading])).toEqual([
      ["docs/guide.md", "Guide", ""],
      ["docs/guide.md", "Guide", "Guide"],
      ["docs/guide.md", "Guide", "Durable turns"],
      ["docs/guide.md", "Guide", "Empty"],
      ["README.md", "Dramatis", "Dramatis"],
    ]);
    expect(sections.at(-1)?.text).toBe("An actor runtime.");
  });

  test("finds the section, with an excerpt around the word", async () => {
    const tool = defineDocsSearch(sections);
    const answer = await run(tool, { query: "evictions" });
    expect(answer).toEqual({
      results: [
        {
          path: "docs/guide.md",
          title: "Guide",
          heading: "Durable turns",
          excerpt: expect.stringMatching(/^… .*A turn survives eviction.* …$/),
        },
      ],
    });
    expect(JSON.stringify(answer).length).toBeLessThan(900);
  });

  test("a heading counts more than a text, and limit is kept", async () => {
    const tool = defineDocsSearch([
      { path: "a.md", title: "A", heading: "Other", text: "mailbox, mailbox, mailbox" },
      { path: "b.md", title: "B", heading: "Mailbox", text: "delivery" },
    ]);
    expect(await run(tool, { query: "mailbox", limit: 1 })).toMatchObject({ results: [{ path: "b.md" }] });
    expect(await run(tool, { query: "zebra" })).toEqual({ results: [] });
  });
});

describe("the demo library", () => {
  beforeAll(() => {
    execFileSync(process.execPath, ["scripts/build-docs-index.ts"]);
  });

  test("has an assistant with four tools that a crash may run again", async () => {
    const { demoLibrary } = await import("../../examples/demo/library.ts");
    const profile = { provider: "offline", modelId: "offline" } as const;
    const chain = await resolveChain(
      new Registry(new DeployedCode([demoLibrary])),
      "demo/assistant",
      profile,
    );
    expect(chain.tools.map(({ definition }) => [definition.name, definition.effect])).toEqual([
      ["calculator", "pure"],
      ["dates", "pure"],
      ["search_docs", "pure"],
      ["notes", "idempotent"],
      ["remember", "idempotent"],
      ["recall", "pure"],
      ["forget", "idempotent"],
      ["history", "pure"],
    ]);
  });
});
