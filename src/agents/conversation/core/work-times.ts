/**
 * The work periods of a turn. Pure.
 *
 * WORK-1  A turn works while it calls a model or runs tools of its own, and immediately before that. A turn without waits stores no
 *         periods: it worked from its creation to its end. A turn that ends during a wait ends with an empty period.
 */
import type { ConversationState } from "./state.ts";
import type { Transition } from "./transition.ts";
import type { Period, Turn } from "./turn.ts";
import { callsModel } from "./waits.ts";

/** Returns the work periods of a turn, including the current period, oldest first. */
export function workTimes({
  worked,
  createdAt,
  completedAt,
}: Pick<Turn, "worked" | "createdAt" | "completedAt">): readonly Period[] {
  return worked ?? [{ from: createdAt, ...(completedAt === undefined ? {} : { to: completedAt }) }];
}

/** Notes when the turns of a commit start or stop work. Call it after all other changes of the commit. */
export function noteWork(before: ConversationState, transition: Transition, now: number): Transition {
  const touched = new Map(transition.touched);
  const active = new Map(transition.state.active);
  for (const turn of transition.touched.values()) {
    const worked = timesAfter(before.active.get(turn.n), turn, now);
    if (worked === turn.worked) continue;
    const changed: Turn = { ...turn, ...(worked && { worked }) };
    touched.set(turn.n, changed);
    if (active.has(turn.n)) active.set(turn.n, changed);
  }
  return { ...transition, touched, state: { ...transition.state, active } };
}

function timesAfter(before: Turn | undefined, turn: Turn, now: number): Turn["worked"] {
  const isOver = turn.status !== "active";
  const works = !isOver && callsModel(turn);
  // A turn that begins, and waits in the queue.
  if (before === undefined) return works || isOver ? undefined : [];
  const { completedAt: _over, ...begun } = turn;
  const times = workTimes(begun);
  const last = times.at(-1);
  const isOpen = last !== undefined && last.to === undefined;
  if (works) return isOpen ? turn.worked : [...times, { from: now }];
  if (isOpen)
    return isOver && turn.worked === undefined ? undefined : [...times.slice(0, -1), { ...last, to: now }];
  return isOver ? [...times, { from: now, to: now }] : turn.worked;
}
