/**
 * Expressions in CEL over JSON. A library parses them. They are compiled to functions here, because JSON has one type of number, and
 * because a hostile expression must terminate. Pure.
 *
 * EXPR-1  All numbers have one type: `10 / 4` is 2.5. A result beyond 2^53 is an error. All values are JSON.
 * EXPR-2  A missing member, item or variable reads as `null`. Own members only. `__proto__`, `constructor` and `prototype` are refused.
 * EXPR-3  Each step of an evaluation is charged to a budget before it runs. An evaluation ends when the budget is used up, for any
 *         expression and values.
 * EXPR-4  Compiling finds every error that does not depend on values: syntax, and names of variables and functions.
 */
import { type ASTNode, Environment, ParseError } from "@marcbachmann/cel-js";
import { type Json, MAX_DEPTH } from "../json.ts";
import type { Meter } from "../json-schema/meter.ts";
import { MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_LENGTH, MAX_EXPRESSION_PARTS } from "./expression-limits.ts";
import { FUNCTIONS, includes } from "./functions.ts";
import {
  asBool,
  asList,
  asNumber,
  asText,
  checkName,
  compare,
  ExpressionError,
  equals,
  inRange,
  itemOf,
  mapOf,
  memberOf,
  objectOf,
  spendText,
  typeOf,
  type Value,
  wrongType,
} from "./values.ts";

export interface Expression {
  /**
   * Returns the value, as a copy. `undefined` if the expression is the path of a missing value. Throws `ExpressionError`, and `Spent` if
   * the budget is used up.
   */
  evaluate(variables: Readonly<Record<string, Json>>, meter: Meter): Json | undefined;
}

/** A part of an expression. `frame` holds the variables, by their places. */
type Part = (frame: Value[], meter: Meter) => Value;

/** The names of the variables, by place. */
type Names = readonly string[];

const parser = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: MAX_EXPRESSION_PARTS, maxDepth: MAX_EXPRESSION_DEPTH },
});

/**
 * Compiles an expression over these variables. Throws `ExpressionError`.
 * @example compileExpression("input.items.map(i, i * 2)", ["input"]);
 */
export function compileExpression(source: string, names: Names): Expression {
  const root = compile(parseExpression(source), names);
  return {
    evaluate(variables, meter) {
      const value = root(
        names.map((name) => variables[name]),
        meter,
      );
      return value === undefined ? undefined : copied(value, meter, MAX_DEPTH);
    },
  };
}

export function parseExpression(source: string): ASTNode {
  if (source.length > MAX_EXPRESSION_LENGTH)
    throw new ExpressionError("Syntax", `Must have at most ${MAX_EXPRESSION_LENGTH} characters.`);
  try {
    return parser.parse(source).ast;
  } catch (error) {
    if (error instanceof RangeError) throw new ExpressionError("Syntax", "Nests too deep.");
    if (!(error instanceof ParseError)) throw error;
    const at = error.range === undefined ? "" : ` at character ${error.range.start + 1}`;
    throw new ExpressionError("Syntax", `${error.summary}${at}.`);
  }
}

function compile(node: ASTNode, names: Names): Part {
  const part = partOf(node, names);
  return (frame, meter) => {
    meter.spend(1);
    return part(frame, meter);
  };
}

function partOf(node: ASTNode, names: Names): Part {
  const inner = (other: ASTNode) => compile(other, names);
  switch (node.op) {
    case "value": {
      const value = literal(node.args);
      return () => value;
    }
    case "id": {
      const place = names.lastIndexOf(node.args);
      if (place < 0)
        throw new ExpressionError(
          "Reference",
          `There is no variable "${node.args}". Known variables: ${listed(names)}.`,
        );
      return (frame) => frame[place];
    }
    case ".": {
      const [object, name] = [inner(node.args[0]), checkName(node.args[1])];
      return (frame, meter) => memberOf(object(frame, meter), name);
    }
    case "[]": {
      const [object, index] = [inner(node.args[0]), inner(node.args[1])];
      return (frame, meter) => itemOf(object(frame, meter), index(frame, meter));
    }
    case "list": {
      const items = node.args.map(inner);
      return (frame, meter) => items.map((item) => item(frame, meter) ?? null);
    }
    case "map": {
      const entries = node.args.map(([key, value]) => [nameOf(key, names), inner(value)] as const);
      return (frame, meter) =>
        mapOf(
          entries.map(
            ([key, value]) =>
              [asText(key(frame, meter), "The name of a member"), value(frame, meter)] as const,
          ),
          meter,
        );
    }
    case "?:": {
      const [condition, one, other] = node.args.map(inner) as [Part, Part, Part];
      return (frame, meter) =>
        asBool(condition(frame, meter), "A condition") ? one(frame, meter) : other(frame, meter);
    }
    case "||":
    case "&&": {
      const [one, other] = node.args.map(inner) as [Part, Part];
      const decides = node.op === "||";
      const what = `What "${node.op}" joins`;
      return (frame, meter) =>
        asBool(one(frame, meter), what) === decides ? decides : asBool(other(frame, meter), what);
    }
    case "!_": {
      const value = inner(node.args);
      return (frame, meter) => !asBool(value(frame, meter), 'What "!" negates');
    }
    case "-_": {
      const value = inner(node.args);
      return (frame, meter) => -asNumber(value(frame, meter), 'What "-" negates');
    }
    case "call": {
      const [name, args] = node.args;
      return name === "has" ? has(args, names) : call(name, args, names);
    }
    case "rcall": {
      const [name, receiver, args] = node.args;
      const macro = Object.hasOwn(MACROS, name) ? MACROS[name] : undefined;
      const [variable] = args;
      return macro !== undefined && variable?.op === "id" && macro.counts.includes(args.length)
        ? loop(macro, receiver, variable.args, args.slice(1), names)
        : call(name, [receiver, ...args], names);
    }
    case "==":
    case "!=":
    case "<":
    case "<=":
    case ">":
    case ">=":
    case "in":
    case "+":
    case "-":
    case "*":
    case "/":
    case "%": {
      const [one, other] = node.args.map(inner) as [Part, Part];
      const operate = OPERATORS[node.op];
      return (frame, meter) => operate(one(frame, meter), other(frame, meter), meter);
    }
    default:
      throw new ExpressionError("Syntax", `"${node.op}" is not supported.`);
  }
}

const MAX_LISTED_NAMES = 20;

function listed(names: Names): string {
  const more = names.length > MAX_LISTED_NAMES ? ["and more"] : [];
  return [...names.slice(0, MAX_LISTED_NAMES), ...more].join(", ");
}

/** Returns the name of a member in a map's literal: an expression, or a bare word. */
function nameOf(key: ASTNode, names: Names): Part {
  if (key.op !== "id") return compile(key, names);
  const name = checkName(key.args);
  return () => name;
}

function literal(value: unknown): Value {
  if (typeof value === "bigint") {
    if (value >= 2n ** 53n) throw new ExpressionError("Range", `The number ${value} is beyond 2^53.`);
    return Number(value);
  }
  const isSimple = value === null || ["string", "number", "boolean"].includes(typeof value);
  if (!isSimple) throw new ExpressionError("Syntax", "Bytes and unsigned numbers are not supported.");
  // SAFETY: checked above.
  return value as Value;
}

/** Reports whether a member exists, with any value. */
function has([argument, ...others]: readonly ASTNode[], names: Names): Part {
  if (argument?.op !== "." || others.length > 0)
    throw new ExpressionError("Syntax", "has() takes the path of a member, as in has(input.name).");
  const [object, name] = [compile(argument.args[0], names), checkName(argument.args[1])];
  return (frame, meter) => memberOf(object(frame, meter), name) !== undefined;
}

function call(name: string, args: readonly ASTNode[], names: Names): Part {
  const known = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  if (known === undefined) throw new ExpressionError("Reference", `There is no function "${name}".`);
  const [least, most] = known.counts;
  if (args.length < least || args.length > most) {
    const wanted = least === most ? `${least}` : `${least} to ${most}`;
    throw new ExpressionError(
      "Syntax",
      `"${name}" takes ${wanted} arguments, including the value before the dot. It has ${args.length}.`,
    );
  }
  const parts = args.map((argument) => compile(argument, names));
  return (frame, meter) =>
    known.run(
      parts.map((part) => part(frame, meter)),
      meter,
    );
}

/** A loop over items: combines the results of its parts. */
interface Macro {
  /** The numbers of arguments, the variable included. */
  readonly counts: readonly number[];
  run(items: readonly Json[], parts: readonly ((item: Json) => Value)[]): Value;
}

const holds = (part: ((item: Json) => Value) | undefined) => (item: Json) =>
  asBool(part?.(item), "The condition of a loop");

const MACROS: Readonly<Record<string, Macro>> = {
  all: { counts: [2], run: (items, [test]) => items.every(holds(test)) },
  exists: { counts: [2], run: (items, [test]) => items.some(holds(test)) },
  exists_one: { counts: [2], run: (items, [test]) => items.filter(holds(test)).length === 1 },
  filter: { counts: [2], run: (items, [test]) => items.filter(holds(test)) },
  find: { counts: [2], run: (items, [test]) => items.find(holds(test)) },
  map: {
    counts: [2, 3],
    run: (items, [first, second]) =>
      second === undefined
        ? items.map((item) => first?.(item) ?? null)
        : items.filter(holds(first)).map((item) => second(item) ?? null),
  },
};

/** Runs a macro over the items of a list, or the names of a map's members. */
function loop(
  macro: Macro,
  receiver: ASTNode,
  variable: string,
  args: readonly ASTNode[],
  names: Names,
): Part {
  const [source, place] = [compile(receiver, names), names.length];
  const parts = args.map((argument) => compile(argument, [...names, variable]));
  return (frame, meter) => {
    const value = source(frame, meter);
    const items =
      typeOf(value) === "map" ? Object.keys(Object(value)) : asList(value, "The collection of a loop");
    meter.spend(items.length);
    const withItem = parts.map((part) => (item: Json) => {
      frame[place] = item;
      return part(frame, meter);
    });
    return macro.run(items, withItem);
  };
}

type Operate = (one: Value, other: Value, meter: Meter) => Value;

const arithmetic =
  (operate: (one: number, other: number) => number): Operate =>
  (one, other) =>
    inRange(operate(asNumber(one, "A number"), asNumber(other, "A number")));

const divided =
  (operate: (one: number, other: number) => number): Operate =>
  (one, other, meter) => {
    if (other === 0) throw new ExpressionError("Range", "A number is divided by zero.");
    return arithmetic(operate)(one, other, meter);
  };

const OPERATORS: Readonly<
  Record<"==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "+" | "-" | "*" | "/" | "%", Operate>
> = {
  "==": equals,
  "!=": (one, other, meter) => !equals(one, other, meter),
  "<": (one, other, meter) => compare(one, other, meter) < 0,
  "<=": (one, other, meter) => compare(one, other, meter) <= 0,
  ">": (one, other, meter) => compare(one, other, meter) > 0,
  ">=": (one, other, meter) => compare(one, other, meter) >= 0,
  in: (one, other, meter) => includes(other, one, meter),
  "+": add,
  "-": arithmetic((one, other) => one - other),
  "*": arithmetic((one, other) => one * other),
  "/": divided((one, other) => one / other),
  "%": divided((one, other) => one % other),
};

function add(one: Value, other: Value, meter: Meter): Value {
  if (typeof one === "number" && typeof other === "number") return inRange(one + other);
  if (typeof one === "string" && typeof other === "string") {
    spendText(meter, one.length + other.length);
    return one + other;
  }
  if (Array.isArray(one) && Array.isArray(other)) {
    meter.spend(one.length + other.length);
    return [...one, ...other];
  }
  throw wrongType(`What "+" adds to a ${typeOf(one)}`, typeOf(one), other);
}

/** Copies a value. Charges shared parts each time they occur. */
function copied(value: Json, meter: Meter, depth: number): Json {
  if (typeof value === "string") {
    spendText(meter, value.length);
    return value.toWellFormed();
  }
  meter.spend(1);
  if (typeof value !== "object" || value === null) return value;
  if (depth === 0) throw new ExpressionError("Range", `The value nests more than ${MAX_DEPTH} levels deep.`);
  if (Array.isArray(value)) return value.map((item) => copied(item, meter, depth - 1));
  const entries = Object.entries(value);
  return objectOf(
    entries.map(([name, member]) => [name, copied(member, meter, depth - 1)]),
    meter,
  );
}
