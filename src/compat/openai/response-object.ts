/**
 * An answer as a response of the Responses protocol. Pure. The options of the request are not stored, so a response does
 * not repeat them.
 *
 * OAI-5  Items are in the order of the journal: first the messages, with interim ones as `commentary`, then the client's
 *        calls.
 */
import { defined } from "../../shared/defined.ts";
import type { Answer, AnswerUsage, ClientCall } from "../answer.ts";
import { type AnswerAddress, itemId, responseId, startedAt, toolCallId } from "./ids.ts";

type OutputText = ReturnType<typeof outputText>;

interface MessageItem {
  id: string;
  type: "message";
  role: "assistant";
  status: "in_progress" | "completed";
  content: OutputText[];
  phase: "commentary" | "final_answer" | null;
}

interface CallItem {
  id: string;
  type: "function_call";
  status: "in_progress" | "completed";
  call_id: string;
  name: string;
  arguments: string;
}

export type OutputItem = MessageItem | CallItem;
export type ResponseObject = ReturnType<typeof responseObject>;

/** Returns the response of an answer; `null` is an answer that has just begun. */
export function responseObject(address: AnswerAddress, model: string, answer: Answer | null) {
  const { conversationId, turnId, index } = address;
  const status = answer === null ? "in_progress" : statusOf(answer);
  const usage = status === "in_progress" ? undefined : usageOf(answer?.usage ?? null);
  const reason = answer?.finishReason === "content_filter" ? "content_filter" : "max_output_tokens";
  const message = answer?.error?.message ?? "The turn failed.";
  return {
    id: responseId(address),
    object: "response",
    created_at: startedAt(turnId),
    status,
    error: status === "failed" ? { code: "server_error", message } : null,
    incomplete_details: status === "incomplete" ? { reason } : null,
    instructions: null,
    metadata: {},
    model,
    output: answer === null ? [] : outputOf(address, answer),
    parallel_tool_calls: true,
    previous_response_id: index === 0 ? null : responseId({ ...address, index: index - 1 }),
    conversation: { id: conversationId },
    temperature: null,
    top_p: null,
    tool_choice: "auto",
    tools: [],
    ...defined({ usage }),
  };
}

export function messageItem(
  address: AnswerAddress,
  index: number,
  message: Answer["messages"][number] | null,
): MessageItem {
  const base = { id: itemId("msg", address, index), type: "message", role: "assistant" } as const;
  if (message === null) return { ...base, status: "in_progress", content: [], phase: null };
  const phase = message.isInterim ? "commentary" : "final_answer";
  return { ...base, status: "completed", content: [outputText(message.content)], phase };
}

export function outputText(text: string) {
  return { type: "output_text" as const, text, annotations: [], logprobs: [] };
}

export function callItem(
  address: AnswerAddress,
  index: number,
  { operationId, name, input }: ClientCall,
): CallItem {
  return {
    id: itemId("fc", address, index),
    type: "function_call",
    status: "completed",
    call_id: toolCallId(address.conversationId, operationId),
    name,
    arguments: JSON.stringify(input),
  };
}

function outputOf(address: AnswerAddress, { messages, calls }: Answer): OutputItem[] {
  return [
    ...messages.map((message, index) => messageItem(address, index, message)),
    ...calls.map((call, index) => callItem(address, messages.length + index, call)),
  ];
}

function statusOf({ status, calls, finishReason }: Answer): Answer["status"] | "incomplete" {
  if (status !== "completed" || calls.length > 0) return status;
  return finishReason === "length" || finishReason === "content_filter" ? "incomplete" : "completed";
}

function usageOf(usage: AnswerUsage | null) {
  if (usage === null) return undefined;
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}
