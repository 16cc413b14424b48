/**
 * An answer as a chat completion: whole, and as the chunks of a stream. Pure.
 *
 * OAI-3  The joined text of the chunks is the content of the whole completion, and their calls are its calls. Blank lines separate the
 *        texts of several model calls.
 * OAI-4  Exactly one chunk has a finish reason, after all text and calls. A stream that ends in an error has no finish reason. If the
 *        request asks for usage, the last chunk has the usage and no choices. The usage is 0 if no provider counted.
 */
import type { AnswerEncoder, AnswerEvent, AnswerUsage, ClientCall, TurnAnswer } from "../answer.ts";
import { type OpenAiError, streamError } from "./errors.ts";
import { type AnswerAddress, completionId, startedAt, toolCallId } from "./ids.ts";

/** Separates the texts of two model calls. */
const BREAK = "\n\n";

const UNCOUNTED: AnswerUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };

type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

interface ChatChunk extends ReturnType<typeof head> {
  choices: { index: 0; delta: ChunkDelta; logprobs: null; finish_reason: FinishReason | null }[];
  usage?: ReturnType<typeof usageOf> | null;
}

interface ChunkDelta {
  role?: "assistant";
  content?: string;
  tool_calls?: object[];
}

type ChatPayload = ChatChunk | { error: OpenAiError };

export class ChatChunkEncoder implements AnswerEncoder<ChatPayload> {
  #messageId: string | null = null;
  #calls = 0;

  constructor(
    private readonly address: AnswerAddress,
    private readonly model: string,
    private readonly withUsage: boolean,
  ) {}

  start() {
    return [this.#chunk({ role: "assistant", content: "" })];
  }

  push(event: AnswerEvent) {
    if (event.type === "text") {
      const isNext = this.#messageId !== null && this.#messageId !== event.messageId;
      this.#messageId = event.messageId;
      return [this.#chunk({ content: isNext ? BREAK + event.text : event.text })];
    }
    if (event.type !== "call") return [];
    const call = { index: this.#calls, ...toolCall(this.address, event.call) };
    this.#calls += 1;
    return [this.#chunk({ tool_calls: [call] })];
  }

  end(answer: TurnAnswer): ChatPayload[] {
    if (answer.error !== undefined) return this.fail(answer.error);
    const usage = usageOf(answer.usage ?? UNCOUNTED);
    const last = this.withUsage ? [{ ...this.#chunk({}), choices: [], usage }] : [];
    return [this.#chunk({}, finishReason(answer)), ...last];
  }

  fail(error: Parameters<typeof streamError>[0]): ChatPayload[] {
    return [{ error: streamError(error) }];
  }

  #chunk(delta: ChunkDelta, finish: FinishReason | null = null): ChatChunk {
    return {
      ...head("chat.completion.chunk", this.address, this.model),
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(this.withUsage ? { usage: null } : {}),
    };
  }
}

export function chatCompletion(address: AnswerAddress, model: string, answer: TurnAnswer) {
  const content = answer.messages.map((message) => message.content).join(BREAK);
  const calls = answer.calls.map((call) => toolCall(address, call));
  return {
    ...head("chat.completion", address, model),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: content === "" ? null : content,
          refusal: null,
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: finishReason(answer),
      },
    ],
    ...(answer.usage === null ? {} : { usage: usageOf(answer.usage) }),
  };
}

function head(object: string, address: AnswerAddress, model: string) {
  return { id: completionId(address), object, created: startedAt(address.turnId), model };
}

function toolCall({ conversationId }: AnswerAddress, { operationId, name, input }: ClientCall) {
  const id = toolCallId(conversationId, operationId);
  return { id, type: "function" as const, function: { name, arguments: JSON.stringify(input) } };
}

function finishReason({ calls, finishReason: reason }: TurnAnswer): FinishReason {
  if (calls.length > 0) return "tool_calls";
  return reason === "length" || reason === "content_filter" ? reason : "stop";
}

function usageOf({ inputTokens, cachedInputTokens, outputTokens, reasoningTokens }: AnswerUsage) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  };
}
