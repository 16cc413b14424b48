/**
 * Runs a thread of a channel: starts a turn for each event, and posts the answers.
 *
 * CHANNEL-2  An event is acknowledged when it is stored. It starts one turn, also if the platform repeats it or the actor crashes.
 * CHANNEL-3  The messages of a thread share a conversation. Each speaker becomes a participant. After the end or the deletion of the
 *            conversation, the next message begins another one.
 * CHANNEL-4  The conversation sends its frames to the thread's mailbox, each once. A frame and the post that it needs are stored together.
 * CHANNEL-6  A message that the conversation refuses is answered with the reason. Events wait in order, and so do posts.
 */
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import type { ChannelAdapter, ChannelDelivery, ChannelInput } from "../../protocol/channels.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import type { ConversationFrames } from "../../protocol/subscribers.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, errorText, type Result, unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { type AfterCommit, NotNow } from "../base/mailbox/handlers.ts";
import { ArmedWakeup, type WakeupPorts } from "../base/runtime/armed-wakeup.ts";
import { afterAttempt, MAX_ATTEMPTS, partsOf, pauseMs, textOf } from "./core/posts.ts";
import { TurnPreview } from "./preview.ts";
import { type ChannelRecord, ChannelStore, type WaitingInput } from "./store.ts";

/** Events that may wait in a thread. */
const MAX_WAITING = 200;
/** An attempt without an answer is over after this time, in milliseconds. */
const ATTEMPT_MS = 30_000;
/** While an attempt runs, the wake-up fires no sooner. In milliseconds. */
const MIN_PAUSE_MS = 1_000;
/** The frames that cause posts. */
const TYPES = ["message.completed", "turn.failed", "approval.requested"] as const;

/** A started turn, and the stream of its frames. */
interface StartedStream {
  turnId: string;
  frames: ReadableStream<Uint8Array>;
}

export interface ChannelPorts extends WakeupPorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  /** Returns the adapter of a channel. Throws if the application no longer has the channel. */
  adapter(channel: string): ChannelAdapter;
  conversation(tenant: string, id: string): Promise<ConversationActor>;
  /** Returns the id of the conversation of a thread, which depends only on the record. */
  conversationIdOf(record: ChannelRecord): Promise<string>;
  /** The address of this actor. */
  self(): ActorAddress;
}

export class ChannelRuntime {
  readonly store: ChannelStore;
  readonly #wakeup: ArmedWakeup;
  readonly #previews = new Map<string, TurnPreview>();
  #isBeginning = false;
  #isPosting = false;

  constructor(private readonly ports: ChannelPorts) {
    this.store = new ChannelStore(ports);
    this.#wakeup = new ArmedWakeup(ports, () => this.dueIn);
  }

  /** Milliseconds until the next call of `reconcile`, or `null`. */
  get dueIn(): number | null {
    if (this.store.find() === undefined) return null;
    const times = [this.store.nextInput()?.due, this.store.nextPost()?.due].filter(
      (time) => time !== undefined,
    );
    if (times.length === 0) return null;
    const least = this.#isBeginning || this.#isPosting ? MIN_PAUSE_MS : 0;
    return Math.max(least, Math.min(...times) - this.ports.clock.now());
  }

  whenArmed(): Promise<void> {
    return this.#wakeup.whenArmed();
  }

  /** Resumes the work of an earlier life. */
  wake(): void {
    const input = this.store.find() && this.store.nextInput();
    // The attempt of an earlier life is over.
    if (input !== undefined && input.attempts > 0)
      this.store.delayInput(input.seq, input.attempts, this.ports.clock.now());
    this.reconcile();
    this.#wakeup.doubt();
  }

  /** Begins the work that is due. */
  reconcile(): void {
    if (this.store.find() === undefined) return;
    this.#begin().catch((error: unknown) => console.error(error));
    this.#post().catch((error: unknown) => console.error(error));
  }

  /** Stores an event (CHANNEL-2). Throws `QUEUE_OVERFLOW`. */
  async take(input: ChannelInput): Promise<void> {
    const { channel, tenant, agentId, thread } = input;
    if (this.store.find() !== undefined && this.store.waiting >= MAX_WAITING)
      throw new DramatisError("QUEUE_OVERFLOW", `${MAX_WAITING} messages of this thread wait already.`, {
        retriable: true,
      });
    await this.#commit(() => {
      if (this.store.find() === undefined)
        this.store.put({ channel, tenant, agentId, thread, generation: 0 });
      this.store.addInput(input, this.ports.clock.now());
    });
    this.reconcile();
  }

  /** Stores the posts of frames (CHANNEL-4). Runs in the transaction of the envelope. */
  receive(
    { frames, ended }: ConversationFrames,
    from: string,
    conversationId: string,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const record = this.store.find();
    // An earlier conversation of the thread may still answer.
    if (record === undefined || from !== conversationId) return;
    if (ended !== undefined) this.store.forget(record);
    const { clock } = this.ports;
    const adapter = this.ports.adapter(record.channel);
    for (const frame of frames) {
      const text = textOf(frame, adapter.edit !== undefined);
      if (text === null || frame.turnId === undefined) continue;
      const place = this.store.placeOf(frame.turnId);
      if (place === undefined && this.#mayHaveBegun)
        throw new NotNow("The turn of a message begins now.", 500);
      // Somebody else began the turn, such as a reader in the console.
      if (place === undefined) continue;
      const { turnId, messageId } = frame;
      for (const [index, part] of partsOf(text.text, adapter.maxLength).entries())
        this.store.addPost(
          place.surface,
          { ...text, text: part },
          { turnId, messageId: index === 0 ? messageId : undefined },
          clock.now(),
        );
    }
    const armed = this.#wakeup.write(0);
    afterCommit(() => {
      this.#wakeup.adopt(armed);
      this.reconcile();
      return armed;
    });
  }

  /** An event may have started a turn that is not stored yet. */
  get #mayHaveBegun(): boolean {
    const input = this.store.nextInput();
    return input !== undefined && input.attempts > 0 && input.attempts <= 3;
  }

  async #begin(): Promise<void> {
    if (this.#isBeginning) return;
    this.#isBeginning = true;
    try {
      for (let input = this.#dueInput(); input !== undefined; input = this.#dueInput())
        await this.#attempt(input);
    } finally {
      this.#isBeginning = false;
      await this.#wakeup.whenArmed();
    }
  }

  #dueInput(): WaitingInput | undefined {
    const input = this.store.nextInput();
    return input !== undefined && input.due <= this.ports.clock.now() ? input : undefined;
  }

  async #attempt(input: WaitingInput): Promise<void> {
    const { clock } = this.ports;
    const { seq, surface } = input;
    const attempts = input.attempts + 1;
    await this.#commit(() => this.store.delayInput(seq, attempts, clock.now() + ATTEMPT_MS));
    try {
      const started = await this.#inTime(() => this.#start(input));
      const preview = started === null ? null : this.#previewOf(started.turnId, surface);
      await this.#commit(() => this.store.endInput(seq, started?.turnId ?? null));
      if (started !== null) this.#follow(started, preview);
    } catch (error) {
      const mayPass = !(error instanceof DramatisError) || error.retriable;
      if (mayPass) console.warn("A message of a channel could not begin its turn.", error);
      await this.#commit(() => {
        if (mayPass && attempts < MAX_ATTEMPTS)
          return this.store.delayInput(seq, attempts, clock.now() + pauseMs(attempts));
        this.store.endInput(seq, null);
        this.store.addPost(
          surface,
          { text: `I cannot take this message: ${errorText(error)}` },
          {},
          clock.now(),
        );
      });
      this.#post().catch((cause: unknown) => console.error(cause));
    }
  }

  /** Starts the turn of an event, or gives its answer to the call that waits. Repeated starts return the same turn. */
  async #start(input: WaitingInput, isAgain = false): Promise<StartedStream | null> {
    const { id, subject, body } = input;
    const record = await this.#opened(subject);
    const { tenant, owner = subject } = record;
    const principal = principalOf(tenant, subject);
    const conversation = await this.#conversation(record);
    const run = async (): Promise<Result<StartedStream | null>> => {
      if (body.answer === undefined) {
        const turn = { content: body.text, idempotencyKey: id, ...defined({ untrusted: body.untrusted }) };
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
    return this.#start(input, true);
  }

  /** Returns the record with an existing conversation, which sends its frames to this actor (CHANNEL-3). */
  async #opened(subject: string): Promise<ChannelRecord> {
    for (;;) {
      const record = this.#record();
      if (record.owner !== undefined) return record;
      const principal = principalOf(record.tenant, subject);
      const conversation = await this.#conversation(record);
      const id = await this.ports.conversationIdOf(record);
      const created = await conversation.create(principal, {
        ...{ id, agentId: record.agentId, fingerprint: "channel" },
      });
      if (!created.ok && created.error.code === "CONFLICT") {
        await this.#nextGeneration(record);
        continue;
      }
      unwrap(created);
      unwrap(await conversation.subscribeActor(principal, { to: this.ports.self(), types: [...TYPES] }));
      await this.#commit(() => this.store.put({ ...record, owner: subject }));
    }
  }

  async #nextGeneration(record: ChannelRecord): Promise<void> {
    await this.#commit(() => this.store.forget(record));
  }

  async #conversation(record: ChannelRecord): Promise<ConversationActor> {
    return this.ports.conversation(record.tenant, await this.ports.conversationIdOf(record));
  }

  /** Returns the preview of a turn; `null` if the channel sends only complete texts. */
  #previewOf(turnId: string, surface: WaitingInput["surface"]): TurnPreview | null {
    const adapter = this.ports.adapter(this.#record().channel);
    const { edit, maxLength } = adapter;
    if (edit === undefined) return null;
    const preview = new TurnPreview({
      ...{ clock: this.ports.clock, surface },
      adapter: {
        ...defined({ maxLength }),
        deliver: (...of) => this.#inTime(() => adapter.deliver(...of)),
        edit: (...of) => this.#inTime(() => edit.apply(adapter, of)),
      },
      store: (shown) => this.ports.database.transaction(() => this.store.putPreview(turnId, shown)),
    });
    this.#previews.set(turnId, preview);
    return preview;
  }

  #follow({ turnId, frames }: StartedStream, preview: TurnPreview | null): void {
    if (preview === null) return void frames.cancel().catch(() => undefined);
    void preview.follow(frames).finally(() => this.#previews.delete(turnId));
  }

  async #post(): Promise<void> {
    if (this.#isPosting) return;
    this.#isPosting = true;
    try {
      for (let isDone = false; !isDone; ) isDone = !(await this.#postNext());
    } finally {
      this.#isPosting = false;
      await this.#wakeup.whenArmed();
    }
  }

  /** Sends the oldest post, if it is due. Returns `false` if there is none. */
  async #postNext(): Promise<boolean> {
    const { clock } = this.ports;
    const waiting = this.store.nextPost();
    if (waiting === undefined || (waiting.due > clock.now() && !waiting.isSending)) return false;
    const { turnId = "", messageId = "" } = waiting;
    await this.#previews.get(turnId)?.end(messageId);
    // The preview has stored its reference.
    const post = this.store.nextPost() ?? waiting;
    const attempts = post.attempts + 1;
    const isLost = post.isSending && post.replaces === undefined;
    if (!isLost)
      await this.#commit(() => this.store.markPost(post.seq, true, attempts, clock.now() + ATTEMPT_MS));
    const result = isLost ? LOST : await this.#send(post);
    const next = afterAttempt({ attempts, ...defined({ replaces: post.replaces }) }, result);
    if (next.type === "given up") {
      const what = next.isSent === null ? "may have been lost" : "was not sent";
      console.error(`A post of the channel "${this.#record().channel}" ${what}. ${next.reason}`);
    }
    await this.#commit(() => {
      if (next.type === "again") this.store.markPost(post.seq, false, attempts, clock.now() + next.pauseMs);
      else this.store.removePost(post.seq);
    });
    return true;
  }

  async #send({
    surface,
    body,
    replaces,
  }: ReturnType<ChannelStore["nextPost"]> & object): Promise<ChannelDelivery> {
    try {
      const adapter = this.ports.adapter(this.#record().channel);
      return await this.#inTime(async () =>
        replaces === undefined || adapter.edit === undefined
          ? adapter.deliver(surface, body)
          : adapter.edit(surface, replaces, body),
      );
    } catch (error) {
      return { status: "uncertain", error: { code: "UNKNOWN", message: errorText(error) } };
    }
  }

  /** Throws `UNAVAILABLE` if an attempt has no result in time. */
  #inTime<Value>(attempt: () => Promise<Value>): Promise<Value> {
    const reason = unanswered("The attempt", ATTEMPT_MS);
    return withDeadline(this.ports.clock, ATTEMPT_MS, attempt, { reason });
  }

  #record(): ChannelRecord {
    const record = this.store.find();
    if (record === undefined) throw new Error("The thread has no event.");
    return record;
  }

  /** Commits the writes of `body` with the wake-up. Resolves when the wake-up is armed. */
  async #commit(body: () => void): Promise<void> {
    const armed = this.ports.database.transaction(() => {
      body();
      const due = this.dueIn;
      return { armed: due === null ? null : this.#wakeup.write(due) };
    });
    if (armed.armed === null) return;
    this.#wakeup.adopt(armed.armed);
    await armed.armed;
  }
}

const LOST: ChannelDelivery = {
  status: "uncertain",
  error: { code: "UNKNOWN", message: "The actor stopped during the attempt." },
};

/** A user of a channel has no roles (FIRE-7). */
function principalOf(tenant: string, subject: string): Principal {
  return { tenant, subject, roles: [] };
}
