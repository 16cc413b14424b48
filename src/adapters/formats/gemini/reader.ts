/**
 * Reads one reply of the Gemini API: the pieces of a stream, or the whole response as one payload.
 *
 * GEMINI-4  Only the first candidate is read. A call without an id gets one when the reply is assembled.
 * GEMINI-5  A prompt that was blocked is an error of the category `safety`. A call that the model did not manage to write
 *           is an error that is tried again.
 */
import { z } from "zod";
import type { ErrorCategory, ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { inBandError, modelError, readErrorBody } from "../../errors/model-errors.ts";
import type { ReplyReader } from "../common/reply-stream.ts";
import { RunningCounts } from "../common/usage.ts";
import { ReplyParts } from "./reply-parts.ts";
import { geminiUsage } from "./usage.ts";

const object = z.custom<JsonObject>(isJsonObject);
const text = z.string().nullish();

const response = z.object({
  candidates: z
    .array(
      z.object({
        index: z.number().nullish(),
        content: z.object({ parts: z.array(object).nullish() }).nullish(),
        finishReason: text,
        finishMessage: text.catch(undefined),
      }),
    )
    .nullish(),
  promptFeedback: z.object({ blockReason: text, blockReasonMessage: text.catch(undefined) }).nullish(),
  usageMetadata: object.nullish().catch(undefined),
  responseId: text.catch(undefined),
});

/** Ends of a reply that are failures of the model or of the request. */
const FAILURES: ReadonlyMap<string, ErrorCategory> = new Map([
  ["MALFORMED_FUNCTION_CALL", "transient"],
  ["UNEXPECTED_TOOL_CALL", "transient"],
  ["MALFORMED_RESPONSE", "transient"],
  ["MISSING_THOUGHT_SIGNATURE", "validation"],
]);

export class GeminiReader implements ReplyReader {
  readonly #parts = new ReplyParts();
  readonly #counts = new RunningCounts(geminiUsage);
  #messageId: string | undefined;
  #stop: string | undefined;

  /** Counts may follow the reason. */
  readonly isOver = false;

  get finish(): FinishReason | undefined {
    return this.#stop === undefined ? undefined : finishReason(this.#stop, this.#parts.hasCalls);
  }

  read(payload: JsonObject): ModelDelta[] | ModelError | undefined {
    if (payload.error !== undefined && payload.error !== null) return inBandError("gemini", payload.error);
    const { data } = response.safeParse(payload);
    if (data === undefined) return undefined;
    const { blockReason, blockReasonMessage } = data.promptFeedback ?? {};
    if (blockReason) return blocked(blockReason, blockReasonMessage);
    const candidate = data.candidates?.find(({ index }) => (index ?? 0) === 0);
    const stop = candidate?.finishReason;
    const failure = stop ? FAILURES.get(stop) : undefined;
    if (stop && failure !== undefined) {
      return modelError(
        "gemini",
        failure,
        because(`The model ended its reply with ${stop}`, candidate?.finishMessage),
      );
    }
    const deltas: ModelDelta[] = [];
    if (data.responseId && this.#messageId === undefined) {
      this.#messageId = data.responseId;
      deltas.push({ type: "message-id", id: data.responseId });
    }
    for (const part of candidate?.content?.parts ?? []) {
      const added = this.#parts.add(part);
      if (added === undefined) return undefined;
      deltas.push(...added);
    }
    if (stop) this.#stop = stop;
    return [...deltas, ...this.#counts.add(data.usageMetadata)];
  }

  close(): ModelDelta[] {
    const last = this.#parts.close();
    const parts = this.#parts.native();
    return parts === undefined ? last : [...last, { type: "native", parts }];
  }
}

function blocked(reason: string, message: string | null | undefined): ModelError {
  return modelError("gemini", "safety", because(`The provider blocked the prompt (${reason})`, message));
}

function because(what: string, message: string | null | undefined): string {
  const said = readErrorBody(JSON.stringify({ message })).message;
  return said === undefined ? `${what}.` : `${what}: ${said}`;
}

function finishReason(stop: string, hasCalls: boolean): FinishReason {
  switch (stop) {
    case "STOP":
      return hasCalls ? "tool_calls" : "stop";
    case "MAX_TOKENS":
      return "length";
    case "SAFETY":
    case "RECITATION":
    case "BLOCKLIST":
    case "PROHIBITED_CONTENT":
    case "SPII":
    case "IMAGE_SAFETY":
    case "IMAGE_PROHIBITED_CONTENT":
    case "IMAGE_RECITATION":
      return "content_filter";
    default:
      return "other";
  }
}
