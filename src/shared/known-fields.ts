/**
 * The fields of schemas, and the field that an author may have meant by an unknown field. Pure.
 *
 * FIELD-1  An error for an unknown field suggests the most similar field of the schema at any depth. A field beside the unknown field has
 *          its name alone. Another field has its path from the top. A name of less than four characters, such as `id`, suggests only fields of its own object.
 * FIELD-2  A suggestion differs from the unknown name in at most half of the characters of the longer name. Without a suggestion, the error
 *          lists the known fields of the object.
 */
import type { z } from "zod";
import { foldedId, piecesOf, similarity } from "./known-ids.ts";

/** A field: the names above it, then its name. `ANY` replaces an index or a name that the author chooses. */
type FieldPath = readonly string[];

const ANY = "*";
/** The depth and the number of the fields that are compared. */
const [MAX_DEPTH, MAX_FIELDS] = [6, 1_000];
/** Lowest similarity of a field in the same object, and of a field elsewhere. */
const [SIMILAR, SIMILAR_ELSEWHERE] = [0.55, 0.8];
/** The shortest name that suggests a field of another object. */
const MIN_ELSEWHERE = 4;

const MAX_LISTED = 20;

/** The longest unknown name that is compared. */
const MAX_NAME_LENGTH = 64;

/** A field, with its name in a form without case, and the pieces of the name. */
interface KnownField {
  path: FieldPath;
  folded: string;
  pieces: ReadonlySet<string>;
}

const known = new WeakMap<z.ZodType, readonly KnownField[]>();

/** Returns advice on an unknown field at `path`: the field that it may mean, otherwise the fields of its object. Empty if there is no field. */
export function fieldAdvice(schema: z.ZodType, path: readonly PropertyKey[]): string {
  const meant = meantField(schema, path);
  if (meant !== undefined) return ` Did you mean "${meant}"?`;
  const parent = path.slice(0, -1).map(String);
  const beside = knownFields(schema).filter((known) => isBeside(known.path, parent));
  const names = [...new Set(beside.map((known) => known.path.at(-1) ?? ANY))].filter((name) => name !== ANY);
  const more = names.length > MAX_LISTED ? ", and more" : "";
  return names.length === 0 ? "" : ` Known fields: ${names.slice(0, MAX_LISTED).join(", ")}${more}.`;
}

/** Returns the field that an unknown field at `path` may mean, if a field is similar: `task` beside it, or `identity.modelProfileId` elsewhere. */
function meantField(schema: z.ZodType, path: readonly PropertyKey[]): string | undefined {
  const name = String(path.at(-1) ?? "");
  if (name.length > MAX_NAME_LENGTH) return undefined;
  const parent = path.slice(0, -1).map(String);
  const wanted = foldedName(name);
  const wantedPieces = piecesOf(wanted);
  let best: { field: FieldPath; rank: number } | undefined;
  for (const { path: field, folded, pieces } of knownFields(schema)) {
    const alike = similarity(wantedPieces, pieces);
    const isNear = isBeside(field, parent);
    if (!isNear && wanted.length < MIN_ELSEWHERE) continue;
    if (alike < (isNear ? SIMILAR : SIMILAR_ELSEWHERE)) continue;
    if (distance(wanted, folded) > Math.max(wanted.length, folded.length) / 2) continue;
    const rank = alike + (isNear ? 0.5 : 0) + sharedLength(field, parent) / 100 - field.length / 1_000;
    if (best === undefined || rank > best.rank) best = { field, rank };
  }
  if (best === undefined) return undefined;
  if (isBeside(best.field, parent)) return best.field.at(-1);
  const shared = sharedLength(best.field, parent);
  return best.field.map((name, at) => (name !== ANY ? name : at < shared ? parent[at] : "[]")).join(".");
}

function knownFields(schema: z.ZodType): readonly KnownField[] {
  const before = known.get(schema);
  if (before !== undefined) return before;
  const paths = [...fieldsOf(schema)].slice(0, MAX_FIELDS);
  const fields = paths.map((path) => {
    const folded = foldedName(path.at(-1) ?? "");
    return { path, folded, pieces: piecesOf(folded) };
  });
  known.set(schema, fields);
  return fields;
}

function foldedName(name: string): string {
  return foldedId(name).replaceAll("-", "");
}

function isBeside(field: FieldPath, parent: readonly string[]): boolean {
  return field.length === parent.length + 1 && sharedLength(field, parent) === parent.length;
}

/** Returns the number of characters to insert, remove or replace between two names (Levenshtein). */
function distance(one: string, other: string): number {
  let before = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row++) {
    const next = [row];
    for (let at = 1; at <= other.length; at++) {
      const replaced = (before[at - 1] ?? 0) + (one[row - 1] === other[at - 1] ? 0 : 1);
      next.push(Math.min(replaced, (before[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    before = next;
  }
  return before[other.length] ?? 0;
}

/** Returns the number of names at the beginning that a field shares with a path. */
function sharedLength(field: FieldPath, path: readonly string[]): number {
  const differs = path.findIndex((name, at) => field[at] !== ANY && field[at] !== name);
  return differs === -1 ? path.length : differs;
}

/** Yields the fields of a schema. A field comes before the fields within it. */
function* fieldsOf(schema: z.ZodType, depth = 0): Generator<FieldPath> {
  if (depth > MAX_DEPTH) return;
  // SAFETY: each schema of zod is one of these.
  const { def } = (schema as unknown as z.core.$ZodTypes)._zod;
  const inner = (type: z.core.$ZodType) => fieldsOf(type as z.ZodType, depth);
  const below = function* (name: string, type: z.core.$ZodType): Generator<FieldPath> {
    for (const field of fieldsOf(type as z.ZodType, depth + 1)) yield [name, ...field];
  };
  switch (def.type) {
    case "object": {
      const members = Object.entries(def.shape);
      for (const [name] of members) yield [name];
      for (const [name, type] of members) yield* below(name, type);
      return;
    }
    case "array":
      return yield* below(ANY, def.element);
    case "record":
      return yield* below(ANY, def.valueType);
    case "union":
      for (const option of def.options) yield* inner(option);
      return;
    case "intersection":
      yield* inner(def.left);
      return yield* inner(def.right);
    case "lazy":
      return yield* fieldsOf(def.getter() as z.ZodType, depth + 1);
    case "pipe":
      yield* inner(def.in);
      return yield* inner(def.out);
    case "optional":
    case "nullable":
    case "default":
    case "prefault":
    case "nonoptional":
    case "readonly":
    case "catch":
      return yield* inner(def.innerType);
    default:
  }
}
