/** The generated pages agree with the sources. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";
import { capabilitiesPage } from "../../scripts/build-capabilities.ts";
import { specPage } from "../../scripts/build-spec.ts";
import { anchorsOf, linksOf } from "../../scripts/doc-links.ts";
import { citedNumbers, testTitles, titlesOf } from "../../scripts/test-titles.ts";
import { ACTION_KINDS } from "../../src/library/tasks/kinds.ts";

const root = join(import.meta.dirname, "../..");

const spec = specPage(root);
const capabilities = capabilitiesPage(root);

/** Numbers of rules, such as `MAIL-4` or `CLIENTTOOL-1`. */
const RULE = /\b[A-Z]{2,}(?:-[A-Z]+)*-\d+\b/g;

/** Names of standards that look like numbers of rules. */
const NOT_RULES = new Set(["CRC-32", "SHA-1", "SHA-256", "UTF-8", "UTF-16"]);

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

test("docs/tasks.md describes each action of tasks", () => {
  const page = readFileSync(join(root, "docs/tasks.md"), "utf8");
  expect(ACTION_KINDS.filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
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

const PAGES = globSync(["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md"], {
  cwd: root,
  exclude: ["docs/spec.md", "docs/capabilities.md"],
});
const GENERATED = ["docs/spec.md", "docs/capabilities.md"];
const textOf = (path: string) => readFileSync(join(root, path), "utf8");

test.each(PAGES)("G26 every link of %s leads to a file, and to a heading of it", (page) => {
  const broken = linksOf(textOf(page)).filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : normalize(join(dirname(page), path)).replaceAll("\\", "/");
    if (GENERATED.includes(target)) return false;
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && target.endsWith(".md") && !anchorsOf(textOf(target)).has(anchor);
  });
  expect(broken).toEqual([]);
});

test("G16 the costs in docs/deploy.md follow from its counts, and the rows of actors from bench/results.json", () => {
  const section = textOf("docs/deploy.md").split("## Cost")[1]?.split("\n## ")[0] ?? "";
  const rows = section
    .split("\n")
    .filter((line) => /\| \$0\.\d+ \|$/.test(line) && line.split("|").length === 10);
  const results: { case: string; system: string; metric: string; median: number }[] = JSON.parse(
    textOf("bench/results.json"),
  );
  const counted = ["turns/open", "turns/three-tool-rounds", "turns/fresh", "delegation/fresh"].map(
    (name) =>
      results.find(
        ({ case: one, system, metric }) => system === "dramatis" && `${one}/${metric}` === `${name} rows`,
      )?.median,
  );
  expect(rows.map((row) => Number(row.split("|")[2]))).toEqual(counted);
  for (const row of rows) {
    const [turn = "", actors = 0, d1 = 0, log = 0, wakes = 0, sum, seconds = 0, cost] = row
      .split("|")
      .slice(1, -1)
      .map((cell, index) => (index === 0 ? cell : Number(cell.replace("$", "")))) as [string, ...number[]];
    expect(sum, turn).toBe(actors + d1 + log + wakes);
    const requests = turn.includes("another agent") ? 10 : 5;
    const millionTurns = actors + d1 + log + wakes + requests * 0.15 + 0.3 + seconds * 0.128 * 12.5;
    expect(cost, turn).toBeCloseTo(millionTurns / 1_000, 3);
  }
});
