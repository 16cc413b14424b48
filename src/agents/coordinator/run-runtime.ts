/**
 * A run of a workflow: connects the shell with the run's core, store and effects. Runs unchanged in a Durable Object and in Node.
 */
import type { KeyValue } from "../../ports/key-value.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { NewEnvelope } from "../../protocol/envelope.ts";
import type { TaskExecutor, TaskResult } from "../../protocol/executor-api.ts";
import { DramatisError } from "../../shared/errors.ts";
import { ToolStateStore } from "../base/calls/tool-state-store.ts";
import type { WakeupPorts } from "../base/runtime/armed-wakeup.ts";
import { ActorShell } from "../base/runtime/shell.ts";
import { StoredClock } from "../base/runtime/stored-clock.ts";
import { newRun } from "./core/begin.ts";
import type { RunChange } from "./core/draft.ts";
import type { RunEffect } from "./core/effects.ts";
import type { RunRecord } from "./core/record.ts";
import type { RunSignal } from "./core/signals.ts";
import { isOver, type RunState } from "./core/state.ts";
import { endedBy, RunEffectRunner, tokenOf } from "./effects/effect-runner.ts";
import { type RunCommit, RunCore } from "./run-core.ts";
import { RunDatabase } from "./store/run-database.ts";

export interface RunPorts extends WakeupPorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  executor: TaskExecutor;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  /**
   * Called in the transaction that creates the run or changes its status. Throws if the change cannot be noted. Resolves when its wake-up
   * is armed.
   */
  statusChanged(): Promise<void>;
  /** Gets each commit, after it. */
  publish(commit: RunCommit): void;
}

export class RunRuntime {
  readonly store: RunDatabase;
  private readonly ports: RunPorts & { clock: StoredClock };
  readonly #shell: ActorShell<RunState, RunSignal, RunChange | null, RunCommit, RunEffect>;
  readonly #effects: RunEffectRunner;
  readonly #toolState: ToolStateStore;
  /** The newest note of a change of the status. */
  #noted: Promise<void> = Promise.resolve();

  constructor(given: RunPorts) {
    const { database, keyValue } = given;
    this.store = new RunDatabase(database, keyValue);
    const clock = new StoredClock(given.clock, () => this.store.newestAt);
    const ports = { ...given, clock };
    this.ports = ports;
    this.#toolState = new ToolStateStore(keyValue);
    this.#effects = new RunEffectRunner({
      clock,
      executor: ports.executor,
      record: () => this.state.record,
      report: (outcomes) => this.#shell.report(outcomes),
    });
    const core = new RunCore(this.store, clock.now(), () => this.#noteStatus());
    this.#shell = new ActorShell(core, {
      clock,
      transaction: (body) => database.transaction(body),
      isInTransaction: () => database.isInTransaction(),
      armWakeup: (milliseconds) => ports.armWakeup(milliseconds),
      send: (envelope) => ports.send(envelope),
      withdraw: () => undefined,
      publish: (commit) => ports.publish(commit),
      start: (effects) => this.#effects.start(effects),
      abort: (keys) => this.#effects.abort(keys),
    });
  }

  /** The state, loaded on first use. Throws `NOT_FOUND` before the run was created. */
  get state(): RunState {
    const { state } = this.#shell;
    if (state === null) throw new DramatisError("NOT_FOUND", "This run does not exist.");
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
    // Nothing is committed after the end.
    return isOver(this.state) ? this.store.newestAt : undefined;
  }

  /** In how many milliseconds `reconcile` must be called again; `null` if it need not be. */
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
      this.ports.database.transaction(() => {
        unit.create(() => ({ state: this.store.create(newRun(record)), sent: [] }));
        this.#noteStatus();
        unit.stage([{ type: "run.begin" }]);
      });
    });
    await this.#noted;
  }

  /** Resumes what a crash interrupted. Call it once, when the actor wakes. */
  async wake(): Promise<void> {
    if (this.dueIn !== null) await this.#shell.resume([{ type: "run.recover" }]);
  }

  /** Commits outcomes that were kept, ends what is due, and starts every effect that the state calls for and that does not run. */
  reconcile(): void {
    if (!this.exists) return;
    this.#shell.retryUnsaved();
    this.#shell.tick([{ type: "run.expire" }]);
    this.#shell.startAll();
  }

  /** Cancels the run. Throws `CONFLICT` for one that ended otherwise; repeating it changes nothing. */
  async cancel(by: string, reason?: string): Promise<void> {
    const { state } = this;
    if (isOver(state)) {
      if (state.status === "cancelled") return;
      throw new DramatisError("CONFLICT", `The run is over: it is ${state.status}.`);
    }
    await this.#shell.commit([{ type: "run.cancel", by, ...(reason === undefined ? {} : { reason }) }]);
    await this.#noted;
  }

  /** Takes the result of a task whose caller is lost. Throws `NOT_FOUND` for an operation of no token. */
  async taskResult({ operationId, attempt, ...end }: TaskResult): Promise<void> {
    const { record, made } = this.state;
    const token = tokenOf(record, operationId);
    if (token === undefined || token >= made.tokens)
      throw new DramatisError("NOT_FOUND", `The run has no operation "${operationId}".`);
    await this.#shell.commit(endedBy({ operationId, attempt, end }));
    await this.#noted;
  }

  #noteStatus(): void {
    const noted = this.ports.statusChanged();
    noted.catch((error: unknown) => console.error(error));
    this.#noted = noted;
  }
}
