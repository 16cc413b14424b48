import { defineTool, ToolError } from "dramatis";
import { z } from "zod";

const CALCULATION = /^\s*(-?\d+(?:\.\d+)?)\s*([-+*/])\s*(-?\d+(?:\.\d+)?)\s*$/;

export const calculator = defineTool({
  name: "calculator",
  description: "Calculates with two numbers.",
  input: z.object({ expression: z.string().describe("Two numbers with + - * or / between them: 12 * 34") }),
  // It may run again after a crash.
  effect: "pure",
  execute({ expression }) {
    const [, first, operator, second] = CALCULATION.exec(expression) ?? [];
    const [a, b] = [Number(first), Number(second)];
    if (operator === "+") return a + b;
    if (operator === "-") return a - b;
    if (operator === "*") return a * b;
    if (operator === "/" && b !== 0) return a / b;
    // The model reads this message, and may try again.
    throw new ToolError(`"${expression}" is not a calculation with two numbers, such as 12 * 34.`);
  },
});
