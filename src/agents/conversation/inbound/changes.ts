/**
 * The changes that callers make to a conversation itself: its stops, its settings, its participants and its end.
 *
 * RUN-9  Limit these changes together, from all callers and entry points. No-ops do not count. A stop, the end of the conversation and the
 *        removal of a participant do not count either, and are never refused. A caller therefore cannot block them with other changes. Each
 *        of them requires an earlier change that counts.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { MergeNote } from "../../../protocol/workspace.ts";
import { conflict, DramatisError } from "../../../shared/errors.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { type RateLimit, type TokenBucket, takeToken, tokenBucket } from "../../../shared/token-bucket.ts";
import type { RuntimeContext } from "../context.ts";
import type { ConversationShell } from "../conversation-core.ts";
import type { AgentDeleted, Join, Leave, Update } from "../core/change-signals.ts";
import type { EraseEntry } from "../core/erase-entry.ts";
import type { Cancel, Complete, Resume, Stop } from "../core/stop-signals.ts";
import type { Transition } from "../core/transition.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";

interface ChangesContext extends Pick<RuntimeContext, "clock" | "changeLimit" | "listing"> {
  shell: Pick<ConversationShell, "state" | "preview" | "commit">;
  store: Pick<ConversationDatabase, "turnOfKey" | "journal">;
}

export class ConversationChanges {
  readonly #rate: ChangeRate;

  constructor(private readonly context: ChangesContext) {
    this.#rate = new ChangeRate(context.changeLimit, context.clock);
  }

  /** Stops a turn. Idempotent. Throws `CONFLICT` if the turn has already ended. Resolves when its end is durable. */
  async cancelTurn({ n, status, error }: Turn, stop: Stop): Promise<void> {
    if (status === "active")
      await this.context.shell.commit([{ type: "conversation.cancel", turn: n, ...stop }]);
    else if (error?.code !== "CANCELLED")
      throw conflict(`It is too late to stop this turn: it has ${status}.`);
  }

  /**
   * Changes the title, the order of overlapping turns, and the budget. Throws `RATE_LIMITED`, and as `planUpdate` does. Resolves when that
   * is durable, and a new title will reach the lists.
   */
  async update(changes: Omit<Update, "type">): Promise<void> {
    const before = changes.title === undefined ? undefined : this.#noteListing();
    await this.#change({ type: "conversation.update", ...changes }, before);
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
    await this.#change(signal, this.#noteListing());
  }

  /** Erases an entry of a finished turn. Resolves when that is durable. */
  erase(signal: EraseEntry): Promise<void> {
    return this.context.shell.commit([signal]);
  }

  /** Notes a merge, unless the newest note of the repository has the same commit. Resolves when that is durable. */
  async merged(caller: Caller, merged: MergeNote): Promise<void> {
    const noted = this.context.store.journal.newestOf(
      "conversation.updated",
      ({ data }) => mergeIn(data)?.repo === merged.repo,
    );
    if (mergeIn(noted?.data)?.commit === merged.commit) return;
    await this.context.shell.commit([{ type: "conversation.merged", caller, merged }]);
  }

  /** Returns the function that notes a change of the lists; `undefined` for an unlisted conversation. */
  #noteListing(): (() => Promise<void>) | undefined {
    const { shell, listing } = this.context;
    return shell.state?.record.listed === false ? undefined : () => listing.note();
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

  /** Reports whether a signal was applied before. Throws `IDEMPOTENCY_CONFLICT` if its id has started a turn. */
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

function mergeIn(data: Json | undefined): MergeNote | undefined {
  // SAFETY: only `merged` writes this member.
  return isJsonObject(data) ? (data.merged as MergeNote | undefined) : undefined;
}

/** A caller's wish to change a conversation itself. */
export type ChangeSignal = Cancel | Resume | Update | Complete | Join | Leave | AgentDeleted;

const FREE: ReadonlySet<ChangeSignal["type"]> = new Set([
  "conversation.cancel",
  "conversation.complete",
  "conversation.participant.remove",
  "conversation.agent.deleted",
]);

export class ChangeRate {
  #bucket: TokenBucket | null;

  /** Without a limit all changes are accepted. The count is in memory and restarts when the actor wakes. */
  constructor(
    limit: RateLimit | undefined,
    private readonly clock: Pick<Clock, "now">,
  ) {
    this.#bucket = limit === undefined ? null : tokenBucket(limit);
  }

  /** Commits a planned change. Throws `RATE_LIMITED`, and the errors of `commit`. A failed change does not count. */
  commit(
    { type }: ChangeSignal,
    { entries }: Pick<Transition, "entries">,
    commit: () => Promise<void>,
  ): Promise<void> {
    if (this.#bucket === null || entries.length === 0 || FREE.has(type)) return commit();
    const taken = takeToken(this.#bucket, 1, this.clock.now());
    if (!taken.allowed) throw tooManyChanges(taken.retryAfter);
    const committed = commit();
    this.#bucket = taken.bucket;
    return committed;
  }
}

function tooManyChanges(retryAfter: number): DramatisError {
  const message = `The conversation has been changed too often in a short time. Try again in ${Math.ceil(retryAfter / 1000)} s.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true, retryAfter });
}
