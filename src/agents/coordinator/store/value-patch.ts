/**
 * The difference of two JSON values, as the assignments that lead from one to the other. Pure.
 *
 * RUNPATCH-1  A patch has the members that changed, at any depth, and no others. Applied to the value before, it gives the value after, with the
 *             same order of members.
 */
import { isJsonObject, type Json } from "../../../shared/json.ts";

/** A value at the names of a path; at no name, the whole value. */
export type Assignment = readonly [names: readonly string[], value: Json];

/** Returns the assignments that lead from a value to another; none where they are equal. */
export function patchOf(before: Json, after: Json, names: readonly string[] = []): Assignment[] {
  if (before === after) return [];
  if (!isJsonObject(before) || !isJsonObject(after)) return isEqual(before, after) ? [] : [[names, after]];
  const [had, has] = [Object.keys(before), Object.keys(after)];
  // A patch removes and moves no member.
  if (had.some((name, index) => has[index] !== name)) return [[names, after]];
  return has.flatMap((name, index): Assignment[] => {
    const value = after[name] ?? null;
    return index < had.length
      ? patchOf(before[name] ?? null, value, [...names, name])
      : [[[...names, name], value]];
  });
}

/** Returns a value after assignments of `patchOf`. */
export function patched(value: Json, patch: readonly Assignment[]): Json {
  return patch.reduce((before, [names, by]) => assigned(before, names, by), value);
}

function assigned(value: Json, [name, ...names]: readonly string[], by: Json): Json {
  if (name === undefined) return by;
  if (!isJsonObject(value)) throw new Error(`There is no object with the member "${name}".`);
  return { ...value, [name]: assigned(value[name] ?? null, names, by) };
}

/** Reports whether two values, of which one is no object, are equal. */
function isEqual(one: Json, other: Json): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
  return one.length === other.length && JSON.stringify(one) === JSON.stringify(other);
}
