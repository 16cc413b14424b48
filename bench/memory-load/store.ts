/** A client of a memory store's HTTP server, for the runner of the case `memory-load`. */
import type { Client } from "../harness/client.ts";
import type { Found } from "./protocol.ts";
import type { Sample } from "./workload.ts";

/** Memories of a write: the maximum of one call. */
const BATCH = 100;
/** Writes of one sample. */
const WRITES = 10;

export class Store {
  readonly client: Client;
  readonly #agent: string;

  constructor(client: Client, agent: string) {
    this.client = client;
    this.#agent = agent;
  }

  close(): void {
    this.client.close();
  }

  /** Writes memories in batches, one after another. Returns the memories per second of each ten batches. */
  async write(all: readonly Sample[]): Promise<number[]> {
    const speeds: number[] = [];
    for (let from = 0; from < all.length; from += BATCH * WRITES) {
      const some = all.slice(from, from + BATCH * WRITES).map(({ input }) => input);
      const bodies = Array.from({ length: Math.ceil(some.length / BATCH) }, (_, n) =>
        JSON.stringify(some.slice(n * BATCH, (n + 1) * BATCH)),
      );
      const begin = performance.now();
      for (const body of bodies) await this.#post("write", body);
      speeds.push((some.length * 1_000) / (performance.now() - begin));
    }
    return speeds;
  }

  /** Asks a question. Throws if the search has no result or used no vectors. */
  async search({ question, input }: Sample): Promise<{ time: number; isFound: boolean }> {
    const begin = performance.now();
    const answer = await this.#post("search", question);
    const time = performance.now() - begin;
    // SAFETY: the response of our own servers.
    const { found, semantic = "all" } = JSON.parse(answer) as Found;
    if (found.length === 0 || semantic !== "all")
      throw new Error(`A search found ${found.length} memories; vectors were used for ${semantic}.`);
    return { time, isFound: found.includes(input.content) };
  }

  /** Asks questions, one after another. The first `warmUp` questions do not count. */
  async searches(questions: readonly Sample[], warmUp: number): Promise<{ times: number[]; hits: number[] }> {
    const answers: { time: number; isFound: boolean }[] = [];
    for (const sample of questions) answers.push(await this.search(sample));
    const counted = answers.slice(warmUp);
    return { times: counted.map(({ time }) => time), hits: counted.map(({ isFound }) => (isFound ? 1 : 0)) };
  }

  /** Measures requests that ask the actor only for its name, in milliseconds. */
  async requests(count: number): Promise<number[]> {
    const times: number[] = [];
    for (let n = 0; n < count; n += 1) {
      const begin = performance.now();
      await this.#post("identity", "");
      times.push(performance.now() - begin);
    }
    return times;
  }

  /** Returns the bytes of all indexes in the memory of the isolate. */
  async bytes(): Promise<number> {
    return Number(await this.#post("bytes", ""));
  }

  #post(operation: string, body: string): Promise<string> {
    return this.client.post(`/memory/${operation}/${this.#agent}`, body);
  }
}
