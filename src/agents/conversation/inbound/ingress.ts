/**
 * Inbound signals: opens their envelopes, and applies or queues them.
 *
 * SIGNAL-4  Each signal of a batch has its own answer, in order. A refused signal is not stored, and does not stop other signals.
 * SIGNAL-5  Messages begin in their order. If a message must wait, later messages also wait. Stops and resumes never wait.
 */
import type { z } from "zod";
import type { Clock } from "../../../ports/clock.ts";
import { parseItemId, stemOf } from "../../../protocol/ids.ts";
import { stopRequest, stopSignal } from "../../../protocol/requests.ts";
import type { AcceptedSignal } from "../../../protocol/signal-schemas.ts";
import type { SignalResult, StartedTurn } from "../../../protocol/signals.ts";
import { defined } from "../../../shared/defined.ts";
import { asResult, type ErrorData, hasCode, invalid } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { inputIssues, issuesText, plainly } from "../../../shared/validation.ts";
import type { ActorContext } from "../context.ts";
import { DRAIN_STEP, MAX_QUEUED_SIGNALS } from "../core/conversation-limits.ts";
import { correlationOf, newCorrelation } from "../core/correlation.ts";
import type { UserMessage } from "../core/signals.ts";
import type { SignalOrigin } from "../core/stop-signals.ts";
import type { ConversationAccess } from "./access.ts";
import { messageOf, startTurnSchema } from "./requests.ts";
import { type OpenedSignal, openSignal, refused } from "./signal-envelope.ts";
import type { Stops } from "./stops.ts";

interface IngressContext extends Pick<ActorContext, "ids"> {
  clock: Pick<Clock, "sleep">;
  runtime: {
    accept(signal: UserMessage): Promise<StartedTurn>;
    /** Reports whether the message has started a turn before. */
    isKnown(signal: UserMessage): boolean;
    /** Throws if a message's content is invalid. */
    check(signal: UserMessage): Promise<void>;
    readonly queue: {
      readonly isEmpty: boolean;
      add(signals: readonly UserMessage[]): Promise<(ErrorData | null)[]>;
    };
  };
  stops: Stops;
  access: Pick<ConversationAccess, "checkSpeaker">;
}

/** The messages of a batch that wait, each with its place in the batch. */
type Waiting = { index: number; signal: UserMessage }[];

export class Ingress {
  constructor(private readonly context: IngressContext) {}

  /** Takes a signal, or several. Throws `INVALID_INPUT` for more than fit into the queue. */
  async ingest(principal: Principal, signals: unknown): Promise<SignalResult[]> {
    const list = Array.isArray(signals) ? signals : [signals];
    if (list.length > MAX_QUEUED_SIGNALS) {
      const message = `A batch may have ${MAX_QUEUED_SIGNALS} signals. This batch has ${list.length}.`;
      throw invalid(message);
    }
    const results: SignalResult[] = [];
    const waiting: Waiting = [];
    // Signals run one after another. Otherwise a later message could overtake a message that waits for its media.
    for (const [index, envelope] of list.entries()) {
      // Actors can share a thread: others get their turn between the parts of a large batch.
      if (index > 0 && index % DRAIN_STEP === 0) await this.context.clock.sleep(0);
      results[index] = await asResult(async () => {
        // The sender may have left the conversation during the batch.
        this.context.access.checkSpeaker(principal);
        const signal = openSignal(envelope);
        if (signal.type !== "conversation.user.message") return this.#change(principal, signal);
        return this.#message(readMessage(signal, principal), { index, waiting });
      });
    }
    const refusals = await this.#queue(waiting);
    refusals.forEach((error, position) => {
      const { index = 0 } = waiting[position] ?? {};
      if (error !== null) results[index] = { ok: false, error };
    });
    return results;
  }

  async #queue(waiting: Waiting): Promise<(ErrorData | null)[]> {
    if (waiting.length === 0) return [];
    return this.context.runtime.queue.add(waiting.map(({ signal }) => signal));
  }

  async #message(
    signal: UserMessage,
    { index, waiting }: { index: number; waiting: Waiting },
  ): Promise<AcceptedSignal> {
    const { runtime } = this.context;
    const mustWait = waiting.length > 0 || index >= DRAIN_STEP || !runtime.queue.isEmpty;
    if (!mustWait || runtime.isKnown(signal)) {
      try {
        return started(signal, await runtime.accept(signal));
      } catch (error) {
        if (!isTooMany(error)) throw error;
      }
    }
    await runtime.check(signal);
    waiting.push({ index, signal });
    return { status: "queued", ...defined({ correlationId: signal.correlationId }) };
  }

  async #change(
    principal: Principal,
    { type, id, correlationId: supplied, data }: OpenedSignal,
  ): Promise<AcceptedSignal> {
    const { stops } = this.context;
    const correlationId = supplied ?? newCorrelation(stemOf(this.context.ids.ulid()));
    const origin: SignalOrigin = { correlationId, ...defined({ id, supplied }) };
    if (type === "conversation.resume") {
      await stops.resume(principal, read(stopRequest, data), origin);
    } else {
      const { turnId, ...options } = read(stopSignal, data);
      if (turnId === undefined) await stops.cancel(principal, options, origin);
      else await stops.cancelTurn(principal, turnId, options);
    }
    return { status: "applied", correlationId };
  }
}

function started(signal: UserMessage, turn: StartedTurn): AcceptedSignal {
  const stem = parseItemId(turn.turnId)?.stem ?? "";
  return {
    status: "started",
    ...turn,
    correlationId: correlationOf({ stem, ...defined({ correlationId: signal.correlationId }) }),
  };
}

function readMessage({ id, correlationId, data }: OpenedSignal, principal: Principal): UserMessage {
  const message = messageOf(principal, read(startTurnSchema, data));
  return { ...message, ...defined({ id, correlationId }) };
}

/** Parses a payload. Throws `INVALID_SIGNAL` with `invalid_data`. */
function read<Schema extends z.ZodType>(schema: Schema, data: unknown): z.output<Schema> {
  const parsed = schema.safeParse(data, { error: plainly });
  if (parsed.success) return parsed.data;
  const issues = inputIssues(parsed.error, "/data");
  throw refused("invalid_data", `The signal is not valid: ${issuesText(issues)}`);
}

/** Reports whether a message was refused because of too many active turns. */
function isTooMany(error: unknown): boolean {
  return hasCode(error, "TOO_MANY_TURNS") && error.retriable;
}
