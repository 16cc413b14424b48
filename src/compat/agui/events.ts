/** The events of AG-UI 1.0 that the server sends, as far as it uses them. Pure. */
import type { JsonValue } from "../../shared/json.ts";

export const AGUI_VERSION = "1.0";

interface RunIds {
  threadId: string;
  runId: string;
}

type Source = { type: "url" | "data"; value: string; mimeType?: string };

type AgUiPart = { type: "text"; text: string } | { type: "image" | "document"; source: Source };

export type AgUiMessage =
  | { id: string; role: "user"; content: string | AgUiPart[] }
  | { id: string; role: "assistant"; content: string };

/** A request to the person at the client: a call that needs an approval, or a question of a workflow. */
export interface Interrupt {
  id: string;
  reason: "tool_call" | "input_required";
  message: string;
  toolCallId: string;
  /** The JSON Schema of the answer. */
  responseSchema: Record<string, unknown>;
  /** Absent if the question waits without a limit. */
  expiresAt?: string;
}

export type RunOutcome =
  | { type: "success"; pendingToolCallIds?: string[] }
  | { type: "interrupt"; interrupts: Interrupt[] }
  | { type: "cancelled" };

export type AgUiEvent =
  | ({ type: "RUN_STARTED"; protocolVersion?: string } & RunIds)
  | ({ type: "RUN_FINISHED"; outcome?: RunOutcome; result?: JsonValue } & RunIds)
  | { type: "RUN_ERROR"; message: string; code: string }
  | { type: "MESSAGES_SNAPSHOT"; messages: AgUiMessage[] }
  | { type: "STEP_STARTED" | "STEP_FINISHED"; stepName: string }
  | { type: "TEXT_MESSAGE_START"; messageId: string; role: "assistant" }
  | { type: "TEXT_MESSAGE_CONTENT"; messageId: string; delta: string }
  | { type: "TEXT_MESSAGE_END"; messageId: string }
  | { type: "TOOL_CALL_START"; toolCallId: string; toolCallName: string; parentMessageId?: string }
  | { type: "TOOL_CALL_ARGS"; toolCallId: string; delta: string }
  | { type: "TOOL_CALL_END"; toolCallId: string }
  | { type: "TOOL_CALL_RESULT"; messageId: string; toolCallId: string; content: string; role: "tool" }
  | { type: "CUSTOM"; name: string; value: Record<string, unknown> };

export function interrupted(event: AgUiEvent, added: Interrupt[]): AgUiEvent {
  if (event.type !== "RUN_FINISHED" || added.length === 0) return event;
  const own = event.outcome?.type === "interrupt" ? event.outcome.interrupts : [];
  return { ...event, outcome: { type: "interrupt", interrupts: [...own, ...added] } };
}
