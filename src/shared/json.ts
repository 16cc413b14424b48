/** JSON values: their types, a canonical text, and checks at every boundary. Pure. */
import { DramatisError } from "./errors.ts";
import { jsonPointer } from "./validation.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

/**
 * Named JSON values. Nested values have the type `object`: RPC types reject recursive types, and turn `unknown` into
 * `never`.
 */
export type Facts = Record<string, string | number | boolean | null | object>;

/** Maximum nesting of containers. Recursion over checked values is therefore safe. */
const MAX_DEPTH = 64;

/** The rule of `isJson`, for error messages. */
export const JSON_RULE = `Must be JSON, nested at most ${MAX_DEPTH} deep.`;
/** The rule for text, for error messages. */
export const UNICODE_RULE = "Must be well-formed Unicode.";

/** Returns JSON text with sorted keys at every level: equal values give equal text (RFC 8785's ordering rule). */
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

/** Returns the levels of nesting, 0 for a value that is no container. Looks no deeper than one level beyond `limit`. */
export function jsonDepth(value: Json, limit: number): number {
  if (typeof value !== "object" || value === null || limit < 0) return 0;
  const members = Array.isArray(value) ? value : Object.values(value);
  return 1 + members.reduce<number>((deepest, member) => Math.max(deepest, jsonDepth(member, limit - 1)), 0);
}

/** Reports whether a value is JSON: plain objects, arrays and finite numbers, nested at most 64 deep. */
export function isJson(value: unknown): value is Json {
  return isJsonAt(value, 0);
}

/** Parses JSON text. Throws `INVALID_JSON`, with `name` in the message. */
export function parseJsonText(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const detail = text.trim() === "" ? `${name} is empty; send JSON.` : `${name} is not valid JSON.`;
    throw new DramatisError("INVALID_JSON", detail, { cause });
  }
}

/**
 * Checks a parsed value before anything else walks it. Throws `INVALID_JSON` if it nests deeper than 64 levels, and
 * `INVALID_INPUT` if a text has lone surrogates.
 */
export function checkJson(value: unknown, name: string): void {
  const malformed = findMalformed(value, 1, name);
  if (malformed === null) return;
  throw new DramatisError("INVALID_INPUT", "Text must be well-formed Unicode: no lone surrogates.", {
    errors: [{ path: jsonPointer(malformed), message: UNICODE_RULE }],
  });
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

/** Returns the path of the first string or key with a lone surrogate. */
function findMalformed(value: unknown, depth: number, name: string): PropertyKey[] | null {
  if (typeof value === "string") return value.isWellFormed() ? null : [];
  if (typeof value !== "object" || value === null) return null;
  if (depth > MAX_DEPTH) {
    throw new DramatisError("INVALID_JSON", `${name} nests deeper than ${MAX_DEPTH} levels.`);
  }
  for (const [key, member] of Object.entries(value)) {
    if (!key.isWellFormed()) return [key.toWellFormed()];
    const path = findMalformed(member, depth + 1, name);
    if (path !== null) return [key, ...path];
  }
  return null;
}
