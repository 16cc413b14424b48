/**
 * The mailbox of an actor: envelopes out, envelopes in, and what became of them. See docs/delivery.md.
 *
 * MAIL-16  Only a dead letter is delivered again, under its own operation id and within 30 days of it; its outcome is
 *          told as a late one.
 * MAIL-19  While the storage of the actor, or the mailbox's own, is of a newer release, nothing is written to it: what
 *          arrives is told "not now", what is under way waits, and everything else is `UNAVAILABLE`.
 */
import type { z } from "zod";
import { ageOf, type NewEnvelope } from "../../../protocol/envelope.ts";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import type { DeadLetterView } from "../../../protocol/views.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { isOperationId } from "../../../shared/identifiers.ts";
import type { Page, PageOptions } from "../../../shared/page.ts";
import { validate } from "../../../shared/validation.ts";
import { type ActorSchema, isRefusal, upgrade } from "../storage/schema-upgrade.ts";
import { deadLetterView } from "./dead-letter.ts";
import { DeadLetterMirror } from "./dead-letter-mirror.ts";
import { Handlers, type OutcomeHandler, type ReceiveHandler } from "./handlers.ts";
import { Inbox } from "./inbox.ts";
import { REDELIVER_WITHIN_MS, REFUSED_RETRY_MS } from "./limits.ts";
import { Outbox } from "./outbox.ts";
import { deadLetterPageSchema } from "./page.ts";
import type { MailboxPorts } from "./ports.ts";
import { Settlement } from "./settlement.ts";
import { MailboxStore } from "./store.ts";

/** What a mailbox stores. Its version is written by the first release that needs a step; without it, it is the first. */
const MAILBOX_SCHEMA: ActorSchema = { of: "actor's mailbox", first: 1, steps: [] };
const VERSION_KEY = "mailbox:version";

export class Mailbox {
  #isUpToDate = false;
  readonly #handlers = new Handlers();
  readonly #store: MailboxStore;
  readonly #letters: DeadLetterMirror;
  readonly #outbox: Outbox;
  readonly #inbox: Inbox;

  constructor(private readonly ports: MailboxPorts) {
    this.#store = new MailboxStore(ports.database, ports.keyValue);
    this.#letters = new DeadLetterMirror(ports, this.#store);
    const settlement = new Settlement(ports, this.#store, this.#handlers, this.#letters);
    this.#outbox = new Outbox(ports, this.#store, settlement);
    this.#inbox = new Inbox(ports, this.#store, this.#handlers, this.#outbox, this.#letters);
  }

  /**
   * Registers what envelopes of a type do here. Call it in the actor's constructor.
   *
   * @example
   * mailbox.receives("task.result", z.strictObject({ text: z.string() }), ({ text }, { envelope, late }) => {
   *   results.put(envelope.inReplyTo, text, late);
   *   return null;
   * });
   */
  receives<Body>(type: string, body: z.ZodType<Body>, handler: ReceiveHandler<Body>): void {
    this.#handlers.receives(type, body, handler);
  }

  /** Registers who is told what became of the envelopes of a type that this actor sends. Call it in the constructor. */
  told(type: string, handler: OutcomeHandler): void {
    this.#handlers.told(type, handler);
  }

  /**
   * Sends an envelope with the transaction it is called in; delivery begins when that has committed. The same envelope
   * again, while it is under way, is sent once. Resolves when the wake-up is armed: await that before you acknowledge
   * what the envelope belongs to. An envelope that is a dead letter is left to `redeliver`. Throws `INVALID_INPUT`,
   * `TOO_LARGE`, `QUEUE_OVERFLOW`, `IDEMPOTENCY_CONFLICT`, `UNAVAILABLE`.
   */
  send(envelope: NewEnvelope): Promise<void> {
    this.#checkStorage();
    return this.ports.database.transaction(() => ({ armed: this.#outbox.send(envelope) })).armed;
  }

  /** Takes an envelope from another actor's mailbox. Rejects only where it cannot be known whether it was acted upon. */
  async receive(envelope: unknown, attempt: unknown): Promise<Answer> {
    const refusal = this.#refusal();
    if (refusal !== null) return { type: "busy", error: refusal.toData() };
    return this.#inbox.receive(envelope, attempt);
  }

  /** Does what is due. Answers after how many milliseconds to be called again; `null` when nothing is under way. */
  wake(): number | null {
    if (this.#refusal() !== null) return REFUSED_RETRY_MS;
    const [outbox, publisher] = [this.#outbox.wake(), this.#letters.wake()];
    if (outbox === null || publisher === null) return outbox ?? publisher;
    return Math.min(outbox, publisher);
  }

  /**
   * The dead letters, ascending by the age of their operation; a page may end before `limit`, where it has 4 MiB. Throws
   * `INVALID_INPUT`, `UNAVAILABLE`.
   */
  deadLetters(options: PageOptions = {}): Page<DeadLetterView> {
    const { limit, ...range } = validate(deadLetterPageSchema, options, "/page");
    this.#checkStorage();
    const { letters, more } = this.#store.deadLetters(limit, range);
    const items = letters.map(deadLetterView);
    const last = items.at(-1);
    return { items, ...(more && last !== undefined ? { nextCursor: last.id } : {}) };
  }

  /**
   * Delivers a dead letter again. One that is being delivered again already stays as it is. Throws `NOT_FOUND`,
   * `CONFLICT` when it is too old, `QUEUE_OVERFLOW`, `UNAVAILABLE`.
   */
  async redeliver(operationId: string): Promise<void> {
    if (!isOperationId(operationId)) throw noSuchLetter(operationId);
    this.#checkStorage();
    const { armed } = this.ports.database.transaction(() => {
      const letter = this.#store.deadLetter(operationId);
      if (letter === undefined) {
        if (this.#outbox.underWay(operationId)?.late) return { armed: this.#outbox.whenArmed() };
        throw noSuchLetter(operationId);
      }
      // Its outcome has committed, and only the news of that was lost.
      if (this.#outbox.underWay(operationId) !== undefined) return { armed: this.#outbox.whenArmed() };
      if (ageOf(operationId, this.ports.clock.now()) > REDELIVER_WITHIN_MS) {
        throw new DramatisError(
          "CONFLICT",
          "This dead letter is older than 30 days; its receiver may have forgotten it. Start the operation anew.",
        );
      }
      this.#store.removeDeadLetter(operationId);
      this.#letters.note(operationId);
      return { armed: this.#outbox.resend(letter) };
    });
    await armed;
    this.#letters.publish();
  }

  #refusal(): DramatisError | null {
    try {
      this.#checkStorage();
      return null;
    } catch (error) {
      if (isRefusal(error)) return error;
      throw error;
    }
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  #checkStorage(): void {
    this.ports.checkStorage();
    if (this.#isUpToDate) return;
    const { database, keyValue } = this.ports;
    const stored = keyValue.get<number>(VERSION_KEY) ?? MAILBOX_SCHEMA.first;
    const record = (version: number) => keyValue.put(VERSION_KEY, version);
    // Steps that were taken in somebody's transaction may be taken back with it: it is then looked at again.
    this.#isUpToDate = !upgrade(MAILBOX_SCHEMA, { database, keyValue }, stored, record);
  }
}

function noSuchLetter(operationId: string): DramatisError {
  return new DramatisError("NOT_FOUND", `There is no dead letter "${operationId}".`);
}
