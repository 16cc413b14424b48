/** What a request of the client can fail with: the server's problem document, or the lack of an answer. */
import type { InputIssue } from "../shared/errors.ts";

/**
 * A request failed. `code` is one of the server's, or `NETWORK` (no answer came), `HTTP` (an answer that is no problem
 * document), `STREAM_INTERRUPTED` (a turn's stream ended before the turn did) or `UNSUPPORTED` (the stream is of
 * another version of the protocol).
 */
export class DramatisClientError extends Error {
  override readonly name = "DramatisClientError";
  readonly code: string;
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  /** What happened and what to change. */
  readonly detail: string;
  /** What was wrong with the input, place by place. */
  readonly errors: readonly InputIssue[];
  /** Milliseconds that the server asks to wait before the same is sent again; `null` where it says nothing. */
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

  /** The same request may succeed later; with the same idempotency key it cannot act twice. */
  get retriable(): boolean {
    return (this.status === 0 && this.code !== "UNSUPPORTED") || this.status === 429 || this.status >= 500;
  }
}

/** The error in an answer whose status is not a success. */
export async function errorFromResponse(response: Response): Promise<DramatisClientError> {
  const { status, statusText } = response;
  const body = asObject(await response.json().catch(() => undefined));
  const { code, detail, title, errors } = body;
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

/** `Retry-After` as our servers write it: whole seconds. */
function retryAfterOf({ headers }: Response): number | null {
  const seconds = headers.get("retry-after") ?? "";
  return /^[0-9]{1,9}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** The error of a request that got no answer. What the caller's own signal ended is the caller's error. */
export function noAnswer(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return cause;
  const detail = "The server could not be reached. Check the address and the network, then try again.";
  return new DramatisClientError({ code: "NETWORK", status: 0, detail, cause });
}

/** The error of a successful answer that is not JSON. */
export function notJson({ url, status }: Response, cause: unknown): DramatisClientError {
  const detail = `The answer of ${url} is not JSON. Check that the address is that of a Dramatis server.`;
  return new DramatisClientError({ code: "HTTP", status, detail, cause });
}

/** The error of a stream whose frames are of another version. */
export function otherVersion(): DramatisClientError {
  const detail = "The server speaks another version of the protocol. Update the client.";
  return new DramatisClientError({ code: "UNSUPPORTED", status: 0, detail });
}

/** The error of a turn's stream that ended, or broke, before the turn did. */
export function streamInterrupted(cause?: unknown): DramatisClientError {
  const detail = "The stream ended before the turn did. The turn goes on: read it by its id.";
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
