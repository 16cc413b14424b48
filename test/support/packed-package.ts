/** The archive of the package, as `npm run build` and `npm pack` make it. */
import { execFileSync } from "node:child_process";
import { cpSync, globSync, readdirSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** Environment for wrangler and npm without telemetry, logs and update checks. */
export const quiet = {
  ...process.env,
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_WRITE_LOGS: "false",
  npm_config_update_notifier: "false",
};

/** Runs a program and returns its output. Throws the output if the program fails. */
export function run(cwd: string, command: string, ...args: string[]): string {
  try {
    return execFileSync(command, args, { cwd, env: quiet, encoding: "utf8", stdio: "pipe" });
  } catch (cause) {
    const { stdout, stderr } = cause as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(" ")} has failed:\n${stdout}\n${stderr}`);
  }
}

/**
 * Builds and packs a copy of the repository in `folder`, so that a `dist` in use stays unchanged. Returns the path of the
 * archive.
 */
export function buildAndPack(folder: string): string {
  const checkout = join(folder, "checkout");
  const isSource = (path: string) => !/^(?:node_modules|dist|\..*)$/.test(basename(path));
  for (const name of readdirSync(ROOT).filter(isSource)) {
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true, filter: isSource });
  }
  symlinkSync(join(ROOT, "node_modules"), join(checkout, "node_modules"), "junction");
  run(checkout, "npm", "run", "build");
  run(checkout, "npm", "pack", "./dist");
  const [archive = ""] = globSync("dramatis-*.tgz", { cwd: checkout });
  return join(checkout, archive);
}
