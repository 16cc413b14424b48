/** Projects that `init` writes into folders with files. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeProject } from "../../src/cli/new-project.ts";

let root = "";
let folder = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "dramatis-init-"));
  folder = join(root, "shop");
  mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true }));

const manifest = () => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

test("I8 INIT-1 a package.json keeps its own members, also the names that a template uses", () => {
  const own = {
    name: "my-app",
    scripts: { start: "node my-app.js" },
    dependencies: { "@corp/my-app-core": "1.0.0" },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(own));
  writeProject({ folder, version: "0.4.0" });
  expect(manifest()).toMatchObject({ ...own, type: "module" });
  expect(manifest().dependencies.dramatis).toBe("^0.4.0");
});

test("I8 INIT-1 a package.json of CommonJS is refused with the change, and no file is written", () => {
  writeFileSync(join(folder, "package.json"), '{"type": "commonjs"}');
  expect(() => writeProject({ folder, version: "0.4.0" })).toThrow("Remove the member");
  expect(existsSync(join(folder, "src"))).toBe(false);
});

test("I8 a new project names the oldest Node, and the output says if the present one is older", () => {
  const { text } = writeProject({ folder, version: "0.4.0", node: "20.20.2" });
  expect(text).toContain("Next:\n  Node 20.20.2 is too old. Install Node 22.14 or newer.");
  expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).engines).toEqual({ node: ">=22.14" });
  const later = writeProject({ folder: join(root, "later"), version: "0.4.0", node: "22.14.0" });
  expect(later.text).not.toContain("too old");
});

test("I8 create-dramatis --help prints the options, and writes no file", () => {
  const command = join(import.meta.dirname, "../../src/cli/create.ts");
  const text = execFileSync(process.execPath, [command, "--help"], { cwd: folder, encoding: "utf8" });
  expect(text).toContain("--template NAME");
  expect(readdirSync(folder)).toEqual([]);
});

test("I8 INIT-1 no file is written through a link", () => {
  symlinkSync(join(root, "outside.json"), join(folder, "tsconfig.json"));
  expect(() => writeProject({ folder, version: "0.4.0" })).toThrow("already has tsconfig.json");
  rmSync(join(folder, "tsconfig.json"));
  mkdirSync(join(root, "other"));
  symlinkSync(join(root, "other"), join(folder, "src"));
  expect(() => writeProject({ folder, version: "0.4.0" })).toThrow("already has src/");
  rmSync(join(folder, "src"));
  symlinkSync(join(root, "outside.json"), join(folder, "package.json"));
  expect(() => writeProject({ folder, version: "0.4.0" })).toThrow("already has package.json");
  expect(existsSync(join(root, "outside.json"))).toBe(false);
});
