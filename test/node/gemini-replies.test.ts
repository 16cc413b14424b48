/** Replies of Gemini: how they are decoded, and how they go back. */
import type * as genai from "@google/genai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { context, givenBack } from "../support/contexts.ts";
import * as decoding from "../support/decoding.ts";
import { jsonValues, memberNames } from "../support/json-values.ts";

const gemini = adapterFor("gemini");
const PROFILE = { provider: "gemini", modelId: "gemini-2.5-test" } as const;

const decode = (payloads: readonly unknown[]): ModelDelta[] => decoding.decode("gemini", payloads);
const outcomeOf = (payloads: readonly unknown[]) => decoding.outcomeOf("gemini", payloads);

function chunk(parts: object[], beside: object = {}): object {
  return { candidates: [{ content: { role: "model", parts }, index: 0, ...beside }], responseId: "r1" };
}

function done(parts: object[] = [], finishReason = "STOP"): object {
  return chunk(parts, { finishReason });
}

function callsOf(...calls: object[]): unknown {
  const outcome = outcomeOf([...calls.map((functionCall) => chunk([{ functionCall }])), done()]);
  return outcome.ok ? outcome.reply.toolCalls : outcome.error.category;
}

/** Arguments of a call. They went through JSON text, which has no negative zero. */
const ARGS = fc
  .dictionary(memberNames({ maxLength: 4 }), jsonValues({ maxDepth: 1 }), { maxKeys: 2 })
  .map((args): object => JSON.parse(JSON.stringify(args)));

/** Joins neighbouring plain texts. */
function joinPlain(parts: readonly object[]): object[] {
  const joined: object[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last !== undefined && isPlain(last) && isPlain(part))
      joined.splice(-1, 1, { text: last.text + part.text });
    else joined.push(part);
  }
  return joined;
}

function isPlain(part: object): part is { text: string } {
  return "text" in part && Object.keys(part).length === 1;
}

describe("a reply of gemini", () => {
  const STREAM: unknown[] = [
    chunk([{ text: "hm", thought: true }]),
    chunk([{ text: "I " }]),
    chunk([{ text: "look." }]),
    chunk([{ text: "", thoughtSignature: "s0" }]),
    chunk([
      { functionCall: { name: "lookup", args: { city: "Oslo" } }, thoughtSignature: "s1" },
      { functionCall: { id: "x", name: "now", args: {} } },
    ]),
    { usageMetadata: { promptTokenCount: 5 } },
    {
      ...done(),
      usageMetadata: {
        promptTokenCount: 5,
        toolUsePromptTokenCount: 2,
        cachedContentTokenCount: 4,
        candidatesTokenCount: 3,
        thoughtsTokenCount: 10,
        totalTokenCount: 20,
        promptTokensDetails: [{ modality: "TEXT", tokenCount: 5 }],
      },
    },
  ];

  test("GEMINI-3 BLANK-2 thoughts, text and calls, and its own parts to be sent back", () => {
    const outcome = outcomeOf(STREAM);
    expect(outcome).toStrictEqual({
      ok: true,
      reply: {
        text: "I look.",
        reasoning: "hm",
        toolCalls: [
          { id: "call_0", name: "lookup", arguments: { city: "Oslo" } },
          { id: "x", name: "now", arguments: {} },
        ],
        finishReason: "tool_calls",
        usage: {
          inputTokens: 7,
          cachedInputTokens: 4,
          outputTokens: 13,
          reasoningTokens: 10,
          totalTokens: 20,
          breakdown: { promptTokensDetails: [{ modality: "TEXT", tokenCount: 5 }] },
        },
        providerMessageId: "r1",
        native: [
          { type: "text", length: 7 },
          { type: "text", length: 0, extra: { thoughtSignature: "s0" } },
          { type: "tool-call", index: 0, extra: { thoughtSignature: "s1" } },
          { type: "tool-call", index: 1 },
        ],
      },
    });
    const reply = givenBack(outcome, PROFILE);
    const expected: genai.Content = {
      role: "model",
      parts: [
        { text: "I look." },
        { text: "", thoughtSignature: "s0" },
        { functionCall: { id: "call_0", name: "lookup", args: { city: "Oslo" } }, thoughtSignature: "s1" },
        { functionCall: { id: "x", name: "now", args: {} } },
      ],
    };
    const messages: ContextMessage[] = [{ role: "user", content: "?" }, reply];
    const context = { systemInstructions: [], messages, tools: [], toolChoice: "auto" } as const;
    expect(gemini.buildRequest(PROFILE, context).contents).toStrictEqual([expect.anything(), expected]);
    const elsewhere = gemini.buildRequest({ ...PROFILE, modelId: "gemini-2.0" }, context);
    expect(JSON.stringify(elsewhere)).not.toContain("s1");
  });

  test("GEMINI-3 parts in pieces equal complete parts, and are sent back unchanged", () => {
    const said = fc.string({ minLength: 1 });
    const call = fc.record({ id: fc.uuid(), name: fc.constant("now"), args: ARGS });
    const signature = fc.base64String({ minLength: 4 });
    const part = fc.oneof(
      fc.record({ text: said }),
      fc.record({ text: fc.string(), thoughtSignature: signature }),
      fc.record({ text: said, thought: fc.constant(true), thoughtSignature: signature }),
      fc.record({ functionCall: call }),
      fc.record({ functionCall: call, thoughtSignature: signature }),
      fc.record({ executableCode: fc.record({ code: said }) }),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const outcome = outcomeOf([done(parts)]);
        expect(outcomeOf([...parts.map((one) => chunk([one])), done()])).toStrictEqual(outcome);
        if (!outcome.ok) throw new Error(outcome.error.message);
        const { text: content, toolCalls, native } = outcome.reply;
        if (native === undefined) return;
        const reply: ContextMessage = {
          role: "assistant",
          content,
          toolCalls,
          native: { ...PROFILE, parts: native },
        };
        const messages: ContextMessage[] = [{ role: "user", content: "?" }, reply];
        const context = { systemInstructions: [], messages, tools: [], toolChoice: "auto" } as const;
        const { contents } = gemini.buildRequest(PROFILE, context);
        // Blank text that is not signed is left out (BLANK-1).
        const shown = joinPlain(parts).filter((one) => !isPlain(one) || one.text.trim() !== "");
        expect(Array.isArray(contents) && contents[1]).toEqual({ role: "model", parts: shown });
      }),
      { numRuns: 150 },
    );
  });

  const mcpCall = (name: string, args: object, id?: string) => ({
    functionCall: { ...(id === undefined ? {} : { id }), name, args },
  });
  const mcpResult = (name: string, id?: string) => ({
    functionResponse: { ...(id === undefined ? {} : { id }), name, response: { output: "found" } },
  });

  test.each([
    ["by id", [mcpCall("find", { q: 1 }, "m1"), mcpResult("find", "m1"), { text: "Found." }]],
    ["by name", [mcpCall("find", { q: 1 }), mcpResult("find"), { text: "Found." }]],
    [
      "after another call",
      [
        mcpCall("find", {}, "m1"),
        mcpCall("find", {}, "m2"),
        mcpResult("find", "m2"),
        mcpResult("find", "m1"),
      ],
    ],
    [
      "of a built-in tool",
      [
        {
          toolCall: { id: "s", toolType: "GOOGLE_SEARCH_WEB", args: { queries: ["x"] } },
          thoughtSignature: "g",
        },
        { toolResponse: { id: "s", toolType: "GOOGLE_SEARCH_WEB", response: {} } },
      ],
    ],
  ])(
    "GEMINI-6 a call with its result, found %s, is not a call of ours and is sent back unchanged",
    (_how, parts) => {
      for (const chunks of [[chunk(parts)], parts.map((part) => chunk([part]))]) {
        const outcome = outcomeOf([...chunks, done()]);
        expect(outcome).toMatchObject({ ok: true, reply: { toolCalls: [], finishReason: "stop" } });
        const { contents } = gemini.buildRequest(
          PROFILE,
          context({ messages: [givenBack(outcome, PROFILE)] }),
        );
        expect(contents).toMatchObject([{ role: "user" }, { role: "model", parts }, { role: "user" }]);
      }
    },
  );

  test("GEMINI-6 beside a call that the server ran, our call stays a call", () => {
    const parts = [
      { ...mcpCall("find", { q: 1 }), thoughtSignature: "a" },
      mcpCall("find", { q: 2 }),
      mcpResult("find"),
      { ...mcpCall("lookup", { city: "Oslo" }, "c"), thoughtSignature: "b" },
    ];
    const outcome = outcomeOf([chunk(parts), done()]);
    expect(outcome).toMatchObject({
      ok: true,
      reply: {
        finishReason: "tool_calls",
        toolCalls: [
          { name: "find", arguments: { q: 2 } },
          { id: "c", name: "lookup" },
        ],
        native: [
          { type: "block", value: parts[0] },
          { type: "tool-call", index: 0 },
          { type: "block", value: parts[2] },
          { type: "tool-call", index: 1, extra: { thoughtSignature: "b" } },
        ],
      },
    });
  });

  test("counts of a later chunk replace the counts of an earlier chunk completely", () => {
    const outcome = outcomeOf([
      {
        ...chunk([{ text: "hm", thought: true }]),
        usageMetadata: { promptTokenCount: 9, thoughtsTokenCount: 40 },
      },
      {
        ...done([{ text: "Hi" }]),
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 2, totalTokenCount: 11 },
      },
    ]);
    expect(outcome).toMatchObject({ ok: true });
    expect(outcome.ok && outcome.reply.usage).toEqual({ inputTokens: 9, outputTokens: 2, totalTokens: 11 });
  });

  test("a plain response as one payload needs no native parts", () => {
    const whole = {
      ...done([{ text: "Hi" }, { functionCall: { name: "now" } }]),
      usageMetadata: { trafficType: "X" },
    };
    expect(outcomeOf([JSON.stringify(whole, null, 2)])).toStrictEqual({
      ok: true,
      reply: {
        text: "Hi",
        toolCalls: [{ id: "call_0", name: "now", arguments: {} }],
        finishReason: "tool_calls",
        providerMessageId: "r1",
      },
    });
  });

  test("code that the provider ran, and signed thoughts, are kept", () => {
    const parts = [
      { text: "hm", thought: true, thoughtSignature: "s" },
      { executableCode: { language: "PYTHON", code: "1" } },
      { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
      { text: "One." },
      {},
    ];
    expect(outcomeOf([chunk(parts.slice(0, 2)), done(parts.slice(2))])).toMatchObject({
      reply: {
        text: "One.",
        reasoning: "hm",
        toolCalls: [],
        native: [
          ...parts.slice(0, 3).map((value) => ({ type: "block", value })),
          { type: "text", length: 4 },
        ],
      },
    });
  });

  test("GEMINI-4 only the first candidate is read", () => {
    const other = { index: 1, content: { parts: [{ text: "no" }] }, finishReason: "STOP" };
    expect(outcomeOf([{ candidates: [other] }, chunk([{ text: "yes" }]), done()])).toMatchObject({
      reply: { text: "yes" },
    });
    expect(outcomeOf([{ candidates: [other] }]).ok).toBe(false);
  });

  test("arguments in pieces, with and without an end marker", () => {
    const piece = (jsonPath: string, value: object, willContinue = true) => ({
      partialArgs: [{ jsonPath, ...value }],
      ...(willContinue ? { willContinue } : {}),
    });
    const begun = { name: "write", willContinue: true };
    expect(
      callsOf(
        begun,
        piece("$.a[0].b", { stringValue: "on", willContinue: true }),
        piece("$.a[0].b", { stringValue: "e" }),
        piece("$.a[1]['c.d']", { numberValue: 2 }),
        piece('$["__proto__"].x', { boolValue: false }),
        piece("$.e", { nullValue: "NULL_VALUE" }),
        {},
        { name: "plain" },
        { ...begun, args: { z: 1 } },
        piece("$.y", { numberValue: 0 }, false),
        {},
        begun,
        piece("$.last", { boolValue: true }),
      ),
    ).toEqual([
      {
        id: "call_0",
        name: "write",
        arguments: JSON.parse('{"a":[{"b":"one"},{"c.d":2}],"__proto__":{"x":false},"e":null}'),
      },
      { id: "call_1", name: "plain", arguments: {} },
      { id: "call_2", name: "write", arguments: { z: 1, y: 0 } },
      { id: "call_3", name: "write", arguments: { last: true } },
    ]);
  });

  test("STREAM-2 arguments without a call, or at an impossible place, are an error", () => {
    const at = (jsonPath: string) => [
      { name: "w", willContinue: true },
      { partialArgs: [{ jsonPath, numberValue: 1 }], willContinue: true },
    ];
    expect(callsOf({ args: { a: 1 } })).toBe("transient");
    for (const path of ["a", "$", "$a", "$.a[1]", "$.a[999999999]", "$[0]", "$.a[", `$${".a".repeat(65)}`]) {
      expect(callsOf(...at(path)), path).toBe("transient");
    }
    const half = [...at("$.a"), { partialArgs: [{ jsonPath: "$.a.b", numberValue: 1 }] }];
    expect(callsOf(...half)).toBe("transient");
    expect(callsOf({ name: "w", partialArgs: "all" })).toBe("transient");
  });

  test.each([
    ["STOP", "stop"],
    ["MAX_TOKENS", "length"],
    ["SAFETY", "content_filter"],
    ["RECITATION", "content_filter"],
    ["IMAGE_PROHIBITED_CONTENT", "content_filter"],
    ["LANGUAGE", "other"],
    ["SOMETHING_NEW", "other"],
  ])("ends for the reason %s: %s", (reason, expected) => {
    expect(outcomeOf([chunk([{ text: "a" }]), done([], reason)])).toMatchObject({
      reply: { finishReason: expected },
    });
  });

  test.each([
    ["MALFORMED_FUNCTION_CALL", "transient"],
    ["UNEXPECTED_TOOL_CALL", "transient"],
    ["MISSING_THOUGHT_SIGNATURE", "validation"],
  ])("GEMINI-5 a reply that ended with %s is an error: %s", (finishReason, category) => {
    const failed = chunk([], { finishReason, finishMessage: "print(sk-123456789) is no call" });
    const [last, ...none] = decode([failed, done([{ text: "late" }])]).reverse();
    expect(none).toEqual([]);
    expect(last).toMatchObject({
      error: {
        category,
        message: `The model ended its reply with ${finishReason}: print([redacted]) is no call`,
      },
    });
  });

  test("GEMINI-5 a blocked prompt is an error of the category safety", () => {
    expect(decode([{ promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: {} }])).toEqual([
      {
        type: "error",
        error: {
          category: "safety",
          message: "The provider blocked the prompt (PROHIBITED_CONTENT).",
          retriable: false,
          provider: "gemini",
        },
      },
    ]);
    expect(outcomeOf([{ promptFeedback: { safetyRatings: [] } }, done([{ text: "a" }])]).ok).toBe(true);
  });

  test.each([
    [{ code: 429, message: "Slow down.", status: "RESOURCE_EXHAUSTED" }, "rate_limit"],
    [{ code: 503, message: "Overloaded.", status: "UNAVAILABLE" }, "transient"],
    [{ code: 400, message: "Bad schema.", status: "INVALID_ARGUMENT" }, "validation"],
    [{ message: "Odd." }, "transient"],
  ])("an error inside the stream: %j", (error, category) => {
    const details = [{ reason: "X" }, { "@type": "RetryInfo", retryDelay: "1.25s" }];
    const { message } = error;
    const last = decode([chunk([{ text: "a" }]), { error: { ...error, details } }, done()]).at(-1);
    expect(last).toMatchObject({ type: "error", error: { category, message, retryAfterMs: 1250 } });
  });

  test("STREAM-2 a payload of another shape is an error", () => {
    for (const broken of [{ candidates: 3 }, chunk([{ functionCall: 3 }])]) {
      expect(decode([broken, ...STREAM])).toMatchObject([
        { type: "error", error: { category: "transient" } },
      ]);
    }
  });
});
