/** Paths of the benchmarks. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);

export const BENCH_DIR = dirname(dirname(fileURLToPath(import.meta.url)));
export const RESULTS_FILE = join(BENCH_DIR, "results.json");

const wranglerManifest = require.resolve("wrangler/package.json");

export const WRANGLER_SCRIPT = join(dirname(wranglerManifest), "bin", "wrangler.js");

/** Returns the script that runs workerd's binary for this platform. wrangler uses the same script. */
export function workerdBinary(): string {
  const workerd: unknown = createRequire(wranglerManifest)("workerd");
  const path = typeof workerd === "object" && workerd !== null && "default" in workerd && workerd.default;
  if (typeof path !== "string")
    throw new Error("workerd is not installed for this platform. Run `npm ci` again.");
  return path;
}
