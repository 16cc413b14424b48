/**
 * A conversation: takes messages and results of clients' tools, and connects the shell with the conversation's core, store
 * and effects. Runs unchanged in a Durable Object and in Node.
 *
 * RUN-5  Limit all turns, from every caller and entrance. Count only turns that began: neither repeated nor refused
 *        messages.
 */

import { type MetricsSink, reportMetrics } from "../../adapters/resilience/telemetry.ts";
import type { SessionEvent } from "../../memory/session/types.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { StartedTurn, SubmittedResult } from "../../protocol/conversation-api.ts";
import type { NewEnvelope } from "../../protocol/envelope.ts";
import type { TaskExecutor, TaskResult } from "../../protocol/executor-api.ts";
import type { Frame } from "../../protocol/frames.ts";
import { messageId, turnId } from "../../protocol/ids.ts";
import type { ToolSubmission } from "../../protocol/requests.ts";
import { parseContent } from "../../shared/content.ts";
import { DramatisError } from "../../shared/errors.ts";
import { type RateLimit, type TokenBucket, takeToken, tokenBucket } from "../../shared/token-bucket.ts";
import type { WakeupPorts } from "../base/runtime/armed-wakeup.ts";
import { ActorShell } from "../base/runtime/shell.ts";
import type { UnitOfWork } from "../base/runtime/unit-of-work.ts";
import { type ConversationCommit, ConversationCore, type PlanningPorts } from "./conversation-core.ts";
import type { Effect } from "./core/effects.ts";
import { ephemeralFrame, framesOf } from "./core/frames.ts";
import { takesByName } from "./core/operation.ts";
import { isRepeated } from "./core/planning/results.ts";
import { checkTurnSchemas } from "./core/planning/schema-check.ts";
import type { EffectSignal, Signal, UserMessage } from "./core/signals.ts";
import type { ConversationIdentity, ConversationState, Turn } from "./core/state.ts";
import type { Transition } from "./core/transition.ts";
import { checkRepeated, checkReplyTo, operationAt, startedTurn } from "./door/message-checks.ts";
import { TurnEnds } from "./door/turn-ends.ts";
import { metricsOfClosedCalls } from "./effects/call-metrics.ts";
import { DeltaBuffer } from "./effects/delta-buffer.ts";
import { type EffectPorts, EffectRunner } from "./effects/effect-runner.ts";
import { checkNewMedia, hasMedia } from "./effects/media.ts";
import type { ModelCallPorts } from "./effects/model-call.ts";
import { SessionWindows } from "./effects/session-windows.ts";
import { ConversationDatabase } from "./store/conversation-database.ts";
import { ToolStateStore } from "./store/tool-state.ts";

export interface ConversationPorts extends ModelCallPorts, PlanningPorts, WakeupPorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  executor: TaskExecutor;
  /** Rate of accepted turns; absent = no limit. The count is in memory and starts anew when the actor wakes. */
  turnLimit?: RateLimit;
  /** Receives the metrics of every model call that is over. */
  metrics?: MetricsSink;
  /** Publishes frames to all subscribers, in order. */
  publish: (frames: Frame[]) => void;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  /** Notes a new conversation for its agent and the directory, in the transaction that creates it. Returns the wake-ups. */
  announce(record: ConversationIdentity): readonly Promise<void>[];
}

/** A unit of work of a conversation. */
export type ConversationUnit = UnitOfWork<ConversationState, Signal, Transition, ConversationCommit, Effect>;

export class ConversationRuntime {
  readonly store: ConversationDatabase;
  readonly deltas: DeltaBuffer;
  /** The ends of turns, for callers that wait for them. */
  readonly ends: TurnEnds;
  readonly #shell: ActorShell<ConversationState, Signal, Transition, ConversationCommit, Effect>;
  readonly #effects: EffectRunner;
  readonly #windows: SessionWindows;
  readonly #toolState: ToolStateStore;
  #turnBucket: TokenBucket | null;

  constructor(private readonly ports: ConversationPorts) {
    const { database, keyValue, clock, turnLimit } = ports;
    this.store = new ConversationDatabase(database, keyValue);
    this.deltas = new DeltaBuffer(ports);
    this.ends = new TurnEnds(clock);
    this.#windows = new SessionWindows(this.store, () => this.state.record);
    this.#effects = new EffectRunner(this.#effectPorts());
    this.#toolState = new ToolStateStore(keyValue);
    this.#turnBucket = turnLimit === undefined ? null : tokenBucket(turnLimit);
    this.#shell = new ActorShell(new ConversationCore(this.store, ports, clock.now()), {
      clock,
      transaction: (body) => database.transaction(body),
      isInTransaction: () => database.isInTransaction(),
      armWakeup: (milliseconds) => ports.armWakeup(milliseconds),
      send: (envelope) => ports.send(envelope),
      publish: (commit) => this.#publish(commit),
      start: (effects) => this.#effects.start(effects),
      abort: (keys) => this.#effects.abort(keys),
    });
  }

  /**
   * The state, loaded on first use. Throws `NOT_FOUND` before the conversation was created, `UNAVAILABLE` if a newer
   * release stored it.
   */
  get state(): ConversationState {
    const { state } = this.#shell;
    if (state === null)
      throw new DramatisError("NOT_FOUND", "This conversation does not exist. Create it first.");
    return state;
  }

  get exists(): boolean {
    return this.#shell.state !== null;
  }

  /** Reports whether turns are active. */
  get busy(): boolean {
    return (this.#shell.state?.active.size ?? 0) > 0;
  }

  /** In how many milliseconds `reconcile` must be called again; `null` if it need not be. */
  get dueIn(): number | null {
    return this.#shell.dueIn;
  }

  /** Resolves when the wake-up of the active turns is armed. */
  whenArmed(): Promise<void> {
    return this.#shell.whenArmed();
  }

  /** The facts that tools keep. Throws as `state` does. */
  get toolState(): ToolStateStore {
    void this.state;
    return this.#toolState;
  }

  /**
   * Creates the conversation, with a history from elsewhere. Announces it if lists contain it. Resolves when the wake-ups of
   * the announcement are armed.
   */
  create(record: ConversationIdentity, history?: readonly SessionEvent[]): Promise<void> {
    return this.#shell.commitBy((unit) => this.stageCreation(unit, record, history));
  }

  /** Creates the conversation as `create` does, in a unit of work. */
  stageCreation(
    unit: ConversationUnit,
    record: ConversationIdentity,
    history?: readonly SessionEvent[],
  ): void {
    unit.create(() => ({
      state: this.store.create(record, history),
      sent: record.listed === false ? [] : this.ports.announce(record),
    }));
  }

  /** Resumes what a crash interrupted. Call it once, when the actor wakes. */
  async wake(): Promise<void> {
    if (this.busy) await this.#shell.resume([{ type: "conversation.cmd.recover" }]);
  }

  /**
   * Commits outcomes that were kept, fails operations whose deadline has passed, then starts every effect that the state
   * calls for and that does not run.
   */
  reconcile(): void {
    if (!this.exists) return;
    this.#shell.retryUnsaved();
    this.#shell.tick([{ type: "conversation.cmd.expire" }]);
    this.#shell.startAll();
  }

  /**
   * Begins a unit of work, for the transaction of a mailbox handler. Stage messages by `stageMessage`, other signals by the
   * unit itself, and release the unit after the commit.
   */
  begin(): ConversationUnit {
    return this.#shell.begin();
  }

  /**
   * Accepts a user's message. The same key and body answer the same turn; another body is `IDEMPOTENCY_CONFLICT`.
   * Resolves when the turn is durable and its wake-up armed.
   */
  async accept(signal: UserMessage): Promise<StartedTurn> {
    const content = parseContent(signal.data.content);
    checkTurnSchemas(signal.data);
    // Before the key is looked up for good: nothing may come between that and the commit.
    if (hasMedia(content)) {
      await checkNewMedia(content, this.ports.media, () => this.#turnOfKey(signal) !== undefined);
    }
    let accepted: StartedTurn | undefined;
    const committed = this.#shell.commitBy((unit) => {
      accepted = this.#stageAccepted(unit, signal);
    });
    await committed;
    if (accepted === undefined) throw new Error("A committed message was accepted.");
    return accepted;
  }

  /**
   * Accepts a user's message in a unit of work, as `accept` does. Throws `UNSUPPORTED` for attachments: their check is
   * asynchronous.
   */
  stageMessage(unit: ConversationUnit, signal: UserMessage): StartedTurn {
    const content = parseContent(signal.data.content);
    checkTurnSchemas(signal.data);
    if (hasMedia(content)) {
      throw new DramatisError(
        "UNSUPPORTED",
        "An envelope cannot bring attachments. Send their addresses as text.",
      );
    }
    return this.#stageAccepted(unit, signal);
  }

  /**
   * Commits results of tools that the client ran, all or none. Throws `NOT_FOUND` for an unknown operation, `CONFLICT` for
   * one that takes no result, or not this one. Resolves when the results are durable and the wake-up of the turns that
   * continue is armed.
   */
  async submit(results: readonly ToolSubmission[]): Promise<SubmittedResult[]> {
    void this.state;
    this.#shell.tick([{ type: "conversation.cmd.expire" }]);
    const found = results.map((outcome) => ({
      ...operationAt(outcome.operationId, (n) => this.#turn(n)),
      outcome,
    }));
    const fresh = found.filter(({ operation, outcome }) => !isRepeated(operation, outcome));
    await this.#shell.commit(
      fresh.map(({ turn, operation: { item }, outcome }) => ({
        type: "conversation.tool.submitted",
        turn: turn.n,
        item,
        outcome,
      })),
    );
    return found.map(({ turn, outcome }) => ({ operationId: outcome.operationId, turnId: turnId(turn) }));
  }

  /**
   * Commits the result of an operation whose executor lost this actor; changes nothing if the operation does not wait for
   * this attempt any more. Throws `NOT_FOUND` for an unknown operation. Resolves when the result is durable.
   */
  async takeResult({ operationId, attempt, result }: TaskResult): Promise<void> {
    this.#shell.retryUnsaved();
    const { turn, operation } = operationAt(operationId, (n) => this.#turn(n));
    if (!takesByName(operation, result, turn.recoveries)) return;
    const { item } = operation;
    await this.#shell.commit([{ type: "conversation.tool.completed", turn: turn.n, item, attempt, result }]);
  }

  /** Stages a message whose content was checked, unless its key has started a turn. */
  #stageAccepted(unit: ConversationUnit, signal: UserMessage): StartedTurn {
    const turnOf = (n: number) => unit.state.active.get(n) ?? this.store.turn(n);
    const known = this.#turnOfKey(signal);
    if (known !== undefined) return startedTurn(checkRepeated(turnOf(known), signal), true);
    checkReplyTo(signal.data.replyToMessageId, turnOf);
    const begun = unit.state.turns - (unit.base?.turns ?? 0);
    this.#checkRate(begun + 1);
    unit.stage([signal]);
    const turn = unit.state.active.get(unit.state.turns);
    if (turn === undefined) throw new Error("An accepted message has started a turn.");
    return startedTurn(turn, false);
  }

  #turnOfKey({ id: key, caller }: UserMessage): number | undefined {
    return key === undefined ? undefined : this.store.turnOfKey(caller, key);
  }

  /** Throws `RATE_LIMITED` if the bucket has not as many turns. */
  #checkRate(turns: number): void {
    const now = this.ports.clock.now();
    let bucket = this.#turnBucket;
    for (let turn = 0; bucket !== null && turn < turns; turn++) {
      const taken = takeToken(bucket, 1, now);
      if (!taken.allowed) throw tooManyTurns(taken.retryAfter);
      ({ bucket } = taken);
    }
  }

  #turn(n: number): Turn | null {
    return this.state.active.get(n) ?? this.store.turn(n);
  }

  #publish({ before, state, transition, row }: ConversationCommit): void {
    const { record } = state;
    const begun = state.turns - before.turns;
    if (begun > 0 && this.#turnBucket !== null) {
      this.#turnBucket = takeToken(this.#turnBucket, begun, this.ports.clock.now()).bucket;
    }
    for (const turn of transition.touched.values()) {
      if (!before.active.has(turn.n)) this.#windows.begin(turn, before);
      for (const metrics of metricsOfClosedCalls(record, before.active.get(turn.n), turn))
        reportMetrics(this.ports.metrics, metrics);
      if (turn.status === "active") continue;
      this.#windows.end(turn);
      this.ends.note(turn);
    }
    this.deltas.publish(framesOf(row, 0, (n) => transition.touched.get(n)));
  }

  #effectPorts(): EffectPorts {
    const { clock } = this.ports;
    return {
      ...this.ports,
      record: () => this.state.record,
      history: (turn) => this.#windows.messagesFor(turn),
      preview: (signal) => this.#preview(signal),
      report: (...outcomes) => this.#shell.report(outcomes),
      onText: (turn, item, text) => this.deltas.append(turnId(turn), messageId(turn, item), text),
      onProgress: (turn, operationId, progress) => {
        const ids = { turnId: turnId(turn), operationId };
        this.ports.publish([ephemeralFrame("tool.progress", { progress }, ids, clock.now())]);
      },
    };
  }

  #preview(signal: EffectSignal): Turn | undefined {
    try {
      return this.#shell.preview([signal]).touched.get(signal.turn);
    } catch {
      // Reporting the signal fails likewise, and handles the failure.
      return undefined;
    }
  }
}

function tooManyTurns(retryAfter: number): DramatisError {
  const message = `Too many turns in a short time. Try again in ${Math.ceil(retryAfter / 1000)} s.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true, retryAfter });
}
