/**
 * Values of a run: areas, paths and merges. Pure.
 *
 * AREA-1  Reading and writing an area uses steps of the token. The steps count copied members, not named members.
 * MERGE-1  Branches are merged in the order of their indexes, independent of the order of their ends.
 */
import type { MergeStrategy, WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";

/**
 * Returns a copy of a value with another value at a path. Missing objects on the path are made. Throws `ExpressionError` if a value on the
 * path is not an object, and `Spent` if the steps are used up.
 */
export function written(value: Json, [name, ...names]: readonly string[], by: Json, meter: Meter): Json {
  if (name === undefined) return by;
  if (!isJsonObject(value))
    throw new ExpressionError("Type", `There is no object to write the member "${name}" to.`);
  meter.spend(Object.keys(value).length);
  const member = Object.hasOwn(value, name) ? (value[name] ?? {}) : {};
  return { ...value, [name]: written(member, names, by, meter) };
}

/** Returns an outer output with the members of a branch output on top. Throws `Spent` if the steps are used up. */
export function overlaid(outer: Json, own: Json, meter: Meter): Json {
  if (!isJsonObject(outer) || !isJsonObject(own)) return own;
  const [names, before] = [Object.keys(own), Object.keys(outer)];
  if (names.length === 0) return outer;
  if (before.length === 0) return own;
  meter.spend(names.length + before.length);
  const both = Object.entries(own).map(([name, value]): [string, Json] => [
    name,
    Object.hasOwn(outer, name) ? overlaid(outer[name] ?? null, value, meter) : value,
  ]);
  return Object.fromEntries([...Object.entries(outer), ...both]);
}

/** Returns `state` at the start of a run: the defaults of the schema. */
export function initialState({ contextSchema }: WorkflowDefinition): JsonObject {
  const { properties } = contextSchema ?? {};
  if (!isJsonObject(properties)) return {};
  const defaults = Object.entries(properties).flatMap(([name, member]) =>
    isJsonObject(member) && member.default !== undefined ? [[name, member.default] as const] : [],
  );
  return structuredClone(Object.fromEntries(defaults));
}

export interface BranchOutput {
  readonly index: number;
  readonly output: Json;
}

/** Returns the result of a merge. The branches are in the order of their indexes; `source` is a path below `_branch.output`. */
export function merged(strategy: MergeStrategy, source: string, branches: readonly BranchOutput[]): Json {
  const [, , ...names] = source.split(".");
  const values = branches.map(({ output }) => valueAt(output, names));
  switch (strategy) {
    case "append":
      return values.every(Array.isArray) ? values.flat(1) : values;
    case "collect":
      return values;
    case "merge_object":
      return Object.fromEntries(values.filter(isJsonObject).flatMap((value) => Object.entries(value)));
    case "keyed_by_branch":
      return Object.fromEntries(branches.map(({ index }, at) => [String(index), values[at] ?? null]));
    case "last_wins":
      return values.at(-1) ?? {};
    default:
      return strategy satisfies never;
  }
}

/** Returns the value at a path of member names; `null` if it is missing. */
export function valueAt(value: Json, names: readonly string[]): Json {
  return names.reduce(
    (inner, name) => (isJsonObject(inner) && Object.hasOwn(inner, name) ? (inner[name] ?? null) : null),
    value,
  );
}
