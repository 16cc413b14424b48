/** The format checks, for every format and any valid history. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as adapters from "../../src/adapters/index.ts";
import type { ModelFormatAdapter } from "../../src/model/format-adapter.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import { PROVIDERS, type ProviderId } from "../../src/model/profile.ts";
import type { Facts } from "../../src/shared/json.ts";
import { contextHistory, documents, FOREIGN, images } from "../support/context-histories.ts";
import { checkExtension, checkRequests, type FormatChecks } from "../support/format-checks.ts";

const media: fc.Arbitrary<ContextPart> = fc.oneof(images, documents);
const imagesByValue = images.filter(({ type, ...part }) => {
  return type !== "text" && !JSON.stringify(part).includes("https:");
});

const opaque = fc.string({ minLength: 1, maxLength: 12 });
const thoughtSignature = fc.record({ thoughtSignature: fc.base64String({ minLength: 4 }) });
const signature = opaque.map((value) => ({ providerOptions: { test: { signature: value } } }));

/** Checks of chat formats: one message for each, with names and ids unchanged. */
const chat = { key: "messages", id: /^.+$/s, name: /^.*$/s, speaker: String, alternates: false };

const CHECKS: FormatChecks[] = [
  {
    ...named("openai"),
    ...chat,
    kind: { media, callExtra: opaque.map((value) => ({ extra_content: { value } })) },
    id: /^.{1,40}$/s,
    name: /^[A-Za-z0-9_-]{1,64}$/,
    speaker: (name) => name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, 64),
  },
  { ...named("workers-ai"), ...chat, kind: { media: imagesByValue } },
  { ...named("offline"), ...chat, kind: {} },
  {
    ...named("openai-responses"),
    key: "input",
    kind: {
      media,
      block: opaque.map((value) => ({ type: "web_search_call", id: value, status: "completed" })),
      callExtra: opaque.map((value) => ({ id: `fc_${value}` })),
      textExtra: fc.constantFrom({ phase: "commentary" }, { phase: "final_answer" }),
    },
    id: /^[A-Za-z0-9_-]{1,64}$/,
    name: /^[A-Za-z0-9_-]{1,64}$/,
    alternates: false,
  },
  {
    ...named("ai-sdk"),
    key: "prompt",
    kind: {
      media,
      block: fc
        .tuple(opaque, signature)
        .map(([said, signed]) => ({ type: "reasoning", text: said, ...signed })),
      callExtra: signature,
      textExtra: signature,
    },
    id: /^[A-Za-z0-9_-]{1,40}$/,
    name: /^[A-Za-z0-9_-]{1,64}$/,
    alternates: true,
  },
  {
    ...named("anthropic"),
    key: "messages",
    kind: {
      media,
      block: fc.oneof(
        fc.record({ type: fc.constant("thinking"), thinking: fc.string(), signature: fc.base64String() }),
        fc.record({ type: fc.constant("redacted_thinking"), data: fc.base64String() }),
        fc.record({ type: fc.constant("web_search_tool_result"), tool_use_id: fc.uuid() }),
      ),
      textExtra: fc.record({
        citations: fc.array(fc.record({ cited_text: fc.string() }), { minLength: 1 }),
      }),
      callExtra: fc.constant<Facts>({ caller: { type: "code_execution_20250825", tool_id: "s" } }),
    },
    id: /^[a-zA-Z0-9_-]{1,64}$/,
    name: /^[a-zA-Z0-9_-]{1,128}$/,
    alternates: true,
  },
  {
    ...named("gemini"),
    key: "contents",
    kind: {
      media,
      block: fc.oneof(
        fc.record({ text: fc.string(), thought: fc.constant(true), thoughtSignature: fc.base64String() }),
        fc.record({ executableCode: fc.record({ code: fc.string() }) }),
      ),
      textExtra: thoughtSignature,
      callExtra: thoughtSignature,
    },
    id: /^[a-zA-Z0-9_-]{1,64}$/,
    name: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/,
    alternates: true,
  },
];

test("each provider has checks", () => {
  const checked = new Set(CHECKS.map(({ profile }) => profile.provider));
  expect(PROVIDERS.filter((provider) => !checked.has(provider))).toEqual([]);
});

describe.each(CHECKS)("any history for $profile.provider", (checks) => {
  test("OPENAI-1 AISDK-3 AISDK-4 ANTHROPIC-1 ANTHROPIC-2 ANTHROPIC-3 GEMINI-1 GEMINI-2 GEMINI-3 the request is complete and legal", () => {
    checkRequests(checks);
  });

  test("ANTHROPIC-1 GEMINI-1 extending it keeps the sent part byte for byte", () => {
    checkExtension(checks);
  });

  test("a request without its list cannot be extended", () => {
    expect(() => checks.format.extend(checks.profile, { other: [] }, [])).toThrowError(
      expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringContaining(checks.key) }),
    );
  });
});

/** The formats of providers. The offline model takes every text. */
const PROVIDED = CHECKS.filter(({ profile }) => profile.provider !== "offline");

describe.each(PROVIDED)("blank texts in a request to $profile.provider", ({ format, profile, key }) => {
  const calls = [{ id: "c", name: "lookup", arguments: {} }];
  const build = (messages: ContextMessage[], systemInstructions: string[] = []) =>
    format.buildRequest(profile, { systemInstructions, messages, tools: [], toolChoice: "auto" });

  test("BLANK-1 are left out: instructions, messages, parts, and texts beside calls", () => {
    const shown: ContextMessage[] = [
      { role: "user", content: "Hi." },
      { role: "assistant", content: "", toolCalls: calls },
      { role: "tool", content: "", toolCallId: "c" },
      { role: "assistant", content: "Done." },
      { role: "user", content: "More." },
    ];
    const blank: ContextMessage[] = [
      { role: "system", content: "\n" },
      { role: "user", content: " " },
      { role: "user", content: "\t", name: "Ann" },
      { role: "assistant", content: "  " },
      { role: "user", content: "", parts: [{ type: "text", text: "\n\n" }] },
    ];
    const [first, call, ...rest] = shown;
    if (first === undefined || call === undefined) throw new Error("no messages");
    const messages = [
      ...blank,
      first,
      ...blank,
      { ...call, content: " \n" },
      ...rest.slice(0, 2),
      ...blank,
      ...rest.slice(2),
    ];
    const sent = build(messages, ["Be brief.", " ", ""]);
    const plain = build(shown, ["Be brief."]);
    if (profile.provider === "workers-ai") {
      // Its models demand a text beside calls.
      expect(JSON.stringify(sent).replace(' \\n"', '"')).toBe(JSON.stringify(plain));
    } else expect(sent).toEqual(plain);
    const extended = format.extend(profile, build(shown.slice(0, 1)), [
      ...blank,
      ...shown.slice(1),
      ...blank,
    ]);
    expect(extended[key]).toEqual(format.extend(profile, build(shown.slice(0, 1)), shown.slice(1))[key]);
  });

  test("BLANK-1 without any text, the request has a placeholder", () => {
    const { [key]: sent } = build([{ role: "user", content: " " }]);
    expect(sent).toHaveLength(1);
    expect(JSON.stringify(sent)).toContain("(no message)");
  });

  test("BLANK-1 in native parts are left out, too", () => {
    const native = {
      ...profile,
      parts: [
        { type: "text" as const, length: 2 },
        { type: "text" as const, length: 3 },
      ],
    };
    const reply: ContextMessage = { role: "assistant", content: "\n Hi.", native };
    const sent = JSON.stringify(
      build([{ role: "user", content: "Hi." }, reply, { role: "user", content: "More." }]),
    );
    expect(sent).toContain("Hi.");
    expect(sent).not.toContain('"\\n "');
  });
});

describe.each(
  CHECKS.filter(({ profile }) => !["openai", "workers-ai", "offline"].includes(profile.provider)),
)("late results, to $profile.provider", ({ format, profile, key }) => {
  const ask: ContextMessage = { role: "user", content: "Hi." };
  const reply = (...ids: string[]): ContextMessage => ({
    role: "assistant",
    content: "",
    toolCalls: ids.map((id) => ({ id, name: "lookup", arguments: {} })),
  });
  const results = (...ids: string[]) =>
    ids.map((id): ContextMessage => ({ role: "tool", content: `of ${id}`, toolCallId: id }));

  test.each([
    { replies: [reply("a", "a_2")], ids: ["a", "a_2"] },
    { replies: [reply("a"), ...results("a"), reply("a_2", "a")], ids: ["a", "a_2"] },
    {
      replies: [reply("a_2", "a"), ...results("a", "a_2"), reply("a", "a_2", "a_2_2")],
      ids: ["a_2", "a", "a_2_2"],
    },
    { replies: [reply("a b", "a_b")], ids: ["a_b", "a b"] },
  ])(
    "OPENAI-1 AISDK-3 if they arrive later, find their calls by the original ids: $ids",
    ({ replies, ids }) => {
      const context = { systemInstructions: [], tools: [], toolChoice: "auto" } as const;
      const first = format.buildRequest(profile, { ...context, messages: [ask, ...replies] });
      const whole = format.buildRequest(profile, {
        ...context,
        messages: [ask, ...replies, ...results(...ids)],
      });
      expect(format.extend(profile, first, results(...ids))[key]).toEqual(whole[key]);
    },
  );
});

const MESSAGES: Record<ProviderId, ModelFormatAdapter> = {
  openai: adapters.openaiAdapter,
  "openai-responses": adapters.openaiResponsesAdapter,
  "workers-ai": adapters.workersAIAdapter,
  anthropic: adapters.anthropicAdapter,
  gemini: adapters.geminiAdapter,
  "ai-sdk": adapters.aiSdkAdapter,
  offline: adapters.offlineAdapter,
};

describe("M25 messages alone", () => {
  const hello: ContextMessage[] = [{ role: "user", content: "Hello" }];
  const chatMessages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hello" },
  ];

  test.each<[ProviderId, object]>([
    ["openai", { messages: chatMessages }],
    ["workers-ai", { messages: chatMessages }],
    ["openai-responses", { instructions: "Be brief.", input: [{ role: "user", content: "Hello" }] }],
    [
      "anthropic",
      { system: "Be brief.", messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }] },
    ],
    [
      "gemini",
      {
        systemInstruction: { parts: [{ text: "Be brief." }] },
        contents: [{ role: "user", parts: [{ text: "Hello" }] }],
      },
    ],
    [
      "ai-sdk",
      {
        prompt: [
          { role: "system", content: "Be brief." },
          { role: "user", content: [{ type: "text", text: "Hello" }] },
        ],
      },
    ],
    [
      "offline",
      {
        messages: [
          { role: "system", text: "Be brief." },
          { role: "user", text: "Hello" },
        ],
      },
    ],
  ])("M25 of %s have instructions and text in the provider's places", (provider, expected) => {
    expect(MESSAGES[provider].name).toBe(provider);
    expect(MESSAGES[provider].toModelMessages(["Be brief."], hello)).toEqual(expected);
  });

  test.each(CHECKS)(
    "M25 MESSAGES-1 equal the messages of the request, for any history: $profile.provider",
    (checks) => {
      const { format, profile, kind, key } = checks;
      const { toModelMessages } = MESSAGES[profile.provider];
      fc.assert(
        fc.property(
          contextHistory(profile, kind),
          fc.array(opaque, { maxLength: 2 }),
          (groups, instructions) => {
            const messages = groups.flat();
            const before = structuredClone(messages);
            const request = format.buildRequest(profile, {
              systemInstructions: instructions,
              messages,
              tools: [],
              toolChoice: "auto",
            });
            const alone = Object(toModelMessages(instructions, messages, profile.modelId));
            expect(Object.keys(alone)).toContain(key);
            // The rest of the request does not contain the words.
            const { model: _, stream, stream_options, store, include, max_tokens, ...said } = request;
            expect(alone).toEqual(profile.provider === "offline" ? { messages: request.messages } : said);
            const forAnyModel = JSON.stringify(toModelMessages(instructions, messages));
            expect(forAnyModel).not.toContain(FOREIGN);
            expect(messages).toEqual(before);
          },
        ),
      );
    },
  );

  test("M25 every provider has one", () => {
    expect(Object.keys(MESSAGES).toSorted()).toEqual([...PROVIDERS].toSorted());
  });

  test("M25 signatures are sent only to the model that created them", () => {
    const signed: ContextMessage = {
      role: "assistant",
      content: "Hi.",
      native: {
        provider: "anthropic",
        modelId: "claude-a",
        parts: [
          { type: "block", value: { type: "thinking", thinking: "A greeting.", signature: "c2ln" } },
          { type: "text", length: 3 },
        ],
      },
    };
    const messages = [...hello, signed, ...hello];
    const sent = (modelId?: string) =>
      JSON.stringify(adapters.anthropicAdapter.toModelMessages([], messages, modelId));
    expect(sent("claude-a")).toContain("c2ln");
    expect(sent("claude-b")).not.toContain("c2ln");
    expect(sent()).not.toContain("c2ln");
  });
});

test.each(CHECKS.filter(({ kind }) => kind.media !== undefined))(
  "an unresolved attachment is refused with its address: $profile.provider",
  ({ format, profile }) => {
    const parts: ContextPart[] = [{ type: "image", source: { url: "attachment:a1" } }];
    const messages: ContextMessage[] = [{ role: "user", content: "", parts }];
    const context = { systemInstructions: [], messages, tools: [], toolChoice: "auto" } as const;
    expect(() => format.buildRequest(profile, context)).toThrowError(
      expect.objectContaining({ code: "UNSUPPORTED", message: expect.stringContaining("attachment:") }),
    );
  },
);

function named(provider: ProviderId) {
  return { format: adapters.adapterFor(provider), profile: { provider, modelId: "model" } };
}
