/** The pages that are made from the sources say what the sources say. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { capabilitiesPage } from "../../scripts/build-capabilities.ts";
import { specPage } from "../../scripts/build-spec.ts";

const root = join(import.meta.dirname, "../..");
const page = (name: string) => readFileSync(join(root, "docs", name), "utf8");

test("docs/spec.md lists the rules as the files state them; `npm run docs` makes it anew", () => {
  expect(page("spec.md")).toBe(specPage(root));
});

test("docs/capabilities.md links every capability to its tests; `npm run docs` makes it anew", () => {
  expect(page("capabilities.md")).toBe(capabilitiesPage(root));
});

/** A path from the root; one with a placeholder in capitals, such as `NAME`, is none. */
const PATH = /(?<![\w/.-])(?:src|app|scripts|test|examples|bench)\/[\w./-]*\w/g;

test.each(["README.md", "CONTRIBUTING.md", ...globSync("docs/*.md", { cwd: root })])(
  "every file and folder that %s names exists",
  (name) => {
    const prose = readFileSync(join(root, name), "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
    const named = prose.match(PATH) ?? [];
    const paths = named.filter((path) => !/\/[A-Z]+(?:\.|$)/.test(path));
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  },
);
