/**
 * Two bare `DurableObject`s: the lower bound of the platform's cost, with one write for each turn, and with the writes of a turn that
 * survives a crash.
 */
import { DurableObject, exports, WorkerEntrypoint } from "cloudflare:workers";
import { countsOf, metered } from "../meter.ts";
import type { System } from "../protocol.ts";
import { lookup } from "../workload.ts";
import { answerTo, createTable, insertTurn, runTurn, seedTurns } from "./floor.ts";

export class PlainObject extends DurableObject {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(metered(ctx), env);
    createTable(ctx.storage.sql);
  }

  async benchTurn(text: string) {
    return runTurn(this.ctx.storage.sql, text);
  }

  async benchSeed(messages: number) {
    return seedTurns(this.ctx.storage, messages);
  }

  async benchCounts() {
    return countsOf(this.ctx);
  }
}

/** Runs the tool outside the actor, as an `Executor` does. */
export class PlainTools extends WorkerEntrypoint {
  async run(input: Parameters<typeof lookup>[0]) {
    return lookup(input);
  }
}

/**
 * Makes the same number of statements and rows as a turn of Dramatis, in as many transactions: the accepted question is on disk before the
 * model's call, and each reply before the call of its tool.
 */
export class SafeObject extends PlainObject {
  override async benchTurn(text: string) {
    const { storage } = this.ctx;
    storage.transactionSync(() => {
      for (let row = 0; row < ROWS_PER_COMMIT; row += 1) insertTurn(storage.sql, text, "");
      storage.kv.put("due", text.length);
    });
    await storage.sync();
    const answer = await answerTo(text, async (input) => {
      storage.transactionSync(() => {
        for (let row = 0; row < ROWS_PER_ROUND; row += 1) insertTurn(storage.sql, text, "");
      });
      await storage.sync();
      return exports.PlainTools.run(input);
    });
    storage.transactionSync(() => {
      for (let row = 0; row < ROWS_PER_COMMIT; row += 1) insertTurn(storage.sql, text, answer);
    });
    return answer;
  }
}

/** Two commits of three rows and one value have the six statements and seven rows of a plain turn of Dramatis. */
const ROWS_PER_COMMIT = 3;
/** Three rounds with two rows each have the other six statements of a turn of Dramatis with three rounds of tools. */
const ROWS_PER_ROUND = 2;

export function durableObject(namespace: DurableObjectNamespace<PlainObject>): System {
  return {
    turn: (actor, text) => namespace.getByName(actor).benchTurn(text),
    seed: (actor, messages) => namespace.getByName(actor).benchSeed(messages),
    counts: (actor) => namespace.getByName(actor).benchCounts(),
  };
}
