/** Installs compared systems once. They have lockfiles of their own. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.ts";
import { BENCH_DIR } from "./paths.ts";

/** Installs the packages of a folder, by default of most compared systems. */
export async function ensureInstalled(folder = BENCH_DIR): Promise<void> {
  if (existsSync(join(folder, "node_modules"))) return;
  console.log("Installing the compared systems …");
  const npm = process.env.npm_execpath;
  const [file, args] = npm === undefined ? ["npm", ["ci"]] : [process.execPath, [npm, "ci"]];
  await runCommand(file, args, { cwd: folder });
}
