/** The conversation of a thread: creates it, subscribes to it, and starts its turns (CHANNEL-2, CHANNEL-3). */
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import { defined } from "../../shared/defined.ts";
import { type Result, unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import type { ChannelRecord, ChannelStore, WaitingInput } from "./store.ts";

/** The frames that cause posts. */
const TYPES = ["message.completed", "turn.failed", "approval.requested"] as const;

/** A started turn, and the stream of its frames. */
export interface StartedStream {
  turnId: string;
  frames: ReadableStream<Uint8Array>;
}

export interface ThreadPorts {
  conversation(tenant: string, id: string): Promise<ConversationActor>;
  /** Returns the id of the conversation of a thread, which depends only on the record. */
  conversationIdOf(record: ChannelRecord): Promise<string>;
  /** The address of this actor. */
  self(): ActorAddress;
}

interface Context extends ThreadPorts {
  store: ChannelStore;
  /** Commits the writes of `body`. */
  commit(body: () => void): Promise<void>;
}

export class ThreadConversation {
  /** The conversation that this life has asked for its frames. */
  #subscribedTo = "";

  constructor(private readonly ports: Context) {}

  /** Starts the turn of an event, or gives its answer to the call that waits. Repeated starts return the same turn. */
  async start(input: WaitingInput, isAgain = false): Promise<StartedStream | null> {
    const { id: key, subject, body } = input;
    const record = await this.#opened(subject);
    const { tenant, owner = subject } = record;
    const principal = principalOf(tenant, subject);
    const id = await this.ports.conversationIdOf(record);
    const conversation = await this.ports.conversation(tenant, id);
    const run = async (): Promise<Result<StartedStream | null>> => {
      const subscribed = await this.#subscribe(conversation, id, principalOf(tenant, owner));
      if (!subscribed.ok) return subscribed;
      if (body.answer === undefined) {
        const turn = { content: body.text, idempotencyKey: key, ...defined({ untrusted: body.untrusted }) };
        return conversation.streamTurn(principal, turn, "ndjson", true);
      }
      const { operationId, approved } = body.answer;
      const resolved = await conversation.resolveApproval(principal, operationId, { approved });
      return resolved.ok ? { ok: true, value: null } : resolved;
    };
    const result = await run();
    if (result.ok) return result.value;
    const { code } = result.error;
    // Only people who wrote in the thread may approve.
    if (body.answer === undefined && subject !== owner && (code === "NOT_FOUND" || code === "FORBIDDEN")) {
      const participant = { type: "user", id: subject } as const;
      const added = await conversation.addParticipant(principalOf(tenant, owner), participant);
      if (added.ok) return unwrap(await run());
    }
    const isOver = code === "NOT_FOUND" || code === "CONVERSATION_CLOSED";
    if (isAgain || !isOver || body.answer !== undefined) return unwrap(result);
    await this.#nextGeneration(record);
    return this.start(input, true);
  }

  /** Returns the record with an existing conversation, which sends its frames to this actor (CHANNEL-3). */
  async #opened(subject: string): Promise<ChannelRecord> {
    for (;;) {
      const record = this.#record();
      if (record.owner !== undefined) return record;
      const principal = principalOf(record.tenant, subject);
      const id = await this.ports.conversationIdOf(record);
      const conversation = await this.ports.conversation(record.tenant, id);
      const created = await conversation.create(principal, {
        ...{ id, agentId: record.agentId, fingerprint: "channel" },
      });
      if (!created.ok && created.error.code === "CONFLICT") {
        await this.#nextGeneration(record);
        continue;
      }
      unwrap(created);
      unwrap(await this.#subscribe(conversation, id, principal));
      await this.ports.commit(() => this.ports.store.put({ ...record, owner: subject }));
    }
  }

  /** Asks for the frames of a conversation. Each life asks again, because a conversation drops a subscriber that fails for an hour. */
  async #subscribe(conversation: ConversationActor, id: string, owner: Principal): Promise<Result<unknown>> {
    if (this.#subscribedTo === id) return { ok: true, value: null };
    const subscribed = await conversation.subscribeActor(owner, { to: this.ports.self(), types: [...TYPES] });
    if (subscribed.ok) this.#subscribedTo = id;
    return subscribed;
  }

  async #nextGeneration(record: ChannelRecord): Promise<void> {
    await this.ports.commit(() => this.ports.store.renew(record));
  }

  #record(): ChannelRecord {
    const record = this.ports.store.find();
    if (record === undefined) throw new Error("The thread has no event.");
    return record;
  }
}

/** A user of a channel has no roles (FIRE-7). */
function principalOf(tenant: string, subject: string): Principal {
  return { tenant, subject, roles: [] };
}
