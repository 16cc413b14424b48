/**
 * Actors that subscribe to a conversation. Each subscriber has a stored cursor and at most one envelope under way.
 *
 * SUBSCRIBER-1  A subscriber gets each durable frame after its cursor once and in order, also after crashes of both actors and repeated
 *               attempts. It gets no text in progress.
 * SUBSCRIBER-2  The commit of an entry also sends the envelope to each idle subscriber. The envelope has no content. Each attempt reads the
 *               frames, so no copy of an erased text stays in the outbox.
 * SUBSCRIBER-3  The first attempt stores the last entry of its frames. Later attempts of the envelope send the same entries.
 * SUBSCRIBER-4  A subscriber that refuses frames, or fails at all attempts, is dropped. Its dead letter has the reason.
 * SUBSCRIBER-5  At each attempt the principal must still be a reader. Otherwise the subscription ends with `ended: "access"`. The deletion
 *               of the conversation ends it with `ended: "deleted"`.
 * SUBSCRIBER-6  Without subscribers, a conversation makes no statement for them and writes no row.
 */
import {
  type ActorAddress,
  addressKey,
  type Envelope,
  type NewEnvelope,
} from "../../../protocol/envelope.ts";
import { admits } from "../../../protocol/frame-filter.ts";
import type { Frame, FrameType } from "../../../protocol/frames.ts";
import {
  CONVERSATION_FRAMES,
  type ConversationFrames,
  MAX_SUBSCRIBED_FRAME_LENGTH,
  type SubscribedFrame,
  subscribeActor,
  subscriberAddress,
} from "../../../protocol/subscribers.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, forbidden, invalid, notFound } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { hasExpired, mayReadAll, type Principal } from "../../../shared/principal.ts";
import { validate, validateRequest } from "../../../shared/validation.ts";
import type { DeliveryOutcome } from "../../base/mailbox/handlers.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import { mayRead } from "./access.ts";
import { MAX_SUBSCRIBERS } from "./socket-limits.ts";

interface SubscribersContext
  extends Pick<ActorContext, "database" | "keyValue" | "send" | "withdraw" | "outboxRoom"> {
  clock: Pick<ActorContext["clock"], "now">;
  runtime: StoredConversation & { readonly store: { hasSubscribers: boolean; noteSubscribers(): void } };
  queries: Pick<ConversationQueries, "replay">;
}

interface Subscriber {
  to: ActorAddress;
  principal: Principal;
  types?: readonly FrameType[];
  /** The last entry that it has. */
  cursor: number;
  /** The envelope under way. `upTo` is the last entry of its frames, known from the first attempt on. */
  sending?: { operationId: string; upTo?: number };
}

const PREFIX = "subscriber:";
/** Length of the frames in one envelope. A longer frame is alone. An envelope has at most 768 KiB. */
const BATCH_LENGTH = 64 * 1024;

export class Subscribers {
  constructor(private readonly context: SubscribersContext) {}

  /**
   * Subscribes an actor, or changes its subscription. Returns its cursor. Throws `FORBIDDEN` for an actor of another tenant or the
   * subscription of another principal, `CONFLICT` for too many subscribers.
   */
  async subscribe(principal: Principal, input: unknown): Promise<{ cursor: number }> {
    const { to, from, types } = validateRequest(subscribeActor, input);
    const { database, keyValue, runtime } = this.context;
    const { record, seq } = runtime.state;
    if (to.tenant !== record.tenant)
      throw forbidden("Only actors of the conversation's tenant may subscribe to it.");
    if (to.kind === "conversation" && to.id === record.id)
      throw invalid("A conversation cannot subscribe itself. Choose another actor.");
    if (from !== undefined && from > seq)
      throw invalid(`\`from\` is ${from}, but the newest entry is ${seq}.`);
    const { cursor, sent } = database.transaction(() => {
      const known = this.#getOf(principal, to);
      if (known === undefined && this.#all().length >= MAX_SUBSCRIBERS) {
        const message = `A conversation has at most ${MAX_SUBSCRIBERS} subscribers. Unsubscribe an actor first.`;
        throw conflict(message);
      }
      runtime.store.noteSubscribers();
      if (known !== undefined && from !== undefined) this.#withdraw(to);
      const kept = from === undefined ? known : undefined;
      const next: Subscriber = {
        ...{ to, principal, cursor: from ?? known?.cursor ?? seq },
        ...defined({ types, sending: kept?.sending }),
      };
      keyValue.put(keyOf(to), next);
      return { cursor: next.cursor, sent: this.#sendDue([next], seq) };
    });
    await Promise.all(sent);
    return { cursor };
  }

  /** Ends the subscription of an actor. Unknown actors are ignored. Throws `FORBIDDEN` for the subscription of another principal. */
  unsubscribe(principal: Principal, input: unknown): void {
    const to = validate(subscriberAddress, input, "/to");
    const { database, keyValue } = this.context;
    database.transaction(() => {
      if (this.#getOf(principal, to) === undefined) return;
      this.#withdraw(to);
      keyValue.delete(keyOf(to));
    });
  }

  /** Returns the envelopes to idle subscribers. Call it in the transaction that commits the entry `seq`. */
  envelopes(seq: number): NewEnvelope[] {
    if (!this.context.runtime.store.hasSubscribers) return [];
    return this.#due(this.#all(), seq);
  }

  /** Sends the frames that an earlier life or a full outbox left. Call it when the actor wakes. */
  async resume(): Promise<void> {
    const { database, runtime } = this.context;
    if (!runtime.store.hasSubscribers) return;
    const { sent } = database.transaction(() => ({ sent: this.#sendDue(this.#all(), runtime.state.seq) }));
    await Promise.all(sent);
  }

  /** Ends all subscriptions. Call it in the transaction that deletes the conversation. */
  end(): Promise<void>[] {
    const { keyValue, runtime } = this.context;
    if (!runtime.store.hasSubscribers) return [];
    return this.#all().map(({ to, cursor }) => {
      this.#withdraw(to);
      keyValue.delete(keyOf(to));
      const body: ConversationFrames = { frames: [], cursor, ended: "deleted" };
      // SAFETY: frames are JSON.
      return this.context.send({ ...addressed(to), body: body as unknown as Json });
    });
  }

  /** Returns an envelope with its frames; `null` if its entries have no frame for the subscriber. */
  filled(envelope: Envelope): Envelope | null {
    if (envelope.body !== null) return envelope;
    const { clock, keyValue, runtime } = this.context;
    const found = this.#get(envelope.to);
    if (!runtime.exists || found?.sending?.operationId !== envelope.operationId)
      throw notFound("This subscription is over. Subscribe again.");
    const { principal, cursor } = found;
    const isReader = !hasExpired(principal, clock.now()) && mayRead(runtime.state.record, principal);
    if (!isReader) return withBody(envelope, { frames: [], cursor, ended: "access" });
    const { frames, upTo } = this.#batch(found);
    if (found.sending.upTo !== upTo)
      keyValue.put(keyOf(found.to), { ...found, sending: { ...found.sending, upTo } });
    return frames.length === 0 ? null : withBody(envelope, { frames, cursor: upTo });
  }

  /** Takes the outcome of an envelope, in the transaction that removes it from the outbox. */
  settle({ envelope, outcome, afterCommit }: DeliveryOutcome): void {
    const { keyValue, runtime } = this.context;
    const found = this.#get(envelope.to);
    if (found?.sending?.operationId !== envelope.operationId) return;
    const { sending, ...idle } = found;
    // Without a last entry no frame was sent: the principal is no reader.
    if (!runtime.exists || outcome.status !== "delivered" || sending.upTo === undefined) {
      keyValue.delete(keyOf(found.to));
      return;
    }
    const next: Subscriber = { ...idle, cursor: sending.upTo };
    keyValue.put(keyOf(found.to), next);
    const sent = this.#sendDue([next], runtime.state.seq);
    afterCommit(async () => void (await Promise.all(sent)));
  }

  /** Reads the frames of the next envelope: all of the same entries as before, or about `BATCH_LENGTH`. */
  #batch({ cursor, sending, types }: Subscriber): { frames: SubscribedFrame[]; upTo: number } {
    const { queries, runtime } = this.context;
    const known = sending?.upTo;
    const last = known ?? runtime.state.seq;
    const frames: SubscribedFrame[] = [];
    let [upTo, length] = [cursor, 0];
    for (;;) {
      const slice = queries.replay(runtime.state, upTo, BATCH_LENGTH);
      for (const frame of slice.frames) {
        const { seq = 0 } = frame;
        if (seq > last) return { frames, upTo: last };
        if (!admits(defined({ types }), frame.type)) continue;
        const next = bounded(frame);
        const size = JSON.stringify(next).length;
        if (known === undefined && length > 0 && length + size > BATCH_LENGTH)
          return { frames, upTo: seq - 1 };
        frames.push(next);
        length += size;
      }
      upTo = slice.upTo;
      if (slice.done || upTo >= last) return { frames, upTo: last };
    }
  }

  #sendDue(subscribers: readonly Subscriber[], seq: number): Promise<void>[] {
    return this.#due(subscribers, seq).map((envelope) => this.context.send(envelope));
  }

  /** Returns the envelopes to subscribers that are idle and behind, and notes them. */
  #due(subscribers: readonly Subscriber[], seq: number): NewEnvelope[] {
    const { keyValue, outboxRoom } = this.context;
    return subscribers.flatMap((subscriber) => {
      const { to, cursor, sending } = subscriber;
      if (sending !== undefined || cursor >= seq || outboxRoom().envelopes <= 0) return [];
      const envelope = addressed(to);
      keyValue.put(keyOf(to), { ...subscriber, sending: { operationId: envelope.operationId } });
      return [envelope];
    });
  }

  #withdraw(to: ActorAddress): void {
    this.context.withdraw({ to, type: CONVERSATION_FRAMES });
  }

  /** Returns the subscription of an actor. Throws `FORBIDDEN` for the subscription of another principal. */
  #getOf(principal: Principal, to: ActorAddress): Subscriber | undefined {
    const known = this.#get(to);
    if (known === undefined || known.principal.subject === principal.subject || mayReadAll(principal))
      return known;
    throw forbidden("Another user subscribed this actor.");
  }

  #get(to: ActorAddress): Subscriber | undefined {
    return this.context.keyValue.get<Subscriber>(keyOf(to));
  }

  #all(): Subscriber[] {
    return this.context.keyValue.list<Subscriber>(PREFIX, MAX_SUBSCRIBERS).map(([, found]) => found);
  }
}

function keyOf(to: ActorAddress): string {
  return PREFIX + addressKey(to);
}

/** Returns a new envelope without content. */
function addressed(to: ActorAddress): NewEnvelope {
  return { operationId: newOperationId(), to, type: CONVERSATION_FRAMES, body: null };
}

function withBody(envelope: Envelope, body: ConversationFrames): Envelope {
  // SAFETY: frames are JSON.
  return { ...envelope, body: body as unknown as Json };
}

/** Returns the frame, or a frame without data if it is too long. */
function bounded(frame: Frame): SubscribedFrame {
  if (JSON.stringify(frame.data).length <= MAX_SUBSCRIBED_FRAME_LENGTH) return frame;
  const { data: _data, ...rest } = frame;
  return { ...rest, omitted: true };
}
