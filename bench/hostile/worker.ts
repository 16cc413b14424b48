/** The application of the case `hostile`: one agent with tools that run hostile tasks. The runner is its model. */
import { z } from "zod";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { step } from "../../src/library/tasks/step.ts";
import { HOSTILE_TASKS } from "../../test/support/hostile-tasks.ts";
import { AGENT, TENANTS } from "./agent.ts";

const tools = HOSTILE_TASKS.map(({ id, steps }) =>
  defineTool({
    name: `run_${id}`,
    description: "Runs a hostile task.",
    target: {
      task: defineTask({
        id,
        input: z.looseObject({}),
        steps: steps.map((one, index) => step(`s${index}`, one)),
      }),
    },
  }),
);
const persona = definePersona(AGENT, {
  identity: { systemPrompt: "You answer with JSON." },
  tools: { toolIds: tools.map(({ id }) => id) },
});

const app = dramatis({
  libraries: [defineLibrary("hostile", { personas: [persona], tools })],
  agents: TENANTS.map((tenant) => ({ tenant, id: AGENT, persona: `hostile/${AGENT}` })),
});

export const { Conversation, Agent, Executor } = app;
export default app.handler;
