/** Finds an arithmetic expression in a sentence. It is only found here; the calculator works it out. */

const MAX_EXPRESSION = 200;

/** The longest expression with at least one operator, or `undefined`. A calendar date is none. */
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

/** Without parentheses at either end that belong to the sentence: "(2+2)*3)" is "(2+2)*3". */
function balanced(run: string): string {
  let text = run;
  while (count(text, ")") > count(text, "(") && text.endsWith(")")) text = text.slice(0, -1).trim();
  while (count(text, "(") > count(text, ")") && text.startsWith("(")) text = text.slice(1).trim();
  return text;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** A recogniser: signed numbers and parenthesised expressions, joined by operators. */
function isExpression(text: string): boolean {
  const tokens = text.match(/\d+(?:\.\d+)?|\.\d+|\*\*|[()+\-*/%^]|\S/g) ?? [];
  let at = 0;
  let operators = 0;
  const operand = (): boolean => {
    while (tokens[at] === "-" || tokens[at] === "+") at += 1;
    const token = tokens[at] ?? "";
    at += 1;
    if (token !== "(") return /^[\d.]*\d$/.test(token);
    const isInside = chain() && tokens[at] === ")";
    at += 1;
    return isInside;
  };
  const chain = (): boolean => {
    if (!operand()) return false;
    while (/^(?:\*\*|[+\-*/%^])$/.test(tokens[at] ?? "")) {
      at += 1;
      operators += 1;
      if (!operand()) return false;
    }
    return true;
  };
  return chain() && at === tokens.length && operators > 0;
}
