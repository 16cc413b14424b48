/**
 * Turns that ran while the actor crashed: their crash counts, their pauses, and how many of them run at a time. Pure.
 *
 * ISOLATE-1  A crash counts only against turns with effects that may have run during the crash. An outcome of a turn clears its count.
 * ISOLATE-2  The more crashes turns share, the fewer of them run at a time. From the fourth crash on, a single turn runs. Turns with fewer
 *            crashes start first. So a turn that crashes its actor finally runs and fails alone.
 * ISOLATE-3  A turn begins again at once after its first crash, and after a pause that grows with each further crash.
 * ISOLATE-4  When a turn ends, no running turn is paused.
 */
import { backoffMs } from "../../../shared/backoff.ts";
import { MAX_RESUME_PAUSE_MS, RESUME_PAUSE_MS, RUNNING_AFTER_CRASHES } from "./conversation-limits.ts";
import type { Turn } from "./turn.ts";
import { runnableOperations } from "./turn-operations.ts";

/** Returns the number of crashes under a turn since its last outcome. */
export function crashesOf({ recoveries, overcome = 0 }: Pick<Turn, "recoveries" | "overcome">): number {
  return recoveries - overcome;
}

export function withOutcome({ recoveries, overcome = 0 }: Turn): Pick<Turn, "overcome"> {
  return recoveries === overcome ? {} : { overcome: recoveries };
}

/** Returns the milliseconds before a turn begins again after this number of crashes without an outcome. */
export function resumePause(crashes: number): number {
  return backoffMs(crashes - 1, RESUME_PAUSE_MS, MAX_RESUME_PAUSE_MS);
}

/** Returns the active turns that wait for others to give an outcome first, although they call for effects (ISOLATE-2). */
export function delayedTurns(active: ReadonlyMap<number, Turn>): ReadonlySet<number> {
  const suspects = [...active.values()].filter((turn) => crashesOf(turn) > 0 && callsForEffects(turn));
  if (suspects.length === 0) return NONE;
  suspects.sort((one, other) => crashesOf(one) - crashesOf(other) || one.n - other.n);
  const delayed = suspects.filter((turn, place) => place >= runningAfter(crashesOf(turn)));
  return new Set(delayed.map(({ n }) => n));
}

const NONE: ReadonlySet<number> = new Set();

function callsForEffects(turn: Turn): boolean {
  return turn.call !== null || turn.assembly !== undefined || runnableOperations(turn).length > 0;
}

function runningAfter(crashes: number): number {
  return RUNNING_AFTER_CRASHES[crashes - 1] ?? 1;
}
