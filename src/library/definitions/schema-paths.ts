/** Reads from JSON Schemas what they state for certain about the value at a path. Pure. */
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";

/** A member that the schema describes, leaves open, or excludes. */
export type Member = { kind: "known"; schema: JsonObject } | { kind: "unknown" } | { kind: "absent" };

const UNKNOWN: Member = { kind: "unknown" };
/** Keywords that this module does not analyse. Schemas with such a keyword count as unknown. */
const OTHERS = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "patternProperties"];
/** Maximum depth when comparing two schemas. */
const MAX_COMPARED = 8;

export function memberOf(schema: JsonObject, names: readonly string[]): Member {
  let current = schema;
  for (const name of names) {
    if (!isPlain(current)) return UNKNOWN;
    const types = typesOf(current);
    if (types !== null && !types.includes("object")) return { kind: "absent" };
    const { properties, additionalProperties } = current;
    const known = isJsonObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known === undefined) {
      const isOpen = additionalProperties === true || isJsonObject(additionalProperties);
      return isOpen || !isJsonObject(properties) ? UNKNOWN : { kind: "absent" };
    }
    if (!isJsonObject(known)) return UNKNOWN;
    current = known;
  }
  return { kind: "known", schema: current };
}

export function requiredOf({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
}

/** Describes why no value can fit both schemas; `null` if some value may fit. */
export function mismatch(from: JsonObject, to: JsonObject, depth = 0): string | null {
  if (depth > MAX_COMPARED || !isPlain(from) || !isPlain(to)) return null;
  const given = typesOf(from);
  const wanted = typesOf(to);
  if (given !== null && wanted !== null && !given.some((one) => wanted.some((other) => overlap(one, other))))
    return `is ${given.join(" or ")} but must be ${wanted.join(" or ")}`;
  if (!isOnly(given, "object") || !isOnly(wanted, "object")) return itemMismatch(from, to, depth);
  for (const name of requiredOf(to))
    if (memberOf(from, [name]).kind === "absent") return `has no member "${name}", which is required`;
  const both = Object.keys(isJsonObject(to.properties) ? to.properties : {});
  for (const name of both) {
    const one = memberOf(from, [name]);
    const other = memberOf(to, [name]);
    if (one.kind !== "known" || other.kind !== "known" || !requiredOf(from).includes(name)) continue;
    const inner = mismatch(one.schema, other.schema, depth + 1);
    if (inner !== null) return `has a member "${name}" that ${inner}`;
  }
  return null;
}

/** Returns the paths of members that `from` names and `to` rejects. */
export function refusedMembers(from: JsonObject, to: JsonObject, path = "", depth = 0): string[] {
  if (depth > MAX_COMPARED || !isPlain(from) || !isPlain(to)) return [];
  if (isJsonObject(from.items) && isJsonObject(to.items))
    return refusedMembers(from.items, to.items, `${path}[]`, depth + 1);
  const wanted = isJsonObject(to.properties) ? to.properties : {};
  return Object.entries(isJsonObject(from.properties) ? from.properties : {}).flatMap(([name, given]) => {
    const place = path === "" ? name : `${path}.${name}`;
    const other = Object.hasOwn(wanted, name) ? wanted[name] : to.additionalProperties;
    if (other === false) return [place];
    return isJsonObject(given) && isJsonObject(other) ? refusedMembers(given, other, place, depth + 1) : [];
  });
}

function itemMismatch(from: JsonObject, to: JsonObject, depth: number): string | null {
  const { items: given, minItems } = from;
  if (!isOnly(typesOf(from), "array") || !isOnly(typesOf(to), "array") || Number(minItems ?? 0) < 1)
    return null;
  if (!isJsonObject(given) || !isJsonObject(to.items)) return null;
  const inner = mismatch(given, to.items, depth + 1);
  return inner === null ? null : `has an item that ${inner}`;
}

function isPlain(schema: JsonObject): boolean {
  return !OTHERS.some((keyword) => Object.hasOwn(schema, keyword));
}

function typesOf({ type }: JsonObject): string[] | null {
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((one: Json) => typeof one === "string") : null;
}

function isOnly(types: readonly string[] | null, type: string): boolean {
  return types?.length === 1 && types[0] === type;
}

function overlap(one: string, other: string): boolean {
  const [first, second] = [one, other].map((type) => (type === "integer" ? "number" : type));
  return first === second;
}
