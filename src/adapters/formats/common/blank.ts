/**
 * Texts without a visible character, in requests to all providers. Pure.
 *
 * BLANK-1  No blank text is sent: some providers refuse it. A message without text, media and calls is left out; the
 *          result of a call never is. A request without messages, or with silent messages only, has the user's turn
 *          `(no message)`.
 * BLANK-2  A blank text that its model signed is sent back to that model, because Google's models require it.
 */
import type { ContextMessage, ContextPart } from "../../../model/messages.ts";
import { type Facts, isJsonObject, type JsonObject } from "../../../shared/json.ts";

/** Text of a user's turn that the provider requires but the conversation lacks. */
export const NO_MESSAGE = "(no message)";

/** Reports whether a text has no visible character. */
export function isBlank(text: string): boolean {
  return text.trim() === "";
}

export function shownParts({
  content,
  parts = [{ type: "text", text: content }],
}: ContextMessage): ContextPart[] {
  return parts.filter((part) => part.type !== "text" || !isBlank(part.text));
}

/** Reports whether a message is empty for a provider (BLANK-1). */
export function isSilent(message: ContextMessage): boolean {
  const { role, toolCalls = [] } = message;
  return role !== "tool" && toolCalls.length === 0 && shownParts(message).length === 0;
}

/** Returns the messages that are sent; `opening` if the list is empty. */
export function orOpening(sent: JsonObject[], opening: JsonObject): JsonObject[] {
  return sent.length === 0 ? [opening] : sent;
}

/** Reports whether a blank text of a native reply is sent back (BLANK-2). `extra` are its further members. */
export function isSigned({ thoughtSignature, providerOptions }: Facts): boolean {
  if (thoughtSignature !== undefined) return true;
  const options = isJsonObject(providerOptions) ? Object.values(providerOptions) : [];
  return options.some((option) => isJsonObject(option) && option.thoughtSignature !== undefined);
}
