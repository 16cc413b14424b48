/**
 * The queue of messages. It takes messages that cannot start their turns yet, and starts them as turns end.
 *
 * SIGQUEUE-4  A message counts against the rate of turns when it is accepted into the queue, and not again when it begins. Dropped
 *             messages, and messages that the rate refuses, do not count. After the first refusal because of the rate, the rest of the
 *             batch is refused too.
 * SIGQUEUE-5  Enqueueing is idempotent. A repeated key with another body is refused.
 * SIGQUEUE-6  A message that fails for an unknown reason is tried alone, up to `MAX_TRIES` times with growing pauses, and then refused. Later
 *             messages then continue. If the refusal cannot be stored either, the message stays.
 * SIGQUEUE-7  If the sender has left the conversation, a queued message is refused when it could begin.
 */
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorData, forbidden } from "../../shared/errors.ts";
import { utf8Length } from "../../shared/utf8.ts";
import type { Acceptance } from "./acceptance.ts";
import type { RuntimeContext } from "./context.ts";
import type { ConversationShell } from "./conversation-core.ts";
import { callerKey } from "./core/caller.ts";
import { DRAIN_STEP } from "./core/conversation-limits.ts";
import { queueOf } from "./core/facts/queue.ts";
import { fitting, mayDrain } from "./core/planning/signal-queue.ts";
import type { QueuedMessage, RefusedMessage, UserMessage } from "./core/signals.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  type SignalQueue,
  takesPart,
} from "./core/state.ts";
import { isSameMessage, keyConflict } from "./inbound/message-checks.ts";
import type { ConversationDatabase } from "./store/conversation-database.ts";

interface SignalQueueContext extends Pick<RuntimeContext, "clock" | "database"> {
  acceptance: Acceptance;
  shell: Pick<ConversationShell, "begin" | "commit">;
  runtime: { readonly state: ConversationState };
  store: Pick<ConversationDatabase, "signals" | "waitingMessage">;
}

/** Milliseconds before the retry of a failed read or write of the queue. Each further pause doubles. */
const RETRY_MS = 1_000;
/** Maximum number of tries of a message that fails for an unknown reason. */
const MAX_TRIES = 7;

/** The messages that failed together, in their order. Each message is retried alone. */
interface Suspects {
  n: number;
  until: number;
  /** Number of failures of the first message. */
  tries: number;
}

export class InboundSignalQueue {
  /** Number of the journal entry at which no message could begin, if any. */
  #blockedAt: number | null = null;
  /** Earliest time of the next try, in milliseconds since the epoch. */
  #notBefore = 0;
  #suspects: Suspects | null = null;

  constructor(private readonly context: SignalQueueContext) {}

  get isEmpty(): boolean {
    return this.context.runtime.state.queue === undefined;
  }

  /** Returns when the next message may begin, in milliseconds since the epoch; `null` if no message may begin. */
  drainFrom(state: ConversationState): number | null {
    return mayDrain(state) && this.#blockedAt !== state.seq ? this.#notBefore : null;
  }

  /**
   * Takes checked messages, in order. Returns `null` for each accepted message, or its error: `RATE_LIMITED`, `QUEUE_OVERFLOW` or
   * `IDEMPOTENCY_CONFLICT`. Resolves when the accepted messages are durable and the wake-up is armed.
   */
  async add(signals: readonly UserMessage[]): Promise<(ErrorData | null)[]> {
    const refusals = new Map<UserMessage, ErrorData>();
    const first = new Map<string, UserMessage>();
    const fresh = signals.filter((signal) => {
      const { caller, id, correlationId } = signal;
      const key = id === undefined ? undefined : callerKey(caller, id, correlationId);
      const waiting =
        this.context.store.waitingMessage(signal, this.context.runtime.state) ??
        (key === undefined ? undefined : first.get(key));
      if (key !== undefined && waiting === undefined) first.set(key, signal);
      if (waiting !== undefined && !isSameMessage(waiting, signal))
        refusals.set(signal, keyConflict().toData());
      return waiting === undefined;
    });
    const { record } = this.context.runtime.state;
    const messages = fresh.map((message): QueuedMessage => {
      const signal: UserMessage = isMember(record, message) ? { ...message, member: true } : message;
      return { signal, bytes: utf8Length(JSON.stringify(signal)) };
    });
    const fits = fitting(queueOf(this.context.runtime.state), messages);
    const { paid, refusal } = this.#prepay(fits);
    for (const signal of fresh.slice(paid)) refusals.set(signal, refusal ?? overflow());
    const ingested = refusal === undefined ? messages : messages.slice(0, paid);
    if (ingested.length > 0)
      await this.context.shell.commit([{ type: "conversation.cmd.ingest", messages: ingested }]);
    return signals.map((signal) => refusals.get(signal) ?? null);
  }

  /** Counts turns up to the rate. Returns the error for the turns beyond it. */
  #prepay(turns: number): { paid: number; refusal?: ErrorData } {
    for (let paid = 0; paid < turns; paid++) {
      try {
        this.context.acceptance.prepay();
      } catch (error) {
        if (error instanceof DramatisError) return { paid, refusal: error.toData() };
        throw error;
      }
    }
    return { paid: turns };
  }

  /** Begins the turns of the first messages, as many as may begin. Never throws. */
  drain(): void {
    const { clock } = this.context;
    const state = this.context.runtime.state;
    const from = this.drainFrom(state);
    if (from === null || from > clock.now()) return;
    try {
      this.#drain(state);
    } catch (error) {
      console.error(error);
      this.context.acceptance.forgetPrepaid();
      const { tries } = this.#suspect(queueOf(state));
      this.#notBefore = clock.now() + RETRY_MS * 2 ** (tries - 1);
    }
  }

  #suspect({ first: n, next }: SignalQueue): Suspects {
    const before = this.#suspects;
    const until = before?.until ?? Math.min(next, n + DRAIN_STEP);
    const tries = before?.n === n ? before.tries + 1 : 1;
    this.#suspects = { n, until, tries };
    return this.#suspects;
  }

  #drain(state: ConversationState): void {
    const { acceptance } = this.context;
    const { first, next } = queueOf(state);
    const unit = this.context.shell.begin();
    const drained = { count: 0, bytes: 0, refused: [] as RefusedMessage[] };
    const step = this.#suspects === null ? DRAIN_STEP : 1;
    const isGivenUp = this.#suspects?.n === first && this.#suspects.tries >= MAX_TRIES;
    this.context.database.transaction(() => {
      if (isGivenUp) this.#giveUp(first, drained);
      for (let n = first + drained.count; n < Math.min(next, first + step); n++) {
        const signal = this.context.store.signals.get(n);
        try {
          if (signal.member && !isMember(state.record, signal)) throw hasLeft();
          acceptance.stagePrepaid(unit, signal);
        } catch (error) {
          if (!(error instanceof DramatisError)) throw error;
          const { code, message, retriable } = error;
          if (code === "TOO_MANY_TURNS" && retriable) break;
          drained.refused.push({ ...defined({ id: signal.id }), code, message });
        }
        drained.count += 1;
        drained.bytes += utf8Length(JSON.stringify(signal));
      }
      if (drained.count > 0) unit.stage([{ type: "conversation.cmd.drained", ...drained }]);
    });
    if (drained.count === 0) this.#blockedAt = state.seq;
    else unit.release().catch(() => undefined);
    if (first + drained.count >= (this.#suspects?.until ?? 0)) this.#suspects = null;
  }

  /** Refuses the first message. Its row may be unreadable, too. */
  #giveUp(n: number, drained: { count: number; bytes: number; refused: RefusedMessage[] }): void {
    let signal: UserMessage | undefined;
    try {
      signal = this.context.store.signals.get(n);
    } catch (error) {
      console.error(error);
    }
    const message = "The message could not start its turn because of an internal error. Send it again.";
    drained.refused.push({ ...defined({ id: signal?.id }), code: "INTERNAL_ERROR", message });
    drained.count += 1;
    drained.bytes += signal === undefined ? 0 : utf8Length(JSON.stringify(signal));
  }
}

function isMember(record: Pick<ConversationIdentity, "participants">, { caller }: UserMessage): boolean {
  return caller.type === "user" && takesPart(record, { type: "user", id: caller.userId });
}

function hasLeft(): DramatisError {
  return forbidden("The sender of this message has left the conversation.");
}

function overflow(): ErrorData {
  const message = "Too many messages wait in this conversation. Send the message again later.";
  return new DramatisError("QUEUE_OVERFLOW", message, { retriable: true }).toData();
}
