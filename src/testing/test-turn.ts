/** A turn as a test sees it. Pure. */
import type { TurnView } from "../protocol/conversation-schemas.ts";
import type { JsonValue } from "../shared/json.ts";

/** A call of a tool in a turn. */
export interface TestCall {
  name: string;
  input: JsonValue;
  operationId: string;
  /** The result; absent for a failed call, and before the end. */
  output?: JsonValue;
  error?: { code: string; message: string };
}

/** A turn of a test app, as it was when the app returned it. */
export interface TestTurn {
  id: string;
  conversationId: string;
  agent: string;
  /** `waiting`: only a person, or a result from elsewhere, can continue the turn. */
  status: "completed" | "failed" | "waiting";
  /** The answer; empty without an answer. */
  text: string;
  /** The structured answer, if the message requested it. */
  output?: JsonValue;
  error?: { code: string; message: string };
  /** The calls of tools, in order. */
  calls: readonly TestCall[];
  /** The whole turn, as the API shows it. */
  view: TurnView;
}

export function turnOf(view: TurnView): TestTurn {
  const { id, conversationId, agentId: agent, status, answer, output, error, moves } = view;
  return {
    ...{ id, conversationId, agent, status: status === "active" ? "waiting" : status, text: answer ?? "" },
    ...(output !== undefined && { output }),
    ...(error && { error: { code: error.code, message: error.message } }),
    calls: moves.flatMap(({ toolCall, toolResult }): TestCall[] => {
      if (toolCall === undefined) return [];
      const { name, input, operationId } = toolCall;
      const failed = toolResult?.error;
      return [
        {
          ...{ name, input, operationId },
          ...(toolResult?.success && { output: toolResult.result ?? null }),
          ...(failed && { error: { code: failed.code, message: failed.message } }),
        },
      ];
    }),
    view,
  };
}
