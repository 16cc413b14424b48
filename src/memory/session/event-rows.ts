/**
 * Events and their rows. Pure.
 *
 * EVENT-1  Hydrating what was dehydrated gives the same event: failure flag, model and metadata included.
 * EVENT-2  A row whose action is unknown here stays inert: it hydrates to `unknown`, keeps its stored action and
 *          metadata, and has no message.
 */

import type { ToolCall } from "../../model/messages.ts";
import { isJsonObject, type JsonObject } from "../../shared/json.ts";
import { isCount } from "./events.ts";
import { EventAction, type SessionEvent, type StoredEvent } from "./types.ts";

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
