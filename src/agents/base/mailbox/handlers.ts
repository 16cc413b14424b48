/** What an actor does with envelopes, by their type: registered once, when the actor is constructed. */
import type { z } from "zod";
import type { Envelope } from "../../../protocol/envelope.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { inputIssues } from "../../../shared/validation.ts";
import type { Outcome } from "./outbox-entry.ts";

/** What waits for a commit. */
export type AfterCommit = () => void;

/** An envelope on its way through a handler. */
export interface Delivery {
  readonly envelope: Envelope;
  /**
   * The envelope replies to an operation of this actor whose outcome was told as `failed` or `unknown`: its result has
   * come after all.
   */
  readonly late: boolean;
  /**
   * Runs once what the handler did is committed, and not at all if that fails: for frames, effects, memory. A crash in
   * between loses it, so it must also follow from what was committed.
   */
  afterCommit(effect: AfterCommit): void;
}

/**
 * Applies an envelope's changes, in the transaction that makes it acted upon, and answers its result. Synchronous. What
 * it throws takes back its changes: a `DramatisError` refuses the envelope (a retriable one: for now, see `NotNow`),
 * anything else counts as a defect and is tried again.
 */
export type ReceiveHandler<Body> = (body: Body, delivery: Delivery) => Json;

/** An outcome as its sender's handler is told it, in the transaction that ends the envelope's stay in the outbox. */
export interface ToldOutcome {
  readonly envelope: Envelope;
  readonly outcome: Outcome;
  /** Another outcome was told before; this one is a redelivery's. */
  readonly late: boolean;
  /** As in `Delivery`. */
  afterCommit(effect: AfterCommit): void;
}

export type OutcomeHandler = (told: ToldOutcome) => void;

/** Thrown by a handler: not now. The sender tries again, no sooner than it is told. */
export class NotNow extends DramatisError {
  constructor(
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super("QUEUE_OVERFLOW", message, { retriable: true });
  }
}

interface Receiver {
  body: z.ZodType;
  handler: ReceiveHandler<never>;
}

export class Handlers {
  readonly #receivers = new Map<string, Receiver>();
  readonly #outcomes = new Map<string, OutcomeHandler>();

  receives<Body>(type: string, body: z.ZodType<Body>, handler: ReceiveHandler<Body>): void {
    if (this.#receivers.has(type)) throw new Error(`Envelopes "${type}" have a handler already.`);
    this.#receivers.set(type, { body, handler });
  }

  told(type: string, handler: OutcomeHandler): void {
    if (this.#outcomes.has(type)) throw new Error(`Outcomes of "${type}" have a handler already.`);
    this.#outcomes.set(type, handler);
  }

  /** The handler with the envelope's body checked; throws `UNSUPPORTED` or `INVALID_INPUT`. */
  prepare({ type, body }: Envelope): (delivery: Delivery) => Json {
    const receiver = this.#receivers.get(type);
    if (receiver === undefined) {
      // Retriable: while a release is rolled out, a newer sender finds older receivers.
      throw new DramatisError("UNSUPPORTED", `This actor takes no envelopes of the type "${type}".`, {
        retriable: true,
      });
    }
    const checked = receiver.body.safeParse(body);
    if (!checked.success) {
      throw new DramatisError("INVALID_INPUT", `The body of "${type}" is not valid.`, {
        errors: inputIssues(checked.error, "/body"),
      });
    }
    // SAFETY: `receives` took the schema and the handler as a pair, and the schema has just parsed the body.
    return (delivery) => receiver.handler(checked.data as never, delivery);
  }

  outcome(type: string): OutcomeHandler | undefined {
    return this.#outcomes.get(type);
  }
}

/** Runs what was waiting for a commit. One effect that throws does not keep the others from running. */
export function runEffects(effects: readonly AfterCommit[]): void {
  for (const effect of effects) {
    try {
      effect();
    } catch (error) {
      console.error(error);
    }
  }
}
