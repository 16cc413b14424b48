/** Validates the input of the session methods. */
import { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { type Facts, isJsonObject, isJsonWithin, isPlainObject } from "../../shared/json.ts";
import { MAX_PAGE_SIZE } from "../../shared/page.ts";
import { EventAction } from "./session-event.ts";

/** Maximum nesting of JSON values: deeper values would exhaust the stack of recursive readers. */
const MAX_JSON_DEPTH = 200;

/** Maximum length of the id of a session or an event, in UTF-16 units. */
const MAX_ID_LENGTH = 500;

/** Maximum number of events in one append, delete or read. */
const MAX_EVENTS_PER_CALL = 10_000;

const jsonObject = z.custom<Facts>(
  (value) => isJsonObject(value) && isJsonWithin(value, MAX_JSON_DEPTH, { skipUndefined: true }),
  "must be an object of JSON values",
);
const identifier = z.string().min(1).max(MAX_ID_LENGTH);
const count = z.number().int().nonnegative();

const base = {
  id: identifier,
  sessionId: z.string(),
  seq: z.number(),
  content: z.string(),
  timestamp: count,
  metadata: jsonObject.exactOptional(),
};
const model = z.string().exactOptional();
const toolCall = z.object({ id: z.string(), name: z.string(), arguments: jsonObject });

const event = z.discriminatedUnion("action", [
  z.object({
    ...base,
    action: z.literal([EventAction.USER_MESSAGE, EventAction.SYSTEM_INSTRUCTION, EventAction.SUPERSESSION]),
  }),
  z.object({ ...base, action: z.literal(EventAction.AGENT_MESSAGE), model }),
  z.object({
    ...base,
    action: z.literal(EventAction.TOOL_CALL_REQUEST),
    model,
    toolCalls: z.array(toolCall),
  }),
  z.object({
    ...base,
    action: z.literal(EventAction.TOOL_RESULT),
    toolCallId: z.string(),
    toolName: z.string(),
    isSuccess: z.boolean(),
  }),
  z.object({ ...base, action: z.literal(EventAction.COMPACTION), compactedEventCount: count }),
]);

export const schemas = {
  sessionId: identifier,
  sessionMetadata: jsonObject.optional(),
  events: z.array(z.preprocess(withoutUndefined, event)).max(MAX_EVENTS_PER_CALL),
  eventIds: z.array(z.string().max(MAX_ID_LENGTH)).max(MAX_EVENTS_PER_CALL),
  listOptions: z
    .preprocess(
      withoutUndefined,
      z.strictObject({
        limit: z.int().min(1).max(MAX_PAGE_SIZE).exactOptional(),
        cursor: identifier.exactOptional(),
        order: z.enum(["asc", "desc"]).exactOptional(),
      }),
    )
    .optional(),
  loadOptions: z
    .preprocess(
      withoutUndefined,
      z.object({
        limit: count.max(MAX_EVENTS_PER_CALL).exactOptional(),
        since: z.number().exactOptional(),
        actions: z.array(z.enum(EventAction)).exactOptional(),
        tail: z.boolean().exactOptional(),
        before: count.exactOptional(),
        from: count.exactOptional(),
        maxBytes: z.number().int().positive().exactOptional(),
      }),
    )
    .optional(),
};

/** Treats members that are `undefined` as absent. */
function withoutUndefined(value: unknown): unknown {
  return isPlainObject(value) ? defined(value) : value;
}
