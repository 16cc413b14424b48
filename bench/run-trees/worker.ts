/** The application of the case `run-trees`: a workflow that fans out over sub-workflows, three levels deep, with 1 000 tokens in each leaf. */
import { z } from "zod";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { defineWorkflow, node, transition } from "../../src/library/define/define-workflow.ts";
import { AGENT, ATTACKER, OTHER } from "./tenants.ts";

const WIDTH = 30;
const TOKENS = 1_000;

const joined = (from: string, to: string) =>
  transition({ from, to, synchronization: { siblingGroup: "all", strategy: "all" } });

const leaf = defineWorkflow("level-3", {
  input: z.object({}),
  initialNode: "start",
  nodes: [node("start"), node("work"), node("done")],
  transitions: [
    transition({ from: "start", to: "work", siblingGroup: "all", spawnCount: TOKENS }),
    joined("work", "done"),
  ],
});

const levels = [2, 1, 0].reduce(
  ([below, ...others], level) => [
    defineWorkflow(`level-${level}`, {
      input: z.object({}),
      initialNode: "start",
      nodes: [node("start"), node("below", { workflow: below ?? leaf }), node("done")],
      transitions: [
        transition({ from: "start", to: "below", siblingGroup: "all", spawnCount: WIDTH }),
        joined("below", "done"),
      ],
    }),
    ...(below === undefined ? [] : [below]),
    ...others,
  ],
  [leaf],
);

const app = dramatis({
  libraries: [
    defineLibrary("trees", {
      personas: [definePersona(AGENT, { identity: { systemPrompt: "You answer." } })],
      workflows: levels,
    }),
  ],
  agents: [ATTACKER, OTHER].map((tenant) => ({ tenant, id: AGENT, persona: `trees/${AGENT}` })),
  limits: { requests: false },
});

export const { Conversation, Agent, Coordinator, Executor } = app;
export default app.handler;
