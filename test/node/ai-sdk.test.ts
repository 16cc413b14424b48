/** The format `ai-sdk`: requests to language models, and their replies. */
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { toCallOptions } from "../../src/adapters/formats/ai-sdk/call-options.ts";
import { objects } from "../../src/adapters/formats/common/json.ts";
import { adapterFor, type ReplyOutcome } from "../../src/adapters/index.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { context } from "../support/contexts.ts";
import * as decoding from "../support/decoding.ts";

const format = adapterFor("ai-sdk");
const PROFILE: ModelProfile = { provider: "ai-sdk", modelId: "model" };
const SCHEMA = { type: "object", properties: { city: { type: "string" } } } as const;
const TOOL = { name: "lookup", description: "Looks it up.", inputSchema: SCHEMA };

const ROUND: ContextMessage[] = [
  { role: "user", content: "Weather?", name: "Ann" },
  { role: "assistant", content: "", toolCalls: [{ id: "c:1", name: "lookup", arguments: { city: "Oslo" } }] },
  { role: "tool", content: "no such city", toolCallId: "c:1", metadata: { isSuccess: false } },
];

describe("a request to an AI SDK model", () => {
  test("is its call options, in the official types", () => {
    const request = format.buildRequest(
      { ...PROFILE, parameters: { temperature: 0, prompt: [], abortSignal: 1, seed: null } },
      context({
        systemInstructions: ["Be brief.", "Be kind."],
        messages: [
          ...ROUND,
          {
            role: "user",
            content: "And this?",
            parts: [
              { type: "text", text: "And this?" },
              { type: "image", source: { url: "https://media.example/a.png" } },
              { type: "file", source: { base64: "AAAA" }, mediaType: "application/pdf", name: "a.pdf" },
            ],
          },
        ],
        tools: [TOOL],
        toolChoice: { name: "lookup" },
        output: { name: "answer", schema: SCHEMA },
        cache: { key: "k", stableMessages: 1 },
      }),
    );
    const id = expect.stringMatching(/^c_1_[0-9a-f]{8}$/);
    const expected: LanguageModelV4CallOptions = {
      prompt: [
        { role: "system", content: "Be brief.\n\nBe kind." },
        { role: "user", content: [{ type: "text", text: "Ann: Weather?" }] },
        {
          role: "assistant",
          content: [{ type: "tool-call", toolCallId: id, toolName: "lookup", input: { city: "Oslo" } }],
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: id,
              toolName: "lookup",
              output: { type: "error-text", value: "no such city" },
            },
          ],
        },
        {
          role: "user",
          content: [
            { type: "text", text: "And this?" },
            {
              type: "file",
              data: { type: "url", url: new URL("https://media.example/a.png") },
              mediaType: "image/png",
            },
            {
              type: "file",
              filename: "a.pdf",
              data: { type: "data", data: "AAAA" },
              mediaType: "application/pdf",
            },
          ],
        },
      ],
      tools: [{ type: "function", name: "lookup", description: "Looks it up.", inputSchema: SCHEMA }],
      toolChoice: { type: "tool", toolName: "lookup" },
      responseFormat: { type: "json", name: "answer", schema: SCHEMA },
      temperature: 0,
    };
    expect(JSON.parse(JSON.stringify(request))).toEqual(request);
    expect(toCallOptions(request)).toEqual(expected);
  });

  test("a result finds its call in the request that was sent before", () => {
    const first = format.buildRequest(PROFILE, context({ messages: ROUND.slice(0, 2) }));
    const extended = format.extend(PROFILE, first, [{ role: "tool", content: "rain", toolCallId: "c:1" }]);
    expect(extended.prompt).toMatchObject([{}, {}, { content: [{ toolName: "lookup" }] }]);
  });

  test("blank messages and texts are left out, because some providers refuse them", () => {
    const messages: ContextMessage[] = [
      { role: "user", content: " " },
      { role: "assistant", content: "" },
      { role: "system", content: "" },
      {
        role: "user",
        content: "Hi.",
        parts: [
          { type: "text", text: "" },
          { type: "text", text: "Hi." },
        ],
      },
      { role: "assistant", content: "", toolCalls: [{ id: "c", name: "lookup", arguments: {} }] },
    ];
    expect(format.buildRequest(PROFILE, context({ messages })).prompt).toEqual([
      { role: "user", content: [{ type: "text", text: "Hi." }] },
      { role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "lookup", input: {} }] },
    ]);
  });

  test("AISDK-4 results of parallel calls are one message, whatever message follows", () => {
    const calls = ["a", "b", "c"].map((id) => ({ id, name: "lookup", arguments: {} }));
    const messages: ContextMessage[] = [
      { role: "user", content: "Look." },
      { role: "assistant", content: "I look.", toolCalls: calls },
      ...calls.map(({ id }): ContextMessage => ({ role: "tool", content: id, toolCallId: id })),
      { role: "user", content: "Well?" },
    ];
    const expected = [
      { role: "user" },
      { role: "assistant" },
      { role: "tool", content: ["a", "b", "c"].map((toolCallId) => ({ type: "tool-result", toolCallId })) },
      { role: "user", content: [{ type: "text", text: "Well?" }] },
    ];
    expect(format.buildRequest(PROFILE, context({ messages })).prompt).toMatchObject(expected);
    const first = format.buildRequest(PROFILE, context({ messages: messages.slice(0, 1) }));
    expect(format.extend(PROFILE, first, messages.slice(1)).prompt).toMatchObject(expected);
  });

  test("AISDK-4 a system message in the middle is a user's text, and the first system messages are one message", () => {
    const first = format.buildRequest(
      PROFILE,
      context({
        systemInstructions: ["Be brief."],
        messages: [
          { role: "system", content: "Be kind." },
          { role: "user", content: "Hi." },
        ],
      }),
    );
    const correction: ContextMessage = { role: "system", content: "Your answer was not accepted." };
    const { prompt } = format.extend(PROFILE, first, [{ role: "assistant", content: "{" }, correction]);
    expect(prompt).toEqual([
      { role: "system", content: "Be brief.\n\nBe kind." },
      { role: "user", content: [{ type: "text", text: "Hi." }] },
      { role: "assistant", content: [{ type: "text", text: "{" }] },
      {
        role: "user",
        content: [{ type: "text", text: "[System instruction] Your answer was not accepted." }],
      },
    ]);
  });

  test.each([
    ["https://media.example/a.webp?x=1", "image/webp"],
    ["https://media.example/a.JPG", "image/jpeg"],
    ["https://media.example/a", "image/jpeg"],
    ["https://media.example/a.php", "image/jpeg"],
  ])("an image by the address %s without a type is of the type %s", (url, mediaType) => {
    const image = { type: "image", source: { url } } as const;
    const messages: ContextMessage[] = [{ role: "user", content: "", parts: [image] }];
    expect(format.buildRequest(PROFILE, context({ messages })).prompt).toMatchObject([
      { content: [{ type: "file", mediaType }] },
    ]);
  });

  test("a result has the name of its call, even if it has another name itself", () => {
    const messages: ContextMessage[] = [
      { role: "user", content: "Look." },
      { role: "assistant", content: "", toolCalls: [{ id: "c", name: "look up", arguments: {} }] },
      { role: "tool", content: "ok", toolCallId: "c", name: "another" },
    ];
    expect(format.buildRequest(PROFILE, context({ messages })).prompt).toMatchObject([
      { role: "user" },
      { content: [{ toolName: "look_up" }] },
      { content: [{ toolName: "look_up" }] },
    ]);
  });

  test("a context that the format cannot express is refused with its reason", () => {
    const file = { type: "file", source: { url: "https://media.example/a" } } as const;
    const messages: ContextMessage[] = [{ role: "user", content: "", parts: [file] }];
    const refused = (given: Partial<ModelContext>, what: string) =>
      expect(() => format.buildRequest(PROFILE, context(given))).toThrowError(
        expect.objectContaining({ code: "UNSUPPORTED", message: expect.stringContaining(what) }),
      );
    refused({ messages }, "media type");
    refused({ tools: [{ ...TOOL, name: "memory.write" }] }, '"memory.write"');
    refused({ toolChoice: "required" }, "without offered tools");
  });
});

const decode = (...parts: unknown[]) => decoding.decode("ai-sdk", parts);
const outcomeOf = (...parts: unknown[]) => decoding.outcomeOf("ai-sdk", parts);

type Usage = Extract<LanguageModelV4StreamPart, { type: "finish" }>["usage"];
const USAGE: Usage = {
  inputTokens: { total: 10, noCache: 6, cacheRead: 3, cacheWrite: 1 },
  outputTokens: { total: 7, text: 2, reasoning: 5 },
  raw: { prompt: 10 },
};
type Unified = Extract<LanguageModelV4StreamPart, { type: "finish" }>["finishReason"]["unified"];
const finish = (unified: Unified): LanguageModelV4StreamPart => {
  return { type: "finish", usage: USAGE, finishReason: { unified, raw: undefined } };
};
const signed = (signature: string) => ({ test: { signature } });

const PARTS: LanguageModelV4StreamPart[] = [
  { type: "stream-start", warnings: [] },
  { type: "response-metadata", id: "resp_1", timestamp: new Date(0) },
  { type: "reasoning-start", id: "0" },
  { type: "reasoning-delta", id: "0", delta: "Think" },
  { type: "reasoning-delta", id: "0", delta: "." },
  { type: "reasoning-end", id: "0", providerMetadata: signed("r") },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "Grüße " },
  { type: "text-delta", id: "0", delta: "👋🏽" },
  { type: "text-end", id: "0" },
  { type: "tool-input-start", id: "c", toolName: "lookup" },
  { type: "tool-input-delta", id: "c", delta: '{"city":"Os' },
  { type: "tool-input-end", id: "c" },
  {
    type: "tool-call",
    toolCallId: "c",
    toolName: "lookup",
    input: '{"city":"Oslo"}',
    providerMetadata: signed("c"),
  },
  { type: "tool-call", toolCallId: "d", toolName: "lookup", input: "" },
  finish("tool-calls"),
];

describe("a reply of an AI SDK model", () => {
  test("is decoded, and its metadata is sent back with it", () => {
    const outcome = outcomeOf(...PARTS);
    expect(outcome).toEqual({
      ok: true,
      reply: {
        text: "Grüße 👋🏽",
        reasoning: "Think.",
        toolCalls: [
          { id: "c", name: "lookup", arguments: { city: "Oslo" } },
          { id: "d", name: "lookup", arguments: {} },
        ],
        finishReason: "tool_calls",
        usage: {
          inputTokens: 10,
          cachedInputTokens: 3,
          cacheWriteTokens: 1,
          outputTokens: 7,
          reasoningTokens: 5,
          totalTokens: 17,
          breakdown: { prompt: 10 },
        },
        providerMessageId: "resp_1",
        native: expect.any(Array),
      },
    });
    expect(returned(outcome)).toEqual([
      { type: "reasoning", text: "Think.", providerOptions: signed("r") },
      { type: "text", text: "Grüße 👋🏽" },
      {
        type: "tool-call",
        toolCallId: "c",
        toolName: "lookup",
        input: { city: "Oslo" },
        providerOptions: signed("c"),
      },
      { type: "tool-call", toolCallId: "d", toolName: "lookup", input: {} },
    ]);
  });

  test.each<[Unified, object]>([
    ["stop", { ok: true, reply: { finishReason: "stop" } }],
    ["length", { reply: { finishReason: "length" } }],
    ["content-filter", { reply: { finishReason: "content_filter" } }],
    ["tool-calls", { reply: { finishReason: "other" } }],
    ["other", { reply: { finishReason: "other" } }],
    ["error", { ok: false, error: { category: "transient" } }],
    ["interrupted", { ok: false, error: { category: "transient" } }],
  ])("a finish of the kind %s", (unified, expected) => {
    expect(outcomeOf({ type: "text-delta", id: "0", delta: "a" }, finish(unified))).toMatchObject(expected);
  });

  test("PAUSE-1 Anthropic's pauses have their own finish reason", () => {
    const paused = { type: "finish", usage: USAGE, finishReason: { unified: "stop", raw: "pause_turn" } };
    expect(outcomeOf({ type: "text-delta", id: "0", delta: "a" }, paused)).toMatchObject({
      reply: { finishReason: "paused" },
    });
  });

  test("an error inside the stream", () => {
    const error = { message: "Slow down", code: "rate_limit_exceeded" };
    expect(decode({ type: "error", error }, finish("error"))).toEqual([
      { type: "error", error: expect.objectContaining({ category: "rate_limit", message: "Slow down" }) },
    ]);
  });

  test("AISDK-1 tools that the provider runs are not calls of ours, and go back with their results", () => {
    const call = {
      type: "tool-call",
      toolCallId: "s",
      toolName: "search",
      input: '{"q":1}',
      providerExecuted: true,
    };
    const result = { type: "tool-result", toolCallId: "s", toolName: "search", result: { hits: 1 } };
    const outcome = outcomeOf(
      call,
      { ...result, preliminary: true, result: {} },
      result,
      { type: "source", sourceType: "url", id: "u", url: "https://media.example" },
      {
        type: "file",
        mediaType: "image/png",
        data: { type: "data", data: "AAAA" },
        providerMetadata: signed("f"),
      },
      { type: "text-delta", id: "0", delta: "Found." },
      finish("stop"),
    );
    expect(outcome).toMatchObject({ ok: true, reply: { toolCalls: [], finishReason: "stop" } });
    expect(returned(outcome)).toEqual([
      { ...call, input: { q: 1 } },
      {
        type: "tool-result",
        toolCallId: "s",
        toolName: "search",
        output: { type: "json", value: { hits: 1 } },
      },
      {
        type: "file",
        mediaType: "image/png",
        data: { type: "data", data: "AAAA" },
        providerOptions: signed("f"),
      },
      { type: "text", text: "Found." },
    ]);
  });

  test("a call that waits for an approval is not sent back, and ends the reply as `other`", () => {
    const outcome = outcomeOf(
      { type: "tool-call", toolCallId: "s", toolName: "mcp", input: "{}", providerExecuted: true },
      { type: "tool-approval-request", approvalId: "a", toolCallId: "s" },
      finish("stop"),
    );
    expect(outcome).toMatchObject({ reply: { finishReason: "other" } });
    expect(returned(outcome)).toBeUndefined();
  });

  test("AISDK-2 a text after a call is sent back after it", () => {
    const outcome = outcomeOf(
      { type: "tool-call", toolCallId: "c", toolName: "lookup", input: "{}" },
      { type: "text-delta", id: "0", delta: "Wait." },
      finish("tool-calls"),
    );
    expect(returned(outcome)).toEqual([
      { type: "tool-call", toolCallId: "c", toolName: "lookup", input: {} },
      { type: "text", text: "Wait." },
    ]);
  });

  test("texts with alternating pieces are one text, and an id may be used again", () => {
    const piece = (id: string, delta: string) => ({
      type: "text-delta",
      id,
      delta,
      providerMetadata: signed(id),
    });
    const mixed = outcomeOf(piece("a", "1"), piece("b", "2"), piece("a", "3"), finish("stop"));
    expect(mixed).toMatchObject({ reply: { text: "123" } });
    expect(returned(mixed)).toEqual([{ type: "text", text: "123" }]);
    const start = { type: "text-start", id: "a" };
    expect(returned(outcomeOf(start, piece("a", "1"), start, piece("a", "2"), finish("stop")))).toEqual([
      { type: "text", text: "1", providerOptions: signed("a") },
      { type: "text", text: "2", providerOptions: signed("a") },
    ]);
  });
});

/** Returns the content of a reply on its way back to its model. */
function returned(outcome: ReplyOutcome): unknown {
  if (!outcome.ok) throw new Error(outcome.error.message);
  const { text, toolCalls, native } = outcome.reply;
  const { provider, modelId } = PROFILE;
  const message: ContextMessage = {
    role: "assistant",
    content: text,
    toolCalls,
    ...(native === undefined ? {} : { native: { provider, modelId, parts: native } }),
  };
  const { prompt } = format.buildRequest(PROFILE, context({ messages: [message] }));
  return objects(prompt).find(({ role }) => role === "assistant")?.content;
}
