/**
 * What the failure of an attempt means: it is made again, another model is asked, or the turn fails.
 *
 * FALLBACK-1  The next model is asked when one has failed for good, by a failure that another may not have: not for a
 *             request that is wrong, a refusal for safety, or a cancellation.
 * FALLBACK-2  Each model has all attempts of its own, and each cycle begins with the first.
 * FALLBACK-3  A turn that no model answered fails with the last failure, and names the ones before.
 */

import { profileAt } from "../../../../library/version-chain.ts";
import { backoffMs, type ModelError, mayFallBack } from "../../../../model/error.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { AgentDecision } from "../decisions.ts";
import { MAX_BACKOFF_MS, MODEL_ATTEMPTS, MODEL_BACKOFF_MS } from "../limits.ts";
import type { EffectSignal } from "../signals.ts";
import type { ConversationState, ModelCall, Turn } from "../state.ts";
import { callingTurn } from "./calling-turn.ts";
import type { PlanInput } from "./plan-input.ts";

type Failed = Extract<EffectSignal, { type: "conversation.llm.failed" }>;

export function planModelFailure(
  state: ConversationState,
  signal: Failed,
  { now }: PlanInput,
): AgentDecision[] {
  const turn = callingTurn(state, signal);
  if (turn?.call == null) return [];
  const { error, facts, streamed: reset } = signal;
  const { n } = turn;
  const tried = attemptsOf(turn.call);
  const isLast = !error.retriable || tried >= MODEL_ATTEMPTS;
  const record: AgentDecision = { type: "RECORD_ATTEMPT", turn: n, facts, category: error.category, isLast };
  if (!isLast) {
    const notBefore = now + delayAfter(tried, error);
    return [record, { type: "RETRY_LLM", turn: n, error: describe(error), notBefore, reset }];
  }
  const next = mayFallBack(error.category) ? nextModel(state.record.chain, turn.call) : undefined;
  if (next !== undefined) {
    return [record, { type: "FALL_BACK", turn: n, error: describe(error), to: next, reset }];
  }
  const failed = describe(error, earlierFailures(state.record.chain, turn, turn.call));
  return [record, { type: "FAIL_TURN", turn: n, error: failed }];
}

/** Attempts that the present model has made at its answer, the present one included. */
function attemptsOf({ attempt, before = 0 }: ModelCall): number {
  return attempt - before;
}

/** Returns the wait before the next attempt, in milliseconds. The provider can lengthen it, but not shorten it. */
function delayAfter(tried: number, { retryAfterMs: requestedMs }: ModelError): number {
  const scheduledMs = MODEL_BACKOFF_MS[tried - 1] ?? MAX_BACKOFF_MS;
  return backoffMs({ scheduledMs, requestedMs, minimumMs: scheduledMs, maximumMs: MAX_BACKOFF_MS });
}

function nextModel(chain: VersionChain, { profile = 0 }: ModelCall): string | undefined {
  return modelName(chain, profile + 1);
}

/** `provider/model` of one of the chain's models; `undefined` where there are not so many. */
function modelName(chain: VersionChain, index: number): string | undefined {
  const profile = profileAt(chain, index);
  return profile === undefined ? undefined : `${profile.provider}/${profile.modelId}`;
}

/** The models that were asked for this message before the present one, and how each failed. */
function earlierFailures(
  chain: VersionChain,
  { calls = [] }: Turn,
  { item, profile = 0 }: ModelCall,
): string[] {
  return calls
    .filter((call) => call.item === item && call.profile < profile && call.category !== "none")
    .map((call) => `${modelName(chain, call.profile)} (${call.category})`);
}

function describe({ category, message, retriable }: ModelError, earlier: readonly string[] = []): ErrorData {
  const what =
    earlier.length === 0 ? message : `${message.replace(/\.$/, "")}; asked before: ${earlier.join(", ")}`;
  return {
    code: "MODEL_FAILED",
    message: `The model call failed (${category}): ${what}`,
    retriable,
  };
}
