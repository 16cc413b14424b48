/**
 * Silence as an answer. Pure.
 *
 * TALK-4  In a turn that another agent started, the model may call `stay_silent`. The turn completes without a message, and other text and
 *         calls of the reply are dropped. Turns of users, and of calls, always answer. A silent agent has not spoken to the user
 *         (ADDRESS-2), and its own tool with that name replaces this tool.
 */
import type { ModelReply } from "../../../../model/reply.ts";
import type { AgentDecision } from "../decisions.ts";
import type { ConversationState } from "../state.ts";
import type { CallingTurn } from "../turn.ts";
import { endOfCycle } from "./background.ts";
import { maySilence, STAY_SILENT } from "./silence-tool.ts";

/** Plans the end of a turn, or of its cycle, without a message; `undefined` where the reply does not ask for it. */
export function planSilence(
  state: ConversationState,
  turn: CallingTurn,
  { toolCalls }: Pick<ModelReply, "toolCalls">,
): AgentDecision[] | undefined {
  if (!toolCalls.some(({ name }) => name === STAY_SILENT.name) || !maySilence(state.record, turn))
    return undefined;
  const end = endOfCycle(state, turn);
  return [
    { type: "STAY_SILENT", turn: turn.n, ...(end.type === "COMPLETE_TURN" ? { silent: true } : {}) },
    end,
  ];
}
