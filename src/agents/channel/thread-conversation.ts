/** The conversation of a thread: creates it, subscribes to it, and starts its turns (CHANNEL-2, CHANNEL-3). */
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import type { ChannelInput } from "../../protocol/channels.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import { defined } from "../../shared/defined.ts";
import { notFound, type Result, unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { pressed } from "./core/posts.ts";
import type { ChannelRecord, ChannelStore, WaitingInput } from "./store.ts";

/** The frames that cause posts. */
const TYPES = ["message.completed", "turn.failed", "approval.requested", "work.held"] as const;

type Answer = NonNullable<ChannelInput["answer"]>;

export interface StartedStream {
  turnId: string;
  frames: ReadableStream<Uint8Array>;
}

export interface ThreadPorts {
  conversation(tenant: string, id: string): Promise<ConversationActor>;
  /** Returns the id of the conversation that a user begins. It depends only on the record and the user. */
  conversationIdOf(record: ChannelRecord, owner: string): Promise<string>;
  self(): ActorAddress;
}

export class ThreadConversation {
  /** The conversation that this life has asked for its frames. */
  #subscribedTo = "";

  constructor(
    private readonly ports: ThreadPorts,
    private readonly store: ChannelStore,
    private readonly commit: (body: () => void) => Promise<void>,
  ) {}

  /** Starts the turn of a message, or gives an answer to the call that waits. Repeated starts return the same turn. */
  start(input: WaitingInput): Promise<StartedStream | null> {
    return input.body.answer === undefined
      ? this.#startTurn(input)
      : this.#resolve(input.subject, input.body.answer);
  }

  async #startTurn(input: WaitingInput, isAgain = false): Promise<StartedStream> {
    const { id: idempotencyKey, subject, body } = input;
    const { tenant, id, ...opened } = await this.#opened(input);
    const owner = principalOf(tenant, opened.owner);
    const conversation = await this.ports.conversation(tenant, id);
    const run = async (): Promise<Result<StartedStream>> => {
      const subscribed = await this.#subscribe(conversation, id, owner);
      if (!subscribed.ok) return subscribed;
      const turn = { content: body.text, idempotencyKey, ...defined({ untrusted: body.untrusted }) };
      return conversation.streamTurn(principalOf(tenant, subject), turn, "ndjson", true);
    };
    const result = await run();
    if (result.ok) return result.value;
    const { code } = result.error;
    if (subject !== owner.subject && (code === "NOT_FOUND" || code === "FORBIDDEN")) {
      const added = await conversation.addParticipant(owner, { type: "user", id: subject });
      if (added.ok) return unwrap(await run());
    }
    if (isAgain || (code !== "NOT_FOUND" && code !== "CONVERSATION_CLOSED")) return unwrap(result);
    await this.#leave(id, code === "NOT_FOUND");
    return this.#startTurn(input, true);
  }

  /** Gives an answer to the conversation that asked. Only people who wrote in the thread may answer. An answer begins no conversation. */
  async #resolve(subject: string, { operationId: id, approved }: Answer): Promise<null> {
    const { tenant } = this.#record();
    const { operationId, answer } = pressed(id, approved);
    let result: Result<unknown> = { ok: false, error: notFound("Nothing waits for an answer.").toData() };
    for (const at of this.store.conversations()) {
      const conversation = await this.ports.conversation(tenant, at);
      result = await conversation.resolveApproval(principalOf(tenant, subject), operationId, answer);
      if (result.ok || (result.error.code !== "NOT_FOUND" && result.error.code !== "FORBIDDEN")) break;
    }
    unwrap(result);
    return null;
  }

  /** Returns the conversation, which sends its frames to this actor. Creates it for the sender of a message (CHANNEL-3). */
  async #opened(input: WaitingInput): Promise<{ tenant: string; id: string; owner: string }> {
    const record = this.#record();
    const { tenant, agentId, channel, generation } = record;
    if (record.conversation !== undefined) return { tenant, ...record.conversation };
    const owner = input.subject;
    const principal = principalOf(tenant, owner);
    const id = await this.ports.conversationIdOf(record, owner);
    const conversation = await this.ports.conversation(tenant, id);
    const created = await conversation.create(principal, { id, agentId, channel, fingerprint: "channel" });
    const isDeleted = !created.ok && created.error.code === "CONFLICT";
    if (!isDeleted) {
      unwrap(created);
      unwrap(await this.#subscribe(conversation, id, principal));
    }
    await this.commit(() => {
      const current = this.#record();
      if (current.generation !== generation) return;
      if (isDeleted) return this.store.renew(current);
      this.store.put({ ...current, conversation: { id, owner } });
      this.store.placeInput(input.seq, id);
    });
    return this.#opened(input);
  }

  /** Lets the next start ask for the frames again. */
  doubtSubscription(): void {
    this.#subscribedTo = "";
  }

  /** Asks for the frames of a conversation. Each life asks again, because a conversation drops a subscriber that fails for an hour. */
  async #subscribe(conversation: ConversationActor, id: string, owner: Principal): Promise<Result<unknown>> {
    if (this.#subscribedTo === id) return { ok: true, value: null };
    const subscribed = await conversation.subscribeActor(owner, { to: this.ports.self(), types: [...TYPES] });
    if (subscribed.ok) this.#subscribedTo = id;
    return subscribed;
  }

  /** Leaves a conversation that is over. If it is gone, the thread forgets it. */
  async #leave(id: string, isGone: boolean): Promise<void> {
    await this.commit(() => {
      const record = this.#record();
      if (record.conversation?.id === id) this.store.renew(record);
      if (isGone) this.store.forget(id);
    });
  }

  #record(): ChannelRecord {
    const record = this.store.find();
    if (record === undefined) throw new Error("The thread has no event.");
    return record;
  }
}

/** A user of a channel has no roles (FIRE-7). */
function principalOf(tenant: string, subject: string): Principal {
  return { tenant, subject, roles: [] };
}
