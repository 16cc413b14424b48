/**
 * Keeps the bundles of Workers, so that a start without changed sources need not bundle again.
 *
 * START-11  A start reuses a bundle only if its options and every file of the bundle are unchanged. A stored bundle never changes: bundles of
 *           other sources have other folders, and the newest stay for servers that run. A new file that takes the place of another file in
 *           an import is not noticed.
 */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join, resolve } from "node:path";
import type { unstable_DevEnv } from "wrangler";

type Wrangler = unstable_DevEnv["bundler"];
export type Bundler = Pick<Wrangler, "onConfigUpdate" | "emitBundleStartEvent" | "emitBundleCompleteEvent">;
type Config = Parameters<Bundler["emitBundleCompleteEvent"]>[0];
type Bundle = Parameters<Bundler["emitBundleCompleteEvent"]>[1];

const ROOT = join(import.meta.dirname, "..");
/** Files that change a bundle without being part of it. */
const SETTINGS = ["package.json", "tsconfig.json", "node_modules/.package-lock.json"];
/** The times of files are coarser than the clock. */
const FILE_TIME_MS = 100;
/** Kept bundles of other sources. */
const OTHERS = 3;

/** Makes wrangler's bundler reuse bundles (START-11). */
export function reuseBundles(bundler: Bundler, cache = join(ROOT, "node_modules/.cache/dramatis")): void {
  const build = bundler.onConfigUpdate.bind(bundler);
  const emit = bundler.emitBundleCompleteEvent.bind(bundler);
  let startedAt = 0;
  bundler.onConfigUpdate = (event) => {
    const bundle = load(join(cache, nameOf(event.config)));
    startedAt = Date.now();
    if (bundle === undefined) return build(event);
    bundler.emitBundleStartEvent(event.config);
    emit(event.config, bundle);
  };
  bundler.emitBundleCompleteEvent = (config, bundle) => {
    emit(config, bundle);
    try {
      store(join(cache, nameOf(config)), config, bundle, startedAt);
    } catch {
      // The next start bundles again.
    }
  };
}

/** Returns a name for the options of a bundle. */
function nameOf({ entrypoint, build, compatibilityDate, compatibilityFlags }: Config): string {
  const options = [entrypoint, build, compatibilityDate, compatibilityFlags, process.env.NODE_ENV];
  return createHash("sha256").update(JSON.stringify(options)).digest("hex");
}

function load(folder: string): Bundle | undefined {
  try {
    const { files, hash, bundle } = JSON.parse(readFileSync(join(folder, "bundle.json"), "utf8"));
    return hashOf(files) === hash && existsSync(bundle.path) ? bundle : undefined;
  } catch {
    // There is no bundle, or one of its files is gone.
    return undefined;
  }
}

/** Stores a bundle, unless one of its files has changed since the bundler started. */
function store(folder: string, config: Config, bundle: Bundle, startedAt: number): void {
  const sources = Object.keys(bundle.dependencies).map((path) => resolve(config.projectRoot, path));
  // wrangler writes its own files for each bundle. Other sources have no file.
  const own = sources.filter((path) => !path.includes("/.wrangler/"));
  const packages = new Set(own.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(path) ?? []));
  const settings = [...SETTINGS.map((name) => join(ROOT, name)), config.config ?? ""];
  const files = [...own, ...[...packages].map((path) => join(path, "package.json")), ...settings].filter(
    existsSync,
  );
  const isChanged = files.some((file) => statSync(file).ctimeMs > startedAt - FILE_TIME_MS);
  if (isChanged || bundle.modules.length > 0) return;
  const hash = hashOf(files);
  // Stack traces of the Worker use the file and its map.
  const unfinished = join(folder, `unfinished-${process.pid}`);
  mkdirSync(unfinished, { recursive: true });
  const name = basename(bundle.path);
  for (const suffix of ["", ".map"]) copyFileSync(bundle.path + suffix, join(unfinished, name + suffix));
  const path = join(folder, hash, name);
  if (existsSync(path)) rmSync(unfinished, { recursive: true });
  else renameSync(unfinished, join(folder, hash));
  const record = join(folder, `bundle.${process.pid}`);
  writeFileSync(record, JSON.stringify({ files, hash, bundle: { ...bundle, path } }));
  renameSync(record, join(folder, "bundle.json"));
  // Bundles of other sources, which servers may run, and files of a start that ended while it stored.
  const others = readdirSync(folder).filter((other) => other !== hash && other !== "bundle.json");
  const storedAt = new Map(others.map((other) => [other, statSync(join(folder, other)).mtimeMs]));
  others.sort((one, other) => (storedAt.get(other) ?? 0) - (storedAt.get(one) ?? 0));
  for (const old of others.slice(OTHERS)) rmSync(join(folder, old), { recursive: true, force: true });
}

function hashOf(files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const file of files) hash.update(file).update("\0").update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}
