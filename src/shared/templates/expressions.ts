/** Compiles the expressions of templates to functions. Pure. */
import { type FilteredValueToken, type Value as ParsedValue, type Token, TypeGuards } from "liquidjs";
import {
  checkName,
  compare,
  ExpressionError,
  equals,
  memberOf,
  spendSearch,
  type Value,
} from "../expressions/values.ts";
import { isJsonObject, type JsonObject } from "../json.ts";
import type { Meter } from "../json-schema/meter.ts";
import { FILTERS } from "./filters.ts";
import { syntax, tooDeep } from "./parse.ts";
import { MAX_RANGE_ITEMS, MAX_TEMPLATE_DEPTH } from "./template-limits.ts";
import { isBlank, isEmpty, isTrue, numberOf, readMember, textOf } from "./values.ts";

export interface Loop {
  item: Value;
  index: number;
  length: number;
}

export interface Frame {
  readonly values: JsonObject;
  readonly meter: Meter;
  readonly assigned: Map<string, Value>;
  /** The loops around the current part, by place. */
  readonly loops: Loop[];
  /** The text that was written since the innermost `capture` began. */
  text: string;
  /** UTF-16 units that were written in all. */
  written: number;
}

/** The variables of the loops around a part, by place. */
export type Names = readonly string[];

/** `empty` and `blank`, which are no values: a comparison tests for them. */
const TESTS = { empty: isEmpty, blank: isBlank } as const;
type Test = { test: keyof typeof TESTS };

type Operand = { value: Value } | Test;
type Part<Result = Value> = (frame: Frame) => Result;

export function compileValue({ initial, filters }: ParsedValue | FilteredValueToken, names: Names): Part {
  const steps = filters.map(({ name, args }) => compileFilter(name, args, names));
  const first = compilePostfix(initial.postfix, names);
  return (frame) => steps.reduce((value, step) => step(value, frame), first(frame));
}

function compileFilter(
  name: string,
  args: readonly unknown[],
  names: Names,
): (value: Value, frame: Frame) => Value {
  const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
  if (filter === undefined) throw syntax(`There is no filter "${name}".`);
  const [least, most] = filter.counts;
  if (args.length < least || args.length > most) {
    const wanted = least === most ? `${least}` : `${least} to ${most}`;
    throw syntax(`The filter "${name}" takes ${wanted} arguments. It has ${args.length}.`);
  }
  const parts = args.map((argument) => {
    if (Array.isArray(argument)) throw syntax(`The filter "${name}" takes no named arguments.`);
    // SAFETY: an argument without a name is a token.
    return compileToken(argument as Token, names);
  });
  return (value, frame) => {
    frame.meter.spend(2);
    return filter.run([value, ...parts.map((part) => part(frame))], frame.meter);
  };
}

type Operate = (operands: Operand[], frame: Frame) => void;

/** Compiles an expression with operators after their operands. Uses a loop, because the expression may be long. */
function compilePostfix(tokens: readonly Token[], names: Names): Part {
  let height = 0;
  const parts = tokens.map((token): Operate => {
    if (!TypeGuards.isOperatorToken(token)) {
      height += 1;
      const operand = compileOperand(token, names);
      return (operands, frame) => void operands.push(operand(frame));
    }
    const { operator } = token;
    if (operator !== "not") height -= 1;
    if (height < 1) throw syntax(`The operator "${operator}" needs a value on each side.`);
    return operation(operator);
  });
  if (height !== 1) throw syntax("Values need an operator between them.");
  return (frame) => {
    const operands: Operand[] = [];
    for (const part of parts) {
      frame.meter.spend(1);
      part(operands, frame);
    }
    return simple(operands[0]);
  };
}

function operation(operator: string): Operate {
  if (operator === "not") return (operands) => void operands.push({ value: !isTrue(simple(operands.pop())) });
  const operate = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
  if (operate === undefined) throw syntax(`"${operator}" is not supported.`);
  return (operands, { meter }) => {
    const [other, one] = [operands.pop(), operands.pop()];
    operands.push({ value: operate(one, other, meter) });
  };
}

/** Orders two numbers or two texts. Other values have no order. */
const ordered =
  (holds: (order: number) => boolean) =>
  (one: Operand | undefined, other: Operand | undefined, meter: Meter): boolean => {
    const [left, right] = [simple(one), simple(other)];
    const isComparable =
      typeof left === typeof right && (typeof left === "number" || typeof left === "string");
    return isComparable && holds(compare(left, right, meter));
  };

const OPERATORS: Readonly<
  Record<string, (one: Operand | undefined, other: Operand | undefined, meter: Meter) => boolean>
> = {
  "==": areEqual,
  "!=": (one, other, meter) => !areEqual(one, other, meter),
  "<": ordered((order) => order < 0),
  "<=": ordered((order) => order <= 0),
  ">": ordered((order) => order > 0),
  ">=": ordered((order) => order >= 0),
  contains: (one, other, meter) => contains(simple(one), simple(other), meter),
  and: (one, other) => isTrue(simple(one)) && isTrue(simple(other)),
  or: (one, other) => isTrue(simple(one)) || isTrue(simple(other)),
};

function areEqual(one: Operand | undefined, other: Operand | undefined, meter: Meter): boolean {
  if (one !== undefined && "test" in one) return TESTS[one.test](simple(other), meter);
  if (other !== undefined && "test" in other) return TESTS[other.test](simple(one), meter);
  return equals(simple(one), simple(other), meter);
}

function contains(value: Value, part: Value, meter: Meter): boolean {
  if (Array.isArray(value)) return value.some((item) => equals(item, part, meter));
  if (isJsonObject(value)) return typeof part === "string" && Object.hasOwn(value, part);
  if (typeof value !== "string" || part === undefined || part === null) return false;
  const searched = textOf(part, meter);
  spendSearch(meter, value, searched);
  return value.includes(searched);
}

/** Returns the value of an operand. Without a comparison, `empty` and `blank` are empty texts. */
function simple(operand: Operand | undefined): Value {
  if (operand === undefined) return undefined;
  return "test" in operand ? "" : operand.value;
}

export function compileEquality(token: Token, names: Names): (value: Value, frame: Frame) => boolean {
  const operand = compileOperand(token, names);
  return (value, frame) => areEqual({ value }, operand(frame), frame.meter);
}

function compileOperand(token: Token, names: Names): Part<Operand> {
  if (TypeGuards.isLiteralToken(token) && (token.literal === "empty" || token.literal === "blank")) {
    const operand = { test: token.literal };
    return () => operand;
  }
  const part = compileToken(token, names);
  return (frame) => ({ value: part(frame) });
}

/** Compiles a value without filters. */
export function compileToken(token: Token, names: Names, depth = MAX_TEMPLATE_DEPTH): Part {
  if (depth === 0) throw tooDeep();
  if (TypeGuards.isQuotedToken(token) || TypeGuards.isNumberToken(token)) {
    const { content } = token;
    return () => content;
  }
  if (TypeGuards.isLiteralToken(token)) {
    const value = LITERALS[token.literal];
    return () => value;
  }
  if (TypeGuards.isRangeToken(token)) {
    const [low, high] = [token.lhs, token.rhs].map((end) => compileToken(end, names, depth - 1));
    return (frame) => rangeOf(low?.(frame), high?.(frame), frame.meter);
  }
  if (!TypeGuards.isPropertyAccessToken(token)) throw syntax(`"${token.getText()}" is not supported.`);
  const { variable, props } = token;
  const keys = props.map((key) => {
    if (!TypeGuards.isWordToken(key)) return compileToken(key, names, depth - 1);
    const name = checkName(key.content);
    return () => name;
  });
  if (variable !== undefined) return reading(compileToken(variable, names, depth - 1), keys);
  const [root] = props;
  if (!TypeGuards.isWordToken(root)) throw syntax(`"${token.getText()}" does not begin with a name.`);
  return reading(variableOf(checkName(root.content), names), keys.slice(1));
}

const LITERALS = { true: true, false: false, nil: null, null: null, empty: "", blank: "" } as const;

function reading(object: Part, keys: readonly Part[]): Part {
  return (frame) => {
    frame.meter.spend(1 + keys.length);
    return keys.reduce((value, key) => readMember(value, key(frame), frame.meter), object(frame));
  };
}

/** Finds a variable of a loop, an assigned variable, or a value. */
function variableOf(name: string, names: Names): Part {
  const place = names.lastIndexOf(name);
  if (place >= 0) return ({ loops }) => loops[place]?.item;
  if (name === "forloop" && names.length > 0) return ({ loops }) => positionOf(loops[names.length - 1]);
  return ({ assigned, values }) => (assigned.has(name) ? assigned.get(name) : memberOf(values, name));
}

function positionOf(loop: Loop | undefined): Value {
  if (loop === undefined) return undefined;
  const { index, length } = loop;
  return {
    index: index + 1,
    index0: index,
    first: index === 0,
    last: index === length - 1,
    rindex: length - index,
    rindex0: length - index - 1,
    length,
  };
}

function rangeOf(low: Value, high: Value, meter: Meter): Value {
  const [from, to] = [Math.trunc(numberOf(low, meter)), Math.trunc(numberOf(high, meter))];
  const count = Math.max(0, to - from + 1);
  if (count > MAX_RANGE_ITEMS || Math.abs(from) >= 2 ** 53 || Math.abs(to) >= 2 ** 53)
    throw new ExpressionError("Range", `A range has more than ${MAX_RANGE_ITEMS} items, or is beyond 2^53.`);
  meter.spend(count);
  return Array.from({ length: count }, (_, index) => from + index);
}
