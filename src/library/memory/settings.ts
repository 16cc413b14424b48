/**
 * The settings for extracting, expiring and consolidating memories.
 *
 * LEARN-8  A persona has one extraction: `extract` or the hook `memoryExtraction`. A persona with both is rejected.
 */
import { z } from "zod";
import type { Persona } from "../../protocol/definitions.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { hookTargetSchema } from "../hooks/hook-forms.ts";
import { isZone } from "./local-time.ts";

type Memory = NonNullable<Persona["memory"]>;

/** Maximum number of memory types in one setting. */
const MAX_TYPES = 50;
/** The longest retention, in days: a hundred years. */
const MAX_DAYS = 36_500;
/** The longest time between two consolidations, in hours: a year. */
const MAX_HOURS = 8_784;
/** Maximum of `minimum`. A consolidation combines at most this number of memories at once. */
const MAX_JOINED = 100;

const type = z.string().min(1).max(200);

const retention = z
  .record(
    type,
    z.strictObject({
      days: z.number().min(0.001, "Must be more than a minute.").max(MAX_DAYS),
      then: z.enum(["archive", "delete"]),
    }),
  )
  .refine((types) => Object.keys(types).length <= MAX_TYPES, `May name at most ${MAX_TYPES} types.`);

const consolidation = z.strictObject({
  types: z.array(type).min(1).max(MAX_TYPES).exactOptional(),
  everyHours: z.number().min(1).max(MAX_HOURS).exactOptional(),
  minimum: z.int().min(2).max(MAX_JOINED).exactOptional(),
  by: hookTargetSchema.exactOptional(),
});

/** The fields of a persona's memory for these settings. */
export const learningFields = {
  extract: z
    .union([z.boolean(), z.strictObject({ profileId: referenceSchema })], {
      error: "Must be true, false, or {profileId}, with a reference to a model profile.",
    })
    .exactOptional(),
  timeZone: z
    .string()
    .max(64)
    .refine((zone) => isZone(zone), "Must be a zone of the IANA database, such as Asia/Tokyo.")
    .exactOptional(),
  retention: retention.exactOptional(),
  consolidation: consolidation.exactOptional(),
};

/** Reports whether a persona has at most one extraction (LEARN-8). */
export function hasOneExtraction({ extract, memoryExtraction }: Partial<Memory>): boolean {
  return extract === undefined || extract === false || memoryExtraction === undefined;
}
