/** The tool `calculator`. */
import type { Decimal } from "decimal.js";
import { z } from "zod";
import { defineTool } from "../../src/library/define/define.ts";
import { evaluate } from "./expression.ts";

export const calculator = defineTool({
  name: "calculator",
  description:
    "Evaluates an arithmetic expression exactly. Use it for every calculation. Operators: + - * / % ^ and parentheses; " +
    "functions: sqrt, abs, round, floor, ceil, ln, log10, min, max; constants: pi, e.",
  input: z.object({
    expression: z.string().min(1).max(1_000).describe("For example: (2 + 3) * 4^2 / sqrt(16)"),
  }),
  effect: "pure",
  execute: ({ expression }) => ({ result: readable(evaluate(expression)) }),
});

/** Returns a number if it keeps all digits worth showing, otherwise a text. */
function readable(value: Decimal): number | string {
  if (value.isInteger()) {
    return value.abs().lessThanOrEqualTo(Number.MAX_SAFE_INTEGER) ? value.toNumber() : value.toString();
  }
  const rounded = value.toSignificantDigits(15);
  const number = rounded.toNumber();
  return number !== 0 && Number.isFinite(number) ? number : rounded.toString();
}
