/**
 * The wake-ups of an actor, on the SDK's durable job queue. Several parts of the actor share a job, which comes at the earliest time that a
 * part has requested.
 *
 * WAKE-1  A job that is pushed inside a transaction commits and rolls back with it. If the job cannot be written, the push throws, so no
 *         change commits without its wake-up.
 * WAKE-2  A handler starts work without awaiting it and never throws: a long job would delay the others, and the SDK drops
 *         a job that fails three times.
 * WAKE-3  A wake-up counts as armed only after the platform has confirmed its alarm in this life, with the job in the queue. A stored job
 *         may have lost its alarm, so arming it again sets the alarm. A job that is armed during the actor's start does not count, because
 *         the SDK sets its alarm after the start.
 * WAKE-4  A job that is due but has not run keeps its time. A later request replaces a job only after its handlers were called.
 * WAKE-5  For a wait of a few seconds, a timer calls the handlers shortly before the job is due, and moves the job. While the actor is
 *         awake, the job therefore does not fire. This writes one row and one alarm instead of two rows and three alarms. After a crash the
 *         timer is lost, and the job fires.
 * WAKE-6  A job fires no later than a handler requested, and no later than any request during the handlers.
 * WAKE-7  A job calls the handlers that are due. A life that finds a job of an earlier life calls all handlers first: a handler without
 *         work returns `null`.
 */
import { LifecycleCapability, type LifecycleJobContext, type LifecycleJobOutcome } from "agents/lifecycle";
import { systemClock } from "../../../ports/system.ts";
import { REFUSED_RETRY_MS, StorageRefusal } from "../storage/schema-upgrade.ts";

/** Runs due work, if any. Returns the milliseconds until the next call; `null` if no wake-up is needed. */
export type WakeupHandler = () => number | null;

export interface Wakeup {
  /**
   * Makes the wake-up fire in at most `milliseconds`. An earlier time stays. Resolves when the platform's alarm is set. During the actor's
   * start it resolves at once, because the SDK sets the alarm afterwards. Throws if the job cannot be written.
   */
  arm(milliseconds: number): Promise<void>;
  /** Cancels the wake-up. If that fails, or other parts need the job, the job fires without work. */
  disarm(): void;
}

/** A job after the call of its handlers. Times are milliseconds since the epoch. */
interface HandledJob {
  readonly time: number;
  /** The earliest time that a part has requested, never equal to `time`; Infinity if no part has. */
  next: number;
}

export class Wakeups extends LifecycleCapability {
  readonly #handlers = new Map<string, WakeupHandler>();
  /** The earliest time that each part has requested. A request that was rolled back may leave its time here. */
  readonly #times = new Map<string, number>();
  /** `#times` contains the requests of earlier lives. */
  #isComplete = false;
  /** The handled job. The queue may be about to delete or move it. */
  #handled: HandledJob | null = null;
  /**
   * The newest alarm request of this life, pending or done. `null` before the first request and after a failure.
   *
   * An old job usually has its alarm, but the life before may have ended because the alarm could not be set. Each life
   * therefore re-arms once, when a wake-up is first requested: that writes an alarm and no row.
   */
  #alarm: Promise<void> | null = null;
  #stopTimer = () => {};

  /** `job`: the id of the job and of its owner. It is stored: never change it. */
  constructor(private readonly job: string) {
    super(job);
  }

  /** Adds a part of the actor. Call it in the actor's constructor. */
  add(name: string, handler: WakeupHandler): Wakeup {
    this.#handlers.set(name, handler);
    return {
      arm: (milliseconds) => {
        const wished = timeIn(milliseconds);
        this.#note(name, wished);
        return this.#armAt(wished);
      },
      disarm: () => {
        this.#times.delete(name);
        if (this.#isComplete && this.#times.size === 0) this.#cancel();
      },
    };
  }

  onJob({ job }: LifecycleJobContext): LifecycleJobOutcome {
    const handled = this.#handle(job.time);
    if (handled.next === Number.POSITIVE_INFINITY) return undefined;
    // If a job was replaced while its handlers ran, the queue drops the handlers' answer.
    if (this.#handled === handled) this.#startTimer(handled.next);
    else this.#armAgain(handled.next);
    return { rescheduleAt: handled.next };
  }

  dispose(): void {
    this.#stopTimer();
  }

  #note(name: string, time: number): void {
    this.#times.set(name, Math.min(time, this.#times.get(name) ?? time));
  }

  #armAt(wished: number): Promise<void> {
    const { jobs } = this.lifecycle;
    const job = jobs.get(this.job);
    if (job === undefined) this.#isComplete = true;
    // A handled job is about to be removed or moved. A push replaces it, and wins over what its handlers return.
    const isOver = job !== undefined && this.#handled?.time === job.time;
    if (job !== undefined && !isOver && job.time <= wished) return this.#alarm ?? this.#setting(jobs.rearm());
    return this.#push(isOver ? otherThan(job.time, Math.min(wished, this.#earliest())) : wished);
  }

  #armAgain(time: number): void {
    try {
      this.#armAt(time).catch((error: unknown) => console.error(error));
    } catch (error) {
      console.error(error);
    }
  }

  #earliest(): number {
    return Math.min(...this.#times.values());
  }

  /** Calls the handlers of the job that is due at `time`. Until the job is removed or replaced, requests replace it. */
  #handle(time: number): HandledJob {
    const handled: HandledJob = { time, next: Number.POSITIVE_INFINITY };
    this.#handled = handled;
    const due = this.#due(time);
    for (const name of due) this.#times.delete(name);
    for (const name of due) {
      const again = this.#run(name);
      if (again !== null) this.#note(name, timeIn(again));
    }
    const next = this.#earliest();
    handled.next = next === Number.POSITIVE_INFINITY ? next : otherThan(time, next);
    return handled;
  }

  /** Returns the parts that are due, or so soon that another job is not worth its cost. */
  #due(time: number): string[] {
    const isComplete = this.#isComplete;
    this.#isComplete = true;
    const until = Math.max(time, systemClock.now()) + EARLY_MS;
    const isDue = (name: string) => (this.#times.get(name) ?? Number.POSITIVE_INFINITY) <= until;
    return [...this.#handlers.keys()].filter((name) => !isComplete || isDue(name));
  }

  #push(time: number): Promise<void> {
    const { jobs } = this.lifecycle;
    const pushed = jobs.push({ id: this.job, fn: "wake", time }).then(() => undefined);
    // The queue writes at once but reports a failure later.
    if (jobs.get(this.job)?.time !== time) {
      pushed.catch(() => undefined);
      throw new Error("The wake-up could not be written.");
    }
    this.#handled = null;
    this.#startTimer(time);
    return this.#setting(pushed);
  }

  #cancel(): void {
    this.#stopTimer();
    this.lifecycle.jobs.cancel(this.job).catch((error: unknown) => console.error(error));
  }

  #startTimer(time: number): void {
    this.#stopTimer();
    const wait = time - EARLY_MS - systemClock.now();
    if (wait < 0 || wait > MAX_TIMER_MS) return;
    this.#stopTimer = systemClock.timer(wait, () => this.#callEarly(time));
  }

  /** Calls the handlers of the job that is due at `time`, and moves the job. If that fails, the job fires. */
  #callEarly(time: number): void {
    try {
      // The transaction that wrote the job may have rolled back, and another request or the alarm may have replaced it.
      if (this.lifecycle.jobs.get(this.job)?.time !== time) return;
      const handled = this.#handle(time);
      const isReplaced = this.#handled !== handled;
      // A handler that is not due yet waits for the job.
      if (!isReplaced && handled.next > time && handled.next <= time + EARLY_MS) this.#handled = null;
      else if (handled.next !== Number.POSITIVE_INFINITY) this.#armAgain(handled.next);
      else if (!isReplaced) this.#cancel();
    } catch (error) {
      console.error(error);
    }
  }

  #setting(alarm: Promise<void>): Promise<void> {
    if (this.lifecycle.status() === "starting") return alarm;
    this.#alarm = alarm;
    alarm.catch(() => {
      if (this.#alarm === alarm) this.#alarm = null;
    });
    return alarm;
  }

  #run(name: string): number | null {
    try {
      return this.#handlers.get(name)?.() ?? null;
    } catch (error) {
      console.error(error);
      return error instanceof StorageRefusal ? REFUSED_RETRY_MS : RETRY_MS;
    }
  }
}

function timeIn(milliseconds: number): number {
  return Math.floor(systemClock.now() + Math.min(milliseconds, MAX_AHEAD_MS));
}

/** Returns a time, or one millisecond later if it equals `taken`. Jobs are distinguished by their times. */
function otherThan(taken: number, time: number): number {
  return time === taken ? time + 1 : time;
}

/** Milliseconds from an early call of the handlers to the time of their job. A timer that is later than this has lost. */
const EARLY_MS = 250;
/**
 * The longest timer, in milliseconds. A longer wait uses the alarm. Unlike a timer, an alarm lets the actor hibernate. It also counts as a
 * request. Without requests, the platform evicts the actor after a minute, even if its effects run.
 */
const MAX_TIMER_MS = 5_000;
const RETRY_MS = 5_000;
/** The platform rejects alarms that are centuries ahead. A handler that is called too early arms the wake-up again. */
const MAX_AHEAD_MS = 30 * 24 * 3_600_000;
