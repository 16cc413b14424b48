/**
 * Decodes one chat reply from its payloads, for every provider whose chunks are chat-shaped. A reader turns one payload
 * into a `ChatPiece`; this state machine decides what is complete.
 *
 * STREAM-1  `finish` comes last, once, and only when the reply is complete: after a finish reason or `[DONE]`.
 * STREAM-2  A reply that ends before it is complete, or a payload that cannot be read, gives one error delta.
 * STREAM-3  Once a finish reason is known, nothing that follows can turn the reply into a failure.
 * STREAM-4  After an error delta nothing more is reported.
 */
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import { ChatNative, type ChatReasoning } from "./chat-native.ts";
import { inBandError, modelError } from "./errors.ts";
import { type ToolCallFragment, ToolCallSlots } from "./tool-call-slots.ts";
import type { FinishReason, ModelDelta, ModelError, ProviderId, StreamDecoder, TokenUsage } from "./types.ts";

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

/** What ends a stream of chat chunks. */
export const DONE = "[DONE]";

export class ChatStream implements StreamDecoder {
  readonly #provider: ProviderId;
  readonly #read: ChunkReader;
  readonly #calls = new ToolCallSlots();
  readonly #native = new ChatNative();
  #textLength = 0;
  #state: "open" | "ended" | "failed" = "open";
  #messageId: string | undefined;
  #sawReply = false;
  #finish: string | undefined;

  constructor(provider: ProviderId, read: ChunkReader) {
    this.#provider = provider;
    this.#read = read;
  }

  push(data: string): ModelDelta[] {
    const payload = data.trim();
    if (this.#state !== "open" || payload === "") return [];
    if (payload === DONE) {
      if (this.#sawReply) this.#finish ??= "stop";
      return this.end();
    }
    const chunk = parse(payload);
    if (chunk === undefined) return this.#fail("The provider sent something that is not a JSON object.");
    if (chunk.error !== undefined && chunk.error !== null) {
      return this.#fail(inBandError(this.#provider, chunk.error));
    }
    const piece = this.#read(chunk);
    if (piece === undefined) return this.#fail("The provider sent a chunk of an unknown shape.");
    if (piece.finish === "error") return this.#fail("The provider gave up in the middle of its reply.");
    return this.#take(piece);
  }

  end(): ModelDelta[] {
    if (this.#state !== "open") return [];
    if (this.#finish === undefined) return this.#fail("The reply ended before it was complete.");
    this.#state = "ended";
    const parts = this.#native.parts(this.#textLength, this.#calls.extras);
    const finish = { type: "finish", reason: finishReason(this.#finish, this.#calls.size > 0) } as const;
    return parts === undefined ? [finish] : [{ type: "native", parts }, finish];
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

  #fail(reason: string | ModelError): ModelDelta[] {
    if (this.#finish !== undefined) return [];
    this.#state = "failed";
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
