/**
 * Writes `examples/demo/docs-index.json`, which `search_docs` searches, from README.md and docs. It does not rewrite a file with
 * the same content, because `wrangler dev` restarts a Worker if its files change.
 */
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { docsSections } from "./docs-sections.ts";

const root = join(import.meta.dirname, "..");
/** Generated lists. They explain no feature. */
const LISTS = ["docs/spec.md", "docs/capabilities.md"];

/** Writes the index. */
export function writeDocsIndex(): void {
  const paths = globSync(["README.md", "docs/**/*.md"], { cwd: root })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !LISTS.includes(path));
  const sections = paths.sort().flatMap((path) => docsSections(path, readFileSync(join(root, path), "utf8")));
  const file = join(root, "examples/demo/docs-index.json");
  const index = `${JSON.stringify(sections, null, 1)}\n`;
  if (!existsSync(file) || readFileSync(file, "utf8") !== index) writeFileSync(file, index);
}

if (import.meta.main) writeDocsIndex();
