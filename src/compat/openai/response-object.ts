/**
 * An answer as a response of the Responses protocol. Pure: what it was asked with is not kept, so it is not repeated.
 *
 * OAI-5  Items are in the order of the log: messages, those beside tool calls as `commentary`, then the client's calls.
 */
import { defined } from "../../shared/defined.ts";
import type { AnswerPart, ClientCall, PartUsage } from "../answer.ts";
import { type AnswerAddress, itemId, responseId, startedAt, toolCallId } from "./ids.ts";

export interface OutputText {
  type: "output_text";
  text: string;
  annotations: [];
  logprobs: [];
}

export interface MessageItem {
  id: string;
  type: "message";
  role: "assistant";
  status: "in_progress" | "completed";
  content: OutputText[];
  phase: "commentary" | "final_answer" | null;
}

export interface CallItem {
  id: string;
  type: "function_call";
  status: "in_progress" | "completed";
  call_id: string;
  name: string;
  arguments: string;
}

export type OutputItem = MessageItem | CallItem;

export interface ResponseObject {
  id: string;
  object: "response";
  created_at: number;
  status: "in_progress" | "completed" | "incomplete" | "failed";
  error: { code: "server_error"; message: string } | null;
  incomplete_details: { reason: "max_output_tokens" | "content_filter" } | null;
  instructions: null;
  metadata: Record<string, never>;
  model: string;
  output: OutputItem[];
  parallel_tool_calls: true;
  previous_response_id: string | null;
  conversation: { id: string };
  temperature: null;
  top_p: null;
  tool_choice: "auto";
  tools: [];
  usage?: ResponseUsage;
}

interface ResponseUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
}

/** The response of an answer; `null` for one of which nothing is known but that it has begun. */
export function responseObject(
  address: AnswerAddress,
  model: string,
  part: AnswerPart | null,
): ResponseObject {
  const status = statusOf(part);
  const usage = status === "in_progress" ? undefined : usageOf(part?.usage ?? null);
  const { conversationId, turnId, part: number } = address;
  return {
    id: responseId(address),
    object: "response",
    created_at: startedAt(turnId),
    status,
    error:
      status === "failed" ? { code: "server_error", message: part?.error?.message ?? "It failed." } : null,
    incomplete_details: status === "incomplete" ? { reason: incompleteReason(part) } : null,
    instructions: null,
    metadata: {},
    model,
    output: part === null ? [] : outputOf(address, part),
    parallel_tool_calls: true,
    previous_response_id: number === 0 ? null : responseId({ ...address, part: number - 1 }),
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
  said: { content: string; isInterim: boolean } | null,
): MessageItem {
  const base = { id: itemId("msg", address, index), type: "message", role: "assistant" } as const;
  if (said === null) return { ...base, status: "in_progress", content: [], phase: null };
  const phase = said.isInterim ? "commentary" : "final_answer";
  return { ...base, status: "completed", content: [outputText(said.content)], phase };
}

export function outputText(text: string): OutputText {
  return { type: "output_text", text, annotations: [], logprobs: [] };
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

function outputOf(address: AnswerAddress, { messages, calls }: AnswerPart): OutputItem[] {
  return [
    ...messages.map((message, index) => messageItem(address, index, message)),
    ...calls.map((call, index) => callItem(address, messages.length + index, call)),
  ];
}

function statusOf(part: AnswerPart | null): ResponseObject["status"] {
  if (part === null) return "in_progress";
  if (part.status !== "completed" || part.calls.length > 0) return part.status;
  return ["length", "content_filter"].includes(part.finishReason) ? "incomplete" : "completed";
}

function incompleteReason(part: AnswerPart | null): "max_output_tokens" | "content_filter" {
  return part?.finishReason === "content_filter" ? "content_filter" : "max_output_tokens";
}

function usageOf(usage: PartUsage | null): ResponseUsage | undefined {
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
