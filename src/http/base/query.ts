/** Query parameters: the known ones are checked, the unknown ones ignored. */
import { z } from "zod";
import type { PageOptions } from "../../shared/page.ts";
import { validate } from "../../shared/validation.ts";

const MAX_LIMIT = 200;

/** The query of a list. */
export const pageSchema = z.object({
  limit: z.exactOptional(
    z
      .string()
      .regex(/^[0-9]{1,3}$/, `Must be an integer from 1 to ${MAX_LIMIT}.`)
      .transform(Number)
      .refine((limit) => limit >= 1 && limit <= MAX_LIMIT, `Must be an integer from 1 to ${MAX_LIMIT}.`)
      .meta({
        description: `How many a page has at most, from 1 to ${MAX_LIMIT}; 50 when absent.`,
        example: "50",
      }),
  ),
  cursor: z.exactOptional(
    z
      .string()
      .min(1, "Must be the `nextCursor` of an answer.")
      .max(512, "Is longer than any cursor.")
      .meta({ description: "The `nextCursor` of the page before." }),
  ),
  order: z.exactOptional(
    z
      .enum(["asc", "desc"], "Must be `asc` or `desc`.")
      .meta({ description: "By creation; `asc` when absent." }),
  ),
});

/** Where a stream continues. */
export const positionSchema = z
  .string()
  .regex(/^[0-9]{1,15}$/, "Must be the `seq` of a frame: a whole number, 0 or more.")
  .transform(Number)
  .meta({ description: "The `seq` of the last frame that was seen.", example: "7" });

/** `limit`, `cursor` and `order`; throws `INVALID_INPUT`. */
export function pageOptions(query: Record<string, string>): PageOptions {
  return validate(pageSchema, query);
}

/**
 * Where a stream of events continues: `from`, or the `Last-Event-ID` that a reconnecting `EventSource` sends, which
 * wins because it is later. Absent = begin with a snapshot. Throws `INVALID_INPUT`.
 */
export function streamPosition(from: string | undefined, lastEventId?: string): number | undefined {
  if (lastEventId !== undefined && lastEventId !== "")
    return validate(positionSchema, lastEventId, "/last-event-id");
  return from === undefined ? undefined : validate(positionSchema, from, "/from");
}
