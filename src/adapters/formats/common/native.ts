/**
 * Native replies: which replies keep the parts that their provider gave, and which of them go back in these parts
 * (NATIVE-1). The rule is the same for all formats. Pure.
 */
import type { ContextMessage, NativePart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { ModelDelta } from "../../../model/reply.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { isBlank, isSigned } from "./blank.ts";
import { jsonOf } from "./json.ts";
import { attributed } from "./turns.ts";

/**
 * Reports the parts of a complete reply if they carry more than its text followed by its calls: a block, a key of a text or a call, or a
 * text after a call. Keys in `ignored` and keys without a value do not count.
 */
export function nativeDeltas(parts: NativePart[], ignored: readonly string[] = []): ModelDelta[] {
  const firstCall = parts.findIndex(({ type }) => type === "tool-call");
  const isNeeded = parts.some((part, index) => {
    if (part.type === "block") return true;
    const extra = Object.entries(part.extra ?? {});
    if (extra.some(([key, value]) => value !== null && !ignored.includes(key))) return true;
    return part.type === "text" && firstCall >= 0 && index > firstCall;
  });
  return isNeeded ? [{ type: "native", parts }] : [];
}

/** A native part with its text or its call. `extra` may be empty. */
export type NativeReplyPart =
  | { type: "text"; text: string; extra: JsonObject }
  | { type: "tool-call"; call: ToolCall; extra: JsonObject }
  | { type: "block"; value: JsonObject };

/**
 * Returns the native parts of a reply without blank texts, if this profile's model gave them and they still cover the message's text and
 * calls. Returns `undefined` if the message must be built from text and calls alone.
 */
export function nativeParts(message: ContextMessage, profile: ModelProfile): NativeReplyPart[] | undefined {
  const { native, content, toolCalls = [] } = message;
  if (native?.provider !== profile.provider || native.modelId !== profile.modelId) return undefined;
  const parts: NativeReplyPart[] = [];
  let read = 0;
  let called = 0;
  for (const part of native.parts) {
    if (part.type === "block") {
      parts.push({ type: "block", value: jsonOf(part.value) });
      continue;
    }
    const extra = jsonOf(part.extra ?? {});
    if (part.type === "text") {
      const text = content.slice(read, read + part.length);
      if (!isBlank(text) || isSigned(extra)) parts.push({ type: "text", text, extra });
      read += part.length;
      continue;
    }
    const call = toolCalls[called];
    if (part.index !== called || call === undefined) return undefined;
    called += 1;
    parts.push({ type: "tool-call", call, extra });
  }
  return read === content.length && called === toolCalls.length ? parts : undefined;
}

export function nativeContent(
  parts: readonly NativeReplyPart[],
  toCall: (call: ToolCall) => JsonObject,
  toText: (text: string, extra: JsonObject) => JsonObject,
): JsonObject[] {
  return parts.map((part) => {
    if (part.type === "block") return part.value;
    return part.type === "text" ? toText(part.text, part.extra) : { ...toCall(part.call), ...part.extra };
  });
}

/** Writes the speaker before the first text that is not blank. */
export function attributedParts(
  name: string | undefined,
  parts: readonly NativeReplyPart[],
): NativeReplyPart[] {
  const first = parts.findIndex((part) => part.type === "text" && !isBlank(part.text));
  return parts.map((part, index) => {
    return index === first && part.type === "text" ? { ...part, text: attributed(name, part.text) } : part;
  });
}
