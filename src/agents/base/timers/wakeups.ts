/**
 * The wake-ups of an actor, on the SDK's durable job queue: one job per name, which its own handler re-arms.
 *
 * WAKE-1  A job that is pushed inside a transaction commits and rolls back with it. If the job cannot be written, the push throws, so no
 *         change commits without its wake-up.
 * WAKE-2  A handler starts work without awaiting it and never throws: a long job would delay the others, and the SDK drops
 *         a job that fails three times.
 * WAKE-3  A wake-up counts as armed only after the platform has confirmed its alarm in this life, with the job in the queue. A stored job
 *         may have lost its alarm, so arming it again sets the alarm. A job that is armed during the actor's start does not count, because
 *         the SDK sets its alarm after the start.
 * WAKE-4  A job that is due but has not run keeps its time. A later request replaces a job only after its handler was called.
 * WAKE-5  For a wait of a few seconds, a timer calls an early handler shortly before its job is due, and moves the job. While the actor is
 *         awake, the job therefore does not fire. This writes one row and one alarm instead of two rows and three alarms. After a crash the
 *         timer is lost, and the job fires.
 * WAKE-6  A job fires no later than its handler requested, and no later than any request during the handler.
 */

import { LifecycleCapability, type LifecycleJobContext, type LifecycleJobOutcome } from "agents/lifecycle";
import { systemClock } from "../../../ports/system.ts";
import { REFUSED_RETRY_MS, StorageRefusal } from "../storage/schema-upgrade.ts";

/** Runs due work. Returns the milliseconds until the next call; `null` if no wake-up is needed. */
export type WakeupHandler = () => number | null;

/** One wake-up of an actor. */
export interface Wakeup {
  /**
   * Makes the wake-up fire in at most `milliseconds`. An earlier time stays. Resolves when the platform's alarm is set. During the actor's
   * start it resolves at once, because the SDK sets the alarm afterwards. Throws if the job cannot be written.
   */
  arm(milliseconds: number): Promise<void>;
  /** Cancels the wake-up. If that fails, the wake-up fires without work. */
  disarm(): void;
}

export interface WakeupsOptions {
  /** The queue stores it with each job as its owner. Names of jobs are unique over all owners in one actor. */
  id?: string;
  /** Names of the handlers that timers call (WAKE-5), unless they wait so long that the actor should rather hibernate. */
  early?: readonly string[];
}

const ID_PREFIX = "dramatis:";

/** A job after the call of its handler. Times are milliseconds since the epoch. */
interface HandledJob {
  readonly time: number;
  /** The time that the handler requested, never equal to `time`. Infinity while the handler runs, or if it requested no further call. */
  next: number;
}

export class Wakeups extends LifecycleCapability {
  /** Handled jobs, by name. The queue may be about to delete or move them. */
  readonly #handled = new Map<string, HandledJob>();
  /**
   * The newest alarm request of this life, pending or done. `null` before the first request and after a failure. One promise serves all
   * names: the SDK sets alarms one after another, each from all jobs in the queue.
   *
   * An old job usually has its alarm, but the life before may have ended because the alarm could not be set. Each life
   * therefore re-arms once, when a wake-up is first requested: that writes an alarm and no row.
   */
  #alarm: Promise<void> | null = null;
  /** The timers of early handlers, each with a function that cancels it. */
  readonly #timers = new Map<string, () => void>();

  readonly #early: readonly string[];

  constructor(
    private readonly handlers: Readonly<Record<string, WakeupHandler>>,
    { id = "dramatis-wakeups", early = [] }: WakeupsOptions = {},
  ) {
    super(id);
    this.#early = early;
  }

  /** Returns the wake-up `name`. */
  named(name: string): Wakeup {
    return {
      arm: (milliseconds) => this.arm(name, milliseconds),
      disarm: () => this.disarm(name),
    };
  }

  /** As `Wakeup.arm`. */
  arm(name: string, milliseconds: number): Promise<void> {
    return this.#armAt(name, timeIn(milliseconds));
  }

  /** As `Wakeup.disarm`. */
  disarm(name: string): void {
    this.#stopTimer(name);
    this.lifecycle.jobs.cancel(`${ID_PREFIX}${name}`).catch((error: unknown) => console.error(error));
  }

  onJob({ job }: LifecycleJobContext): LifecycleJobOutcome {
    const handled = this.#handle(job.fn, job.time);
    if (handled.next === Number.POSITIVE_INFINITY) return undefined;
    // If a job was replaced while its handler ran, the queue drops the handler's answer.
    if (this.#handled.get(job.fn) === handled) this.#startTimer(job.fn, handled.next);
    else this.#armAgain(job.fn, handled.next);
    return { rescheduleAt: handled.next };
  }

  #armAt(name: string, wished: number): Promise<void> {
    const { jobs } = this.lifecycle;
    const job = jobs.get(`${ID_PREFIX}${name}`);
    // A handled job is about to be removed or moved. A push replaces it, and wins over what its handler returns.
    const handled = this.#handled.get(name);
    const isOver = job !== undefined && handled?.time === job.time;
    if (job !== undefined && !isOver && job.time <= wished) return this.#alarm ?? this.#setting(jobs.rearm());
    return this.#push(name, isOver ? otherThan(job.time, Math.min(wished, handled.next)) : wished);
  }

  #armAgain(name: string, time: number): void {
    try {
      this.#armAt(name, time).catch((error: unknown) => console.error(error));
    } catch (error) {
      console.error(error);
    }
  }

  /** Calls the handler of the job that is due at `time`. Until the job is removed or replaced, requests replace it. */
  #handle(name: string, time: number): HandledJob {
    const handled: HandledJob = { time, next: Number.POSITIVE_INFINITY };
    this.#handled.set(name, handled);
    const again = this.#run(name);
    if (again !== null) handled.next = otherThan(time, timeIn(again));
    return handled;
  }

  dispose(): void {
    for (const name of this.#timers.keys()) this.#stopTimer(name);
  }

  #push(name: string, time: number): Promise<void> {
    const { jobs } = this.lifecycle;
    const id = `${ID_PREFIX}${name}`;
    const pushed = jobs.push({ id, fn: name, time }).then(() => undefined);
    // The queue writes at once but reports a failure later.
    if (jobs.get(id)?.time !== time) {
      pushed.catch(() => undefined);
      throw new Error(`The wake-up "${name}" could not be written.`);
    }
    this.#handled.delete(name);
    this.#startTimer(name, time);
    return this.#setting(pushed);
  }

  #startTimer(name: string, time: number): void {
    this.#stopTimer(name);
    const wait = time - EARLY_MS - systemClock.now();
    if (!this.#early.includes(name) || wait < 0 || wait > MAX_TIMER_MS) return;
    const cancel = systemClock.timer(wait, () => {
      this.#timers.delete(name);
      this.#callEarly(name, time);
    });
    this.#timers.set(name, cancel);
  }

  #stopTimer(name: string): void {
    this.#timers.get(name)?.();
    this.#timers.delete(name);
  }

  /** Calls the handler of the job that is due at `time`, and moves the job. If that fails, the job fires. */
  #callEarly(name: string, time: number): void {
    try {
      // The transaction that wrote the job may have rolled back, and another request or the alarm may have replaced it.
      if (this.lifecycle.jobs.get(`${ID_PREFIX}${name}`)?.time !== time) return;
      const handled = this.#handle(name, time);
      if (handled.next !== Number.POSITIVE_INFINITY) this.#armAgain(name, handled.next);
      else if (this.#handled.get(name) === handled) this.disarm(name);
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
      return this.handlers[name]?.() ?? null;
    } catch (error) {
      console.error(error);
      return error instanceof StorageRefusal ? REFUSED_RETRY_MS : RETRY_MS;
    }
  }
}

/** Returns the time of a job. */
function timeIn(milliseconds: number): number {
  return Math.floor(systemClock.now() + Math.min(milliseconds, MAX_AHEAD_MS));
}

/** Returns a time, or one millisecond later if it equals `taken`. Jobs of one name are distinguished by their times. */
function otherThan(taken: number, time: number): number {
  return time === taken ? time + 1 : time;
}

/** Milliseconds from the call of an early handler to the time of its job. A timer that is later than this has lost. */
const EARLY_MS = 250;
/**
 * The longest timer, in milliseconds. A longer wait uses the alarm. Unlike a timer, an alarm lets the actor hibernate. It also counts as a
 * request. Without requests, the platform evicts the actor after a minute, even if its effects run.
 */
const MAX_TIMER_MS = 5_000;
const RETRY_MS = 5_000;
/** The platform rejects alarms that are centuries ahead. A handler that is called too early arms the wake-up again. */
const MAX_AHEAD_MS = 30 * 24 * 3_600_000;
