/**
 * The floors: the least that a durable run needs on the platform. A bare `DurableObject` and a bare `Agent` of the SDK store one row before
 * the first task and one row after each step. The tasks run in a stateless entrypoint over RPC, so each call waits until the rows before it
 * are on disk. There is no graph, no journal, no retry and no recovery.
 */
import { DurableObject, exports, WorkerEntrypoint } from "cloudflare:workers";
import { Agent, getAgentByName } from "agents";
import { CHAIN, type Graph, next, type RunInput } from "./workload.ts";

/** Runs the tasks of a step. */
export class FloorTasks extends WorkerEntrypoint {
  async run(values: number[]): Promise<number[]> {
    return values.map(next);
  }
}

/** Runs a graph: a chain takes a step for each task, and a fan-out takes one step for all tasks. */
async function runSteps(storage: DurableObjectStorage, graph: Graph, input: RunInput): Promise<RunInput> {
  const { sql } = storage;
  const store = (value: RunInput) => sql.exec("INSERT INTO steps (value) VALUES (?)", JSON.stringify(value));
  sql.exec("CREATE TABLE IF NOT EXISTS steps (n INTEGER PRIMARY KEY, value TEXT)");
  store(input);
  let values = [input].flat(2);
  for (let left = graph === "chain" ? CHAIN : 1; left > 0; left -= 1) {
    values = await exports.FloorTasks.run(values);
    store(values);
  }
  return shapedAs(input, values);
}

/** Returns the values in the shape of an input. */
function shapedAs(input: RunInput, values: number[]): RunInput {
  if (typeof input === "number") return values[0] ?? Number.NaN;
  const left = [...values];
  return input.some(Array.isArray) ? input.map((row) => left.splice(0, [row].flat().length)) : left;
}

export class FloorObject extends DurableObject {
  async run(graph: Graph, input: RunInput): Promise<RunInput> {
    return runSteps(this.ctx.storage, graph, input);
  }
}

export class FloorAgent extends Agent<Cloudflare.Env> {
  async run(graph: Graph, input: RunInput): Promise<RunInput> {
    return runSteps(this.ctx.storage, graph, input);
  }
}

/** Runs a graph in a new object. */
export function runInObject(graph: Graph, input: RunInput): Promise<RunInput> {
  return exports.FloorObject.getByName(crypto.randomUUID()).run(graph, input);
}

/** Runs a graph in a new agent. */
export async function runInAgent(graph: Graph, input: RunInput): Promise<RunInput> {
  const agent = await getAgentByName(exports.FloorAgent, crypto.randomUUID());
  return agent.run(graph, input);
}
