/**
 * Keeps `dist/console` up to date: the web console, and the page `/docs`.
 *
 * CONSOLE-1  A complete build replaces the whole folder. A failed build leaves the folder unchanged.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure } from "./failure.ts";
import { processInfo } from "./process-info.ts";

const ROOT = join(import.meta.dirname, "..");
/** The folder of the built console. */
export const CONSOLE = join(ROOT, "dist/console");
const PAGE = join(CONSOLE, "index.html");
/** The sources of the console and of the page. */
const SOURCES = ["app", "src", "package-lock.json"].map((path) => join(ROOT, path));

/** Builds if a source is newer than the last build, or always with `force`. Throws a `Failure` if the build fails. */
export function buildConsole({ force = false } = {}): void {
  if (!force && existsSync(PAGE) && statSync(PAGE).mtimeMs >= newest(SOURCES)) return;
  sweep();
  const unfinished = `${CONSOLE}.${process.pid}`;
  try {
    build(unfinished);
    replace(unfinished);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Replaces the old build with a complete build. */
function replace(folder: string): void {
  try {
    rmSync(CONSOLE, { recursive: true, force: true });
    renameSync(folder, CONSOLE);
  } catch (error) {
    // If another process has built the folder at the same time, its build is there.
    if (!existsSync(PAGE)) throw error;
  }
}

/** Builds into a folder. Throws a `Failure`. */
function build(folder: string): void {
  const vite = join(ROOT, "node_modules/vite/bin/vite.js");
  const arguments_ = ["build", "--config", "app/vite.config.ts", "--logLevel", "error", "--outDir", folder];
  // In other modes React's compiler writes this machine's paths into the code.
  const env = { ...process.env, NODE_ENV: "production" };
  const { status } = spawnSync(process.execPath, [vite, ...arguments_], { cwd: ROOT, env, stdio: "inherit" });
  if (status !== 0) throw new Failure("The console could not be built. See the errors above.");
}

/** Removes the folders of killed builds. The name of a build's folder contains its process id. */
function sweep(): void {
  mkdirSync(dirname(CONSOLE), { recursive: true });
  for (const name of readdirSync(dirname(CONSOLE))) {
    const [, owner] = /^console\.(\d+)$/.exec(name) ?? [];
    if (owner === undefined || processInfo(Number(owner)) !== undefined) continue;
    rmSync(join(dirname(CONSOLE), name), { recursive: true, force: true });
  }
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
