/**
 * Reads one chat reply, for every provider whose payloads are chat-shaped: what they differ in, a function turns into
 * `ChatPiece`s.
 */

import type { ModelError } from "../../../model/error.ts";
import type { ProviderId } from "../../../model/profile.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { inBandError, modelError } from "../../errors/model-errors.ts";
import type { ReplyReader } from "../common/reply-stream.ts";
import { type ToolCallFragment, ToolCallSlots } from "../common/tool-call-slots.ts";
import { ChatNative, type ChatReasoning } from "./native.ts";

/** What one payload adds to the reply. */
export interface ChatPiece {
  id?: string;
  text?: string;
  reasoning?: string;
  /** The same by the server's own keys, to be given back. */
  kept?: ChatReasoning;
  toolCalls?: readonly ToolCallFragment[];
  usage?: TokenUsage;
  /** The provider's own word. */
  finish?: string;
  /** The payload is a part of a reply, and not a heartbeat or a bare count of tokens. */
  isReply: boolean;
  /** The payload holds the whole reply, so it is complete even without a finish reason. */
  isWhole?: boolean;
}

/** Reads one payload; `undefined` if it is not of the provider's shape. */
export type ChunkReader = (chunk: JsonObject) => ChatPiece | undefined;

export class ChatReader implements ReplyReader {
  readonly isOver = false;
  readonly #provider: ProviderId;
  readonly #read: ChunkReader;
  readonly #calls = new ToolCallSlots();
  readonly #native = new ChatNative();
  #textLength = 0;
  #messageId: string | undefined;
  #sawReply = false;
  #finish: string | undefined;

  constructor(provider: ProviderId, read: ChunkReader) {
    this.#provider = provider;
    this.#read = read;
  }

  get finish(): FinishReason | undefined {
    return this.#finish === undefined ? undefined : finishReason(this.#finish, this.#calls.size > 0);
  }

  read(chunk: JsonObject): ModelDelta[] | ModelError | undefined {
    if (chunk.error !== undefined && chunk.error !== null) return inBandError(this.#provider, chunk.error);
    const piece = this.#read(chunk);
    if (piece?.finish === "error") {
      return modelError(this.#provider, "transient", "The provider gave up in the middle of its reply.");
    }
    return piece === undefined ? undefined : this.#take(piece);
  }

  done(): void {
    if (this.#sawReply) this.#finish ??= "stop";
  }

  close(): ModelDelta[] {
    const parts = this.#native.parts(this.#textLength, this.#calls.extras);
    return parts === undefined ? [] : [{ type: "native", parts }];
  }

  #take(piece: ChatPiece): ModelDelta[] {
    const deltas: ModelDelta[] = [];
    if (piece.id && this.#messageId === undefined) {
      this.#messageId = piece.id;
      deltas.push({ type: "message-id", id: piece.id });
    }
    if (piece.reasoning) deltas.push({ type: "reasoning", text: piece.reasoning });
    if (piece.kept !== undefined) this.#native.add(piece.kept);
    if (piece.text) {
      this.#textLength += piece.text.length;
      deltas.push({ type: "text", text: piece.text });
    }
    deltas.push(...this.#calls.add(piece.toolCalls ?? []));
    if (piece.usage !== undefined) deltas.push({ type: "usage", usage: piece.usage });
    if (piece.isReply) this.#sawReply = true;
    if (piece.finish) this.#finish = piece.finish;
    if (piece.isWhole) this.#finish ??= "stop";
    return deltas;
  }
}

function finishReason(word: string, hasCalls: boolean): FinishReason {
  switch (word.toLowerCase()) {
    case "stop":
      return hasCalls ? "tool_calls" : "stop";
    case "tool_calls":
    case "function_call":
      return hasCalls ? "tool_calls" : "other";
    case "length":
    case "max_tokens":
      return "length";
    case "content_filter":
      return "content_filter";
    default:
      return "other";
  }
}
