/** Reads the titles of tests from their sources. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";

/** The beginning of a title: numbers of rules and capabilities, some with a comma or a colon after them. */
const HEAD = /^(?:[A-Z]+(?:-[A-Z]+)*-?\d+[,:]? )+/;

const TESTS = new Set<string | undefined>(["test", "it", "describe"]);

/** Returns the numbers that a title begins with. */
export function citedNumbers(title: string): string[] {
  return HEAD.exec(title)?.[0].match(/[A-Z-]+\d+/g) ?? [];
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

/** The members of a syntax tree's node that its titles need. */
interface SyntaxNode {
  type?: string;
  name?: string;
  value?: unknown;
  callee?: SyntaxNode;
  object?: SyntaxNode;
  arguments?: SyntaxNode[];
  quasis?: { value: { cooked: string } }[];
}

/** Returns the titles of tests in a syntax tree. A placeholder is `…`. */
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
