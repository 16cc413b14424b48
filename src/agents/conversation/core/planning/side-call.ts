/**
 * Planning of side calls, the model calls for summaries and titles: their outcome, and their repetition after a crash. Pure.
 *
 * SELFCOMPACT-4  A crash repeats a side call as its next attempt, so a call that kills its actor is given up.
 */
import { maxOutputTokens, type TokenEstimate } from "../../../../model/spending.ts";
import { defined } from "../../../../shared/defined.ts";
import { MODEL_ATTEMPTS } from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { FailureText } from "../facts/fact.ts";
import { placeOfCall, type RunningSideCall, sideCallAt, sideCalls, sideProfile } from "../side-calls.ts";
import type { SideCallFailed, SideCallSignal } from "../signals.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { acceptedSummary, summaryInput } from "./compaction.ts";
import { delayAfter } from "./model-failure.ts";
import { acceptedTitle } from "./titling.ts";

/** Returns the tokens to reserve for a call: its own reservation, if it has one. */
export function sideReservation(
  { record }: Pick<ConversationState, "record">,
  running: RunningSideCall,
): TokenEstimate {
  const { session, title, tokens, call } = running;
  return (
    call.reserved ?? {
      inputTokens: title ? tokens : summaryInput(chainOf(record, session), tokens),
      outputTokens: maxOutputTokens(sideProfile(record, running)),
    }
  );
}

/** Plans after the outcome of a call. The outcome of a call that is over changes nothing. */
export function planSideCall(
  state: ConversationState,
  signal: SideCallSignal,
  input: PlanInput,
): AgentDecision[] {
  const { begunBy, attempt } = signal;
  const running = sideCallAt(state, signal);
  if (running?.call.attempt !== attempt || running.turn !== begunBy) return [];
  if (signal.type === "conversation.side_call.failed") return [afterFailure(running, signal, input)];
  return [running.title ? acceptedTitle(running, signal) : acceptedSummary(state, running, signal, input)];
}

function afterFailure(
  running: RunningSideCall,
  { error, facts }: SideCallFailed,
  { now }: PlanInput,
): AgentDecision {
  const { attempt } = running.call;
  const text: FailureText = { code: "MODEL_FAILED", message: error.message };
  const made = facts && { facts, category: error.category };
  const failure = { ...placeOfCall(running), error: text, ...defined({ made }) };
  if (!error.retriable || attempt >= MODEL_ATTEMPTS) return { type: "GIVE_UP_SIDE_CALL", ...failure };
  return { type: "RETRY_SIDE_CALL", ...failure, notBefore: now + delayAfter(attempt, error).delayMs };
}

/** Repeats the calls that a crash interrupted (SELFCOMPACT-4). `due` as in `planRecovery`. */
export function planSideCallRecovery(
  state: ConversationState,
  due: number,
  { now }: PlanInput,
): AgentDecision[] {
  return sideCalls(state).flatMap((running): AgentDecision[] => {
    const { title, call } = running;
    if (call.notBefore > due || call.leasing) return [];
    const error: FailureText = {
      code: "RECOVERY_EXHAUSTED",
      message: `The actor was interrupted during the call for a ${title ? "title" : "summary"}.`,
    };
    const failure = { ...placeOfCall(running), error, crashed: sideReservation(state, running) };
    if (call.attempt >= MODEL_ATTEMPTS) return [{ type: "GIVE_UP_SIDE_CALL", ...failure }];
    return [{ type: "RETRY_SIDE_CALL", ...failure, notBefore: now }];
  });
}
