/**
 * Converts events to messages and back. Pure, so it runs in actors, Workflows and plain Workers. `event-rows.ts` converts events to rows.
 *
 * EVENT-3  Converting an event to a message and back keeps its content. The message's metadata carries a tool's failure flag, the model and
 *          a compaction's count. The event's metadata carries a message's speaker and native form.
 */
import { z } from "zod";
import type { ContextMessage, ContextPart, NativeReply } from "../../model/messages.ts";
import { contentSchema } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import type { Facts } from "../../shared/json.ts";
import { outcomeOf, outcomeText, resultIn } from "./outcome.ts";
import { EventAction, isCount, type SessionEvent } from "./session-event.ts";

/**
 * Returns the message of an event, or `null` if the event is not sent to models.
 *
 * @example const messages = events.map(eventToMessage).filter((message) => message !== null);
 */
export function eventToMessage(event: SessionEvent): ContextMessage | null {
  switch (event.action) {
    case EventAction.USER_MESSAGE:
      return withParts(spoken("user", event.content, event.metadata));
    case EventAction.AGENT_MESSAGE:
      // A model must not mistake the platform's words for its own.
      if (event.metadata?.notice === true)
        return spoken("system", event.content, { ...event.metadata, note: true });
      return spoken("assistant", event.content, withModel(event));
    case EventAction.TOOL_CALL_REQUEST: {
      const { toolCalls, content } = event;
      if (toolCalls.length === 0 && content === "") return null;
      const message = spoken("assistant", content, withModel(event));
      return toolCalls.length === 0 ? message : { ...message, toolCalls };
    }
    case EventAction.TOOL_RESULT:
      return {
        role: "tool",
        content: event.content,
        toolCallId: event.toolCallId,
        ...(event.toolName === "" ? {} : { name: event.toolName }),
        ...kept(event.isSuccess ? event.metadata : { ...event.metadata, isSuccess: false }),
      };
    case EventAction.SYSTEM_INSTRUCTION: {
      const outcome = outcomeOf(event.metadata);
      const content = outcome === null ? event.content : outcomeText(outcome, event.content);
      return spoken("system", content, event.metadata);
    }
    case EventAction.SUPERSESSION:
      return event.content === "" ? null : spoken("system", event.content, { ...event.metadata, note: true });
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

/** Identity of a new event. */
export interface EventOrigin {
  id: string;
  /** Milliseconds since the epoch. */
  timestamp: number;
}

/**
 * Returns the event of a message, ready to be appended; its `seq` is a placeholder. From the message's metadata,
 * `isSuccess: false` of a tool, `model` of an assistant and `compactedEventCount` of a system message become members of
 * the event.
 *
 * @example await agent.appendEvents(id, [messageToEvent(id, { role: "user", content: "Hello" })]);
 */
export function messageToEvent(
  sessionId: string,
  message: ContextMessage,
  origin: EventOrigin = { id: crypto.randomUUID(), timestamp: Date.now() },
): SessionEvent {
  const { role, name, native, toolCalls = [] } = message;
  const content = role === "system" ? (resultIn(message) ?? message.content) : message.content;
  const base = { ...origin, sessionId, seq: 0, content };
  const facts: Facts = {
    ...message.metadata,
    ...(role === "tool" ? {} : defined({ name })),
    ...(role === "assistant" ? defined({ native }) : {}),
  };
  switch (role) {
    case "user":
      return { ...base, action: EventAction.USER_MESSAGE, ...kept(withSentParts(facts, message.parts)) };
    case "assistant": {
      const { model, ...rest } = facts;
      const own = typeof model === "string" ? { model, ...kept(rest) } : kept(facts);
      return toolCalls.length > 0
        ? { ...base, action: EventAction.TOOL_CALL_REQUEST, toolCalls, ...own }
        : { ...base, action: EventAction.AGENT_MESSAGE, ...own };
    }
    case "tool": {
      const { isSuccess, ...rest } = facts;
      return {
        ...base,
        action: EventAction.TOOL_RESULT,
        toolCallId: message.toolCallId ?? "",
        toolName: name ?? "",
        isSuccess: isSuccess !== false,
        ...kept(typeof isSuccess === "boolean" ? rest : facts),
      };
    }
    case "system": {
      const { compactedEventCount, ...rest } = facts;
      return isCount(compactedEventCount)
        ? { ...base, action: EventAction.COMPACTION, compactedEventCount, ...kept(rest) }
        : { ...base, action: EventAction.SYSTEM_INSTRUCTION, ...kept(facts) };
    }
    default:
      return role satisfies never;
  }
}

/** Builds a message. Takes a valid speaker and native form from the event's metadata. */
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
    ...kept({ ...rest, ...(isNamed ? {} : defined({ name })), ...(isNative ? {} : defined({ native })) }),
  };
}

function withParts(message: ContextMessage): ContextMessage {
  if (message.metadata?.parts === undefined) return message;
  const sent = contentSchema.safeParse(message.metadata.parts).data;
  if (sent === undefined || typeof sent === "string") return message;
  const parts = sent.map((part): ContextPart => {
    if (part.type === "text") return part;
    const { type, url, mediaType, name } = part;
    return { type, source: { url }, ...defined({ mediaType, name }) };
  });
  return parts.some(({ type }) => type !== "text") ? { ...message, parts } : message;
}

/** Adds the parts of a message to the metadata, unless the metadata already contain them. */
function withSentParts(metadata: Facts, parts: ContextPart[] | undefined): Facts {
  if (parts === undefined || metadata.parts !== undefined) return metadata;
  const sent = parts.map((part) => {
    if (part.type === "text") return part;
    const { source, ...rest } = part;
    const { mediaType = "application/octet-stream" } = part;
    return { ...rest, url: "url" in source ? source.url : `data:${mediaType};base64,${source.base64}` };
  });
  return { ...metadata, parts: sent };
}

function withModel({ model, metadata }: { model?: string; metadata?: Facts }): Facts {
  return { ...metadata, ...defined({ model }) };
}

function kept(metadata: Facts | undefined): { metadata?: Facts } {
  return metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata };
}

const facts = z.record(z.string(), z.unknown());
const index = z.int().nonnegative();

const nativeReplySchema = z.strictObject({
  provider: z.string(),
  modelId: z.string(),
  parts: z.array(
    z.discriminatedUnion("type", [
      z.strictObject({ type: z.literal("text"), length: index, extra: facts.optional() }),
      z.strictObject({ type: z.literal("tool-call"), index, extra: facts.optional() }),
      z.strictObject({ type: z.literal("block"), value: facts }),
    ]),
  ),
});

function isNativeReply(value: unknown): value is NativeReply {
  return nativeReplySchema.safeParse(value).success;
}
