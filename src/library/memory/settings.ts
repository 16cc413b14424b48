/**
 * The settings by which an agent learns, forgets and joins memories.
 *
 * LEARN-8  A persona has one extraction: `extract`, or a hook of its own. A persona that gives both is rejected.
 */
import { z } from "zod";
import type { Consolidation, Persona } from "../../protocol/definitions.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { hookTargetSchema } from "../hooks/hook-forms.ts";
import { isZone } from "./local-time.ts";

type Memory = NonNullable<Persona["memory"]>;

/** Types of memories that one setting names at most. */
const MAX_TYPES = 50;
/** The longest retention, in days: a hundred years. */
const MAX_DAYS = 36_500;
/** The longest time between two consolidations, in hours: a year. */
const MAX_HOURS = 8_784;
/** The largest minimum of a consolidation, which joins no more memories at once. */
const MAX_JOINED = 100;

const type = z.string().min(1).max(200);

const retention: z.ZodType<NonNullable<Memory["retention"]>> = z
  .record(
    type,
    z.strictObject({
      days: z.number().min(0.001, "Must be more than a minute.").max(MAX_DAYS),
      then: z.enum(["archive", "delete"]),
    }),
  )
  .refine((types) => Object.keys(types).length <= MAX_TYPES, `May name ${MAX_TYPES} types.`);

const consolidation: z.ZodType<Consolidation> = z.strictObject({
  types: z.exactOptional(z.array(type).min(1).max(MAX_TYPES)),
  everyHours: z.exactOptional(z.number().min(1).max(MAX_HOURS)),
  minimum: z.exactOptional(z.int().min(2).max(MAX_JOINED)),
  by: z.exactOptional(hookTargetSchema),
});

/** The members of a persona's memory. */
export const learningFields = {
  extract: z.exactOptional(
    z.union([z.boolean(), z.strictObject({ profileId: referenceSchema })], {
      error: "Must be true, false, or {profileId}, with a reference to a model profile.",
    }),
  ),
  timeZone: z.exactOptional(
    z
      .string()
      .max(64)
      .refine((zone) => isZone(zone), "Must be a zone of the IANA database, such as Asia/Tokyo."),
  ),
  retention: z.exactOptional(retention),
  consolidation: z.exactOptional(consolidation),
};

/** Reports that a persona has one extraction at most (LEARN-8). */
export function hasOneExtraction({ extract, memoryExtraction }: Partial<Memory>): boolean {
  return extract === undefined || extract === false || memoryExtraction === undefined;
}
