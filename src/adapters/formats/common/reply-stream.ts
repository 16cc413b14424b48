/**
 * Decodes one reply from its payloads. A reader knows what a provider's payloads say; this state machine decides what is
 * complete.
 *
 * STREAM-1  `finish` comes last, once, and only when the reply is complete: after a finish reason or `[DONE]`.
 * STREAM-2  A reply that ends before it is complete, or a payload that cannot be read, gives one error delta.
 * STREAM-3  Once a finish reason is known, nothing that follows can turn the reply into a failure.
 * STREAM-4  After an error delta nothing more is reported.
 */

import type { ModelError } from "../../../model/error.ts";
import type { StreamDecoder } from "../../../model/format-adapter.ts";
import type { ProviderId } from "../../../model/profile.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { modelError } from "../../errors/model-errors.ts";

/** Reads the payloads of one reply, in order. */
export interface ReplyReader {
  /** What one payload adds, or the error that it is; `undefined` if its shape is unknown. */
  read(payload: JsonObject): ModelDelta[] | ModelError | undefined;
  /** The provider says that nothing more comes. */
  done?(): void;
  /** Why the reply ended, as soon as that is known. */
  readonly finish: FinishReason | undefined;
  /** Nothing more can come. */
  readonly isOver: boolean;
  /** What stands before `finish`. Called once. */
  close(): ModelDelta[];
}

export class ReplyStream implements StreamDecoder {
  readonly #provider: ProviderId;
  readonly #reader: ReplyReader;
  #isOpen = true;

  constructor(provider: ProviderId, reader: ReplyReader) {
    this.#provider = provider;
    this.#reader = reader;
  }

  push(data: string): ModelDelta[] {
    const payload = data.trim();
    if (!this.#isOpen || payload === "") return [];
    if (payload === DONE) {
      this.#reader.done?.();
      return this.end();
    }
    const value = parse(payload);
    if (value === undefined) return this.#fail("The provider sent something that is not a JSON object.");
    const read = this.#reader.read(value);
    if (read === undefined) return this.#fail("The provider sent a payload of an unknown shape.");
    if (!Array.isArray(read)) return this.#fail(read);
    return this.#reader.isOver ? [...read, ...this.end()] : read;
  }

  end(): ModelDelta[] {
    if (!this.#isOpen) return [];
    const { finish } = this.#reader;
    if (finish === undefined) return this.#fail("The reply ended before it was complete.");
    this.#isOpen = false;
    return [...this.#reader.close(), { type: "finish", reason: finish }];
  }

  #fail(reason: string | ModelError): ModelDelta[] {
    if (this.#reader.finish !== undefined) return [];
    this.#isOpen = false;
    const error = typeof reason === "string" ? modelError(this.#provider, "transient", reason) : reason;
    return [{ type: "error", error }];
  }
}

function parse(payload: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(payload);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What ends a stream of chat chunks. */
export const DONE = "[DONE]";
