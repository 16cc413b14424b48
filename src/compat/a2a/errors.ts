/**
 * Errors in the forms of A2A: an error of JSON-RPC, and a `google.rpc.Status` for REST. Pure.
 *
 * A2A-9  Every error under `/a2a` has the form of its binding. Its first detail is a `google.rpc.ErrorInfo` with a reason: a reason of A2A in
 *        the domain `a2a-protocol.org`, or a code of Dramatis in the domain `dramatis`. Invalid input has a `google.rpc.BadRequest`, too.
 */
import { DramatisError, type ErrorCode, type InputIssue } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";

/** The errors of A2A that the server sends: their codes of JSON-RPC, and their statuses of HTTP as release 1.0.1 has them. */
const A2A_REASONS = {
  TASK_NOT_FOUND: [-32_001, 404],
  TASK_NOT_CANCELABLE: [-32_002, 400],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32_003, 400],
  UNSUPPORTED_OPERATION: [-32_004, 400],
  CONTENT_TYPE_NOT_SUPPORTED: [-32_005, 400],
  VERSION_NOT_SUPPORTED: [-32_009, 400],
} as const;

export type A2aReason = keyof typeof A2A_REASONS;

const RPC_CODES: Readonly<Record<string, number>> = {
  INVALID_JSON: -32_700,
  METHOD_NOT_FOUND: -32_601,
  INVALID_PARAMS: -32_602,
  INTERNAL_ERROR: -32_603,
};
/** The code of JSON-RPC for a body that is no request. */
const INVALID_REQUEST = -32_600;
/** The code of JSON-RPC for all other errors of a server. */
const SERVER_ERROR = -32_000;

const STATUS_NAMES: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  402: "RESOURCE_EXHAUSTED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  409: "ABORTED",
  413: "OUT_OF_RANGE",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
};

/** An error of the protocol: an error of A2A, or of the parameters of a request. */
export class A2aError extends Error {
  constructor(
    readonly reason: A2aReason | "METHOD_NOT_FOUND" | "INVALID_PARAMS" | "INTERNAL_ERROR",
    message: string,
    readonly issues: readonly InputIssue[] = [],
    /** The code of Dramatis, if it has one. */
    readonly code: string = reason,
  ) {
    super(message);
  }
}

/** The errors of Dramatis that are errors of the protocol. */
const REASONS: Partial<Record<ErrorCode, A2aError["reason"]>> = {
  INVALID_INPUT: "INVALID_PARAMS",
  CONFLICT: "INVALID_PARAMS",
  IDEMPOTENCY_CONFLICT: "INVALID_PARAMS",
  UNSUPPORTED: "UNSUPPORTED_OPERATION",
  CONVERSATION_CLOSED: "UNSUPPORTED_OPERATION",
};

/** Returns an error as an error of the protocol. Rethrows the errors that become problem documents. */
export function protocolError(error: unknown): A2aError {
  if (error instanceof A2aError) return error;
  const reason = error instanceof DramatisError ? REASONS[error.code] : undefined;
  if (reason === undefined || !(error instanceof DramatisError)) throw error;
  return new A2aError(reason, error.message, error.options.errors, error.code);
}

/** An error of JSON-RPC. `data` has the details. */
export interface RpcError {
  code: number;
  message: string;
  data: JsonObject[];
}

/** A `google.rpc.Status`. `code` is the status of HTTP. */
export interface StatusError {
  code: number;
  status: string;
  message: string;
  details: JsonObject[];
}

/** The members of a problem document that an error is made from. */
export interface KnownProblem {
  status: number;
  code: string;
  detail: string;
  errors?: readonly InputIssue[] | undefined;
}

export function rpcError({ reason, code, message, issues }: A2aError): RpcError {
  if (!isA2aReason(reason))
    return { code: RPC_CODES[reason] ?? SERVER_ERROR, message, data: detailsOf(code, issues) };
  return { code: A2A_REASONS[reason][0], message, data: detailsOf(reason, issues) };
}

export function statusError({ reason, code, message, issues }: A2aError): StatusError {
  const own = reason === "INTERNAL_ERROR" ? 500 : reason === "METHOD_NOT_FOUND" ? 404 : 400;
  if (!isA2aReason(reason))
    return {
      code: own,
      status: STATUS_NAMES[own] ?? "INVALID_ARGUMENT",
      message,
      details: detailsOf(code, issues),
    };
  const status = A2A_REASONS[reason][1];
  const name = reason === "CONTENT_TYPE_NOT_SUPPORTED" ? "INVALID_ARGUMENT" : "FAILED_PRECONDITION";
  return {
    code: status,
    status: STATUS_NAMES[status] ?? name,
    message,
    details: detailsOf(reason, issues),
  };
}

export function a2aStatus<Status extends number>(status: Status): Status | 400 {
  return status === 422 ? 400 : status;
}

/** Returns a problem as an error of JSON-RPC, for a request that has no answer. */
export function rpcProblem({ code, detail, errors = [] }: KnownProblem): RpcError {
  const rpcCode = code === "INVALID_INPUT" ? INVALID_REQUEST : (RPC_CODES[code] ?? SERVER_ERROR);
  return { code: rpcCode, message: detail, data: detailsOf(code, errors) };
}

export function statusProblem({ status, code, detail, errors = [] }: KnownProblem): StatusError {
  const own = a2aStatus(status);
  return {
    code: own,
    status: STATUS_NAMES[own] ?? "INVALID_ARGUMENT",
    message: detail,
    details: detailsOf(code, errors),
  };
}

function isA2aReason(reason: string): reason is A2aReason {
  return Object.hasOwn(A2A_REASONS, reason);
}

function detailsOf(reason: string, issues: readonly InputIssue[]): JsonObject[] {
  const domain = isA2aReason(reason) ? "a2a-protocol.org" : "dramatis";
  const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain };
  if (issues.length === 0) return [info];
  const fieldViolations = issues.map(({ path, message }) => ({
    field: path.slice(1).replaceAll("/", "."),
    description: message,
  }));
  return [info, { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations }];
}
