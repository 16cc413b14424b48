/**
 * Fills in the defaults of a JSON Schema. Pure.
 *
 * DEFAULT-1  A missing member gets the `default` of its schema in `properties`, at any depth: also in items of lists, in additional
 *            members, in nullable values, and in a default itself. Only existing objects get members. All other values stay, and values are
 *            never changed in place. References and `allOf` are ignored.
 * DEFAULT-2  Each step is charged to a budget before it runs. Filling ends when the budget is used up.
 */
import { invalid } from "../errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { Meter, Spent } from "./meter.ts";
import { CHARACTERS_PER_STEP } from "./values.ts";

/** Steps of filling in one value, as many as of one check. */
const MAX_STEPS = 250_000;
/** Steps of a member or an item, and of a schema that is applied. */
const [STEPS_OF_MEMBER, STEPS_OF_SCHEMA] = [4, 4];

/** Returns the value with the defaults of its schema. Throws `INVALID_INPUT` if that takes too many steps. */
export function withDefaults(schema: JsonObject, value: Json): Json {
  try {
    return filled(schema, value, new Meter(MAX_STEPS));
  } catch (cause) {
    if (!(cause instanceof Spent)) throw cause;
    const message =
      "The input is too large to be filled in with the defaults of its schema. Give fewer items.";
    throw invalid(message, { cause });
  }
}

/** Returns the value with the defaults of its schema. Throws `Spent` if the steps are used up. */
export function filled(schema: JsonObject, value: Json, meter: Meter): Json {
  return new Filler(meter).fill(schema, value);
}

/** Returns the single non-null alternative of `anyOf` or `oneOf`, if there is exactly one. */
export function alternativeOf(alternatives: Json | undefined): { schema: Json; index: number } | undefined {
  if (!Array.isArray(alternatives)) return undefined;
  const others = alternatives.flatMap((schema, index) =>
    isJsonObject(schema) && schema.type === "null" ? [] : [{ schema, index }],
  );
  return others.length === 1 ? others[0] : undefined;
}

class Filler {
  /** The texts of defaults that were filled in, by their schemas. */
  readonly #defaults = new Map<JsonObject, string>();

  constructor(private readonly meter: Meter) {}

  fill(schema: Json | undefined, value: Json): Json {
    if (!isJsonObject(schema) || typeof value !== "object" || value === null) return value;
    const { anyOf = [], oneOf = [] } = schema;
    const lengths = [anyOf, oneOf].map((list) => (Array.isArray(list) ? list.length : 0));
    this.meter.spend(lengths.reduce((sum, length) => sum + length, STEPS_OF_SCHEMA));
    const own = Array.isArray(value) ? this.#items(schema, value) : this.#members(schema, value);
    return [anyOf, oneOf].reduce<Json>((made, list) => this.fill(alternativeOf(list)?.schema, made), own);
  }

  #items({ prefixItems, items }: JsonObject, value: Json[]): Json[] {
    const first = Array.isArray(prefixItems) ? prefixItems : [];
    if (first.length === 0 && !isJsonObject(items)) return value;
    this.meter.spend(value.length * STEPS_OF_MEMBER);
    return value.map((item, index) => this.fill(first[index] ?? items, item));
  }

  #members(
    { properties, additionalProperties, patternProperties }: JsonObject,
    value: JsonObject,
  ): JsonObject {
    const named = isJsonObject(properties) ? properties : {};
    const further = patternProperties === undefined ? additionalProperties : undefined;
    const names = Object.keys(named);
    if (names.length === 0 && !isJsonObject(further)) return value;
    const entries = Object.entries(value);
    this.meter.spend((entries.length + names.length) * STEPS_OF_MEMBER);
    const members = new Map(
      entries.map(([name, member]) => [
        name,
        this.fill(Object.hasOwn(named, name) ? named[name] : further, member),
      ]),
    );
    for (const name of names) {
      const member = named[name];
      if (!members.has(name) && isJsonObject(member) && member.default !== undefined)
        members.set(name, this.#default(member, member.default));
    }
    return Object.fromEntries(members);
  }

  #default(schema: JsonObject, given: Json): Json {
    const text = this.#defaults.get(schema) ?? JSON.stringify(this.fill(schema, given));
    this.#defaults.set(schema, text);
    this.meter.spend(text.length / CHARACTERS_PER_STEP);
    return JSON.parse(text);
  }
}
