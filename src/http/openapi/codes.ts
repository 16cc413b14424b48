/** What each code of a problem document means, for those who read the API's description. */
import type { ProblemCode } from "../base/problem.ts";

export const CODE_MEANINGS: Record<ProblemCode, string> = {
  INVALID_JSON: "The body is empty, no JSON, no UTF-8, or nests deeper than 64 levels.",
  INVALID_SIGNAL: "The signal's envelope is not valid; `errors` says why.",
  UNAUTHENTICATED: "The request does not say who is asking, or not credibly.",
  FORBIDDEN: "The caller's roles do not allow this.",
  NOT_FOUND: "There is nothing here, or it is not the caller's.",
  METHOD_NOT_ALLOWED: "The path exists, the method does not; `Allow` lists those that do.",
  CONFLICT: "Something with this id exists.",
  IDEMPOTENCY_CONFLICT: "The idempotency key was used with another body.",
  CONVERSATION_CLOSED: "The conversation has ended.",
  NOT_CANCELLED: "It cannot be cancelled any more.",
  TOO_LARGE: "The body, or the content in it, has too many bytes.",
  INVALID_INPUT: "The input does not fit its schema; `errors` says where and why.",
  UNSUPPORTED: "The model or provider cannot do what was asked.",
  UPGRADE_REQUIRED: "Connect here with a WebSocket.",
  RATE_LIMITED: "Too many requests, or turns, in a short time. Wait as long as `Retry-After` says.",
  TOO_MANY_TURNS: "Too many turns of this conversation are active.",
  QUEUE_OVERFLOW: "Too much is waiting.",
  INTERNAL_ERROR: "A defect. Quote `incident` when you report it.",
  RECOVERY_EXHAUSTED: "The turn was interrupted too often.",
  MODEL_FAILED: "The model's provider failed.",
  OUTPUT_INVALID: "The model's answer does not fit the schema that was asked for.",
  UNAVAILABLE: "The runtime, or a part of it, cannot answer now. Try again after `Retry-After`.",
};
