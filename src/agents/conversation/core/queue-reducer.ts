/** The part of the reducer for the queue of messages. Pure. */
import type { QueueDecision } from "./decisions.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { queueOf } from "./planning/signal-queue.ts";
import type { SignalQueue } from "./state.ts";
import type { Transition } from "./transition.ts";

export function reduceQueue(transition: Transition, decision: QueueDecision): Transition {
  const { state, entries } = transition;
  const queue = queueOf(state);
  switch (decision.type) {
    case "ENQUEUE": {
      const { messages } = decision;
      const bytes = messages.reduce((sum, message) => sum + message.bytes, queue.bytes);
      const enqueued = messages.map(({ signal }, index) => ({ n: queue.next + index, signal }));
      const next = { ...queue, next: queue.next + messages.length, bytes };
      const entry: JournalEntry = { type: "conversation.queue.received", data: { count: messages.length } };
      return {
        ...transition,
        state: { ...state, queue: next },
        entries: [...entries, entry],
        enqueued: [...transition.enqueued, ...enqueued],
      };
    }
    case "OVERFLOW": {
      const { dropped, ids } = decision;
      const size = queue.next - queue.first;
      const data = { reason: "queue_overflow", size, dropped, ids: [...ids] };
      return {
        ...transition,
        state: { ...state, queue: { ...queue, full: true } },
        entries: [...entries, { type: "conversation.queue.overflow", data }],
      };
    }
    case "DEQUEUE": {
      const { count, bytes, refused } = decision;
      const first = queue.first + count;
      const { queue: _, ...others } = state;
      const left: SignalQueue = { first, next: queue.next, bytes: queue.bytes - bytes };
      const drained: JournalEntry = {
        type: "conversation.queue.drained",
        data: { count, left: queue.next - first },
      };
      return {
        ...transition,
        state: first === queue.next ? others : { ...others, queue: left },
        entries: [
          ...entries,
          ...refused.map((data) => ({ type: "conversation.signal.refused" as const, data: { ...data } })),
          drained,
        ],
        dequeued: first,
      };
    }
    default:
      return decision satisfies never;
  }
}
