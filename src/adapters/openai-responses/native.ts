/** Replies as items, on their way back to the model that gave them (RESPONSES-2). Pure. */
import type { ContextMessage, Facts, NativePart, ToolCall } from "../../memory/types.ts";
import { isJson, isJsonObject, type JsonObject } from "../../shared/json.ts";
import { nativeParts } from "../native.ts";
import { attributed } from "../speaker.ts";
import type { ModelProfile } from "../types.ts";

/** The items of a reply; `undefined` where it has none that say more than its text and calls. */
export function nativeItems(
  message: ContextMessage,
  profile: ModelProfile,
  toCall: (call: ToolCall) => JsonObject,
): JsonObject[] | undefined {
  const given = nativeParts(message, profile);
  if (given === undefined) return undefined;
  const parts = canReturn(given, isStored(profile)) ? given : given.flatMap(alone);
  const items: JsonObject[] = [];
  let offset = 0;
  for (const part of parts) {
    switch (part.type) {
      case "text": {
        const said = message.content.slice(offset, offset + part.length);
        const text = offset === 0 ? attributed(message.name, said) : said;
        offset += part.length;
        addText(items, text, toObject(part.extra));
        break;
      }
      case "tool-call": {
        const call = message.toolCalls?.[part.index];
        if (call !== undefined) items.push({ ...toObject(part.extra), ...toCall(call) });
        break;
      }
      case "block":
        items.push(toObject(part.value));
        break;
      default:
        part satisfies never;
    }
  }
  return items.length === 0 ? undefined : items;
}

/** A part without what only its whole reply gives a meaning to. */
function alone(part: NativePart): NativePart[] {
  if (part.type === "block") return [];
  const { phase, namespace } = toObject(part.extra);
  const extra = {
    ...(phase === undefined ? {} : { phase }),
    ...(namespace === undefined ? {} : { namespace }),
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

function canReturn(parts: readonly NativePart[], stored: boolean): boolean {
  const blocks = parts.flatMap((part) => (part.type === "block" ? [toObject(part.value)] : []));
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
  items.push({ role: "assistant", ...said, ...(phase === undefined ? {} : { phase }) });
}

function toObject(facts: Facts | undefined): JsonObject {
  return isJson(facts) && isJsonObject(facts) ? facts : {};
}
