/**
 * The retention of a conversation: the time without activity after which it is deleted. Turns write nothing for it.
 *
 * LASTING-1  A conversation without a new journal entry for its retention is deleted, with all that a deletion by a person removes (DELETE-2,
 *            DELETE-3). Reads do not extend the time.
 * LASTING-2  A conversation with an active turn stays, and is checked again a day later. The conversation of another agent's call
 *            stays as long as the conversation of its caller.
 * LASTING-3  The wake-up is armed when the conversation is created, and when its actor starts. A new policy applies from the next start of the actor.
 * LASTING-4  A policy that throws, or returns no number above 0, deletes nothing. The log names its error.
 */
import type { RetentionPolicy } from "../../../policy/retention.ts";
import type { Clock } from "../../../ports/clock.ts";
import { DAY_MS } from "../../../shared/time.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ConversationIdentity, ConversationState } from "../core/state.ts";

/** Milliseconds between two attempts to delete a conversation with active turns. */
const RETRY_MS = DAY_MS;

interface RetentionContext {
  clock: Pick<Clock, "now">;
  runtime: {
    readonly exists: boolean;
    readonly state: ConversationState;
    readonly store: { readonly newestAt: number; readonly inherited: { at: number } };
  };
  removal: { expire(): Promise<void> };
  retention: RetentionPolicy;
}

export class Retention {
  constructor(
    private readonly context: RetentionContext,
    private readonly wakeup: Wakeup,
  ) {}

  /** Arms the wake-up of a conversation with a retention. Returns the wake-ups: await them before acknowledging a creation. */
  arm(record: ConversationIdentity): Promise<void>[] {
    const period = this.#period(record);
    if (period === null) return [];
    const { clock, runtime } = this.context;
    const idle = runtime.exists ? clock.now() - this.#activeAt(record) : 0;
    return [this.wakeup.arm(Math.max(0, period - idle))];
  }

  /** Deletes the conversation if its time is over. Returns the milliseconds until the next call; `null` without a retention. */
  wake(): number | null {
    const { clock, runtime, removal } = this.context;
    if (!runtime.exists) return null;
    const { record, active } = runtime.state;
    const period = this.#period(record);
    if (period === null) return null;
    const left = this.#activeAt(record) + period - clock.now();
    if (left > 0) return left;
    if (active.size === 0)
      removal.expire().catch((error: unknown) => console.error("An expired conversation stays:", error));
    return RETRY_MS;
  }

  /** Returns the time of the newest activity: of an entry, of the creation, or of an import. */
  #activeAt({ createdAt }: ConversationIdentity): number {
    const { newestAt, inherited } = this.context.runtime.store;
    return Math.max(newestAt, createdAt, inherited.at);
  }

  /** Returns the retention in milliseconds; `null` to keep the conversation. A policy that fails deletes nothing. */
  #period({ tenant, projectId, listed, call }: ConversationIdentity): number | null {
    try {
      if (call !== undefined && !("runId" in call.caller)) return null;
      const days = this.context.retention({ tenant, projectId, isListed: listed !== false });
      if (days === undefined || days === Number.POSITIVE_INFINITY) return null;
      if (Number.isFinite(days) && days > 0) return days * DAY_MS;
      throw new RangeError(`A retention must be a number of days above 0, not ${days}.`);
    } catch (error) {
      console.error("The retention policy failed, so the conversation stays:", error);
      return null;
    }
  }
}
