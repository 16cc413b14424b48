/**
 * What it takes to check a value against a schema, found out before it is checked: a validator cannot be stopped, and the
 * actor it runs in does nothing else meanwhile.
 *
 * EFFORT-1  Every value is measured before it is checked, and one that would take more than `MAX_EFFORT` is not checked. To
 *           measure it takes no more than that, either.
 */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { referredSchema, schemasInPlace } from "./keywords.ts";
import { UnboundedPattern } from "./pattern.ts";
import { patternSteps } from "./pattern-effort.ts";

/** Schemas applied to values, or as much other work as one of them: a few microseconds each. */
const MAX_EFFORT = 20_000;
/** Steps at a pattern, and characters compared, that are worth a schema. */
const STEPS = 2_000;
const CHARACTERS = 250;
/** Schemas within schemas, each applied because of the one before. */
const MAX_DEPTH = 200;

/** `bounded` may be checked, `large` would take too much, `unbounded` has a part whose effort nobody knows. */
export type Effort = "bounded" | "large" | "unbounded";

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

/** Keywords that mean something else elsewhere, and a format whose check may take for ever. */
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

  /** The schemas that apply to the same value, looked up once. */
  #inPlace(schema: JsonObject): Json[] {
    const known = this.#known.get(schema);
    if (known !== undefined) return known;
    const { $ref } = schema;
    const isLost = $ref !== undefined && referredSchema($ref, this.root) === undefined;
    if (isLost || isStrange(schema)) throw new UnboundedPattern("Its effort is not known.");
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
