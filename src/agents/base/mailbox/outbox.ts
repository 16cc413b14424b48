/**
 * The sending side: entries that are committed with the decision that made them, and attempts to deliver them.
 *
 * MAIL-10  What is sent in a transaction is sent if it commits, and not if it rolls back. The wake-up that delivers it
 *          after a crash is armed in the same transaction.
 * MAIL-12  To one destination there is one attempt at a time, first attempts in the order of sending. While none of them
 *          fails, envelopes are therefore acted upon in that order; one that has to be tried again is overtaken.
 * MAIL-13  An outbox is bounded in number and bytes; what does not fit is `QUEUE_OVERFLOW`, and takes the whole
 *          decision back.
 * MAIL-17  The operation id of a dead letter is sent again by redelivering it only: the same envelope under it is left to
 *          that, another one is `IDEMPOTENCY_CONFLICT`. The numbers of its attempts therefore go on.
 */

import { withDeadline } from "../../../ports/deadline.ts";
import { type ActorAddress, addressKey, type NewEnvelope } from "../../../protocol/envelope.ts";
import { DramatisError, type ErrorData } from "../../../shared/errors.ts";
import { redactSecrets } from "../../../shared/redact.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { validate } from "../../../shared/validation.ts";
import { answerSchema } from "./answer.ts";
import type { DeadLetter } from "./dead-letter.ts";
import { runEffects } from "./handlers.ts";
import {
  ATTEMPT_TIMEOUT_MS,
  MAX_IN_FLIGHT,
  MAX_OUTBOX_BYTES,
  MAX_OUTBOX_ENVELOPES,
  WAKE_AFTER_SEND_MS,
} from "./limits.ts";
import { checkedEnvelope, sameContent } from "./new-envelope.ts";
import {
  isLastAttempt,
  newEntry,
  type OutboxEntry,
  type OutboxInput,
  type OutboxStep,
  redeliveredEntry,
  stepOutbox,
} from "./outbox-entry.ts";
import type { MailboxPorts } from "./ports.ts";
import type { Settlement } from "./settlement.ts";
import type { MailboxStore, StoredEntry } from "./store.ts";

/** An entry in memory. */
interface Held extends StoredEntry {
  /** Found in the store; whether its attempt ever began is not known. */
  woken: boolean;
  running: boolean;
}

export class Outbox {
  /** By operation id, in the order of sending. */
  readonly #held = new Map<string, Held>();
  /** Written in a transaction that may still roll back; looked at when it is over. */
  readonly #staged: Held[] = [];
  /** Destinations with an attempt under way. */
  readonly #busy = new Set<string>();
  #loaded = false;
  #lastNumber = 0;
  /** The newest arming; `null` while this life does not know of one. */
  #armed: Promise<void> | null = null;

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
    private readonly settlement: Settlement,
  ) {}

  /** Resolves when the wake-up of what is known to be under way is armed. */
  whenArmed(): Promise<void> {
    const isEmpty = this.#held.size + this.#staged.length === 0;
    return this.#armed ?? (isEmpty ? Promise.resolve() : this.#arm(WAKE_AFTER_SEND_MS));
  }

  send(fields: NewEnvelope): Promise<void> {
    const now = this.ports.clock.now();
    const { envelope, size } = checkedEnvelope(fields, this.#self(), now);
    this.load();
    const known =
      this.#find(envelope.operationId)?.entry.envelope ??
      this.store.deadLetter(envelope.operationId)?.envelope;
    if (known === undefined) return this.#stage(newEntry(envelope), size);
    if (sameContent(known, envelope)) return this.whenArmed();
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      `"${envelope.operationId}" names another envelope. Send this one under a new operation id.`,
    );
  }

  /** Sends a dead letter again. Call it in the transaction that removes it. */
  resend(letter: DeadLetter): Promise<void> {
    this.load();
    return this.#stage(redeliveredEntry(letter), utf8Length(JSON.stringify(letter.envelope)));
  }

  /** The entry of an operation that is under way. */
  underWay(operationId: string): OutboxEntry | undefined {
    this.load();
    return this.#find(operationId)?.entry;
  }

  /** Starts what is due. Answers after how many milliseconds to come again; `null` when the outbox is empty. */
  wake(): number | null {
    this.load();
    this.#flush();
    const now = this.ports.clock.now();
    // What could not be looked at is looked at again.
    let next = this.#staged.length > 0 ? ATTEMPT_TIMEOUT_MS : null;
    for (const { entry, running } of this.#held.values()) {
      const isWaiting = !running && entry.dueAt !== null && entry.dueAt > now;
      const wait = isWaiting ? (entry.dueAt ?? now) - now : ATTEMPT_TIMEOUT_MS;
      next = Math.min(next ?? wait, wait);
    }
    return next;
  }

  #self(): ActorAddress {
    const self = this.ports.self();
    if (self !== null) return self;
    throw new DramatisError(
      "UNSUPPORTED",
      "Only an actor named `{tenant}:{id}` has an address: get it by such a name to send envelopes.",
    );
  }

  /** Reads what an earlier life left under way. */
  load(): void {
    if (this.#loaded) return;
    for (const stored of this.store.entries()) {
      this.#held.set(stored.entry.envelope.operationId, { ...stored, woken: true, running: false });
      this.#lastNumber = this.store.entryNumber(stored.key);
    }
    this.#loaded = true;
  }

  #find(operationId: string): Held | undefined {
    const staged = this.#staged.findLast(({ entry }) => entry.envelope.operationId === operationId);
    if (staged !== undefined && this.store.hasEntry(staged.key)) return staged;
    return this.#held.get(operationId);
  }

  #stage(entry: OutboxEntry, size: number): Promise<void> {
    if (!this.#hasRoomFor(size)) this.#forgetRolledBack();
    if (!this.#hasRoomFor(size)) {
      throw new DramatisError(
        "QUEUE_OVERFLOW",
        `An actor may have ${MAX_OUTBOX_ENVELOPES} envelopes of ${MAX_OUTBOX_BYTES} bytes under way: try again when some have arrived.`,
        { retriable: true },
      );
    }
    const key = this.store.entryKey(++this.#lastNumber);
    this.store.putEntry(key, entry);
    if (this.#staged.length === 0) queueMicrotask(() => this.#flush());
    this.#staged.push({ key, entry, size, woken: false, running: false });
    return this.#arm(WAKE_AFTER_SEND_MS);
  }

  #hasRoomFor(size: number): boolean {
    const pending = [...this.#held.values(), ...this.#staged];
    const bytes = pending.reduce((sum, held) => sum + held.size, size);
    return pending.length < MAX_OUTBOX_ENVELOPES && bytes <= MAX_OUTBOX_BYTES;
  }

  #forgetRolledBack(): void {
    const present = this.#staged.filter(({ key }) => this.store.hasEntry(key));
    this.#staged.splice(0, this.#staged.length, ...present);
  }

  #arm(milliseconds: number): Promise<void> {
    const armed = this.ports.arm(milliseconds);
    this.#armed = armed;
    // Whoever needs to know awaits the promise; nobody has to.
    armed.catch((error: unknown) => {
      console.error(error);
      if (this.#armed === armed) this.#armed = null;
    });
    return armed;
  }

  /** Takes over what has committed, forgets what has not, and starts the attempts that are due. */
  #flush(): void {
    try {
      for (let staged = this.#staged[0]; staged !== undefined; staged = this.#staged[0]) {
        const isCommitted = this.store.hasEntry(staged.key);
        this.#staged.shift();
        if (isCommitted) this.#held.set(staged.entry.envelope.operationId, staged);
      }
    } catch (error) {
      console.error(error);
    }
    for (const held of [...this.#held.values()]) {
      if (held.woken) this.#takeUp(held);
      if (this.#busy.size >= MAX_IN_FLIGHT) return;
      if (this.#mayStart(held)) this.#start(held);
    }
  }

  #takeUp(held: Held): void {
    held.woken = false;
    const step = stepOutbox(held.entry, { type: "woken" }, this.ports.clock.now());
    if (step.type === "settle") this.#settle(held, step);
    else held.entry = step.entry;
  }

  #mayStart({ entry, running }: Held): boolean {
    if (running || this.#busy.has(addressKey(entry.envelope.to))) return false;
    if (!this.#held.has(entry.envelope.operationId)) return false;
    return entry.dueAt === null || entry.dueAt <= this.ports.clock.now();
  }

  /** The first attempt was recorded when the envelope was sent; every other one is recorded before it is made. */
  #start(held: Held): void {
    if (held.entry.dueAt !== null) {
      try {
        // It is gone if its outcome has committed and only the news of that was lost.
        if (!this.store.hasEntry(held.key)) {
          this.#held.delete(held.entry.envelope.operationId);
          return;
        }
        const { entry } = stepOutbox(held.entry, { type: "begin" }, this.ports.clock.now());
        this.store.putEntry(held.key, entry);
        held.entry = entry;
      } catch (error) {
        console.error(error);
        return;
      }
    }
    held.running = true;
    const destination = addressKey(held.entry.envelope.to);
    this.#busy.add(destination);
    void this.#attempt(held.entry).then((input) => {
      held.running = false;
      this.#busy.delete(destination);
      this.#apply(held, stepOutbox(held.entry, input, this.ports.clock.now()));
      this.#flush();
    });
  }

  async #attempt(entry: OutboxEntry): Promise<OutboxInput> {
    const { ports } = this;
    try {
      const attempt = { number: entry.attempt, last: isLastAttempt(entry) };
      const answer = await withDeadline(ports.clock, ATTEMPT_TIMEOUT_MS, () =>
        ports.deliver(entry.envelope, attempt),
      );
      return { type: "answered", answer: validate(answerSchema, answer, "", "The receiver's answer") };
    } catch (error) {
      return { type: "unanswered", error: noAnswer(error) };
    }
  }

  #apply(held: Held, step: OutboxStep): void {
    if (step.type === "settle") {
      this.#settle(held, step);
      return;
    }
    held.entry = step.entry;
    try {
      this.store.putEntry(held.key, step.entry);
    } catch (error) {
      // The stored entry says that the attempt is under way: a new life would count it as made, as it was.
      console.error(error);
    }
    this.#armFor(step.entry);
  }

  #armFor({ dueAt }: OutboxEntry): void {
    if (dueAt === null) return;
    try {
      void this.#arm(Math.max(0, dueAt - this.ports.clock.now()));
    } catch (error) {
      // While the outbox holds anything a wake-up is armed: this one would only have been sooner.
      console.error(error);
    }
  }

  #settle(held: Held, { entry, outcome }: Extract<OutboxStep, { type: "settle" }>): void {
    const effects = this.settlement.settle(held.key, entry, outcome);
    if (effects === null) {
      held.entry = stepOutbox(entry, { type: "unsettled" }, this.ports.clock.now()).entry;
      this.#armFor(held.entry);
      return;
    }
    this.#held.delete(entry.envelope.operationId);
    runEffects(effects);
  }
}

function noAnswer(error: unknown): ErrorData {
  const reason = redactSecrets(error instanceof Error ? error.message : String(error)).slice(0, 500);
  return { code: "UNAVAILABLE", message: `The receiver did not answer: ${reason}`, retriable: true };
}
