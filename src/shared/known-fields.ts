/**
 * The fields of schemas, and the field that an author may have meant by an unknown one. Pure.
 *
 * FIELD-1  An error for an unknown field suggests the most similar field of the schema at any depth, with its path from the top.
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

/** The longest unknown name that is compared. */
const MAX_NAME_LENGTH = 64;

/** A field, with the pieces of its name. */
interface KnownField {
  path: FieldPath;
  pieces: ReadonlySet<string>;
}

const known = new WeakMap<z.ZodType, readonly KnownField[]>();

/** Returns the path of the field that an unknown field at `path` may mean, such as `identity.modelProfileId`, if a field is similar. */
export function meantField(schema: z.ZodType, path: readonly PropertyKey[]): string | undefined {
  const name = String(path.at(-1) ?? "");
  if (name.length > MAX_NAME_LENGTH) return undefined;
  const parent = path.slice(0, -1).map(String);
  const wanted = wordsOf(name);
  let best: { field: FieldPath; rank: number } | undefined;
  for (const { path: field, pieces } of knownFields(schema)) {
    const alike = similarity(wanted, pieces);
    const shared = sharedLength(field, parent);
    const isBeside = shared === parent.length && field.length === path.length;
    if (alike < (isBeside ? SIMILAR : SIMILAR_ELSEWHERE)) continue;
    const rank = alike + (isBeside ? 0.5 : 0) + shared / 100 - field.length / 1_000;
    if (best === undefined || rank > best.rank) best = { field, rank };
  }
  if (best === undefined) return undefined;
  const shared = sharedLength(best.field, parent);
  return best.field.map((name, at) => (name !== ANY ? name : at < shared ? parent[at] : "[]")).join(".");
}

function knownFields(schema: z.ZodType): readonly KnownField[] {
  const before = known.get(schema);
  if (before !== undefined) return before;
  const paths = [...fieldsOf(schema)].slice(0, MAX_FIELDS);
  const fields = paths.map((path) => ({ path, pieces: wordsOf(path.at(-1) ?? "") }));
  known.set(schema, fields);
  return fields;
}

function wordsOf(name: string): ReadonlySet<string> {
  return piecesOf(foldedId(name).replaceAll("-", ""));
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
