/**
 * Calls of one message that share an id. Pure.
 *
 * CALLIDS-1  Each call of a message gets an id of its own. The results after the message answer the calls of one id in their order.
 */
import type { ContextMessage } from "../../../model/messages.ts";

/** Gives calls that share an id within a message ids of their own. Returns the same list if no id repeats. */
export function withUniqueIds(messages: readonly ContextMessage[]): readonly ContextMessage[] {
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
