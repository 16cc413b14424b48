/** Requests to Gemini. */
import type * as genai from "@google/genai";
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { isJsonObject, type JsonObject } from "../../src/shared/json.ts";
import { context, expectUnsupported, ROUND, user } from "../support/contexts.ts";
import { readRequest } from "../support/request-readers.ts";

/** The body of `generateContent`, in the types of the official client; enumerations by their names. */
interface Body {
  contents: genai.Content[];
  systemInstruction?: genai.Content;
  tools?: genai.Tool[];
  toolConfig?: {
    functionCallingConfig?: Named<genai.FunctionCallingConfig>;
    retrievalConfig?: genai.RetrievalConfig;
  };
  generationConfig?: genai.GenerationConfig;
  safetySettings?: Named<genai.SafetySetting>[];
  cachedContent?: string;
}

type Named<T> = { [Key in keyof T]: T[Key] extends string | undefined ? `${NonNullable<T[Key]>}` : T[Key] };

const gemini = adapterFor("gemini");
const PROFILE: ModelProfile = { provider: "gemini", modelId: "gemini-2.5-test" };
const SCHEMA = { type: "object", properties: { city: { type: "string" } } };
const LOOKUP = { name: "lookup", description: "Looks it up.", inputSchema: SCHEMA };

function build(given: Partial<ModelContext>, profile: Partial<ModelProfile> = {}): JsonObject {
  return gemini.buildRequest({ ...PROFILE, ...profile }, context(given));
}

const ROUND_SENT: genai.Content[] = [
  { role: "user", parts: [{ text: "Weather in Oslo and Rome?" }] },
  {
    role: "model",
    parts: [
      { text: "I look." },
      { functionCall: { id: "a", name: "lookup", args: { city: "Oslo" } } },
      { functionCall: { id: "b", name: "lookup", args: {} } },
    ],
  },
  {
    role: "user",
    parts: [
      { functionResponse: { id: "a", name: "lookup", response: { output: "rain" } } },
      { functionResponse: { id: "b", name: "lookup", response: { error: "no such city" } } },
    ],
  },
];

describe("a request to gemini", () => {
  test("GEMINI-2 has contents, instructions, declarations and the configuration", () => {
    const expected: Body = {
      contents: ROUND_SENT,
      systemInstruction: { parts: [{ text: "Be brief.\n\nBe kind." }] },
      tools: [
        {
          functionDeclarations: [
            { name: "lookup", description: "Looks it up.", parametersJsonSchema: SCHEMA },
          ],
        },
      ],
      generationConfig: { temperature: 0.2 },
    };
    const given = { systemInstructions: ["Be brief.", " ", "Be kind."], messages: ROUND, tools: [LOOKUP] };
    expect(build(given, { parameters: { temperature: 0.2 } })).toStrictEqual(expected);
  });

  test("GEMINI-1 names speakers, labels a later instruction, opens with a user, and joins neighbours", () => {
    const messages: ContextMessage[] = [
      { role: "system", content: "Be brief." },
      { role: "assistant", content: "Hello.", name: "Ada" },
      { role: "user", content: "Hi.", name: "José <admin>" },
      { role: "system", content: "Be kind." },
      { role: "user", content: " " },
      { role: "assistant", content: "" },
      { role: "user", content: "Well?" },
    ];
    const expected: Body = {
      contents: [
        { role: "user", parts: [{ text: "(no message)" }] },
        { role: "model", parts: [{ text: "Ada: Hello." }] },
        {
          role: "user",
          parts: [
            { text: "José <admin>: Hi." },
            { text: "[System instruction] Be kind." },
            { text: "Well?" },
          ],
        },
      ],
      systemInstruction: { parts: [{ text: "Be brief." }] },
    };
    expect(build({ messages })).toStrictEqual(expected);
    expect(build({})).toStrictEqual({ contents: expected.contents.slice(0, 1) });
  });

  test("media by address and by value, also beside a result", () => {
    const parts: ContextPart[] = [
      { type: "text", text: "Compare" },
      { type: "image", source: { url: "https://media.example/a" } },
      { type: "image", source: { url: "data:image/png;base64,AAAA" } },
      { type: "image", source: { base64: "AAAA" }, mediaType: "image/jpg" },
      { type: "file", source: { url: "https://media.example/b" }, mediaType: "video/mp4" },
      { type: "file", source: { base64: "AAAA" }, mediaType: "application/pdf", name: "a.pdf" },
    ];
    const sent: genai.Part[] = [
      { text: "Compare" },
      { fileData: { fileUri: "https://media.example/a" } },
      { inlineData: { mimeType: "image/png", data: "AAAA" } },
      { inlineData: { mimeType: "image/jpeg", data: "AAAA" } },
      { fileData: { mimeType: "video/mp4", fileUri: "https://media.example/b" } },
      { text: 'File "a.pdf":' },
      { inlineData: { mimeType: "application/pdf", data: "AAAA" } },
    ];
    expect(build({ messages: [user("Compare", parts)] }).contents).toStrictEqual([
      { role: "user", parts: sent },
    ]);
    const [text, , image] = parts;
    if (text === undefined || image === undefined) throw new Error("no parts");
    const called: ContextMessage[] = [
      { role: "assistant", content: "", toolCalls: [{ id: "a", name: "lookup", arguments: {} }] },
      { role: "tool", content: "Compare", parts: [text, image], toolCallId: "a" },
    ];
    const response: genai.FunctionResponse = {
      id: "a",
      name: "lookup",
      response: { output: "Compare" },
      parts: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }],
    };
    expect(contentsOf(build({ messages: [user("go"), ...called] })).at(-1)).toStrictEqual({
      role: "user",
      parts: [{ functionResponse: response }],
    });
  });

  test("GEMINI-1 the last reply is not continued: a user's turn follows it", () => {
    const reply: ContextMessage = { role: "assistant", content: "Hello. " };
    const roles = (...messages: ContextMessage[]) => contentsOf(build({ messages })).map(({ role }) => role);
    expect(roles(user("Hi."), reply)).toEqual(["user", "model", "user"]);
    expect(roles(user("Hi."), reply, ...ROUND.slice(1, 2))).toEqual(["user", "model"]);
  });

  test.each([
    ["an attachment", { type: "image", source: { url: "attachment:1" } }, /attachment/],
    ["a plain address", { type: "image", source: { url: "http://media.example/a" } }, /not HTTPS/],
    ["bytes of no type", { type: "image", source: { base64: "AAAA" } }, /media type/],
    ["another image", { type: "image", source: { base64: "AAAA" }, mediaType: "image/tiff" }, /image\/tiff/],
    [
      "an archive",
      { type: "file", source: { base64: "AAAA" }, mediaType: "application/zip" },
      /application\/zip/,
    ],
  ] satisfies [string, ContextPart, RegExp][])("refuses %s", (_name, part, message) => {
    expectUnsupported(() => build({ messages: [user("", [part])] }), message);
  });

  test("refuses other contexts that the format cannot express", () => {
    const image: ContextPart = { type: "image", source: { base64: "AAAA" }, mediaType: "image/png" };
    expectUnsupported(() => build({ messages: [{ role: "system", content: "", parts: [image] }] }), /system/);
    for (const name of ["9lives", "", "ünicode", "x".repeat(129)]) {
      expectUnsupported(() => build({ tools: [{ ...LOOKUP, name }] }), /a tool named/);
    }
    expect(() => build({ tools: [{ ...LOOKUP, name: "memory.write" }] })).not.toThrow();
    expectUnsupported(() => build({ toolChoice: { name: "lookup" } }), /"lookup", which is not offered/);
    expectUnsupported(() => build({ toolChoice: "required" }), /without offered tools/);
    expectUnsupported(() => build({}, { parameters: { tools: "all" } }), /`tools`/);
  });

  test.each([
    ["auto", undefined],
    ["none", { mode: "NONE" }],
    ["required", { mode: "ANY" }],
    [{ name: "lookup" }, { mode: "ANY", allowedFunctionNames: ["lookup"] }],
  ] satisfies [ModelContext["toolChoice"], Named<genai.FunctionCallingConfig> | undefined][])(
    "tool choice %j",
    (toolChoice, functionCallingConfig) => {
      const expected: Body["toolConfig"] =
        functionCallingConfig === undefined ? undefined : { functionCallingConfig };
      expect(build({ tools: [LOOKUP], toolChoice }).toolConfig).toStrictEqual(expected);
    },
  );

  test("the profile's own tools, and its choice if the context leaves the model free", () => {
    const search = { googleSearch: {} } satisfies genai.Tool;
    const toolConfig = {
      functionCallingConfig: { mode: "VALIDATED" },
      retrievalConfig: { languageCode: "no" },
    };
    const parameters = { tools: [search], toolConfig };
    const free = build({ tools: [LOOKUP] }, { parameters });
    expect(free).toMatchObject({ toolConfig });
    expect(free.tools).toMatchObject([{ functionDeclarations: [{ name: "lookup" }] }, search]);
    expect(build({ tools: [LOOKUP], toolChoice: "none" }, { parameters }).toolConfig).toStrictEqual({
      functionCallingConfig: { mode: "NONE" },
      retrievalConfig: toolConfig.retrievalConfig,
    });
    expect(build({}, { parameters })).toMatchObject({
      tools: [search],
      toolConfig: { retrievalConfig: toolConfig.retrievalConfig },
    });
  });

  test.each([
    [{ temperature: 0, topK: null }, { generationConfig: { temperature: 0 } }],
    [
      { generationConfig: { maxOutputTokens: 9, seed: null, topP: 0.5 }, topP: 1 },
      { generationConfig: { maxOutputTokens: 9, topP: 1 } },
    ],
    [
      { safetySettings: [], cachedContent: "cachedContents/1", thinkingConfig: { includeThoughts: true } },
      {
        generationConfig: { thinkingConfig: { includeThoughts: true } },
        safetySettings: [],
        cachedContent: "cachedContents/1",
      },
    ],
    [{ model: "other", contents: [], systemInstruction: {}, stream: true }, {}],
  ] satisfies [JsonObject, Partial<Body>][])("parameters %j", (parameters, expected) => {
    expect(build({ messages: [user("hi")] }, { parameters })).toStrictEqual({
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      ...expected,
    });
  });

  test("structured output, even against the profile; a cache hint has no effect", () => {
    const expected: Body = {
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      generationConfig: { responseMimeType: "application/json", seed: 1, responseJsonSchema: SCHEMA },
    };
    const parameters = { responseMimeType: "text/plain", seed: 1 };
    const given = { messages: [user("hi")], output: { name: "place", schema: SCHEMA } };
    const request = build(given, { parameters });
    expect(request).toStrictEqual(expected);
    expect(build({ ...given, cache: { key: "c", stableMessages: 1 } }, { parameters })).toStrictEqual(
      request,
    );
  });

  test("a structured reply works with tools from Gemini 3 on; before, only if tools may not be called", () => {
    const given = { tools: [LOOKUP], output: { name: "place", schema: SCHEMA } };
    expectUnsupported(() => build(given), /structured reply/);
    const answered = build({ ...given, toolChoice: "none" });
    expect(answered).not.toHaveProperty("tools");
    expect(answered).not.toHaveProperty("toolConfig");
    expect(build(given, { modelId: "gemini-3-pro" })).toMatchObject({ tools: [{}], generationConfig: {} });
  });

  test("GEMINI-3 the first call of each reply is marked if a newer model has not signed it", () => {
    const signatures = (modelId: string) => {
      const parts = contentsOf(build({ messages: ROUND }, { modelId })).flatMap((content) => content.parts);
      return parts.flat().flatMap((part) => (isJsonObject(part) ? [part.thoughtSignature] : []));
    };
    const marked = [
      undefined,
      undefined,
      "skip_thought_signature_validator",
      undefined,
      undefined,
      undefined,
    ];
    expect(signatures("gemini-3-pro")).toEqual(marked);
    expect(signatures("publishers/google/models/gemini-3.1-flash")).toEqual(marked);
    expect(signatures("gemini-2.5-pro")).toEqual(marked.map(() => undefined));
  });

  test("GEMINI-2 ids that repeat stay distinct, names fit, also in an extension", () => {
    const turn = (id: string): ContextMessage[] => [
      { role: "assistant", content: "", toolCalls: [{ id, name: "größe?", arguments: {} }] },
      { role: "tool", content: "ok", toolCallId: id },
    ];
    const messages = [user("go"), ...turn("call_0"), ...turn("call_0")];
    const whole = build({ messages });
    const items = readRequest("gemini", whole).flatMap((message) => message.items);
    expect(items.flatMap((item) => (item.type === "call" ? [item.id, item.name] : []))).toEqual([
      "call_0",
      "gr__e_",
      "call_0_2",
      "gr__e_",
    ]);
    expect(items.flatMap((item) => (item.type === "result" ? [item.callId] : []))).toEqual([
      "call_0",
      "call_0_2",
    ]);
    const extended = gemini.extend(PROFILE, build({ messages: messages.slice(0, 3) }), messages.slice(3));
    expect(extended).toStrictEqual(whole);
    const halves = gemini.extend(PROFILE, build({ messages: messages.slice(0, 4) }), messages.slice(4));
    expect(halves).toStrictEqual(whole);
  });
});

function contentsOf({ contents }: JsonObject): JsonObject[] {
  if (!Array.isArray(contents)) throw new Error("no contents");
  return contents.filter(isJsonObject);
}
