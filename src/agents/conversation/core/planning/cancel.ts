/**
 * Planning the end of turns before their answer: stopped by a user, or failed. Pure.
 *
 * STOP-1  A stopped turn ends with `CANCELLED` in the same commit. Its model call is aborted, and each of its operations without a result
 *         is cancelled once (OP-5). Repeated stops are no-ops.
 * STOP-2  A stopped conversation ends all its turns and begins no turn until it resumes: a message is recorded in a turn that has failed
 *         with `CANCELLED`.
 * STOP-3  The text that was shown of a message in progress stays, marked as stopped.
 */
import { defined } from "../../../../shared/defined.ts";
import { DramatisError, type ErrorData } from "../../../../shared/errors.ts";
import { cut } from "../../../../shared/text.ts";
import { MAX_SHOWN_LENGTH } from "../conversation-limits.ts";
import type { AgentDecision, CallInProgress, PlanInput } from "../decisions.ts";
import { checkOpen } from "../life.ts";
import type { ConversationState } from "../state.ts";
import type { Cancel, Resume, Stop } from "../stop-signals.ts";
import type { Turn } from "../turn.ts";
import { stopSideCalls } from "./stop-side-calls.ts";

const STOPPED: ErrorData = { code: "CANCELLED", message: "The turn was stopped.", retriable: true };

/** The error of a message to a conversation that is stopped. */
export const NOT_RUN: ErrorData = {
  code: "CANCELLED",
  message:
    "The conversation is stopped, so the message was not answered. Resume the conversation, then send it again.",
  retriable: true,
};

/** Stops a turn, or the conversation with all its turns. Throws `CONVERSATION_CLOSED` for a conversation that has ended. */
export function planCancel(
  state: ConversationState,
  { turn: n, caller: by, reason }: Cancel,
  input: PlanInput,
): AgentDecision[] {
  const stop = (turn: Turn) => stopTurn(turn, STOPPED, { caller: by, ...defined({ reason }) }, input);
  if (n !== undefined) {
    const turn = state.active.get(n);
    return turn === undefined ? [] : stop(turn);
  }
  checkOpen(state);
  const ends = [...state.active.values()].flatMap(stop);
  if (state.gate === "cancelled") return ends;
  const calls = stopSideCalls(state, input);
  return [...ends, ...calls, { type: "SET_GATE", gate: "cancelled", by, ...defined({ reason }) }];
}

/** Ends a turn that is stopped, with the record of its model call. */
export function stopTurn(
  turn: Turn,
  error: ErrorData,
  { caller: by, reason }: Stop,
  input: PlanInput,
): AgentDecision[] {
  const { facts } = progressOf(turn, input);
  const end = { ...failTurn(turn, error, input), by, ...defined({ reason }) };
  if (facts === undefined) return [end];
  return [{ type: "RECORD_ATTEMPT", turn: turn.n, facts, category: "canceled", isLast: true }, end];
}

/** Throws `NOT_CANCELLED` if the conversation is not stopped, `CONVERSATION_CLOSED` if it has ended. */
export function planResume(state: ConversationState, { caller: by, reason }: Resume): AgentDecision[] {
  const { gate } = state;
  checkOpen(state);
  if (gate === "cancelled") return [{ type: "SET_GATE", gate: "open", by, ...defined({ reason }) }];
  throw new DramatisError("NOT_CANCELLED", "The conversation is not stopped, so it cannot resume.");
}

/** Returns the decision that ends a turn with an error, and keeps the shown text (STOP-3). */
export function failTurn(
  turn: Turn,
  error: ErrorData,
  input: PlanInput,
): Extract<AgentDecision, { type: "FAIL_TURN" }> {
  const { shown, facts } = progressOf(turn, input);
  const kept = cut(shown, MAX_SHOWN_LENGTH);
  const { taint, echoes } = facts ?? {};
  const text = kept.trim() === "" ? {} : { shown: kept, taint: defined({ taint, echoes }) };
  return { type: "FAIL_TURN", turn: turn.n, error, ...text };
}

function progressOf({ call, ...turn }: Turn, { inProgress }: PlanInput): CallInProgress {
  return call === null || inProgress === undefined ? { shown: "" } : inProgress({ ...turn, call });
}

/** Adds a signal's origin to its decisions. A signal without a change is not remembered. */
export function withOrigin(decisions: AgentDecision[], { caller, origin }: Stop): AgentDecision[] {
  if (origin === undefined || decisions.length === 0) return decisions;
  const { id, supplied, correlationId } = origin;
  const marked = decisions.map((decision) =>
    decision.type === "SET_GATE" ? { ...decision, correlationId, ...defined({ causeId: id }) } : decision,
  );
  if (id === undefined) return marked;
  return [...marked, { type: "SEE_SIGNAL", caller, key: id, ...defined({ correlationId: supplied }) }];
}
