/**
 * Shrinks a failing plan: removes all parts that the failure does not need.
 *
 * SHRINK-1  The result still fails, and no single step makes it smaller, unless the time ran out.
 */

export interface Shrunk<Plan> {
  plan: Plan;
  tried: number;
  /** `true` if no single step makes it smaller. */
  minimal: boolean;
}

interface ShrinkOptions<Plan> {
  /** Returns all plans that are one step smaller, the largest steps first. */
  reductions(plan: Plan): Iterable<Plan>;
  hasTime(): boolean;
}

export async function shrink<Plan>(
  plan: Plan,
  fails: (plan: Plan) => Promise<boolean>,
  { reductions, hasTime }: ShrinkOptions<Plan>,
): Promise<Shrunk<Plan>> {
  let current = plan;
  let tried = 0;
  for (;;) {
    let smaller: Plan | undefined;
    for (const candidate of reductions(current)) {
      if (!hasTime()) return { plan: current, tried, minimal: false };
      tried += 1;
      if (!(await fails(candidate))) continue;
      smaller = candidate;
      break;
    }
    if (smaller === undefined) return { plan: current, tried, minimal: true };
    current = smaller;
  }
}

/** Returns a list without a part: all, halves, quarters, down to single items. */
export function* cuts<Item>(list: readonly Item[]): Generator<Item[]> {
  for (let size = list.length; size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < list.length; start += size)
      yield [...list.slice(0, start), ...list.slice(start + size)];
  }
}
