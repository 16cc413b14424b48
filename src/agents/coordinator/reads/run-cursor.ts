/**
 * The position of one reader in the journal of a run.
 *
 * RUNCURSOR-1  A reader gets each entry behind its position once and in order. It has no queue. A slow reader reads later entries from the
 *              journal.
 */
import type { ReaderCursor, Take } from "../../base/sockets/reader-cursor.ts";
import { isOver, type RunState } from "../core/state.ts";
import type { RunEvents } from "./run-events.ts";

interface CursorContext {
  events: Pick<RunEvents, "text">;
  runtime: { readonly state: Pick<RunState, "seq" | "status"> };
}

export class RunCursor implements ReaderCursor<never> {
  #seq: number;

  /** `from` is the number of the last entry that the reader has. */
  constructor(
    private readonly context: CursorContext,
    from: number,
  ) {
    this.#seq = from;
  }

  get seq(): number {
    return this.#seq;
  }

  get isBehind(): boolean {
    return this.#seq < this.context.runtime.state.seq;
  }

  get isOver(): boolean {
    return !this.isBehind && isOver(this.context.runtime.state);
  }

  /** A no-op, because the journal already has each offered entry. */
  offer(): void {}

  catchUp(take: Take, room: () => number): void {
    while (this.isBehind && room() > 0) {
      if (!take({ text: this.context.events.text(this.#seq + 1) })) return;
      this.#seq += 1;
    }
  }
}
