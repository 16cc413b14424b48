/**
 * Converts between the engine's messages and the messages of a model's context. Pure.
 *
 * ENGINE-1  A context message converted to an engine message and back is equal.
 * ENGINE-2  All content is kept: content that the model's role cannot carry is sent as labelled text.
 */
import type { ContextMessage, ContextPart, ToolCall } from "../model/messages.ts";
import { defined } from "../shared/defined.ts";
import type { Facts } from "../shared/json.ts";
import { asNativeReply, type MessageMedia, type MessagePart, partsOf } from "./message-parts.ts";
import type { ChatInputMessage } from "./provider-adapter.ts";

type PartOf<Type extends MessagePart["type"]> = Extract<MessagePart, { type: Type }>;

/**
 * Converts a message for a model: one context message for its content, then one for each tool result in it.
 *
 * @example toContextMessages({ role: "user", content: "Hi" }) // [{ role: "user", content: "Hi" }]
 */
export function toContextMessages(message: ChatInputMessage): ContextMessage[] {
  const parts = partsOf(message.content);
  const results = parts.filter(isPart("tool-result"));
  const data = parts.filter(isPart("metadata")).map((part) => part.data);
  const isSilent = parts.every(({ type }) => type === "tool-result" || type === "metadata");
  const { native, ...metadata } = Object.assign({}, ...data, message.metadata);
  // SAFETY: metadata is JSON, whose members are facts.
  const facts = metadata as Facts;
  const first = isSilent ? [] : [contentMessage(message, parts, facts, native)];
  return [...first, ...results.map((result) => resultMessage(message, result, isSilent ? facts : {}))];
}

/**
 * Converts a context message into one of the engine's, without id and time.
 *
 * @example fromContextMessage({ role: "user", content: "Hi" }) // { role: "user", content: "Hi" }
 */
export function fromContextMessage(context: ContextMessage): ChatInputMessage {
  const { role, content, parts, native, name, toolCallId, toolCalls = [], metadata } = context;
  const facts: Facts = { ...metadata, ...defined({ native }) };
  const base = { role, ...defined({ name }) };
  if (role === "tool") {
    const { isSuccess, ...rest } = facts;
    const result = { type: "tool-result", id: toolCallId ?? "", name: name ?? "", result: content };
    if (isSuccess !== false) return { ...base, content: [result], ...asMetadata(facts) };
    return { ...base, content: [{ ...result, isError: true }], ...asMetadata(rest) };
  }
  if (toolCalls.length > 0) {
    const text = content === "" ? [] : [{ type: "text", text: content }];
    const calls = toolCalls.map((call) => ({ type: "tool-call", ...call }));
    return { ...base, content: [...text, ...calls], ...asMetadata(facts) };
  }
  return { ...base, content: parts ?? content, ...asMetadata(facts) };
}

function contentMessage(
  { role, name }: ChatInputMessage,
  parts: readonly MessagePart[],
  facts: Facts,
  native: unknown,
): ContextMessage {
  const metadata = asMetadata(facts);
  switch (role) {
    case "user":
      return { role, ...defined({ name }), ...withMedia(parts), ...metadata };
    case "system":
      return { role, ...defined({ name }), content: textOf(parts), ...metadata };
    case "assistant": {
      const toolCalls = parts.filter(isPart("tool-call")).map(({ type: _, ...call }): ToolCall => call);
      return {
        role,
        content: textOf(parts.filter(({ type }) => type !== "tool-call")),
        ...(toolCalls.length === 0 ? {} : { toolCalls }),
        ...defined({ name, native: asNativeReply(native) }),
        ...metadata,
      };
    }
    case "tool":
    case "other": {
      // Without a call to follow, a tool's message can only be sent as a user's.
      const label: MessagePart = { type: "text", text: `[${name === undefined ? role : `${role} ${name}`}]` };
      return { role: "user", ...withMedia([label, ...parts]), ...metadata };
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
  const metadata = asMetadata(isError === true ? { ...facts, isSuccess: false } : facts);
  return { role: "tool", content, toolCallId: id, ...defined({ name }), ...metadata };
}

/** Returns parts as text, and as parts too if there are media among them. */
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

/** Returns a part as text. Results and metadata have no text: they are sent elsewhere or not at all. */
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

/** Wraps metadata, and leaves it out if it is empty. */
function asMetadata<Metadata extends Record<string, unknown>>(metadata: Metadata): { metadata?: Metadata } {
  return Object.keys(metadata).length === 0 ? {} : { metadata };
}
