/**
 * Checks values against schemas that were read. Pure.
 *
 * EFFORT-1  Each step of a check is charged to a budget before it runs. A check ends when the budget is used up, for any schema and value.
 *           It keeps at most `MAX_VIOLATIONS` violations of limited length.
 * MISFIT-1  A violation names the part of the value, or the missing member, by its path, and says what must be there.
 */
import { format as formats } from "@cfworker/json-schema";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { shorten } from "../text.ts";
import { jsonPointer } from "../validation.ts";
import type { ReadSchema, Schema, SchemaNode } from "./json-schema.ts";
import { type Meter, Spent } from "./meter.ts";
import { type Pattern, stepsOfMatch } from "./pattern.ts";
import { areEqual, CHARACTERS_PER_STEP, duplicates, isMultipleOf } from "./values.ts";

/** A value's part that does not fit. */
export interface Violation {
  /** JSON pointer of the part; empty for the value itself. */
  path: string;
  message: string;
}

/** Steps of applying a schema to a value. */
const APPLICATION = 10;
/** Steps of finding the schemas of a member. */
const MEMBER = 12;
/** Steps of noting that a member or an item was evaluated. */
const MARK = 4;
/** Limit of nested applications of schemas. */
const MAX_DEPTH = 200;
const MAX_VIOLATIONS = 5;
/** Length of a value or a name in a message. */
const MAX_SHOWN = 200;
/** Names of an object's members in a message, and the length of one. */
const [MAX_NAMES, MAX_NAME] = [5, 40];
/** Length of a text that a format can fit. */
const MAX_FORMATTED = 4_096;

/** Formats that are not checked: a check of these runs an expression of the value's own, or has no bound. */
const UNCHECKED_FORMATS = ["regex", "url"];

/** Names of members, or indexes of items, that a schema evaluated. No object: the value's own names would be its members. */
type Evaluated = Set<string | number>;

/** Used if no schema reads the results of other schemas. */
const UNUSED: Evaluated = new Set();

/** Returns the violations of a value. Empty if it fits. Throws `Spent`. */
export function checkValue({ root, hasUnevaluated }: ReadSchema, value: Json, meter: Meter): Violation[] {
  return new Check(meter, hasUnevaluated).violations(root, value);
}

class Check {
  readonly #path: (string | number)[] = [];
  #found: Violation[] = [];
  /** Number of violations, including dropped violations. */
  #count = 0;
  #depth = 0;
  readonly #meter: Meter;
  readonly #hasUnevaluated: boolean;

  constructor(meter: Meter, hasUnevaluated: boolean) {
    this.#meter = meter;
    this.#hasUnevaluated = hasUnevaluated;
  }

  violations(root: Schema, value: Json): Violation[] {
    this.#apply(root, value, this.#none());
    return this.#found;
  }

  /** Applies a schema. Adds the evaluated members to `evaluated`. Reports whether the value fits. */
  #apply(schema: Schema, value: Json, evaluated: Evaluated): boolean {
    this.#meter.spend(APPLICATION);
    if (schema === true) return true;
    const before = this.#count;
    if (schema === false) this.#add(() => "Is not allowed here");
    else {
      if (this.#depth >= MAX_DEPTH) throw new Spent();
      this.#depth += 1;
      this.#inPlace(schema, value, evaluated);
      this.#fixed(schema, value);
      if (typeof value === "string") this.#text(schema, value);
      else if (typeof value === "number") this.#number(schema, value);
      else if (Array.isArray(value)) this.#items(schema, value, evaluated);
      else if (isJsonObject(value)) this.#members(schema, value, evaluated);
      this.#depth -= 1;
    }
    return this.#count === before;
  }

  #none(): Evaluated {
    return this.#hasUnevaluated ? new Set() : UNUSED;
  }

  /** Applies a schema to a member or an item. */
  #applyAt(key: string | number, schema: Schema, value: Json): boolean {
    this.#path.push(key);
    const fits = this.#apply(schema, value, this.#none());
    this.#path.pop();
    return fits;
  }

  /** Applies a schema to the same value. Returns its violations without adding them. */
  #try(schema: Schema, value: Json, evaluated: Evaluated): Violation[] | null {
    const [found, count] = [this.#found, this.#count];
    const inner = this.#none();
    // Once `MAX_VIOLATIONS` are kept, skip the messages of others.
    this.#found = found.length < MAX_VIOLATIONS ? [] : found;
    const fits = this.#apply(schema, value, inner);
    const tried = this.#found;
    this.#found = found;
    this.#count = count;
    if (!fits) return tried;
    for (const key of inner) this.#mark(evaluated, key);
    return null;
  }

  /** Applies a schema that must fit to the same value. */
  #require(schema: Schema | undefined, value: Json, evaluated: Evaluated): void {
    if (schema === undefined) return;
    const tried = this.#try(schema, value, evaluated);
    if (tried !== null) this.#addAll(tried);
  }

  #inPlace(schema: SchemaNode, value: Json, evaluated: Evaluated): void {
    const { $ref, allOf, anyOf, oneOf, not, if: condition, then: yes, else: no } = schema;
    this.#require($ref, value, evaluated);
    if (allOf !== undefined) for (const part of allOf) this.#require(part, value, evaluated);
    if (anyOf !== undefined) {
      const tries = anyOf.map((part) => this.#try(part, value, evaluated));
      if (tries.every((tried) => tried !== null)) {
        this.#add(() => "Must fit one of the alternatives in `anyOf`");
        for (const tried of tries) this.#addAll(tried);
      }
    }
    if (oneOf !== undefined) {
      const tries = oneOf.map((part) => this.#try(part, value, evaluated));
      const matches = tries.filter((tried) => tried === null).length;
      if (matches !== 1) {
        this.#add(() => `Must fit exactly one of the alternatives in \`oneOf\`. It fits ${matches}`);
        for (const tried of tries) this.#addAll(tried ?? []);
      }
    }
    if (not !== undefined && this.#try(not, value, this.#none()) === null)
      this.#add(() => "Must not fit the schema in `not`");
    if (condition !== undefined) {
      const fits = this.#try(condition, value, evaluated) === null;
      this.#require(fits ? yes : no, value, evaluated);
    }
  }

  #fixed({ type, const: fixed, enum: values }: SchemaNode, value: Json): void {
    if (Array.isArray(type)) this.#meter.spend(type.length);
    if (type !== undefined && !isOfType(value, type))
      this.#add(() => `Must have the type "${[type].flat().join('" or "')}", not "${typeOf(value)}"`);
    if (fixed !== undefined && !areEqual(value, fixed, this.#meter))
      this.#add(() => `Must be ${this.#shown(JSON.stringify(fixed))}`);
    if (values !== undefined && !values.some((one) => areEqual(value, one, this.#meter)))
      this.#add(() => `Must be one of ${this.#shown(JSON.stringify(values))}`);
  }

  #text({ minLength = 0, maxLength, pattern, format }: SchemaNode, value: string): void {
    if (minLength > 0 || maxLength !== undefined) {
      this.#meter.spend(value.length / CHARACTERS_PER_STEP);
      const length = codePoints(value);
      if (length < minLength)
        this.#add(() => `Must have at least ${counted(minLength, "character")}, not ${length}`);
      if (maxLength !== undefined && length > maxLength)
        this.#add(() => `Must have at most ${counted(maxLength, "character")}, not ${length}`);
    }
    if (pattern !== undefined && !this.#matches(pattern, value))
      this.#add(() => `Must match the pattern ${this.#shown(pattern.source)}`);
    if (format === undefined || !Object.hasOwn(formats, format) || UNCHECKED_FORMATS.includes(format)) return;
    this.#meter.spend(APPLICATION + Math.min(value.length, MAX_FORMATTED));
    if (value.length > MAX_FORMATTED)
      this.#add(() => `Must have at most ${MAX_FORMATTED} characters for the format "${format}"`);
    else if (formats[format]?.(value) === false) this.#add(() => `Must have the format "${format}"`);
  }

  #number(schema: SchemaNode, value: number): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    if (minimum !== undefined && value < minimum)
      this.#add(() => `Must be at least ${minimum}, not ${value}`);
    if (maximum !== undefined && value > maximum) this.#add(() => `Must be at most ${maximum}, not ${value}`);
    if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
      this.#add(() => `Must be greater than ${exclusiveMinimum}, not ${value}`);
    if (exclusiveMaximum !== undefined && value >= exclusiveMaximum)
      this.#add(() => `Must be less than ${exclusiveMaximum}, not ${value}`);
    if (multipleOf === undefined) return;
    if (!isMultipleOf(value, multipleOf, this.#meter))
      this.#add(() => `Must be a multiple of ${multipleOf}, not ${value}`);
  }

  #items(schema: SchemaNode, value: readonly Json[], evaluated: Evaluated): void {
    const { minItems = 0, maxItems, prefixItems = [], items, unevaluatedItems, uniqueItems } = schema;
    if (value.length < minItems)
      this.#add(() => `Must have at least ${counted(minItems, "item")}, not ${value.length}`);
    if (maxItems !== undefined && value.length > maxItems)
      this.#add(() => `Must have at most ${counted(maxItems, "item")}, not ${value.length}`);
    if (uniqueItems === true) {
      const equal = duplicates(value, this.#meter);
      if (equal !== null)
        this.#add(() => `Must not repeat an item. Items ${equal[0]} and ${equal[1]} are equal`);
    }
    if (prefixItems.length > 0 || items !== undefined)
      for (const [index, item] of value.entries()) {
        const one = prefixItems[index] ?? items;
        if (one === undefined) break;
        if (this.#applyAt(index, one, item)) this.#mark(evaluated, index);
      }
    this.#contained(schema, value, evaluated);
    if (unevaluatedItems === undefined) return;
    for (const [index, item] of value.entries())
      if (!evaluated.has(index) && this.#applyAt(index, unevaluatedItems, item)) this.#mark(evaluated, index);
  }

  #contained(
    { contains, minContains = 1, maxContains }: SchemaNode,
    value: readonly Json[],
    evaluated: Evaluated,
  ): void {
    if (contains === undefined) return;
    let count = 0;
    for (const [index, item] of value.entries())
      if (this.#try(contains, item, this.#none()) === null) {
        count += 1;
        this.#mark(evaluated, index);
      }
    if (count < minContains)
      this.#add(
        () => `Must have at least ${counted(minContains, "item")} that \`contains\` describes, not ${count}`,
      );
    if (maxContains !== undefined && count > maxContains)
      this.#add(
        () => `Must have at most ${counted(maxContains, "item")} that \`contains\` describes, not ${count}`,
      );
  }

  #members(schema: SchemaNode, value: JsonObject, evaluated: Evaluated): void {
    this.#names(schema, value, evaluated);
    const {
      properties,
      patternProperties = {},
      patterns = {},
      additionalProperties,
      unevaluatedProperties,
    } = schema;
    const isEach = properties ?? schema.patternProperties ?? additionalProperties ?? unevaluatedProperties;
    if (isEach === undefined) return;
    for (const [name, member] of Object.entries(value)) {
      this.#meter.spend(MEMBER);
      const applied: Schema[] = [];
      const named = own(properties, name);
      if (named !== undefined) applied.push(named);
      for (const source in patterns) {
        const [pattern, one] = [patterns[source], patternProperties[source]];
        if (pattern !== undefined && one !== undefined && this.#matches(pattern, name)) applied.push(one);
      }
      if (applied.length === 0 && additionalProperties !== undefined) applied.push(additionalProperties);
      if (applied.length === 0 && unevaluatedProperties !== undefined && !evaluated.has(name))
        applied.push(unevaluatedProperties);
      for (const one of applied) this.#applyAt(name, one, member);
      if (applied.length > 0) this.#mark(evaluated, name);
    }
  }

  /** Checks the keywords that depend only on an object's names. */
  #names(schema: SchemaNode, value: JsonObject, evaluated: Evaluated): void {
    const { required = [], minProperties = 0, maxProperties, propertyNames } = schema;
    const names = Object.keys(value);
    this.#meter.spend(APPLICATION + names.length + required.length);
    for (const name of required)
      if (!Object.hasOwn(value, name)) this.#addAt(name, () => `Is required${this.#given(names)}`);
    if (names.length < minProperties)
      this.#add(() => `Must have at least ${counted(minProperties, "member")}, not ${names.length}`);
    if (maxProperties !== undefined && names.length > maxProperties)
      this.#add(() => `Must have at most ${counted(maxProperties, "member")}, not ${names.length}`);
    if (propertyNames !== undefined) for (const name of names) this.#applyAt(name, propertyNames, name);
    if (schema.dependentRequired !== undefined || schema.dependentSchemas !== undefined)
      for (const name of names) this.#dependents(name, schema, value, evaluated);
  }

  /** Checks the requirements of present names. */
  #dependents(
    name: string,
    { dependentRequired, dependentSchemas }: SchemaNode,
    value: JsonObject,
    evaluated: Evaluated,
  ): void {
    this.#meter.spend(MEMBER);
    const others = own(dependentRequired, name) ?? [];
    this.#meter.spend(others.length);
    const missing = others.find((other) => !Object.hasOwn(value, other));
    if (missing !== undefined) this.#addAt(missing, () => `Is required with "${this.#shown(name)}"`);
    this.#require(own(dependentSchemas, name), value, evaluated);
  }

  #matches(pattern: Pattern, text: string): boolean {
    this.#meter.spend(stepsOfMatch(pattern, text));
    return pattern.test(text);
  }

  #mark(evaluated: Evaluated, key: string | number): void {
    if (!this.#hasUnevaluated) return;
    this.#meter.spend(MARK);
    evaluated.add(key);
  }

  #add(message: () => string): void {
    this.#count += 1;
    this.#meter.spend(1);
    if (this.#found.length >= MAX_VIOLATIONS) return;
    const path = jsonPointer(this.#path);
    this.#meter.spend(APPLICATION + path.length / CHARACTERS_PER_STEP);
    this.#found.push({ path: shorten(path, MAX_SHOWN), message: message() });
  }

  #addAt(key: string, message: () => string): void {
    this.#path.push(key);
    this.#add(message);
    this.#path.pop();
  }

  #addAll(found: readonly Violation[]): void {
    this.#count += found.length;
    this.#found.push(...found.slice(0, MAX_VIOLATIONS - this.#found.length));
  }

  /** Returns the names of an object's members for a message. */
  #given(names: readonly string[]): string {
    if (names.length === 0) return "";
    const shown = names.slice(0, MAX_NAMES).map((name) => `"${shorten(name, MAX_NAME)}"`);
    return `. The object has ${shown.join(", ")}${names.length > MAX_NAMES ? " and others" : ""}`;
  }

  #shown(text: string): string {
    this.#meter.spend(text.length / CHARACTERS_PER_STEP);
    return shorten(text, MAX_SHOWN);
  }
}

/** Returns a member of an object with names from outside. */
function own<Value>(from: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return from !== undefined && Object.hasOwn(from, name) ? from[name] : undefined;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Counts characters. An iterator of them takes ten times as long. */
function codePoints(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at++)
    if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) count -= 1;
  return count;
}

const isHigh = (unit: number) => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number) => unit >= 0xdc00 && unit < 0xe000;

function typeOf(value: Json): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isOfType(value: Json, type: string | readonly string[]): boolean {
  if (typeof type !== "string") return type.some((one) => isOfType(value, one));
  return type === "integer" ? Number.isInteger(value) : typeOf(value) === type;
}
