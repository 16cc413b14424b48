/**
 * The engine's messages and a model's: what a provider is told of a message, and back. Pure.
 *
 * ENGINE-1  A model's message made into one of the engine's and back is the same.
 * ENGINE-2  Nothing of a message's content is dropped: what a model's role has no words for is told as text, with a label.
 */

import type { ContextMessage, ContextPart, ToolCall } from "../model/messages.ts";
import { defined } from "../shared/defined.ts";
import type { Facts } from "../shared/json.ts";
import { type MessageMedia, type MessagePart, nativeReplyOf, partsOf } from "./message-parts.ts";
import type { ChatInputMessage } from "./provider-adapter.ts";

type PartOf<Type extends MessagePart["type"]> = Extract<MessagePart, { type: Type }>;

/** What a model is told of a message: what was said, then one message for each result of a tool. */
export function toContextMessages(message: ChatInputMessage): ContextMessage[] {
  const parts = partsOf(message.content);
  const results = parts.filter(isPart("tool-result"));
  const data = parts.filter(isPart("metadata")).map((part) => part.data);
  const saysNothing = parts.every(({ type }) => type === "tool-result" || type === "metadata");
  const { native, ...metadata } = Object.assign({}, ...data, message.metadata);
  // SAFETY: metadata is JSON, whose members are facts.
  const facts = metadata as Facts;
  const first = saysNothing ? [] : [spoken(message, parts, facts, native)];
  return [...first, ...results.map((result) => resultMessage(message, result, saysNothing ? facts : {}))];
}

/** The engine's message of a model's, without id and time. */
export function fromContextMessage(context: ContextMessage): ChatInputMessage {
  const { role, content, parts, native, name, toolCallId, toolCalls = [], metadata } = context;
  const facts: Facts = { ...metadata, ...defined({ native }) };
  const base = { role, ...defined({ name }) };
  if (role === "tool") {
    const { isSuccess, ...rest } = facts;
    const result = { type: "tool-result", id: toolCallId ?? "", name: name ?? "", result: content };
    const isError = isSuccess === false ? { isError: true } : {};
    return { ...base, content: [{ ...result, ...isError }], ...kept(isSuccess === false ? rest : facts) };
  }
  if (toolCalls.length > 0) {
    const text = content === "" ? [] : [{ type: "text", text: content }];
    const calls = toolCalls.map((call) => ({ type: "tool-call", ...call }));
    return { ...base, content: [...text, ...calls], ...kept(facts) };
  }
  return { ...base, content: parts ?? content, ...kept(facts) };
}

function spoken(
  { role, name }: ChatInputMessage,
  parts: readonly MessagePart[],
  facts: Facts,
  native: unknown,
): ContextMessage {
  const said = name === undefined ? {} : { name };
  switch (role) {
    case "user":
      return { role, ...said, ...withMedia(parts), ...kept(facts) };
    case "system":
      return { role, ...said, content: textOf(parts), ...kept(facts) };
    case "assistant": {
      const toolCalls = parts.filter(isPart("tool-call")).map(({ type: _, ...call }): ToolCall => call);
      const reply = nativeReplyOf(native);
      return {
        role,
        ...said,
        content: textOf(parts.filter(({ type }) => type !== "tool-call")),
        ...(toolCalls.length === 0 ? {} : { toolCalls }),
        ...defined({ native: reply }),
        ...kept(facts),
      };
    }
    case "tool":
    case "other": {
      // A result that names no call can stand behind none: a model takes it as something it is told.
      const label: MessagePart = { type: "text", text: `[${name === undefined ? role : `${role} ${name}`}]` };
      return { role: "user", ...withMedia([label, ...parts]), ...kept(facts) };
    }
    default:
      return role satisfies never;
  }
}

function resultMessage(
  message: ChatInputMessage,
  { id, result, isError, ...part }: PartOf<"tool-result">,
  facts: Facts,
): ContextMessage {
  const name = part.name === "" ? message.name : part.name;
  const content = typeof result === "string" ? result : (JSON.stringify(result) ?? "");
  return {
    role: "tool",
    content,
    toolCallId: id,
    ...defined({ name }),
    ...kept(isError === true ? { ...facts, isSuccess: false } : facts),
  };
}

/** What was said, as text; with the parts themselves where media are among them. */
function withMedia(parts: readonly MessagePart[]): Pick<ContextMessage, "content" | "parts"> {
  const sent = parts.flatMap((part): ContextPart[] => {
    if (isMedia(part)) return [part];
    const text = textOfPart(part);
    return text === undefined ? [] : [{ type: "text", text }];
  });
  const content = sent.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
  return sent.some(isMedia) ? { content, parts: sent } : { content };
}

function textOf(parts: readonly MessagePart[]): string {
  return parts.flatMap((part) => textOfPart(part) ?? []).join("\n\n");
}

/** A part in words; `undefined` for what is told elsewhere. */
function textOfPart(part: MessagePart): string | undefined {
  switch (part.type) {
    case "text":
      return part.text;
    case "image":
    case "file":
      return `[${part.type} ${part.name ?? ("url" in part.source ? part.source.url : (part.mediaType ?? ""))}]`;
    case "tool-call":
      return `[tool-call ${part.name}] ${JSON.stringify(part.arguments)}`;
    case "tool-result":
    case "metadata":
      return undefined;
    default:
      return part satisfies never;
  }
}

function isPart<Type extends MessagePart["type"]>(type: Type) {
  return (part: MessagePart): part is PartOf<Type> => part.type === type;
}

function isMedia(part: MessagePart | ContextPart): part is MessageMedia {
  return part.type === "image" || part.type === "file";
}

/** No metadata is absent. */
function kept<Metadata extends Record<string, unknown>>(metadata: Metadata): { metadata?: Metadata } {
  return Object.keys(metadata).length === 0 ? {} : { metadata };
}
