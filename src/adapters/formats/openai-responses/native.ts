/** Replies as items, on their way back to the model that gave them (RESPONSES-2). Pure. */
import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { attributedParts, type NativeReplyPart, nativeParts } from "../common/native.ts";

/** Returns the native items of a reply, if they can be sent back. */
export function nativeItems(
  message: ContextMessage,
  profile: ModelProfile,
  toCall: (call: ToolCall) => JsonObject,
): JsonObject[] | undefined {
  const own = nativeParts(message, profile);
  if (own === undefined) return undefined;
  const parts = canReturn(own, isStored(profile)) ? own : own.flatMap(withoutItem);
  const items: JsonObject[] = [];
  for (const part of attributedParts(message.name, parts)) {
    if (part.type === "text") addText(items, part.text, part.extra);
    else items.push(part.type === "block" ? part.value : { ...part.extra, ...toCall(part.call) });
  }
  // The API refuses reasoning without an item of its reply behind it.
  while (items.at(-1)?.type === "reasoning") items.pop();
  return items.length === 0 ? undefined : items;
}

/** Reports whether a reply has a built-in tool's call that waits for an answer from the caller of the model. */
export function isWaiting(items: readonly JsonObject[]): boolean {
  return items.some(({ type, call_id: id }) => {
    if (type === "mcp_approval_request") return true;
    if (typeof type !== "string" || !type.endsWith("_call") || type === "function_call") return false;
    if (typeof id !== "string") return false;
    return items.every((other) => other.call_id !== id || other.type !== `${type}_output`);
  });
}

/** Reports whether the provider stores replies. Without the parameter it does, by its own default. */
export function isStored({ parameters }: ModelProfile): boolean {
  return parameters?.store === true || parameters?.store === null;
}

function canReturn(parts: readonly NativeReplyPart[], stored: boolean): boolean {
  const blocks = parts.flatMap((part) => (part.type === "block" ? [part.value] : []));
  const isReadable = ({ type, encrypted_content: content }: JsonObject) =>
    type !== "reasoning" || typeof content === "string";
  return !isWaiting(blocks) && (stored || blocks.every(isReadable));
}

/** Removes blocks, ids and other keys that have no meaning without the whole reply. */
function withoutItem(part: NativeReplyPart): NativeReplyPart[] {
  if (part.type === "block") return [];
  const { phase, namespace } = part.extra;
  return [{ ...part, extra: { ...defined({ phase, namespace }) } }];
}

/** Joins texts with the same id: they are pieces of one message. */
function addText(items: JsonObject[], text: string, { id, phase, refusal }: JsonObject): void {
  const piece: JsonObject =
    refusal === true ? { type: "refusal", refusal: text } : { type: "output_text", text, annotations: [] };
  const last = items.at(-1);
  if (id !== undefined && last?.id === id && Array.isArray(last.content)) {
    last.content = [...last.content, piece];
    return;
  }
  const message =
    id === undefined ? { content: text } : { type: "message", id, status: "completed", content: [piece] };
  items.push({ role: "assistant", ...message, ...defined({ phase }) });
}
