/**
 * The copy of a conversation's usage in the directory. The wake-up of the active window publishes it and stays armed until
 * the directory is up to date: no turn waits for the directory or writes a row for it, and no total waits for a turn whose
 * client is slow.
 *
 * USAGE-1  The directory ends with the conversation's own totals, also after outages and crashes.
 */
import type { Directory } from "../../../d1/directory.ts";
import type { Clock } from "../../../ports/clock.ts";
import { Projection } from "../../base/projections/projection.ts";
import { type ConversationState, primaryAgent } from "../core/state.ts";

export interface UsageMirrorPorts {
  clock: Pick<Clock, "now">;
  state(): ConversationState;
  /** `null` where there is none. */
  directory(): Directory | null;
  /** Reports whether the conversation itself needs a wake-up. */
  isDue(): boolean;
  /** Takes back the wake-up of the active window. */
  disarm(): void;
}

export class UsageProjection {
  readonly #projection: Projection;

  constructor(private readonly ports: UsageMirrorPorts) {
    this.#projection = new Projection({
      clock: ports.clock,
      put: async () => {
        const { record, usage } = ports.state();
        const { tenant, id: conversationId } = record;
        const { id: agentId } = primaryAgent(record);
        await ports.directory()?.putUsage({ tenant, agentId, conversationId, ...usage });
      },
      wakeup: {
        // The active window is open: its wake-up is armed.
        arm: async () => undefined,
        disarm: () => {
          if (!ports.isDue()) ports.disarm();
        },
      },
    });
  }

  /** Notes that a turn or a call for a summary has ended: its calls count now. */
  changed(): void {
    void this.#projection.note();
  }

  /** As `Projection.wake`. Call it when the wake-up of the active window fires. */
  wake(): number | null {
    const { usage, active } = this.ports.state();
    const running = [...active.values()].reduce((sum, { calls = [] }) => sum + calls.length, 0);
    const hasNone = usage.calls <= running || this.ports.directory() === null;
    return hasNone ? null : this.#projection.wake();
  }
}
