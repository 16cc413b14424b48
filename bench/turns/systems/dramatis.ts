/**
 * Dramatis: an application with one agent. An in-process gateway calls the scripted model. A turn is one call of `runTurn`.
 */
import { env } from "cloudflare:workers";
import { durableActors } from "../../../src/agents/base/lookup/durable-actors.ts";
import { conversationRecord } from "../../../src/agents/conversation/inbound/create-conversation.ts";
import { dramatis } from "../../../src/dramatis.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../../src/library/define/define.ts";
import type { ModelGateway } from "../../../src/model/gateway.ts";
import type { DramatisEnv } from "../../../src/options.ts";
import type { AgentApi } from "../../../src/protocol/agent-api.ts";
import type { ConversationApi } from "../../../src/protocol/conversation-api.ts";
import type { TurnView } from "../../../src/protocol/conversation-schemas.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import type { Principal } from "../../../src/shared/principal.ts";
import { countsOf, metered } from "../meter.ts";
import { METERED_PREFIX, type System } from "../protocol.ts";
import { lookup, type Prompt, replyTo, TOOL_DESCRIPTION, TOOL_NAME, toolInput } from "../workload.ts";
import { seedConversation } from "./dramatis-history.ts";

const AGENT = "keeper";

const library = defineLibrary("bench", {
  personas: [
    definePersona(AGENT, {
      identity: { systemPrompt: "You are a helpful assistant.", modelProfileId: "scripted" },
      tools: { toolIds: [TOOL_NAME] },
    }),
  ],
  tools: [
    defineTool({
      name: TOOL_NAME,
      description: TOOL_DESCRIPTION,
      input: toolInput,
      effect: "pure",
      execute: lookup,
    }),
  ],
  modelProfiles: [defineModelProfile("scripted", { provider: "openai", modelId: "zero-latency" })],
});

const gateway: ModelGateway = {
  async *stream({ body }) {
    const reply = replyTo(read(body.messages as unknown as ChatMessage[])); // SAFETY: the OpenAI format built it.
    if (reply.kind === "text") {
      for (const text of reply.pieces) yield { type: "text", text };
    } else {
      const { id } = reply;
      yield { type: "tool-call", index: 0, id, name: TOOL_NAME, arguments: JSON.stringify(reply.input) };
    }
    yield { type: "usage", usage: { inputTokens: 100, outputTokens: 50 } };
    yield { type: "finish", reason: reply.kind === "text" ? "stop" : "tool_calls" };
  },
};

interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
}

/** Searches back only to the newest user message, so that the model's own time does not depend on the history. */
function read(messages: readonly ChatMessage[]): Prompt {
  const given = messages.length - (messages[0]?.role === "system" ? 1 : 0);
  const at = messages.findLastIndex(({ role }) => role === "user");
  const toolResults = messages.slice(at).filter(({ role }) => role === "tool").length;
  return { text: messages[at]?.content ?? "", messages: given, toolResults };
}

const app = dramatis({
  libraries: [library],
  models: { gateway: () => gateway },
  limits: { turns: false },
});

export const { Agent, Executor } = app;

export class Conversation extends app.Conversation {
  constructor(ctx: DurableObjectState, env: DramatisEnv & Cloudflare.Env) {
    super(metered(ctx), env);
  }

  async benchSeed(actor: string, messages: number) {
    const { id, principal } = addressOf(actor);
    const agent = await findAgent(principal.tenant);
    const record = conversationRecord(
      principal,
      { id, agentId: AGENT },
      unwrap(await agent.persona()),
      Date.now(),
    );
    return seedConversation(this.ctx.storage, record, messages);
  }

  async benchCounts() {
    return countsOf(this.ctx);
  }
}

/** The RPC members of the class below and its base. */
type ConversationActor = ConversationApi & Pick<Conversation, "benchSeed" | "benchCounts">;

export function dramatisSystem(): System {
  return {
    async prepare() {
      for (const { principal } of [addressOf("0"), addressOf(`${METERED_PREFIX}0`)]) {
        const agent = await findAgent(principal.tenant);
        unwrap(await agent.create(principal, { id: AGENT, persona: { library: library.id, id: AGENT } }));
      }
    },
    async turn(actor, content, first) {
      const { id, principal } = addressOf(actor);
      const conversation = await findConversation(actor);
      if (first) unwrap(await conversation.create(principal, { id, agentId: AGENT }));
      const idempotencyKey = crypto.randomUUID();
      return answerOf(unwrap(await conversation.runTurn(principal, { content, idempotencyKey })));
    },
    seed: async (actor, messages) => (await findConversation(actor)).benchSeed(actor, messages),
    counts: async (actor) => (await findConversation(actor)).benchCounts(),
  };
}

function findAgent(tenant: string): Promise<AgentApi> {
  return durableActors(env).agent(tenant, AGENT);
}

async function findConversation(actor: string): Promise<ConversationActor> {
  const { id, principal } = addressOf(actor);
  // SAFETY: the exported class has the members of the bench.
  return (await durableActors(env).conversation(principal.tenant, id)) as ConversationActor;
}

/** Returns the conversation id and the principal for an actor's name. Metered actors have their own tenant. */
function addressOf(actor: string): { id: string; principal: Principal } {
  const number = /\d+$/.exec(actor)?.[0] ?? "";
  const tenant = actor.startsWith(METERED_PREFIX) ? `${METERED_PREFIX}tenant` : "tenant";
  return {
    id: `conv_${number.padStart(26, "0")}`,
    principal: { subject: "visitor", tenant, roles: ["admin"] },
  };
}

/** Returns the agent's message of a completed turn. */
function answerOf({ status, moves, error }: TurnView): string {
  const answer = moves.at(-1)?.reasoning;
  if (status === "completed" && answer !== undefined) return answer;
  throw new Error(`The turn did not complete: ${error?.message ?? status}`);
}
