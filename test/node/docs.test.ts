/** The pages that are made from the sources say what the sources say. */
import { readFileSync } from "node:fs";
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
