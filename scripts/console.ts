/** Build of the web console into `dist/console`. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "./failure.ts";

const ROOT = join(import.meta.dirname, "..");
const OUTPUT = join(ROOT, "dist/console");
const PAGE = join(OUTPUT, "index.html");
/** Sources of the console. */
const SOURCES = ["app", "src/client", "package-lock.json"].map((path) => join(ROOT, path));

/** Builds the console if its sources are newer than the last build, or if `force`. Throws a `Failure` if the build fails. */
export function buildConsole({ force = false } = {}): void {
  if (!force && existsSync(PAGE) && statSync(PAGE).mtimeMs >= newest(SOURCES)) return;
  const vite = join(ROOT, "node_modules/vite/bin/vite.js");
  const build = ["build", "--config", "app/vite.config.ts", "--logLevel", "error"];
  // In other modes React's compiler writes this machine's paths into the code.
  const env = { ...process.env, NODE_ENV: "production" };
  const { status } = spawnSync(process.execPath, [vite, ...build], { cwd: ROOT, env, stdio: "inherit" });
  if (status !== 0) throw new Failure("The console could not be built. See the errors above.");
}

/** Returns the time of the latest change among files and folders, in milliseconds since the epoch. */
function newest(paths: readonly string[]): number {
  return Math.max(
    0,
    ...paths.filter(existsSync).map((path) => {
      const stats = statSync(path);
      if (!stats.isDirectory()) return stats.mtimeMs;
      return Math.max(stats.mtimeMs, newest(readdirSync(path).map((name) => join(path, name))));
    }),
  );
}
