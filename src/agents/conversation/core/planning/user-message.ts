/** A user's message starts a turn. */
import { defined } from "../../../../shared/defined.ts";
import { DramatisError } from "../../../../shared/errors.ts";
import type { AgentDecision } from "../decisions.ts";
import { MAX_TURN_NUMBER } from "../ids.ts";
import { MAX_ACTIVE_CONTENT, MAX_ACTIVE_TURNS } from "../limits.ts";
import type { UserMessage } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { checkClientTools } from "./client-tools.ts";
import { activeContent, inputLength, toolsLength } from "./content-size.ts";
import type { PlanInput } from "./plan-input.ts";

export function planUserMessage(
  state: ConversationState,
  signal: UserMessage,
  { stem }: PlanInput,
): AgentDecision[] {
  if (state.active.size >= MAX_ACTIVE_TURNS) {
    throw new DramatisError(
      "TOO_MANY_TURNS",
      `This conversation has ${MAX_ACTIVE_TURNS} active turns; wait for one to complete.`,
      { retriable: true },
    );
  }
  const length = inputLength(signal.data.content) + toolsLength(signal.data.tools);
  if (activeContent(state) + length > MAX_ACTIVE_CONTENT) {
    throw new DramatisError(
      "TOO_MANY_TURNS",
      "The active turns of this conversation hold too much content; wait for one to complete.",
      { retriable: true },
    );
  }
  const turn = state.turns + 1;
  if (turn > MAX_TURN_NUMBER) {
    throw new DramatisError("TOO_MANY_TURNS", "This conversation is full; start a new one.");
  }
  const { content, replyToMessageId, output, tools, toolChoice } = signal.data;
  checkClientTools(state.record.chain, tools, toolChoice);
  return [
    {
      type: "START_TURN",
      turn,
      stem,
      agentId: state.record.agentId,
      caller: signal.caller,
      ...defined({ clientId: signal.id }),
      content,
      ...defined({ replyTo: replyToMessageId, output, tools, toolChoice }),
    },
    { type: "CALL_LLM", turn, final: false },
  ];
}
