/**
 * Wake-ups of an actor on the SDK's durable job queue: one job per name, re-armed by its own handler.
 *
 * WAKE-1  A job that is pushed inside a transaction commits and rolls back with it; one that cannot be written throws
 *         there, so nothing commits without its wake-up.
 * WAKE-2  A handler starts work without awaiting it and never throws: a long job would starve the others, and one that
 *         fails three times is dropped by the SDK.
 * WAKE-3  A wake-up is reported as armed only when this life has seen the platform's alarm set while its job stood in
 *         the queue; a job alone, which may have lost its alarm, sets the alarm anew.
 * WAKE-4  A job that is due but has not run yet keeps its place: only one whose handler was called is replaced by a
 *         later wish.
 */
import { LifecycleCapability, type LifecycleJobContext, type LifecycleJobOutcome } from "agents/lifecycle";
import { isRefusal } from "../storage/schema-upgrade.ts";

/** Does what is due; answers in how many milliseconds to come again, or `null` when there is nothing left to wake for. */
export type WakeupHandler = () => number | null;

const ID_PREFIX = "dramatis:";

export class Wakeups extends LifecycleCapability {
  /** The times of jobs whose handler was called: such a job may be about to be deleted or given another time. */
  readonly #handled = new Map<string, number>();
  /**
   * The newest setting of the platform's alarm in this life, under way or done; `null` before the first one and after one
   * that failed. One is enough for all names: the SDK makes them one after another, each from all jobs in the queue.
   *
   * After a wake the alarm of an old job is there as a rule, but the life before may have ended because it could not be
   * set. It is set anew once a life, when it is first asked for: one write of an alarm, and none of a row. What is armed
   * while the actor starts is set by the SDK at the end of the start, which fails if that does.
   */
  #alarm: Promise<void> | null = null;

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
    const wished = Math.floor(Date.now() + Math.min(milliseconds, MAX_AHEAD_MS));
    // The queue has yet to take a handled job away: a push replaces it, and wins over what its handler asked for.
    const isOver = job !== undefined && this.#handled.get(name) === job.time;
    if (job !== undefined && !isOver && job.time <= wished) return this.#alarm ?? this.#setting(jobs.rearm());
    const time = isOver ? Math.max(wished, job.time + 1) : wished;
    const pushed = jobs.push({ id, fn: name, time }).then(() => undefined);
    // The queue writes at once, and tells of a failure only later.
    if (jobs.get(id)?.time === time) return this.#setting(pushed);
    pushed.catch(() => undefined);
    throw new Error(`The wake-up "${name}" could not be written.`);
  }

  /** Takes back the wake-up `name`. One that cannot be taken back comes, and finds nothing to do. */
  disarm(name: string): void {
    this.lifecycle.jobs.cancel(`${ID_PREFIX}${name}`).catch((error: unknown) => console.error(error));
  }

  onJob({ job }: LifecycleJobContext): LifecycleJobOutcome {
    this.#handled.set(job.fn, job.time);
    const again = this.#run(job.fn);
    if (again === null) return undefined;
    const time = Math.floor(Date.now() + Math.min(again, MAX_AHEAD_MS));
    return { rescheduleAt: Math.max(time, job.time + 1) };
  }

  #setting(alarm: Promise<void>): Promise<void> {
    this.#alarm = alarm;
    alarm.catch(() => {
      if (this.#alarm === alarm) this.#alarm = null;
    });
    return alarm;
  }

  #run(name: string): number | null {
    try {
      return this.handlers[name]?.() ?? null;
    } catch (error) {
      console.error(error);
      return isRefusal(error) ? REFUSED_RETRY_MS : RETRY_MS;
    }
  }
}

const RETRY_MS = 5_000;
/** Only another deploy helps an actor whose storage is of a newer release. */
const REFUSED_RETRY_MS = 60_000;
/** The platform takes no alarm that is centuries ahead; a handler that is woken too early waits on. */
const MAX_AHEAD_MS = 30 * 24 * 3_600_000;
