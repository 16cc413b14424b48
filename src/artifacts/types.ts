/**
 * The types of artifacts, and the facts of an artifact for the index. Pure.
 *
 * ARTTYPE-1  The first type whose pattern matches a path is the type of an artifact with this path. Content that does not fit the schema of
 *            the type is refused when it is written. If a bundle brings such content, the artifact has no type.
 */
import { Minimatch } from "minimatch";
import { z } from "zod";
import type { ArtifactFacts } from "../d1/artifacts.ts";
import { decodeText } from "../git/bytes.ts";
import { schemaCheck, withKeywords } from "../library/tasks/schema-check.ts";
import { stemOf, textTerms } from "../memory/ranking/words.ts";
import { type ArtifactType, MAX_ARTIFACT_BYTES } from "../protocol/artifacts.ts";
import { invalid } from "../shared/errors.ts";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import { isJsonObject, type Json, type JsonObject } from "../shared/json.ts";
import { violations } from "../shared/json-schema/violations.ts";
import { listIds } from "../shared/known-ids.ts";
import { cut, fingerprint, shorten } from "../shared/text.ts";
import { validate } from "../shared/validation.ts";

const MAX_TITLE_LENGTH = 120;
/** Characters of a field in the index, as JSON. */
const MAX_FIELD_LENGTH = 200;
/** Characters of the words of an artifact. Searches do not find later words. */
const MAX_WORDS_LENGTH = 32_000;

const names = z.array(z.string().min(1).max(100)).max(20);
const pathPattern = z
  .string()
  .min(1)
  .max(500)
  .regex(
    /^[^/\\](?:[^\\]*[^/\\])?$/,
    'Must be a path from the root, such as "decisions/*.json", without "/" at its ends.',
  );

const typesSchema = z
  .array(
    z.strictObject({
      id: definitionIdSchema,
      pathPattern,
      schema: withKeywords(schemaCheck).exactOptional(),
      index: z.strictObject({ fields: names.exactOptional(), embed: names.exactOptional() }).exactOptional(),
    }),
  )
  .max(100)
  .refine(
    (types) => new Set(types.map(({ id }) => id)).size === types.length,
    "Two types have the same id. Rename one of them.",
  );

export class ArtifactTypes {
  /** Identifies the rules that make the rows of the index. */
  readonly rules: string;
  readonly #types: readonly (ArtifactType & { pattern: Minimatch })[];

  /** `embedder` names the embedder; without it, artifacts have no vectors. Throws `INVALID_INPUT`. */
  constructor(
    types: readonly ArtifactType[],
    private readonly embedder: string | undefined,
  ) {
    const checked = validate(typesSchema, types, "/artifactTypes", "`artifactTypes`");
    const options = { dot: true, nonegate: true, nocomment: true };
    this.#types = checked.map((type) => ({ ...type, pattern: new Minimatch(type.pathPattern, options) }));
    this.rules = fingerprint(JSON.stringify([checked, embedder]));
  }

  of(path: string): ArtifactType | undefined {
    return this.#types.find(({ pattern }) => pattern.match(path));
  }

  /** Returns the type with an id. Throws `INVALID_INPUT` without it. */
  named(id: string): ArtifactType {
    const type = this.#types.find((one) => one.id === id);
    if (type !== undefined) return type;
    const known = listIds(
      id,
      this.#types.map((one) => one.id),
    );
    throw invalid(`Unknown type "${id}". The types are: ${known}.`);
  }

  /** Returns the type of the content at a path (ARTTYPE-1). Throws `INVALID_INPUT` for content that does not fit, or another type than `wanted`. */
  checked(path: string, content: string, wanted?: string): ArtifactType | undefined {
    const type = this.of(path);
    const other = wanted === undefined ? type : this.named(wanted);
    if (other !== undefined && other !== type) {
      const message = `"${path}" does not have the type "${other.id}". Its paths are like ${other.pathPattern}.`;
      throw invalid(message);
    }
    const problem = type && problemOf(type, path, content);
    if (problem === undefined) return type;
    throw invalid(
      `"${path}" does not fit the type "${type?.id}": ${problem} Change the content, or choose another path.`,
    );
  }

  fitting(path: string, content: string): ArtifactType | undefined {
    const type = this.of(path);
    return type !== undefined && problemOf(type, path, content) === undefined ? type : undefined;
  }

  /** Returns the facts of a file for the index. `vector` is a new id. A file that is no text of an artifact has no words. */
  facts(path: string, oid: string, bytes: Uint8Array, vector: string): ArtifactFacts {
    const content = bytes.length > MAX_ARTIFACT_BYTES ? undefined : decodeText(bytes);
    const type = content === undefined ? undefined : this.fitting(path, content);
    const json = jsonOf(path, content);
    const isEmbedded =
      this.embedder !== undefined && content !== undefined && this.embedText(path, content) !== "";
    return {
      ...{ path, oid, rules: this.rules, type: type?.id ?? null, bytes: bytes.length },
      title: titleOf(json, content),
      fields: isJsonObject(json) ? fieldsOf(json, type?.index?.fields ?? []) : null,
      vector: isEmbedded ? vector : null,
      words: stems(`${path} ${content ?? ""}`),
    };
  }

  /** Returns the text of an artifact that its vector is made of. */
  embedText(path: string, content: string): string {
    const embed = this.of(path)?.index?.embed;
    const json = jsonOf(path, content);
    if (embed === undefined || (embed.length > 0 && !isJsonObject(json))) return content.trim();
    const values = isJsonObject(json) ? embed.map((name) => json[name] ?? "") : [];
    const texts = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
    return texts.join("\n").trim();
  }

  get line(): string {
    return this.#types.map(({ id, pathPattern: pattern }) => `${id} (${pattern})`).join(", ");
  }
}

function problemOf({ schema }: ArtifactType, path: string, content: string): string | undefined {
  if (schema === undefined) return undefined;
  const json = jsonOf(path, content);
  if (json === undefined) return "It must be JSON.";
  const found = violations(schema, json);
  if (found === null) return "Its schema cannot be checked.";
  return found.length === 0 ? undefined : `${found.slice(0, 5).join(". ")}.`;
}

/** Returns the value that a schema checks: the JSON of a JSON file, and the text of any other file. */
function jsonOf(path: string, content: string | undefined): Json | undefined {
  if (content === undefined || !path.endsWith(".json")) return content;
  try {
    return JSON.parse(content) as Json;
  } catch {
    return undefined;
  }
}

function titleOf(json: Json | undefined, content: string | undefined): string {
  const title = isJsonObject(json) ? json.title : content?.split("\n").find((line) => line.trim() !== "");
  return typeof title === "string" ? shorten(title.replace(/^[#\s]+/, "").trim(), MAX_TITLE_LENGTH) : "";
}

function fieldsOf(json: JsonObject, fields: readonly string[]): JsonObject | null {
  const found = fields.flatMap((name): [string, Json][] => {
    const value = Object.hasOwn(json, name) ? json[name] : undefined;
    if (value === undefined) return [];
    const text = JSON.stringify(value);
    return [[name, text.length <= MAX_FIELD_LENGTH ? value : shorten(text, MAX_FIELD_LENGTH)]];
  });
  return found.length === 0 ? null : Object.fromEntries(found);
}

/** Returns the stems of a text, each once, with spaces around them. */
function stems(text: string): string {
  const all = [...new Set(textTerms(text).map(stemOf))].join(" ");
  return ` ${cut(all, MAX_WORDS_LENGTH)} `;
}
