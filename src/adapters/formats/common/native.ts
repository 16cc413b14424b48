/** What an earlier reply must be sent back with (NATIVE-1), and what a provider cannot express. Pure. */
import type { ContextMessage, NativePart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile, ProviderId } from "../../../model/profile.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { jsonOf } from "./request.ts";

/** A part of a reply with the text or the call that it points to. `extra` is empty where there is none. */
export type OwnPart =
  | { type: "text"; text: string; extra: JsonObject }
  | { type: "tool-call"; call: ToolCall; extra: JsonObject }
  | { type: "block"; value: JsonObject };

/**
 * The parts of a reply that this profile's model gave, where they still cover the message's text and calls; `undefined`
 * where the message must be built from text and calls alone.
 */
export function ownParts(message: ContextMessage, profile: ModelProfile): OwnPart[] | undefined {
  const { native, content, toolCalls = [] } = message;
  if (native === undefined) return undefined;
  if (native.provider !== profile.provider || native.modelId !== profile.modelId) return undefined;
  const rest = [...toolCalls];
  const parts: OwnPart[] = [];
  let read = 0;
  for (const part of native.parts) {
    if (part.type === "block") {
      parts.push({ type: "block", value: jsonOf(part.value) });
      continue;
    }
    const extra = jsonOf(part.extra ?? {});
    if (part.type === "text") {
      parts.push({ type: "text", text: content.slice(read, read + part.length), extra });
      read += part.length;
      continue;
    }
    const call = part.index === toolCalls.length - rest.length ? rest.shift() : undefined;
    if (call === undefined) return undefined;
    parts.push({ type: "tool-call", call, extra });
  }
  return read === content.length && rest.length === 0 ? parts : undefined;
}

/** Whether a reply must go back in its own parts: it has more than texts, and calls behind them. */
export function needsNative(parts: readonly NativePart[]): boolean {
  const firstCall = parts.findIndex(({ type }) => type === "tool-call");
  return parts.some((part, index) => {
    if (part.type === "block" || part.extra !== undefined) return true;
    return part.type === "text" && firstCall >= 0 && index > firstCall;
  });
}

/** The error for what a provider's format has no words for; `what` completes "… cannot take". */
export function unsupported(provider: ProviderId, what: string): DramatisError {
  return new DramatisError("UNSUPPORTED", `The provider "${provider}" cannot take ${what}.`);
}
