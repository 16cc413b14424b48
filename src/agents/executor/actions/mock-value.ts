/**
 * Makes a value that fits a JSON Schema.
 *
 * MOCK-1  Equal schemas, seeds and modes give equal values.
 * MOCK-2  A value is returned only if it fits its schema. Otherwise the error names what does not fit: keywords such as `pattern`
 *         and `not` are met by chance only.
 * MOCK-3  `const` and `enum` win over all, then `default`. Of `anyOf` and `oneOf` the first alternative counts that leads to a
 *         value.
 * MOCK-4  A value has at most `MAX_PARTS` parts and `MAX_CHARACTERS` characters.
 */
import { ToolError } from "../../../library/tool-error.ts";
import type { MockAction } from "../../../protocol/task-definition.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { violations } from "../../../shared/json-schema/violations.ts";
import { shorten } from "../../../shared/text.ts";
import { type Choice, member, resolved } from "./mock-schema.ts";
import { Draw, textOf } from "./mock-texts.ts";

const MAX_PARTS = 10_000;
const MAX_CHARACTERS = 200_000;
/** Levels that have members and items which need not be there, and levels in all. */
const [OPTIONAL_DEPTH, MAX_DEPTH] = [4, 48];
/** Parts from which on a value gets what it needs only. */
const MANY_PARTS = 500;
/** Values that are tried, each with later alternatives, and the last ones without defaults. */
const TRIES = 8;
/** Numbers and items that are tried for one place. */
const LOCAL_TRIES = 200;

/** Returns a value that fits the schema. Throws `ToolError`. */
export function mockValue({ schema, seed = 1, stringMode = "words" }: Omit<MockAction, "kind">): Json {
  if (violations(schema, null) === null)
    throw new ToolError("Its schema cannot be checked. Use the keywords that schemas of tools may have.");
  let problem = "";
  for (let alternative = 0; alternative < TRIES; alternative++) {
    const hasDefaults = alternative % 2 === 0;
    const choice = { root: schema, alternative: Math.floor(alternative / 2) };
    try {
      const value = new Maker(choice, new Draw(seed), stringMode, hasDefaults).make(schema, 0);
      const found = violations(schema, value) ?? [];
      if (found.length === 0) return value;
      problem ||= found.join("; ");
    } catch (error) {
      if (!(error instanceof Unmakeable)) throw error;
      problem ||= error.message;
    }
  }
  throw new ToolError(
    `No value of its schema could be made: ${shorten(problem, 500)}. Give a const, an enum or a default there.`,
  );
}

/** A value that cannot be made. */
class Unmakeable extends Error {}

class Maker {
  #parts = 0;
  #characters = 0;

  constructor(
    private readonly choice: Choice,
    private readonly draw: Draw,
    private mode: MockAction["stringMode"],
    private readonly hasDefaults: boolean,
  ) {}

  make(given: Json | undefined, depth: number): Json {
    this.#parts += 1;
    this.#checkParts(0);
    if (depth > MAX_DEPTH) throw new Unmakeable(`it nests more than ${MAX_DEPTH} levels deep`);
    // The last alternative is the one that ends most recursions.
    const isDeep = depth > OPTIONAL_DEPTH;
    const schema = resolved(
      given,
      isDeep ? { ...this.choice, alternative: Number.MAX_SAFE_INTEGER } : this.choice,
    );
    if (schema === false) throw new Unmakeable("a part of the schema allows no value");
    const { const: only, enum: some, default: usual } = schema;
    if (only !== undefined) return only;
    if (Array.isArray(some)) return this.#oneOf(some);
    if (usual !== undefined && this.hasDefaults) return usual;
    switch (typeOf(schema, isDeep)) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, depth);
      case "integer":
        return this.#number(schema, true);
      case "number":
        return this.#number(schema, false);
      case "boolean":
        return this.draw.next() < 0.5;
      case "null":
        return null;
      default:
        return this.#text(schema);
    }
  }

  /** Throws if there would be too many parts with these. */
  #checkParts(more: number): void {
    if (this.#parts + more > MAX_PARTS) throw new Unmakeable(`it would have more than ${MAX_PARTS} parts`);
  }

  #oneOf(values: readonly Json[]): Json {
    const [first, ...others] = values;
    if (first === undefined) throw new Unmakeable("an enum allows no value");
    return this.draw.of([first, ...others]);
  }

  #isNarrow(depth: number): boolean {
    return depth >= OPTIONAL_DEPTH || this.#parts > MANY_PARTS;
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const { properties, additionalProperties = true, minProperties = 0, maxProperties } = schema;
    const required = namesIn(schema.required);
    const most = maxProperties === undefined ? Number.POSITIVE_INFINITY : Number(maxProperties);
    const named = isJsonObject(properties) ? Object.keys(properties) : [];
    const possible = named.filter((name) => !required.includes(name) && member(properties, name) !== false);
    const room = Math.max(0, most - required.length);
    const wanted = this.#isNarrow(depth) ? Math.min(room, Number(minProperties) - required.length) : room;
    const names = new Set([...required, ...possible.slice(0, Math.max(0, wanted))]);
    this.#checkParts(Math.max(names.size, Number(minProperties)));
    for (let extra = 1; names.size < Number(minProperties); extra++) names.add(`member${extra}`);
    return Object.fromEntries(
      [...names].map((name) => [
        name,
        this.make(member(properties, name) ?? additionalProperties, depth + 1),
      ]),
    );
  }

  #array(schema: JsonObject, depth: number): Json[] {
    const { prefixItems = [], items = true, contains, minContains = 1, uniqueItems } = schema;
    const first = Array.isArray(prefixItems) ? prefixItems : [];
    const needed = Math.max(
      Number(schema.minItems ?? 0),
      contains === undefined ? 0 : first.length + Number(minContains),
    );
    const usual = this.#isNarrow(depth) ? 0 : first.length + (items === false ? 0 : this.draw.between(1, 3));
    const count = Math.min(Math.max(needed, usual), Number(schema.maxItems ?? Number.POSITIVE_INFINITY));
    this.#checkParts(count);
    const made: Json[] = [];
    const texts = new Set<string>();
    for (let index = 0; index < count; index++) {
      const own = first[index] ?? (contains === undefined ? items : { allOf: [items, contains] });
      const item = this.#item(own, depth, uniqueItems === true ? texts : null);
      if (item === undefined) break;
      texts.add(JSON.stringify(item));
      made.push(item);
    }
    return made;
  }

  /** Makes an item; `undefined` if none was found that differs from those before. Empty texts become letters then. */
  #item(schema: Json, depth: number, before: ReadonlySet<string> | null): Json | undefined {
    const { mode } = this;
    try {
      for (let tried = 0; tried < LOCAL_TRIES; tried++) {
        const item = this.make(schema, depth + 1);
        if (before === null || !before.has(JSON.stringify(item))) return item;
        if (mode === "empty") this.mode = "letters";
      }
      return undefined;
    } finally {
      this.mode = mode;
    }
  }

  #number(
    { multipleOf, minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject,
    isWhole: boolean,
  ): number {
    const own = typeof multipleOf === "number" ? multipleOf : undefined;
    const step = own ?? (isWhole ? 1 : 0.01);
    const low = Math.max(...numbersIn(minimum, exclusiveMinimum));
    const high = Math.min(...numbersIn(maximum, exclusiveMaximum));
    const from = Number.isFinite(low) ? low : Number.isFinite(high) ? high - 100 * step : 0;
    const to = Number.isFinite(high) ? high : from + Math.max(100, 100 * step);
    const fits = (value: number) =>
      !(value < low || value > high || value === exclusiveMinimum || value === exclusiveMaximum) &&
      (!isWhole || Number.isInteger(value));
    const [lowest, highest] = [Math.ceil(from / step), Math.floor(to / step)];
    const start = this.draw.between(lowest, Math.max(lowest, highest));
    for (let tried = 0; tried < LOCAL_TRIES; tried++) {
      // Begins at a place within the range, and goes on from its lowest end.
      const at = start + tried <= highest ? start + tried : lowest + tried;
      const value = Number((at * step).toPrecision(15));
      if (fits(value)) return value;
    }
    const middle = from + (to - from) / 2;
    for (const value of [middle, from, to]) if (own === undefined && fits(value)) return value;
    throw new Unmakeable(`no number is between ${from} and ${to}, as the schema wants it`);
  }

  #text({ format, minLength = 0, maxLength }: JsonObject): string {
    const longest = maxLength === undefined ? Number.POSITIVE_INFINITY : Number(maxLength);
    this.#characters += Number(minLength);
    if (this.#characters > MAX_CHARACTERS)
      throw new Unmakeable(`it would have more than ${MAX_CHARACTERS} characters`);
    return textOf(this.draw, this.mode, { format, shortest: Number(minLength), longest });
  }
}

function namesIn(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];
}

function numbersIn(...values: (Json | undefined)[]): number[] {
  return values.filter((value) => typeof value === "number");
}

/** Keywords by the type of value that they are about. */
const ABOUT: readonly (readonly [string, readonly string[]])[] = [
  ["object", ["properties", "required", "additionalProperties", "minProperties", "patternProperties"]],
  ["array", ["items", "prefixItems", "minItems", "contains", "uniqueItems"]],
  ["number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]],
];

/** Returns the type of a value: the first that is allowed, or `null` if it ends a recursion. */
function typeOf(schema: JsonObject, isDeep: boolean): string {
  const { type } = schema;
  const types = Array.isArray(type) ? type : type === undefined ? [] : [type];
  if (isDeep && types.includes("null")) return "null";
  if (Array.isArray(type) && type.length === 0) throw new Unmakeable("its parts allow no common type");
  if (types[0] !== undefined) return String(types[0]);
  return ABOUT.find(([, names]) => names.some((name) => Object.hasOwn(schema, name)))?.[0] ?? "string";
}
