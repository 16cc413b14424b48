/** Sums the storage operations of all actors of a part, such as the conversations of clerks. All of them run in one isolate. */
import { countsOf, withMeter } from "../turns/meter.ts";
import type { Counts } from "../turns/protocol.ts";

let isOn = false;
const actors: { part: string; ctx: DurableObjectState }[] = [];

/** Adds a meter to actors that start from now on. Timed actors have no meter. */
export function startMetering(): void {
  isOn = true;
}

/** Adds a meter to an actor's storage. Pass the returned state to `super`. */
export function meteredAs<Props>(part: string, ctx: DurableObjectState<Props>): DurableObjectState<Props> {
  if (!isOn) return ctx;
  const state = withMeter(ctx);
  actors.push({ part, ctx: state as DurableObjectState });
  return state;
}

export function countsByPart(): Record<string, Counts> {
  const sums: Record<string, Counts> = {};
  for (const { part, ctx } of actors) {
    const { statements, rows } = countsOf(ctx);
    const sum = sums[part] ?? { statements: 0, rows: 0 };
    sums[part] = { statements: sum.statements + statements, rows: sum.rows + rows };
  }
  return sums;
}
