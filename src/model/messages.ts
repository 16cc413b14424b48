/** Provider-neutral messages of a model's context. */
import type { Facts } from "../shared/json.ts";

/** A model's request to run one tool. `id` is the provider's, unique within its message. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: Facts;
}

/** A part of what a user sent: text, or media by address or by value. */
export type ContextPart =
  | { type: "text"; text: string }
  | {
      type: "image" | "file";
      source: MediaSource;
      /** As in `image/png`; needed where the media are given by value. */
      mediaType?: string;
      /** A file's name. */
      name?: string;
    };

/** Where media are: an address (`https:`, `data:` or `attachment:`), or the bytes themselves in base64. */
export type MediaSource = { url: string } | { base64: string };

/**
 * What a reply was made of, in order, in the words of its own provider: what the provider demands back when the
 * conversation goes on (reasoning blocks, signatures, ids of items). Text and calls are not repeated, only pointed to.
 *
 * NATIVE-1  It is sent to the provider and the model that gave it only, and only as long as its parts cover the
 *           message's text and calls exactly; else it is left out as a whole.
 */
export interface NativeReply {
  provider: string;
  modelId: string;
  parts: NativePart[];
}

export type NativePart =
  /** The next `length` UTF-16 units of the message's text; `extra` are keys that the provider had beside it. */
  | { type: "text"; length: number; extra?: Facts }
  /** The message's tool call at `index`. */
  | { type: "tool-call"; index: number; extra?: Facts }
  /** What only this provider understands, as it gave it. */
  | { type: "block"; value: Facts };

/** One message of a model's context, provider-neutral. */
export interface ContextMessage {
  role: "system" | "user" | "assistant" | "tool";
  /** Its text; of a message with `parts`, that of its text parts. */
  content: string;
  /** All that a user sent, in order, where there is more than text. */
  parts?: ContextPart[];
  /** An assistant's message in the words of its provider, where that says more than text and calls. */
  native?: NativeReply;
  name?: string;
  toolCallId?: string;
  toolCalls?: ToolCall[];
  /** Sent to no model. `isSuccess: false` on a tool's message marks a failure; `model` on an assistant's names its model. */
  metadata?: Facts;
}
