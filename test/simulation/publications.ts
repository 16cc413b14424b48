/** The copies of a conversation in the directory, as the actor's class on the platform connects them. */

import type { EventLogWriter } from "../../src/agents/base/lookup/event-logs.ts";
import { JournalCopies } from "../../src/agents/conversation/copies/journal-copies.ts";
import { UsageCopy } from "../../src/agents/conversation/copies/usage-copy.ts";
import type { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import type { Directory } from "../../src/d1/directory.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { endsTurn, type Frame } from "../../src/protocol/frames.ts";
import type { PublishedDirectory } from "./usage-directory.ts";

interface Window {
  arm(milliseconds: number): Promise<void>;
  disarm(): void;
}

export class Publications {
  readonly usage: UsageCopy;
  readonly copies: JournalCopies;

  constructor(
    private readonly runtime: ConversationRuntime,
    { directory: published, log }: { directory: PublishedDirectory; log: EventLogWriter | null },
    clock: Pick<Clock, "now" | "timer">,
    window: Window,
  ) {
    // SAFETY: the copies use only these members.
    const context = { runtime, clock, directory: () => published as Directory, eventLog: () => log };
    this.usage = new UsageCopy(context, { disarm: () => !this.copies.isBehind && window.disarm() });
    this.copies = new JournalCopies(context, {
      arm: window.arm,
      disarm: () => runtime.dueIn === null && !this.usage.isBehind && window.disarm(),
    });
  }

  /** Notes the turns that began or ended. */
  changed(frames: readonly Frame[]): void {
    const isEnd = frames.some(endsTurn);
    if (isEnd) this.usage.changed();
    if (isEnd || frames.some(({ type }) => type === "turn.started")) this.copies.turns.changed();
  }

  /** Returns the milliseconds until the next wake-up; `null` if there is no work. */
  wake(): number | null {
    const times = [this.runtime.dueIn, this.usage.wake(), this.copies.wake()].filter((time) => time !== null);
    return times.length === 0 ? null : Math.min(...times);
  }
}
