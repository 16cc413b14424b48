/**
 * Which tool results answer which request. Pure.
 *
 * PAIR-1  A result answers the newest request before it that still waits for its id; a later request takes an id over.
 */
import type { ContextMessage } from "../../model/messages.ts";

/** For each request, by index: the indexes of its results, and whether one that is missing may still come. */
export type Pairs = ReadonlyMap<number, { results: readonly number[]; isOpen: boolean }>;

/** The requests among messages (`null` where an event has none) and what answers them. */
export function pairsOf(messages: readonly (ContextMessage | null)[]): Pairs {
  const pairs = new Map<number, { results: number[]; isOpen: boolean }>();
  const waiting = new Map<string, number[]>();
  messages.forEach((message, index) => {
    if (message === null) return;
    if (message.role === "tool") {
      const request = waiting.get(message.toolCallId ?? "")?.pop();
      if (request !== undefined) pairs.get(request)?.results.push(index);
    } else if (isRequest(message)) {
      pairs.set(index, { results: [], isOpen: false });
      // Ids are unique within a message only: a later request takes an id over from one that was never answered.
      for (const call of message.toolCalls) waiting.set(call.id, []);
      for (const call of message.toolCalls) waiting.get(call.id)?.push(index);
    }
  });
  for (const request of [...waiting.values()].flat()) {
    const pair = pairs.get(request);
    if (pair !== undefined) pair.isOpen = true;
  }
  return pairs;
}

/** The indexes in an order every provider accepts: each request directly with all of its results, or neither. */
export function pairedOrder(messages: readonly ContextMessage[]): number[] {
  const pairs = pairsOf(messages);
  return messages.flatMap((message, index) => {
    if (message.role === "tool") return [];
    if (!isRequest(message)) return [index];
    const results = pairs.get(index)?.results ?? [];
    return results.length === message.toolCalls.length ? [index, ...results] : [];
  });
}

/** The messages in that order. */
export function pairedMessages(messages: readonly ContextMessage[]): ContextMessage[] {
  return pairedOrder(messages).flatMap((index) => messages[index] ?? []);
}

type Request = ContextMessage & Required<Pick<ContextMessage, "toolCalls">>;

function isRequest(message: ContextMessage): message is Request {
  return message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0;
}
