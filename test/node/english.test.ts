/** The count of hard phrases in `npm run check`. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { countEnglish, rateOf } from "../../scripts/english.ts";

const hits = (file: string, text: string) => countEnglish([[file, text]]).hits;

test("ENGLISH-1 counts each phrase in the comments and messages of code, and not in the code itself", () => {
  expect(hits("a.ts", "/** Returns the older one, and nothing besides. */")).toBe(3);
  expect(hits("a.ts", "// Whose turn it is, the run says so.")).toBe(2);
  expect(hits("a.ts", 'throw new Error("The run goes on with what is left.");')).toBe(2);
  expect(hits("a.tsx", "<p>\n  The run goes on with what is left.\n</p>")).toBe(2);
  expect(hits("a.ts", "const nothing = whose(meanwhile);")).toBe(0);
  expect(hits("a.ts", "/** Returns `the older one` of both. */")).toBe(0);
  expect(hits("a.ts", "/** RULE-1  Returns the newest message of a turn. */")).toBe(0);
  expect(hits("a.test.ts", 'expect(run("the tool of which nobody is told")).toBe(1);')).toBe(0);
});

test("ENGLISH-1 counts the sentences of Markdown outside code, and sentences that are too long", () => {
  expect(hits("a.md", "Text.\n\n```\nnobody knows of the older one\n```\n")).toBe(0);
  expect(hits("a.md", "| Tool | of which nobody knows |")).toBe(2);
  expect(hits("a.md", `${"word ".repeat(30)}end.`)).toBe(1);
  expect(rateOf(countEnglish([["a.md", "Nobody reads this short sentence."]]))).toBe(200);
});

test("ENGLISH-2 fails above the limit with the worst sentences, and passes below it", () => {
  const folder = mkdtempSync(join(tmpdir(), "english-"));
  const run = (limit: string) => {
    const script = join(import.meta.dirname, "../../scripts/english.ts");
    const { status, stdout } = spawnSync(process.execPath, [script, "--limit", limit, "a.md"], {
      cwd: folder,
      encoding: "utf8",
    });
    return { status, stdout };
  };
  try {
    writeFileSync(join(folder, "a.md"), "This is plain text here. Nobody says so, nor does it go on.");
    const above = run("300");
    expect(above.status).toBe(1);
    expect(above.stdout).toContain("limit 300");
    expect(above.stdout).toContain("- a.md: Nobody says so, nor does it go on.");
    expect(above.stdout).not.toContain("plain text");
    expect(run("400")).toMatchObject({ status: 0, stdout: expect.not.stringContaining("Nobody") });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
