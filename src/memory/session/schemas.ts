/** What the session methods accept from outside: each input is checked here before it is used. */
import { z } from "zod";
import { type Facts, isJsonObject } from "../../shared/json.ts";
import { EventAction } from "./types.ts";

/** Nesting beyond this is refused: nobody means it, and recursive readers would run out of stack. */
const MAX_JSON_DEPTH = 200;

/** One append or delete may name this many events. */
const MAX_EVENTS_PER_CALL = 10_000;

const jsonObject = z.custom<Facts>(
  (value) => isJsonObject(value) && isJson(value, MAX_JSON_DEPTH),
  "must be an object of JSON values",
);
const identifier = z.string().min(1).max(500);
const milliseconds = z.number().int().nonnegative();

const base = {
  id: identifier,
  sessionId: z.string(),
  seq: z.number(),
  content: z.string(),
  createdAt: milliseconds,
  metadata: jsonObject.exactOptional(),
};
const model = z.string().exactOptional();
const toolCall = z.object({ id: z.string(), name: z.string(), arguments: jsonObject });

const event = z.discriminatedUnion("action", [
  z.object({ ...base, action: z.literal(EventAction.USER_MESSAGE) }),
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
  z.object({ ...base, action: z.literal(EventAction.SYSTEM_INSTRUCTION) }),
  z.object({
    ...base,
    action: z.literal(EventAction.COMPACTION),
    compactedEventCount: z.number().int().nonnegative(),
  }),
]);

export const schemas = {
  sessionId: identifier,
  sessionMetadata: jsonObject.optional(),
  events: z.array(z.preprocess(withoutUndefined, event)).max(MAX_EVENTS_PER_CALL),
  eventIds: z.array(z.string().max(500)).max(MAX_EVENTS_PER_CALL),
  loadOptions: z
    .preprocess(
      withoutUndefined,
      z.object({
        limit: z.number().int().min(0).max(MAX_EVENTS_PER_CALL).exactOptional(),
        since: z.number().exactOptional(),
        actions: z.array(z.enum(EventAction)).exactOptional(),
        tail: z.boolean().exactOptional(),
        before: z.number().int().nonnegative().exactOptional(),
        from: z.number().int().nonnegative().exactOptional(),
        maxBytes: z.number().int().positive().exactOptional(),
      }),
    )
    .optional(),
};

/** A member that is `undefined` is as good as absent. */
function withoutUndefined(value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}

/** Whether `value` survives being written as JSON; members that are `undefined` count as absent. */
function isJson(value: unknown, depth: number): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (depth === 0) return false;
  if (Array.isArray(value)) return value.every((item) => isJson(item, depth - 1));
  if (!isPlainObject(value)) return false;
  return Object.values(value).every((member) => member === undefined || isJson(member, depth - 1));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
