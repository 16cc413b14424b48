/**
 * Pairs tool requests with their results. Pure.
 *
 * PAIR-1  A result belongs to the newest earlier request that waits for its id. A later request with the same id replaces an earlier
 *         request.
 */
import type { ContextMessage } from "../../model/messages.ts";

/** For each request, by index: the indexes of its results. `isOpen` if a missing result may still come. */
export type Pairs = ReadonlyMap<number, { results: readonly number[]; isOpen: boolean }>;

/** Pairs the requests among messages with their results. `null` stands for an event without a message. */
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
      // Ids are unique within a message only: a later request replaces an unanswered one.
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

/**
 * Returns the indexes in an order that every provider accepts: each request is directly followed by all its results. Incomplete pairs are
 * dropped.
 */
export function pairedOrder(messages: readonly ContextMessage[]): number[] {
  const pairs = pairsOf(messages);
  return messages.flatMap((message, index) => {
    if (message.role === "tool") return [];
    if (!isRequest(message)) return [index];
    const results = pairs.get(index)?.results ?? [];
    return results.length === message.toolCalls.length ? [index, ...results] : [];
  });
}

/**
 * Reports whether each request is directly followed by all its results, with no other results. Then `pairedOrder` keeps the order. Cheap,
 * because the histories of whole turns have this order.
 */
export function isPaired(messages: readonly ContextMessage[]): boolean {
  const waiting = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      if (!waiting.delete(message.toolCallId ?? "")) return false;
    } else if (waiting.size > 0) {
      return false;
    } else if (isRequest(message)) {
      for (const { id } of message.toolCalls) waiting.add(id);
      if (waiting.size !== message.toolCalls.length) return false;
    }
  }
  return waiting.size === 0;
}

type Request = ContextMessage & Required<Pick<ContextMessage, "toolCalls">>;

function isRequest(message: ContextMessage): message is Request {
  return message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0;
}
