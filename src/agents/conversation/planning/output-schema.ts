/**
 * What a turn may demand of its answer, checked before the turn starts.
 *
 * OUTPUT-4  A schema is taken only if it is one of an object, small, and made of parts that can be checked: a defect is
 *           told to whoever sent it, not to the model.
 */
import type { OutputSpec } from "../../../adapters/types.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { isJson, isJsonObject, type Json } from "../../../shared/json.ts";
import { MAX_OUTPUT_SCHEMA } from "../limits.ts";
import { violations } from "./schema-check.ts";

/** Throws `INVALID_INPUT` with the place of what is wrong. */
export function checkOutputSchema({ schema }: OutputSpec): void {
  if (!isJson(schema)) throw invalid("", "Must be JSON, nested at most 64 deep.");
  const { length } = JSON.stringify(schema);
  if (length > MAX_OUTPUT_SCHEMA)
    throw invalid("", `Has ${length} characters; the limit is ${MAX_OUTPUT_SCHEMA}.`);
  if (schema.type !== "object") throw invalid("/type", 'Must be "object": an answer is an object.');
  checkParts(schema, schema, "");
  if (violations(schema, {}) === null)
    throw invalid("", "Cannot be checked: it refers to itself without end.");
}

/** Patterns and references, wherever they stand; what stands in data (`const`, `enum`, `examples`) is no schema. */
function checkParts(value: Json, root: Json, path: string): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) checkParts(item, root, `${path}/${index}`);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    const place = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const isNamed = /\/(?:properties|\$defs|definitions|dependentSchemas|patternProperties)$/.test(path);
    if (/\/patternProperties$/.test(path)) checkPattern(key, place);
    if (!isNamed && ["const", "enum", "examples", "default"].includes(key)) continue;
    if (!isNamed && key === "pattern" && typeof member === "string") checkPattern(member, place);
    if (!isNamed && key === "$ref" && typeof member === "string") checkReference(member, root, place);
    checkParts(member, root, place);
  }
}

function checkPattern(pattern: string, path: string): void {
  try {
    new RegExp(pattern, "u");
  } catch {
    throw invalid(path, "Must be a regular expression of JavaScript with the flag `u`.");
  }
}

function checkReference(reference: string, root: Json, path: string): void {
  const parts = reference.split("/");
  if (parts[0] !== "#") throw invalid(path, "Must point into this schema: `#`, or `#/…`.");
  let target: Json | undefined = root;
  for (const part of parts.slice(1)) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    target = isContainer(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  }
  if (target === undefined) throw invalid(path, `There is nothing at "${reference}".`);
}

function isContainer(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null;
}

function invalid(path: string, message: string): DramatisError {
  return new DramatisError("INVALID_INPUT", "The schema in `output` cannot be used.", {
    errors: [{ path: `/output/schema${path}`, message }],
  });
}
