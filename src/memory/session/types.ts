/**
 * The session log and what is built from it: events (one row each), messages for a model, and the rows themselves.
 */
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

/**
 * Named JSON values. The type says no more than "a value" of what is nested: the types of RPC give up on recursive
 * ones, and turn `unknown` into `never`.
 */
export type Facts = Record<string, string | number | boolean | null | object>;

/** A model's request to run one tool. `id` is the provider's, unique within its message. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: Facts;
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

/** A part of what a user sent: text, or media by address or by value. */
export type ContextPart =
  | { type: "text"; text: string }
  | {
      type: "image" | "file";
      source: MediaSource;
      /** As in `image/png`; needed where the media are given by value. */
      mediaType?: string;
      /** A file's name. */
      name?: string;
    };

/** Where media are: an address (`https:`, `data:` or `attachment:`), or the bytes themselves in base64. */
export type MediaSource = { url: string } | { base64: string };

/**
 * What a reply was made of, in order, in the words of its own provider: what the provider demands back when the
 * conversation goes on (reasoning blocks, signatures, ids of items). Text and calls are not repeated, only pointed to.
 *
 * NATIVE-1  It is sent to the provider and the model that gave it only, and only as long as its parts cover the
 *           message's text and calls exactly; else it is left out as a whole.
 */
export interface NativeReply {
  provider: string;
  modelId: string;
  parts: NativePart[];
}

export type NativePart =
  /** The next `length` UTF-16 units of the message's text; `extra` are keys that the provider had beside it. */
  | { type: "text"; length: number; extra?: Facts }
  /** The message's tool call at `index`. */
  | { type: "tool-call"; index: number; extra?: Facts }
  /** What only this provider understands, as it gave it. */
  | { type: "block"; value: Facts };

/** One message of a model's context, provider-neutral. */
export interface ContextMessage {
  role: "system" | "user" | "assistant" | "tool";
  /** Its text; of a message with `parts`, that of its text parts. */
  content: string;
  /** All that a user sent, in order, where there is more than text. */
  parts?: ContextPart[];
  /** An assistant's message in the words of its provider, where that says more than text and calls. */
  native?: NativeReply;
  name?: string;
  toolCallId?: string;
  toolCalls?: ToolCall[];
  /** Sent to no model. `isSuccess: false` on a tool's message marks a failure; `model` on an assistant's names its model. */
  metadata?: Facts;
}

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
