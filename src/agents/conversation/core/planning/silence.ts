/**
 * Silence as an answer. Pure.
 *
 * TALK-4  The model of an agent that another agent gave the word may call `stay_silent`: the turn completes without a message, and what
 *         the reply said or called beside it is dropped. Turns of users, and of calls, always answer. A silent agent has not spoken
 *         to the user (ADDRESS-2), and a tool of its own with that name takes the place of this one.
 */
import type { ToolSpec } from "../../../../model/context.ts";
import type { ModelReply } from "../../../../model/reply.ts";
import type { AgentDecision } from "../decisions.ts";
import { type ConversationIdentity, type ConversationState, chainOf } from "../state.ts";
import type { CallingTurn, Turn } from "../turn.ts";
import { endOfCycle } from "./background.ts";

const STAY_SILENT: ToolSpec = {
  name: "stay_silent",
  description:
    "Another agent gave you the word. If you have nothing to add, call this, and nothing else: your turn then ends without a message.",
  inputSchema: { type: "object", properties: {}, additionalProperties: false },
};

type Speaker = Pick<Turn, "agentId" | "caller" | "tools" | "output">;

/** Returns the tools that a turn has beside its agent's own: those of its client, and the one to stay silent. */
export function toolsBeside(
  record: Pick<ConversationIdentity, "agents" | "call">,
  turn: Speaker,
): readonly ToolSpec[] {
  const { tools = [] } = turn;
  return maySilence(record, turn) ? [...tools, STAY_SILENT] : tools;
}

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

function maySilence(
  record: Pick<ConversationIdentity, "agents" | "call">,
  { agentId, caller, output }: Speaker,
): boolean {
  if (caller.type !== "agent" || record.call !== undefined || output !== undefined) return false;
  return !chainOf(record, agentId).tools.some(({ definition }) => definition.name === STAY_SILENT.name);
}
