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
import type { Gate } from "../../../../policy/gate.ts";
import { planModelFailure } from "./model-failure.ts";
import { planModelReply } from "./model-reply.ts";
import { planRecovery } from "./recovery.ts";
import { planToolResult } from "./tool-result.ts";
import { planUserMessage } from "./user-message.ts";

/** What comes in beside the signal: time and a fresh id, drawn by the shell. */
export interface PlanInput {
  /** Milliseconds since the epoch. */
  now: number;
  /** The stem for the ids of a turn that starts. */
  stem: string;
  gate: Gate;
  /** How long a client has to run a tool, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
}

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
