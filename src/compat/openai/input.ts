/**
 * The input of a request of either OpenAI protocol in a common form, and the turn that it starts or continues. Pure.
 *
 * OAI-7  The last message of the user is the turn, and everything before it is history. A request that ends with results
 *        of our calls continues the turn that made them. Calls with foreign ids are history.
 * OAI-13  Each result in a request answers an earlier call that has no other result. Results of our own calls at the end are the exception:
 *         they need no call before them.
 */
import type { ContextMessage, ToolCall } from "../../model/messages.ts";
import type { ToolSubmission } from "../../protocol/requests.ts";
import { type Content, isBlank } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, invalid } from "../../shared/errors.ts";
import { checkJson, isJson, isJsonObject, type JsonObject, parseJsonText } from "../../shared/json.ts";
import { shorten } from "../../shared/text.ts";
import { parseCallId } from "./ids.ts";

/** Length of an id in an error. */
const MAX_ID_QUOTE = 100;

export type InputItem =
  | { type: "system"; text: string }
  | { type: "user"; content: Content }
  | { type: "assistant"; text: string; calls: ToolCall[] }
  | ResultItem;

interface ResultItem {
  type: "result";
  callId: string;
  output: string;
  /** JSON pointer of the call's id in the request. */
  path: string;
}

export interface MessageInput {
  type: "message";
  history: ContextMessage[];
  content: Content;
}

/** Results of tools that the client ran. */
export interface ResultsInput {
  type: "results";
  conversationId: string;
  results: ToolSubmission[];
}

/**
 * Returns the turn that the items start or continue. Throws `INVALID_INPUT`, at the JSON pointer `path`, unless they end with a
 * message of the user or with results.
 */
export function turnInput(items: readonly InputItem[], path: string): MessageInput | ResultsInput {
  checkResults(items);
  const last = items.at(-1);
  if (last?.type === "user")
    return { type: "message", history: historyOf(items.slice(0, -1)), content: last.content };
  if (last?.type !== "result")
    throw invalidInput(path, "Must end with a message of the user, or with results of tool calls.");
  const results = items.slice(items.findLastIndex(({ type }) => type !== "result") + 1);
  return resultsInput(results.filter((item) => item.type === "result"));
}

/** Throws `INVALID_INPUT` for a result without its call (OAI-13). */
function checkResults(items: readonly InputItem[]): void {
  const open = new Set<string>();
  const end = items.findLastIndex(({ type }) => type !== "result");
  items.forEach((item, index) => {
    if (item.type === "assistant") for (const { id } of item.calls) open.add(id);
    if (item.type !== "result" || open.delete(item.callId)) return;
    if (index > end && parseCallId(item.callId) !== null) return;
    const id = JSON.stringify(shorten(item.callId, MAX_ID_QUOTE));
    throw invalidInput(item.path, `No earlier call has the id ${id} and waits for a result.`);
  });
}

function resultsInput(items: readonly ResultItem[]): ResultsInput {
  const results: ToolSubmission[] = [];
  let conversationId: string | undefined;
  for (const { callId, output, path } of items) {
    const address = parseCallId(callId);
    conversationId ??= address?.conversationId;
    if (address === null || address.conversationId !== conversationId) {
      throw invalidInput(
        path,
        "The results at the end must belong to calls of one answer of this server. To send them as history, add a message of the user.",
      );
    }
    results.push({ operationId: address.operationId, result: output });
  }
  return { type: "results", conversationId: conversationId ?? "", results };
}

/** Converts the items to messages for a model. Blank messages, such as a stopped answer, are omitted. */
function historyOf(items: readonly InputItem[]): ContextMessage[] {
  const messages: ContextMessage[] = [];
  const toolNames = new Map<string, string>();
  for (const item of items) {
    switch (item.type) {
      case "system":
        if (!isBlank(item.text)) messages.push({ role: "system", content: item.text });
        break;
      case "user": {
        const content = contentText(item.content);
        if (!isBlank(content)) messages.push({ role: "user", content });
        break;
      }
      case "assistant":
        for (const { id, name } of item.calls) toolNames.set(id, name);
        addAssistant(messages, item.text, item.calls);
        break;
      case "result": {
        const { callId: toolCallId, output: content } = item;
        const name = toolNames.get(toolCallId);
        messages.push({ role: "tool", content, toolCallId, ...defined({ name }) });
        break;
      }
      default:
        item satisfies never;
    }
  }
  return messages;
}

/** Adds a message of the assistant. Calls without text join the message before. */
function addAssistant(messages: ContextMessage[], text: string, calls: ToolCall[]): void {
  if (isBlank(text) && calls.length === 0) return;
  const last = messages.at(-1);
  if (last?.role === "assistant" && text === "" && calls.length > 0) {
    last.toolCalls = [...(last.toolCalls ?? []), ...calls];
    return;
  }
  messages.push({ role: "assistant", content: text, ...(calls.length === 0 ? {} : { toolCalls: calls }) });
}

/** Returns the text of a message in a history, or of a result of a tool. These are text, so media are named only. */
export function contentText(content: Content): string {
  if (typeof content === "string") return content;
  return content
    .map((part) => (part.type === "text" ? part.text : `[${part.name ?? part.type}]`))
    .join("\n\n");
}

/**
 * Parses the arguments of a call; blank text and `null` mean no arguments. Throws `INVALID_INPUT` unless they are a JSON object within the
 * limits of JSON.
 */
export function callArguments(text: string, path: string): JsonObject {
  try {
    const value = text.trim() === "" ? {} : (parseJsonText(text, "The text") ?? {});
    checkJson(value, "The object");
    if (isJsonObject(value) && isJson(value)) return value;
  } catch (error) {
    if (error instanceof DramatisError) throw invalidInput(path, error.message);
    throw error;
  }
  throw invalidInput(path, "Must be a JSON object, with numbers within the range of a double.");
}

export function invalidInput(path: string, message: string): DramatisError {
  const where = path.slice(1).replaceAll("/", ".");
  return invalid(`${where}: ${message}`, { errors: [{ path, message }] });
}
