/**
 * The copy of a conversation's usage in the directory. The wake-up of the active window publishes it, and stays armed until the directory
 * is up to date. Turns do not wait for the directory or write a row for it. A slow client of a turn does not delay the totals.
 *
 * USAGE-1  The directory ends with the conversation's own totals, also after outages and crashes.
 */
import type { Clock } from "../../../ports/clock.ts";
import { Copy } from "../../base/copies/copy.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext } from "../context.ts";
import { type ConversationState, primaryAgent } from "../core/state.ts";

interface UsageContext extends Pick<ActorContext, "directory"> {
  clock: Pick<Clock, "now">;
  /** `dueIn`: `null` unless the conversation itself needs a wake-up. */
  runtime: { readonly state: ConversationState; readonly dueIn: number | null };
}

export class UsageCopy {
  readonly #copy: Copy;

  /** `window` is the wake-up that active turns share. */
  constructor(
    private readonly context: UsageContext,
    window: Pick<Wakeup, "disarm">,
  ) {
    this.#copy = new Copy({
      clock: context.clock,
      directory: context.directory,
      put: (directory) => {
        const { record, usage } = context.runtime.state;
        const { tenant, id: conversationId } = record;
        const { id: agentId } = primaryAgent(record);
        return directory.putUsage({ tenant, agentId, conversationId, ...usage });
      },
      wakeup: {
        // The active window is open: its wake-up is armed.
        arm: async () => undefined,
        disarm: () => {
          if (context.runtime.dueIn === null) window.disarm();
        },
      },
    });
  }

  /** As `Copy.isBehind`. */
  get isBehind(): boolean {
    return this.#hasUsage && this.#copy.isBehind;
  }

  /** Notes that a turn or a call for a summary has ended: its calls count now. */
  changed(): void {
    void this.#copy.note();
  }

  /** As `Copy.wake`. Call it when the wake-up of the active window fires. */
  wake(): number | null {
    return this.#hasUsage ? this.#copy.wake() : null;
  }

  /** Reports whether a call of an ended turn, or for a summary, counts. */
  get #hasUsage(): boolean {
    const { usage, active } = this.context.runtime.state;
    const running = [...active.values()].reduce((sum, { calls = [] }) => sum + calls.length, 0);
    return usage.calls > running;
  }
}
