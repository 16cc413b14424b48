/**
 * The sending side of a mailbox. It commits an entry with the decision that sends it, and then attempts delivery.
 *
 * MAIL-10  An envelope is sent if and only if its transaction commits. The same transaction arms the wake-up that delivers
 *          it after a crash.
 * MAIL-12  Each destination has one attempt at a time, and first attempts run in the order of sending. Without failures, receivers
 *          therefore act in that order. Later envelopes overtake an envelope that needs a retry.
 * MAIL-13  An outbox is bounded in number and bytes. An envelope that does not fit throws `QUEUE_OVERFLOW`, which rolls back the whole
 *          decision.
 * MAIL-20  The outbox reserves extra room for owed envelopes, such as a result or a cancellation. A full outbox therefore never rolls back
 *          a decision that ends work.
 * MAIL-22  A sender may withdraw an undelivered envelope. No further attempt begins then, and the envelope has no outcome and no dead
 *          letter. The receiver may have acted on it.
 * MAIL-24  An erasure deletes the envelopes and dead letters that name the erased operation, also in the directory. Cancellations stay.
 * MAIL-17  Only `redeliver` sends under the operation id of a dead letter. Sending the same envelope again is a no-op. A different envelope
 *          under that id throws `IDEMPOTENCY_CONFLICT`. The numbers of its attempts therefore continue.
 */
import { withDeadline } from "../../../ports/deadline.ts";
import {
  type ActorAddress,
  addressKey,
  type Envelope,
  type NewEnvelope,
} from "../../../protocol/envelope.ts";
import { DramatisError, type ErrorData, errorText } from "../../../shared/errors.ts";
import { redactSecrets } from "../../../shared/redact.ts";
import { cut } from "../../../shared/text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { validate } from "../../../shared/validation.ts";
import { answerSchema, checkOutgoing, sameContent } from "./checks.ts";
import type { DeadLetter } from "./dead-letter.ts";
import { runEffects } from "./handlers.ts";
import {
  ATTEMPT_TIMEOUT_MS,
  MAX_IN_FLIGHT,
  MAX_OUTBOX_BYTES,
  MAX_OUTBOX_ENVELOPES,
  OWED_BYTES,
  OWED_ENVELOPES,
  WAKE_AFTER_SEND_MS,
} from "./mailbox-limits.ts";
import {
  isLastAttempt,
  newEntry,
  type OutboxEntry,
  type OutboxInput,
  type OutboxStep,
  stepOutbox,
} from "./outbox-entry.ts";
import type { MailboxPorts } from "./ports.ts";
import type { Settlement } from "./settlement.ts";
import type { MailboxStore, StoredEntry } from "./store.ts";

interface LoadedEntry extends StoredEntry {
  /**
   * `staged`: written in a transaction that may still roll back. `found`: read from the store; its attempt may have begun. `waiting`: for
   * its next attempt. `running`: an attempt runs.
   */
  phase: "staged" | "found" | "waiting" | "running";
  /** A transaction has withdrawn it. The transaction may still roll back. */
  isWithdrawn?: boolean;
}

/** Room in an outbox, without the room for owed envelopes: envelopes, and their bytes as JSON. */
export interface OutboxRoom {
  envelopes: number;
  bytes: number;
}

export interface SendOptions {
  /** Uses the reserved room: the envelope ends work, or belongs to a committed decision. */
  owed?: boolean;
}

export class Outbox {
  /** By operation id, in the order of sending. */
  readonly #loaded = new Map<string, LoadedEntry>();
  /** Destinations with an attempt in flight. */
  readonly #busy = new Set<string>();
  #isLoaded = false;
  #isFlushQueued = false;
  /** The newest arming in this life; `null` before the first arming and after a failure. */
  #armed: Promise<void> | null = null;

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
    private readonly settlement: Settlement,
  ) {}

  /** Resolves when the wake-up for the loaded entries is armed. */
  whenArmed(): Promise<void> {
    return this.#armed ?? (this.#loaded.size === 0 ? Promise.resolve() : this.#arm(WAKE_AFTER_SEND_MS));
  }

  send(fields: NewEnvelope, options: SendOptions): Promise<void> {
    const { envelope, size } = checkOutgoing(fields, this.#self(), this.ports.clock.now());
    const { operationId } = envelope;
    const known = (this.underWay(operationId) ?? this.store.deadLetter(operationId))?.envelope;
    if (known === undefined) return this.#stage(newEntry(envelope), size, options);
    if (sameContent(known, envelope)) return this.whenArmed();
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      `Another envelope has the id "${operationId}". Send this envelope under a new operation id.`,
    );
  }

  /** Sends a dead letter again. Call it in the transaction that removes it. */
  resend(letter: DeadLetter): Promise<void> {
    this.load();
    const { envelope } = letter;
    return this.#stage(newEntry(envelope, letter), utf8Length(JSON.stringify(envelope)));
  }

  /** Withdraws some envelopes with the current transaction (MAIL-22). */
  withdraw(isMeant: (envelope: Envelope) => boolean): void {
    this.load();
    for (const loaded of this.#loaded.values()) {
      if (!isMeant(loaded.entry.envelope)) continue;
      loaded.isWithdrawn = true;
      this.store.deleteEntry(loaded.key);
      this.#flushSoon();
    }
  }

  /** Returns the room for envelopes that are not owed. */
  room(): OutboxRoom {
    this.load();
    const present = [...this.#loaded.values()].filter(
      (loaded) => !(loaded.isWithdrawn && this.#isAbsent(loaded)),
    );
    const bytes = present.reduce((sum, { size }) => sum + size, 0);
    return { envelopes: MAX_OUTBOX_ENVELOPES - present.length, bytes: MAX_OUTBOX_BYTES - bytes };
  }

  underWay(operationId: string): OutboxEntry | undefined {
    this.load();
    const loaded = this.#loaded.get(operationId);
    return loaded === undefined || this.#isAbsent(loaded) ? undefined : loaded.entry;
  }

  /** Starts due attempts. Returns the milliseconds until the next call; `null` when the outbox is empty. */
  wake(): number | null {
    this.load();
    this.#flush();
    const now = this.ports.clock.now();
    const times = [...this.#loaded.values()].map(({ entry: { dueAt }, phase }) =>
      phase === "running" || dueAt === null || dueAt <= now ? ATTEMPT_TIMEOUT_MS : dueAt - now,
    );
    return times.length === 0 ? null : Math.min(...times);
  }

  get isEmpty(): boolean {
    this.load();
    return this.#loaded.size === 0;
  }

  /** Loads the entries of earlier lives. */
  load(): void {
    if (this.#isLoaded) return;
    for (const stored of this.store.entries())
      this.#loaded.set(stored.entry.envelope.operationId, { ...stored, phase: "found" });
    this.#isLoaded = true;
  }

  #self(): ActorAddress {
    const self = this.ports.self();
    if (self !== null) return self;
    throw new DramatisError(
      "UNSUPPORTED",
      "Only an actor named `{tenant}:{id}` has an address; get the actor by such a name to send envelopes.",
    );
  }

  /** Reports whether the entry was rolled back or withdrawn. An open transaction may still roll back. */
  #isAbsent({ phase, isWithdrawn, key }: LoadedEntry): boolean {
    return (phase === "staged" || isWithdrawn === true) && !this.store.hasEntry(key);
  }

  #stage(entry: OutboxEntry, size: number, options: SendOptions = {}): Promise<void> {
    const { operationId } = entry.envelope;
    if (!this.#hasRoomFor(size, options)) {
      for (const [id, loaded] of this.#loaded)
        if (!loaded.isWithdrawn && this.#isAbsent(loaded)) this.#loaded.delete(id);
    }
    if (!this.#hasRoomFor(size, options)) {
      throw new DramatisError(
        "QUEUE_OVERFLOW",
        `An actor may have ${MAX_OUTBOX_ENVELOPES} undelivered envelopes of ${MAX_OUTBOX_BYTES} bytes. Retry after some of them are delivered.`,
        { retriable: true },
      );
    }
    const key = this.store.addEntry(entry);
    // An entry that was rolled back loses its place in the order.
    this.#loaded.delete(operationId);
    this.#loaded.set(operationId, { key, entry, size, phase: "staged" });
    this.#flushSoon();
    return this.#arm(WAKE_AFTER_SEND_MS);
  }

  #flushSoon(): void {
    if (!this.#isFlushQueued) queueMicrotask(() => this.#flush());
    this.#isFlushQueued = true;
  }

  #hasRoomFor(size: number, { owed = false }: SendOptions): boolean {
    const { envelopes, bytes } = this.room();
    const [more, moreBytes] = owed ? [OWED_ENVELOPES, OWED_BYTES] : [0, 0];
    return envelopes + more > 0 && size <= bytes + moreBytes;
  }

  #arm(milliseconds: number): Promise<void> {
    const armed = this.ports.arm(milliseconds);
    this.#armed = armed;
    // Callers may await the promise or ignore it.
    armed.catch((error: unknown) => {
      console.error(error);
      if (this.#armed === armed) this.#armed = null;
    });
    return armed;
  }

  #flush(): void {
    this.#isFlushQueued = false;
    for (const loaded of [...this.#loaded.values()]) {
      try {
        this.#takeUp(loaded);
        if (this.#mayStart(loaded)) this.#start(loaded);
      } catch (error) {
        console.error(error);
      }
    }
  }

  /** Drops an entry that was rolled back or withdrawn. Decides about a `found` entry. */
  #takeUp(loaded: LoadedEntry): void {
    const { phase, entry } = loaded;
    if (this.#isAbsent(loaded)) {
      this.#loaded.delete(entry.envelope.operationId);
      return;
    }
    loaded.isWithdrawn = false;
    if (phase !== "running") loaded.phase = "waiting";
    if (phase !== "found") return;
    const step = stepOutbox(entry, { type: "woken" }, this.ports.clock.now());
    if (step.type === "settle") this.#settle(loaded, step);
    else loaded.entry = step.entry;
  }

  #mayStart(loaded: LoadedEntry): boolean {
    const { entry, phase } = loaded;
    const { operationId, to } = entry.envelope;
    if (phase === "running" || this.#busy.size >= MAX_IN_FLIGHT || this.#busy.has(addressKey(to)))
      return false;
    if (this.#loaded.get(operationId) !== loaded) return false;
    return entry.dueAt === null || entry.dueAt <= this.ports.clock.now();
  }

  /** Records and starts an attempt. `send` has already recorded the first attempt. */
  #start(loaded: LoadedEntry): void {
    const { operationId, to } = loaded.entry.envelope;
    if (loaded.entry.dueAt !== null) {
      // The entry is gone if its outcome has committed although the commit reported a failure.
      if (!this.store.hasEntry(loaded.key)) {
        this.#loaded.delete(operationId);
        return;
      }
      const { entry } = stepOutbox(loaded.entry, { type: "begin" }, this.ports.clock.now());
      this.store.putEntry(loaded.key, entry);
      loaded.entry = entry;
    }
    loaded.phase = "running";
    const destination = addressKey(to);
    this.#busy.add(destination);
    void this.#attempt(loaded.entry).then((input) => {
      loaded.phase = "waiting";
      this.#busy.delete(destination);
      this.#apply(loaded, stepOutbox(loaded.entry, input, this.ports.clock.now()));
      this.#flush();
    });
  }

  async #attempt(entry: OutboxEntry): Promise<OutboxInput> {
    try {
      const attempt = { number: entry.attempt, last: isLastAttempt(entry) };
      const answer = await withDeadline(this.ports.clock, ATTEMPT_TIMEOUT_MS, () =>
        this.ports.deliver(entry.envelope, attempt),
      );
      return { type: "answered", answer: validate(answerSchema, answer, "", "The receiver's answer") };
    } catch (error) {
      return { type: "unanswered", error: noAnswer(error) };
    }
  }

  #apply(loaded: LoadedEntry, step: OutboxStep): void {
    if (step.type === "settle") {
      this.#settle(loaded, step);
      return;
    }
    loaded.entry = step.entry;
    try {
      // The entry was withdrawn during the attempt.
      if (this.#isAbsent(loaded)) return;
      this.store.putEntry(loaded.key, step.entry);
    } catch (error) {
      // The stored entry contains the running attempt, so the next instance of the actor counts it correctly.
      console.error(error);
    }
    this.#armFor(step.entry);
  }

  #armFor({ dueAt }: OutboxEntry): void {
    if (dueAt === null) return;
    try {
      void this.#arm(Math.max(0, dueAt - this.ports.clock.now()));
    } catch (error) {
      // A non-empty outbox always has an armed wake-up. This wake-up would only be earlier.
      console.error(error);
    }
  }

  #settle(loaded: LoadedEntry, { entry, outcome }: Extract<OutboxStep, { type: "settle" }>): void {
    const effects = this.settlement.settle(loaded.key, entry, outcome);
    if (effects === null) {
      loaded.entry = stepOutbox(entry, { type: "unsettled" }, this.ports.clock.now()).entry;
      this.#armFor(loaded.entry);
      return;
    }
    this.#loaded.delete(entry.envelope.operationId);
    runEffects(effects).catch((error: unknown) => console.error(error));
  }
}

function noAnswer(error: unknown): ErrorData {
  const reason = cut(redactSecrets(errorText(error)), 500);
  return { code: "UNAVAILABLE", message: `Delivery failed: ${reason}`, retriable: true };
}
