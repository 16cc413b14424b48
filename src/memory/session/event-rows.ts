/**
 * Converts events to rows and back. Pure.
 *
 * EVENT-1  Hydrating a dehydrated event gives the same event, including failure flag, model and metadata.
 * EVENT-2  A row with an unknown action hydrates to `unknown`. It keeps its stored action and metadata, and has no message.
 */
import type { ToolCall } from "../../model/messages.ts";
import { defined } from "../../shared/defined.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../../shared/json.ts";
import { EventAction, isCount, type SessionEvent, type StoredEvent } from "./session-event.ts";

/**
 * Returns the event of a row. Defaults for missing facts: no calls, a successful result, no compacted events.
 *
 * @example const event = hydrateEvent(row);
 */
export function hydrateEvent(row: StoredEvent): SessionEvent {
  const facts = parseObject(row.metadata);
  const base = {
    id: row.id,
    sessionId: row.session_id,
    seq: row.seq,
    content: row.content ?? "",
    timestamp: row.created_at,
  };
  const model = typeof facts.model === "string" ? facts.model : undefined;
  const metadata = isJsonObject(facts.metadata) ? facts.metadata : undefined;
  const own = { ...base, ...defined({ metadata }) };
  switch (row.action) {
    case EventAction.USER_MESSAGE:
    case EventAction.SYSTEM_INSTRUCTION:
    case EventAction.SUPERSESSION:
      return { ...own, action: row.action };
    case EventAction.AGENT_MESSAGE:
      return { ...own, action: row.action, ...defined({ model }) };
    case EventAction.TOOL_CALL_REQUEST:
      return { ...own, action: row.action, toolCalls: toolCallsOf(facts.toolCalls), ...defined({ model }) };
    case EventAction.TOOL_RESULT:
      return {
        ...own,
        action: row.action,
        toolCallId: textOf(facts.toolCallId),
        toolName: textOf(facts.toolName),
        isSuccess: facts.isSuccess !== false,
      };
    case EventAction.COMPACTION: {
      const { compactedEventCount: count } = facts;
      return { ...own, action: row.action, compactedEventCount: isCount(count) ? count : 0 };
    }
    default: {
      const kept = row.metadata === null ? {} : { metadata: facts };
      return { ...base, action: "unknown", storedAction: row.action, ...kept };
    }
  }
}

export function dehydrateEvent(event: SessionEvent): StoredEvent {
  return {
    id: event.id,
    session_id: event.sessionId,
    seq: event.seq,
    action: event.action === "unknown" ? event.storedAction : event.action,
    content: event.content,
    metadata: metadataText(event),
    created_at: event.timestamp,
  };
}

/** Returns a text that is equal for events with equal content, regardless of number and time. */
export function contentText(event: SessionEvent): string {
  const { action, content, metadata } = dehydrateEvent(event);
  return canonicalJson([action, content, parseObject(metadata)]);
}

/** The members of the metadata column. The event's own metadata is nested, so its keys cannot collide. */
const FACTS = [
  "toolCalls",
  "model",
  "toolCallId",
  "toolName",
  "isSuccess",
  "compactedEventCount",
  "metadata",
];

function metadataText(event: SessionEvent): string | null {
  if (event.action === "unknown") return event.metadata === undefined ? null : JSON.stringify(event.metadata);
  const members: ReadonlyMap<string, unknown> = new Map(Object.entries(event));
  const text = JSON.stringify(Object.fromEntries(FACTS.map((name) => [name, members.get(name)])));
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
