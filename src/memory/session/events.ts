/**
 * Events and messages: what a model is told of an event, and the event of a message. Pure, so it runs in actors,
 * Workflows and plain Workers. `event-rows.ts` has the other half: events and their rows.
 *
 * EVENT-3  A message made from an event and made into an event again keeps what the event said: the flag of a failed
 *          tool, the model and a compaction's count travel in the message's metadata; a message's name of who speaks
 *          and its native form travel in the event's.
 */

import type { ContextMessage, ContextPart } from "../../model/messages.ts";
import { contentSchema } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import type { Facts } from "../../shared/json.ts";
import { isNativeReply } from "./native-reply.ts";
import { EventAction, type SessionEvent } from "./types.ts";

/** The message a model gets for an event; `null` for what no model should see. */
export function eventToMessage(event: SessionEvent): ContextMessage | null {
  switch (event.action) {
    case EventAction.USER_MESSAGE:
      return withParts(spoken("user", event.content, event.metadata));
    case EventAction.AGENT_MESSAGE:
      return spoken("assistant", event.content, withModel(event));
    case EventAction.TOOL_CALL_REQUEST: {
      if (event.toolCalls.length === 0 && event.content === "") return null;
      const message = spoken("assistant", event.content, withModel(event));
      return event.toolCalls.length === 0 ? message : { ...message, toolCalls: event.toolCalls };
    }
    case EventAction.TOOL_RESULT:
      return {
        role: "tool",
        content: event.content,
        toolCallId: event.toolCallId,
        ...(event.toolName === "" ? {} : { name: event.toolName }),
        ...kept(event.isSuccess ? event.metadata : { ...event.metadata, isSuccess: false }),
      };
    case EventAction.SYSTEM_INSTRUCTION:
      return spoken("system", event.content, event.metadata);
    case EventAction.COMPACTION: {
      const { compactedEventCount, metadata } = event;
      return spoken("system", event.content, { ...metadata, compactedEventCount });
    }
    case "unknown":
      return null;
    default:
      return event satisfies never;
  }
}

/** Who an event is and when it came to be, where the caller knows better than the platform. */
export interface EventOrigin {
  id: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/**
 * The event of a message, ready to be appended: `seq` is a placeholder. In a message's metadata `isSuccess: false`
 * (of a tool's), `model` (an assistant's) and `compactedEventCount` (a system message's) become the event's own facts.
 */
export function messageToEvent(
  sessionId: string,
  message: ContextMessage,
  origin: EventOrigin = { id: crypto.randomUUID(), createdAt: Date.now() },
): SessionEvent {
  const { role, content, name, native, metadata } = message;
  const base = { ...origin, sessionId, seq: 0, content };
  const named = name === undefined || role === "tool" ? metadata : { ...metadata, name };
  const said = native === undefined || role !== "assistant" ? named : { ...named, native };
  switch (role) {
    case "user":
      return { ...base, action: EventAction.USER_MESSAGE, ...kept(withSentParts(said, message.parts)) };
    case "assistant": {
      const { model, ...rest } = said ?? {};
      const facts = typeof model === "string" ? { model, ...kept(rest) } : kept(said);
      return message.toolCalls !== undefined && message.toolCalls.length > 0
        ? { ...base, action: EventAction.TOOL_CALL_REQUEST, toolCalls: message.toolCalls, ...facts }
        : { ...base, action: EventAction.AGENT_MESSAGE, ...facts };
    }
    case "tool": {
      const { isSuccess, ...rest } = said ?? {};
      return {
        ...base,
        action: EventAction.TOOL_RESULT,
        toolCallId: message.toolCallId ?? "",
        toolName: name ?? "",
        isSuccess: isSuccess !== false,
        ...kept(typeof isSuccess === "boolean" ? rest : said),
      };
    }
    case "system": {
      const { compactedEventCount, ...rest } = said ?? {};
      return isCount(compactedEventCount)
        ? { ...base, action: EventAction.COMPACTION, compactedEventCount, ...kept(rest) }
        : { ...base, action: EventAction.SYSTEM_INSTRUCTION, ...kept(said) };
    }
    default:
      return role satisfies never;
  }
}

/** What someone said. Who it was stands in the event's metadata, where it is known. */
function spoken(
  role: Exclude<ContextMessage["role"], "tool">,
  content: string,
  metadata: Facts | undefined,
): ContextMessage {
  const { name, native, ...rest } = metadata ?? {};
  const isNamed = typeof name === "string";
  const isNative = role === "assistant" && native !== undefined && isNativeReply(native);
  return {
    role,
    content,
    ...(isNamed ? { name } : {}),
    ...(isNative ? { native } : {}),
    ...kept({
      ...rest,
      ...(isNamed || name === undefined ? {} : { name }),
      ...(isNative || native === undefined ? {} : { native }),
    }),
  };
}

/** What was sent beside text stands in the metadata, as it was sent. */
function withParts(message: ContextMessage): ContextMessage {
  if (message.metadata?.parts === undefined) return message;
  const sent = contentSchema.safeParse(message.metadata.parts).data;
  if (sent === undefined || typeof sent === "string") return message;
  const parts = sent.map((part): ContextPart => {
    if (part.type === "text") return part;
    const { type, url, mediaType, name } = part;
    return {
      type,
      source: { url },
      ...defined({ mediaType, name }),
    };
  });
  return parts.some(({ type }) => type !== "text") ? { ...message, parts } : message;
}

/** The other way round, where the metadata do not say it already. */
function withSentParts(metadata: Facts | undefined, parts: ContextPart[] | undefined): Facts | undefined {
  if (parts === undefined || metadata?.parts !== undefined) return metadata;
  const sent = parts.map((part) => {
    if (part.type === "text") return part;
    const { source, ...rest } = part;
    const { mediaType = "application/octet-stream" } = part;
    return { ...rest, url: "url" in source ? source.url : `data:${mediaType};base64,${source.base64}` };
  });
  return { ...metadata, parts: sent };
}

function withModel(event: { model?: string; metadata?: Facts }): Facts | undefined {
  return event.model === undefined ? event.metadata : { ...event.metadata, model: event.model };
}

/** Empty metadata is no metadata. */
function kept(metadata: Facts | undefined): { metadata?: Facts } {
  return metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata };
}

/** Whether `value` can be a count of events. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
