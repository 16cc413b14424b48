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

/** Whether a value is JSON as it stands: plain objects, arrays, finite numbers; nested at most 64 deep. */
export function isJson(value: unknown): value is Json {
  return isJsonAt(value, 0);
}

function isJsonAt(value: unknown, depth: number): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || depth >= MAX_DEPTH) return false;
  if (Array.isArray(value)) return value.every((item) => isJsonAt(item, depth + 1));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return Object.values(value).every((member) => isJsonAt(member, depth + 1));
}

/**
 * Named JSON values. The type says no more than "a value" of what is nested: the types of RPC give up on recursive
 * ones, and turn `unknown` into `never`.
 */
export type Facts = Record<string, string | number | boolean | null | object>;
