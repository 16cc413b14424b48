/**
 * An answer as the chunks of a streamed chat completion, and as the whole one. Pure.
 *
 * OAI-3  The chunks' text, joined, is the whole completion's content, and their calls are its calls: texts of several
 *        model calls are parted by a blank line.
 * OAI-4  Exactly one chunk has a finish reason, after all text and calls; where the stream ends in an error, none has.
 */
import { defined } from "../../shared/defined.ts";
import type { AnswerEvent, AnswerPart, ClientCall, PartUsage } from "../answer.ts";
import { type AnswerAddress, completionId, startedAt, toolCallId } from "./ids.ts";

/** What parts the texts of two model calls. */
const BREAK = "\n\n";

export interface ChunkToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export type ChatFinishReason = "stop" | "length" | "tool_calls" | "content_filter";

export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: 0;
    message: { role: "assistant"; content: string | null; refusal: null; tool_calls?: ChunkToolCall[] };
    logprobs: null;
    finish_reason: ChatFinishReason;
  }[];
  usage?: ChatUsage;
}

export interface ChatChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: 0;
    delta: { role?: "assistant"; content?: string; tool_calls?: (ChunkToolCall & { index: number })[] };
    logprobs: null;
    finish_reason: ChatFinishReason | null;
  }[];
  usage?: ChatUsage | null;
}

export class ChatChunkEncoder {
  readonly #address: AnswerAddress;
  readonly #model: string;
  readonly #withUsage: boolean;
  #messageId: string | null = null;
  #calls = 0;

  constructor(address: AnswerAddress, model: string, withUsage: boolean) {
    this.#address = address;
    this.#model = model;
    this.#withUsage = withUsage;
  }

  /** The chunk before all others. */
  start(): ChatChunk {
    return this.#chunk({ role: "assistant", content: "" });
  }

  push(event: AnswerEvent): ChatChunk[] {
    if (event.type === "text") {
      const isNext = this.#messageId !== null && this.#messageId !== event.messageId;
      this.#messageId = event.messageId;
      return [this.#chunk({ content: isNext ? BREAK + event.text : event.text })];
    }
    if (event.type !== "call") return [];
    const call = { index: this.#calls, ...toolCall(this.#address, event.call) };
    this.#calls += 1;
    return [this.#chunk({ tool_calls: [call] })];
  }

  /** The chunks after all others: the finish reason, and the usage where it was asked for and is known. */
  end(part: AnswerPart): ChatChunk[] {
    const usage = this.#withUsage ? usageOf(part.usage) : undefined;
    const last = usage === undefined ? [] : [{ ...this.#chunk({}), choices: [], usage }];
    return [this.#chunk({}, finishReason(part)), ...last];
  }

  #chunk(delta: ChatChunk["choices"][number]["delta"], finish: ChatFinishReason | null = null): ChatChunk {
    return {
      id: completionId(this.#address),
      object: "chat.completion.chunk",
      created: startedAt(this.#address.turnId),
      model: this.#model,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(this.#withUsage ? { usage: null } : {}),
    };
  }
}

/** The whole completion of an answer that is complete. */
export function chatCompletion(address: AnswerAddress, model: string, part: AnswerPart): ChatCompletion {
  const content = part.messages.map((message) => message.content).join(BREAK);
  const calls = part.calls.map((call) => toolCall(address, call));
  const usage = usageOf(part.usage);
  return {
    id: completionId(address),
    object: "chat.completion",
    created: startedAt(address.turnId),
    model,
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
        finish_reason: finishReason(part),
      },
    ],
    ...defined({ usage }),
  };
}

function toolCall(
  { conversationId }: AnswerAddress,
  { operationId, name, input }: ClientCall,
): ChunkToolCall {
  const id = toolCallId(conversationId, operationId);
  return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
}

function finishReason({ calls, finishReason: reason }: AnswerPart): ChatFinishReason {
  if (calls.length > 0) return "tool_calls";
  return reason === "length" || reason === "content_filter" ? reason : "stop";
}

function usageOf(usage: PartUsage | null): ChatUsage | undefined {
  if (usage === null) return undefined;
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  };
}
