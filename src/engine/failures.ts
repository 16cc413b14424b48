/**
 * The cause of a failed turn, as data. Pure.
 *
 * ENGINE-3  A stored error is JSON and contains no text that looks like a secret.
 */
import type { RequestOutcome } from "../model/call-record.ts";
import type { ModelError } from "../model/error.ts";
import type { TokenUsage } from "../model/usage.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError, type ErrorCode, errorText } from "../shared/errors.ts";
import { redactSecrets } from "../shared/redact.ts";
import { shorten } from "../shared/text.ts";
import type { CallFacts } from "./provider-adapter.ts";
import type { ConversationTurn } from "./records.ts";

/**
 * A failed provider call. An adapter throws it to have the details recorded.
 *
 * @example
 * throw new ProviderCallError({ category: "rate_limit", message: "Slow down.", retriable: true, provider: "acme" });
 */
export class ProviderCallError extends DramatisError {
  constructor(
    readonly failure: ModelError,
    readonly call: CallFacts & { usage?: TokenUsage } = {},
    code: ErrorCode = "MODEL_FAILED",
  ) {
    super(code, failure.message, {
      retriable: failure.retriable,
      ...defined({ retryAfter: failure.retryAfterMs }),
    });
  }
}

const MAX_MESSAGE = 500;

export function turnError(
  error: unknown,
  { provider, isCancelled }: { provider?: string; isCancelled: boolean },
): NonNullable<ConversationTurn["error"]> {
  const message = messageOf(error);
  const failed = error instanceof DramatisError ? error.code : undefined;
  return {
    message,
    ...defined({ code: isCancelled ? "CANCELLED" : failed, provider }),
    ...(error instanceof ProviderCallError ? { raw: { ...error.failure, message } } : {}),
  };
}

export function defaultOutcome(
  times: Pick<RequestOutcome, "startedAt" | "finishedAt">,
  failure?: { error: unknown; isCancelled: boolean },
): RequestOutcome {
  if (failure === undefined) return { ok: true, errorCategory: "none", attempts: 1, ...times };
  const { error, isCancelled } = failure;
  const category = error instanceof ProviderCallError ? error.failure.category : "unknown";
  return { ok: false, errorCategory: isCancelled ? "canceled" : category, attempts: 1, ...times };
}

function messageOf(error: unknown): string {
  const message = errorText(error);
  return shorten(redactSecrets(message.toWellFormed()), MAX_MESSAGE);
}
