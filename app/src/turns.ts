/** Facts of turns that decide what is shown of them. Pure. */
import type { TurnState } from "../../src/client/index.ts";

/** Returns how many turns a turn waits for: its place in the queue, from 1. Returns 0 if it does not wait. */
export function turnsBefore(turns: readonly TurnState[], turn: TurnState): number {
  return turns.filter(isQueued).indexOf(turn) + 1;
}

/** Reports whether somebody stopped the turn. Text that a failed turn has left is incomplete, but nobody stopped it. */
export function wasStopped({ error, items }: TurnState): boolean {
  if (error !== undefined) return error.code === "CANCELLED";
  // The turn of an old message may not be loaded.
  return items.some((item) => item.type === "message" && item.message.stopped === true);
}

/** Reports whether the agent has answered, and goes on when work in the background has results. */
export function worksInBackground({ status, phase }: TurnState): boolean {
  return status === "active" && phase === "waiting";
}

function isQueued({ status, phase }: TurnState): boolean {
  return status === "active" && phase === "queued";
}
