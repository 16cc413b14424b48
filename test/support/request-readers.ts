/** Reads the requests of all providers into one form, for the format checks. */
import { expect } from "vitest";
import type { ProviderId } from "../../src/model/profile.ts";
import { isJsonObject, type Json, type JsonObject } from "../../src/shared/json.ts";

/** An item of a message. A speaker's name in a separate field is a text before the others. */
export type SentItem =
  | { type: "text"; text: string; extra?: JsonObject }
  /** The URL of a medium, or its base64 data. */
  | { type: "media"; source: string }
  | { type: "call"; id: string; name: string; arguments: unknown; extra?: JsonObject }
  /** `failed` is absent if the format has no field for it. */
  | { type: "result"; callId: string; text: string; failed?: boolean }
  | { type: "block"; value: unknown };

export interface SentMessage {
  role: string;
  items: SentItem[];
}

/** Returns the content of a body in order. Its instructions are first, as a message of the role `system`. */
export function readRequest(provider: ProviderId, body: JsonObject): SentMessage[] {
  switch (provider) {
    case "openai":
    case "workers-ai":
      return objects(body.messages).map(readChatMessage);
    case "openai-responses":
      return [...instructions(body.instructions), ...objects(body.input).map(readItem)];
    case "anthropic":
      return [...instructions(body.system), ...objects(body.messages).map(readAnthropic)];
    case "gemini":
      return [
        { role: "system", items: objects(field(body.systemInstruction, "parts")).map(readGeminiPart) },
        ...objects(body.contents).map(readGemini),
      ];
    case "ai-sdk":
      return readPrompt(objects(body.prompt));
    case "offline":
      return objects(body.messages).map(readOffline);
    default:
      throw new Error(`Add the provider "${provider satisfies never}" to this list.`);
  }
}

function instructions(given: Json | undefined): SentMessage[] {
  return typeof given === "string" ? [sentMessage("system", [text(given)])] : [];
}

function objects(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

function text(value: string, extra: JsonObject = {}): SentItem {
  return { type: "text", text: value, extra };
}

function sentMessage(role: string, items: SentItem[]): SentMessage {
  return { role, items };
}

function field(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) ? value[key] : undefined;
}

function readChatMessage(message: JsonObject): SentMessage {
  const { role, content, name, tool_call_id: callId, tool_calls: calls } = message;
  if (role === "tool") {
    return sentMessage("tool", [{ type: "result", callId: String(callId), text: String(content) }]);
  }
  return sentMessage(String(role), [
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
    return sentMessage("assistant", [
      { type: "call", id: String(callId), name: String(name), arguments: JSON.parse(String(input)), extra },
    ]);
  }
  if (type === "function_call_output") {
    return sentMessage("tool", [{ type: "result", callId: String(callId), text: String(item.output) }]);
  }
  if (role === undefined) return sentMessage("assistant", [{ type: "block", value: item }]);
  const extra = item.phase === undefined ? {} : { phase: item.phase };
  if (typeof content === "string") return sentMessage(String(role), [text(content, extra)]);
  return sentMessage(
    String(role),
    objects(content).map((part) => {
      if (typeof part.text === "string") return text(part.text, extra);
      return { type: "media", source: String(part.image_url ?? part.file_data ?? part.file_url) };
    }),
  );
}

/** Results and the user's text after them are one turn. Results come in one message. Blank texts need a signature. */
function readPrompt(prompt: readonly JsonObject[]): SentMessage[] {
  const sent: SentMessage[] = [];
  prompt.forEach((message, index) => {
    const { role, items } = readPromptMessage(message);
    if (role === "system") expect(index).toBe(0);
    expect(items).not.toEqual([]);
    for (const item of items) if (item.type === "text") expect(item.text.trim()).not.toBe("");
    const follows = role === "user" && prompt[index - 1]?.role === "tool";
    if (follows) sent.at(-1)?.items.push(...items);
    else sent.push(sentMessage(role === "tool" ? "user" : role, items));
  });
  return sent;
}

function readPromptMessage({ role, content }: JsonObject): SentMessage {
  if (typeof content === "string") return sentMessage(String(role), [text(content)]);
  return sentMessage(
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

function readAnthropic({ role, content }: JsonObject): SentMessage {
  return sentMessage(String(role), objects(content).map(readBlock));
}

function readBlock(block: JsonObject): SentItem {
  const { type, ...rest } = block;
  switch (type) {
    case "text": {
      const { text, ...extra } = rest;
      expect(String(text).trim()).not.toBe("");
      return { type: "text", text: String(text), extra };
    }
    case "image":
    case "document": {
      const source = isJsonObject(rest.source) ? rest.source : {};
      return { type: "media", source: String(source.data ?? source.url) };
    }
    case "tool_use": {
      const { id, name, input, ...extra } = rest;
      return { type: "call", id: String(id), name: String(name), arguments: input, extra };
    }
    case "tool_result":
      return {
        type: "result",
        callId: String(rest.tool_use_id),
        text: String(rest.content ?? ""),
        failed: rest.is_error === true,
      };
    default:
      return { type: "block", value: block };
  }
}

function readGemini({ role, parts }: JsonObject): SentMessage {
  return sentMessage(role === "model" ? "assistant" : String(role), objects(parts).map(readGeminiPart));
}

function readGeminiPart(part: JsonObject): SentItem {
  const { text, inlineData, fileData, functionCall, functionResponse, ...extra } = part;
  const medium = inlineData ?? fileData;
  if (isJsonObject(medium)) return { type: "media", source: String(medium.data ?? medium.fileUri) };
  if (isJsonObject(functionCall)) {
    const { id, name, args } = functionCall;
    return { type: "call", id: String(id), name: String(name), arguments: args, extra };
  }
  if (isJsonObject(functionResponse)) {
    const response = isJsonObject(functionResponse.response) ? functionResponse.response : {};
    return {
      type: "result",
      callId: String(functionResponse.id),
      text: String(response.output ?? response.error),
      failed: "error" in response,
    };
  }
  if (typeof text !== "string" || extra.thought === true) return { type: "block", value: part };
  if (text === "") expect(extra).toHaveProperty("thoughtSignature");
  return { type: "text", text, extra };
}

function readOffline(message: JsonObject): SentMessage {
  const { role, text: content, name, calls, callId, failed } = message;
  if (role === "tool") {
    const result = { callId: String(callId), text: String(content), failed: failed === true };
    return sentMessage("tool", [{ type: "result", ...result }]);
  }
  return sentMessage(String(role), [
    ...(typeof name === "string" ? [text(name)] : []),
    text(String(content)),
    ...objects(calls).map((call): SentItem => {
      return { type: "call", id: String(call.id), name: String(call.name), arguments: call.input };
    }),
  ]);
}
