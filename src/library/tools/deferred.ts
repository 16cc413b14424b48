/** The value that a tool returns to defer its operation. */
import { isPlainUrl } from "../../shared/text.ts";
import { ToolError } from "./tool-error.ts";

/** The refusal of a `pure` tool that defers. Its calls may run before they are recorded. */
export const NOT_DEFERRABLE =
  'A `pure` tool cannot defer its call. Declare `effect: "idempotent"` if it may run twice, or `effect: "once"`.';

/** Options of `ctx.defer()`. */
export interface DeferOptions {
  /** Milliseconds in which the result must arrive: at most 30 days; 24 hours when absent. */
  expiresInMs?: number;
}

/** A deferred operation. Give its `url` or its `handle` to whoever will have the result, then return it. */
export class Deferred {
  /** The path that takes the result, on the server that serves the API. */
  readonly path: string;
  /** The time until which the result must arrive. */
  readonly expiresAt: Date;
  readonly #baseUrl: string | undefined;

  constructor(
    /** The right to complete this operation, and nothing else. Treat it as a secret. */
    readonly handle: string,
    expiresAt: number,
    baseUrl: string | undefined,
  ) {
    this.path = `/api/operations/${handle}/result`;
    this.expiresAt = new Date(expiresAt);
    this.#baseUrl = baseUrl;
  }

  /** The address that takes the result by `POST`. Throws unless the variable `DRAMATIS_URL` has the Worker's address. */
  get url(): string {
    if (this.#baseUrl !== undefined && isPlainUrl(this.#baseUrl))
      return this.#baseUrl.replace(/\/+$/, "") + this.path;
    throw new Error(
      "Set the variable DRAMATIS_URL to the address of this Worker, such as https://agents.example.com, or use `path`.",
    );
  }

  /** A deferred operation within a result would show its handle to the model. */
  toJSON(): never {
    throw new ToolError("Return what `defer()` gave by itself, not within another value.");
  }
}
