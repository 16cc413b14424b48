/** Performs an attempt of a model call, and returns the outcome as a signal. Never throws. */

import { compactionProfile } from "../../../library/definitions/version-chain.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { CompactionEffect } from "../core/effects.ts";
import { summaryTokens } from "../core/planning/compaction.ts";
import { summaryContext } from "../core/planning/context.ts";
import { plannedRequest, requestProfile } from "../core/planning/request.ts";
import type { AttemptFacts, CompactionSignal, EffectSignal } from "../core/signals.ts";
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

/** Calls the model for a turn's message. */
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

/** The turn that began a compaction at its end. */
export type CompactedTurn = Pick<Turn, "n" | "stem" | "agentId" | "tools" | "correlationId" | "traceparent">;

export interface SummaryInput {
  record: ConversationIdentity;
  effect: CompactionEffect;
  turn: CompactedTurn;
  /** Reads the history up to the cut. Called after the backoff. */
  history: () => ContextMessage[];
  /** As in `ModelCallInput`. */
  onBegin: (facts: () => AttemptFacts) => void;
}

/** Calls the model for the summary of a session. */
export async function performSummary(
  ports: ModelCallContext,
  { record, effect: { session, compaction }, turn, history, onBegin }: SummaryInput,
  signal: AbortSignal,
): Promise<CompactionSignal> {
  const { turn: begunBy, call } = compaction;
  const { attempt, notBefore } = call;
  const chain = chainOf(record, session);
  const order = { attempt, targetTokens: summaryTokens(chain) };
  const input = {
    profile: compactionProfile(chain),
    context: callContext(record, turn),
    notBefore,
    request: () => ({ base: summaryContext(record, read(history), turn, order), moves: [] }),
    onBegin,
  };
  const outcome = await performAttempt(ports, input, signal);
  const address = { session, begunBy, attempt };
  if (outcome.notCalled !== undefined) {
    const error = { category: "transient", message: outcome.notCalled.message, retriable: true } as const;
    return { type: "conversation.compaction.failed", ...address, error };
  }
  const { facts } = outcome;
  if (outcome.ok)
    return { type: "conversation.compaction.completed", ...address, reply: outcome.reply, facts };
  return { type: "conversation.compaction.failed", ...address, error: outcome.error, facts };
}

/** Reads the history. If the store fails, the attempt fails as `UNAVAILABLE`, and the next attempt reads again. */
function read<Value>(history: () => Value): Value {
  try {
    return history();
  } catch (cause) {
    console.error(cause);
    const message = "The history of the conversation could not be read.";
    throw new DramatisError("UNAVAILABLE", message, { retriable: true, cause });
  }
}
