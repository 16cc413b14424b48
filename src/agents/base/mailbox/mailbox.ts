/**
 * The mailbox of an actor: envelopes out, envelopes in, and their outcomes. See docs/delivery.md.
 *
 * MAIL-16  Only a dead letter is redelivered. It keeps its operation id, and this id is at most 30 days old. Its outcome is reported as
 *          late.
 * MAIL-19  Storage that a newer release wrote, of the actor or of its mailbox, stays unchanged. Arriving envelopes are answered "not now",
 *          and undelivered envelopes wait. All other calls throw `UNAVAILABLE`.
 */
import type { z } from "zod";
import type { DeadLetterView } from "../../../protocol/conversation-schemas.ts";
import {
  type ActorAddress,
  addressKey,
  ageOf,
  type Envelope,
  type NewEnvelope,
} from "../../../protocol/envelope.ts";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import { conflict, type DramatisError, notFound } from "../../../shared/errors.ts";
import { isOperationId } from "../../../shared/identifiers.ts";
import type { Page, PageOptions } from "../../../shared/page.ts";
import { validate } from "../../../shared/validation.ts";
import { type ActorSchema, REFUSED_RETRY_MS, StorageRefusal, upgrade } from "../storage/schema-upgrade.ts";
import { type DeadLetter, deadLetterPageSchema, deadLetterView } from "./dead-letter.ts";
import { DeadLetterCopy } from "./dead-letter-copy.ts";
import {
  Handlers,
  type OutcomeHandler,
  type ReadBefore,
  type ReadHandler,
  type ReceiveHandler,
} from "./handlers.ts";
import { Inbox } from "./inbox.ts";
import { REDELIVER_WITHIN_MS } from "./mailbox-limits.ts";
import { Outbox, type OutboxRoom, type SendOptions } from "./outbox.ts";
import type { MailboxPorts } from "./ports.ts";
import { Settlement } from "./settlement.ts";
import { MailboxStore } from "./store.ts";

/** The schema of a mailbox's storage. Storage without a version has version `first`. */
const MAILBOX_SCHEMA: ActorSchema = { of: "actor's mailbox", first: 1, steps: [] };
const VERSION_KEY = "mailbox:version";

export class Mailbox {
  #isUpToDate = false;
  readonly #handlers = new Handlers();
  readonly #store: MailboxStore;
  readonly #letters: DeadLetterCopy;
  readonly #outbox: Outbox;
  readonly #inbox: Inbox;

  constructor(private readonly ports: MailboxPorts) {
    this.#store = new MailboxStore(ports.database, ports.keyValue);
    this.#letters = new DeadLetterCopy(ports, this.#store);
    const settlement = new Settlement(ports, this.#store, this.#handlers, this.#letters);
    this.#outbox = new Outbox(ports, this.#store, settlement);
    this.#inbox = new Inbox(ports, this.#store, this.#handlers, this.#outbox, this.#letters);
  }

  /**
   * Registers the handler of a type of incoming envelopes. Call it in the actor's constructor.
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

  /**
   * As `receives`, for a handler that needs data of another actor. `read` fetches it before the transaction.
   *
   * @example
   * mailbox.receivesAfter("order", orderSchema, ({ shop }) => pricesOf(shop), (order, { afterCommit }, prices) => {
   *   orders.put(order, prices);
   *   return null;
   * });
   */
  receivesAfter<Body, Read>(
    type: string,
    body: z.ZodType<Body>,
    read: ReadBefore<Body, Read>,
    handler: ReadHandler<Body, Read>,
  ): void {
    this.#handlers.receivesAfter(type, body, read, handler);
  }

  /**
   * Registers the handler for outcomes of a type of outgoing envelopes. Call it in the actor's constructor.
   *
   * @example
   * mailbox.outcomes("order.placed", ({ envelope, outcome }) => orders.close(envelope.operationId, outcome.status));
   */
  outcomes(type: string, handler: OutcomeHandler): void {
    this.#handlers.outcomes(type, handler);
  }

  /**
   * Sends an envelope with the current transaction; delivery begins after its commit. Sending an undelivered envelope again is a no-op. So
   * is sending a dead letter; use `redeliver`. Resolves when the wake-up is armed. Await it before you acknowledge the decision. Throws
   * `INVALID_INPUT`, `TOO_LARGE`, `QUEUE_OVERFLOW`, `IDEMPOTENCY_CONFLICT`, `UNAVAILABLE`.
   */
  send(envelope: NewEnvelope, options: SendOptions = {}): Promise<void> {
    this.#checkStorage();
    return this.ports.database.transaction(() => ({ armed: this.#outbox.send(envelope, options) })).armed;
  }

  /**
   * Withdraws the undelivered envelopes of a type to a receiver, with the current transaction. The receiver may have acted on them. Throws
   * `UNAVAILABLE`.
   */
  withdraw(to: ActorAddress, type: string): void {
    this.#checkStorage();
    this.#outbox.withdraw((envelope) => envelope.type === type && addressKey(envelope.to) === addressKey(to));
  }

  /**
   * Withdraws the envelopes and deletes the dead letters that name an operation, with the current transaction. The types in `kept` stay.
   * Receivers may have acted on them. Throws `UNAVAILABLE`.
   */
  discard(operationId: string, kept: readonly string[]): void {
    this.#checkStorage();
    const name = JSON.stringify(operationId);
    const isMeant = (envelope: Envelope) =>
      !kept.includes(envelope.type) && JSON.stringify(envelope).includes(name);
    this.#outbox.withdraw(isMeant);
    for (const { envelope } of this.#store.deadLettersNaming(operationId)) {
      if (!isMeant(envelope)) continue;
      this.#store.removeDeadLetter(envelope.operationId);
      this.#letters.note(envelope.operationId);
    }
    queueMicrotask(() => this.#letters.publish());
  }

  /** Returns the room for envelopes that are not owed. Throws `UNAVAILABLE`. */
  room(): OutboxRoom {
    this.#checkStorage();
    return this.#outbox.room();
  }

  /** Takes an envelope from another actor's mailbox. Rejects only if it is unknown whether the actor has acted. */
  async receive(envelope: unknown, attempt: unknown): Promise<Answer> {
    const refusal = this.#refusal();
    if (refusal !== null) return { type: "busy", error: refusal.toData() };
    return this.#inbox.receive(envelope, attempt);
  }

  /** Runs due work. Returns the milliseconds until the next call; `null` if no work is left. */
  wake(): number | null {
    if (this.#refusal() !== null) return REFUSED_RETRY_MS;
    const times = [this.#outbox.wake(), this.#letters.wake()].filter((time) => time !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  /**
   * Returns the dead letters, ascending by the age of their operation. A page may end before `limit`, at 4 MiB. Throws
   * `INVALID_INPUT`, `UNAVAILABLE`.
   */
  deadLetters(options: PageOptions = {}): Page<DeadLetterView> {
    const checked = validate(deadLetterPageSchema, options, "/page");
    this.#checkStorage();
    const page = this.#store.deadLetters(checked);
    return { ...page, items: page.items.map(deadLetterView) };
  }

  /** Returns the newest dead letters of some types. Throws `UNAVAILABLE`. */
  newestDeadLetters(types: readonly string[], limit: number): DeadLetter[] {
    this.#checkStorage();
    return this.#store.newestDeadLetters(types, limit);
  }

  /**
   * Delivers a dead letter again. A repeated call during the redelivery is a no-op. Throws `NOT_FOUND`, `CONFLICT` when the letter is too
   * old, `QUEUE_OVERFLOW`, `UNAVAILABLE`.
   */
  async redeliver(operationId: string): Promise<void> {
    if (!isOperationId(operationId)) throw noSuchLetter(operationId);
    this.#checkStorage();
    const { armed } = this.ports.database.transaction(() => {
      const letter = this.#store.deadLetter(operationId);
      const underWay = this.#outbox.underWay(operationId);
      if (letter === undefined && !underWay?.late) throw noSuchLetter(operationId);
      // If the letter exists too, its outcome has committed, and the outbox has not noticed yet.
      if (letter === undefined || underWay !== undefined) return { armed: this.#outbox.whenArmed() };
      if (ageOf(operationId, this.ports.clock.now()) > REDELIVER_WITHIN_MS)
        throw conflict(
          "This dead letter is older than 30 days, so its receiver may no longer detect a duplicate. Send a new envelope.",
        );
      this.#store.removeDeadLetter(operationId);
      this.#letters.note(operationId);
      return { armed: this.#outbox.resend(letter) };
    });
    await armed;
    this.#letters.publish();
  }

  /**
   * Deletes the dead letters and receipts of a deleted actor. Returns whether the outbox is empty. If not, call it again later, because
   * remaining envelopes may become dead letters.
   */
  forget(): boolean {
    this.#checkStorage();
    this.ports.database.transaction(() => this.#store.forget());
    return this.#outbox.isEmpty;
  }

  #refusal(): StorageRefusal | null {
    try {
      this.#checkStorage();
      return null;
    } catch (error) {
      if (error instanceof StorageRefusal) return error;
      throw error;
    }
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  #checkStorage(): void {
    this.ports.checkStorage();
    if (this.#isUpToDate) return;
    const { keyValue } = this.ports;
    const stored = keyValue.get<number>(VERSION_KEY) ?? MAILBOX_SCHEMA.first;
    const record = (version: number) => keyValue.put(VERSION_KEY, version);
    // The caller's transaction may roll back an upgrade, so check again afterwards.
    this.#isUpToDate = !upgrade(MAILBOX_SCHEMA, this.ports, stored, record);
  }
}

function noSuchLetter(operationId: string): DramatisError {
  return notFound(`There is no dead letter "${operationId}".`);
}
