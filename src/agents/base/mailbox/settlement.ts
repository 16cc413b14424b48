/**
 * The settlement of outbox entries.
 *
 * MAIL-11  One transaction reports an outcome and removes the envelope from the outbox. An undelivered envelope becomes a dead letter in
 *          the same transaction. Each stay in the outbox therefore has exactly one report.
 */
import { firstOperationId } from "../../../protocol/envelope.ts";
import { LETTER_KEPT_MS } from "../../../protocol/mailbox-api.ts";
import type { DeadLetterCopy } from "./dead-letter-copy.ts";
import type { AfterCommit, Handlers } from "./handlers.ts";
import { MAX_ATTEMPTS } from "./mailbox-limits.ts";
import type { OutboxEntry, Outcome } from "./outbox-entry.ts";
import type { MailboxPorts } from "./ports.ts";
import type { MailboxStore } from "./store.ts";

export class Settlement {
  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
    private readonly handlers: Handlers,
    private readonly letters: DeadLetterCopy,
  ) {}

  /**
   * Commits the outcome of the entry under `key`. Returns the effects to run after the commit. Returns `null` if the commit is uncertain.
   * The receiver must then repeat its answer.
   */
  settle(key: string, entry: OutboxEntry, outcome: Outcome): AfterCommit[] | null {
    const effects: AfterCommit[] = [];
    try {
      this.store.transaction(() => this.#commit(key, entry, outcome, effects));
    } catch (error) {
      console.error(error);
      return null;
    }
    this.letters.publish();
    return effects;
  }

  #commit(key: string, entry: OutboxEntry, outcome: Outcome, effects: AfterCommit[]): void {
    if (!this.store.deleteEntry(key)) return;
    const isReported = this.#report(entry, outcome, effects);
    if (outcome.status === "delivered" && isReported) return;
    const now = this.ports.clock.now();
    const { envelope, attempt, unanswered } = entry;
    const { status, error } = outcome.status === "delivered" ? UNREPORTED : outcome;
    this.store.keep({ envelope, status, error, attempt, unanswered, diedAt: now });
    const displaced = this.store.trimDeadLetters(firstOperationId(now - LETTER_KEPT_MS));
    for (const operationId of [envelope.operationId, ...displaced]) this.letters.note(operationId);
  }

  /**
   * Calls the sender's handler. If it throws, the transaction rolls back, and the receiver must repeat its answer. After a further series
   * of such attempts this returns `false`, and the envelope becomes a dead letter.
   */
  #report(entry: OutboxEntry, outcome: Outcome, effects: AfterCommit[]): boolean {
    const { envelope, late, attempt, lastAttempt } = entry;
    const handler = this.handlers.outcome(envelope.type);
    if (handler === undefined) return true;
    const afterCommit = (effect: AfterCommit) => void effects.push(effect);
    try {
      this.ports.database.transaction(() => handler({ envelope, outcome, late, afterCommit }));
      return true;
    } catch (error) {
      if (attempt < lastAttempt + MAX_ATTEMPTS) throw error;
      console.error(`The handler for the outcome of ${envelope.operationId} keeps failing:`, error);
      effects.length = 0;
      return false;
    }
  }
}

const UNREPORTED: Extract<Outcome, { status: "unknown" }> = {
  status: "unknown",
  error: {
    code: "INTERNAL_ERROR",
    message: "The envelope was delivered, but the sender's handler failed to process the outcome.",
    retriable: false,
  },
};
