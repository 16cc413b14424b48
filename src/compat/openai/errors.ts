/**
 * Errors in the form of the OpenAI API. Pure.
 *
 * OAI-2  On `/v1` every error is `{error: {message, type, param, code}}`. The status is 400 instead of 422; every other
 *        status stays.
 * OAI-10  `x-should-retry` allows automatic retries of clients only if no turn has begun.
 */
import type { WireError } from "../../protocol/move-schemas.ts";

export const OPENAI_ERROR_TYPES = [
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "rate_limit_error",
  "server_error",
] as const;

export interface OpenAiError {
  message: string;
  type: (typeof OPENAI_ERROR_TYPES)[number];
  /** The invalid field, as in `messages[0].content`. */
  param: string | null;
  code: string;
}

/** The members of a problem document that an error is made from. */
interface KnownProblem {
  status: number;
  code: string;
  detail: string;
  errors?: readonly { path: string; message: string }[] | undefined;
}

export function openAiStatus<Status extends number>(status: Status): Status | 400 {
  return status === 422 ? 400 : status;
}

/** Reports whether a retry of the request is safe. Returns `null` for statuses that clients do not retry by themselves. */
export function mayRetry(status: number, hasBegun: boolean): boolean | null {
  if (status !== 409 && status !== 429 && status < 500) return null;
  return !hasBegun && (status === 429 || status === 503);
}

export function openAiError({ status, code, detail, errors = [] }: KnownProblem): OpenAiError {
  const param = errors[0] === undefined ? null : paramOf(errors[0].path);
  return {
    message: detail,
    type: typeOf(openAiStatus(status)),
    param,
    code: code === "NOT_FOUND" && param === "model" ? "model_not_found" : code.toLowerCase(),
  };
}

export function streamError({ code, message }: Pick<WireError, "code" | "message">): OpenAiError {
  return { message, type: "server_error", param: null, code: code.toLowerCase() };
}

function typeOf(status: number): OpenAiError["type"] {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** Converts a JSON pointer to a path of fields; `null` for the empty pointer, which names the whole body. */
function paramOf(pointer: string): string | null {
  const keys = pointer.split("/").slice(1);
  if (keys.length === 0) return null;
  return keys
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce(
      (path, key) => (/^\d+$/.test(key) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`),
      "",
    );
}
