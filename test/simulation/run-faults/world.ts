/**
 * A run in a world that fails: its actor dies and its storage refuses. Only its alarm and incoming messages wake it.
 * The work that it starts elsewhere ends late, ends twice, or never began. People answer wrongly, twice, or too late.
 * The wall clock is set.
 */

import type { RunRecord } from "../../../src/agents/coordinator/core/record.ts";
import { isOver } from "../../../src/agents/coordinator/core/state.ts";
import { RunRuntime } from "../../../src/agents/coordinator/run-runtime.ts";
import { deliverResult } from "../../../src/agents/executor/deliver.ts";
import type { Library } from "../../../src/library/define/define.ts";
import { DeployedCode } from "../../../src/library/registry/deployed-code.ts";
import { NodeKeyValue } from "../../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../../src/ports/node/seeded-ids.ts";
import type { ActorDatabase } from "../../../src/ports/sql-database.ts";
import type { NewEnvelope } from "../../../src/protocol/envelope.ts";
import { asDone } from "../../../src/shared/errors.ts";
import { localExecutor } from "../../../src/testing/world/local-executor.ts";
import { quietRun } from "../../../src/testing/world/no-mail.ts";
import { type Crossings, crossExecutor, crossKeyValue, crossSql, Fault } from "../../support/crossings.ts";
import { MortalClock, WorldClock } from "../clocks.ts";

/** Number of wake-ups at the same time after which the run counts as busy without progress. */
const MAX_AT_ONCE = 30;
/** Milliseconds until an alarm repeats after its handler failed. */
const ALARM_RETRY_MS = 100;

/** Parts of the world that one transaction of the actor writes. */
interface Durable {
  readonly outbox: readonly NewEnvelope[];
  /** The wall time of the alarm, in milliseconds since the epoch; `null` if no alarm is set. */
  readonly alarm: number | null;
}

export class RunWorld {
  readonly clock = new WorldClock();
  readonly sent: NewEnvelope[] = [];
  readonly violations: string[] = [];
  lives = 0;
  /** The time of the newest crash, fault or change of the clock, in milliseconds since the world began. */
  disturbedAt = 0;
  readonly #database = new NodeSqlDatabase();
  readonly #keyValue: NodeKeyValue;
  readonly #executor;
  #lifeClock = new MortalClock(this.clock);
  #runtime: RunRuntime | null = null;
  #durable: Durable = { outbox: [], alarm: null };
  #stopAlarm = () => {};
  #rung = { at: -1, times: 0 };

  /** `deliver` takes each envelope that the run has sent, once it is committed. */
  constructor(
    library: Library,
    private readonly crossings: Crossings,
    private readonly deliver: (envelope: NewEnvelope) => void,
  ) {
    this.#keyValue = new NodeKeyValue(this.#database);
    this.#executor = localExecutor(
      new DeployedCode([library]),
      this.clock,
      undefined,
      ({ operationId, attempt }, result) =>
        deliverResult(
          this.clock,
          async () => ({
            handleTaskResult: (end) => asDone(() => this.call((runtime) => runtime.taskResult(end))),
          }),
          { operationId, attempt, ...result },
        ),
    );
  }

  /** The run, while its actor lives. */
  get runtime(): RunRuntime | null {
    if (this.crossings.crashed) this.#bury();
    return this.#runtime;
  }

  get database(): ActorDatabase {
    return this.#database;
  }

  /** Starts the run, and again until that is stored. */
  async start(record: Omit<RunRecord, "createdAt">): Promise<void> {
    for (let isStarted = false; !isStarted; )
      isStarted = await this.#attempt(async (runtime) => {
        if (!runtime.exists) await runtime.start({ ...record, createdAt: this.clock.now() });
      });
  }

  /** Wakes the actor if needed, and calls it. Throws the run's error, or `Fault` if the call failed. */
  async call<Result>(body: (runtime: RunRuntime) => Result | Promise<Result>): Promise<Result> {
    const runtime = this.runtime ?? (await this.#wake());
    try {
      const result = await body(runtime);
      if (this.runtime === runtime) return result;
    } catch (error) {
      if (!this.crossings.isCrash(error)) throw error;
    }
    this.#bury();
    throw new Fault("The actor died.");
  }

  /** Ends this life of the actor, at no crossing. */
  kill(): void {
    if (this.runtime === null) return;
    this.crossings.kill();
    this.#bury();
  }

  /** Sets the wall clock, forward or back. */
  setClock(milliseconds: number): void {
    this.clock.jump(milliseconds);
    this.disturbedAt = this.clock.elapsed;
    this.#setAlarm();
  }

  #bury(): void {
    if (this.#runtime === null) return;
    this.#runtime = null;
    this.#lifeClock.die();
    this.disturbedAt = this.clock.elapsed;
  }

  async #wake(): Promise<RunRuntime> {
    const runtime = this.#begin();
    try {
      await runtime.wake();
      if (this.runtime === runtime) return runtime;
    } catch (error) {
      // If an actor fails to start, it is reset.
      if (!this.crossings.isCrash(error) && !(error instanceof Fault)) this.violations.push(String(error));
    }
    this.kill();
    this.#bury();
    throw new Fault("The actor did not start.");
  }

  /** Reports whether a call succeeded. */
  async #attempt(body: (runtime: RunRuntime) => Promise<void>): Promise<boolean> {
    return this.call(body).then(
      () => true,
      () => false,
    );
  }

  #begin(): RunRuntime {
    this.lives += 1;
    this.#lifeClock.die();
    this.#lifeClock = new MortalClock(this.clock);
    const life = this.crossings.beginLife();
    const database: ActorDatabase = crossSql(
      {
        run: (statement, ...values) => this.#database.run(statement, ...values),
        all: (statement, ...values) => this.#database.all(statement, ...values),
        each: (statement, ...values) => this.#database.each(statement, ...values),
        transaction: (body) => this.#transaction(body),
        isInTransaction: () => this.#database.isInTransaction(),
      },
      life,
    );
    this.#runtime = new RunRuntime(
      {
        ...quietRun,
        database,
        keyValue: crossKeyValue(this.#keyValue, life),
        clock: this.#lifeClock,
        executor: crossExecutor(this.#executor, life),
        armWakeup: (milliseconds) =>
          life.cross("window.open", async () => this.#arm(this.clock.now() + milliseconds)),
        ids: seededIds(7 + this.lives, this.clock),
        send: (envelope) =>
          life.cross("outbox.put", async () => {
            this.#durable = { ...this.#durable, outbox: [...this.#durable.outbox, envelope] };
          }),
        withdraw: ({ to, type }) =>
          life.cross("outbox.drop", () => {
            const { outbox } = this.#durable;
            this.#durable = {
              ...this.#durable,
              outbox: outbox.filter((one) => one.type !== type || one.to.id !== to.id),
            };
          }),
        listing: { note: () => life.cross("status.note", async () => undefined) },
      },
      () => life.cross("publish", () => undefined),
    );
    return this.#runtime;
  }

  #transaction<Result>(body: () => Result): Result {
    const before = this.#durable;
    try {
      const result = this.#database.transaction(body);
      if (!this.#database.isInTransaction()) this.#flush();
      return result;
    } catch (error) {
      this.#durable = before;
      this.#setAlarm();
      throw error;
    }
  }

  /** Lets the mailbox deliver committed envelopes a moment later: a transaction in between may withdraw them. */
  #flush(): void {
    if (this.#durable.outbox.length === 0) return;
    this.clock.timer(1, () => {
      const { outbox } = this.#durable;
      this.#durable = { ...this.#durable, outbox: [] };
      for (const envelope of outbox) {
        this.sent.push(envelope);
        this.deliver(envelope);
      }
    });
  }

  #arm(at: number): void {
    const { alarm } = this.#durable;
    this.#durable = { ...this.#durable, alarm: alarm === null ? at : Math.min(alarm, at) };
    this.#setAlarm();
  }

  #setAlarm(): void {
    this.#stopAlarm();
    const { alarm } = this.#durable;
    if (alarm === null) return;
    this.#stopAlarm = this.clock.timer(Math.max(0, alarm - this.clock.now()), () => void this.#ring());
  }

  async #ring(): Promise<void> {
    const { elapsed } = this.clock;
    this.#rung = { at: elapsed, times: this.#rung.at === elapsed ? this.#rung.times + 1 : 0 };
    if (this.#rung.times === MAX_AT_ONCE) this.violations.push("It wakes again and again at the same time.");
    if (this.#rung.times >= MAX_AT_ONCE) return;
    this.#durable = { ...this.#durable, alarm: null };
    const isDone = await this.#attempt(async (runtime) => {
      runtime.reconcile();
      const due = runtime.dueIn;
      if (due !== null) this.#arm(this.clock.now() + due);
    });
    if (!isDone) this.#arm(this.clock.now() + ALARM_RETRY_MS);
  }

  /** Reports whether a living actor knows that the run has ended. */
  get isOver(): boolean {
    const { runtime } = this;
    if (runtime === null) return false;
    try {
      return isOver(runtime.state);
    } catch (error) {
      if (error instanceof Fault || this.crossings.isCrash(error)) return false;
      throw error;
    }
  }
}
