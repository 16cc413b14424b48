/**
 * Generates a value that fits a JSON Schema.
 *
 * MOCK-1  Equal schemas, draws and modes give equal values.
 * MOCK-2  A value is returned only if it fits its schema. Otherwise the error names the problem. Keywords such as `pattern` and `not` are
 *         met only by chance.
 * MOCK-3  `const` and `enum` take precedence, then `default`. For `anyOf` and `oneOf`, the first alternative with a value is used.
 * MOCK-4  A value has at most `MAX_PARTS` parts and, as JSON, `MAX_CHARACTERS` characters.
 * MOCK-5  Each step is charged to a budget before it runs. Generation ends when the budget is used up, for any schema.
 */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { shorten } from "../text.ts";
import { type Draw, type TextMode, textOf } from "./draw.ts";
import { type Meter, Spent } from "./meter.ts";
import { type Choice, member, resolved } from "./resolve-schema.ts";
import { CHARACTERS_PER_STEP } from "./values.ts";
import { checkBudget, violations } from "./violations.ts";

const MAX_PARTS = 10_000;
const MAX_CHARACTERS = 256 * 1024;
/** Steps of making a part, of each name of an object, and of each number that is tried. */
const [STEPS_OF_PART, STEPS_OF_NAME, STEPS_OF_NUMBER] = [10, 6, 8];
const LETTERS_PER_STEP = 2;
/** The marks around a text, a list and an object. */
const QUOTES = 2;
/** Levels that have members and items which need not be there, and levels in all. */
const [OPTIONAL_DEPTH, MAX_DEPTH] = [4, 48];
/** From this number of parts on, a value gets only required members. */
const MANY_PARTS = 500;
/** Values to try, each with later alternatives. The last tries ignore defaults. */
const TRIES = 8;
/** Numbers and items that are tried for one place. */
const LOCAL_TRIES = 200;

/** The schema cannot be checked, or no fitting value was found. The message says how to change the schema. */
export class NoValue extends Error {
  /** `closest` is the first value that was made, if any. It does not fit the schema. */
  constructor(
    message: string,
    readonly closest?: Json,
  ) {
    super(message);
  }
}

/**
 * Returns a value that fits the schema. `draw` begins a new source of choices, which must be the same each time. Throws `NoValue`,
 * and `Spent` if the steps are used up.
 */
export function makeValue(
  schema: JsonObject,
  draw: () => Draw,
  { mode = "words", meter = checkBudget() }: { mode?: TextMode | undefined; meter?: Meter } = {},
): Json {
  if (violations(schema, null, meter) === null)
    throw new NoValue("Its schema cannot be checked. Use the keywords that schemas of tools may have.");
  const choiceOf = (alternative: number): Choice => ({ root: schema, alternative, meter, known: new Map() });
  // The last alternative ends most recursions.
  const deep = choiceOf(Number.MAX_SAFE_INTEGER);
  const choices = Array.from({ length: TRIES / 2 }, (_, alternative) => choiceOf(alternative));
  let problem = "";
  let closest: Json | undefined;
  for (const choice of choices)
    for (const hasDefaults of [true, false]) {
      try {
        const value = new Maker({ choice, deep, hasDefaults }, meter, draw(), mode).make(schema, 0);
        const found = violations(schema, value, meter) ?? [];
        if (found.length === 0) return value;
        problem ||= found.join("; ");
        closest ??= value;
      } catch (error) {
        // The first problem says more than that the steps of later tries are used up.
        if (error instanceof Spent && problem !== "") throw unmade(problem, closest);
        if (!(error instanceof Unmakeable)) throw error;
        problem ||= error.message;
      }
    }
  throw unmade(problem, closest);
}

function unmade(problem: string, closest: Json | undefined): NoValue {
  return new NoValue(
    `No value of its schema could be made: ${shorten(problem, 500)}. Give a const, an enum or a default there.`,
    closest,
  );
}

class Unmakeable extends Error {}

class Maker {
  #parts = 0;
  #characters = 0;

  constructor(
    private readonly way: { choice: Choice; deep: Choice; hasDefaults: boolean },
    private readonly meter: Meter,
    private readonly draw: Draw,
    private mode: TextMode,
  ) {}

  make(given: Json | undefined, depth: number): Json {
    this.meter.spend(STEPS_OF_PART);
    this.#parts += 1;
    this.#checkParts(0);
    if (depth > MAX_DEPTH) throw new Unmakeable(`it nests more than ${MAX_DEPTH} levels deep`);
    const { choice, deep, hasDefaults } = this.way;
    const isDeep = depth > OPTIONAL_DEPTH;
    const schema = resolved(given, isDeep ? deep : choice);
    if (schema === false) throw new Unmakeable("a part of the schema allows no value");
    const { const: only, enum: some, default: usual } = schema;
    if (only !== undefined) return this.#given(only);
    if (Array.isArray(some)) return this.#given(this.#oneOf(some));
    if (usual !== undefined && hasDefaults) return this.#given(usual);
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
        return this.#given(this.draw.next() < 0.5);
      case "null":
        return this.#given(null);
      default:
        return this.#text(schema);
    }
  }

  /** Throws if there would be too many parts with these. */
  #checkParts(more: number): void {
    if (this.#parts + more > MAX_PARTS) throw new Unmakeable(`it would have more than ${MAX_PARTS} parts`);
  }

  /** Counts characters of the value. Throws if there are too many. */
  #add(characters: number): void {
    this.#characters += characters;
    if (this.#characters > MAX_CHARACTERS)
      throw new Unmakeable(`it would have more than ${MAX_CHARACTERS} characters`);
    this.meter.spend(characters / CHARACTERS_PER_STEP);
  }

  /** Counts a value that the schema gives. */
  #given(value: Json): Json {
    if (typeof value !== "object" || value === null) {
      this.#add(typeof value === "string" ? value.length + QUOTES : String(value).length);
      return value;
    }
    const names = Array.isArray(value) ? [] : Object.keys(value);
    this.#add(QUOTES + names.reduce((sum, name) => sum + name.length + QUOTES + 1, 0));
    for (const inner of Object.values(value)) {
      this.#add(1);
      this.#given(inner);
    }
    return value;
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
    const required = new Set(namesIn(schema.required));
    const most = maxProperties === undefined ? Number.POSITIVE_INFINITY : Number(maxProperties);
    const named = isJsonObject(properties) ? Object.keys(properties) : [];
    this.meter.spend((required.size + named.length) * STEPS_OF_NAME);
    const possible = named.filter((name) => !required.has(name) && member(properties, name) !== false);
    const room = Math.max(0, most - required.size);
    const wanted = this.#isNarrow(depth) ? Math.min(room, Number(minProperties) - required.size) : room;
    const names = new Set([...required, ...possible.slice(0, Math.max(0, wanted))]);
    this.#checkParts(Math.max(names.size, Number(minProperties)));
    for (let extra = 1; names.size < Number(minProperties); extra++) names.add(`member${extra}`);
    this.#add(QUOTES);
    const made = [...names].map((name): [string, Json] => {
      this.#add(name.length + QUOTES + 2);
      return [name, this.make(member(properties, name) ?? additionalProperties, depth + 1)];
    });
    return Object.fromEntries(made);
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
    this.#add(QUOTES);
    const rest = contains === undefined ? items : { allOf: [items, contains] };
    const made: Json[] = [];
    const texts = uniqueItems === true ? new Set<string>() : null;
    for (let index = 0; index < count; index++) {
      this.#add(1);
      const item = this.#item(first[index] ?? rest, depth, texts);
      if (item === undefined) break;
      made.push(item);
    }
    return made;
  }

  /** Makes an item that differs from the items in `before`, or returns `undefined`. Retries use letters instead of empty texts. */
  #item(schema: Json, depth: number, before: Set<string> | null): Json | undefined {
    const { mode } = this;
    try {
      for (let tried = 0; tried < LOCAL_TRIES; tried++) {
        const item = this.make(schema, depth + 1);
        if (before === null) return item;
        const text = JSON.stringify(item);
        this.meter.spend(text.length / CHARACTERS_PER_STEP);
        if (!before.has(text)) {
          before.add(text);
          return item;
        }
        this.draw.vary();
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
    const range = { low, high, exclusiveMinimum, exclusiveMaximum, isWhole };
    const [lowest, highest] = [Math.ceil(from / step), Math.floor(to / step)];
    const start = this.draw.between(lowest, Math.max(lowest, highest));
    for (let tried = 0; tried < LOCAL_TRIES; tried++) {
      this.meter.spend(STEPS_OF_NUMBER);
      // Starts at a place within the range and wraps around at its upper end.
      const at = start + tried <= highest ? start + tried : lowest + tried;
      const value = Number((at * step).toPrecision(15));
      if (fits(value, range)) return this.#counted(value);
    }
    const middle = from + (to - from) / 2;
    for (const value of [middle, from, to])
      if (own === undefined && fits(value, range)) return this.#counted(value);
    throw new Unmakeable(`no number is between ${from} and ${to}, as the schema wants it`);
  }

  #text({ format, minLength = 0, maxLength }: JsonObject): string {
    const [shortest, longest] = [Number(minLength), Number(maxLength ?? Number.POSITIVE_INFINITY)];
    this.#add(shortest + QUOTES);
    this.meter.spend(shortest / LETTERS_PER_STEP);
    const text = textOf(this.draw, this.mode, { format, shortest, longest });
    this.#add(Math.max(0, text.length - shortest));
    return text;
  }

  #counted(value: number): number {
    this.#add(String(value).length);
    return value;
  }
}

interface NumberRange {
  low: number;
  high: number;
  exclusiveMinimum: Json | undefined;
  exclusiveMaximum: Json | undefined;
  isWhole: boolean;
}

function fits(
  value: number,
  { low, high, exclusiveMinimum, exclusiveMaximum, isWhole }: NumberRange,
): boolean {
  if (value < low || value > high || value === exclusiveMinimum || value === exclusiveMaximum) return false;
  return !isWhole || Number.isInteger(value);
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
