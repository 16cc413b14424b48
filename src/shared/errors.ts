/**
 * The error taxonomy, from provider to client. Inside an actor an error is thrown as `DramatisError`; across actors it is
 * data (`ErrorData`).
 */
import { defined } from "./defined.ts";

/** Stable codes; each maps to one HTTP status in `src/http/base/problem.ts`. */
export const ERROR_CODES = [
  "INVALID_JSON",
  "INVALID_SIGNAL",
  "UNAUTHENTICATED",
  "FORBIDDEN",
  "PERMISSION_DENIED",
  "NOT_FOUND",
  "CONFLICT",
  "IDEMPOTENCY_CONFLICT",
  "CONVERSATION_CLOSED",
  "NOT_CANCELLED",
  "CANCELLED",
  "TOO_LARGE",
  "INVALID_INPUT",
  "RATE_LIMITED",
  "TOO_MANY_TURNS",
  "QUEUE_OVERFLOW",
  "INTERNAL_ERROR",
  "UNAVAILABLE",
  "UNSUPPORTED",
  "MODEL_FAILED",
  "CONTEXT_ASSEMBLY_FAILED",
  "OUTPUT_INVALID",
  "RECOVERY_EXHAUSTED",
  "OUTCOME_UNKNOWN",
  "BUDGET_EXCEEDED",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** A defect at one place of an input. `path` is a JSON pointer. */
export interface InputIssue {
  path: string;
  message: string;
}

/** An error as data, for RPC, the wire and the journal. */
export interface ErrorData {
  code: string;
  message: string;
  retriable: boolean;
  errors?: InputIssue[];
  /** A retry may succeed after this many milliseconds. */
  retryAfter?: number;
  /** The id of the rule that denied the call of a tool. */
  rule?: string;
}

interface ErrorOptions {
  retriable?: boolean;
  errors?: InputIssue[];
  /** A retry may succeed after this many milliseconds. */
  retryAfter?: number;
  /** The id of the rule that denied the call of a tool. */
  rule?: string;
  cause?: unknown;
}

/** An error inside an actor or a handler. `message` states the problem and the fix. */
export class DramatisError extends Error {
  override readonly name = "DramatisError";
  readonly code: ErrorCode;
  readonly options: ErrorOptions;

  // Members in the parameter list would need a compiler: Node runs the command line from its source.
  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.options = options;
  }

  get retriable(): boolean {
    return this.options.retriable ?? false;
  }

  toData(): ErrorData {
    const { errors, retryAfter, rule } = this.options;
    return {
      code: this.code,
      message: this.message,
      retriable: this.retriable,
      ...defined({ errors, retryAfter, rule }),
    };
  }
}

/** The errors of the usual codes. */
export const invalid = (message: string, options?: ErrorOptions) =>
  new DramatisError("INVALID_INPUT", message, options);
export const notFound = (message: string, options?: ErrorOptions) =>
  new DramatisError("NOT_FOUND", message, options);
export const conflict = (message: string, options?: ErrorOptions) =>
  new DramatisError("CONFLICT", message, options);
export const forbidden = (message: string, options?: ErrorOptions) =>
  new DramatisError("FORBIDDEN", message, options);
export const tooLarge = (message: string, options?: ErrorOptions) =>
  new DramatisError("TOO_LARGE", message, options);
export const unavailable = (message: string, options?: ErrorOptions) =>
  new DramatisError("UNAVAILABLE", message, options);

/** The result of an RPC between actors: a value, or an error as data. */
export type Result<Value> = { ok: true; value: Value } | { ok: false; error: ErrorData };

/**
 * Returns a thrown error as `DramatisError`, also if another copy of this module threw it, or after an RPC; `undefined` for other errors. An RPC
 * of workerd keeps own members: the code and the options with `errors` and `retriable`. It drops the class and its getters.
 */
export function dramatisError(error: unknown): DramatisError | undefined {
  if (error instanceof DramatisError) return error;
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  if (!isErrorCode(error.code)) return undefined;
  // SAFETY: an error with one of these codes is a `DramatisError` of another place.
  const { options } = error as { options?: ErrorOptions };
  return new DramatisError(error.code, error.message, { ...options, cause: error });
}

/** Reports whether an error has one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is DramatisError {
  return error instanceof DramatisError && codes.includes(error.code);
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns any thrown value as data. Unexpected errors become `INTERNAL_ERROR` without detail, so they leak no data. */
export function toErrorData(error: unknown): ErrorData {
  if (error instanceof DramatisError) return error.toData();
  return { code: "INTERNAL_ERROR", message: "An internal error occurred.", retriable: true };
}

/** Runs an RPC body and returns errors as data. Logs unexpected errors where they happened. */
export async function asResult<Value>(body: () => Value | Promise<Value>): Promise<Result<Value>> {
  try {
    return { ok: true, value: await body() };
  } catch (error) {
    if (!(error instanceof DramatisError)) console.error(error);
    return { ok: false, error: toErrorData(error) };
  }
}

/** Runs an RPC body that has no value, as `asResult` does. */
export function asDone(body: () => void | Promise<void>): Promise<Result<null>> {
  return asResult(async () => {
    await body();
    return null;
  });
}

/** Returns the value of a result, or throws its error. */
export function unwrap<Value>(result: Result<Value>): Value {
  if (result.ok) return result.value;
  const { code, message, retriable, errors, retryAfter, rule } = result.error;
  throw new DramatisError(isErrorCode(code) ? code : "INTERNAL_ERROR", message, {
    retriable,
    ...defined({ errors, retryAfter, rule }),
  });
}

function isErrorCode(code: string): code is ErrorCode {
  return (ERROR_CODES as readonly string[]).includes(code);
}
