/**
 * Query and path parameters.
 *
 * QUERY-3  A list or a search refuses unknown query parameters, and names the known parameters. Other routes ignore them.
 */
import { z } from "zod";
import { ids } from "../../protocol/scalars.ts";
import type { InputIssue } from "../../shared/errors.ts";
import { CURSOR_RULE, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from "../../shared/page.ts";
import { issueAt, jsonPointer, validate } from "../../shared/validation.ts";
import { noConversation, nothingNamed } from "./respond.ts";

const LIMIT_RULE = `Must be an integer from 1 to ${MAX_PAGE_SIZE}.`;

/** The query of a list. */
export const pageSchema = z.object({
  limit: z.exactOptional(
    z
      .string()
      .regex(/^[0-9]{1,3}$/, LIMIT_RULE)
      .transform(Number)
      .refine((limit) => limit >= 1 && limit <= MAX_PAGE_SIZE, LIMIT_RULE)
      .meta({
        description: `Page size, from 1 to ${MAX_PAGE_SIZE}. Default: ${DEFAULT_PAGE_SIZE}.`,
        example: `${DEFAULT_PAGE_SIZE}`,
      }),
  ),
  cursor: z.exactOptional(
    z
      .string()
      .min(1, CURSOR_RULE)
      .max(512, "Must be the `nextCursor` of an answer: it has at most 512 characters.")
      .meta({ description: "The `nextCursor` of the previous page." }),
  ),
  order: z.exactOptional(
    z
      .enum(["asc", "desc"], "Must be `asc` or `desc`.")
      .meta({ description: "Order by creation. Default: `asc`." }),
  ),
});

/** Returns an issue for each parameter of a list that is not known (QUERY-3). */
export function unknownParameters(known: readonly string[], given: readonly string[]): InputIssue[] {
  return given
    .filter((name) => !known.includes(name))
    .map((name) => issueAt(jsonPointer([name]), `Unknown query parameter. Known: ${known.join(", ")}.`));
}

export const positionSchema = z
  .string()
  .regex(/^[0-9]{1,15}$/, "Must be a `seq`: an integer, 0 or more.")
  .transform(Number)
  .meta({ description: "The last `seq` that the client has received.", example: "7" });

/**
 * Returns the position from which a stream of events continues. Absent: from the beginning. The `Last-Event-ID` of a
 * reconnecting `EventSource` is later than `from`, so it has precedence. Throws `INVALID_INPUT`.
 */
export function streamPosition(from: string | undefined, lastEventId?: string): number | undefined {
  if (lastEventId !== undefined && lastEventId !== "")
    return validate(positionSchema, lastEventId, "/last-event-id");
  return from === undefined ? undefined : validate(positionSchema, from, "/from");
}

/** Reads the parameters of the request's path. Throws `NOT_FOUND` if a parameter cannot exist. */
export function pathParams<Schema extends z.ZodObject>(
  schema: Schema,
  request: { param(): Record<string, string> },
): z.output<Schema> {
  const parsed = schema.safeParse(request.param());
  if (parsed.success) return parsed.data;
  const name = String(parsed.error.issues[0]?.path[0] ?? "id");
  const value = request.param()[name] ?? "";
  if (name === "id" && schema.shape.id === ids.conversation) throw noConversation(value);
  const kind = name === "id" ? "resource" : name.replace(/Id$/, "");
  throw nothingNamed(kind, value);
}
