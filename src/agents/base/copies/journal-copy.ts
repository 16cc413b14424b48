/**
 * A copy of an actor's journal: of a conversation, or of a run. A wake-up that the actor has for its own work publishes it.
 *
 * RECORDS-1  A copy ends with the newest state of the actor, also after outages and crashes. The actor's work does not wait for a copy.
 *            If the wake-up of a copy cannot be armed, a timer arms it again after a second. A commit of an actor without work writes the
 *            wake-up in its transaction, so a crash before the publication loses nothing.
 * RECORDS-4  While the actor works, a put that succeeds causes no wake-up.
 */
import type { Clock } from "../../../ports/clock.ts";
import { type JournalRowOf, lastSeq } from "../../../shared/journal-row.ts";
import { RetryTimer } from "../runtime/retry-timer.ts";
import type { Wakeup } from "../timers/wakeups.ts";
import { Copy } from "./copy.ts";

export interface CopiedActor<Row> {
  readonly exists: boolean;
  /** Milliseconds until the actor needs its wake-up; `null` if it does not. */
  readonly dueIn: number | null;
  readonly store: {
    readonly journal: {
      /** Returns at most `limit` rows, ascending, from the row with entry `from` on. */
      forward(from: number, limit: number): Row[];
    };
  };
}

export interface JournalCopyContext<Row> {
  clock: Pick<Clock, "now" | "timer">;
  runtime: CopiedActor<Row>;
}

export interface JournalTarget<Target, Row> {
  /** Returns `null` if there is no such copy. */
  find(): Target | null;
  /** Returns the last published entry of the actor; 0 if there is none. */
  published(target: Target): Promise<number>;
  /** Publishes rows that follow entry `upTo`. Returns the last published entry. */
  put(target: Target, rows: readonly Row[], upTo: number): Promise<number>;
}

/** The wake-up that the copies of an actor share. It stays armed while one of them is behind. */
export class CopiesWakeup implements Wakeup {
  #isArmed = false;
  #pause = 0;
  readonly #retry: RetryTimer;

  constructor(
    clock: Pick<Clock, "timer">,
    private readonly wakeup: Wakeup,
    private readonly isBehind: () => boolean,
  ) {
    this.#retry = new RetryTimer(clock, () => {
      if (this.isBehind()) this.armAfterCommit(this.#pause);
    });
  }

  arm(milliseconds: number): Promise<void> {
    const armed = this.wakeup.arm(milliseconds);
    armed.catch(() => this.#armLater(milliseconds));
    return armed;
  }

  /**
   * Arms the wake-up in the transaction of a commit, if the actor wakes for its work in `dueIn` milliseconds and that is too late. Throws
   * if the wake-up cannot be written.
   */
  armInCommit(dueIn: number): void {
    if (this.#isArmed || dueIn <= NOTED_MS) return;
    // `armAfterCommit` repeats the request, and handles its error.
    this.wakeup.arm(NOTED_MS).catch(() => undefined);
  }

  /** Arms the wake-up after a commit, unless it was armed and has not fired since. */
  armAfterCommit(milliseconds: number): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    void this.retryArming(milliseconds);
  }

  /** Arms the wake-up, and again after a second if that fails. Never rejects. */
  async retryArming(milliseconds: number): Promise<void> {
    try {
      await this.wakeup.arm(milliseconds);
    } catch (error) {
      console.error(error);
      this.#isArmed = false;
      this.#armLater(milliseconds);
    }
  }

  disarm(): void {
    if (this.isBehind()) return;
    this.#isArmed = false;
    this.wakeup.disarm();
  }

  fires(): void {
    this.#isArmed = false;
  }

  #armLater(milliseconds: number): void {
    this.#pause = milliseconds;
    this.#retry.start();
  }
}

/** Rows of the journal in one read. */
const SLICE = 64;
/** Milliseconds until a change of an actor without work is published. */
const NOTED_MS = 15_000;

export class JournalCopy<Target, Row extends JournalRowOf<unknown> = JournalRowOf<unknown>> {
  readonly #copy: Copy<Target>;
  /** The last published entry; `undefined` until this life has read it, and after a failure. */
  #upTo: number | undefined;

  constructor(
    private readonly context: JournalCopyContext<Row>,
    private readonly target: JournalTarget<Target, Row>,
    private readonly window: CopiesWakeup,
  ) {
    // While the actor works, its wake-up is armed.
    const wakeup = { arm: async () => undefined, disarm: () => window.disarm() };
    const put = (found: Target) => this.#put(found);
    this.#copy = new Copy({ clock: context.clock, directory: target.find, wakeup, put });
  }

  /** As `Copy.isBehind`. */
  get isBehind(): boolean {
    return this.#copy.isBehind;
  }

  get exists(): boolean {
    return this.target.find() !== null;
  }

  /** Notes a commit. Without a heartbeat it arms the wake-up: an actor that waits has none. */
  changed(): void {
    void this.#copy.note();
    const { dueIn } = this.context.runtime;
    if (!this.exists || (dueIn ?? Number.POSITIVE_INFINITY) <= NOTED_MS) return;
    this.window.armAfterCommit(NOTED_MS);
  }

  /**
   * Notes a change while the actor has no work. Call it in its transaction or before, and `publish` after it. Resolves when the wake-up is armed.
   * Throws if the wake-up cannot be written.
   */
  note(): Promise<void> {
    void this.#copy.note();
    return this.exists ? this.window.arm(NOTED_MS) : Promise.resolve();
  }

  /** As `Copy.publish`. */
  publish(): Promise<void> {
    return this.#copy.publish();
  }

  /** As `Copy.wake`. Call it when the wake-up of the actor's work fires. */
  wake(): number | null {
    const pause = this.#copy.wake();
    if (pause === null || this.context.runtime.dueIn === null) return pause;
    // An actor that works has its own wake-up. So a put that succeeds needs no other.
    void this.publish().then(() => {
      if (this.isBehind) return this.window.retryArming(pause);
    });
    return null;
  }

  async #put(target: Target): Promise<void> {
    const { runtime } = this.context;
    if (!runtime.exists) return;
    let upTo = this.#upTo ?? (await this.target.published(target));
    // A put that fails may have published a part of its rows.
    this.#upTo = undefined;
    while (runtime.exists) {
      const rows = runtime.store.journal.forward(upTo + 1, SLICE);
      const last = rows.at(-1);
      if (last === undefined || lastSeq(last) <= upTo) break;
      upTo = await this.target.put(target, rows, upTo);
    }
    this.#upTo = upTo;
  }
}
