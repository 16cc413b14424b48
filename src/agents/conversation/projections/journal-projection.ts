/**
 * A copy of a conversation's journal. The wake-up of the active window publishes it, as it publishes the usage.
 *
 * RECORDS-1  A copy ends with the newest state of the conversation, also after outages and crashes. Turns do not wait for a copy.
 * RECORDS-4  While a turn is active, a put that succeeds causes no wake-up.
 */
import type { Clock } from "../../../ports/clock.ts";
import { Projection } from "../../base/projections/projection.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { StoredConversation } from "../context.ts";
import { type JournalRow, lastSeq } from "../core/journal-entry.ts";

/** The conversation of a copy. */
export interface CopiedConversation extends StoredConversation {
  /** As in `UsageProjection`. */
  readonly dueIn: number | null;
  readonly store: {
    readonly journal: { forward(from: number, limit: number): JournalRow[] };
    readonly turns: { erasedFrom(n: number): number[] };
  };
}

export interface JournalCopyContext {
  clock: Pick<Clock, "now">;
  runtime: CopiedConversation;
}

/** The place of a copy. */
export interface JournalTarget<Target> {
  /** Returns `null` if there is no such copy. */
  find(): Target | null;
  /** Returns the last published entry of the conversation; 0 if there is none. */
  published(target: Target): Promise<number>;
  /** Publishes rows that follow entry `upTo`. Returns the last published entry. */
  put(target: Target, rows: readonly JournalRow[], upTo: number): Promise<number>;
}

/** The wake-up that copies share. */
export interface CopiesWakeup extends Wakeup {
  /** Arms the wake-up after a commit, unless it was armed and has not fired since. */
  armAfterCommit(milliseconds: number): void;
}

/** Rows of the journal in one read. */
const SLICE = 64;
/** Milliseconds until a change without an active turn is published. */
const NOTED_MS = 15_000;

export class JournalProjection<Target> {
  readonly #projection: Projection<Target>;
  /** The last published entry; `undefined` until this life has read it, and after a failure. */
  #upTo: number | undefined;

  /** `window` is the wake-up that active turns share. */
  constructor(
    private readonly context: JournalCopyContext,
    private readonly target: JournalTarget<Target>,
    private readonly window: CopiesWakeup,
  ) {
    // While a turn is active, the wake-up is armed.
    const wakeup = { arm: async () => undefined, disarm: window.disarm };
    const put = (found: Target) => this.#put(found);
    this.#projection = new Projection({ clock: context.clock, directory: target.find, wakeup, put });
  }

  /** As `Projection.isBehind`. */
  get isBehind(): boolean {
    return this.#projection.isBehind;
  }

  /** Notes a commit. Without a heartbeat it arms the wake-up: turns that wait have none. */
  changed(): void {
    void this.#projection.note();
    const { dueIn } = this.context.runtime;
    if (this.target.find() === null || (dueIn ?? Number.POSITIVE_INFINITY) <= NOTED_MS) return;
    this.window.armAfterCommit(NOTED_MS);
  }

  /**
   * Notes a change without an active turn. Call it in its transaction or before, and `publish` after it. Resolves when the wake-up is armed.
   * Throws if the wake-up cannot be written.
   */
  note(): Promise<void> {
    void this.#projection.note();
    return this.target.find() === null ? Promise.resolve() : this.window.arm(NOTED_MS);
  }

  /** As `Projection.publish`. */
  publish(): Promise<void> {
    return this.#projection.publish();
  }

  /** As `Projection.wake`. Call it when the wake-up of the active window fires. */
  wake(): number | null {
    const pause = this.#projection.wake();
    if (pause === null || this.context.runtime.dueIn === null) return pause;
    // An active turn has its own wake-up. So a put that succeeds needs no other.
    void this.publish().then(() => {
      if (this.isBehind) this.window.arm(pause).catch((error: unknown) => console.error(error));
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
