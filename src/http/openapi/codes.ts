/** The meaning of each problem code, for readers of the API's description. */
import type { ProblemCode } from "../base/problem.ts";

export const CODE_MEANINGS: Record<ProblemCode, string> = {
  INVALID_JSON: "The body is empty, not JSON, not UTF-8, or nests deeper than 64 levels.",
  INVALID_SIGNAL: "The signal's envelope is not valid; `errors` lists the problems.",
  UNKNOWN_PARAMETER: "The list has no such query parameter. `errors` names the known parameters.",
  UNAUTHENTICATED: "The credentials are missing or not valid.",
  BUDGET_EXCEEDED: "A budget of the turn, the conversation or its agent is used up.",
  FORBIDDEN: "The caller's roles do not allow this.",
  PERMISSION_DENIED: "The rule of the approval or of the gate does not let you answer.",
  NOT_FOUND: "The resource does not exist, or belongs to somebody else.",
  METHOD_NOT_ALLOWED: "The path does not support this method. `Allow` lists the supported methods.",
  CONFLICT: "A resource with this id exists, or its state does not allow this.",
  IDEMPOTENCY_CONFLICT: "The idempotency key was used with another body.",
  CONVERSATION_CLOSED: "The conversation has ended.",
  NOT_CANCELLED: "The conversation is not stopped, so it cannot resume.",
  CANCELLED: "The turn was stopped.",
  TOO_LARGE: "The body, or its content, exceeds the maximum size.",
  INVALID_INPUT: "The input does not fit its schema; `errors` lists the problems and their places.",
  UNSUPPORTED: "The model or its provider does not support the request.",
  UPGRADE_REQUIRED: "Connect here with a WebSocket.",
  RATE_LIMITED:
    "Too many requests, turns or changes of a conversation in a short time. Retry after the time in `Retry-After`.",
  TOO_MANY_TURNS: "Too many turns of this conversation are active.",
  QUEUE_OVERFLOW: "The queue is full.",
  INTERNAL_ERROR: "An internal error. Quote `incident` when you report it.",
  RECOVERY_EXHAUSTED: "The turn was interrupted too often.",
  OUTCOME_UNKNOWN:
    "The request may repeat an effect that must happen only once, and it does not allow the repetition.",
  CONTEXT_ASSEMBLY_FAILED: "The context hook of the agent failed; no model was called.",
  MODEL_FAILED: "The model's provider failed.",
  OUTPUT_INVALID: "The model's answer does not fit the requested schema.",
  UNAVAILABLE: "The runtime, or a part of it, cannot answer now. Retry after the time in `Retry-After`.",
};
