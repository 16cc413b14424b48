/**
 * Decodes one reply of the Messages API: the events of a stream, or the whole message as one payload.
 *
 * ANTHROPIC-5  A tool that the provider runs itself is not a call of ours: its blocks are kept and sent back.
 * ANTHROPIC-6  If a message starts again before its first block, it is the same message. A later start is an error, because reported deltas
 *              cannot be withdrawn.
 * ANTHROPIC-7  Events of an unknown type are ignored. A known event of another shape is an error.
 */
import { z } from "zod";
import type { ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { inBandError } from "../../errors/model-errors.ts";
import { finishReason, ReplyDecoder } from "../common/decoder.ts";
import { membersOf } from "../common/json.ts";
import { nativeDeltas } from "../common/native.ts";
import { finerCounts, RunningCounts, sum, tokenUsage, total } from "../common/usage.ts";
import { AnthropicReplyParts } from "./anthropic-parts.ts";

const object = z.custom<JsonObject>(isJsonObject);
const text = z.string().nullish();
const usage = object.nullish().catch(undefined);

const messageSchema = z.object({
  id: text.catch(undefined),
  content: z.array(object).nullish(),
  stop_reason: text,
  usage,
});

const messageDeltaSchema = z.object({ delta: z.object({ stop_reason: text }).nullish(), usage });

const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["tool_use", "tool_calls"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"],
  ["pause_turn", "paused"],
]);

export class AnthropicDecoder extends ReplyDecoder {
  readonly #parts = new AnthropicReplyParts();
  readonly #counts = new RunningCounts(toUsage);
  #hasBegun = false;
  #stop: string | undefined;

  protected get finish(): FinishReason | undefined {
    return finishReason(FINISH_REASONS, this.#stop, this.#parts.hasCalls);
  }

  protected read(payload: JsonObject): ModelDelta[] | ModelError | undefined {
    const { type, index, error } = payload;
    if (isJsonObject(error)) return this.#failure(error, payload.request_id);
    switch (type) {
      case "content_block_delta":
        return typeof index === "number" && isJsonObject(payload.delta)
          ? this.#parts.add(index, payload.delta)
          : undefined;
      case "content_block_start":
        return typeof index === "number" && isJsonObject(payload.content_block)
          ? this.#parts.begin(index, payload.content_block)
          : undefined;
      case "content_block_stop":
        return typeof index === "number" ? this.#parts.end(index) : undefined;
      case "message_start":
        return this.#begin(payload.message);
      case "message":
        return this.#begin(payload, "end_turn");
      case "message_delta":
        return this.#update(payload);
      case "message_stop":
        this.isOver = true;
        if (this.#hasBegun) this.#stop ??= "end_turn";
        return [];
      default:
        return typeof type === "string" ? [] : undefined;
    }
  }

  protected override close(): ModelDelta[] {
    return [...this.#parts.close(), ...nativeDeltas(this.#parts.parts(this.finish === "paused"))];
  }

  /** `wholeStop` is the finish reason of a whole message that comes without one. */
  #begin(message: unknown, wholeStop?: string): ModelDelta[] | ModelError | undefined {
    const { data } = messageSchema.safeParse(message);
    if (data === undefined) return undefined;
    this.isOver ||= wholeStop !== undefined;
    if (this.#parts.size > 0)
      return this.error("transient", "The provider started another reply within this reply.");
    this.#hasBegun = true;
    this.#stop = data.stop_reason ?? wholeStop ?? this.#stop;
    this.messageId ||= data.id;
    return [...this.#parts.whole(data.content ?? []), ...this.#counts.add(data.usage)];
  }

  #update(payload: JsonObject): ModelDelta[] | undefined {
    const { data } = messageDeltaSchema.safeParse(payload);
    if (data === undefined) return undefined;
    this.#stop = data.delta?.stop_reason ?? this.#stop;
    return this.#counts.add(data.usage);
  }

  #failure(error: JsonObject, requestId: unknown): ModelError {
    const failure = inBandError(this.provider, error);
    return typeof requestId === "string" && requestId !== "" ? { ...failure, requestId } : failure;
  }
}

/** The API counts cached input separately from other input. */
function toUsage(counts: JsonObject): TokenUsage | undefined {
  const { input_tokens: fresh, output_tokens: output, output_tokens_details: details } = counts;
  const { cache_read_input_tokens: cached, cache_creation_input_tokens: written } = counts;
  const input = sum(fresh) === undefined ? undefined : sum(fresh, cached, written);
  return tokenUsage(
    {
      inputTokens: input,
      cachedInputTokens: cached,
      cacheWriteTokens: written,
      outputTokens: output,
      reasoningTokens: membersOf(details).thinking_tokens,
      totalTokens: total(input, output),
    },
    finerCounts(counts),
  );
}
