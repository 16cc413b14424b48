/**
 * Problem documents (RFC 9457): the form of every error of the HTTP API.
 *
 * PROBLEM-1  Each code has one status.
 * PROBLEM-2  An unexpected error becomes `INTERNAL_ERROR` with an incident id. Its detail is logged, never sent.
 */
import { ulid } from "ulid";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorCode, type InputIssue } from "../../shared/errors.ts";

/** The codes of the error taxonomy, and three that only HTTP has. */
export type ProblemCode = ErrorCode | "METHOD_NOT_ALLOWED" | "UNKNOWN_PARAMETER" | "UPGRADE_REQUIRED";

export const PROBLEM_STATUS = {
  INVALID_JSON: 400,
  INVALID_SIGNAL: 400,
  UNKNOWN_PARAMETER: 400,
  UNAUTHENTICATED: 401,
  BUDGET_EXCEEDED: 402,
  FORBIDDEN: 403,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  IDEMPOTENCY_CONFLICT: 409,
  CONVERSATION_CLOSED: 409,
  NOT_CANCELLED: 409,
  CANCELLED: 409,
  TOO_LARGE: 413,
  INVALID_INPUT: 422,
  UNSUPPORTED: 422,
  UPGRADE_REQUIRED: 426,
  RATE_LIMITED: 429,
  TOO_MANY_TURNS: 429,
  QUEUE_OVERFLOW: 429,
  INTERNAL_ERROR: 500,
  RECOVERY_EXHAUSTED: 500,
  OUTCOME_UNKNOWN: 409,
  CONTEXT_ASSEMBLY_FAILED: 502,
  MODEL_FAILED: 502,
  OUTPUT_INVALID: 502,
  UNAVAILABLE: 503,
} as const satisfies Record<ProblemCode, number>;

// SAFETY: the record has exactly these keys.
export const PROBLEM_CODES = Object.keys(PROBLEM_STATUS) as ProblemCode[];

const TITLE: Record<(typeof PROBLEM_STATUS)[ProblemCode], string> = {
  400: "Bad Request",
  401: "Unauthorized",
  402: "Payment Required",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  422: "Unprocessable Content",
  426: "Upgrade Required",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

/** A problem document. `title` names the status, `code` the error. `detail` states the problem and the fix. */
export interface Problem {
  type: "about:blank";
  title: string;
  status: number;
  detail: string;
  code: ProblemCode;
  errors?: InputIssue[];
  /** On `INTERNAL_ERROR`: the id of the log entry. */
  incident?: string;
}

interface ProblemExtras {
  errors?: InputIssue[] | undefined;
  incident?: string;
  headers?: Record<string, string>;
}

/** The headers of every response but attachments. */
export const HEADERS = { "cache-control": "no-store" };

export function problem(
  code: ProblemCode,
  detail: string,
  { headers, ...extras }: ProblemExtras = {},
): Response {
  const status = PROBLEM_STATUS[code];
  const body: Problem = {
    type: "about:blank",
    title: TITLE[status],
    status,
    detail,
    code,
    ...defined(extras),
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...HEADERS,
      ...extraHeaders(status),
      ...headers,
    },
  });
}

/** Converts any thrown value to a response. `where` names the request in the log. */
export function problemOf(error: unknown, where: string): Response {
  if (error instanceof DramatisError && error.code !== "INTERNAL_ERROR") {
    const { errors, retryAfter } = error.options;
    const headers = retryAfter === undefined ? {} : { "retry-after": String(Math.ceil(retryAfter / 1000)) };
    return problem(error.code, error.message, { errors, headers });
  }
  if (isActorUnavailable(error)) {
    console.warn(`${where}: actor unavailable`, error);
    return problem("UNAVAILABLE", "The actor is not available. Try again in a moment.");
  }
  const incident = `inc_${ulid()}`;
  console.error(`${where}: ${incident}`, error);
  return problem("INTERNAL_ERROR", "An internal error occurred. Report it with the incident id.", {
    incident,
  });
}

/** Reports errors of the platform for an actor that is overloaded, was reset or cannot be reached. */
function isActorUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ["retryable", "overloaded", "durableObjectReset"].some((mark) => Reflect.get(error, mark) === true);
}

function extraHeaders(status: number): Record<string, string> {
  if (status === 401) return { "www-authenticate": "Bearer" };
  if (status === 429 || status === 503) return { "retry-after": "1" };
  return {};
}
