/**
 * Dramatis: an application with a manager and a clerk. Each agent is an actor. The manager has a tool with the clerk as its
 * target, and each call opens a conversation with the clerk. A turn is one call of `runTurn`.
 */
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { dramatis } from "../../../src/dramatis.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../../src/library/define/define.ts";
import type { DramatisEnv } from "../../../src/options.ts";
import type { AgentApi } from "../../../src/protocol/agent-api.ts";
import type { ConversationApi } from "../../../src/protocol/conversation-api.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import type { Principal } from "../../../src/shared/principal.ts";
import { countsByPart, meteredAs, startMetering } from "../meters.ts";
import type { System } from "../protocol.ts";
import { CLERK, CLERK_DESCRIPTION, CLERK_PROMPT, MANAGER_PROMPT, MODEL_ID } from "../workload.ts";

type Env = DramatisEnv & Cloudflare.Env;

const MANAGER = "manager";
const CONVERSATION = `conv_${"0".repeat(26)}`;

const modelProfileId = MODEL_ID;

const library = defineLibrary("bench", {
  personas: [
    definePersona(MANAGER, {
      identity: { systemPrompt: MANAGER_PROMPT, modelProfileId },
      tools: { toolIds: [`ask_${CLERK}`] },
    }),
    definePersona(CLERK, { identity: { systemPrompt: CLERK_PROMPT, modelProfileId } }),
  ],
  tools: [defineTool({ name: `ask_${CLERK}`, description: CLERK_DESCRIPTION, target: { agent: CLERK } })],
  modelProfiles: [defineModelProfile(MODEL_ID, { provider: "openai", modelId: MODEL_ID })],
});

const app = dramatis({ libraries: [library], limits: { turns: false } });

export const { Executor } = app;

export class Agent extends app.Agent {
  constructor(ctx: DurableObjectState, env: Env) {
    super(meteredAs("agents", ctx), env);
  }

  /** Ends the actor. The next call starts it from its database. */
  benchSleep(): void {
    this.ctx.abort("The agent sleeps.");
  }
}

export class Conversation extends app.Conversation {
  constructor(ctx: DurableObjectState, env: Env) {
    super(meteredAs(ctx.id.name?.endsWith(CONVERSATION) ? "manager" : "clerks", ctx), env);
  }
}

export function dramatisSystem(): System {
  return {
    async prepare(actor) {
      const principal = principalOf(actor);
      for (const id of [MANAGER, CLERK]) {
        const agent = await findAgent(actor, id);
        unwrap(await agent.create(principal, { id, persona: { library: library.id, id } }));
      }
      const conversation = await findConversation(actor);
      unwrap(await conversation.create(principal, { id: CONVERSATION, agentId: MANAGER }));
    },
    async turn(actor, content) {
      const conversation = await findConversation(actor);
      const idempotencyKey = crypto.randomUUID();
      const turn = unwrap(await conversation.runTurn(principalOf(actor), { content, idempotencyKey }));
      const answer = turn.moves.at(-1)?.reasoning;
      if (turn.status === "completed" && answer !== undefined) return answer;
      throw new Error(`The turn did not complete: ${turn.error?.message ?? turn.status}`);
    },
    async sleep(actor) {
      // The call ends with the actor.
      await (await findAgent(actor, CLERK)).benchSleep().catch(() => undefined);
    },
    meter: async () => startMetering(),
    counts: async () => countsByPart(),
  };
}

/** Each actor of the case is a tenant with its own agents. */
function principalOf(actor: string): Principal {
  return { subject: "visitor", tenant: actor, roles: ["admin"] };
}

async function findAgent(actor: string, id: string): Promise<AgentApi & { benchSleep(): Promise<void> }> {
  // SAFETY: the exported class is `Agent`, which implements this.
  return (await getAgentByName(exports.Agent as never, `${actor}:${id}`)) as never;
}

async function findConversation(actor: string): Promise<ConversationApi> {
  // SAFETY: the exported class is `Conversation`, which implements this.
  return (await getAgentByName(exports.Conversation as never, `${actor}:${CONVERSATION}`)) as never;
}
