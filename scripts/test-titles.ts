/** Reads the titles of tests from their sources. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";

/** A label such as `scenario 10:`, which a title may have before its numbers. */
const LABEL = String.raw`(?:[a-z][a-z\d ]*: )`;

/** The number of a rule or capability, of a scenario, or of a public report. */
const NUMBER = String.raw`(?:[A-Z]+(?:-[A-Z]+)*-?\d+[,:]? |\d+ |[\w/-]+#\d+ )`;

/** The beginning of a title. */
const HEAD = new RegExp(`^${LABEL}?${NUMBER}+`);

const TESTS = new Set<string | undefined>(["test", "it", "describe"]);

/** Returns the numbers that a title begins with. */
export function citedNumbers(title: string): string[] {
  return HEAD.exec(title)?.[0].match(/(?<![\w/#-])[A-Z][A-Z-]*\d+(?![\w/#-])/g) ?? [];
}

/** Returns the titles of the tests below `root`, with their files in order. */
export function testTitles(root: string): { title: string; file: string }[] {
  return globSync("test/**/*.ts", { cwd: root })
    .map((path) => path.replaceAll("\\", "/"))
    .sort()
    .flatMap((file) => {
      const tree = parseAst(readFileSync(join(root, file), "utf8"), { lang: "ts" });
      return titlesOf(tree).map((title) => ({ title, file }));
    });
}

/** The members of a syntax node that lead to titles. */
interface SyntaxNode {
  type?: string;
  name?: string;
  value?: unknown;
  callee?: SyntaxNode;
  object?: SyntaxNode;
  arguments?: SyntaxNode[];
  quasis?: { value: { cooked: string } }[];
}

/** Returns the titles of tests in a syntax tree. Placeholders become `…`. */
export function titlesOf(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  // SAFETY: every member is optional; a tree's nodes have them with these types.
  const { type, callee, arguments: [title] = [] } = node as SyntaxNode;
  const isTest = type === "CallExpression" && TESTS.has(firstName(callee));
  const text = title?.quasis?.map(({ value }) => value.cooked).join("…") ?? title?.value;
  const own = isTest && typeof text === "string" ? [text] : [];
  return [...own, ...Object.values(node).flatMap(titlesOf)];
}

/** Returns the name that a callee begins with, such as `test` of `test.each(rows)`. */
function firstName(node: SyntaxNode | undefined): string | undefined {
  return node?.name ?? (node && firstName(node.callee ?? node.object));
}
