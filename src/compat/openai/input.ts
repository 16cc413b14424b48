/**
 * What a request of either OpenAI protocol says, in neutral words, and what it means for a conversation. Pure.
 *
 * OAI-7  The last message of the user is the turn, and everything before it history. A request that ends with results of
 *        calls that are ours goes on with the turn that made them; ids from elsewhere are history.
 */

import type { ContextMessage, ToolCall } from "../../model/messages.ts";
import { type Content, isBlank } from "../../shared/content.ts";
import { DramatisError } from "../../shared/errors.ts";
import { checkJson, isJsonObject, type JsonObject } from "../../shared/json.ts";
import { parseCallId } from "./ids.ts";

export type InputItem =
  | { type: "system"; text: string }
  | { type: "user"; content: Content }
  | { type: "assistant"; text: string; calls: ToolCall[] }
  | { type: "result"; callId: string; output: string };

/** A result of a tool that the client ran. */
export interface GivenResult {
  callId: string;
  operationId: string;
  result: string;
}

/** What a request asks for. */
export type TurnInput =
  | { type: "message"; history: ContextMessage[]; content: Content }
  | { type: "results"; conversationId: string; results: GivenResult[] };

/** Throws `INVALID_INPUT`, under the JSON pointer `path`, for items that end in nothing that can be answered. */
export function turnInput(items: readonly InputItem[], path: string): TurnInput {
  const last = items.at(-1);
  if (last?.type === "user") {
    return { type: "message", history: historyOf(items.slice(0, -1)), content: last.content };
  }
  if (last?.type !== "result") {
    throw invalidInput(path, "Must end with a message of the user, or with results of tool calls.");
  }
  return resultsOf(items.slice(items.findLastIndex(({ type }) => type !== "result") + 1), path);
}

function resultsOf(items: readonly InputItem[], path: string): TurnInput {
  const given = items.flatMap((item) => {
    if (item.type !== "result") return [];
    return [{ item, address: parseCallId(item.callId) }];
  });
  const conversations = new Set(given.map(({ address }) => address?.conversationId));
  const [conversationId] = conversations;
  if (conversationId === undefined || conversations.size > 1) {
    throw invalidInput(
      path,
      "The results at the end must all be of calls of one answer given here. Add a message of the user to have them read as history.",
    );
  }
  const results = given.flatMap(({ item: { callId, output }, address }) =>
    address === null ? [] : [{ callId, operationId: address.operationId, result: output }],
  );
  return { type: "results", conversationId, results };
}

/**
 * The items as messages for a model; calls that follow a text of the assistant stand beside it. Clients bring messages that
 * show nothing, such as an answer that was stopped before its first word: a model is not told of them.
 */
function historyOf(items: readonly InputItem[]): ContextMessage[] {
  const messages: ContextMessage[] = [];
  const names = new Map<string, string>();
  for (const item of items) {
    switch (item.type) {
      case "system":
        if (!isBlank(item.text)) messages.push({ role: "system", content: item.text });
        break;
      case "user": {
        const content = saidText(item.content);
        if (!isBlank(content)) messages.push({ role: "user", content });
        break;
      }
      case "assistant":
        for (const { id, name } of item.calls) names.set(id, name);
        addAssistant(messages, item.text, item.calls);
        break;
      case "result": {
        const name = names.get(item.callId);
        const named = name === undefined ? {} : { name };
        messages.push({ role: "tool", content: item.output, toolCallId: item.callId, ...named });
        break;
      }
      default:
        item satisfies never;
    }
  }
  return messages;
}

function addAssistant(messages: ContextMessage[], text: string, calls: ToolCall[]): void {
  if (isBlank(text) && calls.length === 0) return;
  const last = messages.at(-1);
  if (last?.role === "assistant" && text === "" && calls.length > 0) {
    last.toolCalls = [...(last.toolCalls ?? []), ...calls];
    return;
  }
  messages.push({ role: "assistant", content: text, ...(calls.length === 0 ? {} : { toolCalls: calls }) });
}

/** What the user said, media by name only: a history is text. */
function saidText(content: Content): string {
  if (typeof content === "string") return content;
  return content
    .map((part) => (part.type === "text" ? part.text : `[${part.name ?? part.type}]`))
    .join("\n\n");
}

/** A call's arguments. Throws `INVALID_INPUT` for text that is no JSON object, or one that is too deep or malformed. */
export function callArguments(text: string, path: string): JsonObject {
  const value = text.trim() === "" ? {} : parsed(text);
  if (!isJsonObject(value)) throw invalidInput(path, "Must be a JSON object.");
  try {
    checkJson(value, "The object");
  } catch (error) {
    if (error instanceof DramatisError) throw invalidInput(path, error.message);
    throw error;
  }
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parts as content: one text is as good as the text itself. */
export function contentOf(parts: Exclude<Content, string>): Content {
  const [first, ...rest] = parts;
  return first?.type === "text" && rest.length === 0 ? first.text : parts;
}

export function invalidInput(path: string, message: string): DramatisError {
  const where = path.slice(1).replaceAll("/", ".");
  return new DramatisError("INVALID_INPUT", `${where}: ${message}`, { errors: [{ path, message }] });
}
