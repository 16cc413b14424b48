/** Decodes one chat reply, for every provider with payloads that a function can convert to `ChatPiece`s. */
import type { ModelError } from "../../../model/error.ts";
import type { ProviderId } from "../../../model/profile.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { inBandError } from "../../errors/model-errors.ts";
import { finishReason, ReplyDecoder } from "../common/decoder.ts";
import { nativeDeltas } from "../common/native.ts";
import type { ChatPiece } from "./chunk.ts";
import { ReasoningRecord } from "./reasoning.ts";
import { ToolCallSlots } from "./tool-call-slots.ts";

const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["content_filter", "content_filter"],
]);

export class ChatDecoder extends ReplyDecoder {
  readonly #readPiece: (chunk: JsonObject) => ChatPiece | undefined;
  readonly #calls = new ToolCallSlots();
  readonly #reasoning = new ReasoningRecord();
  #textLength = 0;
  #hasBegun = false;
  #stop: string | undefined;

  /** `readPiece` returns `undefined` for a payload that is not of the provider's shape. */
  constructor(provider: ProviderId, readPiece: (chunk: JsonObject) => ChatPiece | undefined) {
    super(provider);
    this.#readPiece = readPiece;
  }

  protected get finish(): FinishReason | undefined {
    return finishReason(FINISH_REASONS, this.#stop?.toLowerCase(), this.#calls.size > 0);
  }

  protected read(chunk: JsonObject): ModelDelta[] | ModelError | undefined {
    if (chunk.error !== undefined && chunk.error !== null) return inBandError(this.provider, chunk.error);
    const piece = this.#readPiece(chunk);
    if (piece?.finish === "error")
      return this.error("transient", "The provider reported an error during its reply.");
    return piece && this.#take(piece);
  }

  protected override done(): void {
    if (this.#hasBegun) this.#stop ??= "stop";
  }

  protected override close(): ModelDelta[] {
    return nativeDeltas(this.#reasoning.parts(this.#textLength, this.#calls.extras));
  }

  #take(piece: ChatPiece): ModelDelta[] {
    const deltas: ModelDelta[] = [];
    this.messageId ||= piece.id;
    const { reasoning } = piece;
    const thought = reasoning?.reasoning_content ?? reasoning?.reasoning;
    if (thought) deltas.push({ type: "reasoning", text: thought });
    if (reasoning) this.#reasoning.add(reasoning);
    if (piece.text) {
      this.#textLength += piece.text.length;
      deltas.push({ type: "text", text: piece.text });
    }
    if (piece.toolCalls !== undefined) deltas.push(...this.#calls.add(piece.toolCalls));
    if (piece.usage !== undefined) deltas.push({ type: "usage", usage: piece.usage });
    this.#hasBegun ||= piece.isReply;
    if (piece.finish) this.#stop = piece.finish;
    if (piece.isWhole) this.#stop ??= "stop";
    return deltas;
  }
}
