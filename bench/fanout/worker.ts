/**
 * Dramatis: an application with the graphs as workflows. `POST /run/GRAPH` runs a workflow and responds with its output.
 * `POST /cost/GRAPH` counts the storage operations of a run. `POST /durable-object/GRAPH` and `POST /agent/GRAPH` run the graph in a floor.
 */
import { DurableObject, exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { ulid } from "ulid";
import { z } from "zod";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../src/library/define/define-workflow.ts";
import type { CoordinatorApi } from "../../src/protocol/coordinator-api.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { countedRun } from "../../test/support/counted-run.ts";
import { runInAgent, runInObject } from "./floor.ts";
import type { RunCost } from "./protocol.ts";
import { CHAIN, type Graph, next, type RunInput } from "./workload.ts";

type Shape = Parameters<typeof defineWorkflow>[1];

const task = defineTask({
  id: "next",
  input: z.object({ value: z.number() }),
  effect: "pure",
  execute: ({ value }) => ({ value: next(value) }),
});

/** Each branch has a result, and the fan-in collects the results in order. */
const work = (ref: string, item: string) =>
  node(ref, { task, inputMapping: { value: item }, outputMapping: { "output.value": "result.value" } });

const each = (from: string, to: string, collection: string, itemVar: string) =>
  transition({ from, to, siblingGroup: to, foreach: { collection, itemVar } });

const joined = (from: string, to: string, siblingGroup: string, source: string, target: string) =>
  transition({
    ...{ from, to },
    synchronization: { siblingGroup, strategy: "all", merge: { source, target, strategy: "collect" } },
  });

function chainOf(length: number): Shape {
  const names = Array.from({ length }, (_, n) => `n${n}`);
  return {
    input: z.object({ input: z.number() }),
    context: z.object({ value: z.number() }),
    initialNode: "n0",
    nodes: names.map((name, n) =>
      node(name, {
        task,
        inputMapping: { value: n === 0 ? "input.input" : "state.value" },
        outputMapping: { "state.value": "result.value" },
      }),
    ),
    transitions: names.slice(1).map((to, n) => transition({ from: `n${n}`, to })),
    outputMapping: { output: "state.value" },
  };
}

const SHAPES: Readonly<Record<Graph, Shape>> = {
  single: chainOf(1),
  chain: chainOf(CHAIN),
  "fan-out": {
    input: z.object({ input: z.array(z.number()) }),
    context: z.object({ all: z.array(z.number()) }),
    initialNode: "start",
    nodes: [node("start"), work("work", "item"), node("merge")],
    transitions: [
      each("start", "work", "input.input", "item"),
      joined("work", "merge", "work", "_branch.output.value", "state.all"),
    ],
    outputMapping: { output: "state.all" },
  },
  nested: {
    input: z.object({ input: z.array(z.array(z.number())) }),
    context: z.object({ all: z.array(z.array(z.number())) }),
    initialNode: "start",
    nodes: [
      node("start"),
      node("row", { outputMapping: { "output.items": "items" } }),
      work("work", "item"),
      node("merge-row"),
      node("merge"),
    ],
    transitions: [
      each("start", "row", "input.input", "items"),
      each("row", "work", "output.items", "item"),
      joined("work", "merge-row", "work", "_branch.output.value", "output.values"),
      joined("merge-row", "merge", "row", "_branch.output.values", "state.all"),
    ],
    outputMapping: { output: "state.all" },
  },
};

const library = defineLibrary("bench", {
  tasks: [task],
  workflows: Object.entries(SHAPES).map(([id, shape]) => defineWorkflow(id, shape)),
});

const app = dramatis({ libraries: [library], limits: { requests: false, turns: false } });

export { FloorAgent, FloorObject, FloorTasks } from "./floor.ts";

export const { Conversation, Agent, Coordinator, Executor } = app;

declare global {
  namespace Cloudflare {
    interface GlobalProps {
      mainModule: typeof import("./worker.ts");
      durableNamespaces: "Agent" | "Conversation" | "Coordinator" | "Costs" | "FloorAgent" | "FloorObject";
    }
  }
}

const principal: Principal = { subject: "visitor", tenant: "bench", roles: ["admin"] };

/** Time limit of a run. */
const LIMIT_MS = 60_000;

async function run(graph: Graph, input: RunInput): Promise<unknown> {
  const id = `run_${ulid()}`;
  // SAFETY: the exported class is `Coordinator`, which implements this.
  const coordinator = (await getAgentByName(
    exports.Coordinator as never,
    `${principal.tenant}:${id}`,
  )) as unknown as CoordinatorApi;
  const workflow = { library: library.id, id: graph };
  unwrap(await coordinator.start(principal, { id, workflow, input: { input } }));
  const { status, output, error } = unwrap(await coordinator.finished(principal, LIMIT_MS));
  if (status !== "completed") throw new Error(`The run is ${status}: ${error?.message ?? ""}`);
  return output?.output;
}

/** Counts the storage operations of a run without its actor, as test/workers/run-cost.test.ts does. */
export class Costs extends DurableObject {
  async costOf(graph: Graph, input: RunInput): Promise<RunCost> {
    const cost = await countedRun(this.ctx.storage, library, graph, { input });
    const { statements, rowsWritten: rows, bytes } = cost;
    return { statements, rows, bytes };
  }
}

export default {
  async fetch(request: Request): Promise<Response> {
    const [, door, graph] = new URL(request.url).pathname.split("/");
    // SAFETY: only the runner of the benchmark calls this Worker.
    const [name, input] = [graph as Graph, await request.json<RunInput>()];
    if (door === "none") return Response.json(null);
    if (door === "run") return Response.json(await run(name, input));
    if (door === "durable-object") return Response.json(await runInObject(name, input));
    if (door === "agent") return Response.json(await runInAgent(name, input));
    return Response.json(await exports.Costs.getByName(crypto.randomUUID()).costOf(name, input));
  },
};
