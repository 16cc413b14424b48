/**
 * The first and the last step of every format: messages with sound calls, and a request with well-formed texts.
 *
 * UNICODE-1  Each lone surrogate in a request becomes U+FFFD: in values and in names of members, at any depth. Arguments of calls that a
 *            format sends as JSON text have no escapes of lone surrogates. The gateway does the same for requests that no format has built.
 */
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { type JsonObject, wellFormed } from "../../../shared/json.ts";
import { carryCalls } from "./names.ts";
import { withUniqueIds } from "./repeated-ids.ts";

/** Returns the format with well-formed texts and sound calls in its requests. */
export function wellFormedFormat(format: FormatAdapter): FormatAdapter {
  return {
    ...format,
    buildRequest: (profile, context) =>
      sound(format.buildRequest(profile, { ...context, messages: soundMessages(context.messages) })),
    extend: (profile, request, messages) => sound(format.extend(profile, request, soundMessages(messages))),
    choose: (...args) => sound(format.choose(...args)),
  };
}

/** Repairs messages before a format writes arguments as JSON text. JSON text hides a lone surrogate behind an escape. */
function soundMessages(messages: readonly ContextMessage[]): readonly ContextMessage[] {
  return withUniqueIds(wellFormed(messages));
}

function sound(request: JsonObject): JsonObject {
  return carryCalls(request, wellFormed(request));
}
