/**
 * Estimates the work of checking a value against a schema, before the check. A running check cannot be stopped, and it
 * blocks its actor.
 *
 * EFFORT-1  Every value is measured before it is checked. A value whose check would take more than `MAX_EFFORT` is refused
 *           without a check. Measuring is subject to the same limit.
 */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { referredSchema, schemasInPlace } from "./keywords.ts";
import { UnboundedPattern } from "./pattern.ts";
import { patternSteps } from "./pattern-effort.ts";

/** Limit of the work, in applications of a schema to a value. Each takes a few microseconds. */
const MAX_EFFORT = 20_000;
/** Number of pattern steps that count as one schema. */
const STEPS = 2_000;
/** Number of compared characters that count as one schema. */
const CHARACTERS = 250;
/** Limit of nested applications of schemas. */
const MAX_DEPTH = 200;

/** `bounded` may be checked, `large` exceeds the limit, `unbounded` has a part without a known bound. */
export type Effort = "bounded" | "large" | "unbounded";

/** Classifies the work of checking `value` against `schema`. */
export function effortOf(schema: JsonObject, value: Json): Effort {
  try {
    new Meter(schema).apply(schema, value, 0);
    return "bounded";
  } catch (error) {
    if (error instanceof Spent) return "large";
    if (error instanceof UnboundedPattern || error instanceof SyntaxError) return "unbounded";
    throw error;
  }
}

class Spent extends Error {}

/** Reports whether a schema has a keyword whose meaning depends on the draft, or a format whose check has no bound. */
function isStrange({ format, ...schema }: JsonObject): boolean {
  return (
    format === "url" ||
    ["$recursiveRef", "$dynamicRef", "dependencies"].some((name) => schema[name] !== undefined)
  );
}

class Meter {
  #left = MAX_EFFORT;
  readonly #known = new Map<JsonObject, Json[]>();

  constructor(private readonly root: JsonObject) {}

  apply(schema: Json, value: Json, depth: number): void {
    this.#spend(1);
    if (!isJsonObject(schema)) return;
    if (depth > MAX_DEPTH) throw new Spent();
    for (const same of this.#inPlace(schema)) this.apply(same, value, depth + 1);
    for (const fixed of [schema.const, schema.enum]) if (fixed !== undefined) this.#compare(fixed);
    if (typeof value === "string") this.#text(schema, value);
    else if (Array.isArray(value)) this.#list(schema, value, depth + 1);
    else if (isJsonObject(value)) this.#object(schema, value, depth + 1);
  }

  /** Returns the schemas that apply to the same value; finds them once per schema. */
  #inPlace(schema: JsonObject): Json[] {
    const known = this.#known.get(schema);
    if (known !== undefined) return known;
    const { $ref } = schema;
    const isLost = $ref !== undefined && referredSchema($ref, this.root) === undefined;
    if (isLost || isStrange(schema)) throw new UnboundedPattern("A part of the schema has no known bound.");
    const found = schemasInPlace(schema, this.root);
    this.#known.set(schema, found);
    return found;
  }

  #text({ pattern }: JsonObject, value: string): void {
    this.#spend(value.length / CHARACTERS);
    if (typeof pattern === "string") this.#match(pattern, value);
  }

  #list(schema: JsonObject, value: Json[], depth: number): void {
    const { prefixItems, items, additionalItems, contains, unevaluatedItems, uniqueItems } = schema;
    const first = [prefixItems, items].flatMap((list) => (Array.isArray(list) ? list : []));
    const others = [Array.isArray(items) ? undefined : items, additionalItems, contains, unevaluatedItems];
    if (uniqueItems === true) this.#spend((value.length * JSON.stringify(value).length) / CHARACTERS);
    for (const [index, item] of value.entries()) {
      for (const one of [first[index], ...others]) if (one !== undefined) this.apply(one, item, depth);
    }
  }

  #object(schema: JsonObject, value: JsonObject, depth: number): void {
    const { properties = {}, patternProperties = {}, required, dependentRequired } = schema;
    const { additionalProperties, unevaluatedProperties, propertyNames } = schema;
    if (Array.isArray(required)) this.#spend(required.length / CHARACTERS);
    if (dependentRequired !== undefined) this.#compare(dependentRequired);
    const known = isJsonObject(properties) ? properties : {};
    const patterns = isJsonObject(patternProperties) ? Object.entries(patternProperties) : [];
    this.#spend(Object.keys(known).length / CHARACTERS);
    for (const [key, member] of Object.entries(value)) {
      if (propertyNames !== undefined) this.apply(propertyNames, key, depth);
      const own = Object.hasOwn(known, key) ? known[key] : undefined;
      const matching = patterns.filter(([pattern]) => {
        this.#match(pattern, key);
        return new RegExp(pattern, "u").test(key);
      });
      const rest = own === undefined && matching.length === 0 ? additionalProperties : undefined;
      const applied = [own, ...matching.map(([, one]) => one), rest, unevaluatedProperties];
      for (const one of applied) if (one !== undefined) this.apply(one, member, depth);
    }
  }

  #match(pattern: string, text: string): void {
    this.#spend(1 + patternSteps(pattern, text.length) / STEPS);
  }

  #compare(fixed: Json): void {
    this.#spend(JSON.stringify(fixed).length / CHARACTERS);
  }

  #spend(effort: number): void {
    this.#left -= effort;
    if (!(this.#left >= 0)) throw new Spent();
  }
}
