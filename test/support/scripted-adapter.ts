/** A provider adapter that answers what a test scripts, and keeps what it was asked. */
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

/** A whole reply of one text. */
export const said = (text: string): ProviderChatResult => ({
  messages: [{ role: "assistant", content: text }],
});

/** Answers `Answer n.`, or what was queued; an error is thrown. It does not stream. */
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
    const answer = this.#queue.shift() ?? said(`Answer ${this.asked.length}.`);
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? answer() : answer;
  }
}

/** Streams these chunks; an error among them is thrown, a promise is waited for. */
export class StreamingAdapter extends ScriptedAdapter {
  override readonly supportsStreaming: boolean = true;
  /** Whether the stream was left before its end, or came to it. */
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
