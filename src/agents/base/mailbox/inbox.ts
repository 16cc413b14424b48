/**
 * The receiving side: accept, commit, answer.
 *
 * MAIL-14  A handler's changes and the receipt commit in one transaction, before the answer. If the handler throws, its changes roll back.
 * MAIL-15  An envelope is refused, without a record, if it is for another actor, of another tenant, malformed, or has an invalid body. The
 *          same holds for a reply from an actor that the operation was not sent to. Delivered and reported operations are not stored, so
 *          the handler of a reply must check the sender of a reply to them. The refusal of a last attempt is recorded, because it is final.
 * MAIL-21  Each attempt that may act reads data of other actors before the handler's transaction. If the read throws, the attempt ends as
 *          if the handler had thrown.
 * MAIL-18  An older release keeps envelopes of a newer release deliverable. An unknown type is answered "not now" until the last attempt.
 *          Unknown members of envelope and attempt are dropped.
 */
import { type Envelope, firstOperationId, sameAddress } from "../../../protocol/envelope.ts";
import type { Answer, Attempt } from "../../../protocol/mailbox-api.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, forbidden, toErrorData } from "../../../shared/errors.ts";
import { isJson, type Json } from "../../../shared/json.ts";
import { fitsUtf8 } from "../../../shared/utf8.ts";
import { boundedError, checkIncoming } from "./checks.ts";
import type { DeadLetterCopy } from "./dead-letter-copy.ts";
import { type AfterCommit, type Handlers, NotNow, runEffects } from "./handlers.ts";
import { MAX_RESULT_BYTES, RECEIPT_KEPT_MS, TRIM_EVERY } from "./mailbox-limits.ts";
import type { Outbox } from "./outbox.ts";
import type { MailboxPorts } from "./ports.ts";
import { decideReceipt, type Receipt } from "./receipt.ts";
import type { MailboxStore } from "./store.ts";

/** The result of the read before the handler. */
type Read = { found: unknown } | { thrown: unknown };

type Handled = { result: Json } | { thrown: unknown; byHandler: boolean };

export class Inbox {
  #untilTrim = 0;

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
    private readonly handlers: Handlers,
    private readonly outbox: Outbox,
    private readonly letters: DeadLetterCopy,
  ) {}

  async receive(input: unknown, attemptInput: unknown): Promise<Answer> {
    let incoming: ReturnType<typeof checkIncoming>;
    try {
      incoming = checkIncoming(input, attemptInput, this.ports.self());
    } catch (error) {
      if (!(error instanceof DramatisError)) throw error;
      return { type: "refused", error: error.toData(), recorded: false };
    }
    const effects: AfterCommit[] = [];
    const read = this.handlers.readsBefore(incoming.envelope.type)
      ? await this.#read(incoming.envelope, incoming.attempt)
      : null;
    // Rejects if the transaction fails. The next attempt finds out whether it committed.
    const answer = this.store.transaction(() =>
      this.#take(incoming.envelope, incoming.attempt, effects, read),
    );
    const whenRun = runEffects(effects);
    this.letters.publish();
    // If one function throws, the rejections of the others still need a listener.
    const armings = [() => this.outbox.whenArmed(), () => this.ports.whenArmed()];
    await Promise.all([whenRun, ...armings.map(async (arm) => arm())]);
    return answer;
  }

  /** Reads the data that the handler of an envelope needs. Returns `null` for an envelope with a final answer. */
  async #read(envelope: Envelope, { number }: Attempt): Promise<Read | null> {
    const { operationId } = envelope;
    const receipt = this.store.receipt(operationId);
    if (decideReceipt(operationId, number, receipt, this.ports.clock.now()).type === "answer") return null;
    try {
      return { found: await this.handlers.prepare(envelope).read() };
    } catch (thrown) {
      return { thrown };
    }
  }

  #take(envelope: Envelope, attempt: Attempt, effects: AfterCommit[], read: Read | null): Answer {
    const { operationId } = envelope;
    const now = this.ports.clock.now();
    const decision = decideReceipt(operationId, attempt.number, this.store.receipt(operationId), now);
    if (decision.type === "answer") {
      // Envelopes that the handler sent before a crash may still wait in the outbox.
      this.outbox.load();
      return decision.answer;
    }
    const handled = this.#handle(envelope, effects, read);
    if ("result" in handled) {
      const { result } = handled;
      this.#record(operationId, { type: "done", result }, now);
      return { type: "done", result };
    }
    effects.length = 0;
    const { thrown, byHandler } = handled;
    const error = boundedError(toErrorData(thrown));
    if (error.retriable && !attempt.last)
      return { type: "busy", error, ...defined({ retryAfterMs: retryAfterOf(thrown) }) };
    const recorded = byHandler || attempt.last;
    if (recorded) this.#record(operationId, { type: "refused", attempt: attempt.number, error }, now);
    return { type: "refused", error, recorded };
  }

  #handle(envelope: Envelope, effects: AfterCommit[], read: Read | null): Handled {
    let byHandler = false;
    try {
      const { run } = this.handlers.prepare(envelope);
      this.#checkReply(envelope);
      byHandler = true;
      if (read !== null && "thrown" in read) throw read.thrown;
      // If the handler throws, the nested transaction rolls back its writes.
      const result = this.ports.database.transaction(() => {
        const late = this.#isLateReply(envelope);
        const afterCommit = (effect: AfterCommit) => void effects.push(effect);
        return checkedResult(run({ envelope, late, afterCommit }, read?.found), envelope.type);
      });
      return { result };
    } catch (thrown) {
      if (!(thrown instanceof DramatisError)) console.error(thrown);
      return { thrown, byHandler };
    }
  }

  /** Throws `FORBIDDEN` if the reply comes from an actor that the operation was not sent to. */
  #checkReply({ inReplyTo, from }: Envelope): void {
    if (inReplyTo === undefined) return;
    const asked =
      this.outbox.underWay(inReplyTo)?.envelope.to ?? this.store.deadLetter(inReplyTo)?.envelope.to;
    if (asked === undefined || sameAddress(from, asked)) return;
    throw forbidden("Only the actor that an operation was sent to may reply to it.");
  }

  /** Reports whether the outcome of the answered operation was reported before. Marks its dead letter as answered. */
  #isLateReply({ inReplyTo }: Envelope): boolean {
    if (inReplyTo === undefined) return false;
    const letter = this.store.deadLetter(inReplyTo);
    if (letter === undefined) return this.outbox.underWay(inReplyTo)?.late ?? false;
    this.store.keep({ ...letter, repliedAt: this.ports.clock.now() });
    this.letters.note(inReplyTo);
    return true;
  }

  #record(operationId: string, receipt: Receipt, now: number): void {
    this.store.putReceipt(operationId, receipt);
    if (this.#untilTrim-- > 0) return;
    this.#untilTrim = TRIM_EVERY;
    this.store.trimReceipts(firstOperationId(now - RECEIPT_KEPT_MS));
  }
}

function retryAfterOf(thrown: unknown): number | undefined {
  const wait = thrown instanceof NotNow ? thrown.retryAfterMs : undefined;
  return wait !== undefined && Number.isFinite(wait) ? Math.max(0, Math.ceil(wait)) : undefined;
}

/** Returns a copy, so that this answer equals the recorded answer. */
function checkedResult(result: Json, type: string): Json {
  const text = isJson(result) ? JSON.stringify(result) : undefined;
  if (text !== undefined && fitsUtf8(text, MAX_RESULT_BYTES)) return JSON.parse(text);
  throw new Error(`The handler of "${type}" ${problemOf(result, text)}`);
}

/** Describes a result that is not accepted. */
function problemOf(result: unknown, text: string | undefined): string {
  if (result === undefined) return "returned nothing. Return `null`.";
  if (result instanceof Promise) {
    // The promise has no other listener.
    result.catch((error: unknown) => console.error(error));
    return "returned a Promise. Handlers are synchronous: start other work by `afterCommit`.";
  }
  return text === undefined
    ? "returned a value that is not JSON."
    : `returned more than ${MAX_RESULT_BYTES} bytes. Send a large result in a separate envelope.`;
}
