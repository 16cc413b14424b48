/** Values of the reference interpreter: areas, paths, expressions and merges. */
import type { MergeStrategy, WorkflowDefinition } from "../../../src/protocol/workflow-definition.ts";
import { compileExpression, type Expression } from "../../../src/shared/expressions/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../src/shared/json.ts";
import { Meter } from "../../../src/shared/json-schema/meter.ts";

/** The steps of one expression. */
const STEPS = 200_000;

const compiled = new Map<string, Expression>();

/** Returns the value of an expression; `undefined` for the path of something missing. Throws `ExpressionError`. */
export function evaluate(source: string, variables: Readonly<Record<string, Json>>): Json | undefined {
  const names = Object.keys(variables);
  const key = `${names.join()} ${source}`;
  const expression = compiled.get(key) ?? compileExpression(source, names);
  if (compiled.size > 5_000) compiled.clear();
  compiled.set(key, expression);
  return expression.evaluate(variables, new Meter(STEPS));
}

/** Returns a copy of a value with another value at a path. Creates missing objects. Throws for other values. */
export function written(value: Json, [name, ...names]: readonly string[], by: Json): Json {
  if (name === undefined) return by;
  if (!isJsonObject(value)) throw new Error(`There is no object to write "${name}" to.`);
  const member = Object.hasOwn(value, name) ? (value[name] ?? {}) : {};
  return { ...value, [name]: written(member, names, by) };
}

/** Returns an outer output, overwritten with a branch's output member by member. */
export function overlaid(outer: Json, own: Json): Json {
  if (!isJsonObject(outer) || !isJsonObject(own)) return own;
  const both = Object.entries(own).map(([name, value]) => [
    name,
    Object.hasOwn(outer, name) ? overlaid(outer[name] ?? null, value) : value,
  ]);
  return { ...outer, ...Object.fromEntries(both) };
}

/** Returns `state` at the start of a run: the defaults of the schema. */
export function initialState({ contextSchema }: WorkflowDefinition): JsonObject {
  const properties = contextSchema?.properties;
  if (!isJsonObject(properties)) return {};
  const defaults = Object.entries(properties).flatMap(([name, member]) =>
    isJsonObject(member) && member.default !== undefined ? [[name, member.default]] : [],
  );
  return Object.fromEntries(defaults);
}

export interface BranchOutput {
  index: number;
  output: Json;
}

/** Returns the result of a merge. The branches are in any order. */
export function merged(strategy: MergeStrategy, source: string, branches: readonly BranchOutput[]): Json {
  const ordered = branches.toSorted((one, other) => one.index - other.index);
  const values = ordered.map(({ output }) => evaluate(source, { _branch: { output } }) ?? null);
  switch (strategy) {
    case "append":
      return values.every(Array.isArray) ? values.flat(1) : values;
    case "collect":
      return values;
    case "merge_object":
      return Object.assign({}, ...values.filter(isJsonObject));
    case "keyed_by_branch":
      return Object.fromEntries(ordered.map(({ index }, at) => [String(index), values[at] ?? null]));
    case "last_wins":
      return values.at(-1) ?? {};
    default:
      return strategy satisfies never;
  }
}
