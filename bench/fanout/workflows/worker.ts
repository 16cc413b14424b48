/** Cloudflare Workflows: graphs as its guide shows, each task a durable step. `POST /run/GRAPH` runs a graph, and responds with its output. */
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { CHAIN, type Graph, next, type RunInput } from "../workload.ts";

interface Params {
  graph: Graph;
  input: RunInput;
}

/** Milliseconds between two polls for the end of a run. The API has no call that waits for it. */
const POLL_MS = 1;

export class Runs extends WorkflowEntrypoint<unknown, Params> {
  override async run({ payload }: WorkflowEvent<Params>, step: WorkflowStep): Promise<RunInput> {
    const { graph, input } = payload;
    if (typeof input === "number") {
      let value = input;
      for (let n = 0; n < (graph === "chain" ? CHAIN : 1); n += 1)
        value = await step.do(`n${n}`, async () => next(value));
      return value;
    }
    const merged = await Promise.all(
      input.map((item, n) =>
        typeof item === "number" ? step.do(`work ${n}`, async () => next(item)) : row(step, n, item),
      ),
    );
    // SAFETY: all items are numbers, or all are lists of numbers.
    return step.do("merge", async () => merged as RunInput);
  }
}

async function row(step: WorkflowStep, n: number, items: readonly number[]): Promise<number[]> {
  const merged = await Promise.all(
    items.map((item, cell) => step.do(`work ${n} ${cell}`, async () => next(item))),
  );
  return step.do(`merge ${n}`, async () => merged);
}

export default {
  async fetch(request: Request, { RUNS }: { RUNS: Workflow<Params> }): Promise<Response> {
    const [, door, graph] = new URL(request.url).pathname.split("/");
    const input = await request.json<RunInput>();
    if (door === "none") return Response.json(null);
    // SAFETY: only the runner of the benchmark calls this Worker.
    const instance = await RUNS.create({ params: { graph: graph as Graph, input } });
    for (;;) {
      const { status, output, error } = await instance.status();
      if (status === "complete") return Response.json(output);
      if (status === "errored" || status === "terminated")
        return new Response(JSON.stringify(error), { status: 500 });
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  },
};
