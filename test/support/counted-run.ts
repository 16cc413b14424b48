/** A run on counted storage of a Durable Object, for tests and measurements of what it costs. */
import { isOver } from "../../src/agents/coordinator/core/state.ts";
import { RunRuntime } from "../../src/agents/coordinator/run-runtime.ts";
import type { Library } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { pinWorkflow } from "../../src/library/registry/pin.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { type Cost, CostCounter } from "./counting.ts";
import { countingStorage } from "./counting-storage.ts";
import { localExecutor } from "./local-executor.ts";
import { quietRun } from "./no-mail.ts";

export interface CountedRun extends Cost {
  /** Bytes of all rows when they were most, as the database has them after a commit: the end of a fan-out deletes those of its branches. */
  bytes: number;
  output: JsonObject | undefined;
}

/** Runs a workflow of a library to its end in the storage of an object nobody used before. Returns what it cost beyond its creation. */
export async function countedRun(
  storage: DurableObjectStorage,
  library: Library,
  id: string,
  input: JsonObject,
): Promise<CountedRun> {
  const code = new DeployedCode([library]);
  const workflow = await pinWorkflow(
    new Registry(code),
    { library: library.id, id },
    { defaultProfile: { provider: "offline", modelId: "offline" } },
  );
  const counter = new CostCounter();
  const counted = countingStorage(storage, counter);
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const runtime = new RunRuntime(
    {
      ...quietRun,
      database: new DurableSqlDatabase(counted),
      keyValue: new DurableKeyValue(counted),
      clock: systemClock,
      ids: systemIds,
      executor: localExecutor(code, systemClock),
      armWakeup: async () => undefined,
    },
    ({ state }) => {
      bytes = Math.max(bytes, storage.sql.databaseSize);
      if (isOver(state)) resolve();
    },
  );
  await runtime.start({
    ...{ id: "run_cost", tenant: "test", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" },
    ...{ workflow, input, startedBy: "ada", request: "", createdAt: systemClock.now() },
    // All of it in one run: nobody delivers the envelopes to others.
    width: 10_000,
  });
  await promise;
  return { ...counter.cost, bytes, output: runtime.state.output };
}
