/**
 * The end of an envelope's stay in the outbox.
 *
 * MAIL-11  An outcome is told in the transaction that takes the envelope out of the outbox (and makes it a dead letter
 *          unless it was delivered), so it is told once for each time the envelope was put there.
 */

import { firstOperationId } from "../../../protocol/envelope.ts";
import { LETTER_KEPT_MS } from "../../../protocol/mailbox-api.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { DeadLetter } from "./dead-letter.ts";
import type { DeadLetterMirror } from "./dead-letter-mirror.ts";
import type { AfterCommit, Handlers } from "./handlers.ts";
import { MAX_ATTEMPTS } from "./limits.ts";
import type { OutboxEntry, Outcome } from "./outbox-entry.ts";
import type { MailboxPorts } from "./ports.ts";
import type { MailboxStore } from "./store.ts";

export class Settlement {
  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
    private readonly handlers: Handlers,
    private readonly letters: DeadLetterMirror,
  ) {}

  /**
   * Commits the outcome of the entry under `key`, and answers what its handler wants done after that; `null` where it
   * is not known to have committed: if the entry is still there, the receiver has to be asked again.
   */
  settle(key: string, entry: OutboxEntry, outcome: Outcome): AfterCommit[] | null {
    const effects: AfterCommit[] = [];
    try {
      this.ports.database.transaction(() => this.#commit(key, entry, outcome, effects));
    } catch (error) {
      console.error(error);
      this.store.forgetTables();
      return null;
    }
    this.letters.publish();
    return effects;
  }

  #commit(key: string, entry: OutboxEntry, outcome: Outcome, effects: AfterCommit[]): void {
    if (!this.store.deleteEntry(key)) return;
    const isTold = this.#tell(entry, outcome, effects);
    if (outcome.status === "delivered" && isTold) return;
    const now = this.ports.clock.now();
    this.store.keep(deadLetter(entry, outcome, now));
    const displaced = this.store.trimDeadLetters(firstOperationId(now - LETTER_KEPT_MS));
    for (const operationId of [entry.envelope.operationId, ...displaced]) this.letters.note(operationId);
  }

  /**
   * Tells the sender's handler. If it throws, nothing is committed and the receiver is asked again; a handler that
   * throws for a whole further series of attempts is given up, and the envelope kept as a dead letter.
   */
  #tell(entry: OutboxEntry, outcome: Outcome, effects: AfterCommit[]): boolean {
    const { envelope, late, attempt, lastAttempt } = entry;
    const handler = this.handlers.outcome(envelope.type);
    if (handler === undefined) return true;
    const afterCommit = (effect: AfterCommit) => void effects.push(effect);
    try {
      this.ports.database.transaction(() => handler({ envelope, outcome, late, afterCommit }));
      return true;
    } catch (error) {
      if (attempt < lastAttempt + MAX_ATTEMPTS) throw error;
      console.error(`The outcome of ${envelope.operationId} could not be told:`, error);
      effects.length = 0;
      return false;
    }
  }
}

function deadLetter(entry: OutboxEntry, outcome: Outcome, now: number): DeadLetter {
  const { envelope, attempt, unanswered } = entry;
  const { status, error } =
    outcome.status === "delivered" ? { status: "unknown" as const, error: UNTOLD } : outcome;
  return { envelope, status, error, attempt, unanswered, diedAt: now };
}

const UNTOLD: ErrorData = {
  code: "INTERNAL_ERROR",
  message: "It was delivered, but its sender's handler could not take note of it.",
  retriable: false,
};
