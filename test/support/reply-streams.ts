/**
 * One reply in the format of each provider: reasoning, non-ASCII text, a call in pieces and a call without arguments.
 */

import type { ProviderId } from "../../src/model/profile.ts";
import type { ModelReply } from "../../src/model/reply.ts";

export interface ReplyStreamCase {
  provider: ProviderId;
  payloads: unknown[];
  /** Number of payloads of a complete reply. */
  complete: number;
}

const TEXT = ["Grüße 👋🏽 ", "aus 東京\r\n\u2028"] as const;
const THOUGHT = ["Höchst ", "merkwürdig"] as const;
const INPUT = ['{"city":', '"Zürich"}'] as const;

/** The reply of each of the streams. */
export const SAID = {
  text: TEXT.join(""),
  reasoning: THOUGHT.join(""),
  toolCalls: [
    { id: "c0", name: "lookup", arguments: { city: "Zürich" } },
    { id: "c1", name: "lookup", arguments: {} },
  ],
  finishReason: "tool_calls",
  usage: { inputTokens: 5, outputTokens: 7, totalTokens: 12 },
  providerMessageId: "r1",
} satisfies ModelReply;

const chatDelta = (delta: object) => ({ id: "r1", choices: [{ index: 0, delta, finish_reason: null }] });
const chatCall = (call: object) => chatDelta({ tool_calls: [call] });

const CHAT: unknown[] = [
  chatDelta({ role: "assistant", content: "" }),
  ...THOUGHT.map((piece) => chatDelta({ reasoning_content: piece })),
  ...TEXT.map((content) => chatDelta({ content })),
  chatCall({ index: 0, id: "c0", type: "function", function: { name: "lookup", arguments: "" } }),
  ...INPUT.map((piece) => chatCall({ index: 0, function: { arguments: piece } })),
  chatCall({ index: 1, id: "c1", type: "function", function: { name: "lookup", arguments: "{}" } }),
  { id: "r1", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  { id: "r1", choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } },
  "[DONE]",
];

const block = (index: number, content_block: object, ...deltas: object[]) => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index },
];

const ANTHROPIC: unknown[] = [
  { type: "message_start", message: { id: "r1", content: [], usage: { input_tokens: 5, output_tokens: 1 } } },
  { type: "ping" },
  ...block(
    0,
    { type: "thinking", thinking: "", signature: "" },
    ...THOUGHT.map((thinking) => ({ type: "thinking_delta", thinking })),
    { type: "signature_delta", signature: "s" },
  ),
  ...block(1, { type: "text", text: "" }, ...TEXT.map((text) => ({ type: "text_delta", text }))),
  ...block(
    2,
    { type: "tool_use", id: "c0", name: "lookup", input: {} },
    ...INPUT.map((partial_json) => ({ type: "input_json_delta", partial_json })),
  ),
  ...block(3, { type: "tool_use", id: "c1", name: "lookup", input: {} }),
  { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 7 } },
  { type: "message_stop" },
];

const geminiParts = (...parts: object[]) => ({
  candidates: [{ content: { role: "model", parts }, index: 0 }],
  responseId: "r1",
});

const GEMINI: unknown[] = [
  ...THOUGHT.map((text) => geminiParts({ text, thought: true })),
  ...TEXT.map((text) => geminiParts({ text })),
  geminiParts(
    { functionCall: { id: "c0", name: "lookup", args: { city: "Zürich" } }, thoughtSignature: "s" },
    { functionCall: { id: "c1", name: "lookup", args: {} } },
  ),
  {
    candidates: [{ content: { role: "model", parts: [{ text: "" }] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 },
  },
];

const item = (kind: "added" | "done", output_index: number, item: object) => ({
  type: `response.output_item.${kind}`,
  output_index,
  item,
});
const functionCall = (id: string, input: string) => ({
  type: "function_call",
  id: `f${id}`,
  call_id: id,
  name: "lookup",
  arguments: input,
});

const RESPONSES: unknown[] = [
  { type: "response.created", response: { id: "r1", status: "in_progress" } },
  ...THOUGHT.map((delta) => {
    return { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta };
  }),
  item("done", 0, { type: "reasoning", id: "rs", summary: [], encrypted_content: "s" }),
  ...TEXT.map((delta) => {
    return { type: "response.output_text.delta", output_index: 1, content_index: 0, delta };
  }),
  item("done", 1, { type: "message", id: "m", content: [{ type: "output_text", text: TEXT.join("") }] }),
  item("added", 2, functionCall("c0", "")),
  ...INPUT.map((delta) => ({ type: "response.function_call_arguments.delta", output_index: 2, delta })),
  item("done", 2, functionCall("c0", INPUT.join(""))),
  item("done", 3, functionCall("c1", "{}")),
  {
    type: "response.completed",
    response: {
      id: "r1",
      status: "completed",
      usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 },
    },
  },
];

const AI_SDK: unknown[] = [
  { type: "response-metadata", id: "r1" },
  { type: "reasoning-start", id: "0" },
  ...THOUGHT.map((delta) => ({ type: "reasoning-delta", id: "0", delta })),
  { type: "reasoning-end", id: "0", providerMetadata: { test: { signature: "s" } } },
  ...TEXT.map((delta) => ({ type: "text-delta", id: "1", delta })),
  { type: "tool-call", toolCallId: "c0", toolName: "lookup", input: INPUT.join("") },
  { type: "tool-call", toolCallId: "c1", toolName: "lookup", input: "{}" },
  {
    type: "finish",
    finishReason: { unified: "tool-calls" },
    usage: { inputTokens: { total: 5 }, outputTokens: { total: 7 } },
  },
];

export const REPLY_STREAMS: ReplyStreamCase[] = [
  { provider: "openai", payloads: CHAT, complete: CHAT.length - 2 },
  { provider: "workers-ai", payloads: CHAT, complete: CHAT.length - 2 },
  { provider: "openai-responses", payloads: RESPONSES, complete: RESPONSES.length },
  { provider: "anthropic", payloads: ANTHROPIC, complete: ANTHROPIC.length - 1 },
  { provider: "gemini", payloads: GEMINI, complete: GEMINI.length },
  { provider: "ai-sdk", payloads: AI_SDK, complete: AI_SDK.length },
];
