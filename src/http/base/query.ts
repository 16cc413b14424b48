/**
 * Query and path parameters.
 *
 * QUERY-3  A list or a search refuses unknown query parameters, and names the known parameters. Other routes ignore them. A parameter with
 *          one value is refused if it is repeated.
 */
import { z } from "zod";
import { FRAME_TYPES, type SelectableType } from "../../protocol/frame-filter.ts";
import { ids, runId } from "../../protocol/scalars.ts";
import type { InputIssue } from "../../shared/errors.ts";
import { CURSOR_RULE, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from "../../shared/page.ts";
import { issueAt, jsonPointer } from "../../shared/validation.ts";
import { noConversation, nothingNamed } from "./respond.ts";

const LIMIT_RULE = `Must be an integer from 1 to ${MAX_PAGE_SIZE}.`;

export function filter(description: string) {
  return z.string().min(1).max(200).describe(description).exactOptional();
}

/** Returns the schema of the filter `since` or `until`. Its value is in milliseconds since the epoch. */
export function timeFilter(edge: "since" | "until", description: string) {
  return z
    .union(
      [z.iso.datetime({ offset: true }), z.iso.date(), z.string().regex(/^[0-9]{4}-(?:0[1-9]|1[0-2])$/)],
      "Must be a month such as `2026-01`, a day such as `2026-01-31`, or a time such as `2026-01-31T12:00:00Z`.",
    )
    .meta({
      description: `${description} A day or a month, in UTC, ${edge === "since" ? "counts from its beginning" : "is included"}.`,
      example: "2026-01-31T12:00:00Z",
    })
    .transform((text) => (edge === "since" ? Date.parse(text) : endOf(text)))
    .exactOptional();
}

/** Returns the end of a day or a month in UTC, or a time itself. */
function endOf(text: string): number {
  const end = new Date(text);
  if (text.length === "2026-01".length) end.setUTCMonth(end.getUTCMonth() + 1);
  if (text.length === "2026-01-31".length) end.setUTCDate(end.getUTCDate() + 1);
  return end.getTime();
}

export const pageSchema = z.object({
  limit: z
    .string()
    .regex(/^[0-9]{1,3}$/, LIMIT_RULE)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MAX_PAGE_SIZE, LIMIT_RULE)
    .meta({
      description: `Page size, from 1 to ${MAX_PAGE_SIZE}. Default: ${DEFAULT_PAGE_SIZE}.`,
      example: `${DEFAULT_PAGE_SIZE}`,
    })
    .exactOptional(),
  cursor: z
    .string()
    .min(1, CURSOR_RULE)
    .max(512, "Must be the `nextCursor` of an answer: it has at most 512 characters.")
    .describe("The `nextCursor` of the previous page.")
    .exactOptional(),
  order: z
    .enum(["asc", "desc"], "Must be `asc` or `desc`.")
    .describe("Order by creation. Default: `asc`.")
    .exactOptional(),
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

export const filterQuery = {
  types: z
    .string()
    .refine(
      (text) => text.split(",").every((type) => FRAME_TYPES.has(type)),
      `Must be types of frames with commas between them. Known: ${[...FRAME_TYPES].join(", ")}.`,
    )
    // SAFETY: the line above.
    .transform((text) => text.split(",") as SelectableType[])
    .meta({
      description: "Only frames of these types, with commas between them.",
      example: "turn.completed,turn.failed",
    })
    .optional(),
  deltas: z
    .enum(["true", "false"], "Must be `true` or `false`.")
    .transform((text) => text === "true")
    .describe("No text in progress if `false`.")
    .optional(),
};

/** The header of a reconnecting `EventSource`. It is later than `from`, so it has precedence. */
export const positionHeader = z.object({
  "Last-Event-ID": z
    .preprocess((value) => (value === "" ? undefined : value), positionSchema.optional())
    .optional()
    .describe("As `from`. Has precedence over `from`."),
});

function kindOf(schema: unknown): string {
  const kinds = Object.entries({ ...ids, run: runId });
  return kinds.find(([, own]) => own === schema)?.[0] ?? "resource";
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
  const kind = name === "id" ? kindOf(schema.shape.id) : name.replace(/Id$/, "");
  throw nothingNamed(kind, value);
}
