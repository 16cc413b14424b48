/**
 * The start of `npm run bench`: Node only strips types, so files of `src` that it imports must use strippable syntax.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

test("every case of the benchmark can be loaded, and an unknown case is refused with the list of all", () => {
  const run = join(import.meta.dirname, "../../bench/run.ts");
  const { status, stderr } = spawnSync(process.execPath, [run, "nothing"], { encoding: "utf8" });
  expect(stderr).toContain('There is no case "nothing". Use one of: turns, ');
  expect(status).toBe(1);
});
