/** The action `mock.return`. */
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { Clock } from "../../../ports/clock.ts";
import { sleepWith } from "../../../ports/deadline.ts";
import type { MockAction } from "../../../protocol/task-definition.ts";
import type { Json } from "../../../shared/json.ts";
import { Draw } from "../../../shared/json-schema/draw.ts";
import { makeValue, NoValue } from "../../../shared/json-schema/make-value.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";

/** Added to the seed of the pause, so it differs from the draws of the value. */
const PAUSE = 0x70617573;

/**
 * Returns a value of the action's schema after the action's pause. Throws `ToolError`, `Spent` if the budget is used up, and the signal's
 * reason after an abort.
 */
export async function runMock(
  action: MockAction,
  { clock, signal, meter }: { clock: Pick<Clock, "timer">; signal: AbortSignal; meter: Meter },
): Promise<Json> {
  const { delay, seed = 1 } = action;
  const value = mockValue(action, meter);
  if (delay === undefined) return value;
  const milliseconds = new Draw(seed + PAUSE).between(delay.minMs, Math.max(delay.minMs, delay.maxMs));
  await sleepWith((pause, wake) => clock.timer(pause, wake), milliseconds, signal);
  return value;
}

/** Returns a value of the action's schema. Throws `ToolError`, and `Spent` if the steps are used up. */
export function mockValue({ schema, seed = 1, stringMode }: Omit<MockAction, "kind">, meter?: Meter): Json {
  try {
    return makeValue(schema, () => new Draw(seed), {
      mode: stringMode,
      ...(meter !== undefined && { meter }),
    });
  } catch (error) {
    throw error instanceof NoValue ? new ToolError(error.message) : error;
  }
}
