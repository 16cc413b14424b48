/**
 * Planning after a failed attempt of a model call: retry, fall back to the next model, or fail the turn.
 *
 * FALLBACK-1  Fall back when a model has failed for good with a failure that another model may not have: not for an
 *             invalid request, a refusal for safety, or a cancellation.
 * FALLBACK-2  Each model has all attempts of its own, and each cycle begins with the first model.
 * FALLBACK-3  A turn that no model answered fails with the last failure, and names the failures before it.
 */

import { profileAt } from "../../../../library/version-chain.ts";
import { backoffMs, type ModelError, mayFallBack } from "../../../../model/error.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { MAX_BACKOFF_MS, MODEL_ATTEMPTS, MODEL_BACKOFF_MS } from "../limits.ts";
import type { ModelFailed } from "../signals.ts";
import { type CallingTurn, type ConversationState, chainOf } from "../state.ts";

export function planModelFailure(
  state: ConversationState,
  turn: CallingTurn,
  { error, facts, streamed: reset }: ModelFailed,
  { now }: PlanInput,
): AgentDecision[] {
  const { n, call } = turn;
  const chain = chainOf(state.record, turn.agentId);
  // The attempts of the present model, this one included.
  const tried = call.attempt - (call.before ?? 0);
  const isLast = !error.retriable || tried >= MODEL_ATTEMPTS;
  const record: AgentDecision = { type: "RECORD_ATTEMPT", turn: n, facts, category: error.category, isLast };
  if (!isLast) {
    const notBefore = now + delayAfter(tried, error);
    return [record, { type: "RETRY_LLM", turn: n, error: describe(error), notBefore, reset }];
  }
  const next = modelName(chain, (call.profile ?? 0) + 1);
  if (next !== undefined && mayFallBack(error.category)) {
    return [record, { type: "FALL_BACK", turn: n, error: describe(error), to: next, reset }];
  }
  return [record, { type: "FAIL_TURN", turn: n, error: describe(error, earlierFailures(chain, turn)) }];
}

/** Returns the wait before the next attempt, in milliseconds. The provider can lengthen it, but not shorten it. */
function delayAfter(tried: number, { retryAfterMs: requestedMs }: ModelError): number {
  const scheduledMs = MODEL_BACKOFF_MS[tried - 1] ?? MAX_BACKOFF_MS;
  return backoffMs({ scheduledMs, requestedMs, minimumMs: scheduledMs, maximumMs: MAX_BACKOFF_MS });
}

/** Returns `provider/model` of the chain's model at `index`; `undefined` behind the last one. */
function modelName(chain: VersionChain, index: number): string | undefined {
  const profile = profileAt(chain, index);
  return profile === undefined ? undefined : `${profile.provider}/${profile.modelId}`;
}

/** Returns the models that were called for this message before the present one, each with its failure. */
function earlierFailures(
  chain: VersionChain,
  { calls = [], call: { item, profile = 0 } }: CallingTurn,
): string[] {
  return calls
    .filter((call) => call.item === item && call.profile < profile && call.category !== "none")
    .map((call) => `${modelName(chain, call.profile)} (${call.category})`);
}

function describe({ category, message, retriable }: ModelError, earlier: readonly string[] = []): ErrorData {
  const what =
    earlier.length === 0
      ? message
      : `${message.replace(/\.$/, "")}; models tried before: ${earlier.join(", ")}`;
  return { code: "MODEL_FAILED", message: `The model call failed (${category}): ${what}`, retriable };
}
