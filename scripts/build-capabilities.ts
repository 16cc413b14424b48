/**
 * Writes `docs/capabilities.md`: each capability with the tests that prove it. The titles of those tests begin with its
 * number. Fails for a capability without a test on workerd.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { CAPABILITIES, type Capability } from "./capabilities.ts";
import { citedNumbers, testTitles } from "./test-titles.ts";

interface Proof {
  row: string;
  title: string;
  file: string;
}

/** Files of tests that run on workerd. */
const WORKERD = /^test\/(?:workers|e2e)\//;

/** Returns the page for the list of capabilities and the tests below `root`. */
export function capabilitiesPage(root: string): string {
  const proofs = testTitles(root).flatMap(({ title, file }) =>
    citedNumbers(title).map((row) => ({ row, title: title.replaceAll(/\s+/g, " "), file })),
  );
  const unproven = unprovenRows(proofs);
  if (unproven.length > 0) throw new Error(`These capabilities have no test: ${unproven.join(", ")}.`);
  return render(proofs);
}

/** Returns the rows without a test on workerd. For a pure library, a test on Node is enough. */
export function unprovenRows(proofs: readonly Pick<Proof, "row" | "file">[]): string[] {
  const proven = new Set(proofs.map(({ row }) => row));
  const onWorkerd = new Set(proofs.filter(({ file }) => WORKERD.test(file)).map(({ row }) => row));
  return CAPABILITIES.filter(({ row, isPure }) => !(isPure ? proven : onWorkerd).has(row)).map(
    ({ row }) => row,
  );
}

function render(proofs: readonly Proof[]): string {
  const sections = CAPABILITIES.map((capability) => section(capability, proofs));
  return `# Capabilities

The capabilities, with the tests that prove them. \`npm run docs\` makes this page from the list in \`scripts/capabilities.ts\`
and from the titles of the tests, which begin with the row's number.

${sections.join("\n")}`;
}

function section({ row, name, statement, missing }: Capability, proofs: readonly Proof[]): string {
  const own = proofs.filter((proof) => proof.row === row);
  const lines = own.map(({ title, file }) => `- [\`${file}\`](../${file}) ${escaped(title)}`);
  const text = missing === undefined ? statement : `${statement}\n\nNot built yet: ${missing}`;
  return `## ${row} ${name}\n\n${text}\n\n${lines.join("\n")}\n`;
}

/** Escapes the characters of a title that Markdown would interpret. */
function escaped(title: string): string {
  return title.replaceAll(/([*_<>$[\]])/g, "\\$1");
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  writeFileSync(join(root, "docs/capabilities.md"), capabilitiesPage(root));
}
