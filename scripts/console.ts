/** Keeps `dist/console` up to date: the web console, and the page `/docs`. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "./failure.ts";

const ROOT = join(import.meta.dirname, "..");
const OUTPUT = join(ROOT, "dist/console");
const PAGE = join(OUTPUT, "index.html");
/** The sources of the console and of the page. */
const SOURCES = ["app", "src", "package-lock.json"].map((path) => join(ROOT, path));

/** Builds if a source is newer than the last build, or always with `force`. Throws a `Failure` if the build fails. */
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
