/**
 * Our errors as OpenAI's clients know errors. Pure.
 *
 * OAI-2  On `/v1` every error is `{error: {message, type, param, code}}`; what is wrong with a request is 400, everything else
 *        has the status that it has elsewhere.
 * OAI-10  A client that sends requests again by itself is told when it may: where nothing was begun.
 */
import type { WireError } from "../../protocol/views.ts";

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
  /** The field that is wrong, as in `messages[0].content`. */
  param: string | null;
  code: string;
}

/** What is known of an error that HTTP answers with. */
export interface KnownProblem {
  status: number;
  code: string;
  detail: string;
  errors?: readonly { path: string; message: string }[] | undefined;
}

/** The status that a problem has here. */
export function openAiStatus<Status extends number>(status: Status): Status | 400 {
  return status === 422 ? 400 : status;
}

/**
 * Whether a request that was answered so may be sent again as it is, with nothing done twice; `null` where no client would
 * do so by itself.
 */
export function mayBeRepeated(status: number, hasBegun: boolean): boolean | null {
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

/** What ends a stream that had begun. */
export function streamError({ code, message }: Pick<WireError, "code" | "message">): OpenAiError {
  return { message, type: "server_error", param: null, code: code.toLowerCase() };
}

function typeOf(status: number): OpenAiError["type"] {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** A JSON pointer as a path of fields; the empty one means the body itself. */
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
