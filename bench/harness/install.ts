/** Installs compared systems once. They have separate lockfiles. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.ts";
import { BENCH_DIR } from "./paths.ts";

/** Installs the packages of a folder, if a package is missing. The default folder has most of the compared systems. */
export async function ensureInstalled(folder = BENCH_DIR): Promise<void> {
  // SAFETY: our own file, which has dependencies.
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  if (Object.keys(dependencies).every((name) => existsSync(join(folder, "node_modules", name)))) return;
  console.log("Installing the compared systems …");
  const npm = process.env.npm_execpath;
  const [file, args] = npm === undefined ? ["npm", ["ci"]] : [process.execPath, [npm, "ci"]];
  await runCommand(file, args, { cwd: folder });
}
