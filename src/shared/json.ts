/** JSON values, and the two things every boundary needs of them: a canonical text and a check of well-formedness. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

/** JSON text with keys sorted at every level: equal values give equal text (RFC 8785's ordering rule). */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${members.join(",")}}`;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Levels of nesting, 0 for a value that is no container. Looks no deeper than one beyond `limit`. */
export function jsonDepth(value: Json, limit: number): number {
  if (typeof value !== "object" || value === null || limit < 0) return 0;
  const members = Array.isArray(value) ? value : Object.values(value);
  return 1 + members.reduce<number>((deepest, member) => Math.max(deepest, jsonDepth(member, limit - 1)), 0);
}

/** Containers within containers that a JSON value of ours may have. */
const MAX_DEPTH = 64;

/** Reports whether a value is JSON as it stands: plain objects, arrays, finite numbers; nested at most 64 deep. */
export function isJson(value: unknown): value is Json {
  return isJsonWithin(value, MAX_DEPTH);
}

/** Reports the same for another depth. With `skipUndefined`, members that are `undefined` count as absent. */
export function isJsonWithin(
  value: unknown,
  maxDepth: number,
  { skipUndefined = false } = {},
): value is Json {
  const isWithin = (inner: unknown, depth: number): boolean => {
    if (inner === null || typeof inner === "string" || typeof inner === "boolean") return true;
    if (typeof inner === "number") return Number.isFinite(inner);
    if (depth === 0) return false;
    if (Array.isArray(inner)) return inner.every((item) => isWithin(item, depth - 1));
    if (!isPlainObject(inner)) return false;
    return Object.values(inner).every(
      (member) => (skipUndefined && member === undefined) || isWithin(member, depth - 1),
    );
  };
  return isWithin(value, maxDepth);
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/**
 * Named JSON values. The type says no more than "a value" of what is nested: the types of RPC give up on recursive
 * ones, and turn `unknown` into `never`.
 */
export type Facts = Record<string, string | number | boolean | null | object>;
