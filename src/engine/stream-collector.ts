/**
 * Puts a streamed reply together. Pure, but for what it has collected.
 *
 * ENGINE-7  A streamed reply gives the same messages as the whole one, where the adapter completes them; else the texts of
 *           its deltas, joined, with the parts among them.
 */
import { asPart, type MessagePart } from "./message-parts.ts";
import type { NewMessage, ProviderChatResult, ProviderStreamChunk } from "./provider-adapter.ts";

export class StreamCollector {
  readonly #messages: NewMessage[] = [];
  #parts: MessagePart[] = [];
  #facts: Pick<ProviderChatResult, "usage" | "call"> = {};

  add({ delta, isReset, isMessageComplete, message, usage, call }: ProviderStreamChunk): void {
    if (isReset) this.#parts = [];
    const part = asPart(typeof delta === "string" ? { type: "text", text: delta } : delta);
    if (part !== undefined) this.#addPart(part);
    if (usage !== undefined) this.#facts.usage = usage;
    if (call !== undefined) this.#facts.call = call;
    if (message !== undefined) this.#complete(message);
    else if (isMessageComplete) this.#complete();
  }

  /** What the chunks amount to, once the stream has ended. */
  result(): ProviderChatResult {
    if (this.#parts.length > 0) this.#complete();
    return { messages: this.#messages, ...this.#facts };
  }

  #addPart(part: MessagePart): void {
    const last = this.#parts.at(-1);
    if (part.type === "text" && last?.type === "text") last.text += part.text;
    else this.#parts.push({ ...part });
  }

  #complete(message?: NewMessage): void {
    const [only, ...others] = this.#parts;
    const isText = only === undefined || (only.type === "text" && others.length === 0);
    const content = isText ? (only?.type === "text" ? only.text : "") : this.#parts;
    this.#messages.push(message ?? { role: "assistant", content });
    this.#parts = [];
  }
}
