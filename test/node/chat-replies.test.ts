/** Replies of Chat Completions and of Workers AI: the habits of servers, and the reasoning that is sent back. */
import { describe, expect, test } from "vitest";
import { decode, outcomeOf } from "../support/decoding.ts";

/** The payloads of a stream. */
const text = (content: string) => ({ id: "r1", choices: [{ index: 0, delta: { content } }] });
const calls = (...fragments: unknown[]) => ({ choices: [{ index: 0, delta: { tool_calls: fragments } }] });
const finish = (reason: string) => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const usage = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } };

describe.each(["openai", "workers-ai"] as const)("a reply of %s", (provider) => {
  test("STREAM-2 a malformed payload is a typed error, and ends the reply", () => {
    for (const payload of [{ choices: "none" }, { choices: [{ delta: 3 }] }]) {
      const deltas = decode(provider, [text("a"), payload, text("b"), finish("stop"), "[DONE]"]);
      expect(deltas.map(({ type }) => type)).toEqual(["message-id", "text", "error"]);
    }
  });

  test("STREAM-3 usage after a finish reason counts", () => {
    expect(outcomeOf(provider, [text("a"), finish("stop"), usage, "garbage"])).toMatchObject({
      ok: true,
      reply: { text: "a", finishReason: "stop", usage: { totalTokens: 12 } },
    });
  });

  test("OPENAI-3 reasoning is sent back with the reply that called tools", () => {
    const call = calls({ index: 0, id: "c", function: { name: "a", arguments: "{}" } });
    const thinks = { choices: [{ index: 0, delta: { reasoning_content: "hm" } }] };
    expect(outcomeOf(provider, [thinks, text("ab"), call, finish("tool_calls")])).toMatchObject({
      reply: {
        native: [
          { type: "block", value: { reasoning_content: "hm" } },
          { type: "text", length: 2 },
          { type: "tool-call", index: 0 },
        ],
      },
    });
  });

  test.each([
    [{ message: "Slow down", type: "requests", code: "rate_limit_exceeded" }, "rate_limit"],
    [{ message: "Over quota", code: "insufficient_quota" }, "quota"],
    [{ message: "Too long", type: "invalid_request_error", code: "context_length_exceeded" }, "validation"],
    [{ message: "Bad gateway", code: 502 }, "transient"],
    [{ message: "No credit", code: 402 }, "quota"],
    [{ message: "Something" }, "transient"],
    ["Something", "transient"],
  ])("an error inside the stream: %j", (error, category) => {
    const deltas = decode(provider, [text("a"), { error }, finish("stop")]);
    const message = typeof error === "string" ? error : error.message;
    expect(deltas.at(-1)).toMatchObject({ type: "error", error: { category, message, provider } });
  });
});

describe("the habits of compatible servers", () => {
  const toolCalls = (...payloads: unknown[]) => {
    const outcome = outcomeOf("openai", [...payloads, finish("tool_calls"), "[DONE]"]);
    if (!outcome.ok) throw new Error(outcome.error.message);
    return outcome.reply.toolCalls;
  };
  const two = [
    { id: "call_0", name: "a", arguments: { x: 1 } },
    { id: "call_1", name: "b", arguments: {} },
  ];

  test("REPLY-2 calls without ids get ids", () => {
    expect(
      toolCalls(
        calls({ index: 0, function: { name: "a", arguments: '{"x"' } }),
        calls({ index: 0, function: { arguments: ":1}" } }),
        calls({ index: 1, function: { name: "b", arguments: "{}" } }),
      ),
    ).toEqual(two);
  });

  test("complete calls, without an index, in one chunk or in several", () => {
    const a = { function: { name: "a", arguments: '{"x":1}' } };
    const b = { function: { name: "b", arguments: "{}" } };
    expect(toolCalls(calls(a, b))).toEqual(two);
    expect(toolCalls(calls(a), calls(b))).toEqual(two);
    const plain = { function: { name: "a" } };
    expect(toolCalls(calls(plain), calls(plain))).toMatchObject([{ id: "call_0" }, { id: "call_1" }]);
  });

  test("complete calls that all have index 0", () => {
    const a = { index: 0, function: { name: "a", arguments: '{"x":1}' } };
    const b = { index: 0, function: { name: "b", arguments: "{}" } };
    expect(toolCalls(calls(a, b))).toEqual(two);
    expect(toolCalls(calls(a), calls(b))).toEqual(two);
    expect(toolCalls(calls({ ...a, id: "p" }), calls({ ...a, id: "q" }))).toMatchObject([
      { id: "p" },
      { id: "q" },
    ]);
    const plain = { index: 0, function: { name: "a" } };
    expect(toolCalls(calls(plain, plain))).toMatchObject([{ id: "call_0" }, { id: "call_1" }]);
    expect(toolCalls(calls(a), calls(a))).toMatchObject([{ id: "call_0" }, { id: "call_1" }]);
  });

  test("SLOT-2 an id and a name that are repeated with every fragment, and a late id", () => {
    const fragment = (input: string) => ({ index: 0, id: "c", function: { name: "a", arguments: input } });
    const once = [{ id: "c", name: "a", arguments: { x: 1 } }];
    expect(toolCalls(calls(fragment("")), calls(fragment('{"x"')), calls(fragment(":1}")))).toEqual(once);
    expect(
      toolCalls(
        calls({ index: 0, function: { name: "a", arguments: '{"x"' } }),
        calls({ index: 0, id: "c", function: { arguments: ":1}" } }),
      ),
    ).toEqual(once);
  });

  test("SLOT-1 indices with holes, arguments as an object, empty closing fragments", () => {
    expect(
      toolCalls(
        calls({ index: 3, id: "p", function: { name: "a", arguments: { x: 1 } } }),
        calls({ index: 7, id: "q", function: { name: "b" } }),
        calls({ index: 7, id: null, type: null, function: { name: null, arguments: "" } }),
      ),
    ).toEqual([
      { id: "p", name: "a", arguments: { x: 1 } },
      { id: "q", name: "b", arguments: {} },
    ]);
  });

  test("a finish reason that does not fit the reply", () => {
    const call = calls({ index: 0, id: "c", function: { name: "a", arguments: "{}" } });
    expect(outcomeOf("openai", [call, finish("stop")])).toMatchObject({
      ok: true,
      reply: { finishReason: "tool_calls" },
    });
    expect(outcomeOf("openai", [text("a"), finish("tool_calls")])).toMatchObject({
      reply: { finishReason: "other" },
    });
    expect(outcomeOf("openai", [text("a"), finish("length")])).toMatchObject({
      reply: { finishReason: "length" },
    });
    expect(outcomeOf("openai", [text("a"), finish("error")])).toMatchObject({
      error: { category: "transient" },
    });
  });

  test("no finish reason at all, but a proper end", () => {
    expect(outcomeOf("openai", [text("a"), "[DONE]"])).toMatchObject({
      ok: true,
      reply: { finishReason: "stop" },
    });
    expect(outcomeOf("openai", ["[DONE]"])).toMatchObject({ ok: false, error: { category: "transient" } });
  });

  test("heartbeats, odd extra fields, other choices, refusals and content in parts", () => {
    const outcome = outcomeOf("openai", [
      { id: "", choices: [], prompt_filter_results: [] },
      { type: "ping" },
      { id: "r", choices: [{ index: 1, delta: { content: "other" } }] },
      {
        choices: [{ index: 0, delta: { content: [{ type: "text", text: "parts " }, { type: "thinking" }] } }],
      },
      { choices: [{ delta: { content: null, refusal: "No." } }] },
      {
        choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }],
        usage: { prompt_tokens: "many" },
      },
    ]);
    expect(outcome).toEqual({
      ok: true,
      reply: { text: "parts No.", toolCalls: [], finishReason: "content_filter", providerMessageId: "r" },
    });
  });

  test("a complete reply that was not streamed", () => {
    const message = {
      content: "Hi",
      tool_calls: [{ id: "c", type: "function", function: { name: "a", arguments: "{}" } }],
    };
    const whole = { id: "r", choices: [{ index: 0, message }], usage: usage.usage };
    expect(outcomeOf("openai", [whole])).toMatchObject({
      ok: true,
      reply: { text: "Hi", toolCalls: [{ id: "c" }], finishReason: "tool_calls", usage: { inputTokens: 5 } },
    });
  });

  test("finer token counts are kept", () => {
    const input = { cached_tokens: 3, cache_write_tokens: 1 };
    const output = { reasoning_tokens: 4, audio_tokens: 0 };
    const detailed = { ...usage.usage, prompt_tokens_details: input, completion_tokens_details: output };
    expect(outcomeOf("openai", [text("a"), finish("stop"), { choices: [], usage: detailed }])).toMatchObject({
      reply: {
        usage: {
          inputTokens: 5,
          cachedInputTokens: 3,
          cacheWriteTokens: 1,
          reasoningTokens: 4,
          breakdown: { prompt_tokens_details: input, completion_tokens_details: output },
        },
      },
    });
    const hits = { ...usage.usage, prompt_cache_hit_tokens: 2 };
    expect(outcomeOf("openai", [text("a"), finish("stop"), { choices: [], usage: hits }])).toMatchObject({
      reply: { usage: { cachedInputTokens: 2 } },
    });
  });
});

describe("OPENAI-3 native parts of a reply", () => {
  const native = (...payloads: unknown[]) => {
    const outcome = outcomeOf("openai", [...payloads, "[DONE]"]);
    return outcome.ok ? outcome.reply.native : outcome.error;
  };
  const call = { index: 0, id: "c", function: { name: "a", arguments: "{}" } };
  const thinks = (delta: object) => ({ choices: [{ index: 0, delta }] });

  test("are absent without calls or without reasoning", () => {
    expect(native(thinks({ reasoning_content: "hm" }), text("a"), finish("stop"))).toBeUndefined();
    expect(native(text("a"), calls(call), finish("tool_calls"))).toBeUndefined();
  });

  test("details are put together from their pieces, and go before plain reasoning", () => {
    const detail = (given: object) =>
      thinks({ reasoning: "x", reasoning_details: [{ type: "reasoning.text", index: 0, ...given }] });
    const secret = { type: "reasoning.encrypted", index: 1, data: "AAA" };
    expect(
      native(
        detail({ text: "Let me ", format: "f" }),
        detail({ text: "see.", signature: null }),
        detail({ text: "", signature: "s" }),
        thinks({ reasoning_details: [secret] }),
        calls(call),
        finish("tool_calls"),
      ),
    ).toEqual([
      {
        type: "block",
        value: {
          reasoning_details: [
            { type: "reasoning.text", index: 0, text: "Let me see.", format: "f", signature: "s" },
            secret,
          ],
        },
      },
      { type: "tool-call", index: 0 },
    ]);
  });

  test("members beside a call, in the same chunk or after it", () => {
    const extra = { extra_content: { google: { thought_signature: "s" } } };
    const expected = [{ type: "tool-call", index: 0, extra }];
    expect(native(calls({ ...call, ...extra }), finish("tool_calls"))).toEqual(expected);
    expect(native(calls(call), calls({ index: 0, ...extra }), finish("tool_calls"))).toEqual(expected);
  });
});

describe("the older replies of Workers AI", () => {
  test("text in pieces, then a count, then the end", () => {
    const outcome = outcomeOf("workers-ai", [
      { response: "The answer" },
      { response: " is " },
      { response: 42 },
      { response: null, usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
      "[DONE]",
    ]);
    expect(outcome).toEqual({
      ok: true,
      reply: {
        text: "The answer is 42",
        toolCalls: [],
        finishReason: "stop",
        usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
      },
    });
  });

  test("tool calls with their arguments as an object or as text", () => {
    const toolCalls = [
      { name: "a", arguments: { x: 1 } },
      { name: "a", arguments: '{"x":2}' },
    ];
    expect(outcomeOf("workers-ai", [{ response: null, tool_calls: toolCalls }, "[DONE]"])).toMatchObject({
      ok: true,
      reply: {
        finishReason: "tool_calls",
        toolCalls: [
          { id: "call_0", name: "a", arguments: { x: 1 } },
          { id: "call_1", name: "a", arguments: { x: 2 } },
        ],
      },
    });
  });

  test("STREAM-2 without the end it is not complete, and a wrong shape is an error", () => {
    expect(outcomeOf("workers-ai", [{ response: "The ans" }])).toMatchObject({
      error: { category: "transient" },
    });
    expect(outcomeOf("workers-ai", [{ response: "a", tool_calls: 3 }, "[DONE]"])).toMatchObject({
      error: { category: "transient" },
    });
  });
});
