/**
 * Mappings: objects with expressions as members. Pure.
 *
 * MAPPING-1  A mapped object has exactly the mapped members. If an expression is the path of a missing value, its member is left out.
 * MAPPING-2  Every problem of a mapping is found when it is defined, and reported with its member.
 */
import type { InputIssue } from "../errors.ts";
import type { Json, JsonObject } from "../json.ts";
import type { Meter } from "../json-schema/meter.ts";
import { jsonPointer } from "../validation.ts";
import { compileExpression, type Expression } from "./expression.ts";
import {
  MAX_EXPRESSION_LENGTH,
  MAX_MAPPED_KEYS,
  STEPS_OF_EXPRESSION_CHARACTER,
} from "./expression-limits.ts";
import { checkName, ExpressionError } from "./values.ts";

/** The expression of each member. */
export type Mapping = Readonly<Record<string, string>>;

/** Returns the problems of a mapping over these variables, by JSON pointers that continue `base`. */
export function mappingIssues(mapping: Mapping, names: readonly string[], base = ""): InputIssue[] {
  const entries = Object.entries(mapping);
  if (entries.length > MAX_MAPPED_KEYS)
    return [
      { path: base, message: `Must have at most ${MAX_MAPPED_KEYS} members. It has ${entries.length}.` },
    ];
  const length = entries.reduce((sum, [name, source]) => sum + name.length + source.length, 0);
  if (length > MAX_EXPRESSION_LENGTH)
    return [
      { path: base, message: `Must have at most ${MAX_EXPRESSION_LENGTH} characters. It has ${length}.` },
    ];
  return entries.flatMap(([name, source]) => {
    try {
      checkName(name);
      compileExpression(source, names);
      return [];
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return [{ path: jsonPointer([name], base), message: error.message }];
    }
  });
}

/** Compiled mappings, for as long as they are in memory: pinned mappings are used again and again. */
const compiled = new WeakMap<Mapping, [string, Expression][]>();

/**
 * Returns the mapped object. Throws `ExpressionError` with the name of the member, and `Spent` if the budget is used up.
 * @example mapped({ query: "input.question" }, { input: { question: "Why?" } }, meter); // { query: "Why?" }
 */
export function mapped(
  mapping: Mapping,
  variables: Readonly<Record<string, Json>>,
  meter: Meter,
): JsonObject {
  for (const source of Object.values(mapping)) meter.spend(source.length * STEPS_OF_EXPRESSION_CHARACTER);
  const expressions = compiled.get(mapping) ?? compile(mapping, Object.keys(variables));
  compiled.set(mapping, expressions);
  const members = expressions.flatMap(([name, expression]): [string, Json][] => {
    const value = named(name, () => expression.evaluate(variables, meter));
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(members);
}

function compile(mapping: Mapping, names: readonly string[]): [string, Expression][] {
  return Object.entries(mapping).map(([name, source]) => [
    name,
    named(name, () => compileExpression(source, names)),
  ]);
}

function named<Result>(name: string, evaluate: () => Result): Result {
  try {
    return evaluate();
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    error.message = `${jsonPointer([name])}: ${error.message}`;
    throw error;
  }
}
