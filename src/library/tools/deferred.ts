/** The value that a tool returns to defer its operation. */
import { isPlainUrl } from "../../shared/text.ts";
import { ToolError } from "./tool-error.ts";

/** The error of a `pure` tool that defers. Calls of pure tools may run before they are recorded. */
export const NOT_DEFERRABLE =
  'A `pure` tool cannot defer its call. Declare `effect: "idempotent"` if it may run twice, or `effect: "once"`.';

/** Options of `ctx.defer()`. */
export interface DeferOptions {
  /** Time limit for the result, in milliseconds. Default: 24 hours. Maximum: 30 days. */
  expiresInMs?: number;
}

/** A deferred operation. Pass its `url` or `handle` to the system that will produce the result, then return it. */
export class Deferred {
  /** The API path that accepts the result. */
  readonly path: string;
  /** The deadline for the result. */
  readonly expiresAt: Date;
  readonly #baseUrl: string | undefined;

  constructor(
    /** A token that completes only this operation. Treat it as a secret. */
    readonly handle: string,
    expiresAt: number,
    baseUrl: string | undefined,
  ) {
    this.path = `/api/operations/${handle}/result`;
    this.expiresAt = new Date(expiresAt);
    this.#baseUrl = baseUrl;
  }

  /** The URL that accepts the result by `POST`. Throws unless the variable `DRAMATIS_URL` has the URL of the Worker. */
  get url(): string {
    if (this.#baseUrl !== undefined && isPlainUrl(this.#baseUrl))
      return this.#baseUrl.replace(/\/+$/, "") + this.path;
    throw new Error(
      "Set the variable DRAMATIS_URL to the address of this Worker, such as https://agents.example.com, or use `path`.",
    );
  }

  /** Throws, because a nested deferred operation would show its handle to the model. */
  toJSON(): never {
    throw new ToolError("Return the value of `defer()` itself, not inside another value.");
  }
}
