/** The limits in docs/limits.md equal the limits in the sources. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
/** Rows of the tables that begin with `What`. */
const rows = readFileSync(join(root, "docs/limits.md"), "utf8")
  .split("\n\n")
  .filter((block) => block.startsWith("| What "))
  .flatMap((table) => table.trim().split("\n").slice(2))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, what = "", value = "", effect = "", , constant = ""]) => ({ what, value, effect, constant }));

const UNITS: Readonly<Record<string, number>> = {
  KiB: 1024,
  MiB: 1024 ** 2,
  Ki: 1024,
  Mi: 1024 ** 2,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  days: 86_400_000,
};

/** Returns the numbers of a cell, each in the unit that follows it. */
function numbersIn(value: string): number[] {
  return [...value.matchAll(/(\d[\d ]*\d|\d)(?: ([A-Za-z]+))?/g)].map(
    ([, digits = "", unit = ""]) => Number(digits.replaceAll(" ", "")) * (UNITS[unit] ?? 1),
  );
}

/** Returns the number of a constant of the form `NAME = 16 * 1024`. */
function constantIn(path: string, name: string): number {
  const source = readFileSync(join(root, "src", path), "utf8");
  const product = new RegExp(`const ${name} = ([\\d_ *+-]+);`).exec(source)?.[1];
  if (product === undefined) throw new Error(`${path} has no number ${name}.`);
  const sum = product.replaceAll("_", "").replace("2 ** 22 - 1", "4194303");
  return sum.split("*").reduce((total, factor) => total * Number(factor), 1);
}

const held = rows.flatMap(({ what, value, constant }) => {
  const [, name, path] = /^`(\w+)` in `([\w./-]+)`$/.exec(constant) ?? [];
  return name === undefined || path === undefined ? [] : [{ what, value, name, path }];
});

test("every limit names its effect, and most the constant that holds it", () => {
  expect(rows.filter(({ effect }) => effect === "")).toEqual([]);
  expect(held.length).toBeGreaterThan(rows.length / 2);
});

test.each(held)("$what: $value is $name", ({ value, name, path }) => {
  expect(numbersIn(value)).toContain(constantIn(path, name));
});
