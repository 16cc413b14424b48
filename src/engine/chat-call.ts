/** One call of an adapter, whole or streamed, as chunks and the result; it ends when its signal aborts. */
import type {
  ProviderAdapter,
  ProviderCallOptions,
  ProviderChatRequest,
  ProviderChatResult,
  ProviderStreamChunk,
} from "./provider-adapter.ts";
import { StreamCollector } from "./stream-collector.ts";

/** A piece of a turn's reply, as its provider gives it. */
export interface ChunkEvent {
  type: "chunk";
  chunk: ProviderStreamChunk;
}

/** Whether an adapter can stream. */
export function streams(adapter: ProviderAdapter): boolean {
  return adapter.supportsStreaming && adapter.streamChat !== undefined;
}

/** Yields chunks and returns the result. Rejects with the signal's reason, even if the adapter does not listen to it. */
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
  adapter: ProviderAdapter,
  request: ProviderChatRequest,
  options: ProviderCallOptions,
): AsyncGenerator<ChunkEvent, ProviderChatResult> {
  const collector = new StreamCollector();
  const chunks = adapter.streamChat?.(request, options)[Symbol.asyncIterator]();
  if (chunks === undefined) return collector.result();
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
    // Not awaited: an adapter that does not listen to the signal would hold up the end of the turn.
    if (!isOver) chunks.return?.()?.catch(() => {});
  }
}

/** A whole reply as a stream of one chunk for each message. */
function* asChunks({ messages, usage, call }: ProviderChatResult): Generator<ChunkEvent> {
  for (const [index, message] of messages.entries()) {
    const isLast = index === messages.length - 1;
    const facts = {
      ...(isLast && usage !== undefined ? { usage } : {}),
      ...(isLast && call !== undefined ? { call } : {}),
    };
    yield {
      type: "chunk",
      chunk: { delta: message.content, isMessageComplete: true, message, ...facts },
    };
  }
}

/**
 * The promise, or a rejection with the signal's reason if it aborts first. An adapter that listens to the signal gets the
 * time to say what became of its call.
 */
async function abortable<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
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
    // Whichever loses has nobody left to listen to it.
    for (const loser of [answer, aborted]) loser.catch(() => {});
  }
}
