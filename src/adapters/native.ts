/** What an earlier reply must be sent back with (NATIVE-1), and what a provider cannot express. Pure. */
import type { ContextMessage, NativePart } from "../memory/types.ts";
import { DramatisError } from "../shared/errors.ts";
import type { ModelProfile, ProviderId } from "./types.ts";

/**
 * The parts of a reply that this profile's model gave, where they still cover the message's text and calls; `undefined`
 * where the message must be built from text and calls alone.
 */
export function nativeParts(message: ContextMessage, profile: ModelProfile): NativePart[] | undefined {
  const { native, content, toolCalls = [] } = message;
  if (native === undefined) return undefined;
  if (native.provider !== profile.provider || native.modelId !== profile.modelId) return undefined;
  let length = 0;
  const calls: number[] = [];
  for (const part of native.parts) {
    if (part.type === "text") length += part.length;
    else if (part.type === "tool-call") calls.push(part.index);
  }
  const coversCalls = calls.length === toolCalls.length && calls.every((index, n) => index === n);
  return length === content.length && coversCalls ? native.parts : undefined;
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
