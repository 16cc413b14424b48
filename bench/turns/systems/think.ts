/**
 * `Think` of `@cloudflare/think`, written as in its guide: a model and tools with defaults. The server drives it by `runTurn`,
 * which resolves when the answer is stored.
 */
import { Think } from "@cloudflare/think";
import { getAgentByName } from "agents";
import { countsOf, metered } from "../meter.ts";
import { aiSdkModel } from "../model.ts";
import type { System } from "../protocol.ts";
import { sdkSystem } from "./sdk-system.ts";
import { answerOf, seededMessages, tools } from "./ui-messages.ts";

export class ThinkAgent extends Think<Cloudflare.Env> {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(metered(ctx), env);
  }

  override getModel() {
    return aiSdkModel;
  }

  override getTools() {
    return tools;
  }

  async benchTurn(text: string) {
    const { status } = await this.runTurn({ input: text });
    if (status !== "completed") throw new Error(`The turn ended ${status}.`);
    return answerOf(this.messages);
  }

  async benchSeed(messages: number) {
    await this.addMessages(seededMessages(messages));
    return this.messages.length;
  }

  async benchCounts() {
    return countsOf(this.ctx);
  }
}

export function think(namespace: DurableObjectNamespace<ThinkAgent>): System {
  return sdkSystem((actor) => getAgentByName(namespace, actor));
}
