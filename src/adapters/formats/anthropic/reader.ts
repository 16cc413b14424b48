/**
 * Reads one reply of the Messages API: the events of a stream, or the whole message as one payload.
 *
 * ANTHROPIC-5  A tool that the provider runs itself is no call of ours: its blocks are kept to be sent back.
 * ANTHROPIC-6  A message that begins a second time before its first block is the same one; one that begins later is an
 *              error, because what was reported of the first cannot be taken back.
 * ANTHROPIC-7  Events of an unknown type are ignored; a known event of another shape is an error.
 */
import { z } from "zod";
import type { ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { inBandError, modelError } from "../../errors/model-errors.ts";
import type { ReplyReader } from "../common/reply-stream.ts";
import { RunningCounts } from "../common/usage.ts";
import { ReplyBlocks } from "./blocks.ts";
import { anthropicUsage } from "./usage.ts";

const object = z.custom<JsonObject>(isJsonObject);
const text = z.string().nullish();
const counts = object.nullish().catch(undefined);
const index = z.number().int().nonnegative();

const message = z.object({
  id: text.catch(undefined),
  content: z.array(object).nullish(),
  stop_reason: text,
  usage: counts,
});

const event = z.discriminatedUnion("type", [
  z.object({ type: z.literal("message_start"), message }),
  z.object({ type: z.literal("message"), ...message.shape }),
  z.object({ type: z.literal("content_block_start"), index, content_block: object }),
  z.object({ type: z.literal("content_block_stop"), index }),
  z.object({
    type: z.literal("message_delta"),
    delta: z.object({ stop_reason: text }).nullish(),
    usage: counts,
  }),
  z.object({ type: z.literal("message_stop") }),
]);

const KNOWN: ReadonlySet<unknown> = new Set(event.options.map(({ shape }) => shape.type.value));

export class AnthropicReader implements ReplyReader {
  readonly #blocks = new ReplyBlocks();
  readonly #counts = new RunningCounts(anthropicUsage);
  #messageId: string | undefined;
  #hasBegun = false;
  #stop: string | undefined;
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  get finish(): FinishReason | undefined {
    return this.#stop === undefined ? undefined : finishReason(this.#stop, this.#blocks.hasCalls);
  }

  read(payload: JsonObject): ModelDelta[] | ModelError | undefined {
    if (isJsonObject(payload.error)) return errorOf(payload.error, payload.request_id);
    // Nearly every event is one of these: the schema would take longer than all the rest.
    if (payload.type === "content_block_delta") return this.#piece(payload);
    if (typeof payload.type !== "string") return undefined;
    if (!KNOWN.has(payload.type)) return [];
    const { data } = event.safeParse(payload);
    switch (data?.type) {
      case undefined:
        return undefined;
      case "message_start":
        return this.#begin(data.message);
      case "message":
        return this.#whole(data);
      case "content_block_start":
        return this.#blocks.begin(data.content_block, data.index);
      case "content_block_stop":
        return this.#blocks.end(data.index);
      case "message_delta":
        this.#stop = data.delta?.stop_reason ?? this.#stop;
        return this.#counts.add(data.usage);
      case "message_stop":
        this.#isOver = true;
        if (this.#hasBegun) this.#stop ??= "end_turn";
        return [];
      default:
        return data satisfies never;
    }
  }

  close(): ModelDelta[] {
    const last = this.#blocks.close();
    const parts = this.#blocks.native();
    return parts === undefined ? last : [...last, { type: "native", parts }];
  }

  #piece({ index, delta }: JsonObject): ModelDelta[] | undefined {
    return typeof index === "number" && isJsonObject(delta) ? this.#blocks.add(index, delta) : undefined;
  }

  #begin({ id, content, stop_reason: stop, usage }: z.infer<typeof message>): ModelDelta[] | ModelError {
    if (this.#blocks.size > 0) {
      return modelError(
        "anthropic",
        "transient",
        "The provider began another reply in the middle of this one.",
      );
    }
    this.#hasBegun = true;
    this.#stop = stop ?? this.#stop;
    const isNew = id && this.#messageId === undefined;
    if (isNew) this.#messageId = id;
    return [
      ...(isNew ? [{ type: "message-id", id } as const] : []),
      ...(content ?? []).flatMap((block) => this.#blocks.whole(block)),
      ...this.#counts.add(usage),
    ];
  }

  #whole(whole: z.infer<typeof message>): ModelDelta[] | ModelError {
    this.#isOver = true;
    return this.#begin({ ...whole, stop_reason: whole.stop_reason ?? "end_turn" });
  }
}

function errorOf(error: JsonObject, requestId: unknown): ModelError {
  const described = inBandError("anthropic", error);
  return typeof requestId === "string" && requestId !== "" ? { ...described, requestId } : described;
}

function finishReason(stop: string, hasCalls: boolean): FinishReason {
  switch (stop) {
    case "end_turn":
    case "stop_sequence":
      return hasCalls ? "tool_calls" : "stop";
    case "tool_use":
      return hasCalls ? "tool_calls" : "other";
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "refusal":
      return "content_filter";
    default:
      return "other";
  }
}
