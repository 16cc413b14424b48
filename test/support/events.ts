/** Short constructors of events. */
import { EventAction, type SessionEvent } from "../../src/memory/session/session-event.ts";

const base = (id: string, content: string) => ({
  id,
  sessionId: "s",
  seq: 0,
  content,
  timestamp: 1_767_225_600_000,
});

export const user = (id: string, content = id): SessionEvent => ({
  ...base(id, content),
  action: EventAction.USER_MESSAGE,
});

export const agent = (id: string, content = id): SessionEvent => ({
  ...base(id, content),
  action: EventAction.AGENT_MESSAGE,
});

export const request = (id: string, ...callIds: string[]): SessionEvent => ({
  ...base(id, ""),
  action: EventAction.TOOL_CALL_REQUEST,
  toolCalls: callIds.map((callId) => ({ id: callId, name: "search", arguments: { query: callId } })),
});

export const result = (id: string, callId: string, content = id): SessionEvent => ({
  ...base(id, content),
  action: EventAction.TOOL_RESULT,
  toolCallId: callId,
  toolName: "search",
  isSuccess: true,
});

export const compaction = (id: string, compactedEventCount: number): SessionEvent => ({
  ...base(id, `summary ${id}`),
  action: EventAction.COMPACTION,
  compactedEventCount,
});

/** Returns the events with ascending sequence numbers, as a session assigns them. */
export const numbered = (events: readonly SessionEvent[], from = 0): SessionEvent[] =>
  events.map((event, index) => ({ ...event, seq: from + index }));

/** One event of every action, with all facts of the action. */
export const everyAction = (): SessionEvent[] =>
  numbered([
    { ...user("u", "hello"), metadata: { origin: "user", nested: { model: "not a model" } } },
    {
      ...agent("a", "hi"),
      action: EventAction.AGENT_MESSAGE,
      model: "m-1",
      metadata: { usage: { inputTokens: 3 } },
    },
    {
      ...base("r", "let me look"),
      action: EventAction.TOOL_CALL_REQUEST,
      toolCalls: [
        { id: "c1", name: "search", arguments: { query: "x", deep: [{ y: null }] } },
        { id: "c2", name: "now", arguments: {} },
      ],
      model: "m-1",
      metadata: { finishReason: "tool_calls" },
    },
    {
      ...base("t", "no such thing"),
      action: EventAction.TOOL_RESULT,
      toolCallId: "c1",
      toolName: "search",
      isSuccess: false,
      metadata: { origin: "tool" },
    },
    { ...base("s", "be brief"), action: EventAction.SYSTEM_INSTRUCTION, metadata: { by: "operator" } },
    {
      ...base("c", "what was said"),
      action: EventAction.COMPACTION,
      compactedEventCount: 2,
      metadata: { by: "m-2" },
    },
  ]);
