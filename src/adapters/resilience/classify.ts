/** What a failed attempt means for the next. A classifier of the application's own wins over what the gateway says. Pure. */

import type { ErrorCategory, ModelError } from "../../model/error.ts";
import { defined } from "../../shared/defined.ts";
import { isRetriable } from "../errors/model-errors.ts";

export interface ClassifiedError {
  category: ErrorCategory;
  statusCode?: number;
  /** Whether another attempt can help; by its category when absent. */
  retryable?: boolean;
  /** Milliseconds; wins over what the provider asked for. */
  suggestedBackoffMs?: number;
  reason?: string;
}

/** Classifies a failure; `undefined` leaves it as it is. */
export type Classifier = (error: ModelError) => ClassifiedError | undefined;

/** A failure with its class, and everything that the next step is decided by. */
export type Classified = ClassifiedError & { retryable: boolean; retryAfterMs?: number };

export function classified(error: ModelError, custom?: Classifier): Classified {
  const { category, status, retryAfterMs } = error;
  const found = custom?.(error) ?? { category, retryable: error.retriable };
  return {
    ...defined({ statusCode: status, retryAfterMs }),
    ...found,
    retryable: found.retryable ?? isRetriable(found.category),
  };
}

/** What another model cannot help with: the caller left, or the request itself is refused. */
const FINAL: ReadonlySet<ErrorCategory> = new Set(["canceled", "validation", "safety"]);

/** Whether the next model of a chain is asked after a failure of this class. */
export function mayFallBack(category: ErrorCategory): boolean {
  return !FINAL.has(category);
}
