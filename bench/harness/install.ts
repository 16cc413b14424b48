/** Installs the compared systems once. They have their own lockfile. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.ts";
import { BENCH_DIR } from "./paths.ts";

export async function ensureInstalled(): Promise<void> {
  if (existsSync(join(BENCH_DIR, "node_modules"))) return;
  console.log("Installing the compared systems …");
  const npm = process.env.npm_execpath;
  const [file, args] = npm === undefined ? ["npm", ["ci"]] : [process.execPath, [npm, "ci"]];
  await runCommand(file, args, { cwd: BENCH_DIR });
}
