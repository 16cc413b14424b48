/**
 * The receiving side: accept, commit, return.
 *
 * MAIL-14  A handler's changes and the receipt are committed in one transaction, and the answer is given after it. A
 *          handler that throws has changed nothing.
 * MAIL-15  What is not for this actor, of another tenant, malformed, with an invalid body, or a reply from another actor
 *          than was asked is refused, and nothing is recorded of it (a last attempt apart, whose refusal has to hold).
 * MAIL-18  What a newer release may have sent is not lost to an older one: an unknown type is "not now" until the last
 *          attempt, and unknown members of envelope and attempt are left out.
 */

import { type Envelope, envelopeSchema, firstOperationId, sameAddress } from "../../../protocol/envelope.ts";
import type { Answer, Attempt } from "../../../protocol/mailbox-api.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, type ErrorData, toErrorData } from "../../../shared/errors.ts";
import { isJson, type Json } from "../../../shared/json.ts";
import { fitsUtf8 } from "../../../shared/utf8.ts";
import { inputIssues } from "../../../shared/validation.ts";
import { attemptSchema, boundedError } from "./answer.ts";
import type { DeadLetterMirror } from "./dead-letter-mirror.ts";
import { type AfterCommit, type Delivery, type Handlers, NotNow, runEffects } from "./handlers.ts";
import { MAX_ENVELOPE_BYTES, MAX_RESULT_BYTES, RECEIPT_KEPT_MS, TRIM_EVERY } from "./limits.ts";
import type { Outbox } from "./outbox.ts";
import type { MailboxPorts } from "./ports.ts";
import { decideReceipt, type Receipt } from "./receipt.ts";
import type { MailboxStore } from "./store.ts";

export class Inbox {
  #untilTrim = 0;

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
    private readonly handlers: Handlers,
    private readonly outbox: Outbox,
    private readonly letters: DeadLetterMirror,
  ) {}

  async receive(input: unknown, attemptInput: unknown): Promise<Answer> {
    const parsed = envelopeSchema.safeParse(input);
    if (!parsed.success)
      return refused("INVALID_INPUT", "The envelope is not valid.", inputIssues(parsed.error));
    const attempt = attemptSchema.safeParse(attemptInput);
    if (!attempt.success) return refused("INVALID_INPUT", "The attempt is not valid.");
    const envelope: Envelope = parsed.data;
    const self = this.ports.self();
    if (self === null || !sameAddress(envelope.to, self)) {
      return refused("NOT_FOUND", "The envelope is not for this actor.");
    }
    if (!fitsUtf8(JSON.stringify(envelope), MAX_ENVELOPE_BYTES)) {
      return refused("TOO_LARGE", `An envelope may have ${MAX_ENVELOPE_BYTES} bytes.`);
    }
    const effects: AfterCommit[] = [];
    const answer = this.#commit(envelope, attempt.data, effects);
    runEffects(effects);
    this.letters.publish();
    await this.outbox.whenArmed();
    return answer;
  }

  /** Throws when the transaction does: whether it committed is then for the next attempt to find out. */
  #commit(envelope: Envelope, attempt: Attempt, effects: AfterCommit[]): Answer {
    try {
      return this.ports.database.transaction(() => this.#take(envelope, attempt, effects));
    } catch (error) {
      this.store.forgetTables();
      throw error;
    }
  }

  #take(envelope: Envelope, attempt: Attempt, effects: AfterCommit[]): Answer {
    const { operationId } = envelope;
    const now = this.ports.clock.now();
    const decision = decideReceipt(operationId, attempt.number, this.store.receipt(operationId), now);
    if (decision.type === "answer") {
      // What the handler sent in an earlier life may still be under way.
      this.outbox.load();
      return decision.answer;
    }
    const handled = this.#handle(envelope, effects);
    if (handled.type === "done") {
      this.#record(operationId, handled, now);
      return handled;
    }
    effects.length = 0;
    const { error, isDoor, retryAfterMs } = handled;
    if (error.retriable && !attempt.last) {
      return { type: "busy", error, ...defined({ retryAfterMs }) };
    }
    if (isDoor && !attempt.last) return { type: "refused", error, recorded: false };
    this.#record(operationId, { type: "refused", attempt: attempt.number, error }, now);
    return { type: "refused", error, recorded: true };
  }

  #handle(envelope: Envelope, effects: AfterCommit[]): Handled {
    let run: (delivery: Delivery) => Json;
    try {
      run = this.handlers.prepare(envelope);
      this.#checkReply(envelope);
    } catch (error) {
      return { type: "threw", error: boundedError(toErrorData(error)), isDoor: true };
    }
    try {
      // A transaction of its own, so that what a handler wrote before it threw is taken back.
      const result = this.ports.database.transaction(() => {
        const late = this.#isLateReply(envelope);
        const afterCommit = (effect: AfterCommit) => void effects.push(effect);
        return checkedResult(run({ envelope, late, afterCommit }));
      });
      return { type: "done", result };
    } catch (error) {
      if (!(error instanceof DramatisError)) console.error(error);
      const retryAfterMs = error instanceof NotNow ? waitOf(error) : undefined;
      return { type: "threw", error: boundedError(toErrorData(error)), isDoor: false, retryAfterMs };
    }
  }

  /** Throws where an operation that this actor remembers is answered by somebody else than it was sent to. */
  #checkReply({ inReplyTo, from }: Envelope): void {
    if (inReplyTo === undefined) return;
    const asked =
      this.outbox.underWay(inReplyTo)?.envelope.to ?? this.store.deadLetter(inReplyTo)?.envelope.to;
    if (asked === undefined || sameAddress(from, asked)) return;
    throw new DramatisError("FORBIDDEN", "Only the actor that an operation was sent to may reply to it.");
  }

  /** Whether this replies to an operation whose outcome was told before; a dead letter then shows that it was answered. */
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

type Handled =
  | { type: "done"; result: Json }
  | { type: "threw"; error: ErrorData; isDoor: boolean; retryAfterMs?: number | undefined };

/** A time that has passed meanwhile is none to wait for. */
function waitOf({ retryAfterMs = Number.NaN }: NotNow): number | undefined {
  return Number.isFinite(retryAfterMs) ? Math.max(0, Math.ceil(retryAfterMs)) : undefined;
}

/** A copy: what is answered now is what the receipt answers later. */
function checkedResult(result: Json): Json {
  const text = isJson(result) ? JSON.stringify(result) : undefined;
  if (text !== undefined && fitsUtf8(text, MAX_RESULT_BYTES)) return JSON.parse(text);
  throw new Error(`A handler must answer JSON of at most ${MAX_RESULT_BYTES} bytes.`);
}

function refused(
  code: "INVALID_INPUT" | "NOT_FOUND" | "TOO_LARGE",
  message: string,
  errors?: ErrorData["errors"],
): Answer {
  const error = { code, message, retriable: false, ...defined({ errors }) };
  return { type: "refused", error, recorded: false };
}
