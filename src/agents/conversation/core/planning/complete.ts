/**
 * Planning the end of a conversation by its users. Pure.
 *
 * LIFE-3  Only a person who may speak in a conversation completes it: no agent, tool, workflow or time does. The conversation of a call is
 *         the exception (DELEGATE-6). The turns end as by a stop, with the compactions and extractions, in the same commit. A second
 *         completion has no effect.
 * LIFE-4  An ended conversation accepts only the removal of a user and the erasure of entries. Messages, stops, resumes and other changes get `CONVERSATION_CLOSED`. A
 *         repeated message has the same answer as before. Late results are noted as results of stopped turns.
 */
import { defined } from "../../../../shared/defined.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { checkOpen } from "../life.ts";
import type { ConversationState } from "../state.ts";
import type { Complete, Stop } from "../stop-signals.ts";
import { stopCompactions, stopTurn } from "./cancel.ts";
import { stopExtractions } from "./hooks.ts";

/** The error of a turn that ends with its conversation. */
export const ENDED: ErrorData = {
  code: "CANCELLED",
  message: "The conversation was ended.",
  retriable: false,
};

/** Ends the conversation for good. Throws `CONVERSATION_CLOSED` if it has failed. */
export function planComplete(
  state: ConversationState,
  { caller: by, reason }: Complete,
  input: PlanInput,
): AgentDecision[] {
  if (state.status === "completed") return [];
  checkOpen(state);
  return endAs("completed", state, { caller: by, ...defined({ reason }) }, ENDED, input);
}

/** Ends the conversation, and all its work with `error`. */
export function endAs(
  status: "completed" | "failed",
  state: ConversationState,
  stop: Stop,
  error: ErrorData,
  input: PlanInput,
): AgentDecision[] {
  const { caller: by, reason } = stop;
  return [
    ...[...state.active.values()].flatMap((turn) => stopTurn(turn, error, stop, input)),
    ...stopCompactions(state, input),
    ...stopExtractions(state, input),
    { type: "END_CONVERSATION", status, by, ...defined({ reason }) },
  ];
}
