/**
 * `npm run build`: builds the package in `dist`, ready for `npm pack ./dist`, the console in `dist/console`, and `create-dramatis` in
 * `dist-create`.
 *
 * BUILD-1  The package imports only packages that its manifest declares.
 */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { buildConsole } from "./console.ts";
import { Failure } from "./failure.ts";
import { CREATE_MODULES, createManifest, type Manifest, packageManifest } from "./manifest.ts";

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
/** The package `create-dramatis`. */
const CREATE = join(ROOT, "dist-create");

/** Code of Workers, browsers and Node has different globals, so each is compiled separately. */
const PROJECTS = [
  "scripts/tsconfig.package.json",
  "scripts/tsconfig.package-web.json",
  "scripts/tsconfig.package-node.json",
];

function clean(): void {
  mkdirSync(DIST, { recursive: true });
  for (const name of readdirSync(DIST)) {
    // Keeps the console, which is replaced at the end, and its unfinished builds.
    if (!/^console(?:\.|$)/.test(name)) rmSync(join(DIST, name), { recursive: true });
  }
}

function compile(): void {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  for (const project of PROJECTS) {
    // Several checkers would each infer the types that they share.
    const arguments_ = [tsc, "-p", project, "--checkers", "1"];
    const { status } = spawnSync(process.execPath, arguments_, { cwd: ROOT, stdio: "inherit" });
    if (status !== 0) throw new Failure(`${project} does not compile. See the errors above.`);
  }
}

/** Rewrites import extensions in declarations. The compiler rewrites them only in code. */
function pointDeclarationsAtCode(): void {
  for (const file of globSync("**/*.d.ts", { cwd: DIST }).map((path) => join(DIST, path))) {
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/((?:from|import)\s*\(?\s*"\.{1,2}\/[^"\n]*)\.tsx?"/g, '$1.js"'));
  }
}

/** Returns the packages that the code or its types import. */
function importedPackages(): Set<string> {
  const files = globSync("**/*.{js,d.ts}", { cwd: DIST, exclude: ["console/**"] });
  const names = files.flatMap((file) => {
    const text = readFileSync(join(DIST, file), "utf8");
    // Error texts contain these words too, but no package name follows them.
    return [...text.matchAll(/(?:^|\s)(?:from|import)\s*\(?\s*"(@?[a-z0-9~][^"$\n]*)"/g)].map(
      ([, name = ""]) => name,
    );
  });
  return new Set(names.filter((name) => !/^(?:node|cloudflare):/.test(name)).map((name) => packageOf(name)));
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function writeManifest(manifest: Manifest): void {
  const declared = { ...manifest.dependencies, ...manifest.peerDependencies };
  const missing = [...importedPackages()].filter((name) => !(name in declared));
  if (missing.length > 0)
    throw new Failure(
      `These packages are imported but not declared: ${missing.join(", ")}. Add them to \`dependencies\`.`,
    );
  const entries = [...Object.values(manifest.exports), manifest.bin].flatMap((entry) => Object.values(entry));
  for (const entry of entries) {
    if (!existsSync(join(DIST, entry))) throw new Failure(`The entry point ${entry} was not built.`);
  }
  writeFileSync(join(DIST, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Builds `create-dramatis`: the templates, and the code that writes them. */
function buildCreate(): void {
  rmSync(CREATE, { recursive: true, force: true });
  for (const module of CREATE_MODULES) cpSync(join(DIST, `${module}.js`), join(CREATE, `${module}.js`));
  cpSync(join(ROOT, "templates"), join(CREATE, "templates"), { recursive: true });
  const manifest = createManifest(packageManifest(join(ROOT, "package.json")));
  writeFileSync(join(CREATE, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

try {
  clean();
  compile();
  pointDeclarationsAtCode();
  writeManifest(packageManifest(join(ROOT, "package.json")));
  for (const file of ["README.md", "LICENSE"].filter((name) => existsSync(join(ROOT, name)))) {
    copyFileSync(join(ROOT, file), join(DIST, file));
  }
  cpSync(join(ROOT, "templates"), join(DIST, "templates"), { recursive: true });
  copyFileSync(join(ROOT, "src/container/image/Dockerfile"), join(DIST, "container/image/Dockerfile"));
  buildCreate();
  buildConsole({ force: true });
  console.log("Built the package in dist, the console in dist/console, and create-dramatis in dist-create.");
} catch (error) {
  console.error(error instanceof Failure ? error.message : error);
  process.exit(1);
}
