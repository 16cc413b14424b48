/**
 * The queue of messages, in its actor: takes those that cannot begin their turns yet, and lets them begin as turns end.
 *
 * SIGQUEUE-4  A message counts against the rate of turns when it is accepted into the queue, and not again when it begins.
 */
import type { Clock } from "../../ports/clock.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorData } from "../../shared/errors.ts";
import { utf8Length } from "../../shared/utf8.ts";
import type { Acceptance, AcceptingUnit } from "./acceptance.ts";
import { DRAIN_STEP } from "./core/limits.ts";
import { fitting, mayDrain, queueOf } from "./core/planning/signal-queue.ts";
import type { QueuedMessage, RefusedMessage, Signal, UserMessage } from "./core/signals.ts";
import type { ConversationState } from "./core/state.ts";

/** The unit of work in which messages of the queue begin their turns. */
interface DrainingUnit extends AcceptingUnit {
  release(): Promise<void>;
}

export interface SignalQueuePorts {
  clock: Pick<Clock, "now">;
  acceptance: Acceptance;
  state(): ConversationState;
  begin(): DrainingUnit;
  commit(signals: readonly Signal[]): Promise<void>;
  transaction<Value>(body: () => Value): Value;
  /** Returns a message of the queue. */
  messageAt(n: number): UserMessage;
}

/** Milliseconds before a queue that could not be read or written is tried again. */
const RETRY_MS = 1_000;

export class SignalQueueDoor {
  /** Number of the journal entry after which no message could begin; `null` before. */
  #blockedAt: number | null = null;
  /** Earliest time of the next try, in milliseconds since the epoch. */
  #notBefore = 0;

  constructor(private readonly ports: SignalQueuePorts) {}

  get isEmpty(): boolean {
    return this.ports.state().queue === undefined;
  }

  /** Returns when the next message may begin, in milliseconds since the epoch; `null` while none may. */
  drainFrom(state: ConversationState): number | null {
    return mayDrain(state) && this.#blockedAt !== state.seq ? this.#notBefore : null;
  }

  /**
   * Takes messages whose content was checked, in order. Returns for each `null`, or why it was refused: `RATE_LIMITED` or
   * `QUEUE_OVERFLOW`. Resolves when those that were taken are durable and the wake-up is armed.
   */
  async add(signals: readonly UserMessage[]): Promise<(ErrorData | null)[]> {
    const allowed: QueuedMessage[] = [];
    const refusals = signals.map((signal) => {
      try {
        this.ports.acceptance.prepay();
      } catch (error) {
        if (error instanceof DramatisError) return error.toData();
        throw error;
      }
      allowed.push({ signal, bytes: utf8Length(JSON.stringify(signal)) });
      return null;
    });
    if (allowed.length === 0) return refusals;
    const taken = fitting(queueOf(this.ports.state()), allowed);
    const accepted = new Set(allowed.slice(0, taken).map(({ signal }) => signal));
    await this.ports.commit([{ type: "conversation.cmd.ingest", messages: allowed }]);
    return signals.map((signal, index) => refusals[index] ?? (accepted.has(signal) ? null : overflow()));
  }

  /** Begins the turns of the first messages, as many as may begin. Never throws. */
  drain(): void {
    const { clock } = this.ports;
    const state = this.ports.state();
    const from = this.drainFrom(state);
    if (from === null || from > clock.now()) return;
    try {
      this.#drain(state);
    } catch (error) {
      console.error(error);
      this.ports.acceptance.forgetPrepaid();
      this.#notBefore = clock.now() + RETRY_MS;
    }
  }

  #drain(state: ConversationState): void {
    const { acceptance } = this.ports;
    const { first, next } = queueOf(state);
    const unit = this.ports.begin();
    const drained = { count: 0, bytes: 0, refused: [] as RefusedMessage[] };
    this.ports.transaction(() => {
      for (let n = first; n < Math.min(next, first + DRAIN_STEP); n++) {
        const signal = this.ports.messageAt(n);
        try {
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
  }
}

function overflow(): ErrorData {
  const message = "Too many messages wait in this conversation. Send the message again later.";
  return new DramatisError("QUEUE_OVERFLOW", message, { retriable: true }).toData();
}
