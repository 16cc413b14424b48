/**
 * One call of a provider adapter, whole or streamed, as chunks and a result.
 *
 * ENGINE-7  A streamed reply has the adapter's messages from the end of its chunks. Without them, its message is the joined text of the
 *           deltas, with their parts.
 */
import { defined } from "../shared/defined.ts";
import { asPart, type MessagePart } from "./message-parts.ts";
import type {
  NewMessage,
  ProviderAdapter,
  ProviderCallOptions,
  ProviderChatRequest,
  ProviderChatResult,
  ProviderStreamChunk,
} from "./provider-adapter.ts";

/** A chunk of a turn's reply, as the provider sends it. */
export interface ChunkEvent {
  type: "chunk";
  chunk: ProviderStreamChunk;
}

type StreamingAdapter = ProviderAdapter & Required<Pick<ProviderAdapter, "streamChat">>;

export function streams(adapter: ProviderAdapter): adapter is StreamingAdapter {
  return adapter.supportsStreaming && adapter.streamChat !== undefined;
}

/**
 * Yields chunks if `streaming`, and returns the result. Rejects with the reason of the signal when it aborts, even if the
 * adapter ignores the signal.
 */
export async function* chat(
  adapter: ProviderAdapter,
  request: ProviderChatRequest,
  options: ProviderCallOptions,
  streaming: boolean,
): AsyncGenerator<ChunkEvent, ProviderChatResult> {
  const { signal } = options;
  signal.throwIfAborted();
  if (streaming && streams(adapter)) return yield* streamed(adapter, request, options);
  const result = await abortable(adapter.sendChat(request, options), signal);
  if (streaming) yield* asChunks(result);
  return result;
}

async function* streamed(
  adapter: StreamingAdapter,
  request: ProviderChatRequest,
  options: ProviderCallOptions,
): AsyncGenerator<ChunkEvent, ProviderChatResult> {
  const collector = new StreamCollector();
  const chunks = adapter.streamChat(request, options)[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const next = await abortable(chunks.next(), options.signal);
      isOver = next.done ?? false;
      if (isOver) return collector.result();
      collector.add(next.value);
      yield { type: "chunk", chunk: next.value };
    }
  } finally {
    // Not awaited: an adapter that ignores the signal would delay the end of the turn.
    if (!isOver) chunks.return?.()?.catch(() => {});
  }
}

/** Yields a whole reply as one chunk per message. */
function* asChunks({ messages, usage, call }: ProviderChatResult): Generator<ChunkEvent> {
  for (const [index, message] of messages.entries()) {
    const facts = index === messages.length - 1 ? defined({ usage, call }) : {};
    const chunk = { delta: message.content, isMessageComplete: true, message, ...facts };
    yield { type: "chunk", chunk };
  }
}

/** Assembles the result of a streamed reply. */
class StreamCollector {
  readonly #messages: NewMessage[] = [];
  #parts: MessagePart[] = [];
  #facts: Pick<ProviderChatResult, "usage" | "call"> = {};

  add({ delta, isReset, isMessageComplete, message, usage, call }: ProviderStreamChunk): void {
    if (isReset) this.#parts = [];
    const part = asPart(typeof delta === "string" ? { type: "text", text: delta } : delta);
    if (part !== undefined) this.#addPart(part);
    if (usage !== undefined) this.#facts.usage = usage;
    if (call !== undefined) this.#facts.call = call;
    if (message !== undefined || isMessageComplete) this.#complete(message);
  }

  /** Returns the result once the stream has ended. */
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
    const [first, ...others] = this.#parts;
    const text = first === undefined ? "" : first.type === "text" ? first.text : undefined;
    const content = text !== undefined && others.length === 0 ? text : this.#parts;
    this.#messages.push(message ?? { role: "assistant", content });
    this.#parts = [];
  }
}

/**
 * Resolves as the promise does, or rejects with the reason of the signal if it aborts first. The rejection waits for one
 * macrotask, so that an adapter that listens to the signal can report the outcome of its call.
 */
async function abortable<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  // An adapter in JavaScript may return a plain value.
  const answer = Promise.resolve(promise);
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => void setTimeout(() => reject(signal.reason));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([answer, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    // The promise that lost the race may still reject.
    for (const loser of [answer, aborted]) loser.catch(() => {});
  }
}
