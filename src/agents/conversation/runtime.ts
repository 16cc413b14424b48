/**
 * The shell of a conversation: accepts signals, commits the decisions of the core, publishes the commit, and starts the
 * effects that the new state calls for. Runs unchanged in a Durable Object and in Node.
 *
 * The way of a message: `door/` checks it, `core/` plans and reduces it (pure), `store/` commits it, `effects/` calls
 * models and tools, whose outcomes return here as signals. Beside it, `reads/` answers queries, and `mirror/` publishes to
 * the agent, the directory and the metrics sink.
 *
 * RUN-1  Commit before publishing: frames are published, and effects start, only after the commit returned.
 * RUN-2  Memory is replaced only by what was committed; a failed commit changes nothing.
 * RUN-3  A commit starts the effects of the turns it touched, and every heartbeat those of all turns, so one that was
 *        lost starts again.
 * RUN-4  The outcome of an effect whose commit failed is kept and committed later; the effect does not run again. An
 *        outcome that can never be planned or committed fails its turn.
 * RUN-5  Limit turns whoever starts them and through whatever door. Count only turns that began: neither repeated nor
 *        refused messages.
 */

import { type MetricsSink, reportMetrics } from "../../adapters/resilience/telemetry.ts";
import type { SessionEvent } from "../../memory/session/types.ts";
import type { Gate } from "../../policy/gate.ts";
import type { Ids } from "../../ports/ids.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { StartedTurn, SubmittedResult } from "../../protocol/conversation-api.ts";
import type { TaskExecutor, TaskResult } from "../../protocol/executor-api.ts";
import type { Frame } from "../../protocol/frames.ts";
import type { ToolSubmission } from "../../protocol/requests.ts";
import { parseContent } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorData, toErrorData } from "../../shared/errors.ts";
import { type RateLimit, type TokenBucket, takeToken, tokenBucket } from "../../shared/token-bucket.ts";
import { ephemeralFrame, framesOf } from "./core/frames.ts";
import { messageId, stemOf, turnId } from "./core/ids.ts";
import { plan } from "./core/planning/plan.ts";
import { isRepeated } from "./core/planning/results.ts";
import { checkTurnSchemas } from "./core/planning/schema-check.ts";
import { reduce } from "./core/reducer.ts";
import type { Signal, UserMessage } from "./core/signals.ts";
import type { ConversationIdentity, ConversationState, Turn } from "./core/state.ts";
import { beginTransition, type Transition } from "./core/transition.ts";
import { checkRepeated, checkReplyTo, operationAt, startedTurn } from "./door/acceptance.ts";
import { DeltaBuffer } from "./effects/delta-buffer.ts";
import { type EffectPorts, EffectRunner, type Outcomes } from "./effects/effect-runner.ts";
import { dueIn, type Effect, effectsOf, effectsOfTurn, endedEffects } from "./effects/effects.ts";
import { checkNewMedia, hasMedia } from "./effects/media.ts";
import type { ModelCallPorts } from "./effects/model-call.ts";
import { SessionWindow } from "./effects/session-window.ts";
import { TurnWakeup, type TurnWakeupPorts } from "./effects/turn-wakeup.ts";
import { metricsOfClosedCalls } from "./mirror/call-metrics.ts";
import { type Committed, ConversationDatabase } from "./store/conversation-database.ts";
import { ToolStateStore } from "./store/tool-state.ts";

export interface ConversationPorts extends ModelCallPorts, TurnWakeupPorts {
  database: SqlDatabase;
  keyValue: KeyValue;
  ids: Ids;
  executor: TaskExecutor;
  gate: Gate;
  /** Time limit of a tool that a client runs, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
  /** Rate of accepted turns; absent = no limit. The count is in memory and starts anew when the actor wakes. */
  turnLimit?: RateLimit;
  /** Receives the metrics of every model call that is over. */
  metrics?: MetricsSink;
  /** Publishes frames to all subscribers, in order. */
  publish: (frames: Frame[]) => void;
}

export class ConversationRuntime {
  readonly store: ConversationDatabase;
  readonly deltas: DeltaBuffer;
  readonly #effects: EffectRunner;
  readonly #window: SessionWindow;
  readonly #toolState: ToolStateStore;
  readonly #wakeup: TurnWakeup;
  /** Outcomes that could not be committed yet, grouped as they were reported. */
  readonly #unsaved: Outcomes[] = [];
  #state: ConversationState | null = null;
  #turnBucket: TokenBucket | null;

  constructor(private readonly ports: ConversationPorts) {
    this.store = new ConversationDatabase(ports.database, ports.keyValue);
    this.#window = new SessionWindow(this.store.events);
    this.#effects = new EffectRunner(this.#effectPorts());
    this.#toolState = new ToolStateStore(ports.keyValue);
    this.#wakeup = new TurnWakeup(ports, () => this.dueIn);
    this.deltas = new DeltaBuffer(ports);
    this.#turnBucket = ports.turnLimit === undefined ? null : tokenBucket(ports.turnLimit);
  }

  /**
   * The state, loaded on first use. Throws `NOT_FOUND` before the conversation was created, `UNAVAILABLE` if a newer
   * release stored it.
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

  /** Reports whether turns are active. */
  get busy(): boolean {
    return this.exists && this.state.active.size > 0;
  }

  /** In how many milliseconds `reconcile` must be called again; `null` if it need not be. */
  get dueIn(): number | null {
    return this.exists ? dueIn(this.state, this.ports.clock.now()) : null;
  }

  /** The facts that tools keep. Throws as `state` does. */
  get toolState(): ToolStateStore {
    void this.state;
    return this.#toolState;
  }

  /** Creates the conversation, with a history from elsewhere; calls `beside` in the same transaction. */
  create(record: ConversationIdentity, beside?: () => void, history?: readonly SessionEvent[]): void {
    this.#state = this.store.create(record, beside, history);
  }

  /** Resumes what a crash interrupted. Call it once, when the actor wakes. */
  async wake(): Promise<void> {
    if (!this.busy) return;
    this.#apply([{ type: "conversation.cmd.recover" }]);
    await this.#wakeup.whenArmed();
  }

  /**
   * Commits outcomes that could not be committed before, fails operations whose deadline has passed, then starts every effect that the state calls for and that does not run.
   */
  reconcile(): void {
    if (!this.exists) return;
    // One at a time: while another outcome of a turn waits, that turn's effects must not start again.
    for (let left = this.#unsaved.length; left > 0; left--) {
      const outcomes = this.#unsaved.shift();
      if (outcomes !== undefined) this.#report(outcomes);
    }
    this.#expire();
    this.#start(effectsOf(this.state));
  }

  /**
   * Accepts a user's message. The same key and body answer the same turn; another body is `IDEMPOTENCY_CONFLICT`.
   * Resolves when the turn is durable and its wake-up armed.
   */
  async accept(signal: UserMessage): Promise<StartedTurn> {
    const { id: key, caller, data } = signal;
    const content = parseContent(data.content);
    checkTurnSchemas(data);
    const turnOfKey = () => (key === undefined ? undefined : this.store.turnOfKey(caller.userId, key));
    // Before the key is looked up for good: nothing may come between that and the commit.
    if (hasMedia(content)) await checkNewMedia(content, this.ports.media, () => turnOfKey() !== undefined);
    const known = turnOfKey();
    const turn = known === undefined ? this.#startTurn(signal) : checkRepeated(this.#turn(known), signal);
    await this.#wakeup.whenArmed();
    return startedTurn(turn, known !== undefined);
  }

  /**
   * Commits results of tools that the client ran, all or none. Throws `NOT_FOUND` for an unknown operation, `CONFLICT` for
   * one that takes no result, or not this one. Resolves when the results are durable and the wake-up of the turns that
   * continue is armed.
   */
  async submit(results: readonly ToolSubmission[]): Promise<SubmittedResult[]> {
    this.#expire();
    const found = results.map((outcome) => ({
      ...operationAt(outcome.operationId, (n) => this.#turn(n)),
      outcome,
    }));
    const fresh = found.filter(({ operation, outcome }) => !isRepeated(operation, outcome));
    this.#apply(
      fresh.map(({ turn, operation: { item }, outcome }) => ({
        type: "conversation.tool.submitted",
        turn: turn.n,
        item,
        outcome,
      })),
    );
    await this.#wakeup.whenArmed();
    return found.map(({ turn, outcome }) => ({ operationId: outcome.operationId, turnId: turnId(turn) }));
  }

  /**
   * Commits the result of an operation whose executor lost this actor; changes nothing if the operation does not wait for
   * this attempt any more. Throws `NOT_FOUND` for an unknown operation. Resolves when the result is durable.
   */
  async takeResult({ operationId, attempt, result }: TaskResult): Promise<void> {
    const { turn, operation } = operationAt(operationId, (n) => this.#turn(n));
    // A pure call may have run before its reply was committed, and the reply that took its place may call something else.
    if (operation.effect === "pure") return;
    const { item } = operation;
    this.#apply([{ type: "conversation.tool.completed", turn: turn.n, item, attempt, result }]);
    await this.#wakeup.whenArmed();
  }

  #startTurn(signal: UserMessage): Turn {
    const { id: key, caller, data } = signal;
    checkReplyTo(data.replyToMessageId, (n) => this.#turn(n));
    const bucket = this.#bucketAfterTurn();
    this.#apply([signal], (n) => {
      if (key !== undefined) this.store.rememberKey(caller.userId, key, n);
    });
    this.#turnBucket = bucket;
    const turn = this.state.active.get(this.state.turns);
    if (turn === undefined) throw new Error("An accepted message has started a turn.");
    return turn;
  }

  /** Fails operations whose deadline has passed. If the commit fails, the next heartbeat tries again. */
  #expire(): void {
    try {
      this.#apply([{ type: "conversation.cmd.expire" }]);
    } catch (error) {
      console.error(error);
    }
  }

  /** Returns the bucket after one more turn. Throws `RATE_LIMITED` where the bucket is empty. */
  #bucketAfterTurn(): TokenBucket | null {
    if (this.#turnBucket === null) return null;
    const taken = takeToken(this.#turnBucket, 1, this.ports.clock.now());
    if (taken.allowed) return taken.bucket;
    const { retryAfter } = taken;
    const message = `Too many turns in a short time. Try again in ${Math.ceil(retryAfter / 1000)} s.`;
    throw new DramatisError("RATE_LIMITED", message, { retriable: true, retryAfter });
  }

  #turn(n: number): Turn | null {
    return this.state.active.get(n) ?? this.store.turn(n);
  }

  /**
   * Plans and commits signals as one transition, publishes it and starts its effects. `beside` runs in the transaction,
   * with the number of the newest turn. A commit after which the actor is due earlier arms the wake-up (the first turn
   * becomes active, or a client lets one continue), and so does every later commit until the wake-up is armed.
   */
  #apply(signals: readonly Signal[], beside: (turn: number) => void = () => undefined): void {
    const now = this.ports.clock.now();
    const before = this.state;
    const transition = this.#transition(signals, now, stemOf(this.ports.ids.ulid()));
    if (transition.entries.length === 0) return;
    const { state, row } = this.#commit(transition, now, () => {
      beside(transition.state.turns);
      const due = dueIn(transition.state, now);
      if (due === null) return;
      const isEarlier = due < (dueIn(before, now) ?? Number.POSITIVE_INFINITY);
      if (isEarlier || !this.#wakeup.isArmed) void this.#wakeup.arm(due);
    });
    this.#state = state;
    this.deltas.publish(framesOf(row, 0, (n) => transition.touched.get(n)));
    for (const turn of transition.touched.values()) {
      for (const metrics of metricsOfClosedCalls(state.record, before.active.get(turn.n), turn))
        reportMetrics(this.ports.metrics, metrics);
      if (turn.status !== "active") this.#window.end(turn, state.record.chain);
      this.#effects.abort(endedEffects(before.active.get(turn.n), turn));
      this.#start(effectsOfTurn(turn));
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

  /** Plans signals. Planning is pure, so a defect would repeat: it is final, unlike a failure of the store. */
  #transition(signals: readonly Signal[], now: number, stem: string): Transition {
    const { gate, clientToolTimeoutMs } = this.ports;
    const input = { now, stem, gate, ...defined({ clientToolTimeoutMs }) };
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

  /** Commits outcomes. If that fails for now, the next heartbeat tries again; if it fails for good, their turn fails. */
  #report(outcomes: Outcomes): void {
    try {
      this.#apply(outcomes);
    } catch (error) {
      console.error(error);
      if (isFinal(error)) this.#abandon(outcomes, toErrorData(error));
      else this.#unsaved.push(outcomes);
    }
  }

  #abandon(outcomes: Outcomes, error: ErrorData): void {
    const [first] = outcomes;
    const facts = "facts" in first ? { facts: first.facts } : {};
    try {
      this.#apply([{ type: "conversation.cmd.abandon", turn: first.turn, error, ...facts }]);
    } catch (second) {
      console.error(second);
      this.#unsaved.push(outcomes);
    }
  }

  #start(effects: readonly Effect[]): void {
    const unsaved = new Set(this.#unsaved.flat().map(({ turn }) => turn));
    this.#effects.start(effects.filter(({ turn }) => !unsaved.has(turn.n)));
  }

  #effectPorts(): EffectPorts {
    const { clock } = this.ports;
    return {
      ...this.ports,
      record: () => this.state.record,
      history: (turn) => this.#window.messagesFor(turn, this.state.record.chain),
      preview: (signal) => {
        try {
          return this.#transition([signal], clock.now(), "").touched.get(signal.turn);
        } catch {
          // Reporting the signal fails likewise, and handles the failure.
          return undefined;
        }
      },
      report: (...outcomes) => this.#report(outcomes),
      onText: (turn, item, text) => this.deltas.append(turnId(turn), messageId(turn, item), text),
      onProgress: (turn, operationId, progress) => {
        const ids = { turnId: turnId(turn), operationId };
        this.ports.publish([ephemeralFrame("tool.progress", { progress }, ids, clock.now())]);
      },
    };
  }
}

/** Reports whether a commit can never succeed: our own code refuses the outcome, or it cannot be written as text. */
function isFinal(error: unknown): boolean {
  if (error instanceof DramatisError) return !error.retriable;
  return error instanceof RangeError || error instanceof TypeError;
}
