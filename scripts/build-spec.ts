/** Writes `docs/spec.md`: all numbered rules from the file headers of `src` and `app`. Fails if two files use the same number. */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Rule {
  number: string;
  text: string;
  file: string;
}

/** Returns the page for the sources below `root`. */
export function specPage(root: string): string {
  const rules = globSync("{src,app}/**/*.{ts,tsx}", { cwd: root })
    .map((path) => path.replaceAll("\\", "/"))
    .sort()
    .flatMap((file) => rulesOf(file, readFileSync(join(root, file), "utf8")));
  refuseDuplicates(rules);
  return render(rules);
}

/** Reads the rules of a file header: a number, then its text, continued on indented lines. */
function rulesOf(file: string, source: string): Rule[] {
  const header = /^\/\*\*([\s\S]*?)\*\//.exec(source)?.[1] ?? "";
  const found: Rule[] = [];
  for (const line of header.split("\n").map((text) => text.replace(/^\s*\* ?/, ""))) {
    const [, number, text] = /^([A-Z]+(?:-[A-Z]+)*-\d+)\s{2,}(.+)$/.exec(line) ?? [];
    if (number !== undefined && text !== undefined) {
      found.push({ number, text, file });
      continue;
    }
    const last = found.at(-1);
    const continued = /^\s{2,}(\S.*)$/.exec(line)?.[1];
    if (last !== undefined && continued !== undefined) last.text += ` ${continued}`;
  }
  return found;
}

function refuseDuplicates(all: readonly Rule[]): void {
  const seen = new Map<string, string>();
  for (const { number, file } of all) {
    const other = seen.get(number);
    if (other !== undefined)
      throw new Error(`${number} is in ${other} and in ${file}. Renumber one of them.`);
    seen.set(number, file);
  }
}

function render(all: readonly Rule[]): string {
  const files = Map.groupBy(all, ({ file }) => file);
  const sections = [...files].map(([file, own]) => {
    const rows = own.map(({ number, text }) => `- **${number}** ${text}`);
    return `## [\`${file}\`](../${file})\n\n${rows.join("\n")}\n`;
  });
  return `# The rules\n\nThe numbered rules of the code, in the words of the file that keeps each rule. A test that proves a rule
has its number in its title. \`npm run docs\` makes this page from the sources.\n\n${sections.join("\n")}`;
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  writeFileSync(join(root, "docs/spec.md"), specPage(root));
}
