/** Replies as items, on their way back to the model that gave them (RESPONSES-2). Pure. */

import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { type OwnPart, ownParts } from "../common/native.ts";
import { attributedParts } from "../common/speaker.ts";

/** The items of a reply; `undefined` where it has none that say more than its text and calls. */
export function nativeItems(
  message: ContextMessage,
  profile: ModelProfile,
  toCall: (call: ToolCall) => JsonObject,
): JsonObject[] | undefined {
  const own = ownParts(message, profile);
  if (own === undefined) return undefined;
  const parts = canReturn(own, isStored(profile)) ? own : own.flatMap(alone);
  const items: JsonObject[] = [];
  for (const part of attributedParts(message.name, parts)) {
    if (part.type === "text") addText(items, part.text, part.extra);
    else items.push(part.type === "block" ? part.value : { ...part.extra, ...toCall(part.call) });
  }
  // The API refuses reasoning that nothing of its reply follows.
  while (items.at(-1)?.type === "reasoning") items.pop();
  return items.length === 0 ? undefined : items;
}

/** A part without what only its whole reply gives a meaning to. */
function alone(part: OwnPart): OwnPart[] {
  if (part.type === "block") return [];
  const { phase, namespace } = part.extra;
  const extra = {
    ...defined({ phase, namespace }),
  };
  return [{ ...part, extra }];
}

/** Whether a reply has a built-in tool's call that waits for an answer of whoever called the model. */
export function isWaiting(items: readonly JsonObject[]): boolean {
  return items.some((item) => {
    if (item.type === "mcp_approval_request") return true;
    const { type, call_id: id } = item;
    if (typeof type !== "string" || !type.endsWith("_call") || type === "function_call") return false;
    if (typeof id !== "string") return false;
    return items.every((other) => other.call_id !== id || other.type !== `${type}_output`);
  });
}

/** Without the parameter the provider stores what it sees, by its own default. */
function isStored({ parameters }: ModelProfile): boolean {
  return parameters?.store === true || parameters?.store === null;
}

function canReturn(parts: readonly OwnPart[], stored: boolean): boolean {
  const blocks = parts.flatMap((part) => (part.type === "block" ? [part.value] : []));
  const isOpaque = ({ type, encrypted_content: content }: JsonObject) =>
    type === "reasoning" && typeof content !== "string";
  return !isWaiting(blocks) && (stored || !blocks.some(isOpaque));
}

/** Pieces of one message of the reply, which its id tells, are one item. */
function addText(items: JsonObject[], text: string, { id, phase, refusal }: JsonObject): void {
  const piece: JsonObject =
    refusal === true ? { type: "refusal", refusal: text } : { type: "output_text", text, annotations: [] };
  const last = items.at(-1);
  if (id !== undefined && last?.id === id && Array.isArray(last.content)) {
    last.content = [...last.content, piece];
    return;
  }
  const said =
    id === undefined ? { content: text } : { type: "message", id, status: "completed", content: [piece] };
  items.push({ role: "assistant", ...said, ...defined({ phase }) });
}
