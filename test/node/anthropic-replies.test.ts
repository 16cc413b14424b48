/** Replies of Anthropic: how they are decoded, and how they go back. */
import type Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { givenBack } from "../support/contexts.ts";
import * as decoding from "../support/decoding.ts";
import { jsonValues, memberNames } from "../support/json-values.ts";

const PROFILE = { provider: "anthropic", modelId: "claude-test" } as const;

const decode = (payloads: readonly unknown[]): ModelDelta[] => decoding.decode("anthropic", payloads);
const outcomeOf = (payloads: readonly unknown[]) => decoding.outcomeOf("anthropic", payloads);

const START = {
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [],
    stop_reason: null,
    usage: { input_tokens: 5, output_tokens: 1 },
  },
};

function begin(index: number, block: object): object {
  return { type: "content_block_start", index, content_block: block };
}

function delta(index: number, piece: object): object {
  return { type: "content_block_delta", index, delta: piece };
}

function text(index: number, ...pieces: string[]): object[] {
  return [
    begin(index, { type: "text", text: "" }),
    ...pieces.map((piece) => delta(index, { type: "text_delta", text: piece })),
    stop(index),
  ];
}

function stop(index: number): object {
  return { type: "content_block_stop", index };
}

function end(reason: string | null): object[] {
  return [
    { type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 9 } },
    { type: "message_stop" },
  ];
}

/** Arguments of a call. They went through JSON text, which has no negative zero. */
const INPUT = fc
  .dictionary(memberNames({ maxLength: 4 }), jsonValues({ maxDepth: 1 }), { maxKeys: 2 })
  .map((input): object => JSON.parse(JSON.stringify(input)));

/** Splits a block into stream events. Members that grow are cut into pieces of `size` characters. */
function piecesOf(block: object, index: number, size: number): object[] {
  const cut = (value: string) => value.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
  const pieces: object[] = [];
  const start: Record<string, unknown> = { ...block };
  for (const [key, value] of Object.entries(block)) {
    if (key === "text") {
      start.text = "";
      pieces.push(...cut(value).map((text) => ({ type: "text_delta", text })));
    } else if (key === "thinking") {
      start.thinking = "";
      pieces.push(...cut(value).map((thinking) => ({ type: "thinking_delta", thinking })));
    } else if (key === "signature") {
      start.signature = "";
      pieces.push({ type: "signature_delta", signature: value });
    } else if (key === "citations") {
      start.citations = [];
      pieces.push(...value.map((citation: unknown) => ({ type: "citations_delta", citation })));
    } else if (key === "input") {
      start.input = {};
      pieces.push(
        ...cut(JSON.stringify(value)).map((part) => ({ type: "input_json_delta", partial_json: part })),
      );
    }
  }
  return [begin(index, start), ...pieces.map((piece) => delta(index, piece)), stop(index)];
}

describe("a reply of anthropic", () => {
  const call = begin(2, { type: "tool_use", id: "toolu_1", name: "lookup", input: {} });
  const STREAM: unknown[] = [
    START,
    { type: "ping" },
    begin(0, { type: "thinking", thinking: "", signature: "" }),
    delta(0, { type: "thinking_delta", thinking: "h" }),
    delta(0, { type: "thinking_delta", thinking: "m" }),
    delta(0, { type: "signature_delta", signature: "s" }),
    stop(0),
    ...text(1, "I ", "look."),
    call,
    delta(2, { type: "input_json_delta", partial_json: "" }),
    delta(2, { type: "input_json_delta", partial_json: '{"city"' }),
    delta(2, { type: "input_json_delta", partial_json: ':"Oslo"}' }),
    stop(2),
    ...end("tool_use"),
  ];

  test("ANTHROPIC-3 reasoning, text and a call, and its own blocks to be sent back", () => {
    const outcome = outcomeOf(STREAM);
    const thinking: Anthropic.ThinkingBlockParam = { type: "thinking", thinking: "hm", signature: "s" };
    expect(outcome).toStrictEqual({
      ok: true,
      reply: {
        text: "I look.",
        reasoning: "hm",
        toolCalls: [{ id: "toolu_1", name: "lookup", arguments: { city: "Oslo" } }],
        finishReason: "tool_calls",
        usage: { inputTokens: 5, outputTokens: 9, totalTokens: 14 },
        providerMessageId: "msg_1",
        native: [
          { type: "block", value: { ...thinking } },
          { type: "text", length: 7 },
          { type: "tool-call", index: 0 },
        ],
      },
    });
    const reply = givenBack(outcome, PROFILE);
    const result: ContextMessage = { role: "tool", content: "rain", toolCallId: "toolu_1" };
    const expected: Anthropic.MessageParam = {
      role: "assistant",
      content: [
        thinking,
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "lookup", input: { city: "Oslo" } },
      ],
    };
    const messages: ContextMessage[] = [{ role: "user", content: "?" }, reply, result];
    const context = { systemInstructions: [], messages, tools: [], toolChoice: "auto" } as const;
    const { messages: sent } = adapterFor("anthropic").buildRequest(PROFILE, context);
    expect(sent).toStrictEqual([expect.anything(), expected, expect.anything()]);
  });

  test("the same reply as one whole message", () => {
    const content = [
      { type: "thinking", thinking: "hm", signature: "s" },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "toolu_1", name: "lookup", input: { city: "Oslo" } },
    ];
    const usage = { input_tokens: 5, output_tokens: 9 };
    const whole = {
      type: "message",
      id: "msg_1",
      role: "assistant",
      content,
      stop_reason: "tool_use",
      usage,
    };
    expect(outcomeOf([whole])).toStrictEqual(outcomeOf(STREAM));
    expect(outcomeOf([JSON.stringify(whole, null, 2)])).toStrictEqual(outcomeOf(STREAM));
  });

  test("ANTHROPIC-3 content in pieces equals whole content, and is sent back unchanged", () => {
    const said = fc.string({ minLength: 1 }).filter((value) => value.trim() !== "");
    const block = fc.oneof(
      fc.record({ type: fc.constant("text"), text: said }),
      fc.record({ type: fc.constant("text"), text: said, citations: fc.constant([{ cited_text: "c" }]) }),
      fc.record({ type: fc.constant("thinking"), thinking: fc.string(), signature: said }),
      fc.record({ type: fc.constant("redacted_thinking"), data: fc.string() }),
      fc.record({ type: fc.constant("tool_use"), id: fc.uuid(), name: fc.constant("now"), input: INPUT }),
      fc.record({
        type: fc.constant("server_tool_use"),
        id: fc.uuid(),
        name: fc.constant("web_search"),
        input: INPUT,
      }),
      fc.record({
        type: fc.constant("web_search_tool_result"),
        tool_use_id: fc.uuid(),
        content: fc.constant([]),
      }),
    );
    fc.assert(
      fc.property(fc.array(block, { maxLength: 6 }), fc.integer({ min: 1, max: 9 }), (content, size) => {
        const message = { ...START.message, stop_reason: "end_turn" };
        const outcome = outcomeOf([{ ...message, content }]);
        const pieces = content.flatMap((whole, index) => piecesOf(whole, index, size));
        const usage = { ...START.message.usage, output_tokens: 1 };
        const last = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage };
        expect(outcomeOf([START, ...pieces, last])).toStrictEqual(outcome);
        if (!outcome.ok) throw new Error(outcome.error.message);
        const { text: said, toolCalls, native } = outcome.reply;
        const isKept = ({ type }: { type: string }) => type !== "server_tool_use" || toolCalls.length > 0;
        const reply: ContextMessage = {
          role: "assistant",
          content: said,
          toolCalls,
          ...(native === undefined ? {} : { native: { ...PROFILE, parts: native } }),
        };
        const messages: ContextMessage[] = [{ role: "user", content: "?" }, reply];
        const context = { systemInstructions: [], messages, tools: [], toolChoice: "auto" } as const;
        const { messages: sent } = adapterFor("anthropic").buildRequest(PROFILE, context);
        // Without native parts, neighbouring plain texts may have become one.
        if (native !== undefined)
          expect(Array.isArray(sent) && sent[1]).toEqual({
            role: "assistant",
            content: content.filter(isKept),
          });
      }),
      { numRuns: 150 },
    );
  });

  test("plain text with calls after it needs no native parts", () => {
    const called = begin(1, {
      type: "tool_use",
      id: "t",
      name: "now",
      input: {},
      caller: { type: "direct" },
    });
    expect(outcomeOf([START, ...text(0, "a"), called, stop(1), ...end("tool_use")])).toStrictEqual({
      ok: true,
      reply: {
        text: "a",
        toolCalls: [{ id: "t", name: "now", arguments: {} }],
        finishReason: "tool_calls",
        usage: { inputTokens: 5, outputTokens: 9, totalTokens: 14 },
        providerMessageId: "msg_1",
      },
    });
  });

  test("ANTHROPIC-5 a tool that the provider runs is not a call, and is kept with its deltas", () => {
    const cited = { type: "web_search_result_location", cited_text: "c" };
    const outcome = outcomeOf([
      START,
      begin(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
      delta(0, { type: "input_json_delta", partial_json: '{"query":' }),
      delta(0, { type: "input_json_delta", partial_json: '"x"}' }),
      stop(0),
      begin(1, { type: "web_search_tool_result", tool_use_id: "s", content: [] }),
      stop(1),
      begin(2, { type: "compaction", content: null }),
      delta(2, { type: "compaction_delta", content: "Sum" }),
      delta(2, { type: "compaction_delta", content: "mary" }),
      stop(2),
      begin(3, { type: "text", text: "", citations: [] }),
      delta(3, { type: "citations_delta", citation: cited }),
      delta(3, { type: "text_delta", text: "Found." }),
      stop(3),
      ...text(4, ""),
      begin(5, {
        type: "tool_use",
        id: "t",
        name: "now",
        input: { a: 1 },
        caller: { type: "code_execution", tool_id: "s" },
      }),
      stop(5),
      ...end("pause_turn"),
    ]);
    expect(outcome).toMatchObject({
      ok: true,
      reply: {
        text: "Found.",
        toolCalls: [{ id: "t", name: "now", arguments: { a: 1 } }],
        finishReason: "tool_calls",
        native: [
          {
            type: "block",
            value: { type: "server_tool_use", id: "s", name: "web_search", input: { query: "x" } },
          },
          { type: "block", value: { type: "web_search_tool_result", tool_use_id: "s", content: [] } },
          { type: "block", value: { type: "compaction", content: "Summary" } },
          { type: "text", length: 6, extra: { citations: [cited] } },
          { type: "tool-call", index: 0, extra: { caller: { type: "code_execution", tool_id: "s" } } },
        ],
      },
    });
  });

  test("a block without an end is complete at the end of the reply", () => {
    const given = begin(0, { type: "tool_use", id: "t", name: "now", input: { a: 1 } });
    const server = begin(1, { type: "server_tool_use", id: "s", name: "web_search", input: {} });
    const query = delta(1, { type: "input_json_delta", partial_json: '{"query":"x"}' });
    expect(outcomeOf([START, given, server, query, ...end("tool_use")])).toMatchObject({
      reply: {
        toolCalls: [{ id: "t", name: "now", arguments: { a: 1 } }],
        native: [
          { type: "tool-call", index: 0 },
          { type: "block", value: { id: "s", input: { query: "x" } } },
        ],
      },
    });
  });

  test("ANTHROPIC-5 a provider's tool that did not run is dropped, unless it waits for a call of ours", () => {
    const server = begin(1, { type: "server_tool_use", id: "s", name: "web_search", input: {} });
    const cut = [START, ...text(0, "a"), server, stop(1), ...end("max_tokens")];
    expect(outcomeOf(cut)).toMatchObject({ reply: { text: "a", finishReason: "length" } });
    expect(outcomeOf(cut)).not.toHaveProperty("reply.native");
    const called = begin(2, { type: "tool_use", id: "t", name: "now", input: {} });
    expect(
      outcomeOf([START, ...text(0, "a"), server, stop(1), called, stop(2), ...end("tool_use")]),
    ).toMatchObject({ reply: { native: [{}, { value: { id: "s" } }, { type: "tool-call" }] } });
  });

  test("PAUSE-1 a continued reply keeps the provider's own tool call", () => {
    const server = begin(1, { type: "server_tool_use", id: "s", name: "web_search", input: {} });
    expect(outcomeOf([START, ...text(0, "a"), server, stop(1), ...end("pause_turn")])).toMatchObject({
      reply: {
        finishReason: "paused",
        native: [
          { type: "text", length: 1 },
          { type: "block", value: { type: "server_tool_use", id: "s" } },
        ],
      },
    });
  });

  test("reasoning that was cut off before its signature is not kept", () => {
    const cut = [START, begin(0, { type: "thinking", thinking: "hm" }), ...end("max_tokens")];
    const outcome = outcomeOf(cut);
    expect(outcome).toMatchObject({ reply: { reasoning: "hm", finishReason: "length" } });
    expect(outcome.ok && outcome.reply.native).toBeUndefined();
  });

  test.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "content_filter"],
    ["pause_turn", "paused"],
    ["tool_use", "other"],
    ["something_new", "other"],
    [null, "stop"],
  ])("ends for the reason %s: %s", (reason, expected) => {
    expect(outcomeOf([START, ...text(0, "a"), ...end(reason)])).toMatchObject({
      reply: { finishReason: expected },
    });
  });

  test("usage: cache reads and writes are part of the input, and finer counts are kept", () => {
    const usage = {
      input_tokens: 3,
      cache_read_input_tokens: 20,
      cache_creation_input_tokens: 100,
      cache_creation: { ephemeral_5m_input_tokens: 100 },
      output_tokens: 1,
      service_tier: "standard",
    };
    const last = { output_tokens: 50, input_tokens: null, output_tokens_details: { thinking_tokens: 40 } };
    const payloads = [
      { ...START, message: { ...START.message, usage } },
      ...text(0, "a"),
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: last },
    ];
    expect(outcomeOf(payloads)).toMatchObject({
      reply: {
        usage: {
          inputTokens: 123,
          cachedInputTokens: 20,
          cacheWriteTokens: 100,
          outputTokens: 50,
          reasoningTokens: 40,
          totalTokens: 173,
          breakdown: {
            cache_creation: { ephemeral_5m_input_tokens: 100 },
            output_tokens_details: { thinking_tokens: 40 },
          },
        },
      },
    });
  });

  test("ANTHROPIC-6 a message that begins twice", () => {
    expect(outcomeOf([START, START, ...text(0, "a"), ...end("end_turn")])).toMatchObject({
      reply: { text: "a" },
    });
    const spliced = decode([START, ...text(0, "a"), START, ...text(0, "b"), ...end("end_turn")]);
    expect(spliced.at(-1)).toMatchObject({
      type: "error",
      error: { category: "transient", retriable: true },
    });
    expect(spliced.filter(({ type }) => type === "text")).toEqual([{ type: "text", text: "a" }]);
  });

  test("ANTHROPIC-7 unknown events are ignored, broken events are errors", () => {
    const known = [START, { type: "future_event", x: 1 }, ...text(0, "a"), ...end("end_turn")];
    expect(outcomeOf(known)).toMatchObject({ reply: { text: "a" } });
    for (const broken of [
      "{",
      "null",
      "[]",
      {},
      { type: "content_block_delta" },
      delta(7, { type: "text_delta", text: "x" }),
    ]) {
      const deltas = decode([START, broken, ...text(0, "a"), ...end("end_turn")]);
      expect(deltas.at(-1)).toMatchObject({ type: "error", error: { category: "transient" } });
      expect(deltas.filter(({ type }) => type === "text")).toEqual([]);
    }
  });

  test.each([
    ["overloaded_error", "transient"],
    ["api_error", "transient"],
    ["rate_limit_error", "rate_limit"],
    ["billing_error", "quota"],
    ["timeout_error", "timeout"],
    ["request_too_large", "validation"],
    ["authentication_error", "auth"],
  ])("an error inside the stream: %s", (type, category) => {
    const error = { type: "error", error: { type, message: "No." }, request_id: "req_1" };
    expect(decode([START, ...text(0, "a"), error, ...end("end_turn")]).at(-1)).toMatchObject({
      type: "error",
      error: { category, message: "No.", provider: "anthropic", requestId: "req_1" },
    });
  });

  test("STREAM-2 an end without a beginning is an error", () => {
    expect(outcomeOf(["[DONE]"]).ok).toBe(false);
    expect(outcomeOf([{ type: "message_stop" }]).ok).toBe(false);
  });
});
