/**
 * `npm run docs:site`: builds the site of the documentation in `dist/site`, with search. `-- --serve` also serves it.
 *
 * SITEBUILD-1  A link to a page of the repository leads to its page of the site. A link to another file becomes its text.
 * SITEBUILD-2  A link to a page or a heading that does not exist fails the build.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { docsPage } from "../app/api-docs/page.ts";
import { apiDocument } from "../src/http/openapi/document.ts";
import { OPERATIONS } from "../src/http/operations.ts";
import { capabilitiesPage } from "./build-capabilities.ts";
import { specPage } from "./build-spec.ts";
import { anchorsOf, linksOf } from "./doc-links.ts";
import { Failure } from "./failure.ts";
import { ENTRIES } from "./manifest.ts";
import { SECTIONS } from "./site-structure.ts";

const ROOT = join(import.meta.dirname, "..");
const SITE = join(ROOT, "site");
const SOURCE = join(SITE, "source");

/** The pages of the site by their file in the repository. */
const NAMES = new Map([
  ...SECTIONS.flatMap(({ pages }) =>
    pages.flatMap(({ file, name }): [string, string][] => (file === undefined ? [] : [[file, name]])),
  ),
  ["docs/spec.md", "spec"],
  ["docs/capabilities.md", "capabilities"],
]);

/** Returns a page with the links of the site. */
export function sitePage(file: string, markdown: string): string {
  const fences = markdown.split(/(^\s*```[\s\S]*?^\s*```)/m);
  return fences.map((part, index) => (index % 2 === 1 ? part : withSiteLinks(file, part))).join("");
}

function withSiteLinks(file: string, markdown: string): string {
  return markdown.replaceAll(
    /\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g,
    (link, text: string, target: string) => {
      if (/^(?:[a-z]+:|#)/.test(target)) return link;
      const [path = "", anchor] = target.split("#");
      const found = posix.normalize(posix.join(posix.dirname(file), path));
      const name = NAMES.get(found);
      if (name === undefined) return existsSync(join(ROOT, found)) && !found.endsWith(".svg") ? text : link;
      return `[${text}](/${name}${anchor === undefined ? "" : `#${anchor}`})`;
    },
  );
}

function write(name: string, text: string): void {
  const path = join(SOURCE, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function run(command: string, ...args: string[]): void {
  const { status } = spawnSync(command, args, { cwd: SITE, stdio: "inherit" });
  if (status !== 0) throw new Failure(`${command} ${args.join(" ")} failed.`);
}

/** Returns the list of HTTP operations; the page of the API has their details. */
function operationsPage(document: ReturnType<typeof apiDocument>): string {
  const rows = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item ?? {}).flatMap(([method, operation]) => {
      if (typeof operation !== "object" || !("operationId" in operation)) return [];
      const { operationId, summary = "" } = operation as { operationId: string; summary?: string };
      return [
        `| <a href="/http-api.html#${operationId}" target="_self">\`${operationId}\`</a> | \`${method.toUpperCase()} ${path}\` | ${summary} |`,
      ];
    }),
  );
  return `# HTTP operations

Every server describes its API at \`/openapi.json\`, and as a page at \`/docs\`. This page lists the operations of this version.
<a href="/http-api.html" target="_self">The whole reference</a> has their parameters, bodies and errors.

| Operation | Route | Effect |
|---|---|---|
${rows.join("\n")}
`;
}

/** Fails if a link leads to a page or a heading that the site does not have. */
function checkLinks(): void {
  const text = (name: string) => readFileSync(join(SOURCE, name), "utf8");
  const pages = globSync("*.md", { cwd: SOURCE });
  const broken = pages.flatMap((page) =>
    linksOf(text(page)).flatMap((link) => {
      const [, name, anchor] = /^\/([\w/-]+)(?:#(.+))?$/.exec(link) ?? [];
      if (name === undefined) return [];
      if (!existsSync(join(SOURCE, `${name}.md`))) return [`${page}: ${link}`];
      return anchor === undefined || anchorsOf(text(`${name}.md`)).has(anchor) ? [] : [`${page}: ${link}`];
    }),
  );
  if (broken.length > 0) throw new Failure(`Broken links:\n${broken.join("\n")}`);
}

async function build(): Promise<void> {
  if (!existsSync(join(SITE, "node_modules"))) run("npm", "ci", "--no-audit", "--no-fund");
  rmSync(SOURCE, { recursive: true, force: true });
  for (const [file, name] of NAMES) {
    if (existsSync(join(ROOT, file)))
      write(`${name}.md`, sitePage(file, readFileSync(join(ROOT, file), "utf8")));
  }
  for (const picture of globSync("docs/pictures/*.svg", { cwd: ROOT }))
    write(posix.join("pictures", posix.basename(picture)), readFileSync(join(ROOT, picture), "utf8"));
  write("spec.md", sitePage("docs/spec.md", specPage(ROOT)));
  write("capabilities.md", sitePage("docs/capabilities.md", capabilitiesPage(ROOT)));
  const document = apiDocument(OPERATIONS);
  write("operations.md", operationsPage(document));
  write("public/http-api.html", (await docsPage(document)).html);
  const entries = Object.values(ENTRIES).flatMap((entry) => ["--entryPoints", join(ROOT, `src/${entry}.ts`)]);
  run("npx", "typedoc", "--options", "typedoc.json", "--out", join(SOURCE, "api"), ...entries);
  checkLinks();
  run("npx", "vitepress", "build", ".");
  if (process.argv.includes("--serve")) run("npx", "vitepress", "preview", ".");
}

if (import.meta.main) await build();
