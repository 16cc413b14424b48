/** The attempts of an action's model calls, and the error of the last one. */
import { classified, nextStep } from "../../../adapters/resilience/next-step.ts";
import { completeResilience } from "../../../adapters/resilience/profile.ts";
import { ToolError } from "../../../library/tool-error.ts";
import { costOf } from "../../../model/cost.ts";
import type { ModelError } from "../../../model/error.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { sleepWith } from "../../../ports/deadline.ts";
import { defined } from "../../../shared/defined.ts";
import type { ModelRun, ModelUsage } from "./ports.ts";

const RETRIES = completeResilience({ maxAttempts: 3, baseBackoffMs: 500, jitterFactorRange: [1, 1] });

/** The failure of an action that used a model. */
export class ModelToolError extends ToolError {
  constructor(
    message: string,
    readonly usage: ModelUsage,
    options: ConstructorParameters<typeof ToolError>[1] = {},
  ) {
    super(message, options);
  }
}

/**
 * Waits before the next attempt: 500 ms, then 1 000, or longer if the provider asks for it. Throws `ModelToolError` after the last
 * attempt, and the signal's reason after an abort.
 */
export async function pauseAfter(
  error: ModelError,
  failed: number,
  usage: ModelUsage,
  { clock, signal, deadline = Number.POSITIVE_INFINITY }: Pick<ModelRun, "clock" | "signal" | "deadline">,
): Promise<void> {
  signal.throwIfAborted();
  const suggestedBackoffMs = Math.max(RETRIES.baseBackoffMs * 2 ** (failed - 1), error.retryAfterMs ?? 0);
  const step = nextStep({
    profile: RETRIES,
    error: { ...classified(error), suggestedBackoffMs },
    failed,
    hasFallback: false,
    now: clock.now(),
    deadline,
    random: 0,
  });
  if (step.type === "retry")
    return await sleepWith((pause, wake) => clock.timer(pause, wake), step.delayMs, signal);
  throw new ModelToolError(`The model failed: ${error.message}`, usage, {
    code: error.category === "timeout" ? "TIMEOUT" : "EXECUTION_FAILED",
    retriable: error.retriable,
  });
}

/** Adds the tokens of an attempt, with their price. */
export function addUsage(sum: ModelUsage, used: TokenUsage | undefined, profile: ModelProfile): ModelUsage {
  const cost = costOf(used, profile);
  return {
    input: sum.input + (used?.inputTokens ?? 0),
    output: sum.output + (used?.outputTokens ?? 0),
    ...defined({
      costUsd: cost === undefined && sum.costUsd === undefined ? undefined : (sum.costUsd ?? 0) + (cost ?? 0),
    }),
  };
}
