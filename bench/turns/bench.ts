/**
 * Drives the systems over HTTP: prepares actors, measures batches of turns from outside, and counts storage operations.
 *
 * BENCH-1  Every answer is checked: the model received the history, and the tools ran. An incomplete turn fails the
 *          run.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "../harness/client.ts";
import { type Counts, METERED_PREFIX, type SystemName } from "./protocol.ts";
import { GIVEN, type Shape } from "./shapes.ts";
import { evidence, TOOL_ROUNDS, TOOLS_TEXT } from "./workload.ts";

/** After this time without a change of the counts, an actor is idle. */
const REST_MS = 400;

export class Bench {
  #actors = 0;

  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Prepares a system. Call it once, before the first batch. */
  async prepare(system: SystemName): Promise<void> {
    await this.#client.post(`/${system}/all/prepare`, "");
  }

  /** Returns the milliseconds per turn of one batch. */
  async batch(system: SystemName, shape: Shape): Promise<number> {
    const actors = Array.from({ length: shape.actors }, () => this.#newActor(""));
    for (const actor of actors) await this.#prepare(system, actor, shape);
    const begin = performance.now();
    for (const actor of actors) {
      for (let turn = 0; turn < shape.turns; turn += 1) {
        await this.#turn(system, actor, shape, shape.untimed + turn);
      }
    }
    return (performance.now() - begin) / (shape.actors * shape.turns);
  }

  /** Counts statements and rows per turn on a separate actor, until it is idle. */
  async counts(system: SystemName, shape: Shape): Promise<Counts> {
    const actor = this.#newActor(METERED_PREFIX);
    await this.#prepare(system, actor, shape);
    const before = shape.untimed === 0 ? { statements: 0, rows: 0 } : await this.#atRest(system, actor);
    for (let turn = 0; turn < shape.turns; turn += 1) {
      await this.#turn(system, actor, shape, shape.untimed + turn);
    }
    const after = await this.#atRest(system, actor);
    return {
      statements: (after.statements - before.statements) / shape.turns,
      rows: (after.rows - before.rows) / shape.turns,
    };
  }

  async #prepare(system: SystemName, actor: string, shape: Shape): Promise<void> {
    if (shape.seeded > 0) {
      const held = Number(await this.#client.post(`/${system}/${actor}/seed`, String(shape.seeded)));
      if (held !== shape.seeded) throw new Error(`${system} holds ${held} messages, not ${shape.seeded}.`);
    }
    for (let turn = 0; turn < shape.untimed; turn += 1) await this.#turn(system, actor, shape, turn);
  }

  /** Runs one turn and checks in its answer that the model received the history and that the tools ran. */
  async #turn(system: SystemName, actor: string, shape: Shape, done: number): Promise<void> {
    const first = done === 0 && shape.seeded === 0 ? "?first" : "";
    const seen = evidence(await this.#client.post(`/${system}/${actor}/turn${first}`, shape.text));
    const toolResults = shape.text === TOOLS_TEXT ? TOOL_ROUNDS : 0;
    const history = Math.min(shape.seeded + 2 * done + 1, GIVEN[system]);
    if (seen === null || seen.toolResults !== toolResults || seen.messages < history) {
      throw new Error(
        `${system}, ${shape.metric}: expected an answer to ${history} messages and ${toolResults} tool results, ` +
          `got ${JSON.stringify(seen)}.`,
      );
    }
  }

  async #atRest(system: SystemName, actor: string): Promise<Counts> {
    let last = "";
    for (;;) {
      const counts = await this.#client.post(`/${system}/${actor}/counts`, "");
      if (counts === last) return JSON.parse(counts) as Counts; // SAFETY: the Worker's own answer to this route.
      last = counts;
      await pause(REST_MS);
    }
  }

  #newActor(prefix: string): string {
    this.#actors += 1;
    return `${prefix}actor-${this.#actors}`;
  }
}
