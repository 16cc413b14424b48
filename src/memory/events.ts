/**
 * Events, rows and messages: how each becomes the others. Pure, so it runs in actors, Workflows and plain Workers.
 *
 * EVENT-1  Hydrating what was dehydrated gives the same event: failure flag, model and metadata included.
 * EVENT-2  A row whose action is unknown here stays inert: it hydrates to `unknown`, keeps its stored action and
 *          metadata, and has no message.
 * EVENT-3  A message made from an event and made into an event again keeps what the event said: the flag of a failed
 *          tool, the model and a compaction's count travel in the message's metadata.
 */
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import {
  type ContextMessage,
  EventAction,
  type Facts,
  type SessionEvent,
  type StoredEvent,
  type ToolCall,
} from "./types.ts";

/** The typed event of a row. Missing facts take their defaults: no calls, a successful result, nothing compacted. */
export function hydrateEvent(row: StoredEvent): SessionEvent {
  const stored = parseObject(row.metadata);
  const base = {
    id: row.id,
    sessionId: row.session_id,
    seq: row.seq,
    content: row.content ?? "",
    createdAt: row.created_at,
    ...(isJsonObject(stored.metadata) ? { metadata: stored.metadata } : {}),
  };
  const model = typeof stored.model === "string" ? { model: stored.model } : {};
  switch (row.action) {
    case EventAction.USER_MESSAGE:
    case EventAction.SYSTEM_INSTRUCTION:
      return { ...base, action: row.action };
    case EventAction.AGENT_MESSAGE:
      return { ...base, action: row.action, ...model };
    case EventAction.TOOL_CALL_REQUEST:
      return { ...base, action: row.action, toolCalls: toolCallsOf(stored.toolCalls), ...model };
    case EventAction.TOOL_RESULT:
      return {
        ...base,
        action: row.action,
        toolCallId: textOf(stored.toolCallId),
        toolName: textOf(stored.toolName),
        isSuccess: stored.isSuccess !== false,
      };
    case EventAction.COMPACTION:
      return { ...base, action: row.action, compactedEventCount: countOf(stored.compactedEventCount) };
    default: {
      const { metadata: _, ...rest } = base;
      const kept = row.metadata === null ? {} : { metadata: stored };
      return { ...rest, action: "unknown", storedAction: row.action, ...kept };
    }
  }
}

/** The row of an event. */
export function dehydrateEvent(event: SessionEvent): StoredEvent {
  return {
    id: event.id,
    session_id: event.sessionId,
    seq: event.seq,
    action: event.action === "unknown" ? event.storedAction : event.action,
    content: event.content,
    metadata: metadataText(event),
    created_at: event.createdAt,
  };
}

/** The message a model gets for an event; `null` for what no model should see. */
export function eventToMessage(event: SessionEvent): ContextMessage | null {
  switch (event.action) {
    case EventAction.USER_MESSAGE:
      return message("user", event.content, event.metadata);
    case EventAction.AGENT_MESSAGE:
      return message("assistant", event.content, withModel(event));
    case EventAction.TOOL_CALL_REQUEST: {
      if (event.toolCalls.length === 0 && event.content === "") return null;
      const spoken = message("assistant", event.content, withModel(event));
      return event.toolCalls.length === 0 ? spoken : { ...spoken, toolCalls: event.toolCalls };
    }
    case EventAction.TOOL_RESULT:
      return {
        ...message(
          "tool",
          event.content,
          event.isSuccess ? event.metadata : { ...event.metadata, isSuccess: false },
        ),
        toolCallId: event.toolCallId,
        ...(event.toolName === "" ? {} : { name: event.toolName }),
      };
    case EventAction.SYSTEM_INSTRUCTION:
      return message("system", event.content, event.metadata);
    case EventAction.COMPACTION:
      return message("system", event.content, {
        ...event.metadata,
        compactedEventCount: event.compactedEventCount,
      });
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
  const base = { ...origin, sessionId, seq: 0, content: message.content };
  switch (message.role) {
    case "user":
      return { ...base, action: EventAction.USER_MESSAGE, ...kept(message.metadata) };
    case "assistant": {
      const { model, ...rest } = message.metadata ?? {};
      const facts = typeof model === "string" ? { model, ...kept(rest) } : kept(message.metadata);
      return message.toolCalls !== undefined && message.toolCalls.length > 0
        ? { ...base, action: EventAction.TOOL_CALL_REQUEST, toolCalls: message.toolCalls, ...facts }
        : { ...base, action: EventAction.AGENT_MESSAGE, ...facts };
    }
    case "tool": {
      const { isSuccess, ...rest } = message.metadata ?? {};
      return {
        ...base,
        action: EventAction.TOOL_RESULT,
        toolCallId: message.toolCallId ?? "",
        toolName: message.name ?? "",
        isSuccess: isSuccess !== false,
        ...kept(typeof isSuccess === "boolean" ? rest : message.metadata),
      };
    }
    case "system": {
      const { compactedEventCount: count, ...rest } = message.metadata ?? {};
      return isCount(count)
        ? { ...base, action: EventAction.COMPACTION, compactedEventCount: count, ...kept(rest) }
        : { ...base, action: EventAction.SYSTEM_INSTRUCTION, ...kept(message.metadata) };
    }
    default:
      return message.role satisfies never;
  }
}

function message(role: ContextMessage["role"], content: string, metadata: Facts | undefined): ContextMessage {
  return { role, content, ...kept(metadata) };
}

function withModel(event: { model?: string; metadata?: Facts }): Facts | undefined {
  return event.model === undefined ? event.metadata : { ...event.metadata, model: event.model };
}

/** Empty metadata is no metadata. */
function kept(metadata: Facts | undefined): { metadata?: Facts } {
  return metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata };
}

/** The facts beside the content as JSON; the event's own metadata stands apart, so that no key of it can be mistaken. */
function metadataText(event: SessionEvent): string | null {
  const { metadata } = event;
  switch (event.action) {
    case EventAction.USER_MESSAGE:
    case EventAction.SYSTEM_INSTRUCTION:
      return objectText({ metadata });
    case EventAction.AGENT_MESSAGE:
      return objectText({ model: event.model, metadata });
    case EventAction.TOOL_CALL_REQUEST:
      return objectText({ toolCalls: event.toolCalls, model: event.model, metadata });
    case EventAction.TOOL_RESULT: {
      const { toolCallId, toolName, isSuccess } = event;
      return objectText({ toolCallId, toolName, isSuccess, metadata });
    }
    case EventAction.COMPACTION:
      return objectText({ compactedEventCount: event.compactedEventCount, metadata });
    case "unknown":
      return metadata === undefined ? null : JSON.stringify(metadata);
    default:
      return event satisfies never;
  }
}

function objectText(facts: Record<string, unknown>): string | null {
  const text = JSON.stringify(facts);
  return text === "{}" ? null : text;
}

function parseObject(text: string | null): JsonObject {
  if (text === null) return {};
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function toolCallsOf(value: unknown): ToolCall[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isJsonObject).map((call) => ({
    id: textOf(call.id),
    name: textOf(call.name),
    arguments: isJsonObject(call.arguments) ? call.arguments : {},
  }));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function countOf(value: unknown): number {
  return isCount(value) ? value : 0;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
