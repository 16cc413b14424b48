/** A run with a full outbox: it pauses, and loses no message. */
import { expect, test } from "vitest";
import { RunRuntime } from "../../src/agents/coordinator/run-runtime.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { BatchCaller, ToolInvocation } from "../../src/protocol/executor-api.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { quietRun } from "../../src/testing/world/no-mail.ts";

const DEFINITION = workflowSchema.parse({
  inputSchema: { type: "object" },
  initialNode: "start",
  nodes: [{ ref: "start" }, { ref: "pay", task: "pay" }, { ref: "ask", agent: "helper", mode: "delegate" }],
  transitions: [
    { from: "start", to: "pay", siblingGroup: "g", spawnCount: 3 },
    { from: "pay", to: "ask" },
  ],
});

test("RUNSIGNAL-5 a full outbox pauses a run: results of `once` tasks are kept, and the run continues when there is room", async () => {
  const database = new NodeSqlDatabase();
  const clock = new VirtualClock();
  const batches: { calls: ToolInvocation[]; caller: BatchCaller }[] = [];
  const sent: string[] = [];
  let isFull = true;
  const runtime = new RunRuntime(
    {
      ...quietRun,
      database,
      keyValue: new NodeKeyValue(database),
      clock,
      ids: seededIds(7, clock),
      executor: {
        run(calls, caller) {
          batches.push({ calls, caller });
          return new Promise(() => undefined);
        },
      },
      armWakeup: async () => undefined,
      send: ({ type }) => {
        if (isFull) throw new DramatisError("QUEUE_OVERFLOW", "The outbox is full.", { retriable: true });
        sent.push(type);
        return Promise.resolve();
      },
    },
    () => undefined,
  );
  const tasks = { pay: { library: "lib", id: "pay", effect: "once", timeoutMs: 60_000 } } as const;
  await runtime.start({
    ...{ id: "run_1", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" },
    workflow: { library: "lib", id: "w", version: 1, hash: "", definition: DEFINITION, tasks, workflows: {} },
    ...{ input: {}, startedBy: "ada", request: "", createdAt: clock.now() },
  });
  await Promise.resolve();
  const [{ calls, caller } = { calls: [], caller: undefined }] = batches;
  const ends = calls.map(({ operationId }) => ({
    operationId,
    result: { tool_call_id: "", success: true, result: "paid" },
  }));
  expect(await caller?.report(ends)).toEqual([]);
  const types = () => {
    const all: string[] = [];
    for (let row = runtime.store.journal.holding(1); row !== undefined; ) {
      all.push(...row.entries.map(({ type }) => type));
      row = runtime.store.journal.holding(all.length + 1);
    }
    return all;
  };
  expect(types().filter((type) => type.startsWith("task."))).toEqual([
    ...["task.dispatched", "task.dispatched", "task.dispatched"],
    ...["task.completed", "task.completed", "task.completed"],
  ]);
  expect(sent).toEqual([]);
  isFull = false;
  runtime.reconcile();
  expect(sent).toEqual(["agent.call", "agent.call", "agent.call"]);
  expect(runtime.state.status).toBe("running");
});
