/** The queue of messages: received, dropped, drained. Pure. */
import { defined } from "../../../../shared/defined.ts";
import type { QueuedMessage, RefusedMessage } from "../signals.ts";
import type { ConversationState, SignalQueue } from "../state.ts";
import type { Transition } from "../transition.ts";
import { type FrameBody, noted, silent } from "./fact.ts";

/** The queue before its first message. */
const EMPTY: SignalQueue = { first: 0, next: 0, bytes: 0 };

export function queueOf({ queue = EMPTY }: Pick<ConversationState, "queue">): SignalQueue {
  return queue;
}

export const queue = {
  ENQUEUE(transition: Transition, { messages }: { messages: readonly QueuedMessage[] }): Transition {
    const { state, enqueued } = transition;
    const before = queueOf(state);
    const { length: count } = messages;
    const bytes = messages.reduce((sum, message) => sum + message.bytes, before.bytes);
    const added = messages.map(({ signal }, index) => ({ n: before.next + index, signal }));
    const next = {
      ...transition,
      state: { ...state, queue: { ...before, next: before.next + count, bytes } },
      enqueued: [...enqueued, ...added],
    };
    return noted(next, { type: "conversation.queue.received", data: { count } });
  },

  /** Records how many messages were dropped, with the ids of the first. */
  OVERFLOW(
    transition: Transition,
    { dropped, ids }: { dropped: number; ids: readonly string[] },
  ): Transition {
    const { state } = transition;
    const before = queueOf(state);
    const data = { reason: "queue_overflow", size: before.next - before.first, dropped, ids: [...ids] };
    const next = { ...transition, state: { ...state, queue: { ...before, full: true as const } } };
    return noted(next, { type: "conversation.queue.overflow", data });
  },

  /** Ends the wait of the first `count` messages. */
  DEQUEUE(
    transition: Transition,
    { count, bytes, refused }: { count: number; bytes: number; refused: readonly RefusedMessage[] },
  ): Transition {
    const before = queueOf(transition.state);
    const { queue: _, ...others } = transition.state;
    const first = before.first + count;
    const left: SignalQueue = { first, next: before.next, bytes: before.bytes - bytes };
    const state = first === before.next ? others : { ...others, queue: left };
    return noted(
      { ...transition, state, dequeued: first },
      ...refused.map((data) => ({ type: "conversation.signal.refused" as const, data: { ...data } })),
      { type: "conversation.queue.drained", data: { count, left: before.next - first } },
    );
  },
};

export const queueFrames = {
  ...silent("conversation.queue.received", "conversation.queue.drained", "conversation.queue.overflow"),
  "conversation.signal.refused": ({ id, code, message }: RefusedMessage): FrameBody => ({
    type: "error",
    data: { code, message, retriable: false, ...defined({ ref: id }) },
  }),
};
