/**
 * The programs of `docs/departures.md` print their documented output. The requests are in
 * `test/workers/departures.test.ts`.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { afterAll, describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "dramatis-departures-"));
const page = readFileSync(join(ROOT, "docs/departures.md"), "utf8");
const programs = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""], index) => ({
  code,
  index,
}));

/** The parts of the entries that the programs use, and that need no Worker. */
const entries = {
  "dramatis/adapters": "adapters/index.ts",
  "dramatis/sessions": "memory/session/working-context.ts",
  dramatis: "library/define/define.ts",
};
const alias = Object.fromEntries(
  Object.entries(entries).map(([name, path]) => [name, join(ROOT, "src", path)]),
);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function bundled(input: string): Promise<string> {
  const build = await rolldown({
    input,
    platform: "node",
    resolve: {
      alias,
      modules: [join(ROOT, "node_modules")],
    },
  });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  return output[0].code;
}

describe("TOOLID-1 TOOLFORM-2 M25 the page on departures", () => {
  test("has programs", () => {
    expect(programs).toHaveLength(2);
  });

  test.each(programs)("program $index prints its expected output", async ({ code, index }) => {
    const source = join(folder, `program-${index}.ts`);
    writeFileSync(source, code);
    const program = source.replace(/ts$/, "mjs");
    writeFileSync(program, await bundled(source));
    const expected = [...code.matchAll(/; \/\/ (.+)$/gm)].map(([, text]) => text);
    expect(expected).not.toEqual([]);
    const printed = execFileSync(process.execPath, [program], { cwd: folder, encoding: "utf8" });
    expect(printed.trimEnd().split("\n")).toEqual(expected);
  });
});
