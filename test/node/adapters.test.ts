/** Requests that the formats build, and the choice of a model profile. */
import { describe, expect, test } from "vitest";
import { atBaseUrl, missingKey } from "../../src/adapters/default-profile.ts";
import {
  adapterFor,
  defaultModelProfile,
  OFFLINE_PROFILE,
  resolveProvider,
  workersAIAdapter,
} from "../../src/adapters/index.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import { type ModelProfile, PROVIDERS } from "../../src/model/profile.ts";
import { isJsonObject, type JsonObject } from "../../src/shared/json.ts";
import { context } from "../support/contexts.ts";

const openai = adapterFor("openai");
const workersAI = adapterFor("workers-ai");
const OPENAI: ModelProfile = { provider: "openai", modelId: "gpt-test" };
const WORKERS_AI: ModelProfile = { provider: "workers-ai", modelId: "@cf/test" };

const LOOKUP = { name: "lookup", description: "Looks it up.", inputSchema: { type: "object" } };

const ROUND: ContextMessage[] = [
  { role: "user", content: "Weather in Oslo and Rome?" },
  {
    role: "assistant",
    content: "",
    toolCalls: [
      { id: "a", name: "lookup", arguments: { city: "Oslo" } },
      { id: "b", name: "lookup", arguments: {} },
    ],
  },
  { role: "tool", content: "rain", toolCallId: "a", name: "lookup" },
  { role: "tool", content: "sun", toolCallId: "b", name: "lookup" },
  { role: "assistant", content: "Rain and sun." },
];

function messagesOf(request: JsonObject): JsonObject[] {
  const { messages } = request;
  if (!Array.isArray(messages)) throw new Error("no messages");
  return messages.filter(isJsonObject);
}

/** The user's turn of a request without messages (BLANK-1). */
const OPENING = { role: "user", content: "(no message)" };

describe("M18 the Workers AI format", () => {
  test("instructions become one leading system message, joined by a blank line", () => {
    expect(workersAIAdapter.name).toBe("workers-ai");
    expect(
      workersAIAdapter.toModelMessages(["Be brief.", "Be kind."], [{ role: "user", content: "hi" }]),
    ).toEqual({
      messages: [
        { role: "system", content: "Be brief.\n\nBe kind." },
        { role: "user", content: "hi" },
      ],
    });
  });

  test("without instructions there is no system message", () => {
    expect(workersAIAdapter.toModelMessages([], [])).toEqual({ messages: [OPENING] });
  });

  test("tool calls have the type function and arguments as JSON text", () => {
    const { messages } = workersAIAdapter.toModelMessages([], ROUND);
    expect(messages[1]).toStrictEqual({
      role: "assistant",
      content: "",
      tool_calls: [
        { id: "a", type: "function", function: { name: "lookup", arguments: '{"city":"Oslo"}' } },
        { id: "b", type: "function", function: { name: "lookup", arguments: "{}" } },
      ],
    });
    expect(messages[2]).toStrictEqual({ role: "tool", content: "rain", tool_call_id: "a", name: "lookup" });
  });

  test("no stray keys: missing members are absent, and metadata is never sent", () => {
    const bare: ContextMessage[] = [
      { role: "user", content: "hi", metadata: { secret: true } },
      { role: "assistant", content: "yes", toolCalls: [] },
    ];
    const { messages } = workersAIAdapter.toModelMessages([], bare);
    expect(messages.map((message) => Object.keys(message))).toEqual([
      ["role", "content"],
      ["role", "content"],
    ]);
  });

  test("does not change its input", () => {
    const before = structuredClone(ROUND);
    workersAIAdapter.toModelMessages(["x"], ROUND);
    expect(ROUND).toEqual(before);
  });
});

describe("a request to workers-ai", () => {
  test("has messages, tools, stream and the profile's parameters", () => {
    const profile = {
      ...WORKERS_AI,
      parameters: { temperature: 0.2, max_tokens: 100, messages: [], seed: null },
    };
    const request = workersAI.buildRequest(
      profile,
      context({ systemInstructions: ["Be brief."], messages: ROUND.slice(0, 1), tools: [LOOKUP] }),
    );
    expect(request).toStrictEqual({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Weather in Oslo and Rome?" },
      ],
      tools: [
        {
          type: "function",
          function: { name: "lookup", description: "Looks it up.", parameters: { type: "object" } },
        },
      ],
      stream: true,
      temperature: 0.2,
      max_tokens: 100,
    });
  });

  test("offers no tools if text is forced", () => {
    const parameters = { tool_choice: "auto" };
    const request = workersAI.buildRequest(
      { ...WORKERS_AI, parameters },
      context({ tools: [LOOKUP], toolChoice: "none" }),
    );
    expect(request).toStrictEqual({ messages: [OPENING], stream: true });
  });
});

describe("a request to openai", () => {
  test("has model, messages, tools, stream and options", () => {
    const request = openai.buildRequest(
      { ...OPENAI, parameters: { temperature: 0 } },
      context({ systemInstructions: ["Be brief."], messages: ROUND, tools: [LOOKUP] }),
    );
    expect(request).toStrictEqual({
      model: "gpt-test",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Weather in Oslo and Rome?" },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "a", type: "function", function: { name: "lookup", arguments: '{"city":"Oslo"}' } },
            { id: "b", type: "function", function: { name: "lookup", arguments: "{}" } },
          ],
        },
        { role: "tool", content: "rain", tool_call_id: "a" },
        { role: "tool", content: "sun", tool_call_id: "b" },
        { role: "assistant", content: "Rain and sun." },
      ],
      tools: [
        {
          type: "function",
          function: { name: "lookup", description: "Looks it up.", parameters: { type: "object" } },
        },
      ],
      tool_choice: "auto",
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
    });
  });

  test("forbids the use of its tools if text is forced, even against the profile", () => {
    const request = openai.buildRequest(
      { ...OPENAI, parameters: { tool_choice: "required" } },
      context({ tools: [LOOKUP], toolChoice: "none" }),
    );
    expect(request.tools).toHaveLength(1);
    expect(request.tool_choice).toBe("none");
  });

  test("sends no tool parameters without tools", () => {
    const parameters = { tool_choice: "auto", parallel_tool_calls: true, top_p: 1 };
    const request = openai.buildRequest({ ...OPENAI, parameters }, context());
    expect(Object.keys(request).sort()).toEqual(["messages", "model", "stream", "stream_options", "top_p"]);
  });

  test.each([
    [{ stream: false }, { stream: false }],
    [{ stream_options: null }, { stream: true }],
    [{ stream_options: { a: 1 } }, { stream: true, stream_options: { a: 1 } }],
    [
      { model: "other", messages: [], tools: [] },
      { stream: true, stream_options: { include_usage: true } },
    ],
  ])("parameters %j", (parameters, expected) => {
    const request = openai.buildRequest({ ...OPENAI, parameters }, context());
    expect(request).toStrictEqual({ model: "gpt-test", messages: [OPENING], ...expected });
  });

  test("OPENAI-1 refuses to offer a tool that it could not name", () => {
    for (const name of ["memory.write", "", "ünicode", "x".repeat(65)]) {
      const build = () => openai.buildRequest(OPENAI, context({ tools: [{ ...LOOKUP, name }] }));
      expect(build).toThrowError(expect.objectContaining({ code: "UNSUPPORTED" }));
      expect(build).toThrowError(`"${name}"`);
    }
  });

  test("OPENAI-1 ids and names in the history are fitted too, a result to its call", () => {
    const ids = ["x".repeat(41), `${"x".repeat(41)}y`, "short"];
    const messages: ContextMessage[] = [
      {
        role: "assistant",
        content: "",
        toolCalls: ids.map((id) => ({ id, name: "functions.look up", arguments: {} })),
      },
      ...ids.map((id): ContextMessage => ({ role: "tool", content: "ok", toolCallId: id })),
    ];
    const [asked, ...results] = messagesOf(openai.buildRequest(OPENAI, context({ messages })));
    const called = callsOf(asked ?? {});
    expect(called.map(({ id }) => id)).toEqual(results.map((result) => result.tool_call_id));
    expect(new Set(called.map(({ id }) => id)).size).toBe(3);
    for (const { id, function: tool } of called) {
      expect(String(id).length).toBeLessThanOrEqual(40);
      expect(tool).toMatchObject({ name: "functions_look_up" });
    }
  });

  test("OPENAI-1 a speaker's name is fitted to the API's rules", () => {
    const messages: ContextMessage[] = [{ role: "user", content: "hi", name: "José <admin>" }];
    expect(messagesOf(openai.buildRequest(OPENAI, context({ messages })))).toEqual([
      { role: "user", content: "hi", name: "Jos___admin_" },
    ]);
  });
});

describe("providers and the default profile", () => {
  test("aliases resolve to providers", () => {
    expect(["cloudflare", "google", "local", "openai", "offline"].map(resolveProvider)).toEqual([
      "workers-ai",
      "gemini",
      "openai",
      "openai",
      "offline",
    ]);
    expect(() => resolveProvider("nobody")).toThrowError(/"nobody"/);
  });

  test.each(PROVIDERS)("%s has its own format", (provider) => {
    expect(adapterFor(provider).provider).toBe(provider);
  });

  test.each([
    [{}, false, OFFLINE_PROFILE],
    [{ OPENAI_API_KEY: " ", DRAMATIS_MODEL: "" }, false, OFFLINE_PROFILE],
    [{}, true, { provider: "workers-ai", modelId: expect.stringMatching(/^@cf\//) }],
    [{ OPENAI_API_KEY: "k" }, true, { provider: "openai", modelId: expect.any(String) }],
    [
      { OPENAI_BASE_URL: "http://127.0.0.1:1/v1//" },
      false,
      { provider: "openai", modelId: expect.any(String), baseUrl: "http://127.0.0.1:1/v1" },
    ],
    [
      { DRAMATIS_MODEL: "cloudflare/@cf/meta/llama", OPENAI_API_KEY: "k" },
      false,
      { provider: "workers-ai", modelId: "@cf/meta/llama" },
    ],
    [
      { DRAMATIS_MODEL: "local/qwen3:8b", OPENAI_BASE_URL: "http://127.0.0.1:11434/v1" },
      false,
      { provider: "openai", modelId: "qwen3:8b", baseUrl: "http://127.0.0.1:11434/v1" },
    ],
    [{ DRAMATIS_MODEL: "offline/offline-1", OPENAI_API_KEY: "k" }, true, OFFLINE_PROFILE],
    [
      { ANTHROPIC_API_KEY: "k", GEMINI_API_KEY: "k" },
      true,
      { provider: "anthropic", modelId: expect.any(String) },
    ],
    [
      { GEMINI_BASE_URL: "http://127.0.0.1:1/v1beta/" },
      true,
      { provider: "gemini", modelId: expect.any(String), baseUrl: "http://127.0.0.1:1/v1beta" },
    ],
    [
      { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" },
      false,
      { provider: "openai", modelId: expect.any(String) },
    ],
    [
      { DRAMATIS_MODEL: "anthropic/claude-x", OPENAI_BASE_URL: "http://127.0.0.1:1" },
      false,
      { provider: "anthropic", modelId: "claude-x" },
    ],
    [
      { DRAMATIS_MODEL: "google/gemini-x", GEMINI_BASE_URL: "http://127.0.0.1:1" },
      false,
      { provider: "gemini", modelId: "gemini-x", baseUrl: "http://127.0.0.1:1" },
    ],
    [
      { DRAMATIS_MODEL: "openai-responses/gpt-x", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" },
      false,
      { provider: "openai-responses", modelId: "gpt-x", baseUrl: "http://127.0.0.1:1/v1" },
    ],
  ])("environment %j, AI binding %s", (env, hasAi, expected) => {
    expect(defaultModelProfile(env, hasAi)).toStrictEqual(expected);
  });

  test.each([
    [{}, undefined],
    [{ OPENAI_API_KEY: "k" }, undefined],
    [{ DRAMATIS_MODEL: "openai/gpt-x" }, "OPENAI_API_KEY"],
    [{ DRAMATIS_MODEL: "openai/gpt-x", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" }, undefined],
    [{ DRAMATIS_MODEL: "anthropic/claude-x", OPENAI_API_KEY: "k" }, "ANTHROPIC_API_KEY"],
    [{ DRAMATIS_MODEL: "offline/offline-1" }, undefined],
  ])("with the environment %j the default model lacks the key %s", (env, name) => {
    expect(missingKey(env, false)?.keyName).toBe(name);
  });

  test("a profile without a base URL gets its provider's from the environment", () => {
    const env = { OPENAI_BASE_URL: "http://127.0.0.1:1/v1/", GEMINI_BASE_URL: " " };
    const at = (profile: ModelProfile) => atBaseUrl(profile, env);
    const profile: ModelProfile = { provider: "openai-responses", modelId: "m", fallbacks: ["spare"] };
    expect(at(profile)).toStrictEqual({ ...profile, baseUrl: "http://127.0.0.1:1/v1" });
    const elsewhere = { ...profile, baseUrl: "https://models.example.com" };
    const gemini: ModelProfile = { provider: "gemini", modelId: "m" };
    for (const own of [elsewhere, gemini, OFFLINE_PROFILE]) expect(at(own)).toBe(own);
  });

  test.each(["gpt-4", "/x", "openai/", "nobody/x", "local/x"])("DRAMATIS_MODEL=%s is refused", (model) => {
    expect(() => defaultModelProfile({ DRAMATIS_MODEL: model }, true)).toThrowError(
      expect.objectContaining({ code: "INVALID_INPUT" }),
    );
  });

  test("a misspelt provider is answered with the provider that is meant, and without the value", () => {
    const refused = (model: string) => () => defaultModelProfile({ DRAMATIS_MODEL: model }, true);
    expect(refused("opnai/gpt-4.1-mini")).toThrow(/^(?!.*opnai).*Did you mean "openai"\? Providers are /);
    expect(refused("sk-proj-1/x")).toThrow(/^(?!.*sk-proj|.*Did you mean)/);
  });
});

function callsOf({ tool_calls: calls }: JsonObject): JsonObject[] {
  return Array.isArray(calls) ? calls.filter(isJsonObject) : [];
}
