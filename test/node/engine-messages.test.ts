/** Conversion between the engine's messages and a model's messages, both ways. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  type ChatInputMessage,
  createHistoryBuilder,
  fromContextMessage,
  toContextMessages,
} from "../../src/engine/index.ts";
import { readRequest } from "../../src/engine/request-parameters.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import { history } from "../support/histories.ts";
import { jsonValues, memberNames } from "../support/json-values.ts";

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const facts = fc.dictionary(
  memberNames({ maxLength: 8 }).filter(
    (key) => key !== "native" && key !== "isSuccess" && key !== "__proto__",
  ),
  fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)),
  { minKeys: 1, maxKeys: 3 },
);
const source = fc.oneof(fc.record({ url: fc.webUrl() }), fc.record({ base64: fc.base64String() }));
const media = fc.record(
  { type: fc.constantFrom("image" as const, "file" as const), source, mediaType: text, name: text },
  { requiredKeys: ["type", "source"] },
);
const withMedia = fc
  .tuple(fc.array(fc.oneof(fc.record({ type: fc.constant("text" as const), text }), media)), media)
  .map(([parts, last]): ContextMessage => {
    const sent: ContextPart[] = [...parts, last];
    const content = sent.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
    return { role: "user", content, parts: sent };
  });

/** Messages with all optional members. */
const message = fc
  .tuple(fc.oneof(history, fc.array(withMedia, { maxLength: 2 })), facts, fc.boolean(), fc.boolean())
  .map(([messages, metadata, isMarked, hasNative]) =>
    messages.map((one): ContextMessage => {
      const failed = one.role === "tool" ? { isSuccess: false } : {};
      const calls = (one.toolCalls ?? []).map((_, index) => ({ type: "tool-call" as const, index }));
      const parts = [
        { type: "block" as const, value: { signature: "s" } },
        { type: "text" as const, length: one.content.length },
        ...calls,
      ];
      return {
        ...one,
        ...(isMarked ? { metadata: { ...metadata, ...failed } } : {}),
        ...(hasNative && one.role === "assistant"
          ? { native: { provider: "anthropic", modelId: "m", parts } }
          : {}),
      };
    }),
  );

describe("messages both ways", () => {
  it("ENGINE-1 a model's message made into one of the engine's and back is the same", () => {
    fc.assert(
      fc.property(message, (messages) => {
        // As read from a store.
        const stored: ChatInputMessage[] = JSON.parse(JSON.stringify(messages.map(fromContextMessage)));
        expect(stored.flatMap(toContextMessages)).toEqual(messages);
      }),
      { numRuns: 200 },
    );
  });

  it("ENGINE-2 any JSON is sent as its text", () => {
    fc.assert(
      fc.property(jsonValues(), fc.constantFrom("user", "system", "assistant"), (content, role) => {
        const said = typeof content === "string" ? content : JSON.stringify(content);
        expect(toContextMessages({ role, content })).toEqual([{ role, content: said }]);
      }),
      { numRuns: 100 },
    );
  });

  const call = { type: "tool-call", id: "c", name: "add", arguments: { a: 1 } };
  const image = { type: "image", source: { url: "https://example.com/a.png" } };

  test.each<[string, ChatInputMessage, ContextMessage[]]>([
    ["other", { role: "other", content: "hm" }, [{ role: "user", content: "[other]\n\nhm" }]],
    [
      "other with a name",
      { role: "other", name: "sensor", content: { t: 20 } },
      [{ role: "user", content: '[other sensor]\n\n{"t":20}' }],
    ],
    [
      "a result that names no call",
      { role: "tool", name: "clock", content: "noon" },
      [{ role: "user", content: "[tool clock]\n\nnoon" }],
    ],
    [
      "a user's call",
      { role: "user", content: [call] },
      [{ role: "user", content: '[tool-call add] {"a":1}' }],
    ],
    [
      "a picture from an assistant",
      { role: "assistant", content: [{ type: "text", text: "see" }, image] },
      [{ role: "assistant", content: "see\n\n[image https://example.com/a.png]" }],
    ],
    [
      "a picture by its address alone",
      { role: "user", content: [{ type: "image", url: "https://example.com/a.png" }] },
      [
        {
          role: "user",
          content: "",
          parts: [{ type: "image", source: { url: "https://example.com/a.png" } }],
        },
      ],
    ],
    [
      "calls with their results in one message",
      {
        role: "assistant",
        content: [call, { type: "tool-result", id: "c", name: "add", result: { sum: 2 } }],
      },
      [
        { role: "assistant", content: "", toolCalls: [{ id: "c", name: "add", arguments: { a: 1 } }] },
        { role: "tool", content: '{"sum":2}', toolCallId: "c", name: "add" },
      ],
    ],
    [
      "metadata",
      {
        role: "user",
        content: [
          { type: "text", text: "hi" },
          { type: "metadata", data: { by: "web" } },
        ],
      },
      [{ role: "user", content: "hi", metadata: { by: "web" } }],
    ],
    ["a list that is no parts", { role: "user", content: [] }, [{ role: "user", content: "[]" }]],
    [
      "invalid native parts",
      { role: "assistant", content: "hi", metadata: { native: { parts: 1 } } },
      [{ role: "assistant", content: "hi" }],
    ],
  ])("ENGINE-2 %s", (_, given, told) => {
    expect(toContextMessages(given)).toEqual(told);
  });
});

describe("the parameters of a request", () => {
  const messages: ChatInputMessage[] = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    { role: "system", content: "Now in French." },
  ];

  it("four parameters are common to all providers, and all others are specific to a provider", () => {
    const neutral = {
      tools: [{ name: "t", description: "A tool.", inputSchema: { type: "object" } }],
      toolChoice: { name: "t" },
      output: { name: "answer", schema: { type: "object" } },
      cache: { key: "c", stableMessages: 1 },
    };
    expect(readRequest({ messages, model: "m", parameters: { ...neutral, top_p: 1, stop: ["x"] } })).toEqual({
      parameters: { top_p: 1, stop: ["x"] },
      context: {
        systemInstructions: ["Be brief."],
        messages: messages.slice(1),
        ...neutral,
      },
    });
  });

  it("may be absent", () => {
    const { context, parameters } = readRequest({ messages: [], model: "m" });
    expect(parameters).toEqual({});
    expect(context).toEqual({ systemInstructions: [], messages: [], tools: [], toolChoice: "auto" });
  });
});

describe("the default history", () => {
  const build = async (messages: ChatInputMessage[], options = {}) => {
    const conversation = { id: "c", agent: "a", createdAt: "", updatedAt: "" };
    const records = messages.map((one, index) => ({
      ...{ id: `m${index}`, conversationId: "c", createdAt: "" },
      ...one,
    }));
    const context = { conversation, messages: records, nextTurnId: "t", agent: "a" };
    const built = await createHistoryBuilder(options).buildHistory(context);
    if (Array.isArray(built)) throw new Error("The builder does not say whether it left anything out.");
    return built;
  };
  const call = (id: string): ChatInputMessage => ({
    role: "assistant",
    content: [{ type: "tool-call", id, name: "look", arguments: {} }],
  });
  const result = (id: string, value: unknown = `result of ${id}`): ChatInputMessage => ({
    role: "tool",
    content: [{ type: "tool-result", id, name: "look", result: value }],
  });

  it("C7 without limits all of a conversation is sent unchanged", async () => {
    const messages: ChatInputMessage[] = [
      { role: "system", content: "Be brief." },
      { role: "other", name: "x", content: { any: "thing" } },
      call("a"),
      result("a", { deep: [1] }),
      { role: "assistant", content: "done", metadata: { finishReason: "stop" } },
    ];
    expect(await build(messages)).toEqual({ messages, truncated: false });
  });

  it("C7 HISTORY-1 a call always stays with its results, whichever limit cuts", async () => {
    const messages = [
      { role: "user" as const, content: "go" },
      call("a"),
      result("a"),
      call("b"),
      result("b"),
    ];
    expect((await build(messages, { maxMessages: 3 })).messages).toEqual([call("b"), result("b")]);
    expect(await build([...messages, call("c")])).toEqual({ messages, truncated: true });
    expect(await build([result("z"), ...messages])).toEqual({ messages, truncated: true });
  });

  it("C7 HISTORY-2 a budget of tokens shortens long results and leaves out old turns", async () => {
    const long = result("a", "word ".repeat(2_000));
    const messages: ChatInputMessage[] = [
      ...[
        { role: "user" as const, content: "old ".repeat(500) },
        { role: "assistant" as const, content: "ok" },
      ],
      ...[{ role: "user" as const, content: "new" }, call("a"), long],
    ];
    const built = await build(messages, { tokenBudget: 400 });
    expect(built.truncated).toBe(true);
    expect(built.messages.slice(0, 2)).toEqual(messages.slice(2, 4));
    expect(JSON.stringify(built.messages[2]).length).toBeLessThan(1_000);
    expect(toContextMessages(built.messages[2] ?? call("x"))[0]?.toolCallId).toBe("a");
  });
});
