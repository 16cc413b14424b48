/**
 * Decodes one reply of the Gemini API: the pieces of a stream, or the whole response as one payload.
 *
 * GEMINI-4  Only the first candidate is read. A call without an id gets one when the reply is assembled.
 * GEMINI-5  A blocked prompt is an error of the category `safety`. A call that the model wrote in the wrong form is an
 *           error that may be retried.
 */
import { z } from "zod";
import type { ErrorCategory, ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { inBandError, readErrorBody } from "../../errors/model-errors.ts";
import { finishReason, ReplyDecoder } from "../common/decoder.ts";
import { nativeDeltas } from "../common/native.ts";
import { finerCounts, sum, tokenUsage, usageDeltas } from "../common/usage.ts";
import { GeminiReplyParts } from "./gemini-parts.ts";

const object = z.custom<JsonObject>(isJsonObject);
const text = z.string().nullish();
const detail = text.catch(undefined);

const responseSchema = z.object({
  candidates: z
    .array(
      z.object({
        index: z.number().nullish(),
        content: z.object({ parts: z.array(object).nullish() }).nullish(),
        finishReason: text,
        finishMessage: detail,
      }),
    )
    .nullish(),
  promptFeedback: z.object({ blockReason: text, blockReasonMessage: detail }).nullish(),
  usageMetadata: object.nullish().catch(undefined),
  responseId: detail,
});

/** Finish reasons that are failures of the model or of the request. */
const FAILURES: ReadonlyMap<string, ErrorCategory> = new Map([
  ["MALFORMED_FUNCTION_CALL", "transient"],
  ["UNEXPECTED_TOOL_CALL", "transient"],
  ["MALFORMED_RESPONSE", "transient"],
  ["MISSING_THOUGHT_SIGNATURE", "validation"],
]);

const FILTERS = ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"];
const IMAGE_FILTERS = ["IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"];

const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["STOP", "stop"],
  ["MAX_TOKENS", "length"],
  ...[...FILTERS, ...IMAGE_FILTERS].map((filter) => [filter, "content_filter"] as const),
]);

/** The reply is never over before the stream ends: counts may follow the finish reason. */
export class GeminiDecoder extends ReplyDecoder {
  readonly #parts = new GeminiReplyParts();
  #stop: string | undefined;

  protected get finish(): FinishReason | undefined {
    return finishReason(FINISH_REASONS, this.#stop, this.#parts.hasCalls);
  }

  protected read(payload: JsonObject): ModelDelta[] | ModelError | undefined {
    if (payload.error !== undefined && payload.error !== null)
      return inBandError(this.provider, payload.error);
    const { data } = responseSchema.safeParse(payload);
    if (data === undefined) return undefined;
    const { blockReason, blockReasonMessage } = data.promptFeedback ?? {};
    if (blockReason) {
      return this.error(
        "safety",
        because(`The provider blocked the prompt (${blockReason})`, blockReasonMessage),
      );
    }
    const candidate = data.candidates?.find(({ index }) => (index ?? 0) === 0);
    const stop = candidate?.finishReason;
    const failure = FAILURES.get(stop ?? "");
    if (failure !== undefined)
      return this.error(failure, because(`The model ended its reply with ${stop}`, candidate?.finishMessage));
    this.messageId ||= data.responseId;
    const deltas: ModelDelta[] = [];
    for (const part of candidate?.content?.parts ?? []) {
      const added = this.#parts.add(part);
      if (added === undefined) return undefined;
      deltas.push(...added);
    }
    if (stop) this.#stop = stop;
    // Each chunk counts the whole reply so far, without the counts that are zero.
    if (data.usageMetadata) deltas.push(...usageDeltas(toUsage(data.usageMetadata)));
    return deltas;
  }

  protected override close(): ModelDelta[] {
    return [...this.#parts.close(), ...nativeDeltas(this.#parts.parts())];
  }
}

/** Appends the provider's message, redacted and bounded. */
function because(what: string, message: string | null | undefined): string {
  const detail = readErrorBody(JSON.stringify({ message })).message;
  return detail === undefined ? `${what}.` : `${what}: ${detail}`;
}

/** The API counts input from its tools separately from other input, and thoughts separately from other output. */
function toUsage(counts: JsonObject): TokenUsage | undefined {
  return tokenUsage(
    {
      inputTokens: sum(counts.promptTokenCount, counts.toolUsePromptTokenCount),
      cachedInputTokens: counts.cachedContentTokenCount,
      outputTokens: sum(counts.candidatesTokenCount, counts.thoughtsTokenCount),
      reasoningTokens: counts.thoughtsTokenCount,
      totalTokens: counts.totalTokenCount,
    },
    finerCounts(counts),
  );
}
