/**
 * The rate of changes of a conversation itself: stops, resumes, participants, and the order of its turns. All readers get each of these
 * commits.
 *
 * RUN-9  Limit these changes together, from all callers and entrances. No-ops do not count. A stop, the end of the conversation and the
 *        removal of a participant do not count either, and are never refused. A caller therefore cannot block them with other changes. Each
 *        of them requires an earlier change that counts.
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
