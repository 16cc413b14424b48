/**
 * Planning after a failed attempt of a model call: retry, fall back to the next model, or fail the turn.
 *
 * FALLBACK-1  Fall back after a final failure that another model may avoid. An invalid request, a safety refusal, a cancellation, and a
 *             call that could not begin are excluded.
 * FALLBACK-2  Each model has all attempts of its own, and each message begins with the first model. A withdrawn reply is requested again
 *             from the same model, into the same message, with new attempts.
 * FALLBACK-3  If all models fail, the turn fails with the last failure, and names the earlier failures.
 * FALLBACK-4  When a provider requests a longer wait than the backoff, call the next model at once. If all of these fail too, the call
 *             returns to the waiting model after the wait. A wait uses no attempts. This holds for the whole message, also after a
 *             withdrawn reply.
 * FITS-1  A request that exceeds its model's context is repeated once in a turn, with its history cut to half. The retry does not count
 *         against the model's attempts. The rest of the turn keeps this cut.
 */
import { profileAt } from "../../../../library/definitions/version-chain.ts";
import { backoffMs, exceedsContext, type ModelError, mayFallBack } from "../../../../model/error.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import { defined } from "../../../../shared/defined.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import { MAX_BACKOFF_MS, MODEL_ATTEMPTS, MODEL_BACKOFF_MS } from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { ModelFailed } from "../signals.ts";
import { type ConversationState, chainOf } from "../state.ts";
import type { CallingTurn, DeferredModel } from "../turn.ts";
import { failTurn } from "./cancel.ts";

export function planModelFailure(
  state: ConversationState,
  turn: CallingTurn,
  { error, facts, recalled, streamed: reset }: ModelFailed,
  input: PlanInput,
): AgentDecision[] {
  const { n, call } = turn;
  const chain = chainOf(state.record, turn.agentId);
  const record = (isLast: boolean): AgentDecision => {
    return {
      type: "RECORD_ATTEMPT",
      turn: n,
      facts,
      category: error.category,
      isLast,
      ...defined({ recalled }),
    };
  };
  if (exceedsContext(error) && !turn.halved && turn.request === undefined) {
    const retry = { turn: n, error: describe(error), notBefore: input.now, reset, halve: true } as const;
    return [record(false), { type: "RETRY_LLM", ...retry }];
  }
  const next = nextModel(chain, turn, error, input.now);
  if (next === undefined)
    return [record(true), failTurn(turn, describe(error, earlierFailures(chain, turn)), input)];
  const { model, deferred } = next;
  const { profile, notBefore } = model;
  if (profile === (call.profile ?? 0))
    return [record(false), { type: "RETRY_LLM", turn: n, error: describe(error), notBefore, reset }];
  const to = modelName(chain, profile) ?? "";
  // The text of a paused reply is withdrawn with it.
  const resets = reset || (turn.paused !== undefined && turn.paused.text !== "");
  const fallBack = { turn: n, error: describe(error), to, model, deferred, reset: resets };
  return [record(true), { type: "FALL_BACK", ...fallBack }];
}

/** Chooses the next model, and the models that the call may return to; `undefined` if there is no next model. */
function nextModel(
  chain: VersionChain,
  { calls = [], call, request }: CallingTurn,
  error: ModelError,
  now: number,
): { model: DeferredModel; deferred: readonly DeferredModel[] } | undefined {
  const { profile = 0, deferred = [] } = call;
  // The attempts of the current model, including the current attempt.
  const tried = call.attempt - (call.before ?? 0);
  const waiting = [...deferred];
  if (error.retriable && tried < MODEL_ATTEMPTS) {
    const { scheduledMs, delayMs } = delayAfter(tried, error);
    const again = { profile, tried, notBefore: now + delayMs };
    if (delayMs <= scheduledMs) return { model: again, deferred };
    waiting.unshift(again);
  }
  if (!mayFallBack(error.category)) return undefined;
  const called = calls.filter(({ item }) => item === call.item).map((made) => made.profile);
  const fresh = Math.max(profile, ...called) + 1;
  // The request of a context hook is for its own model only.
  if (request === undefined && profileAt(chain, fresh) !== undefined)
    return { model: { profile: fresh, tried: 0, notBefore: now }, deferred: waiting };
  const [model, ...others] = waiting.toSorted((one, other) => one.notBefore - other.notBefore);
  if (model === undefined) return undefined;
  return { model: { ...model, notBefore: Math.max(model.notBefore, now) }, deferred: others };
}

/** Returns the waits before the next attempt, in milliseconds. The provider can lengthen its own, but not shorten it. */
export function delayAfter(
  tried: number,
  { retryAfterMs: requestedMs }: Pick<ModelError, "retryAfterMs">,
): { scheduledMs: number; delayMs: number } {
  const scheduledMs = MODEL_BACKOFF_MS[tried - 1] ?? MAX_BACKOFF_MS;
  const delayMs = backoffMs({
    scheduledMs,
    requestedMs,
    minimumMs: scheduledMs,
    maximumMs: MAX_BACKOFF_MS,
  });
  return { scheduledMs, delayMs };
}

/** Returns `provider/model` of the chain's model at `index`; `undefined` after the last model. */
function modelName(chain: VersionChain, index: number): string | undefined {
  const profile = profileAt(chain, index);
  return profile === undefined ? undefined : `${profile.provider}/${profile.modelId}`;
}

/** Returns the models called earlier for this message, each with its last failure. */
function earlierFailures(
  chain: VersionChain,
  { calls = [], call: { item, profile = 0 } }: CallingTurn,
): string[] {
  const failures = calls.filter(
    (call) => call.item === item && call.profile !== profile && call.category !== "none",
  );
  const last = new Map(failures.map((call) => [call.profile, call.category]));
  return [...last].map(([failed, category]) => `${modelName(chain, failed)} (${category})`);
}

function describe({ category, message, retriable }: ModelError, earlier: readonly string[] = []): ErrorData {
  const what =
    earlier.length === 0
      ? message
      : `${message.replace(/\.$/, "")}; models tried before: ${earlier.join(", ")}`;
  return { code: "MODEL_FAILED", message: `The model call failed (${category}): ${what}`, retriable };
}
