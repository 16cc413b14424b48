/** The vocabulary of sessions: events, their actions, and the rows of events and sessions. */
import type { ToolCall } from "../../model/messages.ts";
import type { Facts } from "../../shared/json.ts";

/** The kinds of session events. The values are stored and never change. */
export enum EventAction {
  USER_MESSAGE = "user_message",
  AGENT_MESSAGE = "agent_message",
  TOOL_CALL_REQUEST = "tool_call_request",
  TOOL_RESULT = "tool_result",
  SYSTEM_INSTRUCTION = "system_instruction",
  COMPACTION = "compaction",
  SUPERSESSION = "supersession",
}

interface EventBase {
  id: string;
  sessionId: string;
  /** Position in the session: from 0, ascending, never reused. */
  seq: number;
  content: string;
  /** Milliseconds since the epoch. */
  timestamp: number;
  /** Facts in addition to the content, such as usage, finish reason or origin. */
  metadata?: Facts;
}

export type SessionEvent =
  | (EventBase & { action: EventAction.USER_MESSAGE })
  | (EventBase & { action: EventAction.AGENT_MESSAGE; model?: string })
  | (EventBase & { action: EventAction.TOOL_CALL_REQUEST; toolCalls: ToolCall[]; model?: string })
  | (EventBase & {
      action: EventAction.TOOL_RESULT;
      toolCallId: string;
      toolName: string;
      isSuccess: boolean;
    })
  | (EventBase & { action: EventAction.SYSTEM_INSTRUCTION })
  /**
   * A summary that replaces earlier events in contexts. `compactedEventCount` counts from the start of the session,
   * including deleted events: it covers all events with a lower sequence number.
   */
  | (EventBase & { action: EventAction.COMPACTION; compactedEventCount: number })
  /** Hides earlier turns from windows. `metadata.supersedes` has their numbers, and the content is a note for the model, if any. */
  | (EventBase & { action: EventAction.SUPERSESSION })
  /** A row with an action that this version does not support: readable, but never sent to a model. */
  | (EventBase & { action: "unknown"; storedAction: string });

export type CompactionEvent = Extract<SessionEvent, { action: EventAction.COMPACTION }>;

export function isCompaction(event: SessionEvent): event is CompactionEvent {
  return event.action === EventAction.COMPACTION;
}

/** Returns how many events a compaction at `position` covers. It never covers events after it. */
export function coverage({ compactedEventCount }: CompactionEvent, position: number): number {
  return Math.min(compactedEventCount, position);
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** A row of `cf_agents_events`. */
export type StoredEvent = {
  id: string;
  session_id: string;
  seq: number;
  action: string;
  content: string | null;
  /** JSON. */
  metadata: string | null;
  /** Milliseconds since the epoch. */
  created_at: number;
};

/** A row of `cf_agents_sessions`. */
export type StoredSession = {
  id: string;
  agent_id: string;
  created_at: number;
  updated_at: number;
  /** The object passed to `createSession`, as JSON text, or `null`. */
  metadata: string | null;
};

/** Selects events of a session. */
export interface LoadEventsOptions {
  /** Maximum number of events. Default: 50. */
  limit?: number;
  /** Only events created at or after this time, in milliseconds since the epoch. */
  since?: number;
  /** Only these actions. */
  actions?: EventAction[];
  /** `true` (the default) selects the last `limit` events, `false` the first. The result is ascending in both cases. */
  tail?: boolean;
  /** Only events below this sequence number. */
  before?: number;
  /** Only events from this sequence number on. */
  from?: number;
  /** Maximum size of content and metadata in bytes, but at least one event. Default: 8 MiB. */
  maxBytes?: number;
}
