/** The values of expressions: JSON, and `undefined` for missing values. Pure. */
import type { Json, JsonObject } from "../json.ts";
import type { Meter } from "../json-schema/meter.ts";
import { UNITS_OF_STEP } from "./expression-limits.ts";

/** `undefined` is a missing member. It equals `null` everywhere, but a mapping leaves it out. */
export type Value = Json | undefined;

/** The kinds of failures. `Syntax` and `Reference`: the expression itself is wrong. */
export type ExpressionErrorKind = "Syntax" | "Reference" | "Type" | "Range";

/** An expression that cannot be compiled or evaluated. The message begins with the kind. */
export class ExpressionError extends Error {
  constructor(
    readonly kind: ExpressionErrorKind,
    message: string,
  ) {
    super(`${kind} error: ${message}`);
  }
}

/** Names that no expression reads or makes, although JSON may have them. */
const BLOCKED = new Set(["__proto__", "constructor", "prototype"]);

/** Throws for a name that is blocked. */
export function checkName(name: string): string {
  if (BLOCKED.has(name)) throw new ExpressionError("Reference", `The name "${name}" is not allowed.`);
  return name;
}

/** Steps of a member with an integer name. */
const STEPS_OF_NUMBERED_MEMBER = 128;
/** Comparisons of a search that are made in one step, and the fewest for each character. */
const [COMPARISONS_OF_STEP, LEAST_COMPARISONS] = [128, 8];

/** Takes the steps of searching a text for a part: the engine may compare the part at each place. */
export function spendSearch(meter: Meter, text: string, part: string): void {
  const comparisons = text.length * Math.max(LEAST_COMPARISONS, part.length);
  meter.spend(1 + Math.ceil(comparisons / COMPARISONS_OF_STEP));
}

/** Takes the steps of reading or making a text. */
export function spendText(meter: Meter, length: number): void {
  meter.spend(1 + Math.ceil(length / UNITS_OF_STEP));
}

export function typeOf(value: Value): string {
  if (value === undefined || value === null) return "null";
  if (Array.isArray(value)) return "list";
  return typeof value === "object" ? "map" : typeof value === "boolean" ? "bool" : typeof value;
}

export function wrongType(what: string, wanted: string, value: Value): ExpressionError {
  return new ExpressionError("Type", `${what} must be a ${wanted}, not a ${typeOf(value)}.`);
}

export function asText(value: Value, what: string): string {
  if (typeof value !== "string") throw wrongType(what, "string", value);
  return value;
}

export function asNumber(value: Value, what: string): number {
  if (typeof value !== "number") throw wrongType(what, "number", value);
  return value;
}

export function asBool(value: Value, what: string): boolean {
  if (typeof value !== "boolean") throw wrongType(what, "bool", value);
  return value;
}

export function asList(value: Value, what: string): Json[] {
  if (!Array.isArray(value)) throw wrongType(what, "list", value);
  return value;
}

export function asMap(value: Value, what: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw wrongType(what, "map", value);
  return value;
}

/** Returns the result of arithmetic. Throws beyond 2^53, where numbers lose digits. */
export function inRange(result: number): number {
  if (Math.abs(result) < 2 ** 53) return result;
  throw new ExpressionError("Range", "A number is beyond 2^53.");
}

/** Returns an own member. `undefined` if it is missing, or if the value is missing. */
export function memberOf(value: Value, name: string): Value {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value))
    throw wrongType(`What has the member "${name}"`, "map", value);
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Returns an item of a list or a member of a map, if it exists. */
export function itemOf(value: Value, index: Value): Value {
  if (Array.isArray(value)) {
    const at = asNumber(index, "An index");
    if (Number.isInteger(at) && at >= 0) return value[at];
    throw new ExpressionError("Range", `An index must be a whole number from 0, not ${at}.`);
  }
  return memberOf(value, checkName(asText(index, "The name of a member")));
}

/** Reports whether two values are equal JSON. */
export function equals(one: Value, other: Value, meter: Meter): boolean {
  meter.spend(1);
  const [left, right] = [one ?? null, other ?? null];
  if (typeof left === "string" && typeof right === "string") {
    if (left.length !== right.length) return false;
    spendText(meter, left.length);
    return left === right;
  }
  if (left === null || right === null || typeof left !== "object" || typeof right !== "object")
    return left === right;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => equals(item, right[index], meter));
  }
  const keys = Object.keys(left);
  meter.spend(keys.length);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && equals(left[key], right[key], meter));
}

export function compare(one: Value, other: Value, meter: Meter): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === "string" && typeof other === "string") {
    spendText(meter, Math.min(one.length, other.length));
    return one < other ? -1 : one > other ? 1 : 0;
  }
  throw new ExpressionError(
    "Type",
    `Two numbers or two strings can be ordered, but not a ${typeOf(one)} and a ${typeOf(other)}.`,
  );
}

/**
 * Returns an object with these members. A name that is a whole number takes more steps, because the engine may have a place
 * for each number up to it.
 */
export function objectOf(entries: readonly (readonly [string, Json])[], meter: Meter): JsonObject {
  for (const [name] of entries) {
    meter.spend(/^[0-9]{1,10}$/.test(name) ? STEPS_OF_NUMBERED_MEMBER : 1);
    spendText(meter, name.length);
  }
  return Object.fromEntries(entries);
}

/** Returns a map of these members. A later member replaces an earlier member with the same name. Throws for a blocked name. */
export function mapOf(entries: readonly (readonly [string, Value])[], meter: Meter): JsonObject {
  return objectOf(
    entries.map(([name, value]) => [checkName(name), value ?? null]),
    meter,
  );
}
