/** The application under test: one agent, and one tool per effect. To execute a tool, the Worker sends a request to the hit server. */
import { z } from "zod";
import { dramatis } from "../../src/dramatis.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
  type ToolContext,
} from "../../src/library/define/define.ts";
import { BACKGROUND_AGENT, BACKGROUND_TOOLS } from "./background/script.ts";
import { errandTasks, errandWorkflows } from "./runs/errands.ts";
import { AGENT, TOOL_EFFECTS } from "./script.ts";
import { CHIEF } from "./trees/agents.ts";

const input = z.object({ url: z.string() });

async function hit({ url }: z.output<typeof input>, { operationId, signal }: ToolContext): Promise<unknown> {
  const headers = { "idempotency-key": operationId };
  const response = await fetch(url, { method: "POST", headers, signal });
  return response.json();
}

const tools = TOOL_EFFECTS.map((effect) =>
  defineTool({ name: effect, description: `Acts outside; ${effect}.`, input, effect, execute: hit }),
);

/** Time limit of calls that act once. It is also the wait for the result of an interrupted call. */
const ONCE_TIMEOUT_MS = 8_000;
/** Time limit of repeatable calls. It includes the restart of a killed process. */
const REPEATED_TIMEOUT_MS = 60_000;

/** `research` and `charge` run in the background. The result of `pay` comes later, by its handle. */
const backgroundTools = BACKGROUND_TOOLS.map((name) =>
  defineTool({
    name,
    description: "Acts outside.",
    input,
    effect: name === "research" ? "idempotent" : "once",
    async: true,
    timeoutMs: name === "research" ? REPEATED_TIMEOUT_MS : ONCE_TIMEOUT_MS,
    execute:
      name === "pay"
        ? async ({ url }, context) => {
            const deferred = await context.defer({ expiresInMs: 600_000 });
            await hit({ url: `${url}&handle=${encodeURIComponent(deferred.handle)}` }, context);
            return deferred;
          }
        : hit,
  }),
);

const persona = definePersona(AGENT, {
  identity: { systemPrompt: "You follow the script." },
  // A few turns fill the context, so conversations compact themselves.
  memory: { contextTokens: 4_000 },
  tools: { toolIds: [...TOOL_EFFECTS] },
});

const backgroundPersona = definePersona(BACKGROUND_AGENT, {
  identity: { systemPrompt: "You follow the script." },
  tools: { toolIds: [...BACKGROUND_TOOLS] },
});

const OFFLINE = defineModelProfile("offline", { provider: "offline", modelId: "offline-1" });
const staff = [
  { id: CHIEF, tools: ["ask_lead"] },
  { id: "lead", tools: ["ask_hand"] },
  { id: "hand", tools: ["once", "idempotent"] },
].map(({ id, tools: toolIds }) =>
  definePersona(id, {
    identity: { systemPrompt: `You are the ${id}.`, modelProfileId: "offline" },
    tools: { toolIds },
  }),
);
const callTools = ["lead", "hand"].map((agent) =>
  defineTool({ name: `ask_${agent}`, description: `Has the ${agent} work.`, target: { agent } }),
);

const personas = [persona, backgroundPersona, ...staff];
const app = dramatis({
  libraries: [
    defineLibrary("kills", {
      personas,
      tools: [...tools, ...backgroundTools, ...callTools],
      modelProfiles: [OFFLINE],
      tasks: errandTasks,
      workflows: errandWorkflows,
    }),
  ],
  // One user polls all trees.
  limits: { requests: false },
  agents: personas.map(({ id }) => ({ id, persona: `kills/${id}` })),
});

export const { Conversation, Agent, Coordinator, Executor } = app;
export default app.handler;
