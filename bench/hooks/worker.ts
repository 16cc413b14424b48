/**
 * Dramatis: an application with an agent for each kind of context hook. The model is scripted and answers in the process.
 * `POST /VARIANT/ACTOR` runs a turn and responds with its answer. `?first` creates the conversation before. `POST /run` runs the workflow
 * of the hook without a turn, and responds at its end.
 */
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { ulid } from "ulid";
import { z } from "zod";
import { openaiAdapter } from "../../src/adapters/index.ts";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, defineModelProfile, definePersona } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { CoordinatorApi } from "../../src/protocol/coordinator-api.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { VARIANTS, type Variant } from "./workload.ts";

const SYSTEM_PROMPT = "You are a helpful assistant.";
const role = z.enum(["system", "user", "assistant", "tool"]);

/** Builds the same request as the platform, except for its `seed`. */
const assemble = defineTask({
  id: "assemble",
  input: z.looseObject({
    user_message: z.string(),
    recent_turns: z.array(z.object({ messages: z.array(z.looseObject({ role, content: z.string() })) })),
    system_instructions: z.array(z.string()),
  }),
  effect: "pure",
  execute: ({ user_message, recent_turns, system_instructions }) => ({
    ...{ model: "zero-latency", stream: true, seed: 1 },
    ...openaiAdapter.toModelMessages(system_instructions, [
      ...recent_turns.flatMap(({ messages }) => messages),
      { role: "user", content: user_message },
    ]),
  }),
});

const assembly = defineWorkflow("assembly", {
  input: z.looseObject({
    user_message: z.string(),
    recent_turns: z.array(z.unknown()),
    system_instructions: z.array(z.string()),
  }),
  context: z.object({ request: z.unknown() }),
  initialNode: "assemble",
  nodes: [node("assemble", { task: assemble, outputMapping: { "state.request": "result" } })],
  outputMapping: {
    model: "state.request.model",
    stream: "state.request.stream",
    seed: "state.request.seed",
    messages: "state.request.messages",
  },
});

const HOOKS = {
  none: {},
  task: { contextAssembly: { task: "assemble" } },
  workflow: { contextAssembly: { workflow: assembly } },
} as const satisfies Record<Variant, object>;

const library = defineLibrary("bench", {
  tasks: [assemble],
  modelProfiles: [defineModelProfile("scripted", { provider: "openai", modelId: "zero-latency" })],
  personas: VARIANTS.map((id) =>
    definePersona(id, {
      identity: { systemPrompt: SYSTEM_PROMPT, modelProfileId: "scripted" },
      memory: HOOKS[id],
    }),
  ),
});

/** Answers at once with the number of received messages and with the mark of a hook. */
const gateway: ModelGateway = {
  async *stream({ body: { messages, seed = 0 } }) {
    const count = Array.isArray(messages) ? messages.length : 0;
    for (const text of ["The lamp was relit ", "within the hour ", `(${count} messages, seed ${seed}).`])
      yield { type: "text", text };
    yield { type: "usage", usage: { inputTokens: 100, outputTokens: 50 } };
    yield { type: "finish", reason: "stop" };
  },
};

const app = dramatis({
  libraries: [library],
  models: { gateway: () => gateway },
  limits: { requests: false, turns: false },
});

export const { Conversation, Agent, Coordinator, Executor } = app;

const principal: Principal = { subject: "visitor", tenant: "bench", roles: ["admin"] };

/** Time limit of a run. */
const LIMIT_MS = 60_000;

async function turn(variant: Variant, actor: string, content: string, isFirst: boolean): Promise<string> {
  const id = `conv_${actor.padStart(26, "0")}`;
  // SAFETY: the exported class is `Conversation`, which implements this.
  const conversation = (await getAgentByName(
    exports.Conversation as never,
    `${principal.tenant}:${id}`,
  )) as unknown as ConversationApi;
  if (isFirst) unwrap(await conversation.create(principal, { id, agentId: variant }));
  const idempotencyKey = crypto.randomUUID();
  const { status, answer, error } = unwrap(
    await conversation.runTurn(principal, { content, idempotencyKey }),
  );
  if (status === "completed" && answer !== null) return answer;
  throw new Error(`The turn is ${status}: ${error?.message ?? ""}`);
}

/** Runs the workflow without a turn, from its start to its end. */
async function run(content: string): Promise<string> {
  const id = `run_${ulid()}`;
  // SAFETY: the exported class is `Coordinator`, which implements this.
  const coordinator = (await getAgentByName(
    exports.Coordinator as never,
    `${principal.tenant}:${id}`,
  )) as unknown as CoordinatorApi;
  const workflow = { library: library.id, id: assembly.id };
  const input = { user_message: content, recent_turns: [], system_instructions: [SYSTEM_PROMPT] };
  unwrap(await coordinator.start(principal, { id, workflow, input }));
  const { status, error } = unwrap(await coordinator.finished(principal, LIMIT_MS));
  if (status !== "completed") throw new Error(`The run is ${status}: ${error?.message ?? ""}`);
  return status;
}

async function prepare(): Promise<void> {
  for (const id of VARIANTS) {
    // SAFETY: the exported class is `Agent`, which implements this.
    const agent = (await getAgentByName(
      exports.Agent as never,
      `${principal.tenant}:${id}`,
    )) as unknown as AgentApi;
    unwrap(await agent.create(principal, { id, persona: { library: library.id, id } }));
  }
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const [, name, actor = ""] = pathname.split("/");
    const content = await request.text();
    if (name === "prepare") await prepare();
    if (name === "run") return new Response(await run(content));
    const variant = VARIANTS.find((known) => known === name);
    return new Response(variant && (await turn(variant, actor, content, searchParams.has("first"))));
  },
};
