/**
 * The first and the last step of every format: messages with sound calls, and a request with well-formed texts.
 *
 * UNICODE-1  Each lone surrogate in a request becomes U+FFFD: in values and in names of members, at any depth. Arguments of calls that a
 *            format sends as JSON text have no escapes of lone surrogates. The gateway does the same for requests that no format has built.
 * CALLIDS-1  Each call of a message gets an id of its own. The results after the message answer the calls of one id in their order.
 */
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { type JsonObject, wellFormed } from "../../../shared/json.ts";
import { carryCalls } from "./names.ts";

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

/** Gives calls that share an id within a message ids of their own. Returns the same list if no id repeats. */
function withUniqueIds(messages: readonly ContextMessage[]): readonly ContextMessage[] {
  if (!messages.some(repeatsId)) return messages;
  let waiting = new Map<string, string[]>();
  return messages.map((message) => {
    const { role, toolCalls = [], toolCallId = "" } = message;
    if (role === "tool") {
      const id = waiting.get(toolCallId)?.shift();
      return id === undefined ? message : { ...message, toolCallId: id };
    }
    waiting = new Map();
    if (!repeatsId(message)) return message;
    const used = new Set(toolCalls.map(({ id }) => id));
    const calls = toolCalls.map((call) => {
      const earlier = waiting.get(call.id);
      const id = earlier === undefined ? call.id : unusedId(call.id, used);
      waiting.set(call.id, [...(earlier ?? []), id]);
      return { ...call, id };
    });
    return { ...message, toolCalls: calls };
  });
}

function repeatsId({ toolCalls = [] }: ContextMessage): boolean {
  return new Set(toolCalls.map(({ id }) => id)).size < toolCalls.length;
}

function unusedId(given: string, used: Set<string>): string {
  for (let suffix = 2; ; suffix++) {
    const id = `${given}_${suffix}`;
    if (used.has(id)) continue;
    used.add(id);
    return id;
  }
}
