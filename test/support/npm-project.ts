/**
 * A project in its own folder outside this repository, with the declared packages of its manifest and theirs only. They
 * are copied from this repository's `node_modules` at the locked versions, so a test needs no registry. Links would
 * lead back into the repository.
 */
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** The part of a `package-lock.json` entry that names dependencies. */
interface LockedPackage {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/** Copies packages and their dependencies into `node_modules` of `project`. Existing packages stay unchanged. */
export function installFromCheckout(project: string, names: readonly string[]): void {
  for (const path of lockedPaths(names)) {
    if (!existsSync(join(project, path))) cloneFolder(join(ROOT, path), join(project, path));
  }
}

/** Returns the lockfile paths of packages and their dependencies, as far as this platform has them. */
function lockedPaths(names: readonly string[]): Set<string> {
  // SAFETY: npm maintains the format of this repository's lockfile.
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  const paths = new Set(names.map((name) => `node_modules/${name}`));
  for (const path of paths) {
    const { packages } = lock;
    for (const name of neededBy(packages[path] ?? {})) {
      const found = placesFor(path, name).find((place) => place in packages);
      if (found !== undefined && existsSync(join(ROOT, found))) paths.add(found);
    }
  }
  return paths;
}

function neededBy({
  dependencies,
  optionalDependencies,
  peerDependencies = {},
  peerDependenciesMeta = {},
}: LockedPackage): string[] {
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  return [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers];
}

/** Returns the paths where Node searches a package for the importer at `path`, nearest first. */
function placesFor(path: string, name: string): string[] {
  const owners = path.split("/node_modules/");
  const nested = owners.map((_, index) => owners.slice(0, owners.length - index).join("/node_modules/"));
  return [...nested.map((owner) => `${owner}/node_modules/${name}`), `node_modules/${name}`];
}

/** Copies a package without its `node_modules`. Uses hard links if possible: installed packages are read-only. */
function cloneFolder(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isFile()) cloneFile(source, target);
    else if (entry.isDirectory() && entry.name !== "node_modules") cloneFolder(source, target);
  }
}

function cloneFile(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    // Hard links do not work across file systems.
    copyFileSync(from, to);
  }
}
