/** The archive of the package, as `npm run build` and `npm pack` make it. */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { inject } from "vitest";

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

/** Returns the path of the archive. The first test file that asks for it builds it, and others of the same run wait. */
export async function packedPackage(): Promise<string> {
  const folder = inject("archiveFolder");
  const [archive, failure] = [join(folder, "dramatis.tgz"), join(folder, "failure")];
  if (isFirst(folder)) {
    try {
      buildAndPack(join(folder, "checkout"), archive);
    } catch (error) {
      writeFileSync(failure, String(error));
    }
  }
  // A build takes as long as it takes: the time limit is the limit of the hook.
  while (!existsSync(archive)) {
    if (existsSync(failure)) throw new Error(readFileSync(failure, "utf8"));
    await delay(100);
  }
  return archive;
}

/** Returns `true` to the first caller of the run. */
function isFirst(folder: string): boolean {
  try {
    mkdirSync(join(folder, "checkout"));
    return true;
  } catch {
    return false;
  }
}

/** Builds and packs a copy of the repository in `checkout`, to keep a `dist` in use. Moves the result to `archive`. */
function buildAndPack(checkout: string, archive: string): void {
  const isSource = (path: string) => !/^(?:node_modules|dist|dist-create|\..*)$/.test(basename(path));
  for (const name of readdirSync(ROOT).filter(isSource)) {
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true, filter: isSource });
  }
  symlinkSync(join(ROOT, "node_modules"), join(checkout, "node_modules"), "junction");
  run(checkout, "npm", "run", "build");
  run(checkout, "npm", "pack", "./dist-create");
  const [creator = ""] = globSync("create-dramatis-*.tgz", { cwd: checkout });
  renameSync(join(checkout, creator), join(dirname(archive), "create-dramatis.tgz"));
  run(checkout, "npm", "pack", "./dist");
  const [packed = ""] = globSync("dramatis-*.tgz", { cwd: checkout });
  renameSync(join(checkout, packed), archive);
}
