/**
 * The difference of two JSON values, as the assignments that lead from one to the other. Pure.
 *
 * RUNPATCH-1  A patch has the members that changed, at any depth, and no others. Applied to the value before, it gives the value after, with the
 *             same order of members.
 * RUNPATCH-2  A patch of a list has its elements from the first that changed. A patch of a text that grew has the text that was added.
 */
import { isJsonObject, type Json } from "../../../shared/json.ts";

/**
 * A value at the names of a path; at no name, the whole value. With `kept`, the first `kept` elements of the list stay, or UTF-16 units of
 * the text, and `value` is appended to them.
 */
export type Assignment = readonly [names: readonly string[], value: Json, kept?: number];

/** Returns the assignments that lead from a value to another; an empty list if they are equal. */
export function patchOf(before: Json, after: Json, names: readonly string[] = []): Assignment[] {
  if (before === after) return [];
  if (Array.isArray(before) && Array.isArray(after)) {
    const kept = keptElements(before, after);
    if (kept === before.length && kept === after.length) return [];
    return [kept === 0 ? [names, after] : [names, after.slice(kept), kept]];
  }
  if (typeof before === "string" && typeof after === "string" && before !== "" && after.startsWith(before))
    return [[names, after.slice(before.length), before.length]];
  if (!isJsonObject(before) || !isJsonObject(after)) return [[names, after]];
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
  return patch.reduce((before, [names, by, kept]) => assigned(before, names, by, kept), value);
}

function assigned(value: Json, [name, ...names]: readonly string[], by: Json, kept?: number): Json {
  if (name === undefined) return kept === undefined ? by : extended(value, by, kept);
  if (!isJsonObject(value)) throw new Error(`There is no object with the member "${name}".`);
  return { ...value, [name]: assigned(value[name] ?? null, names, by, kept) };
}

/** Returns the first `kept` elements of a list or units of a text, followed by `by`. */
function extended(value: Json, by: Json, kept: number): Json {
  if (Array.isArray(value) && Array.isArray(by)) return value.slice(0, kept).concat(by);
  if (typeof value === "string" && typeof by === "string") return value.slice(0, kept) + by;
  throw new Error("There is no list or text of this kind to extend.");
}

/** Returns how many elements two lists have in common at their beginnings. A list that was extended has the same elements, not copies. */
function keptElements(before: readonly Json[], after: readonly Json[]): number {
  const shorter = Math.min(before.length, after.length);
  for (let index = 0; index < shorter; index += 1)
    if (!isEqual(before[index] ?? null, after[index] ?? null)) return index;
  return shorter;
}

/** Reports whether two values are equal, with the same order of members. */
function isEqual(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && keptElements(one, other) === one.length;
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  const [names, others] = [Object.keys(one), Object.keys(other)];
  return (
    names.length === others.length &&
    names.every((name, index) => others[index] === name && isEqual(one[name] ?? null, other[name] ?? null))
  );
}
