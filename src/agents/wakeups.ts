/**
 * Wake-ups of an actor on the SDK's durable job queue: one job per name, re-armed by its own handler.
 *
 * WAKE-1  A job that is pushed inside a transaction commits and rolls back with it.
 * WAKE-2  A handler starts work without awaiting it and never throws: a long job would starve the others, and one that
 *         fails three times is dropped by the SDK.
 */
import { LifecycleCapability, type LifecycleJobContext, type LifecycleJobOutcome } from "agents/lifecycle";

/** Does what is due; answers in how many milliseconds to come again, or `null` when there is nothing left to wake for. */
export type WakeupHandler = () => number | null;

const ID_PREFIX = "dramatis:";

export class Wakeups extends LifecycleCapability {
  /** Names whose job may be deleted at any moment, because its handler has just ended it. */
  readonly #ending = new Set<string>();

  constructor(private readonly handlers: Readonly<Record<string, WakeupHandler>>) {
    super("dramatis-wakeups");
  }

  /** Arms the wake-up `name`, unless it is armed already. Resolves when the platform's alarm is set. */
  async arm(name: string, milliseconds: number): Promise<void> {
    const { jobs } = this.lifecycle;
    const id = `${ID_PREFIX}${name}`;
    if (!this.#ending.has(name) && jobs.get(id) !== undefined) return;
    await jobs.push({ id, fn: name, time: Date.now() + milliseconds });
  }

  /** Arms the wake-up `name`, or brings it forward, so that it comes at `at` (since the epoch) or earlier. */
  async armBy(name: string, at: number): Promise<void> {
    const { jobs } = this.lifecycle;
    const time = Math.min(at, Date.now() + MAX_AHEAD_MS);
    const id = `${ID_PREFIX}${name}`;
    const armed = this.#ending.has(name) ? undefined : jobs.get(id);
    if (armed === undefined || armed.time > time) await jobs.push({ id, fn: name, time });
  }

  onJob({ job }: LifecycleJobContext): LifecycleJobOutcome {
    this.#ending.delete(job.fn);
    const again = this.#run(job.fn);
    if (again !== null) return { rescheduleAt: Date.now() + Math.min(again, MAX_AHEAD_MS) };
    this.#ending.add(job.fn);
    return undefined;
  }

  #run(name: string): number | null {
    try {
      return this.handlers[name]?.() ?? null;
    } catch (error) {
      console.error(error);
      return RETRY_MS;
    }
  }
}

const RETRY_MS = 5_000;
/** The platform takes no alarm that is centuries ahead; a handler that is woken too early waits on. */
const MAX_AHEAD_MS = 30 * 24 * 3_600_000;
