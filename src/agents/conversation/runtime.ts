/**
 * The shell of a conversation: takes signals through the one door, commits what the core decides, publishes it, and
 * performs the effects that the new state calls for. Runs unchanged in a Durable Object and in Node.
 *
 * RUN-1  Durable before visible: frames are published, and effects begin, only after the commit returned.
 * RUN-2  Memory is replaced only by what was committed; a failed commit changes nothing.
 * RUN-3  A commit starts the effects of the turns it touched, and every heartbeat those of all turns, so one that was
 *        lost starts again.
 * RUN-4  The outcome of an effect whose commit failed is kept and committed later; the effect does not run again. One
 *        that can never be planned or committed fails its turn.
 * RUN-5  Turns are limited whoever starts them and through whatever door. Only a turn that began counts: neither a
 *        repeated message nor one that was refused does.
 */

import { type MetricsSink, reportMetrics } from "../../adapters/resilience/telemetry.ts";
import type { SessionEvent } from "../../memory/session/types.ts";
import type { Gate } from "../../policy/gate.ts";
import type { Ids } from "../../ports/ids.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { ToolSubmission } from "../../protocol/client-tools.ts";
import type { StartedTurn, SubmittedResult } from "../../protocol/conversation-api.ts";
import type { Frame } from "../../protocol/frames.ts";
import { parseContent } from "../../shared/content.ts";
import { DramatisError, type ErrorData, toErrorData } from "../../shared/errors.ts";
import { type RateLimit, type TokenBucket, takeToken, tokenBucket } from "../../shared/token-bucket.ts";
import { ephemeralFrame, framesOf } from "./core/frames.ts";
import { messageId, stemOf, turnId } from "./core/ids.ts";
import { isRepeated } from "./core/planning/client-result.ts";
import { plan } from "./core/planning/plan.ts";
import { checkTurnSchemas } from "./core/planning/turn-schemas.ts";
import type { Transition } from "./core/reduce-turn.ts";
import { beginTransition, reduce } from "./core/reducer.ts";
import type { EffectSignal, Signal, UserMessage } from "./core/signals.ts";
import type { ConversationIdentity, ConversationState, Turn } from "./core/state.ts";
import { checkReplyTo, operationAt } from "./door/addresses.ts";
import { isSameMessage, startedTurn } from "./door/started-turn.ts";
import { ArmedWindow, type ArmedWindowPorts } from "./effects/armed-window.ts";
import { closedCalls } from "./effects/call-metrics.ts";
import { DeltaBuffer } from "./effects/delta-buffer.ts";
import { type EffectPorts, type EffectReports, EffectRunner } from "./effects/effect-runner.ts";
import { dueIn, type Effect, effectOfTurn, effectsOf } from "./effects/effects.ts";
import { checkNewMedia, hasMedia } from "./effects/media.ts";
import { SessionWindow } from "./effects/session-window.ts";
import { type Committed, ConversationDatabase } from "./store/conversation-database.ts";
import { ToolStateStore } from "./store/tool-state.ts";

export interface ConversationPorts extends EffectPorts, ArmedWindowPorts {
  database: SqlDatabase;
  keyValue: KeyValue;
  ids: Ids;
  gate: Gate;
  /** How long a client has to run a tool, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
  /** Turns that are accepted; absent = as many as come. Counted in memory: an actor that wakes counts anew. */
  turnLimit?: RateLimit;
  /** Is told of model calls that are over. */
  metrics?: MetricsSink;
  /** Takes frames in order, to be shown to whoever watches. */
  publish: (frames: Frame[]) => void;
}

export class ConversationRuntime {
  readonly store: ConversationDatabase;
  readonly deltas: DeltaBuffer;
  readonly #effects: EffectRunner;
  readonly #window: SessionWindow;
  readonly #toolState: ToolStateStore;
  readonly #wakeup: ArmedWindow;
  /** Outcomes of effects that the store refused for now, as they were reported together. */
  readonly #unsaved: (readonly EffectSignal[])[] = [];
  #state: ConversationState | null = null;
  #turnBucket: TokenBucket | null;

  constructor(private readonly ports: ConversationPorts) {
    this.store = new ConversationDatabase(ports.database, ports.keyValue);
    this.#window = new SessionWindow(this.store.events);
    this.#effects = new EffectRunner(ports, this.#effectHost());
    this.#toolState = new ToolStateStore(ports.keyValue);
    this.#wakeup = new ArmedWindow(ports, () => this.dueIn);
    this.deltas = new DeltaBuffer(ports.clock, ports.publish);
    this.#turnBucket = ports.turnLimit === undefined ? null : tokenBucket(ports.turnLimit);
  }

  /**
   * The state, read from the store on first use; throws `NOT_FOUND` before the conversation was created, `UNAVAILABLE`
   * if a newer release stored it.
   */
  get state(): ConversationState {
    this.#state ??= this.store.load();
    if (this.#state === null) throw new DramatisError("NOT_FOUND", "There is no such conversation.");
    return this.#state;
  }

  get exists(): boolean {
    this.#state ??= this.store.load();
    return this.#state !== null;
  }

  /** What tools keep in the conversation; throws as `state` does. */
  get toolState(): ToolStateStore {
    void this.state;
    return this.#toolState;
  }

  /** Creates the conversation with what was said before; `beside` runs in the same transaction. */
  create(record: ConversationIdentity, beside?: () => void, history?: readonly SessionEvent[]): void {
    this.#state = this.store.create(record, beside, history);
  }

  /** Takes up what a crash interrupted. Call once, when the actor wakes. */
  async wake(): Promise<void> {
    if (!this.busy) return;
    this.#apply([{ type: "conversation.cmd.recover" }]);
    await this.#wakeup.whenArmed();
  }

  /**
   * Commits what could not be committed before, gives up what clients have left unanswered for too long, then starts
   * every effect that the state calls for and that is not running.
   */
  reconcile(): void {
    if (!this.exists) return;
    // One at a time: while another outcome of a turn waits, that turn's effects must not start again.
    for (let left = this.#unsaved.length; left > 0; left--) this.#report(this.#unsaved.shift() ?? []);
    this.#expire();
    for (const effect of effectsOf(this.state)) this.#start(effect);
  }

  /** The text so far of the messages in progress, as frames for one who has just come. Flush the deltas before. */
  partialFrames(): Frame[] {
    const now = this.ports.clock.now();
    return this.deltas
      .partials()
      .map(({ turnId, messageId, text }) =>
        ephemeralFrame("message.delta", { offset: 0, text }, { turnId, messageId }, now),
      );
  }

  /** In how many milliseconds `reconcile` must be called again; `null` if it need not be. */
  get dueIn(): number | null {
    return this.exists ? dueIn(this.state, this.ports.clock.now()) : null;
  }

  /** Whether turns are active. */
  get busy(): boolean {
    return this.exists && this.state.active.size > 0;
  }

  /**
   * Accepts a user's message. The same key and body answer the same turn; another body is `IDEMPOTENCY_CONFLICT`.
   * Resolves when the turn is durable and its wake-up armed.
   */
  async accept(signal: UserMessage): Promise<StartedTurn> {
    const content = parseContent(signal.data.content);
    checkTurnSchemas(signal.data);
    const key = signal.id;
    const turnOfKey = () => (key === undefined ? undefined : this.store.turnOfKey(signal.caller.userId, key));
    // Before the key is looked up for good: from there on nothing may come in between.
    if (hasMedia(content)) await checkNewMedia(content, this.ports.media, () => turnOfKey() !== undefined);
    const known = turnOfKey();
    if (known !== undefined) {
      const started = this.#acceptedBefore(known, signal);
      await this.#wakeup.whenArmed();
      return started;
    }
    checkReplyTo(signal.data.replyToMessageId, (n) => this.#turn(n));
    const bucket = this.#bucketAfterTurn();
    this.#apply([signal], (turn) => {
      if (key !== undefined) this.store.rememberKey(signal.caller.userId, key, turn);
    });
    this.#turnBucket = bucket;
    const turn = this.state.active.get(this.state.turns);
    if (turn === undefined) throw new Error("An accepted message has started a turn.");
    await this.#wakeup.whenArmed();
    return startedTurn(turn, false);
  }

  /**
   * Takes results of tools that the client runs, all of them in one commit or none. Throws `NOT_FOUND` for an operation
   * that there is not, `CONFLICT` for one that takes no result, or not this one. Resolves when they are durable and the
   * turns that go on have their wake-up.
   */
  async submit(results: readonly ToolSubmission[]): Promise<SubmittedResult[]> {
    this.#expire();
    const turnOf = (n: number) => this.#turn(n);
    const found = results.map((given) => ({ ...operationAt(given.operationId, turnOf), given }));
    const isNew = found.filter(({ operation, given }) => !isRepeated(operation, given));
    this.#apply(
      isNew.map(({ turn, operation, given }) => ({
        type: "conversation.tool.submitted",
        turn: turn.n,
        item: operation.item,
        outcome: given,
      })),
    );
    await this.#wakeup.whenArmed();
    return found.map(({ turn, given: { operationId } }) => ({
      operationId,
      turnId: turnId(turn.stem, turn.n),
    }));
  }

  /** What cannot be committed now is late again with the next heartbeat. */
  #expire(): void {
    try {
      this.#apply([{ type: "conversation.cmd.expire" }]);
    } catch (error) {
      console.error(error);
    }
  }

  /** What is left once a turn has begun; throws `RATE_LIMITED` where nothing is. */
  #bucketAfterTurn(): TokenBucket | null {
    if (this.#turnBucket === null) return null;
    const taken = takeToken(this.#turnBucket, 1, this.ports.clock.now());
    if (taken.allowed) return taken.bucket;
    const seconds = Math.ceil(taken.retryAfter / 1000);
    throw new DramatisError("RATE_LIMITED", `Too many turns in a short time. Try again in ${seconds} s.`, {
      retriable: true,
      retryAfter: taken.retryAfter,
    });
  }

  #turn(n: number): Turn | null {
    return this.state.active.get(n) ?? this.store.turn(n);
  }

  #acceptedBefore(n: number, signal: UserMessage): StartedTurn {
    const turn = this.#turn(n);
    if (turn === null || !isSameMessage(turn, signal)) {
      throw new DramatisError(
        "IDEMPOTENCY_CONFLICT",
        "This idempotency key was used with another body. Use a new key for a new message.",
      );
    }
    return startedTurn(turn, true);
  }

  /**
   * Plans and commits signals as one transition, publishes it and starts its effects. A commit after which the actor is
   * due earlier arms the wake-up (the first turn that becomes active, one that a client lets go on), and so does every
   * one after it until that has worked.
   */
  #apply(signals: readonly Signal[], beside: (turn: number) => void = () => undefined): void {
    const now = this.ports.clock.now();
    const before = this.state;
    const transition = this.#transition(signals, now, stemOf(this.ports.ids.ulid()));
    if (transition.entries.length === 0) return;
    const { state, row } = this.#commit(transition, now, () => {
      beside(transition.state.turns);
      const due = dueIn(transition.state, now);
      const isEarlier = due !== null && due < (dueIn(before, now) ?? Number.POSITIVE_INFINITY);
      if (due !== null && (isEarlier || !this.#wakeup.isArmed)) void this.#wakeup.arm(due);
    });
    this.#state = state;
    this.#publish(
      transition,
      framesOf(row, 0, (n) => transition.touched.get(n)),
    );
    for (const turn of transition.touched.values()) {
      for (const call of closedCalls(state.record, before.active.get(turn.n), turn))
        reportMetrics(this.ports.metrics, call);
      if (turn.status !== "active") this.#window.ended(turn, this.state.record.chain);
      for (const effect of effectOfTurn(turn)) this.#start(effect);
    }
  }

  #commit(transition: Transition, now: number, beside: () => void): Committed {
    try {
      return this.store.commit(transition, now, beside);
    } catch (error) {
      this.#wakeup.forget();
      throw error;
    }
  }

  /** Planning is pure: what it throws, it throws again. A defect there is final, not a fault of the store. */
  #transition(signals: readonly Signal[], now: number, stem: string): Transition {
    const { gate, clientToolTimeoutMs } = this.ports;
    const limit = clientToolTimeoutMs === undefined ? {} : { clientToolTimeoutMs };
    const input = { now, stem, gate, ...limit };
    try {
      return signals.reduce<Transition>(
        (current, signal) => reduce(current, plan(current.state, signal, input), now),
        beginTransition(this.state),
      );
    } catch (cause) {
      if (cause instanceof DramatisError) throw cause;
      console.error(cause);
      throw new DramatisError("INTERNAL_ERROR", "An internal error occurred.", { cause });
    }
  }

  /** The turn as a signal would leave it; `undefined` where that cannot be planned, which reporting it will tell. */
  #preview(signal: EffectSignal): Turn | undefined {
    try {
      return this.#transition([signal], this.ports.clock.now(), "").touched.get(signal.turn);
    } catch {
      return undefined;
    }
  }

  #publish(transition: Transition, frames: Frame[]): void {
    this.deltas.flush();
    for (const frame of frames) {
      if (frame.type === "message.completed" || frame.type === "message.reset")
        this.deltas.drop(frame.messageId ?? "");
    }
    for (const turn of transition.touched.values()) {
      if (turn.status === "failed") this.#dropMessagesOf(turn);
    }
    this.ports.publish(frames);
  }

  #dropMessagesOf(turn: Turn): void {
    for (let item = 0; item < turn.items; item++) this.deltas.drop(messageId(turn.stem, turn.n, item));
  }

  /**
   * Commits what effects report. What the store refuses for now is kept for the next heartbeat, because its effect must
   * not run again; what it refuses for good fails the turn.
   */
  #report(signals: readonly EffectSignal[]): void {
    try {
      this.#apply(signals);
    } catch (error) {
      console.error(error);
      if (isFinal(error)) this.#abandon(signals, toErrorData(error));
      else this.#unsaved.push(signals);
    }
  }

  #abandon(signals: readonly EffectSignal[], error: ErrorData): void {
    const facts = new Map(
      signals
        .map((signal) => [signal.turn, "facts" in signal ? { facts: signal.facts } : {}] as const)
        .reverse(),
    );
    try {
      this.#apply(
        [...facts].map(([turn, known]) => ({ type: "conversation.cmd.abandon", turn, error, ...known })),
      );
    } catch (second) {
      console.error(second);
      this.#unsaved.push(signals);
    }
  }

  #start(effect: Effect): void {
    const isUnsaved = this.#unsaved.flat().some(({ turn }) => turn === effect.turn.n);
    if (!isUnsaved) this.#effects.start(effect);
  }

  #effectHost(): EffectReports {
    const runtime = this;
    return {
      get record() {
        return runtime.state.record;
      },
      history: (turn) => this.#window.messagesFor(turn, this.state.record.chain),
      preview: (signal) => this.#preview(signal),
      report: (signals) => this.#report(signals),
      onText: ({ stem, n }, item, text) =>
        this.deltas.append(turnId(stem, n), messageId(stem, n, item), text),
      onProgress: ({ stem, n }, operationId, progress) => {
        const ids = { turnId: turnId(stem, n), operationId };
        this.ports.publish([ephemeralFrame("tool.progress", { progress }, ids, this.ports.clock.now())]);
      },
    };
  }
}

/** Whether an outcome can never be committed: it is our own refusal, or cannot be written as text at all. */
function isFinal(error: unknown): boolean {
  if (error instanceof DramatisError) return !error.retriable;
  return error instanceof RangeError || error instanceof TypeError;
}
