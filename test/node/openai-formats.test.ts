/** Requests to OpenAI's two APIs and to Workers AI, checked against the types of the official SDK. */
import type { ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
import type { ResponseCreateParamsStreaming, ResponseInputItem } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { fitsStrict } from "../../src/adapters/formats/openai/openai-schema.ts";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { context, expectUnsupported } from "../support/contexts.ts";

const openai = adapterFor("openai");
const responses = adapterFor("openai-responses");
const workersAI = adapterFor("workers-ai");

const CHAT: ModelProfile = { provider: "openai", modelId: "gpt-test" };
const RESPONSES: ModelProfile = { provider: "openai-responses", modelId: "gpt-test" };
const WORKERS_AI: ModelProfile = { provider: "workers-ai", modelId: "@cf/test" };

const LOOSE = { type: "object", properties: { city: { type: "string" } } };
const CLOSED = { ...LOOSE, required: ["city"], additionalProperties: false };
const TOOLS = [
  { name: "lookup", description: "Looks it up.", inputSchema: LOOSE },
  { name: "locate", description: "Locates it.", inputSchema: CLOSED },
];

const IMAGE: ContextPart = { type: "image", source: { base64: "AAAA" }, mediaType: "image/png" };
const PDF: ContextPart = {
  type: "file",
  source: { url: "data:application/pdf;base64,BBBB" },
  name: "a.pdf",
};

const MESSAGES: ContextMessage[] = [
  { role: "system", content: "Earlier: greetings." },
  {
    role: "user",
    name: "Ann",
    content: "What is this?",
    parts: [
      { type: "text", text: "What is this?" },
      IMAGE,
      { type: "image", source: { url: "https://media.example/a.png" } },
      PDF,
    ],
  },
  {
    role: "assistant",
    content: "Let me see.",
    toolCalls: [
      { id: "toolu:1", name: "lookup", arguments: { city: "Oslo" } },
      { id: "c2", name: "locate", arguments: { city: "Rome" } },
    ],
  },
  { role: "tool", content: "rain", toolCallId: "toolu:1", name: "lookup" },
  { role: "tool", content: "sun", toolCallId: "c2", name: "locate" },
];

const FULL = context({
  systemInstructions: ["Be brief.", "Be kind."],
  messages: MESSAGES,
  tools: TOOLS,
  toolChoice: { name: "lookup" },
  output: { name: "answer", schema: CLOSED },
  cache: { key: "k".repeat(70), stableMessages: 3 },
});

/** The user's turn of a request without messages (BLANK-1). */
const OPENING = { role: "user", content: "(no message)" };

describe("a complete request", () => {
  test("to Chat Completions", () => {
    const expected: ChatCompletionCreateParamsStreaming = {
      model: "gpt-test",
      messages: [
        { role: "system", content: "Be brief.\n\nBe kind." },
        { role: "system", content: "Earlier: greetings." },
        {
          role: "user",
          name: "Ann",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
            { type: "image_url", image_url: { url: "https://media.example/a.png" } },
            { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,BBBB" } },
          ],
        },
        {
          role: "assistant",
          content: "Let me see.",
          tool_calls: [
            { id: "toolu:1", type: "function", function: { name: "lookup", arguments: '{"city":"Oslo"}' } },
            { id: "c2", type: "function", function: { name: "locate", arguments: '{"city":"Rome"}' } },
          ],
        },
        { role: "tool", tool_call_id: "toolu:1", content: "rain" },
        { role: "tool", tool_call_id: "c2", content: "sun" },
      ],
      tools: [
        { type: "function", function: { name: "lookup", description: "Looks it up.", parameters: LOOSE } },
        { type: "function", function: { name: "locate", description: "Locates it.", parameters: CLOSED } },
      ],
      tool_choice: { type: "function", function: { name: "lookup" } },
      response_format: {
        type: "json_schema",
        json_schema: { name: "answer", schema: CLOSED, strict: true },
      },
      stream: true,
      stream_options: { include_usage: true },
      prompt_cache_key: expect.stringMatching(/^k{55}_[0-9a-f]{8}$/),
    };
    expect(openai.buildRequest(CHAT, FULL)).toEqual(expected);
  });

  test("RESPONSES-3 to the Responses API", () => {
    const expected: ResponseCreateParamsStreaming = {
      model: "gpt-test",
      instructions: "Be brief.\n\nBe kind.",
      input: [
        { role: "system", content: "Earlier: greetings." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "Ann: What is this?" },
            { type: "input_image", detail: "auto", image_url: "data:image/png;base64,AAAA" },
            { type: "input_image", detail: "auto", image_url: "https://media.example/a.png" },
            { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,BBBB" },
          ],
        },
        { role: "assistant", content: "Let me see." },
        {
          type: "function_call",
          call_id: expect.stringMatching(/^toolu_1_[0-9a-f]{8}$/),
          name: "lookup",
          arguments: '{"city":"Oslo"}',
        },
        { type: "function_call", call_id: "c2", name: "locate", arguments: '{"city":"Rome"}' },
        {
          type: "function_call_output",
          call_id: expect.stringMatching(/^toolu_1_[0-9a-f]{8}$/),
          output: "rain",
        },
        { type: "function_call_output", call_id: "c2", output: "sun" },
      ],
      tools: [
        {
          type: "function",
          name: "lookup",
          description: "Looks it up.",
          parameters: LOOSE,
          strict: false,
        },
        {
          type: "function",
          name: "locate",
          description: "Locates it.",
          parameters: CLOSED,
          strict: true,
        },
      ],
      tool_choice: { type: "function", name: "lookup" },
      text: { format: { type: "json_schema", name: "answer", schema: CLOSED, strict: true } },
      stream: true,
      store: false,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: expect.stringMatching(/^k{55}_[0-9a-f]{8}$/),
    };
    expect(responses.buildRequest(RESPONSES, FULL)).toEqual(expected);
  });

  test("to Workers AI", () => {
    const request = workersAI.buildRequest(
      WORKERS_AI,
      context({
        messages: [
          { role: "user", name: "Ann", content: "This?", parts: [{ type: "text", text: "This?" }, IMAGE] },
        ],
        tools: TOOLS.slice(0, 1),
        toolChoice: { name: "lookup" },
        cache: { key: "k", stableMessages: 0 },
      }),
    );
    expect(request).toStrictEqual({
      messages: [
        {
          role: "user",
          name: "Ann",
          content: [
            { type: "text", text: "This?" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
          ],
        },
      ],
      tools: [
        { type: "function", function: { name: "lookup", description: "Looks it up.", parameters: LOOSE } },
      ],
      tool_choice: { type: "function", function: { name: "lookup" } },
      stream: true,
    });
  });

  test("WORKERSAI-1 a structured reply is not streamed, and has no tools", () => {
    const output = { name: "answer", schema: CLOSED };
    const parameters = { stream: true, response_format: { type: "text" } };
    const asked = context({ output, tools: TOOLS, toolChoice: "none" });
    expect(workersAI.buildRequest({ ...WORKERS_AI, parameters }, asked)).toStrictEqual({
      messages: [OPENING],
      stream: false,
      response_format: { type: "json_schema", json_schema: CLOSED },
    });
    expectUnsupported(
      () => workersAI.buildRequest(WORKERS_AI, { ...asked, toolChoice: "auto" }),
      "offers tools",
    );
  });
});

describe("options", () => {
  test("OPENAI-2 a compatible server gets no cache key, and a profile may leave it out", () => {
    const cache = { key: "k", stableMessages: 0 };
    for (const [format, profile] of [
      [openai, CHAT],
      [responses, RESPONSES],
    ] as const) {
      const keyOf = (given: Partial<ModelProfile>) =>
        format.buildRequest({ ...profile, ...given }, context({ cache })).prompt_cache_key;
      expect(keyOf({})).toBe("k");
      expect(keyOf({ baseUrl: "http://127.0.0.1:1/v1" })).toBeUndefined();
      expect(keyOf({ parameters: { prompt_cache_key: null } })).toBeUndefined();
      expect(keyOf({ parameters: { prompt_cache_key: "mine" } })).toBe("mine");
    }
  });

  test.each([
    [{}, { store: false, include: ["reasoning.encrypted_content"] }],
    [{ store: true }, { store: true }],
    [{ store: null }, {}],
    [{ include: null }, { store: false }],
    [
      { include: ["file_search_call.results"] },
      { store: false, include: ["file_search_call.results", "reasoning.encrypted_content"] },
    ],
  ])("RESPONSES-1 the request disables storage unless the profile enables it: %j", (parameters, expected) => {
    const request = responses.buildRequest({ ...RESPONSES, parameters }, context());
    expect(request).toStrictEqual({ model: "gpt-test", input: [OPENING], stream: true, ...expected });
  });

  test("RESPONSES-1 a request to a model that does not reason leaves reasoning out", () => {
    for (const modelId of ["gpt-4.1-mini", "ft:gpt-4o:x", "gpt-5-chat-latest"]) {
      expect(responses.buildRequest({ ...RESPONSES, modelId }, context()).include).toBeUndefined();
    }
  });

  test("built-in tools of the profile follow our own, and may be required alone", () => {
    const profile = {
      ...RESPONSES,
      parameters: { tools: [{ type: "web_search" }], model: "other", input: [] },
    };
    expect(responses.buildRequest(profile, context({ toolChoice: "required" }))).toMatchObject({
      model: "gpt-test",
      tools: [{ type: "web_search" }],
      tool_choice: "required",
    });
    expectUnsupported(
      () => responses.buildRequest({ ...RESPONSES, parameters: { tools: "all" } }, context()),
      "`tools`",
    );
    const both = responses.buildRequest(profile, context({ tools: TOOLS.slice(1) }));
    expect(both.tools).toMatchObject([{ name: "locate" }, { type: "web_search" }]);
  });

  test("the profile's verbosity is sent with a structured reply", () => {
    const profile = { ...RESPONSES, parameters: { text: { verbosity: "low" } } };
    expect(responses.buildRequest(profile, context()).text).toEqual({ verbosity: "low" });
    const output = { name: "answer", schema: LOOSE };
    expect(responses.buildRequest(profile, context({ output })).text).toEqual({
      verbosity: "low",
      format: { type: "json_schema", name: "answer", schema: LOOSE, strict: false },
    });
  });

  test("a tool choice that demands a tool that is not offered is refused", () => {
    for (const [format, profile] of [
      [openai, CHAT],
      [responses, RESPONSES],
      [workersAI, WORKERS_AI],
    ] as const) {
      const ask = (given: Partial<ModelContext>) => () => format.buildRequest(profile, context(given));
      expectUnsupported(ask({ toolChoice: "required" }), "without offered tools");
      expectUnsupported(ask({ tools: TOOLS, toolChoice: { name: "other" } }), '"other"');
      expect(ask({ tools: TOOLS, toolChoice: "required" })()).toMatchObject({ tool_choice: "required" });
    }
  });

  test.each<[JsonObject, boolean]>([
    [CLOSED, true],
    [LOOSE, false],
    [{ type: "object", properties: {}, additionalProperties: false }, true],
    [{ ...CLOSED, properties: { city: { type: "string", minLength: 1 } } }, false],
    [{ ...CLOSED, properties: { city: { anyOf: [CLOSED, { type: "null" }] } } }, true],
    [{ ...CLOSED, properties: { city: { type: "array", items: LOOSE } } }, false],
    [{ ...CLOSED, properties: { city: { type: "string", format: "uri" } } }, false],
    [
      { ...CLOSED, properties: { city: { $ref: "#/$defs/c" } }, $defs: { c: { type: ["object", "null"] } } },
      false,
    ],
    [{ anyOf: [CLOSED] }, false],
    [{ ...CLOSED, required: ["city", "street"] }, false],
    [{ ...CLOSED, properties: { city: { description: "Anything." } } }, false],
    [{ ...CLOSED, properties: { city: { type: "array" } } }, false],
    [{ ...CLOSED, properties: { city: { $ref: "#/$defs/c" } }, $defs: { c: CLOSED } }, true],
    [
      { ...CLOSED, properties: { city: { $ref: "#/$defs/c", description: "Its." } }, $defs: { c: CLOSED } },
      false,
    ],
  ])("a schema is strict only if all of it can be enforced: %j", (schema, expected) => {
    expect(fitsStrict(schema)).toBe(expected);
  });
});

describe("patterns that look around, which the API refuses", () => {
  const email = { type: "string", pattern: "^(?!\\.).+@", description: "Whose." };
  const told = { type: "string", description: "Whose.\n\nPattern: ^(?!\\.).+@" };
  const plain = { type: "string", pattern: "^(?:a|b)$" };
  const schemaOf = (mail: JsonObject) => ({
    type: "object",
    properties: {
      pattern: mail,
      plain,
      some: { type: "array", items: { anyOf: [mail, { type: "null" }] } },
    },
    required: ["pattern", "plain", "some"],
    additionalProperties: false,
  });

  test("go into descriptions, in tools and in structured output", () => {
    const given = context({
      tools: [{ name: "write", description: "Writes.", inputSchema: schemaOf(email) }],
      output: { name: "answer", schema: schemaOf(email) },
    });
    const schema = schemaOf(told);
    expect(openai.buildRequest(CHAT, given)).toMatchObject({
      tools: [{ function: { parameters: schema } }],
      response_format: { json_schema: { schema, strict: true } },
    });
    expect(responses.buildRequest(RESPONSES, given)).toMatchObject({
      tools: [{ parameters: schema, strict: true }],
      text: { format: { schema, strict: true } },
    });
  });
});

describe("media", () => {
  const user = (part: ContextPart) => context({ messages: [{ role: "user", content: "", parts: [part] }] });
  const file = (mediaType: string): ContextPart => ({ type: "file", source: { base64: "AA" }, mediaType });

  test("a file by value has a name that ends with its type", () => {
    const pdf = user(file("application/pdf"));
    expect(openai.buildRequest(CHAT, pdf).messages).toMatchObject([
      { content: [{ file: { filename: "file.pdf" } }] },
    ]);
    expect(responses.buildRequest(RESPONSES, pdf).input).toMatchObject([
      { content: [{ filename: "file.pdf" }] },
    ]);
  });

  test("sound is sent as sound if possible", () => {
    const content = [{ type: "input_audio", input_audio: { data: "AA", format: "mp3" } }];
    expect(openai.buildRequest(CHAT, user(file("audio/mpeg"))).messages).toEqual([{ role: "user", content }]);
    expectUnsupported(() => openai.buildRequest(CHAT, user(file("audio/ogg"))), "audio/ogg");
    expectUnsupported(() => responses.buildRequest(RESPONSES, user(file("audio/wav"))), "audio/wav");
  });

  test("the Responses API takes media in tool results, Chat Completions refuse them", () => {
    const messages: ContextMessage[] = [
      { role: "assistant", content: "", toolCalls: [{ id: "c", name: "lookup", arguments: {} }] },
      {
        role: "tool",
        content: "A map.",
        parts: [{ type: "text", text: "A map." }, IMAGE],
        toolCallId: "c",
      },
    ];
    const output: ResponseInputItem.FunctionCallOutput["output"] = [
      { type: "input_text", text: "A map." },
      { type: "input_image", detail: "auto", image_url: "data:image/png;base64,AAAA" },
    ];
    expect(responses.buildRequest(RESPONSES, context({ messages })).input).toEqual([
      expect.anything(),
      { type: "function_call_output", call_id: "c", output },
    ]);
    expectUnsupported(() => openai.buildRequest(CHAT, context({ messages })), '"tool"');
  });

  test("media that a provider cannot take are refused with the reason", () => {
    const remote: ContextPart = { type: "file", source: { url: "https://media.example/a.pdf" } };
    expectUnsupported(() => openai.buildRequest(CHAT, user(remote)), "a file by its address");
    expectUnsupported(() => openai.buildRequest(CHAT, user(file("video/mp4"))), "video");
    expectUnsupported(() => responses.buildRequest(RESPONSES, user(file("video/mp4"))), "video/mp4");
    expectUnsupported(() => workersAI.buildRequest(WORKERS_AI, user(PDF)), "files");
    const picture: ContextPart = { type: "image", source: { url: "https://media.example/a.png" } };
    expectUnsupported(() => workersAI.buildRequest(WORKERS_AI, user(picture)), "by its address");
    expectUnsupported(
      () => openai.buildRequest(CHAT, user({ type: "image", source: { base64: "AA" } })),
      "media type",
    );
    const told: ContextMessage = { role: "assistant", content: "", parts: [IMAGE] };
    for (const [format, profile] of [[openai, CHAT] as const, [responses, RESPONSES] as const]) {
      expectUnsupported(() => format.buildRequest(profile, context({ messages: [told] })), '"assistant"');
    }
    expect(responses.buildRequest(RESPONSES, user(remote)).input).toEqual([
      { role: "user", content: [{ type: "input_file", file_url: "https://media.example/a.pdf" }] },
    ]);
  });
});

describe("replies sent back", () => {
  test("OPENAI-3 to the model that created them, under their own keys", () => {
    const reply = (provider: string): ContextMessage => ({
      role: "assistant",
      content: "",
      toolCalls: [{ id: "c", name: "lookup", arguments: {} }],
      native: {
        provider,
        modelId: provider === "openai" ? "gpt-test" : "@cf/test",
        parts: [
          { type: "block", value: { reasoning_content: "hm" } },
          { type: "tool-call", index: 0, extra: { extra_content: { google: {} } } },
        ],
      },
    });
    const call = { id: "c", type: "function", function: { name: "lookup", arguments: "{}" } };
    const sent = (message: ContextMessage, modelId = "gpt-test") =>
      openai.buildRequest({ ...CHAT, modelId }, context({ messages: [message] })).messages;
    expect(sent(reply("openai"))).toEqual([
      {
        role: "assistant",
        content: null,
        reasoning_content: "hm",
        tool_calls: [{ ...call, extra_content: { google: {} } }],
      },
    ]);
    const bare = [{ role: "assistant", content: null, tool_calls: [call] }];
    expect(sent(reply("openai"), "another")).toEqual(bare);
    expect(sent(reply("elsewhere"))).toEqual(bare);
    const messages = [reply("workers-ai")];
    expect(workersAI.buildRequest(WORKERS_AI, context({ messages })).messages).toMatchObject([
      { role: "assistant", content: "", reasoning: "hm" },
    ]);
  });
});
