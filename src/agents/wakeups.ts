/**
 * Wake-ups of an actor on the SDK's durable job queue: one job per name, re-armed by its own handler.
 *
 * WAKE-1  A job that is pushed inside a transaction commits and rolls back with it; one that cannot be written throws
 *         there, so nothing commits without its wake-up.
 * WAKE-2  A handler starts work without awaiting it and never throws: a long job would starve the others, and one that
 *         fails three times is dropped by the SDK.
 */
import { LifecycleCapability, type LifecycleJobContext, type LifecycleJobOutcome } from "agents/lifecycle";

/** Does what is due; answers in how many milliseconds to come again, or `null` when there is nothing left to wake for. */
export type WakeupHandler = () => number | null;

const ID_PREFIX = "dramatis:";

export class Wakeups extends LifecycleCapability {
  /** Names whose handler was called: a job of theirs that is due may be about to be deleted or given another time. */
  readonly #handled = new Set<string>();

  /** `id` tells the wake-ups of several owners in one actor apart; names are unique over all of them. */
  constructor(
    private readonly handlers: Readonly<Record<string, WakeupHandler>>,
    id = "dramatis-wakeups",
  ) {
    super(id);
  }

  /**
   * Sees to it that the wake-up `name` comes in at most `milliseconds`: one that is armed for earlier stays as it is.
   * Resolves when the platform's alarm is set; throws at once if the job cannot be written.
   */
  arm(name: string, milliseconds: number): Promise<void> {
    const { jobs } = this.lifecycle;
    const id = `${ID_PREFIX}${name}`;
    const job = jobs.get(id);
    const now = Date.now();
    const time = Math.floor(now + Math.min(milliseconds, MAX_AHEAD_MS));
    // The queue has yet to take a handled job away: a push replaces it, and wins over what its handler asked for.
    const isOver = job !== undefined && job.time <= now && this.#handled.has(name);
    if (job !== undefined && !isOver && job.time <= time) return Promise.resolve();
    const pushed = jobs.push({ id, fn: name, time }).then(() => undefined);
    // The queue writes at once, and tells of a failure only later.
    if (jobs.get(id)?.time === time) return pushed;
    pushed.catch(() => undefined);
    throw new Error(`The wake-up "${name}" could not be written.`);
  }

  onJob({ job }: LifecycleJobContext): LifecycleJobOutcome {
    this.#handled.add(job.fn);
    const again = this.#run(job.fn);
    return again === null ? undefined : { rescheduleAt: Date.now() + Math.min(again, MAX_AHEAD_MS) };
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
