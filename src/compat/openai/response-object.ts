/**
 * An answer as a response of the Responses protocol, with all members that Open Responses requires. Pure. The options of the request are not
 * stored, so a response has their defaults.
 *
 * OAI-5  Items are in the order of the journal: first the messages, with interim messages as `commentary`, then the client's calls.
 */
import type { AnswerUsage, ClientCall, TurnAnswer } from "../answer.ts";
import { type AnswerAddress, itemId, responseId, startedAt, toolCallId } from "./ids.ts";

export type OutputItem = ReturnType<typeof messageItem> | ReturnType<typeof callItem>;
export type ResponseObject = ReturnType<typeof responseObject>;

/** The options of a request by their defaults in the protocol. The model profile of the agent decides the real values. */
const OPTIONS = {
  instructions: null,
  metadata: {},
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: true,
  text: { format: { type: "text" } },
  reasoning: null,
  temperature: 1,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  top_logprobs: 0,
  max_output_tokens: null,
  max_tool_calls: null,
  truncation: "disabled",
  store: true,
  background: false,
  service_tier: "default",
  safety_identifier: null,
  prompt_cache_key: null,
};

/** Returns the response of an answer; `null` is an answer that has just begun. */
export function responseObject(address: AnswerAddress, model: string, answer: TurnAnswer | null) {
  const { conversationId, turnId, index } = address;
  const status = answer === null ? "in_progress" : statusOf(answer);
  const completedAt = status === "completed" ? (answer?.completedAt ?? null) : null;
  const reason = answer?.finishReason === "content_filter" ? "content_filter" : "max_output_tokens";
  const message = answer?.error?.message ?? "The turn failed.";
  return {
    id: responseId(address),
    object: "response",
    created_at: startedAt(turnId),
    completed_at: completedAt === null ? null : Math.floor(Date.parse(completedAt) / 1000),
    status,
    error: status === "failed" ? { code: "server_error", message } : null,
    incomplete_details: status === "incomplete" ? { reason } : null,
    model,
    output: answer === null ? [] : outputOf(address, answer),
    previous_response_id: index === 0 ? null : responseId({ ...address, index: index - 1 }),
    conversation: { id: conversationId },
    usage: status === "in_progress" ? null : usageOf(answer?.usage ?? null),
    ...OPTIONS,
  };
}

/** Returns the item of a message; `null` is a message in progress. */
export function messageItem(
  address: AnswerAddress,
  itemIndex: number,
  message: TurnAnswer["messages"][number] | null,
) {
  return {
    id: itemId("msg", address, itemIndex),
    type: "message",
    role: "assistant",
    status: message === null ? "in_progress" : message.isStopped ? "incomplete" : "completed",
    content: message === null ? [] : [outputText(message.content)],
    ...(message === null ? {} : { phase: message.isInterim ? "commentary" : "final_answer" }),
  };
}

export function outputText(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

export function callItem(
  address: AnswerAddress,
  itemIndex: number,
  { operationId, name, input }: ClientCall,
) {
  return {
    id: itemId("fc", address, itemIndex),
    type: "function_call",
    status: "completed",
    call_id: toolCallId(address.conversationId, operationId),
    name,
    arguments: JSON.stringify(input),
  };
}

function outputOf(address: AnswerAddress, { messages, calls }: TurnAnswer): OutputItem[] {
  return [
    ...messages.map((message, index) => messageItem(address, index, message)),
    ...calls.map((call, index) => callItem(address, messages.length + index, call)),
  ];
}

function statusOf({ status, calls, finishReason }: TurnAnswer): TurnAnswer["status"] | "incomplete" {
  if (status !== "completed" || calls.length > 0) return status;
  return finishReason === "length" || finishReason === "content_filter" ? "incomplete" : "completed";
}

function usageOf(usage: AnswerUsage | null) {
  if (usage === null) return null;
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}
