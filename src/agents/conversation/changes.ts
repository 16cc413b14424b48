/** The changes that callers make to a conversation itself: its stops, its settings, its participants and its end. */
import { DramatisError } from "../../shared/errors.ts";
import { ChangeRate, type ChangeSignal } from "./change-rate.ts";
import type { RuntimeContext } from "./context.ts";
import type { ConversationShell } from "./conversation-core.ts";
import type { EraseEntry } from "./core/erase-entry.ts";
import type { AgentDeleted, Join, Leave, Update } from "./core/signals.ts";
import type { Stop } from "./core/stop-signals.ts";
import type { Turn } from "./core/turn.ts";
import type { ConversationDatabase } from "./store/conversation-database.ts";

interface ChangesContext extends Pick<RuntimeContext, "clock" | "changeLimit" | "listing"> {
  shell: Pick<ConversationShell, "state" | "preview" | "commit">;
  store: Pick<ConversationDatabase, "turnOfKey">;
}

export class ConversationChanges {
  readonly #rate: ChangeRate;

  constructor(private readonly context: ChangesContext) {
    this.#rate = new ChangeRate(context.changeLimit, context.clock);
  }

  /**
   * Stops a turn. Idempotent. Throws `CONFLICT` if the turn has already ended. Resolves when its end is durable.
   */
  async cancelTurn({ n, status, error }: Turn, stop: Stop): Promise<void> {
    if (status === "active")
      await this.context.shell.commit([{ type: "conversation.cancel", turn: n, ...stop }]);
    else if (error?.code !== "CANCELLED")
      throw new DramatisError("CONFLICT", `It is too late to stop this turn: it has ${status}.`);
  }

  /**
   * Changes the order of overlapping turns, and the budget. Throws `RATE_LIMITED`, and as `planUpdate` does. Resolves when that is durable.
   */
  async update(changes: Omit<Update, "type">): Promise<void> {
    await this.#change({ type: "conversation.update", ...changes });
  }

  /**
   * Stops the conversation with all its turns. Idempotent. May throw `RATE_LIMITED` if it has no active turns. Resolves when that is
   * durable.
   */
  async cancel(stop: Stop): Promise<void> {
    await this.#change({ type: "conversation.cancel", ...stop });
  }

  /** Resumes the conversation. Throws `NOT_CANCELLED` if it is not stopped, `RATE_LIMITED`. Resolves when that is durable. */
  async resume(stop: Stop): Promise<void> {
    await this.#change({ type: "conversation.resume", ...stop });
  }

  /** Ends the conversation permanently. Idempotent. Resolves when that is durable. */
  async end(stop: Stop): Promise<void> {
    await this.#change({ type: "conversation.complete", ...stop });
  }

  /**
   * Adds or removes a participant. Idempotent. Throws `RATE_LIMITED`, and as `planJoin` and `planLeave` do. Resolves when that is durable,
   * and will reach the lists.
   */
  async changeParticipants(signal: Join | Leave | AgentDeleted): Promise<void> {
    const { shell, listing } = this.context;
    const isListed = shell.state?.record.listed !== false;
    await this.#change(signal, isListed ? () => listing.note() : undefined);
  }

  /** Erases an entry of a finished turn. Resolves when that is durable. */
  erase(signal: EraseEntry): Promise<void> {
    return this.context.shell.commit([signal]);
  }

  /** Commits a caller's change of the conversation itself. All such changes use this method (RUN-9). */
  async #change(signal: ChangeSignal, before?: () => Promise<void>): Promise<void> {
    if (this.#isSeen(signal)) return;
    const planned = this.context.shell.preview([signal]);
    await this.#rate.commit(signal, planned, () => {
      // If the commit fails, the directory gets the same once more.
      const noted = planned.entries.length === 0 ? undefined : before?.();
      const committed = this.context.shell.commit([signal]);
      return noted === undefined ? committed : Promise.all([committed, noted]).then(() => undefined);
    });
  }

  /** Reports whether a signal was applied before. Throws `IDEMPOTENCY_CONFLICT` where its id has started a turn. */
  #isSeen(signal: ChangeSignal): boolean {
    const { id, supplied } = ("origin" in signal ? signal.origin : undefined) ?? {};
    const seen = id === undefined ? undefined : this.context.store.turnOfKey(signal.caller, id, supplied);
    if (seen === undefined || seen === 0) return seen !== undefined;
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      "This id was used for a message. Use a new id for a new signal.",
    );
  }
}
