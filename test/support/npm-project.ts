/**
 * A project in a folder of its own, outside of this repository, with the packages that its manifest and theirs declare
 * and no others. They are what `npm install` would bring, but come from this checkout's `node_modules`, at the versions
 * of its lockfile: a test needs no registry. Links would lead back into the checkout, so each package is there in full.
 */
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** An entry of `package-lock.json`, as far as it says what else is needed. */
interface LockedPackage {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/** Puts packages, and all that they need, into `node_modules` of `project`; what is there already stays as it is. */
export function installFromCheckout(project: string, names: readonly string[]): void {
  for (const path of lockedPaths(names)) {
    if (!existsSync(join(project, path))) cloneFolder(join(ROOT, path), join(project, path));
  }
}

/** Where the lockfile puts these packages and all that they need, as far as it is installed on this platform. */
function lockedPaths(names: readonly string[]): Set<string> {
  // SAFETY: this repository's own lockfile, whose format npm keeps.
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

/** Where Node looks for a package that the one at `path` imports; nearest first. */
function placesFor(path: string, name: string): string[] {
  const owners = path.split("/node_modules/");
  const nested = owners.map((_, index) => owners.slice(0, owners.length - index).join("/node_modules/"));
  return [...nested.map((owner) => `${owner}/node_modules/${name}`), `node_modules/${name}`];
}

/** Without `node_modules` below it. Hard links where that is possible: nobody writes into an installed package. */
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
    // Another file system.
    copyFileSync(from, to);
  }
}
