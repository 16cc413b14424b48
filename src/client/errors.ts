/** Errors of client requests: the server's problem document, or the lack of a usable response. */
import { PROTOCOL_VERSION } from "../protocol/frames.ts";
import type { InputIssue } from "../shared/errors.ts";

/**
 * A failed request. `code` is a code of the server, which the client also uses for invalid arguments, or a client code: `NETWORK` (no
 * response), `HTTP` (a response without a problem document), `STREAM_INTERRUPTED` (the stream ended before the turn) or `UNSUPPORTED`
 * (another protocol version).
 *
 * @example
 * await client.conversations.get(id).catch((error) => {
 *   if (!(error instanceof DramatisClientError) || error.code !== "NOT_FOUND") throw error;
 * });
 */
export class DramatisClientError extends Error {
  override readonly name = "DramatisClientError";
  readonly code: string;
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** Description of the problem and its remedy. */
  readonly detail: string;
  /** Invalid parts of the input. */
  readonly errors: readonly InputIssue[];
  /** Wait that the server requests before a retry, in milliseconds, or `null`. */
  readonly retryAfter: number | null;

  constructor(problem: {
    code: string;
    status: number;
    detail: string;
    errors?: readonly InputIssue[];
    retryAfter?: number | null;
    cause?: unknown;
  }) {
    super(problem.detail, problem.cause === undefined ? undefined : { cause: problem.cause });
    this.code = problem.code;
    this.status = problem.status;
    this.detail = problem.detail;
    this.errors = problem.errors ?? [];
    this.retryAfter = problem.retryAfter ?? null;
  }

  /** Reports whether the same request may succeed later. With the same idempotency key it takes effect once. */
  get retriable(): boolean {
    const isLost = this.code === "NETWORK" || this.code === "STREAM_INTERRUPTED";
    return isLost || this.status === 429 || this.status >= 500;
  }
}

export function wrongInput(code: "INVALID_INPUT" | "NOT_FOUND", detail: string): DramatisClientError {
  return new DramatisClientError({ code, status: 0, detail });
}

export const OTHER_VERSION = `The server uses another protocol version than this client (${PROTOCOL_VERSION}). Update the client.`;

export async function errorFromResponse(response: Response): Promise<DramatisClientError> {
  const { status, statusText } = response;
  const { code, detail, title, errors } = asObject(await response.json().catch(() => undefined));
  const retryAfter = retryAfterOf(response);
  if (typeof code !== "string") {
    const detail = `HTTP ${status} ${statusText}`.trim();
    return new DramatisClientError({ code: "HTTP", status, detail, retryAfter });
  }
  return new DramatisClientError({
    code,
    status,
    detail: [detail, title, code].find((text) => typeof text === "string") ?? code,
    errors: Array.isArray(errors) ? errors.flatMap(inputIssue) : [],
    retryAfter,
  });
}

/** Reads `Retry-After` in seconds, the form that a Dramatis server sends. */
function retryAfterOf({ headers }: Response): number | null {
  const seconds = headers.get("retry-after") ?? "";
  return /^[0-9]{1,9}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** Returns the error of a request without a response. An abort by the caller's signal stays the caller's error. */
export function noAnswer(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return cause;
  const detail = "The server could not be reached. Check the address and the network, then try again.";
  return new DramatisClientError({ code: "NETWORK", status: 0, detail, cause });
}

/** Returns a failure as an error of this class. A `token` function of the page, for example, may throw any value. */
export function asClientError(cause: unknown): DramatisClientError {
  if (cause instanceof DramatisClientError) return cause;
  const detail = `The request was not sent: ${cause instanceof Error ? cause.message : cause}`;
  return new DramatisClientError({ code: "NETWORK", status: 0, detail, cause });
}

export function notJson({ url, status }: Response, cause: unknown): DramatisClientError {
  const detail = `The response of ${url} is not JSON. Check that the address belongs to a Dramatis server.`;
  return new DramatisClientError({ code: "HTTP", status, detail, cause });
}

/** Returns the error of a stream in another protocol version. */
export function otherVersion(): DramatisClientError {
  return new DramatisClientError({ code: "UNSUPPORTED", status: 0, detail: OTHER_VERSION });
}

/** Returns the error of a stream that ended or broke before its turn ended. */
export function streamInterrupted(cause?: unknown): DramatisClientError {
  const detail = "The stream ended before the turn did. The turn continues: read it by its id.";
  return new DramatisClientError({ code: "STREAM_INTERRUPTED", status: 0, detail, cause });
}

function inputIssue(issue: unknown): InputIssue[] {
  const { path, message } = asObject(issue);
  return typeof path === "string" && typeof message === "string" ? [{ path, message }] : [];
}

function asObject(value: unknown): Partial<Record<string, unknown>> {
  // SAFETY: widens an object to optional unknown members, which callers check.
  return typeof value === "object" && value !== null ? (value as Partial<Record<string, unknown>>) : {};
}
