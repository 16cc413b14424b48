/** A bare `Agent` of the SDK that stores one row per turn: the lower bound of the SDK's cost. */
import { Agent, getAgentByName } from "agents";
import { countsOf, metered } from "../meter.ts";
import type { System } from "../protocol.ts";
import { createTable, runTurn, seedTurns } from "./floor.ts";
import { sdkSystem } from "./sdk-system.ts";

export class PlainAgent extends Agent<Cloudflare.Env> {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(metered(ctx), env);
  }

  override onStart() {
    createTable(this.ctx.storage.sql);
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

export function agent(namespace: DurableObjectNamespace<PlainAgent>): System {
  return sdkSystem((actor) => getAgentByName(namespace, actor));
}
