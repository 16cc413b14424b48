/** Replies: what the decoders and the accumulator make of a provider's stream, however it arrives. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { eventData } from "../../src/adapters/gateway/events.ts";
import { adapterFor, ReplyAccumulator, type ReplyOutcome } from "../../src/adapters/index.ts";
import type { ModelDelta, ProviderId } from "../../src/adapters/types.ts";

type Chat = "openai" | "workers-ai";

const CHAT: Chat[] = ["openai", "workers-ai"];

function decode(provider: ProviderId, payloads: readonly unknown[]): ModelDelta[] {
  const decoder = adapterFor(provider).decoder();
  const texts = payloads.map((payload) => (typeof payload === "string" ? payload : JSON.stringify(payload)));
  return [...texts.flatMap((text) => decoder.push(text)), ...decoder.end()];
}

function assemble(provider: ProviderId, deltas: readonly ModelDelta[]): ReplyOutcome {
  const reply = new ReplyAccumulator(provider);
  for (const delta of deltas) reply.add(delta);
  return reply.outcome();
}

const outcomeOf = (provider: ProviderId, payloads: readonly unknown[]) =>
  assemble(provider, decode(provider, payloads));

/** The pieces of a stream, one event each, then `[DONE]`. */
const text = (content: string) => ({ id: "r1", choices: [{ index: 0, delta: { content } }] });
const calls = (...fragments: unknown[]) => ({ choices: [{ index: 0, delta: { tool_calls: fragments } }] });
const finish = (reason: string) => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const usage = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } };

const STREAM = [
  {
    id: "r1",
    choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }],
    usage: null,
  },
  { choices: [{ index: 0, delta: { reasoning_content: "Höchst " } }] },
  { choices: [{ index: 0, delta: { reasoning_content: "merkwürdig" } }] },
  text("Grüße 👋🏽 "),
  text("aus 東京\r\n\u2028"),
  calls({ index: 0, id: "c0", type: "function", function: { name: "lookup", arguments: "" } }),
  calls({ index: 0, function: { arguments: '{"city":' } }),
  calls({ index: 0, function: { arguments: '"Zürich"}' } }),
  calls({ index: 1, id: "c1", type: "function", function: { name: "lookup", arguments: "{}" } }),
  finish("tool_calls"),
  usage,
  "[DONE]",
];

const WHOLE: ReplyOutcome = {
  ok: true,
  reply: {
    text: "Grüße 👋🏽 aus 東京\r\n\u2028",
    reasoning: "Höchst merkwürdig",
    toolCalls: [
      { id: "c0", name: "lookup", arguments: { city: "Zürich" } },
      { id: "c1", name: "lookup", arguments: {} },
    ],
    finishReason: "tool_calls",
    usage: { inputTokens: 5, outputTokens: 7, totalTokens: 12 },
    providerMessageId: "r1",
    native: [
      { type: "block", value: { reasoning_content: "Höchst merkwürdig" } },
      { type: "text", length: "Grüße 👋🏽 aus 東京\r\n\u2028".length },
      { type: "tool-call", index: 0 },
      { type: "tool-call", index: 1 },
    ],
  },
};

/** A stream as bytes: each event in one of the ways the format allows. */
function encode(
  payloads: readonly unknown[],
  style: { newline: string; comments: boolean; bom: boolean },
): Uint8Array {
  const { newline, comments, bom } = style;
  const events = payloads.map((payload) => {
    const data = typeof payload === "string" ? payload : JSON.stringify(payload);
    const comment = comments ? `: keep-alive${newline}${newline}` : "";
    return `${comment}event: message${newline}data:${comments ? "" : " "}${data}${newline}${newline}`;
  });
  return new TextEncoder().encode((bom ? "\uFEFF" : "") + events.join(""));
}

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const rest = [...chunks];
  return new ReadableStream({
    pull(controller) {
      const chunk = rest.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  });
}

async function read(provider: ProviderId, chunks: readonly Uint8Array[]): Promise<ModelDelta[]> {
  const decoder = adapterFor(provider).decoder();
  const deltas: ModelDelta[] = [];
  for await (const data of eventData(streamOf(chunks), new AbortController().signal)) {
    deltas.push(...decoder.push(data));
  }
  return [...deltas, ...decoder.end()];
}

const style = fc.record({
  newline: fc.constantFrom("\n", "\r\n", "\r"),
  comments: fc.boolean(),
  bom: fc.boolean(),
});
const places = fc.array(fc.nat(), { maxLength: 40 });

describe.each(CHAT)("a stream of %s", (provider) => {
  test("is read whole", () => {
    expect(outcomeOf(provider, STREAM)).toEqual(WHOLE);
  });

  test("gives the same deltas wherever its bytes are cut", async () => {
    const expected = decode(provider, STREAM);
    await fc.assert(
      fc.asyncProperty(style, places, async (given, cuts) => {
        expect(await read(provider, cut(encode(STREAM, given), cuts))).toEqual(expected);
      }),
    );
    const bytes = encode(STREAM, { newline: "\r\n", comments: true, bom: true });
    expect(await read(provider, cut(bytes, [...bytes.keys()]))).toEqual(expected);
  });

  test("STREAM-1 STREAM-2 ends as a typed error if it is truncated before its finish, and is whole if after", async () => {
    const bytes = encode(STREAM, { newline: "\n", comments: false, bom: false });
    const decoded = new TextDecoder().decode(bytes);
    const marker = '"finish_reason":"tool_calls"}]}';
    const decided = new TextEncoder().encode(
      decoded.slice(0, decoded.indexOf(marker) + marker.length),
    ).length;
    for (let length = 0; length <= bytes.length; length++) {
      const deltas = await read(provider, [bytes.subarray(0, length)]);
      const outcome = assemble(provider, deltas);
      expect(outcome.ok).toBe(length >= decided);
      if (!outcome.ok)
        expect(outcome.error).toMatchObject({ category: "transient", retriable: true, provider });
      expect(deltas.findIndex(({ type }) => type === "finish" || type === "error")).toBe(deltas.length - 1);
    }
  });

  test("STREAM-2 a payload that cannot be read is a typed error, and nothing follows it", () => {
    for (const payload of [
      "not json",
      "{",
      "null",
      "[1]",
      "3",
      { choices: "none" },
      { choices: [{ delta: 3 }] },
    ]) {
      const deltas = decode(provider, [text("a"), payload, text("b"), finish("stop"), "[DONE]"]);
      expect(deltas.at(-1)).toMatchObject({
        type: "error",
        error: { category: "transient", retriable: true },
      });
      expect(deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : []))).toEqual(["a"]);
    }
  });

  test("STREAM-3 what follows a finish reason cannot spoil the reply, but its usage counts", () => {
    const outcome = outcomeOf(provider, [text("a"), finish("stop"), usage, "garbage", { error: "late" }]);
    expect(outcome).toMatchObject({
      ok: true,
      reply: { text: "a", finishReason: "stop", usage: { totalTokens: 12 } },
    });
  });

  test("any payloads at all give deltas that end in one finish or one error", () => {
    const payload = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>(...STREAM), fc.string());
    fc.assert(
      fc.property(fc.array(payload), (payloads) => {
        const deltas = decode(provider, payloads);
        expect(["finish", "error"]).toContain(deltas.at(-1)?.type);
        expect(deltas.filter(({ type }) => type === "finish" || type === "error")).toHaveLength(1);
      }),
    );
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

  test("whole calls, without an index, in one chunk or in several", () => {
    const a = { function: { name: "a", arguments: '{"x":1}' } };
    const b = { function: { name: "b", arguments: "{}" } };
    expect(toolCalls(calls(a, b))).toEqual(two);
    expect(toolCalls(calls(a), calls(b))).toEqual(two);
    const plain = { function: { name: "a" } };
    expect(toolCalls(calls(plain), calls(plain))).toMatchObject([{ id: "call_0" }, { id: "call_1" }]);
  });

  test("whole calls that all have index 0", () => {
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

  test("an id and a name that are repeated with every fragment, and an id that comes late", () => {
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

  test("a whole reply that was not streamed", () => {
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

describe("OPENAI-3 what a reply is given back with", () => {
  const native = (...payloads: unknown[]) => {
    const outcome = outcomeOf("openai", [...payloads, "[DONE]"]);
    return outcome.ok ? outcome.reply.native : outcome.error;
  };
  const call = { index: 0, id: "c", function: { name: "a", arguments: "{}" } };
  const thinks = (delta: object) => ({ choices: [{ index: 0, delta }] });

  test("nothing without calls, and nothing without reasoning", () => {
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

  test("what stood beside a call, whether it came with the call or behind it", () => {
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
