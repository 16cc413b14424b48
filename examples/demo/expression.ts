/**
 * Parser of arithmetic expressions: numbers, `+ - * / % ^`, parentheses, functions and constants, to forty digits.
 *
 * EXPR-1  Powers have the highest precedence and bind to the right. A sign has a lower precedence: `-2^2` is -4, `2^3^2` is 512.
 * EXPR-2  Every text gives a number, or a `ToolError` with the problem and its place.
 */
import { Decimal } from "decimal.js";
import { ToolError } from "../../src/library/tools/tool-error.ts";

/** Maximum decimal exponent, which bounds the time and memory of a calculation. */
const MAX_EXPONENT = 10_000;

const DIGITS = 40;

const Exact = Decimal.clone({
  precision: DIGITS,
  toExpPos: DIGITS,
  maxE: MAX_EXPONENT,
  minE: -MAX_EXPONENT,
});

const MAX_DEPTH = 100;

const CONSTANTS: Record<string, Decimal> = { pi: Exact.acos(-1), e: Exact.exp(1) };

const FUNCTIONS: Record<string, { arity: number; apply: (...values: Decimal[]) => Decimal }> = {
  sqrt: { arity: 1, apply: (value) => Exact.sqrt(value) },
  abs: { arity: 1, apply: (value) => Exact.abs(value) },
  round: { arity: 1, apply: (value) => Exact.round(value) },
  floor: { arity: 1, apply: (value) => Exact.floor(value) },
  ceil: { arity: 1, apply: (value) => Exact.ceil(value) },
  ln: { arity: 1, apply: (value) => Exact.ln(value) },
  log10: { arity: 1, apply: (value) => Exact.log10(value) },
  min: { arity: Number.POSITIVE_INFINITY, apply: (...values) => Exact.min(...values) },
  max: { arity: Number.POSITIVE_INFINITY, apply: (...values) => Exact.max(...values) },
};

/** Operators, with their precedence and their function. */
const OPERATORS: Record<
  string,
  { power: number; right?: true; apply: (left: Decimal, right: Decimal) => Decimal }
> = {
  "+": { power: 1, apply: (left, right) => left.plus(right) },
  "-": { power: 1, apply: (left, right) => left.minus(right) },
  "*": { power: 2, apply: (left, right) => left.times(right) },
  "/": { power: 2, apply: (left, right) => left.dividedBy(divisor(right)) },
  "%": { power: 2, apply: (left, right) => left.modulo(divisor(right)) },
  "^": { power: 4, right: true, apply: (left, right) => left.pow(right) },
};

const SIGN_POWER = 3;

const SPELLINGS: Record<string, string> = { "×": "*", "·": "*", "÷": "/", "−": "-", "**": "^" };

/** Evaluates an expression. */
export function evaluate(text: string): Decimal {
  return new Parser(tokens(text)).whole();
}

type Token = { kind: "number" | "name" | "symbol" | "end"; text: string; at: number };

function tokens(text: string): Token[] {
  const pattern =
    /\s*(?:(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|([a-z][a-z0-9]*)|(\*\*|[-+*/%^(),×·÷−]))/iy;
  const end = text.trimEnd().length;
  const found: Token[] = [];
  while (pattern.lastIndex < end) {
    const from = pattern.lastIndex;
    const match = pattern.exec(text);
    if (match === null) {
      const at = from + text.slice(from).search(/\S/);
      throw syntaxError(`"${String.fromCodePoint(text.codePointAt(at) ?? 0)}" is not understood`, at);
    }
    const [whole, number, name, symbol = ""] = match;
    const at = from + whole.length - whole.trimStart().length;
    if (number !== undefined) found.push({ kind: "number", text: number, at });
    else if (name !== undefined) found.push({ kind: "name", text: name.toLowerCase(), at });
    else found.push({ kind: "symbol", text: SPELLINGS[symbol] ?? symbol, at });
  }
  return [...found, { kind: "end", text: "the end", at: end }];
}

class Parser {
  #next = 0;
  #depth = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  whole(): Decimal {
    const value = this.#expression(0);
    const rest = this.#peek();
    if (rest.kind !== "end") throw syntaxError(`"${rest.text}" is not expected here`, rest.at);
    if (value.isFinite()) return value;
    const message = `The value is not a real number, or it is beyond 10^${MAX_EXPONENT}.`;
    throw new ToolError(message, { code: "INVALID_INPUT" });
  }

  /** Parses a value and all operators after it that bind at least as tightly as `power`. */
  #expression(power: number): Decimal {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw syntaxError("the expression is nested too deeply", this.#peek().at);
    let left = this.#operand();
    for (;;) {
      const token = this.#peek();
      const operator = token.kind === "symbol" ? OPERATORS[token.text] : undefined;
      if (operator === undefined || operator.power < power) break;
      this.#take();
      left = operator.apply(left, this.#expression(operator.right ? operator.power : operator.power + 1));
    }
    this.#depth -= 1;
    return left;
  }

  #operand(): Decimal {
    const token = this.#take();
    if (token.kind === "number") return new Exact(token.text);
    if (token.kind === "name") return this.#named(token);
    if (token.text === "-") return this.#expression(SIGN_POWER).negated();
    if (token.text === "+") return this.#expression(SIGN_POWER);
    if (token.text !== "(") throw syntaxError(`a number is missing before "${token.text}"`, token.at);
    const value = this.#expression(0);
    this.#expect(")");
    return value;
  }

  #named(name: Token): Decimal {
    const constant = Object.hasOwn(CONSTANTS, name.text) ? CONSTANTS[name.text] : undefined;
    if (constant !== undefined) return constant;
    const known = Object.hasOwn(FUNCTIONS, name.text) ? FUNCTIONS[name.text] : undefined;
    if (known === undefined) {
      const names = [...Object.keys(CONSTANTS), ...Object.keys(FUNCTIONS)].join(", ");
      throw syntaxError(`"${name.text}" is unknown; use one of ${names}`, name.at);
    }
    this.#expect("(");
    const values = [this.#expression(0)];
    while (this.#peek().text === ",") {
      this.#take();
      values.push(this.#expression(0));
    }
    this.#expect(")");
    if (values.length > known.arity) throw syntaxError(`${name.text} takes ${known.arity} value`, name.at);
    return known.apply(...values);
  }

  #peek(): Token {
    return this.tokens[this.#next] ?? { kind: "end", text: "the end", at: 0 };
  }

  #take(): Token {
    const token = this.#peek();
    this.#next += 1;
    return token;
  }

  #expect(text: string): void {
    const token = this.#take();
    if (token.text !== text) throw syntaxError(`"${text}" is missing before "${token.text}"`, token.at);
  }
}

function divisor(value: Decimal): Decimal {
  if (value.isZero()) throw new ToolError("Division by zero has no value.", { code: "INVALID_INPUT" });
  return value;
}

function syntaxError(what: string, at: number): ToolError {
  return new ToolError(`The expression cannot be read at character ${at + 1}: ${what}.`, {
    code: "INVALID_INPUT",
  });
}
