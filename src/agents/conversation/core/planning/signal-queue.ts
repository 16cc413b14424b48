/**
 * The queue of messages that are accepted and have not begun their turns. Pure.
 *
 * SIGQUEUE-1  A message that is accepted into the queue starts its turn once, after those before it, or is rejected with an entry that
 *             names it.
 * SIGQUEUE-2  The queue is bounded in number and bytes. A message that does not fit is dropped with an entry that names it; it is not
 *             remembered, so it can be sent again. Until a message leaves the queue, further messages are dropped without an entry. Their
 *             senders get the error, and the journal does not grow.
 * SIGQUEUE-3  A commit takes `DRAIN_STEP` messages at most. Other signals come between two commits, so a stop overtakes waiting messages.
 */
import {
  MAX_ACTIVE_TURNS,
  MAX_NAMED_SIGNALS,
  MAX_QUEUED_BYTES,
  MAX_QUEUED_SIGNALS,
} from "../conversation-limits.ts";
import type { AgentDecision } from "../decisions.ts";
import { queueOf } from "../facts/queue.ts";
import type { Drained, Ingest, QueuedMessage } from "../signals.ts";
import type { ConversationState, SignalQueue } from "../state.ts";

/** Returns how many of `messages` fit into the queue, in order. */
export function fitting(queue: SignalQueue, messages: readonly Pick<QueuedMessage, "bytes">[]): number {
  let { bytes } = queue;
  const room = MAX_QUEUED_SIGNALS - (queue.next - queue.first);
  const misfit = messages.findIndex((message, index) => {
    bytes += message.bytes;
    return index >= room || bytes > MAX_QUEUED_BYTES;
  });
  return misfit < 0 ? messages.length : misfit;
}

/** Plans the receipt of messages that cannot begin their turns yet. */
export function planIngest(state: ConversationState, { messages }: Ingest): AgentDecision[] {
  const queue = queueOf(state);
  const count = fitting(queue, messages);
  const [taken, dropped] = [messages.slice(0, count), messages.slice(count)];
  const named = dropped.flatMap(({ signal: { id } }) => (id === undefined ? [] : [id]));
  return [
    ...(taken.length === 0 ? [] : [{ type: "ENQUEUE" as const, messages: taken }]),
    ...(dropped.length === 0 || queue.full
      ? []
      : [
          {
            type: "OVERFLOW" as const,
            dropped: dropped.length,
            ids: named.slice(0, MAX_NAMED_SIGNALS),
          },
        ]),
  ];
}

/** Plans the end of the first messages' wait. */
export function planDrained({ count, bytes, refused }: Drained): AgentDecision[] {
  return [{ type: "DEQUEUE", count, bytes, refused }];
}

/** Reports whether a message that waits may begin its turn, as far as the number of turns tells. */
export function mayDrain({ queue, active }: Pick<ConversationState, "queue" | "active">): boolean {
  return queue !== undefined && active.size < MAX_ACTIVE_TURNS;
}
