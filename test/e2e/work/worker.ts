/** An application whose tools take their time: each asks a desk that a test keeps, by the address in its input. */
import { z } from "zod";
import { dramatis } from "../../../src/dramatis.ts";
import { defineLibrary, defineModelProfile, definePersona, defineTool } from "../../../src/library/define.ts";
import { defineWorkflow, node, transition } from "../../../src/library/workflows/define-workflow.ts";

const input = z.object({ url: z.string(), item: z.string().default("") });

const pay = defineTool({
  name: "pay",
  description: "Asks the customer to pay.",
  input,
  effect: "once",
  execute: async ({ url }, { defer, signal }) => {
    const deferred = await defer({ expiresInMs: 3_600_000 });
    await fetch(url, {
      method: "POST",
      body: JSON.stringify({ handle: deferred.handle, url: deferred.url }),
      signal,
    });
    return deferred;
  },
});

const research = defineTool({
  name: "research",
  description: "Looks something up, in the background.",
  input,
  effect: "idempotent",
  async: true,
  execute: async ({ url, item }, { progress, signal }) => {
    progress({ percent: 40, step: item });
    return (await fetch(url, { method: "POST", signal })).text();
  },
});

const flaky = defineTool({
  name: "flaky",
  description: "Fails at first.",
  input,
  effect: "idempotent",
  retry: { maxAttempts: 3, backoffMs: 100 },
  execute: async ({ url }, { signal }) => {
    const response = await fetch(url, { method: "POST", signal });
    if (!response.ok) throw new Error(`The desk answered ${response.status}.`);
    return response.text();
  },
});

const transfer = defineTool({
  name: "transfer",
  description: "Transfers money, once somebody has approved it.",
  input,
  approval: "always",
  execute: async ({ url, item }, { signal }) =>
    (await fetch(url, { method: "POST", body: item, signal })).text(),
});

const askPorter = defineTool({
  name: "ask_porter",
  description: "Has the porter do something.",
  target: { agent: "porter" },
});

const priced = defineModelProfile("priced", {
  provider: "offline",
  modelId: "offline-1",
  costPer1kInput: 1,
  costPer1kOutput: 2,
});

const clerk = definePersona("clerk", {
  name: "Clerk",
  identity: { systemPrompt: "You are a clerk.", modelProfileId: "priced" },
  tools: { toolIds: ["pay", "research", "flaky", "transfer", "ask_porter"] },
  examples: ["!say Good morning."],
});

const porter = definePersona("porter", {
  identity: { systemPrompt: "You carry." },
  tools: { toolIds: ["transfer"] },
});

const errand = defineTool({
  name: "errand",
  description: "Fetches an item.",
  input,
  effect: "idempotent",
  retry: { maxAttempts: 3, backoffMs: 100 },
  execute: async ({ url, item }, { signal }) => {
    const response = await fetch(`${url}/${item}`, { method: "POST", body: item, signal });
    if (!response.ok) throw new Error(`The desk answered ${response.status}.`);
    return { found: await response.text() };
  },
});

const errands = defineWorkflow("errands", {
  input: z.object({ url: z.string(), items: z.array(z.string()) }),
  context: z.object({ found: z.array(z.unknown()) }),
  initialNode: "start",
  nodes: [
    node("start"),
    node("visit", {
      name: "Visit the shop",
      task: "errand",
      inputMapping: { url: "input.url", item: "item" },
      outputMapping: { "output.found": "result.found" },
    }),
    node("report"),
  ],
  transitions: [
    transition({
      from: "start",
      to: "visit",
      siblingGroup: "items",
      foreach: { collection: "input.items", itemVar: "item" },
    }),
    transition({
      from: "visit",
      to: "report",
      synchronization: {
        siblingGroup: "items",
        strategy: "all",
        merge: { source: "_branch.output.found", target: "state.found", strategy: "collect" },
      },
    }),
  ],
  outputMapping: { found: "state.found" },
});

const app = dramatis({
  libraries: [
    defineLibrary("work", {
      personas: [clerk, porter],
      tools: [pay, research, flaky, transfer, askPorter, errand],
      modelProfiles: [priced],
      workflows: [errands],
    }),
  ],
  agents: [
    { id: "clerk", persona: "work/clerk" },
    { id: "porter", persona: "work/porter" },
  ],
});

export const { Conversation, Agent, Coordinator, Trigger, Executor } = app;
export default app.handler;
