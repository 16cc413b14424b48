/** All copies of a conversation's journal: its turns in the directory, and its entries and messages in the log of its tenant. */
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext } from "../context.ts";
import { EventsTarget } from "./events-target.ts";
import { type JournalCopyContext, JournalProjection } from "./journal-projection.ts";
import { TurnsTarget } from "./turns-target.ts";

export class JournalCopies {
  readonly turns: Pick<JournalProjection<unknown>, "changed">;
  readonly events: Pick<JournalProjection<unknown>, "changed" | "note" | "publish">;
  readonly #all: readonly Pick<JournalProjection<unknown>, "isBehind" | "note" | "publish" | "wake">[];

  #isArmed = false;

  /** `window` is the wake-up that active turns share. */
  constructor(context: JournalCopyContext & Pick<ActorContext, "directory" | "events">, window: Wakeup) {
    // A copy that is behind needs the wake-up.
    const shared = {
      arm: window.arm,
      armAfterCommit: (milliseconds: number) => this.#armAfterCommit(window, milliseconds),
      disarm: () => {
        if (this.isBehind) return;
        this.#isArmed = false;
        window.disarm();
      },
    };
    const turns = new JournalProjection(context, new TurnsTarget(context), shared);
    const events = new JournalProjection(context, new EventsTarget(context), shared);
    this.turns = turns;
    this.events = events;
    this.#all = [turns, events];
  }

  /** Reports whether a copy lacks a known change. */
  get isBehind(): boolean {
    return this.#all.some(({ isBehind }) => isBehind);
  }

  /** As `JournalProjection.note`, for all copies. */
  note(): Promise<void> {
    return Promise.all(this.#all.map((copy) => copy.note())).then(() => undefined);
  }

  /** As `Projection.publish`, for all copies. */
  async publish(): Promise<void> {
    await Promise.all(this.#all.map((copy) => copy.publish()));
  }

  /** As `Projection.wake`, for all copies. */
  wake(): number | null {
    this.#isArmed = false;
    const pauses = this.#all.map((copy) => copy.wake()).filter((pause) => pause !== null);
    return pauses.length === 0 ? null : Math.min(...pauses);
  }

  #armAfterCommit(window: Wakeup, milliseconds: number): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    window.arm(milliseconds).catch((error: unknown) => {
      this.#isArmed = false;
      console.error(error);
    });
  }
}
