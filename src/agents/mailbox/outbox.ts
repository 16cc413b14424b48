/**
 * The sending side: entries that are committed with the decision that made them, attempts, and outcomes.
 *
 * MAIL-10  What is sent in a transaction is sent if it commits, and not if it rolls back. The wake-up that delivers it
 *          after a crash is armed in the same transaction.
 * MAIL-11  An outcome is told in the transaction that takes the envelope out of the outbox (and makes it a dead letter
 *          unless it was delivered), so it is told once.
 * MAIL-12  To one destination there is one attempt at a time, first attempts in the order of sending. While none of them
 *          fails, envelopes are therefore acted upon in that order; one that has to be tried again is overtaken.
 * MAIL-13  An outbox is bounded in number and bytes; what does not fit is `QUEUE_OVERFLOW`, and takes the whole
 *          decision back.
 */
import { redactSecrets } from "../../adapters/redact.ts";
import { DramatisError, type ErrorData } from "../../shared/errors.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { validate } from "../../shared/validation.ts";
import { answerSchema } from "./answer.ts";
import type { DeadLetter } from "./dead-letter.ts";
import {
  type ActorAddress,
  addressKey,
  ageOf,
  type Envelope,
  envelopeSchema,
  type NewEnvelope,
} from "./envelope.ts";
import type { Handlers } from "./handlers.ts";
import {
  ATTEMPT_TIMEOUT_MS,
  MAX_ATTEMPTS,
  MAX_CLOCK_AHEAD_MS,
  MAX_ENVELOPE_BYTES,
  MAX_IN_FLIGHT,
  MAX_OUTBOX_BYTES,
  MAX_OUTBOX_ENVELOPES,
  SEND_WITHIN_MS,
  WAKE_AFTER_SEND_MS,
} from "./limits.ts";
import {
  isLastAttempt,
  newEntry,
  type OutboxEntry,
  type OutboxInput,
  type OutboxStep,
  type Outcome,
  redeliveredEntry,
  stepOutbox,
} from "./outbox-entry.ts";
import type { MailboxPorts } from "./ports.ts";
import type { Publisher } from "./publisher.ts";
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
  #armed: Promise<void> = Promise.resolve();

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
    private readonly handlers: Handlers,
    private readonly publisher: Publisher,
  ) {}

  /** Resolves when the newest wake-up is armed. */
  get armed(): Promise<void> {
    return this.#armed;
  }

  send(fields: NewEnvelope): Promise<void> {
    const now = this.ports.clock.now();
    const given = { ...fields, from: this.#self(), sentAt: now };
    const envelope: Envelope = validate(envelopeSchema, given, "", "The envelope");
    const age = ageOf(envelope.operationId, now);
    if (age > SEND_WITHIN_MS || age < -MAX_CLOCK_AHEAD_MS) {
      throw new DramatisError(
        "INVALID_INPUT",
        "The operation id is older than 14 days, or from the future: send under a new one.",
      );
    }
    const text = JSON.stringify(envelope);
    const size = utf8Length(text);
    if (size > MAX_ENVELOPE_BYTES) {
      throw new DramatisError(
        "TOO_LARGE",
        `An envelope may have ${MAX_ENVELOPE_BYTES} bytes, this one has ${size}: send a reference.`,
      );
    }
    this.#load();
    const known = this.#find(envelope.operationId);
    if (known === undefined) return this.#stage(newEntry(envelope), size);
    if (sameContent(known.entry.envelope, envelope)) return this.#armed;
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      `"${envelope.operationId}" names another envelope. Send this one under a new operation id.`,
    );
  }

  /** Sends a dead letter again. Call it in the transaction that removes it. */
  resend(letter: DeadLetter): Promise<void> {
    this.#load();
    return this.#stage(redeliveredEntry(letter), utf8Length(JSON.stringify(letter.envelope)));
  }

  isUnderWay(operationId: string): boolean {
    this.#load();
    return this.#find(operationId) !== undefined;
  }

  /** Whether this operation is under way again after an outcome was told. */
  isRedelivered(operationId: string): boolean {
    this.#load();
    return this.#find(operationId)?.entry.late ?? false;
  }

  /** Starts what is due. Answers after how many milliseconds to come again; `null` when the outbox is empty. */
  wake(): number | null {
    this.#load();
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

  #load(): void {
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
      if (this.#armed === armed) this.#armed = Promise.resolve();
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
    const { clock } = this.ports;
    let stop = () => {};
    const timeout = new Promise<never>((_, reject) => {
      stop = clock.timer(ATTEMPT_TIMEOUT_MS, () => reject(new Error("It took more than 30 seconds.")));
    });
    try {
      const attempt = { number: entry.attempt, last: isLastAttempt(entry) };
      const answer = await Promise.race([this.ports.deliver(entry.envelope, attempt), timeout]);
      return { type: "answered", answer: validate(answerSchema, answer, "", "The receiver's answer") };
    } catch (error) {
      return { type: "unanswered", error: noAnswer(error) };
    } finally {
      stop();
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
    const effects: (() => void)[] = [];
    try {
      this.ports.database.transaction(() => this.#commitOutcome(held.key, entry, outcome, effects));
    } catch (error) {
      console.error(error);
      this.store.forgetTables();
      if (!this.#isGone(held)) {
        held.entry = stepOutbox(entry, { type: "unsettled" }, this.ports.clock.now()).entry;
        this.#armFor(held.entry);
        return;
      }
    }
    this.#held.delete(entry.envelope.operationId);
    runEffects(effects);
    void this.publisher.publish();
  }

  #commitOutcome(key: string, entry: OutboxEntry, outcome: Outcome, effects: (() => void)[]): void {
    this.store.deleteEntry(key);
    const isTold = this.#tell(entry, outcome, effects);
    if (outcome.status === "delivered" && isTold) return;
    const letter = deadLetter(entry, outcome, this.ports.clock.now());
    const displaced = this.store.bury(letter);
    for (const operationId of [entry.envelope.operationId, ...displaced]) this.publisher.note(operationId);
  }

  /**
   * Tells the sender's handler. If it throws, nothing is committed and the receiver is asked again; a handler that
   * throws for a whole further series of attempts is given up, and the envelope kept as a dead letter.
   */
  #tell(entry: OutboxEntry, outcome: Outcome, effects: (() => void)[]): boolean {
    const { envelope, late, attempt, lastAttempt } = entry;
    const handler = this.handlers.outcome(envelope.type);
    if (handler === undefined) return true;
    const afterCommit = (effect: () => void) => void effects.push(effect);
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

  /** Whether the transaction that threw has committed all the same. */
  #isGone({ key }: Held): boolean {
    try {
      return !this.store.hasEntry(key);
    } catch {
      return false;
    }
  }
}

/** Runs what was waiting for a commit. One effect that throws does not keep the others from running. */
export function runEffects(effects: readonly (() => void)[]): void {
  for (const effect of effects) {
    try {
      effect();
    } catch (error) {
      console.error(error);
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

function noAnswer(error: unknown): ErrorData {
  const reason = redactSecrets(error instanceof Error ? error.message : String(error)).slice(0, 500);
  return { code: "UNAVAILABLE", message: `The receiver did not answer: ${reason}`, retriable: true };
}

/** Whether two envelopes under one operation id say the same. */
function sameContent(one: Envelope, other: Envelope): boolean {
  const content = ({ to, type, body, inReplyTo, context }: Envelope): Json => [
    addressKey(to),
    type,
    body,
    inReplyTo ?? null,
    context ?? null,
  ];
  return canonicalJson(content(one)) === canonicalJson(content(other));
}
