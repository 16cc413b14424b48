/**
 * The state machine that all decoders share. A format's decoder reads the payloads of one reply; this class decides when
 * the reply is complete.
 *
 * STREAM-1  `finish` comes last, once, and only when the reply is complete: after a finish reason or `[DONE]`.
 * STREAM-2  A reply that ends before it is complete, or a payload that cannot be read, gives one error delta.
 * STREAM-3  Once a finish reason is known, no later payload can turn the reply into a failure.
 * STREAM-4  No delta follows an error delta.
 */
import type { ErrorCategory, ModelError } from "../../../model/error.ts";
import type { StreamDecoder } from "../../../model/format-adapter.ts";
import type { ProviderId } from "../../../model/profile.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../../shared/json.ts";
import { modelError } from "../../errors/model-errors.ts";

/** The payload that ends a stream of chat chunks. */
export const DONE = "[DONE]";

export abstract class ReplyDecoder implements StreamDecoder {
  protected readonly provider: ProviderId;
  /** The provider's id of the reply, once it is known. */
  protected messageId: string | null | undefined;
  /** Set when no payload can add to the reply. */
  protected isOver = false;
  #isOpen = true;
  #hasReportedId = false;

  constructor(provider: ProviderId) {
    this.provider = provider;
  }

  /** Returns the deltas of one payload, or the error that it reports; `undefined` if its shape is unknown. */
  protected abstract read(payload: JsonObject): ModelDelta[] | ModelError | undefined;

  /** The finish reason, as soon as it is known. */
  protected abstract get finish(): FinishReason | undefined;

  /** Called at `[DONE]`. */
  protected done(): void {}

  /** Returns the deltas that come before `finish`. Called once. */
  protected close(): ModelDelta[] {
    return [];
  }

  push(data: string): ModelDelta[] {
    const text = data.trim();
    if (!this.#isOpen || text === "") return [];
    if (text === DONE) {
      this.done();
      return this.end();
    }
    const payload = parseJson(text);
    if (!isJsonObject(payload)) return this.#fail("The provider sent a payload that is not a JSON object.");
    const deltas = this.read(payload);
    if (deltas === undefined) return this.#fail("The provider sent a payload of an unknown shape.");
    if (!Array.isArray(deltas)) return this.#fail(deltas);
    if (this.messageId && !this.#hasReportedId) {
      this.#hasReportedId = true;
      deltas.unshift({ type: "message-id", id: this.messageId });
    }
    return this.isOver ? [...deltas, ...this.end()] : deltas;
  }

  end(): ModelDelta[] {
    if (!this.#isOpen) return [];
    const { finish } = this;
    if (finish === undefined) return this.#fail("The reply ended before it was complete.");
    this.#isOpen = false;
    return [...this.close(), { type: "finish", reason: finish }];
  }

  protected error(category: ErrorCategory, message: string): ModelError {
    return modelError(this.provider, category, message);
  }

  #fail(reason: string | ModelError): ModelDelta[] {
    if (this.finish !== undefined) return [];
    this.#isOpen = false;
    return [{ type: "error", error: typeof reason === "string" ? this.error("transient", reason) : reason }];
  }
}

/**
 * Translates a provider's finish reason. A reply that ends normally has the reason `tool_calls` if it has calls; a reply
 * without calls never has it.
 */
export function finishReason(
  reasons: ReadonlyMap<string, FinishReason>,
  reason: string | undefined,
  hasCalls: boolean,
): FinishReason | undefined {
  if (reason === undefined) return undefined;
  const known = reasons.get(reason) ?? "other";
  if ((known === "stop" || known === "paused") && hasCalls) return "tool_calls";
  return known === "tool_calls" && !hasCalls ? "other" : known;
}
