/**
 * Why a turn failed, as data. Pure.
 *
 * ENGINE-3  An error that is stored holds no secret that looks like one, and nothing but JSON.
 */

import type { RequestOutcome } from "../model/call-record.ts";
import type { ModelError } from "../model/error.ts";
import type { TokenUsage } from "../model/usage.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError, type ErrorCode } from "../shared/errors.ts";
import { redactSecrets } from "../shared/redact.ts";
import { shorten } from "../shared/text.ts";
import type { CallFacts } from "./provider-adapter.ts";
import type { ConversationTurn } from "./types.ts";

/** A provider call that failed, with what is known of it. */
export class ProviderCallError extends DramatisError {
  constructor(
    /** The failure as the gateway told it. */
    readonly failure: ModelError,
    /** For the call's record. */
    readonly call: CallFacts & { usage?: TokenUsage } = {},
    code: ErrorCode = "MODEL_FAILED",
  ) {
    super(code, failure.message, {
      retriable: failure.retriable,
      ...defined({ retryAfter: failure.retryAfterMs }),
    });
  }
}

/** What a turn that was cancelled is rejected with, where nothing else says why. */
export function cancelledError(): Error {
  return new DOMException("The turn was cancelled.", "AbortError");
}

const MAX_MESSAGE = 500;

/** The error that a failed turn keeps. */
export function turnError(
  error: unknown,
  { provider, isCancelled }: { provider?: string; isCancelled: boolean },
): NonNullable<ConversationTurn["error"]> {
  const code = codeOf(error, isCancelled);
  const message = messageOf(error);
  return {
    message,
    ...defined({ code, provider }),
    ...(error instanceof ProviderCallError ? { raw: { ...error.failure, message } } : {}),
  };
}

/** The outcome of a call whose adapter gave none: one attempt, and what can be told of its end. */
export function failedOutcome(
  times: Pick<RequestOutcome, "startedAt" | "finishedAt">,
  failed?: { error: unknown; isCancelled: boolean },
): RequestOutcome {
  if (failed === undefined) return { ok: true, errorCategory: "none", attempts: 1, ...times };
  const { error, isCancelled } = failed;
  const category = error instanceof ProviderCallError ? error.failure.category : "unknown";
  return { ok: false, errorCategory: isCancelled ? "canceled" : category, attempts: 1, ...times };
}

function codeOf(error: unknown, isCancelled: boolean): ErrorCode | "CANCELLED" | undefined {
  if (isCancelled) return "CANCELLED";
  return error instanceof DramatisError ? error.code : undefined;
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return shorten(redactSecrets(message.toWellFormed()), MAX_MESSAGE);
}
