/** A run of a workflow in Node that can be killed at any crossing of a port and wakes on the same database. */

import { expect } from "vitest";
import type { RunRecord } from "../../src/agents/coordinator/core/record.ts";
import { isOver, type RunState } from "../../src/agents/coordinator/core/state.ts";
import { RunRuntime } from "../../src/agents/coordinator/run-runtime.ts";
import { RunDatabase } from "../../src/agents/coordinator/store/run-database.ts";
import { deliverResult } from "../../src/agents/executor/deliver.ts";
import type { Library } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { TaskResultApi } from "../../src/protocol/executor-api.ts";
import type { RunEntry } from "../../src/protocol/workflow-run.ts";
import { asDone } from "../../src/shared/errors.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { quietRun } from "../../src/testing/world/no-mail.ts";
import { MortalClock } from "../simulation/clocks.ts";
import { Crossings, crossExecutor, crossKeyValue, crossSql } from "./crossings.ts";

export interface RunWorld {
  readonly state: RunState;
  readonly entries: readonly RunEntry[];
  readonly lives: number;
}

/** Maximum number of steps of a run. A run with more steps is stuck. */
const MAX_STEPS = 20_000;

/** Runs a workflow to its end, with the crashes of `crossings`. Retries a failed run while `isMended` is true. */
export async function runWorkflow(
  library: Library,
  record: Omit<RunRecord, "createdAt">,
  crossings: Crossings = new Crossings(),
  isMended: (state: RunState) => boolean = () => false,
): Promise<RunWorld> {
  const database = new NodeSqlDatabase();
  const keyValue = new NodeKeyValue(database);
  const clock = new VirtualClock();
  const executor = localExecutor(
    new DeployedCode([library]),
    clock,
    undefined,
    ({ operationId, attempt }, result) =>
      deliverResult(clock, async () => door, { operationId, attempt, ...result }),
  );
  let lifeClock = new MortalClock(clock);
  let lives = 0;
  let door: TaskResultApi;

  const begin = (): RunRuntime => {
    lives += 1;
    lifeClock.die();
    lifeClock = new MortalClock(clock);
    const life = crossings.beginLife();
    const runtime = new RunRuntime(
      {
        ...quietRun,
        database: crossSql(database, life),
        keyValue: crossKeyValue(keyValue, life),
        clock: lifeClock,
        executor: crossExecutor(executor, life),
        armWakeup: () => life.cross("window.open", async () => undefined),
        ids: seededIds(7, clock),
        listing: { note: () => life.cross("status.note", async () => undefined) },
      },
      (commit) => {
        checkStored(new RunDatabase(database, keyValue).load(), commit.state);
        life.cross("publish", () => undefined);
      },
    );
    door = {
      handleTaskResult: (result) => asDone(() => life.cross("task.result", () => runtime.taskResult(result))),
    };
    return runtime;
  };
  const rebirth = async (): Promise<RunRuntime> => {
    for (;;) {
      const runtime = begin();
      try {
        await runtime.wake();
        return runtime;
      } catch (error) {
        if (!crossings.isCrash(error)) throw error;
      }
    }
  };

  let runtime = begin();
  crossings.arm();
  for (let isStarted = false; !isStarted; ) {
    try {
      if (!runtime.exists) await runtime.start({ ...record, createdAt: clock.now() });
      isStarted = true;
    } catch (error) {
      if (!crossings.isCrash(error)) throw error;
      runtime = await rebirth();
    }
  }
  for (let step = 0; ; step++) {
    if (step > MAX_STEPS) throw new Error("The run is stuck.");
    if (crossings.crashed) runtime = await rebirth();
    await breathe();
    if (crossings.crashed) continue;
    if (isOver(runtime.state)) {
      if (runtime.state.stopped === undefined || !isMended(runtime.state)) break;
      try {
        await runtime.retry("ada", { seq: runtime.state.seq, repeatOnce: true });
      } catch (error) {
        if (!crossings.isCrash(error)) throw error;
      }
      continue;
    }
    if (step % 10 !== 9) continue;
    const due = clock.now() + (runtime.dueIn ?? 0);
    if (clock.nextDue !== undefined && clock.nextDue <= due) {
      await clock.runNext();
      continue;
    }
    await clock.advance(due - clock.now());
    try {
      if (!crossings.crashed) runtime.reconcile();
    } catch (error) {
      // The life has ended within the wake-up.
      if (!crossings.isCrash(error)) throw error;
    }
  }
  crossings.disarm();
  const { store, state } = runtime;
  const entries: RunEntry[] = [];
  for (;;) {
    const row = store.journal.holding(entries.length + 1);
    if (row === undefined) break;
    if (row.seq !== entries.length + 1) throw new Error("The journal has a gap.");
    entries.push(...row.entries);
  }
  if (entries.length !== state.seq) throw new Error("The journal ends too early.");
  return { state, entries, lives };
}

/** Fails the test unless the database has the state that was committed (RUNSTORE-3). */
function checkStored(loaded: RunState | null, committed: RunState): void {
  expect(loaded === null ? null : plain(loaded)).toEqual(plain(committed));
}

/** Sorts tokens and fan-outs by number. */
function plain(state: RunState): unknown {
  const sorted = (entries: ReadonlyMap<number, unknown>) => [...entries].toSorted(([a], [b]) => a - b);
  const { stopped } = state;
  return JSON.parse(
    JSON.stringify({
      ...state,
      tokens: sorted(state.tokens),
      fanOuts: sorted(state.fanOuts),
      ...(stopped && { stopped: { tokens: sorted(stopped.tokens), fanOuts: sorted(stopped.fanOuts) } }),
    }),
  );
}

/** Runs all promise reactions that are ready. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
