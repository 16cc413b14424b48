/**
 * Silence as an answer. Pure.
 *
 * TALK-4  The model of an agent that another agent gave the word may call `stay_silent`: the turn completes without a message, and what
 *         the reply said or called beside it is dropped. Turns of users, and of calls, always answer. A silent agent has not spoken
 *         to the user (ADDRESS-2), and a tool of its own with that name takes the place of this one.
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
