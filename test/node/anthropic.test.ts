/** Requests to Anthropic. */
import type Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { isJsonObject, type JsonObject } from "../../src/shared/json.ts";
import { context, expectUnsupported, ROUND, user } from "../support/contexts.ts";

type Body = Anthropic.MessageCreateParamsStreaming;

const anthropic = adapterFor("anthropic");
const PROFILE: ModelProfile = { provider: "anthropic", modelId: "claude-test" };
const SCHEMA = { type: "object", properties: { city: { type: "string" } } } as const;
const LOOKUP = { name: "lookup", description: "Looks it up.", inputSchema: { ...SCHEMA } };

function build(given: Partial<ModelContext>, parameters?: JsonObject): JsonObject {
  return anthropic.buildRequest(
    parameters === undefined ? PROFILE : { ...PROFILE, parameters },
    context(given),
  );
}

const ROUND_SENT: Anthropic.MessageParam[] = [
  { role: "user", content: [{ type: "text", text: "Weather in Oslo and Rome?" }] },
  {
    role: "assistant",
    content: [
      { type: "text", text: "I look." },
      { type: "tool_use", id: "a", name: "lookup", input: { city: "Oslo" } },
      { type: "tool_use", id: "b", name: "lookup", input: {} },
    ],
  },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "b", content: "no such city", is_error: true },
      { type: "tool_result", tool_use_id: "a", content: "rain" },
    ],
  },
];

describe("a request to anthropic", () => {
  test("ANTHROPIC-2 has model, limit, instructions, turns, tools and stream", () => {
    const expected: Body = {
      model: "claude-test",
      max_tokens: 16_384,
      system: "Be brief.\n\nBe kind.",
      messages: ROUND_SENT,
      tools: [{ name: "lookup", description: "Looks it up.", input_schema: SCHEMA }],
      tool_choice: { type: "auto" },
      stream: true,
      service_tier: "standard_only",
    };
    const given = { systemInstructions: ["Be brief.", " ", "Be kind."], messages: ROUND, tools: [LOOKUP] };
    expect(build(given, { service_tier: "standard_only" })).toStrictEqual(expected);
  });

  test("ANTHROPIC-1 names speakers, labels a later instruction, opens with a user, and joins neighbours", () => {
    const messages: ContextMessage[] = [
      { role: "system", content: "Be brief.", name: "Eve" },
      { role: "assistant", content: "Hello.", name: "Ada" },
      { role: "user", content: "Hi.", name: "José <admin>" },
      { role: "system", content: "Be kind." },
      { role: "user", content: " " },
      { role: "assistant", content: "" },
      { role: "user", content: "Well?" },
    ];
    const expected: Pick<Body, "system" | "messages"> = {
      system: "Eve: Be brief.",
      messages: [
        { role: "user", content: [{ type: "text", text: "(no message)" }] },
        { role: "assistant", content: [{ type: "text", text: "Ada: Hello." }] },
        {
          role: "user",
          content: [
            { type: "text", text: "José <admin>: Hi." },
            { type: "text", text: "[System instruction] Be kind." },
            { type: "text", text: "Well?" },
          ],
        },
      ],
    };
    expect(build({ messages })).toMatchObject({ ...expected });
    expect(build({}).messages).toStrictEqual(expected.messages.slice(0, 1));
  });

  test("images and documents, by address and by value", () => {
    const parts: ContextPart[] = [
      { type: "text", text: "Compare" },
      { type: "image", source: { url: "https://media.example/a" } },
      { type: "image", source: { url: "data:image/png;base64,AAAA" } },
      { type: "image", source: { base64: "AAAA" }, mediaType: "image/jpg" },
      { type: "file", source: { base64: "AAAA" }, mediaType: "image/webp" },
      { type: "file", source: { base64: "AAAA" }, mediaType: "application/pdf", name: "a.pdf" },
      { type: "file", source: { url: "https://media.example/b.pdf" }, mediaType: "application/pdf" },
      { type: "file", source: { url: "data:text/csv;charset=utf-8;base64,YSzDtg==" } },
    ];
    const content: Anthropic.ContentBlockParam[] = [
      { type: "text", text: "Ada: Compare" },
      { type: "image", source: { type: "url", url: "https://media.example/a" } },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "AAAA" } },
      { type: "image", source: { type: "base64", media_type: "image/webp", data: "AAAA" } },
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "AAAA" },
        title: "a.pdf",
      },
      { type: "document", source: { type: "url", url: "https://media.example/b.pdf" } },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "a,ö" } },
    ];
    const message: ContextMessage = { ...user("Compare", parts), name: "Ada" };
    expect(build({ messages: [message] }).messages).toStrictEqual([{ role: "user", content }]);
    const [, ...media] = parts;
    expect(build({ messages: [{ ...user("", media), name: "Ada" }] }).messages).toStrictEqual([
      { role: "user", content: [{ type: "text", text: "Ada:" }, ...content.slice(1)] },
    ]);
  });

  test("a result with media, an empty result, and a failure without content", () => {
    const toolCalls = ["a", "b", "c"].map((id) => ({ id, name: "lookup", arguments: {} }));
    const parts: ContextPart[] = [
      { type: "text", text: "a map" },
      { type: "image", source: { base64: "AAAA" }, mediaType: "image/png" },
    ];
    const messages: ContextMessage[] = [
      user("go"),
      { role: "assistant", content: "", toolCalls },
      { role: "tool", content: "a map", parts, toolCallId: "a", name: "lookup" },
      { role: "tool", content: "", toolCallId: "b" },
      { role: "tool", content: " ", toolCallId: "c", metadata: { isSuccess: false } },
    ];
    const results: Anthropic.ToolResultBlockParam[] = [
      {
        type: "tool_result",
        tool_use_id: "a",
        content: [
          { type: "text", text: "a map" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
        ],
      },
      { type: "tool_result", tool_use_id: "b" },
      { type: "tool_result", tool_use_id: "c", content: "The tool failed.", is_error: true },
    ];
    expect(messagesOf(build({ messages })).at(-1)).toStrictEqual({ role: "user", content: results });
  });

  test("ANTHROPIC-1 the last reply is not continued: a user's turn follows it", () => {
    const reply: ContextMessage = { role: "assistant", content: "Hello. " };
    const roles = (...messages: ContextMessage[]) => messagesOf(build({ messages })).map(({ role }) => role);
    expect(roles(user("Hi."), reply)).toEqual(["user", "assistant", "user"]);
    expect(roles(user("Hi."), reply, ...ROUND.slice(1, 2))).toEqual(["user", "assistant"]);
  });

  test.each([
    ["an attachment", { type: "image", source: { url: "attachment:1" } }, /attachment/],
    ["a plain address", { type: "image", source: { url: "http://media.example/a" } }, /not HTTPS/],
    ["bytes of no type", { type: "image", source: { base64: "AAAA" } }, /media type/],
    ["another image", { type: "image", source: { base64: "AAAA" }, mediaType: "image/tiff" }, /image\/tiff/],
    ["sound", { type: "file", source: { base64: "AAAA" }, mediaType: "audio/mpeg" }, /audio\/mpeg/],
    ["no UTF-8", { type: "file", source: { base64: "/w==" }, mediaType: "text/plain" }, /UTF-8/],
    [
      "a text by address",
      { type: "file", source: { url: "https://media.example/a" }, mediaType: "text/plain" },
      /only PDF/,
    ],
  ] satisfies [string, ContextPart, RegExp][])("refuses %s", (_name, part, message) => {
    expectUnsupported(() => build({ messages: [user("", [part])] }), message);
  });

  test("refuses other contexts that the format cannot express", () => {
    const image: ContextPart = { type: "image", source: { base64: "AAAA" }, mediaType: "image/png" };
    expectUnsupported(
      () => build({ messages: [{ role: "assistant", content: "", parts: [image] }] }),
      /assistant/,
    );
    expectUnsupported(() => build({ messages: [{ role: "system", content: "", parts: [image] }] }), /system/);
    for (const name of ["memory.write", "", "x".repeat(129)]) {
      expectUnsupported(() => build({ tools: [{ ...LOOKUP, name }] }), /a tool named/);
    }
    expectUnsupported(
      () => build({ tools: [{ ...LOOKUP, inputSchema: { anyOf: [] } }] }),
      /"anyOf".*"lookup"/,
    );
    expectUnsupported(() => build({ toolChoice: "required" }), /without offered tools/);
    const other = { name: "other" };
    expectUnsupported(() => build({ tools: [LOOKUP], toolChoice: other }), /"other", which is not offered/);
    for (const thinking of [{ type: "enabled", budget_tokens: 1_024 }, { type: "adaptive" }]) {
      expectUnsupported(() => build({ tools: [LOOKUP], toolChoice: "required" }, { thinking }), /`thinking`/);
    }
    for (const open of [{}, { additionalProperties: true }, { additionalProperties: { type: "string" } }]) {
      const schema = { type: "object", properties: { map: { type: "object", ...open } } };
      expectUnsupported(() => build({ output: { name: "map", schema } }), /any member/);
    }
    expectUnsupported(() => build({}, { tools: "all" }), /`tools`/);
  });

  test.each([
    ["none", undefined, { type: "none" }],
    ["required", undefined, { type: "any" }],
    [{ name: "lookup" }, undefined, { type: "tool", name: "lookup" }],
    [
      "required",
      { type: "auto", disable_parallel_tool_use: true },
      { type: "any", disable_parallel_tool_use: true },
    ],
    ["auto", { disable_parallel_tool_use: true }, { type: "auto", disable_parallel_tool_use: true }],
    ["none", { type: "any" }, { type: "none" }],
  ] satisfies [ModelContext["toolChoice"], JsonObject | undefined, Anthropic.ToolChoice][])(
    "tool choice %j with the parameter %j",
    (toolChoice, parameter, expected) => {
      const parameters = parameter === undefined ? {} : { tool_choice: parameter };
      const request = build({ tools: [LOOKUP], toolChoice }, parameters);
      expect(request.tool_choice).toStrictEqual(expected);
    },
  );

  test.each([
    [{}, {}],
    [
      { max_tokens: 100, stream: false },
      { max_tokens: 100, stream: false },
    ],
    [
      { thinking: { type: "enabled", budget_tokens: 20_000 } },
      { max_tokens: 24_096, thinking: { type: "enabled", budget_tokens: 20_000 } },
    ],
    [{ thinking: { type: "adaptive" }, top_k: null }, { thinking: { type: "adaptive" } }],
    [{ model: "other", messages: [], system: "x", tool_choice: { type: "any" } }, {}],
    [{ output_config: { effort: "low" } }, { output_config: { effort: "low" } }],
  ])("parameters %j", (parameters, expected) => {
    expect(build({ messages: [user("hi")] }, parameters)).toStrictEqual({
      model: "claude-test",
      max_tokens: 16_384,
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      stream: true,
      ...expected,
    });
  });

  test("a default is removed by null, and the provider's tools follow ours", () => {
    const bare = build({}, { max_tokens: null, stream: null });
    expect(Object.keys(bare)).toEqual(["model", "messages"]);
    const search = {
      type: "web_search_20250305",
      name: "web_search",
    } as const satisfies Anthropic.WebSearchTool20250305;
    const { tools } = build({ tools: [LOOKUP] }, { tools: [{ ...search }] });
    expect(tools).toMatchObject([{ name: "lookup" }, search]);
  });

  test("structured output: objects are closed, and limits that the API refuses go into descriptions", () => {
    const schema = {
      type: "object",
      properties: {
        city: { type: "string", minLength: 2, description: "Its name." },
        tags: { type: "array", items: { type: "object", properties: {} }, minItems: 3 },
        when: { oneOf: [{ type: "string", format: "date" }, { type: "null" }] },
      },
      required: ["city"],
    };
    const expected: Anthropic.OutputConfig = {
      effort: "high",
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          properties: {
            city: { type: "string", description: "Its name.\n\nLimits: minLength: 2" },
            tags: {
              type: "array",
              items: { type: "object", properties: {}, additionalProperties: false },
              description: "Limits: minItems: 3",
            },
            when: { anyOf: [{ type: "string", format: "date" }, { type: "null" }] },
          },
          required: ["city"],
          additionalProperties: false,
        },
      },
    };
    const request = build({ output: { name: "place", schema } }, { output_config: { effort: "high" } });
    expect(request.output_config).toStrictEqual(expected);
  });

  test("ANTHROPIC-4 cache breakpoints after the tools, the instructions and the last stable message", () => {
    const given = {
      systemInstructions: ["Be brief."],
      messages: [{ role: "system", content: "Be kind." } as const, ...ROUND, user("Thanks.")],
      tools: [LOOKUP],
      cache: { key: "c", stableMessages: 5 },
    };
    const cached: Anthropic.CacheControlEphemeral = { type: "ephemeral" };
    const [asked, called, results] = ROUND_SENT;
    const sent = results?.content;
    if (!Array.isArray(sent)) throw new Error("no blocks");
    const request = build(given);
    const expected: Partial<Body> = {
      system: [{ type: "text", text: "Be brief.\n\nBe kind.", cache_control: cached }],
      tools: [{ name: "lookup", description: "Looks it up.", input_schema: SCHEMA, cache_control: cached }],
      messages: [
        asked ?? { role: "user", content: "" },
        called ?? { role: "user", content: "" },
        {
          role: "user",
          content: [
            ...sent.slice(0, 1),
            { type: "tool_result", tool_use_id: "a", content: "rain", cache_control: cached },
            { type: "text", text: "Thanks." },
          ],
        },
      ],
    };
    expect(request).toMatchObject({ ...expected });
    expect(countOf(request, "cache_control")).toBe(3);
    const extended = anthropic.extend(PROFILE, request, [{ role: "assistant", content: "Bye." }]);
    expect(countOf(extended, "cache_control")).toBe(3);
    expect(countOf(build({ ...given, cache: { key: "c", stableMessages: 1 } }), "cache_control")).toBe(2);
  });

  test("ANTHROPIC-4 a breakpoint is never on a tool that the model must search for", () => {
    const found = { type: "web_search_20250305", name: "web_search", defer_loading: true };
    const request = build({ tools: [LOOKUP], cache: { key: "c", stableMessages: 0 } }, { tools: [found] });
    expect(request.tools).toStrictEqual([
      {
        name: "lookup",
        description: "Looks it up.",
        input_schema: SCHEMA,
        cache_control: { type: "ephemeral" },
      },
      found,
    ]);
  });

  test("ANTHROPIC-4 a breakpoint is never on reasoning", () => {
    const thinking = { type: "thinking", thinking: "hm", signature: "s" };
    const reply: ContextMessage = {
      role: "assistant",
      content: "Yes.",
      native: {
        provider: "anthropic",
        modelId: "claude-test",
        parts: [
          { type: "text", length: 4 },
          { type: "block", value: thinking },
        ],
      },
    };
    const messages = [user("ok?"), reply, user("Why?")];
    const request = build({ messages, cache: { key: "c", stableMessages: 2 } });
    expect(messagesOf(request)[1]?.content).toStrictEqual([
      { type: "text", text: "Yes.", cache_control: { type: "ephemeral" } },
      thinking,
    ]);
  });

  test("ANTHROPIC-2 ids that repeat or that the API refuses stay distinct, also in an extension", () => {
    const turn = (id: string): ContextMessage[] => [
      { role: "assistant", content: "", toolCalls: [{ id, name: "größe?", arguments: {} }] },
      { role: "tool", content: "ok", toolCallId: id },
    ];
    const messages = [user("go"), ...turn("call_0"), ...turn("call_0"), ...turn("a:b"), ...turn("a.b")];
    const whole = build({ messages });
    const ids = blocksOf(whole, "tool_use").map(({ id }) => id);
    expect(ids).toEqual(blocksOf(whole, "tool_result").map((block) => block.tool_use_id));
    expect(ids.slice(0, 2)).toEqual(["call_0", "call_0_2"]);
    expect(new Set(ids).size).toBe(4);
    expect(blocksOf(whole, "tool_use")[0]?.name).toBe("gr__e_");
    const extended = anthropic.extend(PROFILE, build({ messages: messages.slice(0, 3) }), messages.slice(3));
    expect(extended).toStrictEqual(whole);
    const halves = anthropic.extend(PROFILE, build({ messages: messages.slice(0, 4) }), messages.slice(4));
    expect(halves).toStrictEqual(whole);
  });
});

function messagesOf({ messages }: JsonObject): JsonObject[] {
  if (!Array.isArray(messages)) throw new Error("no messages");
  return messages.filter(isJsonObject);
}

function blocksOf(body: JsonObject, type: string): JsonObject[] {
  const blocks = messagesOf(body).flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return blocks.filter(isJsonObject).filter((block) => block.type === type);
}

function countOf(body: JsonObject, key: string): number {
  return JSON.stringify(body).split(`"${key}"`).length - 1;
}
