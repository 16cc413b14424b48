/** A run of a workflow: connects the shell with the run's core, store and effects. Runs unchanged in a Durable Object and in Node. */
import type { AnsweredBy } from "../../protocol/approval.ts";
import type { CallAddress } from "../../protocol/call-address.ts";
import type { RetryRun } from "../../protocol/coordinator-api.ts";
import type { TaskResult } from "../../protocol/executor-api.ts";
import type {
  ChildRun,
  PartProgressBody,
  PartResult,
  PartStart,
  RunWaitsBody,
} from "../../protocol/run-call.ts";
import { defined } from "../../shared/defined.ts";
import { conflict, DramatisError, notFound } from "../../shared/errors.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import { ToolStateStore } from "../base/calls/tool-state-store.ts";
import { ActorShell } from "../base/runtime/shell.ts";
import { StoredClock } from "../base/runtime/stored-clock.ts";
import type { UnitOfWork } from "../base/runtime/unit-of-work.ts";
import type { RuntimeContext, StoredRun } from "./context.ts";
import { childRunOf, partResultOf } from "./core/child-run.ts";
import type { RunChange } from "./core/draft.ts";
import type { RunEffect } from "./core/effects.ts";
import { gateAnsweredBy } from "./core/gates.ts";
import { operationsBefore, tokenOf } from "./core/operations.ts";
import { newRun, plan } from "./core/plan.ts";
import { type RunRecord, unknownRun } from "./core/record.ts";
import { wasAsked } from "./core/run-time.ts";
import type { RunSignal } from "./core/signals.ts";
import { isOver, type NodeOutcome, type RunState } from "./core/state.ts";
import { workOf } from "./core/work.ts";
import { endedBy, RunEffectRunner } from "./effects/effect-runner.ts";
import { type RunCommit, RunCore } from "./run-core.ts";
import { RunDatabase } from "./store/run-database.ts";

/** The key of the number of admitted runs below this run. */
const ADMITTED = "run:admitted";

/** The key of the node of a gate with a rule. */
const gateKey = (token: number) => `gate:${token}`;

export type RunUnit = UnitOfWork<RunState, RunSignal, RunChange | null, RunCommit, RunEffect>;

export class RunRuntime implements StoredRun {
  readonly store: RunDatabase;
  private readonly context: RuntimeContext & { clock: StoredClock };
  readonly #shell: ActorShell<RunState, RunSignal, RunChange | null, RunCommit, RunEffect>;
  readonly #effects: RunEffectRunner;
  readonly #toolState: ToolStateStore;
  /** The newest note of a change of the status. */
  #noted: Promise<void> = Promise.resolve();

  /** `publish` takes each commit, after it. */
  constructor(given: RuntimeContext, publish: (commit: RunCommit) => void) {
    const { database, keyValue } = given;
    this.store = new RunDatabase(database, keyValue);
    const clock = new StoredClock(given.clock, given.keyValue, () => this.store.newestAt);
    const context = { ...given, clock };
    this.context = context;
    this.#toolState = new ToolStateStore(keyValue);
    this.#effects = new RunEffectRunner({
      ...context,
      runtime: this,
      report: (outcomes) => this.#shell.report(outcomes),
    });
    const core = new RunCore(this.store, context, clock.now(), (commit) => this.#note(commit));
    this.#shell = new ActorShell(core, { ...context, publish, effects: this.#effects });
  }

  /** The state, loaded on first use. Throws `NOT_FOUND` before the run was created. */
  get state(): RunState {
    const { state } = this.#shell;
    if (state === null) throw unknownRun();
    return state;
  }

  /** The facts that tools keep. Throws as `state` does. */
  get toolState(): ToolStateStore {
    void this.state;
    return this.#toolState;
  }

  get exists(): boolean {
    return this.#shell.state !== null;
  }

  /** The time of the run's end, in milliseconds since the epoch; `undefined` before. Throws as `state` does. */
  get endedAt(): number | undefined {
    // After the end, only a retry commits. It undoes the end.
    return isOver(this.state) ? this.store.newestAt : undefined;
  }

  /** Milliseconds until the next necessary call of `reconcile`; `null` if none is necessary. */
  get dueIn(): number | null {
    return this.#shell.dueIn;
  }

  /** Resolves when the wake-ups of the run are armed. */
  async whenArmed(): Promise<void> {
    await this.#shell.whenArmed();
    await this.#noted;
  }

  /** Creates the run and begins it. Throws `CONFLICT` if it exists. Resolves when its wake-ups are armed. */
  async start(record: RunRecord): Promise<void> {
    await this.#shell.commitBy((unit) => {
      this.context.database.transaction(() => this.#stageStart(unit, record));
    });
    await this.#noted;
  }

  /** Creates the run, with the given part, and begins it in the caller's transaction. Release the unit after it. */
  stageStart(record: RunRecord, part?: PartStart): RunUnit {
    const unit = this.begin();
    this.#stageStart(unit, record, part);
    return unit;
  }

  #stageStart(unit: RunUnit, record: RunRecord, part?: PartStart): void {
    unit.create(() => ({ state: this.store.create(newRun(record, part)), sent: [] }));
    this.#noteStatus();
    unit.stage([{ type: "run.begin", ...defined({ part }) }]);
  }

  /** Begins a unit of work, for the transaction of a mailbox handler. */
  begin(): RunUnit {
    return this.#shell.begin();
  }

  /** Resumes what a crash interrupted. Call it once, when the actor wakes. */
  async wake(): Promise<void> {
    if (this.dueIn === null) return;
    this.context.clock.recall();
    await this.#shell.resume([{ type: "run.recover" }]);
  }

  /** Commits pending outcomes, ends waits that are due, and starts every effect that the state calls for and that does not run. */
  reconcile(): void {
    if (!this.exists) return;
    this.#shell.retryUnsaved();
    this.#shell.tick([{ type: "run.expire" }]);
    this.#shell.startAll();
  }

  /** Cancels the run. Throws `CONFLICT` if the run has ended in another way. Repeated calls are no-ops. */
  async cancel(by: string, reason?: string): Promise<void> {
    const { state } = this;
    if (isOver(state)) {
      if (state.status === "cancelled") return;
      throw conflict(`The run is over: it is ${state.status}.`);
    }
    await this.#shell.commit([{ type: "run.cancel", by, ...(reason === undefined ? {} : { reason }) }]);
    await this.#noted;
  }

  /** Retries the failed run. Throws as `retryRun` does. */
  async retry(by: string, { seq, repeatOnce }: RetryRun): Promise<void> {
    await this.#shell.commit([{ type: "run.retry", by, ...defined({ seq, repeatOnce }) }]);
    await this.#noted;
  }

  /** Takes the result of a task with a lost caller. Throws `NOT_FOUND` for an operation of no token. */
  async taskResult({ operationId, attempt, ...end }: TaskResult): Promise<void> {
    this.#tokenOf(operationId);
    await this.#shell.commit(endedBy({ operationId, attempt, end }));
    await this.#noted;
  }

  #noteStatus(): void {
    const noted = this.context.listing.note();
    noted.catch((error: unknown) => console.error(error));
    this.#noted = noted;
  }

  /** Stores the nodes of new gates with a rule. The rule also holds after the end of its gate (RUNACCESS-4). */
  #note({ state: { record }, entries, changesStatus, changesGates }: RunCommit): void {
    if (changesStatus) this.#noteStatus();
    if (!changesGates) return;
    for (const { type, token, node } of entries) {
      if (type !== "gate.opened" || token === undefined || node === undefined) continue;
      const work = workOf(record, { node });
      if (work?.kind === "gate" && work.question.approval !== undefined)
        this.context.keyValue.put(gateKey(token), node);
    }
    this.context.approvals.note().catch((error: unknown) => console.error(error));
  }

  /** Returns who may answer a gate; `undefined` for an operation that is unknown, or has no rule. */
  answeredBy(operationId: string): AnsweredBy | undefined {
    const { record } = this.state;
    const token = tokenOf(record, operationId);
    const node = token === undefined ? undefined : this.context.keyValue.get<string>(gateKey(token));
    const work = node === undefined ? undefined : workOf(record, { node });
    return work?.kind === "gate" ? gateAnsweredBy(record, work.question) : undefined;
  }

  /**
   * Commits the answer of a person to a gate. Idempotent. Throws `NOT_FOUND` for an unknown operation, `CONFLICT` for a second, different
   * answer and for a closed gate, and `INVALID_INPUT` for an answer that does not fit.
   */
  async answer(operationId: string, answer: Json, by: string): Promise<void> {
    const { database, keyValue } = this.context;
    const { token, key, text, isRepeated } = this.#answerAt(operationId, answer);
    if (isRepeated) return this.whenArmed();
    await this.#shell.commitBy((unit) =>
      database.transaction(() => {
        unit.stage([{ type: "gate.answered", token, answer, by }]);
        keyValue.put(key, text);
      }),
    );
    await this.#noted;
  }

  /** Reports whether a gate has this answer. Throws as `answer`. Takes no answer, but commits an expiry that is due. */
  hasAnswer(operationId: string, answer: Json): boolean {
    const { token, isRepeated } = this.#answerAt(operationId, answer);
    if (isRepeated) return true;
    const signal = { type: "gate.answered", token, answer, by: "" } as const;
    plan(this.state, [signal], this.context.clock.now(), this.context.outboxRoom);
    return false;
  }

  /** Returns the token of a gate, and the key and the text of its answer. Throws `NOT_FOUND` and `CONFLICT`. */
  #answerAt(operationId: string, answer: Json) {
    const token = this.#tokenOf(operationId);
    this.#shell.tick([{ type: "run.expire" }]);
    const [key, text] = [answerKey(token, operationId), canonicalJson(answer)];
    const before = this.context.keyValue.get<string>(key);
    if (before === text) return { token, key, text, isRepeated: true };
    if (before !== undefined) throw conflict("This gate already has another answer.");
    const isOld = operationsBefore(operationId) !== (this.state.tokens.get(token)?.again?.operations ?? 0);
    if (isOver(this.state) || isOld) throw conflict("This gate no longer waits for an answer.");
    return { token, key, text, isRepeated: false };
  }

  /** Returns the signals of the end of a node's work. Throws `NOT_FOUND` for an operation of no token. */
  endSignals({ operationId, attempt }: CallAddress, outcome: NodeOutcome, tainted?: true): RunSignal[] {
    const token = this.#tokenOf(operationId);
    return [{ type: "node.ended", token, attempt, outcome, ...defined({ tainted }) }];
  }

  /** Returns the signals of a message about a wait. Throws as `endSignals` does. */
  waitSignals({ operationId, attempt, ...wait }: RunWaitsBody): RunSignal[] {
    return [{ type: "run.waits", token: this.#tokenOf(operationId), attempt, wait }];
  }

  /** Returns the signals of the end of a part. Throws as `endSignals` does. */
  partEnd({ operationId, attempt }: CallAddress, result: PartResult, tainted?: true): RunSignal[] {
    const token = this.#tokenOf(operationId);
    return [{ type: "part.ended", token, attempt, result, ...defined({ tainted }) }];
  }

  /** Returns the signals of the report of a part. Throws as `endSignals` does. */
  partProgress({ operationId, ...progress }: PartProgressBody): RunSignal[] {
    return [{ type: "part.progress", token: this.#tokenOf(operationId), ...progress }];
  }

  /** Commits the end of a node's work. Throws as `endSignals` does. */
  async end(address: CallAddress, outcome: NodeOutcome): Promise<void> {
    await this.#shell.commit(this.endSignals(address, outcome));
    await this.#noted;
  }

  /**
   * Returns the data for the run of an attempt. Throws `NOT_FOUND` if the attempt no longer waits for a run, and `TOO_LARGE` if the state
   * of a part has grown too long.
   */
  childRun({ operationId, attempt }: CallAddress): ChildRun {
    return childRunOf(this.state, this.#tokenOf(operationId), attempt);
  }

  /** Returns the result of the part that this run has for an operation of the parent run. Throws `NOT_FOUND`. */
  partResult(address: CallAddress): PartResult {
    return partResultOf(this.state, address);
  }

  /**
   * Counts the run `id` once before its start below this run. Throws `BUDGET_EXCEEDED` beyond `most` runs, unless the run is counted. Throws
   * as `state` does.
   */
  admitRun(id: string, most: number): void {
    void this.state;
    const { keyValue } = this.context;
    const own = `${ADMITTED}:${id}`;
    if (keyValue.get(own) !== undefined) return;
    const admitted = keyValue.get<number>(ADMITTED) ?? 0;
    if (admitted >= most)
      throw new DramatisError(
        "BUDGET_EXCEEDED",
        `A run may start at most ${most} sub-workflow runs, at all depths together. Fan out over fewer sub-workflows, or start several runs. The deployer may raise "limits.runs.total".`,
      );
    keyValue.put(ADMITTED, admitted + 1);
    keyValue.put(own, 1);
  }

  #tokenOf(operationId: string): number {
    const { state } = this;
    const token = tokenOf(state.record, operationId);
    if (token !== undefined && (token < state.made.tokens || wasAsked(state, token))) return token;
    throw notFound(`The run has no operation "${operationId}".`);
  }
}

/** Returns the key of the answer to a gate. */
function answerKey(token: number, operationId: string): string {
  const operations = operationsBefore(operationId);
  return `answer:${token}${operations > 0 ? `.${operations}` : ""}`;
}
