/**
 * `Think` of `@cloudflare/think`, written as in its guide: the manager has the clerk as an agent tool. Each run of an agent
 * tool is a new sub-agent with its own storage.
 */
import { createOpenAI } from "@ai-sdk/openai";
import { Think } from "@cloudflare/think";
import { getAgentByName } from "agents";
import { agentTool } from "agents/agent-tools";
import { z } from "zod";
import { answerOf } from "../../turns/systems/ui-messages.ts";
import { countsByPart, meteredAs, startMetering } from "../meters.ts";
import type { System } from "../protocol.ts";
import { CLERK, CLERK_DESCRIPTION, CLERK_PROMPT, MANAGER_PROMPT, MODEL_ID } from "../workload.ts";

interface Env extends Cloudflare.Env {
  OPENAI_BASE_URL: string;
}

abstract class Scripted extends Think<Env> {
  override getModel() {
    return createOpenAI({ baseURL: this.env.OPENAI_BASE_URL, apiKey: "none" }).chat(MODEL_ID);
  }
}

export class ThinkClerk extends Scripted {
  constructor(ctx: DurableObjectState, env: Env) {
    super(meteredAs("clerks", ctx), env);
  }

  override getSystemPrompt() {
    return CLERK_PROMPT;
  }
}

export class ThinkManager extends Scripted {
  constructor(ctx: DurableObjectState, env: Env) {
    super(meteredAs("manager", ctx), env);
  }

  override getSystemPrompt() {
    return MANAGER_PROMPT;
  }

  override getTools() {
    return {
      [`ask_${CLERK}`]: agentTool(ThinkClerk, {
        description: CLERK_DESCRIPTION,
        inputSchema: z.object({ prompt: z.string() }),
      }),
    };
  }

  async benchTurn(text: string) {
    const { status } = await this.runTurn({ input: text });
    if (status !== "completed") throw new Error(`The turn ended ${status}.`);
    return answerOf(this.messages);
  }
}

export function think(namespace: DurableObjectNamespace<ThinkManager>): System {
  return {
    turn: async (actor, text) => (await getAgentByName(namespace, actor)).benchTurn(text),
    meter: async () => startMetering(),
    counts: async () => countsByPart(),
  };
}
