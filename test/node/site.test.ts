/** The structure of the documentation site and the links of its pages. `npm run docs:site` builds it. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sitePage } from "../../scripts/build-site.ts";
import { SECTIONS } from "../../scripts/site-structure.ts";

const root = join(import.meta.dirname, "../..");
const pages = SECTIONS.flatMap(({ pages }) => pages);
const files = pages.flatMap(({ file }) => file ?? []);

test("G26 SITE-1 the menu has every page of docs once, and each of its files exists", () => {
  const docs = globSync("docs/*.md", { cwd: root, exclude: ["docs/spec.md", "docs/capabilities.md"] });
  expect(files.filter((file) => file.startsWith("docs/")).toSorted()).toEqual(
    docs.map((file) => file.replaceAll("\\", "/")).toSorted(),
  );
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  expect(new Set(pages.map(({ name }) => name)).size).toBe(pages.length);
});

test("G26 SITE-2 reference is apart from guides, and rules and capabilities are for contributors", () => {
  const names = (title: string) =>
    SECTIONS.find((section) => section.title === title)?.pages.map(({ name }) => name);
  expect(names("Reference")).toEqual(
    expect.arrayContaining(["http", "operations", "cli", "api/index", "limits"]),
  );
  expect(names("Contribute")).toEqual(["contributing", "spec", "capabilities"]);
});

test("G26 SITEBUILD-1 links lead to pages of the site, and links to other files become text", () => {
  const page = sitePage(
    "docs/http.md",
    "[a](limits.md#turns) [b](../README.md) [`c`](../src/worker.ts) [d](https://x.y) [e](#frames)\n```md\n[f](limits.md)\n```\n",
  );
  expect(page).toBe(
    "[a](/limits#turns) [b](/index) `c` [d](https://x.y) [e](#frames)\n```md\n[f](limits.md)\n```\n",
  );
});

test("G26 each concept has one picture, which needs no network", () => {
  const [, ...concepts] = readFileSync(join(root, "docs/concepts.md"), "utf8").split(/^## /m);
  for (const concept of concepts.filter((text) => !text.startsWith("Words"))) {
    const [picture, ...others] = [...concept.matchAll(/!\[.{20,}\]\((pictures\/[\w-]+\.svg)\)/g)];
    expect(others).toEqual([]);
    const svg = readFileSync(join(root, "docs", picture?.[1] ?? ""), "utf8");
    expect(svg.replace("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:|<script|@import/);
  }
});

test("G26 the README fits two screens", () => {
  const lines = readFileSync(join(root, "README.md"), "utf8").split("\n");
  expect(lines.length).toBeLessThanOrEqual(100);
});
