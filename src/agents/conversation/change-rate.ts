/**
 * The rate at which callers change a conversation itself: its stops, its resumes, its participants, and other orders of its turns. Each of these
 * is a commit that every reader gets.
 *
 * RUN-9  Limit these changes together, from every caller and entrance. What changes nothing is free. So are a stop, the end of the
 *        conversation and the removal of a participant, which are never refused, so that nobody can prevent them by changes of
 *        their own: each needs another change before it, and that counts.
 */
import type { Clock } from "../../ports/clock.ts";
import { DramatisError } from "../../shared/errors.ts";
import { type RateLimit, type TokenBucket, takeToken, tokenBucket } from "../../shared/token-bucket.ts";
import type { AgentDeleted, Join, Leave, Update } from "./core/signals.ts";
import type { Cancel, Complete, Resume } from "./core/stop-signals.ts";
import type { Transition } from "./core/transition.ts";

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

  /** Without a limit nothing is refused. The count is in memory and starts anew when the actor wakes. */
  constructor(
    limit: RateLimit | undefined,
    private readonly clock: Pick<Clock, "now">,
  ) {
    this.#bucket = limit === undefined ? null : tokenBucket(limit);
  }

  /** Commits a planned change. Throws `RATE_LIMITED`, and what `commit` throws: neither counts. */
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
