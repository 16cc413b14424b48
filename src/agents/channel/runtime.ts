/**
 * Runs a thread of a channel: starts a turn for each event, and posts the answers.
 *
 * CHANNEL-2  An event is acknowledged when it is stored. It starts one turn, also if the platform repeats it or the actor crashes.
 * CHANNEL-3  The messages of a thread share a conversation. Each speaker becomes a participant. After the end or the deletion of the
 *            conversation, the next message begins a new conversation.
 * CHANNEL-4  The conversation sends its frames to the thread's mailbox, each once. A frame and the post that it needs are stored together.
 * CHANNEL-6  A message that the conversation refuses is answered with the reason. Events wait in order, and so do posts.
 */
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { ChannelAdapter, ChannelDelivery, ChannelInput, ChannelText } from "../../protocol/channels.ts";
import type { ConversationFrames } from "../../protocol/subscribers.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, errorText } from "../../shared/errors.ts";
import { type AfterCommit, NotNow } from "../base/mailbox/handlers.ts";
import { ArmedWakeup, type WakeupPorts } from "../base/runtime/armed-wakeup.ts";
import {
  afterAttempt,
  MAX_ATTEMPTS,
  PLACEHOLDER,
  type Post,
  partsOf,
  pauseMs,
  textOf,
} from "./core/posts.ts";
import { TurnPreview } from "./preview.ts";
import { type ChannelRecord, ChannelStore, OPEN_PREVIEW, type WaitingInput } from "./store.ts";
import { type StartedStream, ThreadConversation, type ThreadPorts } from "./thread-conversation.ts";

/** Events that may wait in a thread. */
const MAX_WAITING = 200;
/** An attempt without an answer is over after this time, in milliseconds. */
const ATTEMPT_MS = 30_000;
/** While an attempt runs, the wake-up fires no sooner. In milliseconds. */
const MIN_PAUSE_MS = 1_000;

export interface ChannelPorts extends WakeupPorts, ThreadPorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  /** Returns the adapter of a channel. Throws `UNAVAILABLE`, retriable, if the application lacks the channel. */
  adapter(channel: string): ChannelAdapter;
  /** The address of the server, which has the console; absent if it is unknown. */
  server?: string | undefined;
}

export class ChannelRuntime {
  readonly store: ChannelStore;
  readonly #wakeup: ArmedWakeup;
  readonly #conversation: ThreadConversation;
  readonly #previews = new Map<string, TurnPreview>();
  #isBeginning = false;
  #isPosting = false;

  constructor(private readonly ports: ChannelPorts) {
    this.store = new ChannelStore(ports);
    this.#wakeup = new ArmedWakeup(ports, () => this.dueIn);
    this.#conversation = new ThreadConversation(ports, this.store, (body) => this.#commit(body));
  }

  /** Milliseconds until the next call of `reconcile`, or `null`. */
  get dueIn(): number | null {
    if (this.store.find() === undefined) return null;
    const due = this.store.dueAt;
    if (due === undefined) return null;
    const least = this.#isBeginning || this.#isPosting ? MIN_PAUSE_MS : 0;
    return Math.max(least, due - this.ports.clock.now());
  }

  whenArmed(): Promise<void> {
    return this.#wakeup.whenArmed();
  }

  /** Resumes the work of an earlier life. */
  wake(): void {
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

  /** Stores the posts of frames (CHANNEL-4). Runs in the transaction of the envelope. `from` is the conversation. */
  receive(
    { frames, ended }: ConversationFrames,
    from: string,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const record = this.store.find();
    if (record === undefined) return;
    const { clock } = this.ports;
    for (const frame of frames) {
      const { turnId, messageId } = frame;
      if (turnId === undefined) continue;
      const place = this.store.placeOf(turnId);
      if (place === undefined && this.store.mayHaveBegunIn(from)) {
        // A conversation drops a subscriber that refuses for an hour, so the next start asks again for the frames.
        this.#conversation.doubtSubscription();
        throw new NotNow("The turn of a message begins now.", 500);
      }
      // Somebody else began the turn, such as a reader in the console.
      if (place?.conversationId !== from) continue;
      const adapter = this.ports.adapter(record.channel);
      const { server } = this.ports;
      const text = textOf(frame, adapter.edit !== undefined, { conversationId: from, server });
      if (text === null) continue;
      const replaced = frame.type === "turn.failed" ? OPEN_PREVIEW : undefined;
      const parts = partsOf(text.text, adapter.maxLength);
      for (const [index, part] of parts.entries()) {
        const isLast = index === parts.length - 1;
        const body = { text: part, ...(isLast && defined({ approval: text.approval })) };
        this.store.addPost(
          place.surface,
          body,
          { turnId, messageId: index === 0 ? (replaced ?? messageId) : undefined },
          clock.now(),
        );
      }
    }
    if (ended !== undefined) {
      for (const [turnId, preview] of this.#previews)
        if (this.store.placeOf(turnId)?.conversationId === from) preview.stop();
      if (record.conversation?.id === from) this.store.renew(record);
      this.store.forget(from);
    }
    const armed = this.#wakeup.write(0);
    afterCommit(() => {
      this.#wakeup.adopt(armed);
      this.reconcile();
      return armed;
    });
  }

  async #begin(): Promise<void> {
    if (this.#isBeginning) return;
    this.#isBeginning = true;
    try {
      const next = () => this.store.dueInput(this.ports.clock.now());
      for (let input = next(); input !== undefined; input = next()) await this.#attempt(input);
    } finally {
      this.#isBeginning = false;
      await this.#wakeup.whenArmed();
    }
  }

  async #attempt(input: WaitingInput): Promise<void> {
    const { clock } = this.ports;
    const { seq, surface, body } = input;
    await this.#commit(() => {
      if (body.answer === undefined) this.#place(input);
      this.store.beginInput(seq, clock.now() + ATTEMPT_MS);
    });
    try {
      const started = await this.#inTime(() => this.#conversation.start(input));
      const preview = started === null ? null : this.#previewOf(started.turnId, surface);
      await this.#commit(() => this.store.endInput(seq, started?.turnId ?? null));
      if (started !== null) this.#follow(started, preview);
    } catch (error) {
      const mayPass = !(error instanceof DramatisError) || error.retriable;
      const attempts = input.attempts + 1;
      console.warn("A message of a channel could not begin its turn.", error);
      await this.#commit(() => {
        if (mayPass && attempts < MAX_ATTEMPTS) {
          if (isRefusal(error) && input.conversationId === undefined) this.store.placeInput(seq, null);
          return this.store.delayInput(seq, attempts, clock.now() + pauseMs(attempts));
        }
        this.store.endInput(seq, null);
        this.store.addPost(surface, { text: refusalOf(error) }, {}, clock.now());
      });
      this.#post().catch((cause: unknown) => console.error(cause));
    }
  }

  /** Stores where a message starts its turn. A changed agent begins with a new message. A begun message ends where it began. */
  #place({ seq, body, conversationId }: WaitingInput): void {
    const record = this.#record();
    if (conversationId === undefined && record.agentId !== body.agentId)
      this.store.renew({ ...record, agentId: body.agentId });
    const { conversation } = this.#record();
    if (conversation !== undefined) this.store.placeInput(seq, conversation.id);
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
        deliver: (place, text) => this.#inTime((signal) => adapter.deliver(place, text, signal)),
        edit: (place, at, text) => this.#inTime((signal) => edit.call(adapter, place, at, text, signal)),
      },
      // A preview passes no text that waits.
      mayBegin: () => this.store.nextPost() === undefined,
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

  /** Attempts the oldest post. Returns `false` without a post that is due. */
  async #postNext(): Promise<boolean> {
    const { clock } = this.ports;
    const waiting = this.store.nextPost();
    if (waiting === undefined || (waiting.due > clock.now() && !waiting.isSending)) return false;
    const { turnId = "", messageId = "" } = waiting;
    await this.#previews.get(turnId)?.end(messageId === OPEN_PREVIEW ? undefined : messageId);
    // The preview has stored its reference. The conversation may be deleted by now.
    const post = this.store.nextPost();
    if (post?.seq !== waiting.seq) return true;
    const adapter = this.#adapter();
    const isRepeatable = adapter?.edit !== undefined;
    const isLost = post.isSending && !isRepeatable;
    if (!isLost && adapter !== null)
      await this.#commit(() => this.store.markPost(post.seq, true, post.attempts, clock.now() + ATTEMPT_MS));
    const attempts = post.attempts + 1;
    const result = adapter === null ? ABSENT : isLost ? LOST : await this.#send(adapter, post);
    const next = afterAttempt({ attempts, isRepeatable }, result);
    if (next.type === "given up") {
      const what = next.isSent === null ? "may have been lost" : "was not sent";
      const where = turnId === "" ? "" : ` of the turn ${turnId}`;
      console.error(`A post${where} in the channel "${this.#record().channel}" ${what}. ${next.reason}`);
    }
    await this.#commit(() => {
      if (next.type !== "again") return this.store.removePost(post);
      // Without the channel, the result of an attempt of an earlier life stays unknown.
      const isSending = adapter === null && post.isSending;
      this.store.markPost(post.seq, isSending, attempts, clock.now() + next.pauseMs);
    });
    return adapter !== null || next.type !== "again";
  }

  /** Sends a text, or replaces the placeholder by it (CHANNEL-5). */
  async #send(adapter: ChannelAdapter, { seq, surface, body, replaces }: Post): Promise<ChannelDelivery> {
    const deliver = (text: ChannelText) => this.#inTime((signal) => adapter.deliver(surface, text, signal));
    const edit = (reference: string) =>
      this.#inTime(async (signal) => adapter.edit?.(surface, reference, body, signal) ?? ABSENT);
    try {
      if (adapter.edit === undefined) return await deliver(body);
      if (replaces !== undefined) {
        const result = await edit(replaces);
        if (result.status !== "failed" || result.retryable) return result;
        // Somebody deleted the message, or its time for edits is over.
      }
      const result = await deliver({ text: PLACEHOLDER });
      if (result.status !== "delivered") return result;
      const { reference } = result;
      if (reference === undefined) return WITHOUT_REFERENCE;
      await this.#commit(() => this.store.putPlaceholder(seq, reference));
      // The conversation was deleted during the request.
      if (this.store.nextPost()?.seq !== seq) return { status: "delivered" };
      return await edit(reference);
    } catch (error) {
      return { status: "uncertain", error: { code: "UNKNOWN", message: errorText(error) } };
    }
  }

  /** Returns the adapter; `null` while the application lacks the channel, such as after a rollback. */
  #adapter(): ChannelAdapter | null {
    try {
      return this.ports.adapter(this.#record().channel);
    } catch {
      return null;
    }
  }

  /** Throws `UNAVAILABLE` if an attempt has no result in time. */
  #inTime<Value>(attempt: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
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

const ABSENT: ChannelDelivery = {
  status: "failed",
  retryable: true,
  error: { code: "UNAVAILABLE", message: "The application has no such channel now." },
};
const WITHOUT_REFERENCE: ChannelDelivery = {
  status: "failed",
  retryable: false,
  error: { code: "NO_REFERENCE", message: "An adapter with `edit` returns a `reference` from `deliver`." },
};
const LOST: ChannelDelivery = {
  status: "uncertain",
  error: { code: "UNKNOWN", message: "The actor stopped during the attempt." },
};

/** Reports whether an error says that no turn has begun. */
function isRefusal(error: unknown): boolean {
  return error instanceof DramatisError && error.code !== "UNAVAILABLE" && error.code !== "INTERNAL_ERROR";
}

/** Returns what the sender of a refused message reads. Names of agents and users stay inside. */
function refusalOf(error: unknown): string {
  const isHidden =
    !(error instanceof DramatisError) || ["NOT_FOUND", "FORBIDDEN", "UNAVAILABLE"].includes(error.code);
  return isHidden ? "I cannot take this message now." : `I cannot take this message: ${error.message}`;
}
