/**
 * What a turn may demand of its answer, checked before the turn starts.
 *
 * OUTPUT-4  A schema is taken only if it is one of an object, small, and made of parts that can be checked: a defect is
 *           told to whoever sent it, not to the model.
 */
import type { OutputSpec } from "../../../adapters/types.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { isJson, isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { issuesText } from "../../../shared/validation.ts";
import { MAX_OUTPUT_SCHEMA } from "../limits.ts";
import { violations } from "./schema-check.ts";

/** Steps in which a schema must be applied to an empty object. */
const MAX_STEPS = 20_000;

/** Throws `INVALID_INPUT` with the place of what is wrong. */
export function checkOutputSchema({ schema }: OutputSpec): void {
  if (!isJson(schema)) throw invalid("", "Must be JSON, nested at most 64 deep.");
  const { length } = JSON.stringify(schema);
  if (length > MAX_OUTPUT_SCHEMA) {
    throw invalid("", `Has ${length} characters; the limit is ${MAX_OUTPUT_SCHEMA}.`);
  }
  if (schema.type !== "object") throw invalid("/type", 'Must be "object": an answer is an object.');
  checkSchema(schema, schema, "");
  if (violations(schema, {}, MAX_STEPS) === null)
    throw invalid("", "Cannot be checked: it refers to itself without end, or in too many ways.");
}

/** Checks the value of a keyword, in a schema that is part of `root`. */
type Check = (value: Json, root: JsonObject, path: string) => void;

const checkSchema: Check = (value, root, path) => {
  if (typeof value === "boolean") return;
  if (!isJsonObject(value)) throw invalid(path, "Must be a schema: an object, or true or false.");
  for (const [keyword, member] of Object.entries(value)) {
    KEYWORDS.get(keyword)?.(member, root, `${path}/${keyword}`);
  }
};

const schemas: Check = (value, root, path) => {
  if (!Array.isArray(value)) throw invalid(path, "Must be a list of schemas.");
  for (const [index, item] of value.entries()) checkSchema(item, root, `${path}/${index}`);
};

const schemasByName: Check = (value, root, path) => {
  if (!isJsonObject(value)) throw invalid(path, "Must be an object of schemas.");
  for (const [name, member] of Object.entries(value)) {
    checkSchema(member, root, `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  }
};

const pattern: Check = (value, _root, path) => {
  try {
    if (typeof value === "string" && new RegExp(value, "u")) return;
  } catch {
    // Falls through: a text that is no pattern is as wrong as what is no text.
  }
  throw invalid(path, "Must be a regular expression of JavaScript with the flag `u`.");
};

const reference: Check = (value, root, path) => {
  const parts = typeof value === "string" ? value.split("/") : [];
  if (parts[0] !== "#") throw invalid(path, "Must point into this schema: `#`, or `#/…`.");
  let target: Json | undefined = root;
  for (const part of parts.slice(1)) target = memberOf(target, part);
  if (target === undefined) throw invalid(path, `There is nothing at "${value}".`);
};

function memberOf(value: Json | undefined, part: string): Json | undefined {
  const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
  if (Array.isArray(value)) return value[Number(key)];
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

const TYPES: readonly Json[] = ["object", "array", "string", "number", "integer", "boolean", "null"];

const check =
  (isRight: (value: Json) => boolean, rule: string): Check =>
  (value, _root, path) => {
    if (!isRight(value)) throw invalid(path, rule);
  };
const types = check(
  (value) => (Array.isArray(value) ? value : [value]).every((type) => TYPES.includes(type)),
  `Must be one or some of ${TYPES.join(", ")}.`,
);
const list = check((value) => Array.isArray(value) && value.length > 0, "Must be a list that is not empty.");
const names = check(
  (value) => Array.isArray(value) && value.every((name) => typeof name === "string"),
  "Must be a list of names.",
);
const number = check((value) => typeof value === "number", "Must be a number.");

function under(keywords: string, rule: Check): [keyword: string, rule: Check][] {
  return keywords.split(" ").map((keyword) => [keyword, rule]);
}

const KEYWORDS: ReadonlyMap<string, Check> = new Map([
  ...under("items additionalProperties propertyNames contains not if then else", checkSchema),
  ...under("unevaluatedItems unevaluatedProperties", checkSchema),
  ...under("prefixItems allOf anyOf oneOf", schemas),
  ...under("properties $defs definitions dependentSchemas", schemasByName),
  ...under("patternProperties", (value, root, path) => {
    schemasByName(value, root, path);
    for (const name of Object.keys(value ?? {})) pattern(name, root, `${path}/${name}`);
  }),
  ...under("multipleOf minimum maximum exclusiveMinimum exclusiveMaximum", number),
  ...under("minLength maxLength minItems maxItems minProperties maxProperties", number),
  ...under("type", types),
  ...under("enum", list),
  ...under("required", names),
  ...under("pattern", pattern),
  ...under("$ref", reference),
]);

function invalid(path: string, message: string): DramatisError {
  const errors = [{ path: `/output/schema${path}`, message }];
  return new DramatisError(
    "INVALID_INPUT",
    `The schema of the output cannot be used: ${issuesText(errors)}`,
    {
      errors,
    },
  );
}
