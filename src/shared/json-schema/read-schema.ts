/**
 * Reads JSON Schemas from outside: rebuilds them from known keywords, so exactly the measured parts are checked. Pure.
 *
 * INSCHEMA-1  A schema from outside is accepted only if each part has a bounded cost. Patterns run in linear time (PATTERN-1). No part
 *             applies itself, or more than `MAX_IN_PLACE` schemas, to one value. Each problem is reported with its place.
 * INSCHEMA-2  A value is checked only against own members with known keywords. Unknown keywords and their values have no effect. References
 *             find only schemas that were read.
 */
import { defined } from "../defined.ts";
import type { InputIssue } from "../errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { issueAt, jsonPointer } from "../validation.ts";
import {
  LIST_KEYWORDS,
  MAP_KEYWORDS,
  type ReadSchema,
  SCHEMA_KEYWORDS,
  type Schema,
  type SchemaMap,
  type SchemaNode,
  schemasInPlace,
} from "./json-schema.ts";
import { isChecked, keywordProblem } from "./keywords.ts";
import { Spent } from "./meter.ts";
import { type Pattern, Patterns } from "./pattern.ts";
import { UnsupportedPattern } from "./pattern-syntax.ts";

/** Most schemas that one schema applies to the same value, including itself, combined schemas and references. */
const MAX_IN_PLACE = 1_000;
/** Maximum size of the patterns of one schema, in the unit of `Pattern.size`. */
const MAX_PATTERNS = 10_000;
const MAX_SCHEMAS = 5_000;
const MAX_DEPTH = 200;
const TOO_MANY_PATTERNS =
  "Is too complex to compile together with the other patterns of the request. Use fewer or shorter patterns, with fewer properties such as \\p{L} and fewer counted repetitions.";
const MAX_ISSUES = 20;

type Kind = "schema" | "list" | "map";

const KINDS = new Map<string, Kind>([
  ...SCHEMA_KEYWORDS.map((name) => [name, "schema"] as const),
  ...LIST_KEYWORDS.map((name) => [name, "list"] as const),
  ...MAP_KEYWORDS.map((name) => [name, "map"] as const),
]);

/**
 * Reads a schema. Use the result only if there are no issues. `base` is the JSON pointer of the schema. The schemas of one request share
 * `patterns`.
 */
export function readSchema(
  schema: JsonObject,
  base = "",
  patterns = new Patterns(),
): ReadSchema & { issues: InputIssue[] } {
  const reader = new Reader(base, patterns);
  const root = reader.node(schema, "");
  reader.resolve();
  if (reader.issues.length === 0) reader.size();
  const { issues, hasUnevaluated } = reader;
  return { root, issues, hasUnevaluated };
}

class Reader {
  readonly issues: InputIssue[] = [];
  hasUnevaluated = false;
  /** The schemas that were read, by their pointers, in reading order. */
  readonly #schemas = new Map<string, Schema>();
  readonly #references: { node: SchemaNode; target: string; path: string }[] = [];
  #patternCount = 0;
  #depth = 0;
  readonly #base: string;
  readonly #patterns: Patterns;

  constructor(base: string, patterns: Patterns) {
    this.#base = base;
    this.#patterns = patterns;
  }

  node(from: JsonObject, path: string): SchemaNode {
    const node: SchemaNode = {};
    if (this.#depth >= MAX_DEPTH || this.#schemas.size >= MAX_SCHEMAS) {
      this.#report(
        path,
        `Is too much: a schema has at most ${MAX_SCHEMAS} schemas, nested ${MAX_DEPTH} deep.`,
      );
      return node;
    }
    this.#depth += 1;
    this.#schemas.set(path, node);
    for (const [name, value] of Object.entries(from)) {
      const at = pointer(path, name);
      const problem = keywordProblem(name, value);
      if (problem !== null) this.#report(at, problem);
      else if (name === "$ref") this.#reference(node, value, at);
      else if (name === "pattern") Object.assign(node, defined({ pattern: this.#pattern(value, at) }));
      else this.#member(node, name, value, at);
    }
    this.#depth -= 1;
    return node;
  }

  /** Points each reference to the schema that it names. */
  resolve(): void {
    for (const { node, target, path } of this.#references) {
      const found = this.#schemas.get(target);
      if (found === undefined)
        this.#report(path, "Must refer to a schema within the same schema: #/$defs/NAME.");
      else node.$ref = found;
    }
  }

  /** Reports the first part that applies too many schemas to one value. */
  size(): void {
    const size = sizing();
    for (const [path, schema] of this.#schemas) {
      const problem = sizeProblem(size(schema));
      if (problem === null) continue;
      this.#report(path, problem);
      return;
    }
  }

  #member(node: SchemaNode, name: string, value: Json, at: string): void {
    const kind = KINDS.get(name);
    if (kind === undefined) {
      // SAFETY: the keyword's form was checked.
      if (isChecked(name)) Object.assign(node, { [name]: value });
      return;
    }
    if (name.startsWith("unevaluated")) this.hasUnevaluated = true;
    Object.assign(node, { [name]: this.#schemasOf(kind, value, at) });
    if (name === "patternProperties") node.patterns = this.#patternsOf(value, at);
  }

  #schemasOf(kind: Kind, value: Json, at: string): Schema | Schema[] | SchemaMap {
    if (kind === "schema") return this.#schema(value, at);
    if (kind === "list") {
      if (Array.isArray(value) && value.length > 0)
        return value.map((one, index) => this.#schema(one, `${at}/${index}`));
      this.#report(at, "Must be a list of schemas.");
      return [];
    }
    const map: SchemaMap = Object.create(null);
    if (!isJsonObject(value)) this.#report(at, "Must be an object of schemas.");
    else for (const [key, one] of Object.entries(value)) map[key] = this.#schema(one, pointer(at, key));
    return map;
  }

  #schema(value: Json, path: string): Schema {
    if (typeof value === "boolean") this.#schemas.set(path, value);
    else if (isJsonObject(value)) return this.node(value, path);
    else this.#report(path, "Must be a schema: an object, true or false.");
    return value === true;
  }

  #reference(node: SchemaNode, value: Json, path: string): void {
    const target = typeof value === "string" && /^#(?:\/|$)/.test(value) ? value.slice(1) : null;
    if (target === null) this.#report(path, "Must refer to a schema within the same schema: #/$defs/NAME.");
    else this.#references.push({ node, target: decoded(target), path });
  }

  #patternsOf(value: Json, at: string): Record<string, Pattern> {
    const patterns: Record<string, Pattern> = Object.create(null);
    for (const source of Object.keys(isJsonObject(value) ? value : {})) {
      const pattern = this.#pattern(source, pointer(at, source));
      if (pattern !== undefined) patterns[source] = pattern;
    }
    return patterns;
  }

  #pattern(source: Json, path: string): Pattern | undefined {
    if (typeof source !== "string") {
      this.#report(path, "Must be a string.");
      return undefined;
    }
    if (this.#patternCount > MAX_PATTERNS || this.issues.length >= MAX_ISSUES) return undefined;
    try {
      const pattern = this.#patterns.compile(source);
      this.#patternCount += pattern.size;
      if (this.#patternCount > MAX_PATTERNS)
        this.#report(
          "",
          `Has patterns of more than ${MAX_PATTERNS} parts together. Use fewer or shorter patterns.`,
        );
      return pattern;
    } catch (error) {
      if (error instanceof Spent) this.#report(path, TOO_MANY_PATTERNS);
      else if (error instanceof UnsupportedPattern) this.#report(path, error.message);
      else throw error;
      return undefined;
    }
  }

  #report(path: string, message: string): void {
    if (this.issues.length < MAX_ISSUES) this.issues.push(issueAt(this.#base + path, message));
  }
}

/** Continues a JSON pointer. Most names need no escapes. */
function pointer(path: string, name: string): string {
  return /[~/]/.test(name) ? jsonPointer([name], path) : `${path}/${name}`;
}

/** Counts the schemas that a part of a schema applies to one value: infinitely many if the part applies itself. */
function sizing(): (schema: Schema) => number {
  const sizes = new Map<Schema, number>();
  const size = (schema: Schema, depth = 0): number => {
    if (typeof schema === "boolean") return 1;
    if (depth > MAX_IN_PLACE) return MAX_IN_PLACE;
    const known = sizes.get(schema);
    if (known !== undefined) return known;
    // A second visit before the count is known means that the schema applies itself.
    sizes.set(schema, Number.POSITIVE_INFINITY);
    const total = schemasInPlace(schema).reduce<number>((sum, part) => sum + size(part, depth + 1), 1);
    sizes.set(schema, total);
    return total;
  };
  return size;
}

function sizeProblem(size: number): string | null {
  if (size <= MAX_IN_PLACE) return null;
  return size === Number.POSITIVE_INFINITY
    ? "Applies itself to the same value: refer to it only from within properties or items."
    : `Applies ${size} schemas to one value, including references. The maximum is ${MAX_IN_PLACE}: combine fewer.`;
}

/** Decodes the percent-encoding of a JSON pointer in a URI fragment. */
export function decoded(pointer: string): string {
  try {
    return decodeURIComponent(pointer);
  } catch {
    return pointer;
  }
}
