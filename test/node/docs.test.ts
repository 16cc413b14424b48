/** The generated pages agree with the sources. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";
import { capabilitiesPage } from "../../scripts/build-capabilities.ts";
import { specPage } from "../../scripts/build-spec.ts";
import { citedNumbers, testTitles, titlesOf } from "../../scripts/test-titles.ts";

const root = join(import.meta.dirname, "../..");

const spec = specPage(root);
const capabilities = capabilitiesPage(root);

/** Numbers of rules, such as `MAIL-4` or `CLIENTTOOL-1`. */
const RULE = /\b[A-Z]{2,}(?:-[A-Z]+)*-\d+\b/g;

/** Names of standards that look like numbers of rules. */
const NOT_RULES = new Set(["SHA-256", "UTF-8", "UTF-16"]);

const listed = new Set(spec.match(/(?<=^- \*\*)[A-Z-]+-\d+/gm));

test("the title of a test cites every rule", () => {
  const cited = new Set(testTitles(root).flatMap(({ title }) => citedNumbers(title)));
  expect([...listed].filter((rule) => !cited.has(rule))).toEqual([]);
});

test("the list of capabilities has titles with a comma or a colon after a number, and titles of tables of cases", () => {
  const [, proofs] = /^## G5 .*\n\n.*\n\n((?:- .*\n)+)/m.exec(capabilities) ?? [];
  expect(proofs).toContain("G5, CFRAME-1 another version");
  expect(capabilities).toContain("LIBAPI-5 H5 only a new library");
});

test.each([
  ["A1 it", ["A1"]],
  ["G5, CFRAME-1 it", ["G5", "CFRAME-1"]],
  ["A1 LIB-API-2: it is B7", ["A1", "LIB-API-2"]],
  ["07 A6 DELEGATE-1 it", ["A6", "DELEGATE-1"]],
  ["scenario 10: A39 HOOK-5 it", ["A39", "HOOK-5"]],
  ["scenarios 04 and 05: F1 it", ["F1"]],
  ["planned: F3 it", ["F3"]],
  ["OAJ#243 langfuse#14754 ASK-1 it", ["ASK-1"]],
  ["it is A1", []],
])("the numbers that the title %j begins with are %j", (title, numbers) => {
  expect(citedNumbers(title)).toEqual(numbers);
});

test.each([
  ['test("A-1 it", () => {});', ["A-1 it"]],
  ['test.each([\n  [")(", 2],\n])(\n  `A-1 it`,\n  () => {},\n);', ["A-1 it"]],
  ['test.skipIf(old)("A-1 it", () => {});', ["A-1 it"]],
  ['describe("A-1", () => { test("A-2 it", () => {}); });', ["A-1", "A-2 it"]],
  ['expect(text, "A-1 it").toBe("A-2 it");', []],
  ['other.test("A-1 it");', []],
])("the titles of tests in %j are %j", (source, titles) => {
  expect(titlesOf(parseAst(source, { lang: "ts" }))).toEqual(titles);
});

test("the header of a file states every rule that src and app cite", () => {
  const unlisted = globSync("{src,app}/**/*.{ts,tsx}", { cwd: root }).flatMap((path) => {
    const cited = readFileSync(join(root, path), "utf8").match(RULE) ?? [];
    return cited
      .filter((rule) => !listed.has(rule) && !NOT_RULES.has(rule))
      .map((rule) => `${path}: ${rule}`);
  });
  expect(unlisted).toEqual([]);
});

/** A path from the root; one with a placeholder in capitals, such as `NAME`, is none. */
const PATH = /(?<![\w/.-])(?:src|app|scripts|test|examples|bench)\/[\w./-]*\w/g;

test.each([
  "README.md",
  "CONTRIBUTING.md",
  ...globSync("docs/*.md", { cwd: root, exclude: ["docs/spec.md", "docs/capabilities.md"] }),
])("every file and folder that %s names exists", (name) => {
  const prose = readFileSync(join(root, name), "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
  const named = prose.match(PATH) ?? [];
  const paths = named.filter((path) => !/\/[A-Z]+(?:\.|$)/.test(path));
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
