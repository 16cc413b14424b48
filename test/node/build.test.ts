/** `npm run build` and the console's own build, in a copy of the scripts with compilers that the test controls. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const FAILS = "process.exit(1);";
/** Writes part of a console into the folder that the options name. */
const BEGINS = `const { mkdirSync, writeFileSync } = require("node:fs");
const folder = process.argv[process.argv.indexOf("--outDir") + 1];
mkdirSync(folder, { recursive: true });
writeFileSync(folder + "/new.js", "");
`;
const CONSOLE_BUILD = `import { buildConsole } from "./console.ts"; buildConsole({ force: true });`;

/** Runs a script in a new folder with a built console. Returns its exit code, and the files of the console. */
function built(script: string, compilers: { tsc?: string; vite?: string }) {
  const root = mkdtempSync(join(tmpdir(), "dramatis-build-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  cpSync(join(import.meta.dirname, "../../scripts"), join(root, "scripts"), { recursive: true });
  write("package.json", '{"type": "module"}');
  write("scripts/console-build.ts", CONSOLE_BUILD);
  write("node_modules/package.json", '{"type": "commonjs"}');
  write("node_modules/typescript/bin/tsc", compilers.tsc ?? "");
  write("node_modules/vite/bin/vite.js", compilers.vite ?? "");
  write("dist/console/old.js", "");
  write("dist/old.js", "");
  const { status } = spawnSync(process.execPath, [join(root, "scripts", script)], { stdio: "ignore" });
  const dist = join(root, "dist");
  expect(readdirSync(dist).filter((name) => name !== "old.js")).toEqual(["console"]);
  return { status, isCleaned: !existsSync(join(dist, "old.js")), files: readdirSync(join(dist, "console")) };
}

test("CONSOLE-1 a build of the package that does not compile removes the old package and leaves the console", () => {
  expect(built("build.ts", { tsc: FAILS })).toEqual({ status: 1, isCleaned: true, files: ["old.js"] });
});

test("CONSOLE-1 a build of the console replaces the whole folder; a failed build leaves it unchanged", () => {
  const failed = built("console-build.ts", { vite: `${BEGINS}${FAILS}` });
  expect(failed).toMatchObject({ status: 1, files: ["old.js"] });
  expect(built("console-build.ts", { vite: BEGINS })).toMatchObject({ status: 0, files: ["new.js"] });
});
