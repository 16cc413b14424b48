/**
 * The times in which a turn works. Pure.
 *
 * WORK-1  A turn works while it calls a model or runs tools of its own, and while it is about to. A turn that does nothing else stores
 *         no times: it worked from its creation to its end. One that ends while it waits ends with a time of no length.
 */
import type { ConversationState } from "./state.ts";
import type { Transition } from "./transition.ts";
import type { Period, Turn } from "./turn.ts";
import { callsModel } from "./waits.ts";

/** Returns the times in which a turn has worked, the present one included, oldest first. */
export function workTimes({
  worked,
  createdAt,
  completedAt,
}: Pick<Turn, "worked" | "createdAt" | "completedAt">): readonly Period[] {
  return worked ?? [{ from: createdAt, ...(completedAt === undefined ? {} : { to: completedAt }) }];
}

/** Notes the times in which the turns that a commit changes begin or end to work. Call it after all other changes of the commit. */
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
