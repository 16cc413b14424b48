/** A provider adapter with scripted answers. It records its requests. */
import type {
  ProviderAdapter,
  ProviderCallOptions,
  ProviderChatRequest,
  ProviderChatResult,
  ProviderStreamChunk,
} from "../../src/engine/provider-adapter.ts";

export interface Asked {
  request: ProviderChatRequest;
  options: ProviderCallOptions;
}

type Answer = ProviderChatResult | Promise<ProviderChatResult> | (() => Promise<ProviderChatResult>) | Error;

/** Returns a whole reply of one text. */
export const textMessage = (text: string): ProviderChatResult => ({
  messages: [{ role: "assistant", content: text }],
});

/** Answers with queued answers, or `Answer n.`. A queued error is thrown. It does not stream. */
export class ScriptedAdapter implements ProviderAdapter {
  readonly supportsStreaming: boolean = false;
  readonly asked: Asked[] = [];
  readonly #queue: Answer[] = [];

  constructor(readonly id = "scripted") {}

  answer(...answers: Answer[]): this {
    this.#queue.push(...answers);
    return this;
  }

  async sendChat(request: ProviderChatRequest, options: ProviderCallOptions): Promise<ProviderChatResult> {
    this.asked.push({ request, options });
    const answer = this.#queue.shift() ?? textMessage(`Answer ${this.asked.length}.`);
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? answer() : answer;
  }
}

/** Streams these chunks. An error among them is thrown, a promise is awaited. */
export class StreamingAdapter extends ScriptedAdapter {
  override readonly supportsStreaming: boolean = true;
  /** `true` once the stream has ended or its reader has stopped. */
  isOver = false;

  constructor(private readonly chunks: readonly (ProviderStreamChunk | Error | Promise<unknown>)[]) {
    super();
  }

  async *streamChat(
    request: ProviderChatRequest,
    options: ProviderCallOptions,
  ): AsyncGenerator<ProviderStreamChunk> {
    this.asked.push({ request, options });
    try {
      for (const chunk of this.chunks) {
        if (chunk instanceof Promise) await chunk;
        else if (chunk instanceof Error) throw chunk;
        else yield chunk;
      }
    } finally {
      this.isOver = true;
    }
  }
}
