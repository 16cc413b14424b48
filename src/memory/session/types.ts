/**
 * The session log and what is built from it: events (one row each), messages for a model, and the rows themselves.
 */

import type { ContextMessage, ToolCall } from "../../model/messages.ts";
import type { Facts } from "../../shared/json.ts";
import type { CountedTool, TokenCounter } from "./tokens.ts";

/** What a session event records. Values are stored; they never change. */
export enum EventAction {
  USER_MESSAGE = "user_message",
  AGENT_MESSAGE = "agent_message",
  TOOL_CALL_REQUEST = "tool_call_request",
  TOOL_RESULT = "tool_result",
  SYSTEM_INSTRUCTION = "system_instruction",
  COMPACTION = "compaction",
}

interface EventBase {
  id: string;
  sessionId: string;
  /** Position in the session: from 0, ascending, never reused. */
  seq: number;
  content: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  /** What is known beside the content (usage, finish reason, origin …). */
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
   * A summary of what came before it. `compactedEventCount` counts from the start of the session, deleted events
   * included: the events with a lower sequence number are no longer sent.
   */
  | (EventBase & { action: EventAction.COMPACTION; compactedEventCount: number })
  /** A row whose action this version does not know: readable, and never sent to a model. */
  | (EventBase & { action: "unknown"; storedAction: string });

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
  /** JSON. */
  metadata: string | null;
};

export interface LoadEventsOptions {
  /** How many events at most; 50 when absent. */
  limit?: number;
  /** Only events created at or after this time (milliseconds). */
  since?: number;
  /** Only these actions. */
  actions?: EventAction[];
  /** The last `limit` events (default), or the first. Both come ascending. */
  tail?: boolean;
  /** Only events below this sequence number. */
  before?: number;
  /** Only events from this sequence number on. */
  from?: number;
  /** Stop before content and metadata exceed this many bytes; at least one event is read. 8 MiB when absent. */
  maxBytes?: number;
}

export interface ContextBuilderOptions extends LoadEventsOptions {
  systemInstructions?: string[];
  /** Maps an event to a message; `null` leaves it out. */
  eventToMessage?: (event: SessionEvent) => ContextMessage | null;
  /**
   * Tokens that the context may take: instructions, tools and messages together. Leave room in it for what you add and
   * for the reply. All that was read is sent when absent.
   */
  tokenBudget?: number;
  /** Counts tokens; an estimate when absent. */
  countTokens?: TokenCounter;
  /** The tools that will be sent beside the messages. They count against the budget. */
  tools?: readonly CountedTool[];
  /** Tokens of one tool result; a longer one is shortened. A quarter of the budget when absent. */
  maxResultTokens?: number;
}
