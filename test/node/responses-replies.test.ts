/** Replies of the Responses API: how events and whole responses are decoded, and how they go back. */
import fc from "fast-check";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { ModelReply } from "../../src/model/reply.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import * as decoding from "../support/decoding.ts";
import { jsonValues } from "../support/json-values.ts";

const format = adapterFor("openai-responses");
const PROFILE: ModelProfile = { provider: "openai-responses", modelId: "gpt-test" };

const decode = (...payloads: unknown[]) => decoding.decode("openai-responses", payloads);
const outcomeOf = (...payloads: unknown[]) => decoding.outcomeOf("openai-responses", payloads);
const replyOf = (...payloads: unknown[]) => decoding.replyOf("openai-responses", payloads);

/** Returns the items of a reply on its way back to its model. */
function returned(
  { text, toolCalls, native = [] }: ModelReply,
  parameters: JsonObject = {},
): Json | undefined {
  const { provider, modelId } = PROFILE;
  const message = {
    role: "assistant" as const,
    content: text,
    toolCalls,
    native: { provider, modelId, parts: native },
  };
  const context = { systemInstructions: [], messages: [message], tools: [], toolChoice: "auto" as const };
  return format.buildRequest({ ...PROFILE, parameters }, context).input;
}

const REASONING = {
  id: "rs_1",
  type: "reasoning",
  summary: [{ type: "summary_text", text: "Think." }],
  encrypted_content: "secret",
} as const;
const CALL = {
  id: "fc_1",
  type: "function_call",
  status: "completed",
  call_id: "call_a",
  name: "lookup",
  arguments: '{"city":"Zürich"}',
} as const;
const USAGE = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 17,
};

const messageItem = (text: string, given: object = {}) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
  ...given,
});
const added = (output_index: number, item: object) => ({
  type: "response.output_item.added",
  output_index,
  item,
});
const done = (output_index: number, item: object) => ({
  type: "response.output_item.done",
  output_index,
  item,
});
const textPiece = (output_index: number, delta: string) => {
  return { type: "response.output_text.delta", output_index, content_index: 0, item_id: "m", delta };
};
const completed = (output: object[] = [], given: object = {}) => ({
  type: "response.completed",
  response: {
    id: "resp_1",
    object: "response",
    status: "completed",
    error: null,
    output,
    usage: USAGE,
    ...given,
  },
});

const CREATED = { type: "response.created", response: { id: "resp_1", status: "in_progress" } };
const STREAM: unknown[] = [
  CREATED,
  added(0, { ...REASONING, summary: [], encrypted_content: null }),
  { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta: "Th" },
  { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta: "ink." },
  done(0, REASONING),
  added(1, messageItem("", { status: "in_progress", content: [] })),
  textPiece(1, "Grüße "),
  textPiece(1, "👋🏽"),
  done(1, messageItem("Grüße 👋🏽")),
  added(2, { ...CALL, arguments: "", status: "in_progress" }),
  { type: "response.function_call_arguments.delta", output_index: 2, delta: '{"city":' },
  { type: "response.function_call_arguments.delta", output_index: 2, delta: '"Zürich"}' },
  { type: "response.function_call_arguments.done", output_index: 2, arguments: CALL.arguments },
  done(2, CALL),
  completed([REASONING, messageItem("Grüße 👋🏽"), CALL]),
];

const WHOLE: ModelReply = {
  text: "Grüße 👋🏽",
  reasoning: "Think.",
  toolCalls: [{ id: "call_a", name: "lookup", arguments: { city: "Zürich" } }],
  finishReason: "tool_calls",
  usage: {
    inputTokens: 10,
    cachedInputTokens: 4,
    outputTokens: 7,
    reasoningTokens: 5,
    totalTokens: 17,
    breakdown: { input_tokens_details: { cached_tokens: 4 }, output_tokens_details: { reasoning_tokens: 5 } },
  },
  providerMessageId: "resp_1",
  native: [
    { type: "block", value: REASONING },
    { type: "text", length: 10, extra: { id: "msg_1" } },
    { type: "tool-call", index: 0, extra: { id: "fc_1", status: "completed" } },
  ],
};

test("RESPONSES-2 items go back with their members that are `null`", () => {
  const mcp = {
    id: "mcp_1",
    type: "mcp_call",
    approval_request_id: null,
    arguments: "{}",
    error: null,
    name: "find",
    output: "found",
    server_label: "docs",
  };
  const reasoning = { ...REASONING, content: null, status: null };
  const call = { ...CALL, namespace: null };
  const outcome = replyOf(done(0, reasoning), done(1, mcp), done(2, call), completed());
  expect(returned(outcome)).toEqual([
    reasoning,
    mcp,
    expect.objectContaining({ id: "fc_1", namespace: null }),
  ]);
});

test("a call needs no native part because of a member that is `null`", () => {
  expect(replyOf(done(0, { ...CALL, namespace: null }), completed()).native).toBeUndefined();
});

describe("a stream of the Responses API", () => {
  test("is read completely, and arrives in pieces", () => {
    expect(replyOf(...STREAM)).toEqual(WHOLE);
    const texts = decode(...STREAM).flatMap((delta) => (delta.type === "text" ? [delta.text] : []));
    expect(texts).toEqual(["Grüße ", "👋🏽"]);
  });

  test("a complete response gives the same reply, and so does a stream of finished items only", () => {
    const whole = { ...completed([REASONING, messageItem("Grüße 👋🏽"), CALL]).response };
    expect(replyOf(whole)).toEqual(WHOLE);
    expect(
      replyOf(done(0, REASONING), done(1, messageItem("Grüße 👋🏽")), done(2, CALL), completed()),
    ).toEqual(WHOLE);
    expect(replyOf(completed([REASONING, messageItem("Grüße 👋🏽"), CALL]))).toEqual(WHOLE);
  });

  test("STREAM-2 a malformed payload is a typed error, and ends the reply", () => {
    for (const payload of [{}, { choices: [] }]) {
      const deltas = decode(textPiece(0, "a"), payload, textPiece(0, "b"), completed());
      expect(deltas.map(({ type }) => type)).toEqual(["text", "error"]);
    }
  });

  test("any items at any places give deltas that end in one finish or one error", () => {
    const item = fc.constantFrom<object>(
      REASONING,
      CALL,
      messageItem("x"),
      { type: "new_call", call_id: "n" },
      {},
    );
    const place = fc.nat(3);
    const event = fc.oneof(
      fc.constantFrom<unknown>(...STREAM, completed([CALL])),
      fc.tuple(place, item).map(([at, given]) => done(at, given)),
      fc.tuple(place, item).map(([at, given]) => added(at, given)),
      fc.tuple(place, fc.string()).map(([at, text]) => textPiece(at, text)),
      fc.record({ type: fc.constant("response.output_text.delta"), output_index: jsonValues() }),
      jsonValues(),
    );
    fc.assert(
      fc.property(fc.array(event), (events) => {
        decoding.expectOneEnd(decode(...events));
      }),
    );
  });

  test("native parts cover text and calls, whatever the order of the items", () => {
    const items = fc.array(fc.constantFrom("reasoning", "message", "call", "search"), { maxLength: 8 });
    fc.assert(
      fc.property(
        items,
        fc.array(fc.string({ unit: "grapheme" }), { minLength: 8, maxLength: 8 }),
        (kinds, texts) => {
          const output = kinds.map((kind, n): object => {
            if (kind === "reasoning") return { ...REASONING, id: `rs_${n}` };
            if (kind === "message")
              return messageItem(texts[n] ?? "", { id: `msg_${n}`, phase: "commentary" });
            if (kind === "call") return { ...CALL, id: `fc_${n}`, call_id: `call_${n}` };
            return { id: `ws_${n}`, type: "web_search_call", status: "completed" };
          });
          const reply = replyOf(...output.map((item, n) => done(n, item)), completed(output));
          const kept = output.filter((_item, n) => kinds[n] !== "message" || texts[n]?.trim() !== "");
          if (reply.native === undefined) expect(kept.every((item) => "arguments" in item)).toBe(true);
          else {
            const followed = kept.slice(0, kept.findLastIndex((item) => !("summary" in item)) + 1);
            const nothing = [{ role: "user", content: "(no message)" }];
            expect(returned(reply)).toEqual(followed.length === 0 ? nothing : followed);
          }
        },
      ),
    );
  });

  test("places with gaps, ids that change from event to event, and a response without its items", () => {
    const reply = replyOf(
      added(0, messageItem("", { id: "a" })),
      textPiece(0, "One."),
      done(0, messageItem("One.", { id: "b", phase: "commentary" })),
      textPiece(2, "Two."),
      done(2, messageItem("Two.", { id: "c", phase: "final_answer" })),
      completed([messageItem("One.", { id: "x" }), messageItem("Two.", { id: "y" })]),
    );
    expect(reply.text).toBe("One.Two.");
    expect(returned(reply)).toEqual([
      messageItem("One.", { id: "b", phase: "commentary" }),
      messageItem("Two.", { id: "c", phase: "final_answer" }),
    ]);
  });

  test("refusals are text, and texts of reasoning are separated", () => {
    const refusal = { type: "refusal", refusal: "No." };
    expect(
      replyOf(
        { type: "response.reasoning_text.delta", output_index: 0, content_index: 0, delta: "a" },
        { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta: "b" },
        { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 1, delta: "c" },
        { type: "response.refusal.delta", output_index: 1, content_index: 0, delta: "N" },
        done(1, messageItem("", { content: [refusal] })),
        completed(),
      ),
    ).toMatchObject({ text: "No.", reasoning: "a\n\nb\n\nc", finishReason: "stop" });
  });

  test.each([
    [{ reason: "max_output_tokens" }, "length"],
    [{ reason: "content_filter" }, "content_filter"],
    [null, "other"],
  ])("an incomplete response, because of %j", (incomplete_details, finishReason) => {
    const response = { status: "incomplete", incomplete_details, output: [REASONING, messageItem("Hal")] };
    expect(replyOf({ type: "response.incomplete", response })).toEqual({
      text: "Hal",
      reasoning: "Think.",
      toolCalls: [],
      finishReason,
    });
  });

  test.each([
    [{ code: "insufficient_quota", message: "m" }, "quota"],
    [{ code: "rate_limit_exceeded", message: "m" }, "rate_limit"],
    [{ code: "server_error", message: "m" }, "transient"],
    [{ code: "invalid_prompt", message: "m" }, "validation"],
    [{ code: "invalid_base64_image", message: "m" }, "validation"],
    [{ code: "bio_policy", message: "m" }, "safety"],
    [{ type: "invalid_request_error", code: null, message: "m" }, "validation"],
    [{ code: "vector_store_timeout", message: "m" }, "timeout"],
    [{ message: "m" }, "transient"],
  ])("a failure %j, in each of its forms", (error, category) => {
    const response = { object: "response", status: "failed", error };
    const flat = { ...error, type: "error" };
    const forms = [{ type: "response.failed", response }, response, { error }, { type: "error", error }];
    for (const form of "type" in error ? forms : [...forms, flat]) {
      const deltas = decode(CREATED, textPiece(0, "a"), form, completed());
      expect(deltas.at(-1)).toMatchObject({ type: "error", error: { category, message: "m" } });
    }
  });

  test("a response that was cancelled, or is not there yet", () => {
    const response = { object: "response", status: "cancelled", output: [] };
    expect(outcomeOf(response)).toMatchObject({ ok: false, error: { category: "canceled" } });
    expect(outcomeOf({ ...response, status: "queued" })).toMatchObject({ error: { category: "validation" } });
  });
});

describe("RESPONSES-2 a reply sent back", () => {
  test("is sent back item by item, in the official types", () => {
    const expected: ResponseInputItem[] = [
      { ...REASONING, summary: [...REASONING.summary] },
      {
        type: "message",
        role: "assistant",
        id: "msg_1",
        status: "completed",
        content: [{ type: "output_text", text: "Grüße 👋🏽", annotations: [] }],
      },
      { ...CALL },
    ];
    expect(returned(replyOf(...STREAM))).toEqual(expected);
  });

  test("needs no native parts if it is plain text with calls after it", () => {
    expect(replyOf(done(0, messageItem("a")), done(1, CALL), completed())).not.toHaveProperty("native");
  });

  test("a text after a call is sent back after it", () => {
    const items = [CALL, messageItem("Wait.")];
    expect(returned(replyOf(...items.map((item, place) => done(place, item)), completed()))).toEqual(items);
  });

  test("reasoning that is not encrypted is sent back only to a provider that stores it", () => {
    const { encrypted_content: _secret, ...open } = REASONING;
    const reply = replyOf(done(0, open), done(1, messageItem("a", { phase: "final_answer" })), completed());
    expect(returned(reply)).toEqual([{ role: "assistant", content: "a", phase: "final_answer" }]);
    expect(returned(reply, { store: true })).toMatchObject([open, { id: "msg_1" }]);
  });

  test("reasoning without an item after it is left out, because the API would refuse it", () => {
    expect(returned(replyOf(done(0, REASONING), completed()))).toEqual([
      { role: "user", content: "(no message)" },
    ]);
    expect(returned(replyOf(done(0, CALL), done(1, REASONING), completed()))).toEqual([CALL]);
  });

  test("RESPONSES-3 the speaker is named once, before the first text that is not blank", () => {
    const parts = [
      { type: "text" as const, length: 0, extra: { id: "a", phase: "commentary" } },
      { type: "text" as const, length: 3, extra: { id: "b" } },
    ];
    const messages = [
      { role: "assistant" as const, name: "Ann", content: "Hi.", native: { ...PROFILE, parts } },
    ];
    const { input } = format.buildRequest(PROFILE, {
      systemInstructions: [],
      messages,
      tools: [],
      toolChoice: "auto",
    });
    expect(input).toMatchObject([{ content: [{ text: "Ann: Hi." }] }]);
  });

  test("tools that the provider runs are blocks, never calls of ours", () => {
    const search = { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search" } };
    const reply = replyOf(
      added(0, search),
      { type: "response.web_search_call.searching", output_index: 0 },
      done(0, search),
      done(1, messageItem("Found.")),
      completed(),
    );
    expect(reply).toMatchObject({ toolCalls: [], finishReason: "stop" });
    expect(returned(reply)).toMatchObject([search, { id: "msg_1" }]);
  });

  test.each([
    [{ type: "custom_tool_call", call_id: "c", name: "n", input: "i" }],
    [{ type: "local_shell_call", call_id: "c", action: {} }],
    [{ type: "apply_patch_call", call_id: "c", operation: {} }],
    [{ type: "mcp_approval_request", id: "m", name: "n", arguments: "{}" }],
  ])("an unanswerable call ends the reply as `other`, and is not sent back: %j", (item) => {
    const reply = replyOf(done(0, REASONING), done(1, messageItem("a")), done(2, item), completed());
    expect(reply).toMatchObject({ toolCalls: [], finishReason: "other" });
    expect(reply.native).toContainEqual({ type: "block", value: item });
    expect(returned(reply)).toEqual([{ role: "assistant", content: "a" }]);
    const answered = replyOf(
      done(0, item),
      done(1, { type: `${item.type}_output`, call_id: "c" }),
      completed(),
    );
    expect(answered.finishReason).toBe(item.type.endsWith("_call") ? "stop" : "other");
  });

  test("the result of a program's call is addressed to the program, also when it is sent later", () => {
    const caller = { type: "program", caller_id: "p" };
    const program = { id: "cm", type: "program", call_id: "p", code: "…" };
    const {
      text,
      toolCalls,
      native = [],
    } = replyOf(done(0, program), done(1, { ...CALL, caller }), completed());
    const { provider, modelId } = PROFILE;
    const reply = {
      role: "assistant" as const,
      content: text,
      toolCalls,
      native: { provider, modelId, parts: native },
    };
    const result = { role: "tool" as const, content: "rain", toolCallId: "call_a" };
    const given = { systemInstructions: [], tools: [], toolChoice: "auto" as const };
    const first = format.buildRequest(PROFILE, { ...given, messages: [reply] });
    const expected = [
      program,
      { ...CALL, caller },
      { type: "function_call_output", call_id: "call_a", output: "rain", caller },
    ];
    expect(format.extend(PROFILE, first, [result]).input).toEqual(expected);
    expect(format.buildRequest(PROFILE, { ...given, messages: [reply, result] }).input).toEqual(expected);
  });
});
