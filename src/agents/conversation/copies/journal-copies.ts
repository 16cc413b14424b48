/** All copies of a conversation's journal: its turns in the directory, and its entries and messages in the log of its tenant. */
import { EventsTarget } from "../../base/copies/events-target.ts";
import { CopiesWakeup, JournalCopy } from "../../base/copies/journal-copy.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext } from "../context.ts";
import { type CopiedConversation, loggedConversation } from "./logged-conversation.ts";
import { TurnsTarget } from "./turns-target.ts";

type Copy = Pick<JournalCopy<unknown>, "isBehind" | "note" | "publish" | "wake">;

export class JournalCopies {
  readonly turns: Pick<JournalCopy<unknown>, "changed">;
  readonly events: Pick<JournalCopy<unknown>, "changed" | "note" | "publish">;
  readonly #all: readonly Copy[];
  readonly #wakeup: CopiesWakeup;

  /** `window` is the wake-up that active turns share. */
  constructor(
    private readonly context: {
      clock: Pick<ActorContext["clock"], "now" | "timer">;
      runtime: CopiedConversation;
    } & Pick<ActorContext, "directory" | "eventLog">,
    window: Wakeup,
  ) {
    this.#wakeup = new CopiesWakeup(context.clock, window, () => this.isBehind);
    const turns = new JournalCopy(context, new TurnsTarget(context), this.#wakeup);
    const events = new JournalCopy(context, new EventsTarget(loggedConversation(context)), this.#wakeup);
    this.turns = turns;
    this.events = events;
    this.#all = [turns, events];
  }

  /** Reports whether a copy may lack a change, as `Copy.isBehind` does. */
  get isBehind(): boolean {
    return this.#all.some(({ isBehind }) => isBehind);
  }

  /** As `CopiesWakeup.armInCommit`. */
  armInCommit(dueIn: number): void {
    const { directory, eventLog } = this.context;
    if (directory() !== null || eventLog() !== null) this.#wakeup.armInCommit(dueIn);
  }

  /** As `JournalCopy.note`, for all copies. */
  note(): Promise<void> {
    return Promise.all(this.#all.map((copy) => copy.note())).then(() => undefined);
  }

  /** As `Copy.publish`, for all copies. */
  async publish(): Promise<void> {
    await Promise.all(this.#all.map((copy) => copy.publish()));
  }

  /** As `Copy.wake`, for all copies. */
  wake(): number | null {
    this.#wakeup.fires();
    const pauses = this.#all.map((copy) => copy.wake()).filter((pause) => pause !== null);
    return pauses.length === 0 ? null : Math.min(...pauses);
  }
}
