/** What OpenAI's two formats, Workers AI and the AI SDK make of any valid history (the format checks say what holds). */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ProviderId } from "../../src/adapters/types.ts";
import type { ContextPart } from "../../src/memory/types.ts";
import { isJsonObject, type Json, type JsonObject } from "../../src/shared/json.ts";
import { documents, images } from "../support/context-histories.ts";
import {
  checkExtension,
  checkRequests,
  type FormatChecks,
  type SentItem,
  type SentMessage,
} from "../support/format-checks.ts";

const media: fc.Arbitrary<ContextPart> = fc.oneof(images, documents);
const imagesByValue = images.filter(({ type, ...part }) => {
  return type !== "text" && !JSON.stringify(part).includes("https:");
});

const opaque = fc.string({ minLength: 1, maxLength: 12 });
const signature = opaque.map((value) => ({ providerOptions: { test: { signature: value } } }));

const chat: Omit<FormatChecks, "format" | "profile" | "kind"> = {
  key: "messages",
  alternates: false,
  read: (body) => objects(body.messages).map(readChat),
  id: /^.{1,40}$/s,
  name: /^[A-Za-z0-9_-]{1,64}$/,
  speaker: (name) => name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, 64),
};

const CHECKS: FormatChecks[] = [
  {
    ...chat,
    ...named("openai"),
    kind: {
      profile: named("openai").profile,
      media,
      callExtra: opaque.map((value) => ({ extra_content: { value } })),
    },
  },
  {
    ...chat,
    ...named("workers-ai"),
    kind: { profile: named("workers-ai").profile, media: imagesByValue },
    id: /^.+$/s,
    name: /^.*$/s,
    speaker: String,
  },
  {
    ...named("openai-responses"),
    key: "input",
    kind: {
      profile: named("openai-responses").profile,
      media,
      block: opaque.map((value) => ({ type: "web_search_call", id: value, status: "completed" })),
      callExtra: opaque.map((value) => ({ id: `fc_${value}` })),
      textExtra: fc.constantFrom({ phase: "commentary" }, { phase: "final_answer" }),
    },
    read: (body) => [
      ...(typeof body.instructions === "string" ? [said("system", [text(body.instructions)])] : []),
      ...objects(body.input).map(readItem),
    ],
    id: /^[A-Za-z0-9_-]{1,64}$/,
    name: /^[A-Za-z0-9_-]{1,64}$/,
    alternates: false,
  },
  {
    ...named("ai-sdk"),
    key: "prompt",
    kind: {
      profile: named("ai-sdk").profile,
      media,
      block: fc
        .tuple(opaque, signature)
        .map(([said, signed]) => ({ type: "reasoning", text: said, ...signed })),
      callExtra: signature,
      textExtra: signature,
    },
    read: (body) => objects(body.prompt).map(readPrompt),
    id: /^[A-Za-z0-9_-]{1,40}$/,
    name: /^[A-Za-z0-9_-]{1,64}$/,
    alternates: false,
  },
];

describe.each(CHECKS)("any history for $profile.provider", (checks) => {
  test("OPENAI-1 AISDK-3 nothing is lost, ids and names are legal, and every call has its result", () => {
    checkRequests(checks);
  });

  test("extending it keeps what was sent byte for byte", () => {
    checkExtension(checks);
  });

  test("an attachment that nobody resolved is refused by its address", () => {
    const parts: ContextPart[] = [{ type: "image", source: { url: "attachment:a1" } }];
    const context = { systemInstructions: [], tools: [], toolChoice: "auto" } as const;
    expect(() =>
      checks.format.buildRequest(checks.profile, {
        ...context,
        messages: [{ role: "user", content: "", parts }],
      }),
    ).toThrowError(
      expect.objectContaining({ code: "UNSUPPORTED", message: expect.stringContaining("attachment:") }),
    );
  });
});

function named(provider: ProviderId) {
  return { format: adapterFor(provider), profile: { provider, modelId: "model" } };
}

function objects(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

function text(value: string, extra: JsonObject = {}): SentItem {
  return { type: "text", text: value, extra };
}

function said(role: string, items: SentItem[]): SentMessage {
  return { role, items };
}

function field(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) ? value[key] : undefined;
}

function readChat(message: JsonObject): SentMessage {
  const { role, content, name, tool_call_id: callId, tool_calls: calls } = message;
  if (role === "tool") {
    return said("tool", [{ type: "result", callId: String(callId), text: String(content) }]);
  }
  return said(String(role), [
    ...(typeof name === "string" ? [text(name)] : []),
    ...(typeof content === "string" ? [text(content)] : objects(content).map(readChatPart)),
    ...objects(calls).map(
      ({ id, type: _type, function: called, ...extra }): SentItem => ({
        type: "call",
        id: String(id),
        name: String(field(called, "name")),
        arguments: JSON.parse(String(field(called, "arguments"))),
        extra,
      }),
    ),
  ]);
}

function readChatPart(part: JsonObject): SentItem {
  if (part.type === "text") return text(String(part.text));
  const source = part.type === "file" ? field(part.file, "file_data") : field(part.image_url, "url");
  return { type: "media", source: String(source) };
}

function readItem(item: JsonObject): SentMessage {
  const { type, role, content, call_id: callId } = item;
  if (type === "function_call") {
    const { name, arguments: input, call_id: _callId, type: _type, ...extra } = item;
    return said("assistant", [
      { type: "call", id: String(callId), name: String(name), arguments: JSON.parse(String(input)), extra },
    ]);
  }
  if (type === "function_call_output") {
    return said("tool", [{ type: "result", callId: String(callId), text: String(item.output) }]);
  }
  if (role === undefined) return said("assistant", [{ type: "block", value: item }]);
  const extra = item.phase === undefined ? {} : { phase: item.phase };
  if (typeof content === "string") return said(String(role), [text(content, extra)]);
  return said(
    String(role),
    objects(content).map((part) => {
      if (typeof part.text === "string") return text(part.text, extra);
      return { type: "media", source: String(part.image_url ?? part.file_data ?? part.file_url) };
    }),
  );
}

function readPrompt({ role, content }: JsonObject): SentMessage {
  if (typeof content === "string") return said(String(role), [text(content)]);
  return said(
    String(role),
    objects(content).map((part): SentItem => {
      const { type, text: value, toolCallId, toolName, input, output, data, ...extra } = part;
      switch (type) {
        case "text":
          return text(String(value), extra);
        case "file":
          return { type: "media", source: String(field(data, "url") ?? field(data, "data")) };
        case "tool-call":
          return { type: "call", id: String(toolCallId), name: String(toolName), arguments: input, extra };
        case "tool-result":
          return {
            type: "result",
            callId: String(toolCallId),
            text: String(field(output, "value")),
            failed: field(output, "type") === "error-text",
          };
        default:
          return { type: "block", value: part };
      }
    }),
  );
}
