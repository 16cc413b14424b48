/** Performs an attempt of a model call, and returns the outcome as a signal. Never throws. */
import type { ModelContext } from "../../../model/context.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { defined } from "../../../shared/defined.ts";
import { unavailable } from "../../../shared/errors.ts";
import { summaryTokens } from "../core/planning/compaction.ts";
import { summaryContext } from "../core/planning/context.ts";
import { plannedRequest, requestProfile } from "../core/planning/request.ts";
import { titleContext } from "../core/planning/titling.ts";
import { placeOfCall, type RunningSideCall, type SummaryCall, sideProfile } from "../core/side-calls.ts";
import type { AttemptFacts, EffectSignal, SideCallSignal } from "../core/signals.ts";
import { type ConversationIdentity, callContext, chainOf } from "../core/state.ts";
import type { ModelCall, Recalled, Turn } from "../core/turn.ts";
import { type ModelCallContext, performAttempt } from "./model-attempt.ts";

export interface ModelCallInput {
  record: ConversationIdentity;
  turn: Turn;
  call: ModelCall;
  /** Reads the window of the session. Called after the backoff. */
  history: () => ContextMessage[];
  /** Reads the finished turns of other agents that the cycle shows. */
  shownTurns: () => Turn[];
  /** Recalls memories for the cycle; `undefined` if no recall is needed. */
  recall?: () => Promise<Recalled | undefined>;
  /** Gets a reader of the attempt's measurements when the attempt begins. */
  onBegin: (facts: () => AttemptFacts) => void;
  onText: (text: string) => void;
}

export async function performModelCall(
  ports: ModelCallContext,
  { record, turn: given, call, history, shownTurns, recall, onBegin, onText }: ModelCallInput,
  signal: AbortSignal,
): Promise<EffectSignal> {
  const recalled = await recall?.();
  const turn = { ...given, ...defined({ recalled }), call };
  const profile = requestProfile(record, turn);
  const sources = { history: () => read(history), shownTurns: () => read(shownTurns) };
  const request = () => plannedRequest(record, turn, sources);
  const { notBefore } = call;
  const context = callContext(record, turn);
  const input = { profile, context, notBefore, request, onBegin, onText };
  const result = await performAttempt(ports, input, signal);
  const address = { turn: turn.n, item: call.item, attempt: call.attempt };
  if (result.notCalled !== undefined)
    return { type: "conversation.llm.not_called", ...address, error: result.notCalled };
  const { facts, streamed, ...outcome } = result;
  const made = { ...address, facts, ...defined({ recalled }) };
  if (outcome.ok) return { type: "conversation.llm.completed", ...made, reply: outcome.reply };
  return { type: "conversation.llm.failed", ...made, error: outcome.error, streamed };
}

export type CompactedTurn = Pick<Turn, "n" | "stem" | "agentId" | "tools" | "correlationId" | "traceparent">;

interface Asked {
  turn: CompactedTurn;
  /** Reads the context. Called after the backoff. */
  asks: () => ModelContext;
}

export function summaryAsked(
  record: ConversationIdentity,
  { session, call: { attempt } }: SummaryCall,
  { turn, history }: { turn: CompactedTurn; history: () => ContextMessage[] },
): Asked {
  const order = { attempt, targetTokens: summaryTokens(chainOf(record, session)) };
  return { turn, asks: () => summaryContext(record, read(history), turn, order) };
}

export function titleAsked(turn: Turn): Asked {
  return { turn, asks: () => titleContext(turn) };
}

export interface SideCallInput extends Asked {
  record: ConversationIdentity;
  running: RunningSideCall;
  /** As in `ModelCallInput`. */
  onBegin: (facts: () => AttemptFacts) => void;
}

/** Calls the model for a summary or for a title. */
export async function performSideCall(
  ports: ModelCallContext,
  { record, running, turn, asks, onBegin }: SideCallInput,
  signal: AbortSignal,
): Promise<SideCallSignal> {
  const { attempt, notBefore } = running.call;
  const input = {
    profile: sideProfile(record, running),
    context: callContext(record, turn),
    notBefore,
    request: () => ({ base: asks(), moves: [] }),
    onBegin,
  };
  const outcome = await performAttempt(ports, input, signal);
  const address = { ...placeOfCall(running), begunBy: running.turn, attempt };
  if (outcome.notCalled !== undefined) {
    const { message, retriable } = outcome.notCalled;
    const error = { category: retriable ? "transient" : "validation", message, retriable } as const;
    return { type: "conversation.side_call.failed", ...address, error };
  }
  const { facts } = outcome;
  if (outcome.ok)
    return { type: "conversation.side_call.completed", ...address, reply: outcome.reply, facts };
  return { type: "conversation.side_call.failed", ...address, error: outcome.error, facts };
}

/** Reads the history. If the store fails, the attempt fails as `UNAVAILABLE`, and the next attempt reads again. */
function read<Value>(history: () => Value): Value {
  try {
    return history();
  } catch (cause) {
    console.error(cause);
    const message = "The history of the conversation could not be read.";
    throw unavailable(message, { retriable: true, cause });
  }
}
