/**
 * Writes a new project from a template. The package `create-dramatis` contains this file and the templates, so it imports only Node.
 *
 * INIT-1  No existing file changes, except `package.json`, which keeps its own members and gets the missing ones. No file is written
 *         through a link.
 * INIT-2  The project depends on this version of the package, or on a given archive.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { nodeProblem } from "./node-version.ts";

/** The templates, beside the code in the package, and at the top of the repository. */
const TEMPLATES = ["../templates", "../../templates"]
  .map((path) => join(import.meta.dirname, path))
  .find((path) => existsSync(path));

/** The layers of a template between `base` and its own files. Files of later layers replace earlier files. */
const LAYERS: Readonly<Record<string, string[]>> = { react: ["assistant"] };

/** The name of the project in the files of templates. */
const NAME = "my-app";

export interface NewProject {
  folder: string;
  /** Default: `assistant`. */
  template?: string | undefined;
  /** The packed archive of the package, instead of a version from the registry. */
  archive?: string | undefined;
  version: string;
  /** The version of Node that runs. */
  node?: string;
}

/** Writes the project. Returns its files and the next steps. Throws an error that says what to change. */
export function writeProject({ folder, template = "assistant", archive, version, node }: NewProject): {
  files: string[];
  text: string;
} {
  const root = TEMPLATES ?? "";
  const names = readdirSync(root).filter((name) => name !== "base");
  if (!names.includes(template))
    throw new Error(`Unknown template "${template}". Templates are ${names.join(", ")}.`);
  if (archive !== undefined && !existsSync(archive))
    throw new Error(`The archive ${archive} does not exist. Make it with \`npm pack\`.`);
  const target = resolve(folder);
  const name = projectName(target);
  const layers = ["base", ...(LAYERS[template] ?? []), template];
  const files = new Map(layers.flatMap((layer) => filesOf(join(root, layer), name)));
  const paths = [...files.keys()].sort();
  const taken = paths.filter((path) =>
    path === "package.json" ? isLink(target, path) : isTaken(target, path),
  );
  if (taken.length > 0)
    throw new Error(
      `${shown(target)} already has ${taken.join(", ")}. Choose another folder, or remove these files.`,
    );
  const dramatis =
    archive === undefined
      ? `^${version}`
      : `file:${relative(target, resolve(archive)).replaceAll("\\", "/")}`;
  const manifests = layers.map((layer) =>
    readManifest(join(root, layer, "package.json"), (text) => text.replaceAll(NAME, name)),
  );
  const own = readManifest(join(target, "package.json"));
  if (own.type !== undefined && own.type !== "module")
    throw new Error(
      `The package.json of ${shown(target)} has "type": "${own.type}", but the project uses ES modules. Remove the member, or choose another folder.`,
    );
  const given = { dependencies: { dramatis }, type: "module" };
  const manifest = [...manifests, given, own].reduce(merged, {});
  files.set("package.json", `${JSON.stringify(manifest, null, 2)}\n`);
  for (const [path, text] of files) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    writeFileSync(join(target, path), text);
  }
  const enter = target === resolve(".") ? [] : [`  cd ${shown(target)}`];
  const problem = nodeProblem(node);
  const first = problem === undefined ? [] : [`  ${problem}`];
  const next = [...first, ...enter, "  npm install", "  npm run dev"].join("\n");
  const others = names.filter((other) => other !== template).join(", ");
  return {
    files: paths,
    text: `Created ${name} from the template "${template}". Other templates: ${others}.\n\n${paths.map((path) => `  ${path}`).join("\n")}\n\nNext:\n${next}`,
  };
}

function isLink(target: string, path: string): boolean {
  return lstatSync(join(target, path), { throwIfNoEntry: false })?.isFile() === false;
}

/** Reports whether a file of the project exists, or one of its folders is a link or a file. */
function isTaken(target: string, path: string): boolean {
  const found = (part: string) => lstatSync(join(target, part), { throwIfNoEntry: false });
  const folders = [];
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) folders.push(folder);
  return found(path) !== undefined || folders.some((folder) => found(folder)?.isDirectory() === false);
}

/** Returns a name that npm and Cloudflare accept. */
function projectName(target: string): string {
  const name = basename(target)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-");
  return name.replaceAll(/^-+|-+$/g, "").slice(0, 54) || NAME;
}

function shown(target: string): string {
  return relative(resolve("."), target) || ".";
}

function filesOf(folder: string, name: string): [string, string][] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = relative(folder, join(entry.parentPath, entry.name)).replaceAll("\\", "/");
      // npm leaves `.gitignore` out of archives, so the templates have these names without the dot.
      const dotted = path.replace(/^git(?:ignore$|hub\/)/, ".$&");
      return [dotted, readFileSync(join(folder, path), "utf8").replaceAll(NAME, name)];
    });
}

type Manifest = Record<string, unknown>;

function readManifest(path: string, change = (text: string) => text): Manifest {
  return existsSync(path) ? JSON.parse(change(readFileSync(path, "utf8"))) : {};
}

/** Merges the members of two manifests, and of the objects in them. Later values win. */
function merged(first: Manifest, second: Manifest): Manifest {
  const isObject = (value: unknown): value is Manifest => typeof value === "object" && value !== null;
  const members = Object.entries(second).map(([key, value]) => {
    const other = first[key];
    return [key, isObject(other) && isObject(value) ? { ...other, ...value } : value];
  });
  return { ...first, ...Object.fromEntries(members) };
}
