/** Installs the systems of comparison, once: they have a lockfile of their own. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.ts";
import { BENCH_DIR } from "./paths.ts";

export async function ensureInstalled(): Promise<void> {
  if (existsSync(join(BENCH_DIR, "node_modules"))) return;
  console.log("Installing the systems of comparison …");
  const npm = process.env.npm_execpath;
  const [file, args] = npm === undefined ? ["npm", ["ci"]] : [process.execPath, [npm, "ci"]];
  await runCommand(file, args, { cwd: BENCH_DIR });
}
