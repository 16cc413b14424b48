/** Retries an action's requests to a model, and prices their tokens. */
import { classified, nextStep } from "../../../adapters/resilience/next-step.ts";
import { completeResilience } from "../../../adapters/resilience/profile.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import { costOf } from "../../../model/cost.ts";
import type { ModelError } from "../../../model/error.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { sleepWith } from "../../../ports/deadline.ts";
import { defined } from "../../../shared/defined.ts";
import { toolErrorCode } from "../tool-error-code.ts";
import type { ModelRun, RequestUsage } from "./ports.ts";

const RETRIES = completeResilience({ maxAttempts: 3, baseBackoffMs: 500, jitterFactorRange: [1, 1] });

/**
 * Waits before the next attempt: 500 ms, then 1,000 ms, or longer if the provider asks for it. Throws `ToolError` after the last attempt,
 * or if the error or the budget allows no retry. Throws the signal's reason after an abort.
 */
export async function pauseAfter(
  error: ModelError,
  failed: number,
  isAllowed: boolean,
  { clock, signal }: Pick<ModelRun, "clock" | "signal">,
): Promise<void> {
  signal.throwIfAborted();
  if (error.refusal !== undefined) {
    const { message, retriable } = error.refusal;
    throw new ToolError(message, { code: toolErrorCode(error.refusal), retriable });
  }
  const suggestedBackoffMs = Math.max(RETRIES.baseBackoffMs * 2 ** (failed - 1), error.retryAfterMs ?? 0);
  const step = nextStep({
    profile: RETRIES,
    error: { ...classified(error), suggestedBackoffMs },
    failed,
    hasFallback: false,
    now: clock.now(),
    deadline: Number.POSITIVE_INFINITY,
    random: 0,
  });
  if (step.type === "retry" && isAllowed)
    return await sleepWith((pause, wake) => clock.timer(pause, wake), step.delayMs, signal);
  throw new ToolError(`The model failed: ${error.message}`, {
    code: error.category === "timeout" ? "TIMEOUT" : "EXECUTION_FAILED",
    retriable: error.retriable,
  });
}

/** Returns the tokens of a request with their price. */
export function usageOf(
  { inputTokens = 0, outputTokens = 0 }: TokenUsage,
  profile: ModelProfile | undefined,
): RequestUsage {
  const costUsd = costOf({ inputTokens, outputTokens }, profile);
  return { inputTokens, outputTokens, ...defined({ costUsd }) };
}
