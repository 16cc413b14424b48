/** JSON values: their types, a canonical text, and checks at every boundary. Pure. */
import { DramatisError, invalid } from "./errors.ts";
import { faultPosition } from "./json-position.ts";
import { MAX_REPLY_DEPTH, shapeProblem } from "./json-shape.ts";
import { issueAt, jsonPointer } from "./validation.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

/**
 * A JSON value that crosses RPC. Objects and arrays have the type `object`: RPC types reject recursive types, and turn
 * `unknown` into `never`.
 */
export type JsonValue = string | number | boolean | null | object;

/** Named JSON values that cross RPC. */
export type Facts = Record<string, JsonValue>;

/** Maximum nesting of containers. Recursion over checked values is therefore safe. */
export const MAX_DEPTH = 64;

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

/** Reports whether a value is JSON: plain objects, arrays and finite numbers, nested at most 64 deep. */
export function isJson(value: unknown): value is Json {
  return isJsonWithin(value, MAX_DEPTH);
}

/** As `isJson`, for another depth. With `skipUndefined`, members that are `undefined` count as absent. */
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

/** In a longer text, the search of a fault would cost too much. In characters. */
const MAX_SEARCHED = 65_536;

/** Parses JSON text within the limits of JSON-1. Throws `INVALID_JSON` or `TOO_LARGE`, with `name` in the message. */
export function parseJsonText(text: string, name: string, maxDepth = MAX_DEPTH): Json {
  const problem = shapeProblem(text, maxDepth);
  if (problem !== null) throw new DramatisError(problem.code, `${name} ${problem.what}.`);
  try {
    return JSON.parse(text);
  } catch (cause) {
    const at = text.length > MAX_SEARCHED ? "" : `, at position ${faultPosition(cause, text)}`;
    const detail = text.trim() === "" ? `${name} is empty; send JSON.` : `${name} is not valid JSON${at}.`;
    throw new DramatisError("INVALID_JSON", detail, { cause });
  }
}

/** Parses the JSON of a body. Throws `INVALID_JSON` or `TOO_LARGE`, or `INVALID_INPUT` for lone surrogates. */
export function parseBody(bytes: Uint8Array): Json {
  const value = parseJsonText(decoded(bytes), "The body");
  checkJson(value, "The body");
  return value;
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch (cause) {
    throw new DramatisError("INVALID_JSON", "The body is not valid UTF-8.", { cause });
  }
}

/** Parses JSON text of a provider or a model; returns `undefined` for text that is not JSON within the limits of JSON-1. */
export function parseJson(text: string): Json | undefined {
  try {
    return parseJsonText(text, "The text", MAX_REPLY_DEPTH);
  } catch {
    return undefined;
  }
}

/**
 * Checks a parsed value before anything else walks it. Throws `INVALID_JSON` if it nests deeper than 64 levels, and
 * `INVALID_INPUT` if a text has lone surrogates.
 */
export function checkJson(value: unknown, name: string): void {
  const malformed = findMalformed(value, 1, name);
  if (malformed === null) return;
  throw invalid("Text must be well-formed Unicode: no lone surrogates.", {
    errors: [issueAt(jsonPointer(malformed), UNICODE_RULE)],
  });
}

/**
 * Reports whether no text of a value, and no name of a member, has a lone surrogate: as JSON it would be an escape, which looks
 * well-formed.
 */
export function isUnicode(value: Json): boolean {
  return findMalformed(value, 1, "The value") === null;
}

/**
 * Returns a value with well-formed texts and names: each lone surrogate becomes U+FFFD, which has the same length. Returns the same value
 * if all are well-formed.
 */
export function wellFormed<Value>(value: Value): Value {
  // SAFETY: lists and objects keep their members, and texts stay texts.
  return isSound(value) ? value : (repaired(value) as Value);
}

function repaired(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(repaired);
  if (!isPlainObject(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(members.map(([name, member]) => [name.toWellFormed(), repaired(member)]));
}

/** Reports whether all texts and names are well-formed. Makes no copy, because each model call checks its whole request. */
function isSound(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isSound);
  if (!isPlainObject(value)) return true;
  return Object.keys(value).every((name) => name.isWellFormed() && isSound(value[name]));
}

/** Returns the path of the first string or key with a lone surrogate. */
function findMalformed(value: unknown, depth: number, name: string): PropertyKey[] | null {
  if (typeof value === "string") return value.isWellFormed() ? null : [];
  if (typeof value !== "object" || value === null) return null;
  if (depth > MAX_DEPTH)
    throw new DramatisError("INVALID_JSON", `${name} nests deeper than ${MAX_DEPTH} levels.`);
  for (const [key, member] of Object.entries(value)) {
    if (!key.isWellFormed()) return [key.toWellFormed()];
    const path = findMalformed(member, depth + 1, name);
    if (path !== null) return [key, ...path];
  }
  return null;
}
