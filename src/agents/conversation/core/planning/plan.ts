/**
 * Planning: what a signal means, as decisions. Pure: state and input in, decisions out, no clock and no randomness.
 *
 * PLAN-1  The same state and input give equal decisions.
 * PLAN-2  A signal that no longer applies (a late or repeated result) gives no decisions.
 * PLAN-3  A signal that is refused throws and leaves no trace.
 */

import type { AgentDecision } from "../decisions.ts";
import type { Signal } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { planAbandon } from "./abandon.ts";
import { planClientResult, planExpiry } from "./client-result.ts";
import { planModelFailure } from "./model-failure.ts";
import { planModelReply } from "./model-reply.ts";
import type { PlanInput } from "./plan-input.ts";
import { planRecovery } from "./recovery.ts";
import { planToolResult } from "./tool-result.ts";
import { planUserMessage } from "./user-message.ts";

export function plan(state: ConversationState, signal: Signal, input: PlanInput): AgentDecision[] {
  switch (signal.type) {
    case "conversation.user.message":
      return planUserMessage(state, signal, input);
    case "conversation.llm.completed":
      return planModelReply(state, signal, input);
    case "conversation.llm.failed":
      return planModelFailure(state, signal, input);
    case "conversation.tool.completed":
      return planToolResult(state, signal);
    case "conversation.tool.submitted":
      return planClientResult(state, signal);
    case "conversation.cmd.expire":
      return planExpiry(state, input);
    case "conversation.cmd.recover":
      return planRecovery(state, input);
    case "conversation.cmd.abandon":
      return planAbandon(state, signal);
    default:
      return signal satisfies never;
  }
}
