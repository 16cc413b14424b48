/** Schemas of the ids that people choose, and of the free facts about an agent. */
import { z } from "zod";
import { AGENT_ID, DEFINITION_ID } from "./identifiers.ts";
import { type Facts, isJson, isJsonObject, JSON_RULE, UNICODE_RULE } from "./json.ts";
import { JURISDICTIONS } from "./location.ts";
import { fitsUtf8 } from "./utf8.ts";

/** Bytes of an agent's metadata as JSON in UTF-8. */
const MAX_AGENT_METADATA_BYTES = 16 * 1024;

export const agentIdSchema = z.string().regex(AGENT_ID, {
  error: ({ input }) =>
    `An agent's id is 1 to 64 lower-case letters, digits and hyphens, and begins with a letter or a digit.${
      String(input).includes("_") ? ` Only a jurisdiction follows "_": ${JURISDICTIONS.join(", ")}.` : ""
    }`,
});

/** Ids of libraries, definitions and projects. */
export const definitionIdSchema = z
  .string()
  .regex(
    DEFINITION_ID,
    "An id is 1 to 64 letters, digits, underscores and hyphens, and begins with a letter or a digit",
  );

export const agentMetadataSchema = z
  .custom<Facts>(
    (value) => isJsonObject(value) && isJson(value),
    `${JSON_RULE.slice(0, -1)}, with named members.`,
  )
  .meta({ override: { type: "object", additionalProperties: { description: "Any JSON." } } })
  .refine((value) => isWellFormed(value), UNICODE_RULE)
  .refine(
    (value) => fitsUtf8(JSON.stringify(value), MAX_AGENT_METADATA_BYTES),
    `At most ${MAX_AGENT_METADATA_BYTES / 1024} KiB of JSON.`,
  );

/** `JSON.stringify` escapes lone surrogates, so the texts themselves are looked at. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormed(member));
}
