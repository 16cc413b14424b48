/** Facts of turns that decide what is shown of them. Pure. */
import type { MessageView, OperationState, TurnState } from "../../src/client/index.ts";

/** Returns how many turns a turn waits for: its place in the queue, from 1. Returns 0 if it does not wait. */
export function turnsBefore(turns: readonly TurnState[], turn: TurnState): number {
  return turns.filter(isQueued).indexOf(turn) + 1;
}

/** Reports whether somebody stopped the turn. The text of a failed turn is incomplete, but the turn was not stopped. */
export function wasStopped({ error, items }: TurnState): boolean {
  if (error !== undefined) return error.code === "CANCELLED";
  // The turn of an old message may not be loaded.
  return items.some((item) => item.type === "message" && item.message.stopped === true);
}

/**
 * The reason for which a turn only waits: for a person's `approval`, of a call of its own or of an agent below, for a `person` who answers a run, for a deferred `result`, or for work in the `background`, the
 * agent having answered.
 */
export type Wait = "approval" | "background" | "person" | "result";

/** Returns why a turn waits for nothing but operations; `null` if it does not. Calls in the background wait for a person if all of them do. */
export function waitOf({ status, phase, items }: TurnState): Wait | null {
  if (status !== "active" || phase !== "waiting") return null;
  const open = items.flatMap((item) =>
    item.type === "tool" && isOpen(item.operation) ? [item.operation] : [],
  );
  const blocking = open.filter((operation) => !operation.async);
  const waitsBy = (test: (operation: OperationState) => boolean) =>
    blocking.some(test) || (open.length > 0 && open.every(test));
  if (waitsBy(isAsking)) return "approval";
  if (waitsBy(({ held }) => held === true)) return "person";
  return blocking.some(({ deferredUntil }) => deferredUntil !== undefined) ? "result" : "background";
}

/**
 * Returns the turns whose messages do not follow each other, because other turns have said something in between, or because several
 * answer now. Each is shown as a thread of its own.
 */
export function threadsOf(
  turns: readonly TurnState[],
  messages: readonly MessageView[],
): ReadonlySet<string> {
  const place = new Map<string, { first: number; last: number; count: number }>();
  messages.forEach(({ turnId }, index) => {
    const { first = index, count = 0 } = place.get(turnId) ?? {};
    place.set(turnId, { first, last: index, count: count + 1 });
  });
  const working = turns.filter(isWorking);
  const isThread = (turn: TurnState) => {
    const { first = 0, last = 0, count = 0 } = place.get(turn.id) ?? {};
    if (isWorking(turn)) return working.length > 1 || messages.length - first > count;
    return last - first + 1 > count;
  };
  return new Set(turns.filter(isThread).map(({ id }) => id));
}

function isOpen({ state }: OperationState): boolean {
  return state === "running" || state === "awaiting_approval";
}

/** Reports whether an operation waits for a person: itself, or an agent that it called. */
function isAsking({ state, agent }: OperationState): boolean {
  return state === "awaiting_approval" || (agent?.asks ?? []).length > 0;
}

function isWorking({ status, phase }: TurnState): boolean {
  return status === "active" && phase === undefined;
}

function isQueued({ status, phase }: TurnState): boolean {
  return status === "active" && phase === "queued";
}
