/** A bare `DurableObject`: the floor of the platform's cost. */
import { DurableObject } from "cloudflare:workers";
import { countsOf, metered } from "../meter.ts";
import type { System } from "../protocol.ts";
import { createTable, runTurn, seedTurns } from "./floor.ts";

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

export function durableObject(namespace: DurableObjectNamespace<PlainObject>): System {
  return {
    turn: (actor, text) => namespace.getByName(actor).benchTurn(text),
    seed: (actor, messages) => namespace.getByName(actor).benchSeed(messages),
    counts: (actor) => namespace.getByName(actor).benchCounts(),
  };
}
