/**
 * The provider-neutral messages of a model's context.
 *
 * NATIVE-1  A native reply is sent only to the provider and model that produced it, and only if its parts cover the
 *           message's text and calls exactly. Otherwise the whole native reply is omitted.
 */
import type { Facts } from "../shared/json.ts";

/** A model's request to run a tool. `id` comes from the provider and is unique within its message. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: Facts;
}

/** A part of a user's message: text, or media by address or by value. */
export type ContextPart =
  | { type: "text"; text: string }
  | {
      type: "image" | "file";
      source: MediaSource;
      /** Such as `image/png`. Required for media by value. */
      mediaType?: string;
      /** File name. */
      name?: string;
    };

/** An address of media (`https:`, `data:` or `attachment:`), or the bytes in base64. */
export type MediaSource = { url: string } | { base64: string };

/**
 * A reply in the format of its provider, as far as the provider requires it back later: reasoning blocks, signatures, ids
 * of items. It refers to text and calls instead of repeating them (NATIVE-1).
 */
export interface NativeReply {
  provider: string;
  modelId: string;
  parts: NativePart[];
}

export type NativePart =
  /** The next `length` UTF-16 units of the message's text. `extra` holds further members of the provider's block. */
  | { type: "text"; length: number; extra?: Facts }
  /** The message's tool call at `index`. */
  | { type: "tool-call"; index: number; extra?: Facts }
  /** A block without a neutral form, unchanged. */
  | { type: "block"; value: Facts };

/**
 * Reports whether a system message is a note about messages of people, tool results, the end of a turn, or a summary. It contains words of
 * others, so formats give it no more authority than a user's message.
 */
export function isNote({ role, metadata = {} }: ContextMessage): boolean {
  if (role !== "system") return false;
  const { note, operation, origin, compactedEventCount } = metadata;
  return (
    note === true || operation !== undefined || origin === "platform" || compactedEventCount !== undefined
  );
}

/** One message of a model's context. */
export interface ContextMessage {
  role: "system" | "user" | "assistant" | "tool";
  /** The text; in a message with `parts`, the text of its text parts. */
  content: string;
  /** All parts of a user's message, in order, if it contains media. */
  parts?: ContextPart[];
  /** The native form of an assistant's message, if it contains more than text and calls. */
  native?: NativeReply;
  name?: string;
  toolCallId?: string;
  toolCalls?: ToolCall[];
  /**
   * Not sent to models. `isSuccess: false` marks the failure of a tool. `note: true` marks a system message as a note (`isNote`). `ofRound:
   * true` marks a message that belongs to the results before it. `model` names the model of an assistant's message.
   */
  metadata?: Facts;
}
