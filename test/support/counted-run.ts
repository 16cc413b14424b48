/** A run on counted storage of a Durable Object, for tests and measurements of its costs. */
import { isOver } from "../../src/agents/coordinator/core/state.ts";
import { RunRuntime } from "../../src/agents/coordinator/run-runtime.ts";
import type { Library } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { pinWorkflow } from "../../src/library/registry/pin.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { quietRun } from "../../src/testing/world/no-mail.ts";
import { type Cost, CostCounter } from "./counting.ts";
import { countingStorage } from "./counting-storage.ts";

export interface CountedRun extends Cost {
  /** The largest size of all rows after a commit, in bytes. The end of a fan-out deletes the rows of its branches. */
  bytes: number;
  output: JsonObject | undefined;
}

/** Runs a workflow of a library to its end in the storage of a fresh object. Returns its cost beyond its creation. */
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
    // All items run in one run, because envelopes to other runs are not delivered.
    width: 10_000,
  });
  await promise;
  return { ...counter.cost, bytes, output: runtime.state.output };
}
