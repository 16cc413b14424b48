/** Finds an arithmetic expression in a sentence; the calculator computes its value. */

const MAX_EXPRESSION = 200;

const NUMBER = String.raw`[-+\s]*(?:\d+(?:\.\d+)?|\.\d+)\s*`;
/** Numbers joined by operators. */
const CHAIN = String.raw`${NUMBER}(?:(?:\*\*|[-+*/%^])${NUMBER})*`;
const GROUP = new RegExp(String.raw`\(${CHAIN}\)`, "g");
const EXPRESSION = new RegExp(`^${CHAIN}$`);
const OPERATOR = /[\d)]\s*[-+*/%^]/;

/** Returns the longest expression with an operator, or `undefined`. A calendar date is not an expression. */
export function findExpression(sentence: string): string | undefined {
  const plain = sentence
    .replace(/\b\d{4}-\d{2}-\d{2}\b/g, " _ ")
    .replace(/[×·]/g, "*")
    .replace(/÷/g, "/")
    .replace(/−/g, "-");
  const runs = plain.match(/[\d\s.()+\-*/%^]+/g) ?? [];
  return runs
    .map((run) => balanced(run.trim().replace(/[\s.+\-*/%^(]+$/, "")))
    .filter((run) => run.length <= MAX_EXPRESSION && isExpression(run))
    .sort((one, other) => other.length - one.length)[0];
}

/** Removes parentheses at either end that belong to the sentence: "(2+2)*3)" becomes "(2+2)*3". */
function balanced(run: string): string {
  let text = run;
  while (count(text, ")") > count(text, "(") && text.endsWith(")")) text = text.slice(0, -1).trim();
  while (count(text, "(") > count(text, ")") && text.startsWith("(")) text = text.slice(1).trim();
  return text;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** Replaces groups in parentheses by a number, from the inside out, until one chain is left. */
function isExpression(text: string): boolean {
  let [before, after] = ["", text];
  while (before !== after) [before, after] = [after, after.replace(GROUP, " 0 ")];
  return EXPRESSION.test(after) && OPERATOR.test(text);
}

/** Returns the value of an expression; `undefined` if it is no finite number. Powers bind from the right. */
export function computed(expression: string): number | undefined {
  const tokens = expression.replaceAll("**", "^").match(/\d+(?:\.\d+)?|\.\d+|[-+*/%^()]/g) ?? [];
  let next = 0;
  const take = (...signs: string[]) => (signs.includes(tokens[next] ?? "") ? tokens[next++] : undefined);
  const unary = (): number => {
    const sign = take("-", "+");
    if (sign !== undefined) return sign === "-" ? -unary() : unary();
    const base = atom();
    return take("^") === undefined ? base : base ** unary();
  };
  const atom = (): number => {
    if (take("(") === undefined) return Number(tokens[next++] ?? Number.NaN);
    const value = sum();
    return take(")") === undefined ? Number.NaN : value;
  };
  const product = (): number => {
    let value = unary();
    for (let sign = take("*", "/", "%"); sign !== undefined; sign = take("*", "/", "%")) {
      const other = unary();
      value = sign === "*" ? value * other : sign === "/" ? value / other : value % other;
    }
    return value;
  };
  const sum = (): number => {
    let value = product();
    for (let sign = take("+", "-"); sign !== undefined; sign = take("+", "-"))
      value = sign === "+" ? value + product() : value - product();
    return value;
  };
  const value = sum();
  return next === tokens.length && Number.isFinite(value) ? value : undefined;
}
