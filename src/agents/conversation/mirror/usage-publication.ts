/**
 * Publishes a conversation's usage to the directory, once a turn is over. The wake-up of the active turns publishes, and
 * stays armed until the directory has the totals: no turn waits for the directory or writes a row for it, and no total
 * waits for a turn that waits for its client.
 *
 * USAGE-1  The directory ends with the conversation's own totals, however long the directory was unreachable and whichever
 *          actor crashed meanwhile.
 */

import type { Directory } from "../../../d1/directory.ts";
import type { Clock } from "../../../ports/clock.ts";
import { Publication } from "../../base/mirror/publication.ts";
import type { ConversationState } from "../core/state.ts";

export interface UsagePublicationPorts {
  state(): ConversationState;
  /** Returns `null` where there is no directory. */
  directory(): Directory | null;
  clock: Pick<Clock, "now">;
  /** Disarms the wake-up of the active turns. */
  disarm(): void;
}

export class UsagePublication {
  readonly #publication: Publication;
  #changedAt: number;

  constructor(private readonly ports: UsagePublicationPorts) {
    this.#changedAt = ports.clock.now();
    this.#publication = new Publication({
      put: () => this.#put(),
      changedAt: () => this.#changedAt,
      now: () => ports.clock.now(),
      arm: async () => undefined,
      disarm: () => {
        if (ports.state().active.size === 0) ports.disarm();
      },
    });
  }

  /** Call it when a turn is over. */
  changed(): void {
    this.#changedAt = this.ports.clock.now();
    void this.#publication.note();
  }

  /** As `Publication.wake`. Call it when the wake-up of the active turns comes. */
  wake(): number | null {
    const { usage, active } = this.ports.state();
    const running = [...active.values()].reduce((sum, { calls = [] }) => sum + calls.length, 0);
    const hasNone = usage.calls <= running || this.ports.directory() === null;
    return hasNone ? null : this.#publication.wake();
  }

  async #put(): Promise<void> {
    const { record, usage } = this.ports.state();
    const { tenant, agentId, id: conversationId } = record;
    await this.ports.directory()?.putUsage({ tenant, agentId, conversationId, ...usage });
  }
}
