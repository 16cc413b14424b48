/** The handlers of an actor for envelopes and outcomes, by envelope type. The actor's constructor registers them. */
import type { z } from "zod";
import type { Envelope } from "../../../protocol/envelope.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { validate } from "../../../shared/validation.ts";
import type { Outcome } from "./outbox-entry.ts";

/** An effect that waits for a commit. The acknowledgement of the commit waits for a promise that it returns. */
export type AfterCommit = () => void | Promise<void>;

/** An incoming envelope, as its handler gets it. */
export interface Delivery {
  readonly envelope: Envelope;
  /** The envelope is a late reply: the outcome of its operation was already reported as `failed` or `unknown`. */
  readonly late: boolean;
  /**
   * Runs an effect (frames, memory, I/O) after the handler's changes have committed. Without a commit it does not run. A crash in between
   * loses the effect, so the committed state must also lead to it. If the effect returns a promise, the answer to the sender waits for it.
   * If the promise rejects, the sender gets no answer and retries.
   */
  afterCommit(effect: AfterCommit): void;
}

/**
 * Applies an envelope's changes and returns its result. Synchronous; runs in the transaction that records the receipt. A throw rolls back
 * its changes. A `DramatisError` refuses the envelope, for now if it is retriable (see `NotNow`); any other error counts as a defect, and
 * delivery is retried.
 */
export type ReceiveHandler<Body> = (body: Body, delivery: Delivery) => Json;

/**
 * Reads data of other actors for a handler, before its transaction. Its error is the outcome of the attempt, as if the handler had thrown
 * it. Attempts may overlap, so it must not have effects.
 */
export type ReadBefore<Body, Read> = (body: Body, envelope: Envelope) => Promise<Read>;

/** As `ReceiveHandler`, with the result of the read. */
export type ReadHandler<Body, Read> = (body: Body, delivery: Delivery, read: Read) => Json;

export interface Prepared {
  read(): Promise<unknown>;
  run(delivery: Delivery, read: unknown): Json;
}

/** The outcome of an outgoing envelope, as its handler gets it in the transaction that removes it from the outbox. */
export interface DeliveryOutcome {
  readonly envelope: Envelope;
  readonly outcome: Outcome;
  /** An earlier outcome was already reported. This outcome belongs to a redelivery. */
  readonly late: boolean;
  /** As in `Delivery`. */
  afterCommit(effect: AfterCommit): void;
}

export type OutcomeHandler = (outcome: DeliveryOutcome) => void;

/**
 * Refuses an envelope for now. The sender retries, no sooner than after `retryAfterMs`.
 *
 * @example throw new NotNow("The queue is full.", 20_000);
 */
export class NotNow extends DramatisError {
  constructor(
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super("QUEUE_OVERFLOW", message, { retriable: true });
  }
}

/** Maximum number of types without a handler that one life reports. */
const MAX_REPORTED = 20;

interface Receiver {
  body: z.ZodType;
  read: ReadBefore<never, unknown> | null;
  handler: ReadHandler<never, never>;
}

export class Handlers {
  readonly #receivers = new Map<string, Receiver>();
  readonly #outcomes = new Map<string, OutcomeHandler>();
  /** Types without a handler that were reported. */
  readonly #reported = new Set<string>();

  receives<Body>(type: string, body: z.ZodType<Body>, handler: ReceiveHandler<Body>): void {
    register(this.#receivers, type, { body, read: null, handler });
  }

  receivesAfter<Body, Read>(
    type: string,
    body: z.ZodType<Body>,
    read: ReadBefore<Body, Read>,
    handler: ReadHandler<Body, Read>,
  ): void {
    register(this.#receivers, type, { body, read, handler });
  }

  outcomes(type: string, handler: OutcomeHandler): void {
    register(this.#outcomes, type, handler);
  }

  /** Checks the envelope's body and returns its handler. Throws `UNSUPPORTED` or `INVALID_INPUT`. */
  prepare(envelope: Envelope): Prepared {
    const { type, body } = envelope;
    const receiver = this.#receivers.get(type);
    if (receiver === undefined) {
      const message = `This actor has no handler for envelopes of type "${type}".`;
      if (!this.#reported.has(type) && this.#reported.size < MAX_REPORTED) {
        this.#reported.add(type);
        console.error(`${message} It has handlers for: ${[...this.#receivers.keys()].join(", ") || "none"}.`);
      }
      // Retriable: during a rollout, a newer sender meets older receivers.
      throw new DramatisError("UNSUPPORTED", message, { retriable: true });
    }
    const checked = validate(receiver.body, body, "/body", `The body of "${type}"`);
    // SAFETY: the schema, the read and the handler were registered together, and the schema has parsed the body.
    const given = checked as never;
    const { read, handler } = receiver;
    return {
      read: async () => read?.(given, envelope),
      run: (delivery, found) => handler(given, delivery, found as never),
    };
  }

  readsBefore(type: string): boolean {
    return (this.#receivers.get(type)?.read ?? null) !== null;
  }

  outcome(type: string): OutcomeHandler | undefined {
    return this.#outcomes.get(type);
  }
}

function register<Handler>(handlers: Map<string, Handler>, type: string, handler: Handler): void {
  if (handlers.has(type)) throw new Error(`Envelopes of type "${type}" already have this handler.`);
  handlers.set(type, handler);
}

/**
 * Runs effects after a commit. An effect that throws does not stop the others. Resolves when all returned promises have resolved. Rejects
 * with the first rejection.
 */
export async function runEffects(effects: readonly AfterCommit[]): Promise<void> {
  const promises = effects.map((effect) => {
    try {
      return effect();
    } catch (error) {
      console.error(error);
      return undefined;
    }
  });
  await Promise.all(promises);
}
