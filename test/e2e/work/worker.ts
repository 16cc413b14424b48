/** An application with slow tools: each asks the desk of a test, by the address in its input. */
import { env } from "cloudflare:workers";
import { z } from "zod";
import { dramatis } from "../../../src/dramatis.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../../src/library/define/define.ts";
import { defineTask } from "../../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../../src/library/define/define-workflow.ts";
import { step } from "../../../src/library/tasks/step.ts";
import type { DramatisEnv } from "../../../src/options.ts";
import type { ChannelAdapter } from "../../../src/protocol/channels.ts";
import type { JsonObject } from "../../../src/shared/json.ts";

const { DRAMATIS_HTTP_HOSTS: allowedHost = "" }: DramatisEnv = env;
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

const payTwice = defineTool({
  name: "pay_twice",
  description: "Pays a bill again, once another person has approved it.",
  input,
  approval: { notRequester: true },
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

/** Its answers have at most three words. */
const terse = defineModelProfile("terse", {
  provider: "offline",
  modelId: "offline-1",
  parameters: { maxOutputTokens: 3 },
});

const telegraphist = definePersona("telegraphist", {
  identity: { systemPrompt: "You send telegrams.", modelProfileId: "terse" },
});

const clerk = definePersona("clerk", {
  name: "Clerk",
  identity: { systemPrompt: "You are a clerk.", modelProfileId: "priced" },
  tools: { toolIds: ["pay", "research", "flaky", "transfer", "ask_porter", "pay_out", "pay_twice"] },
  examples: ["!say Good morning."],
});

/** Has the tools of an MCP server of the test, at the host that the test allows. */
const visitor = definePersona("visitor", {
  identity: { systemPrompt: "You are a visitor." },
  tools: { toolIds: ["mcp:desk/ask"] },
});

const titler = definePersona("titler", {
  identity: { systemPrompt: "You are a guide." },
  titles: { modelProfileId: "priced" },
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

/** Asks whether something may be done. */
const askRefund = defineTask({
  id: "ask_refund",
  input: z.object({ order: z.string() }),
  steps: [step("ask", { action: { kind: "human.approve", prompt: "Refund the order {{ order }}?" } })],
});

/** Asks for the amount that the customer gets, and when. */
const askPayout = defineTask({
  id: "ask_payout",
  input: z.object({ amount: z.number(), currency: z.string(), due: z.string() }),
  steps: [
    step("ask", {
      action: {
        kind: "human.input",
        prompt: "How much do we pay out?",
        schema: schemaOf(z.object({ amount: z.number().positive(), at: z.iso.datetime() })),
      },
    }),
  ],
});

const payout = defineWorkflow("payout", {
  input: z.object({ amount: z.number(), currency: z.string(), due: z.string() }),
  context: z.object({ answer: z.unknown() }),
  initialNode: "ask",
  nodes: [
    node("ask", {
      name: "Ask the cashier",
      task: askPayout,
      inputMapping: { amount: "input.amount", currency: "input.currency", due: "input.due" },
      outputMapping: { "state.answer": "result" },
    }),
  ],
  transitions: [],
  outputMapping: { answer: "state.answer" },
});

/** Has a sub-workflow that asks. */
const payoutDesk = defineWorkflow("payout_desk", {
  input: z.object({ amount: z.number(), currency: z.string(), due: z.string() }),
  context: z.object({ answer: z.unknown() }),
  initialNode: "desk",
  nodes: [
    node("desk", {
      workflow: "payout",
      inputMapping: { amount: "input.amount", currency: "input.currency", due: "input.due" },
      outputMapping: { "state.answer": "result.answer" },
    }),
  ],
  transitions: [],
  outputMapping: { answer: "state.answer" },
});

const payOut = defineTool({
  name: "pay_out",
  description: "Pays money out, once the cashier has said how much.",
  target: { workflow: payoutDesk },
});

/** Asks for each item. */
const refunds = defineWorkflow("refunds", {
  input: z.object({ orders: z.array(z.string()) }),
  initialNode: "start",
  nodes: [
    node("start"),
    node("ask", { name: "Ask the shop", task: askRefund, inputMapping: { order: "item" } }),
    node("done"),
  ],
  transitions: [
    transition({
      from: "start",
      to: "ask",
      siblingGroup: "orders",
      foreach: { collection: "input.orders", itemVar: "item" },
    }),
    transition({ from: "ask", to: "done", synchronization: { siblingGroup: "orders", strategy: "all" } }),
  ],
});

const askAudit = defineTask({
  id: "ask_audit",
  input: z.object({}),
  steps: [
    step("ask", {
      action: { kind: "human.approve", prompt: "Close the books?", approval: { notRequester: true } },
    }),
  ],
});

/** Asks a person who did not start the run. */
const audit = defineWorkflow("audit", {
  input: z.object({}),
  initialNode: "ask",
  nodes: [node("ask", { task: askAudit, inputMapping: {} })],
  transitions: [],
});

const letter = z.object({ subject: z.string().min(3), urgent: z.boolean().optional() });

const reviewLetter = defineTask({
  id: "review_letter",
  input: z.object({ subject: z.string() }),
  steps: [
    step("ask", {
      action: { kind: "human.review", prompt: "Send this letter?", schema: schemaOf(letter) },
    }),
  ],
});

const askAddress = defineTask({
  id: "ask_address",
  input: z.object({ name: z.string() }),
  steps: [
    step("ask", {
      action: {
        kind: "human.input",
        prompt: "Where does {{ name }} live?",
        schema: schemaOf(
          z.object({
            street: z.string().min(3).meta({ description: "With the number of the house." }),
            zip: z.string().regex(/^[0-9]{5}$/),
            floor: z.int().min(0).optional(),
            lift: z.boolean(),
            kind: z.enum(["home", "office"]),
            people: z.array(z.object({ name: z.string() })).optional(),
          }),
        ),
      },
    }),
  ],
});

const letters = defineWorkflow("letters", {
  input: z.object({ name: z.string(), subject: z.string() }),
  context: z.object({ address: z.unknown(), verdict: z.unknown() }),
  initialNode: "address",
  nodes: [
    node("address", {
      task: askAddress,
      inputMapping: { name: "input.name" },
      outputMapping: { "state.address": "result" },
    }),
    node("review", {
      task: reviewLetter,
      inputMapping: { subject: "input.subject" },
      outputMapping: { "state.verdict": "result" },
    }),
  ],
  transitions: [transition({ from: "address", to: "review" })],
  outputMapping: { address: "state.address", verdict: "state.verdict" },
});

/** Takes longer than its time, and asks for more. */
const slowErrand = defineWorkflow("slow_errand", {
  input: z.object({ url: z.string() }),
  timeoutMs: 1_000,
  initialNode: "visit",
  nodes: [node("visit", { task: "errand", inputMapping: { url: "input.url", item: "'one'" } })],
  transitions: [],
});

/** Asks an agent that does not exist. */
const haunted = defineWorkflow("haunted", {
  input: z.object({}),
  initialNode: "ask",
  nodes: [node("ask", { agent: "ghost", inputMapping: { message: "'Boo.'" } })],
  transitions: [],
});

function schemaOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...members } = z.toJSONSchema(schema);
  // SAFETY: a JSON Schema is JSON.
  return members as JsonObject;
}

/** A channel that takes each text as a letter. */
const letterbox: ChannelAdapter = {
  async receive(request) {
    const thread = crypto.randomUUID();
    const kind = { isDirect: true, isMention: false, isAutomatic: false };
    const event = { id: thread, thread, sender: "ann", surface: null, text: await request.text(), ...kind };
    return { events: [event], response: new Response() };
  },
  deliver: async () => ({ status: "delivered" }),
};

const app = dramatis({
  libraries: [
    defineLibrary("work", {
      personas: [clerk, visitor, titler, porter, telegraphist],
      tools: [pay, research, flaky, transfer, payTwice, askPorter, errand, payOut],
      modelProfiles: [priced, terse],
      tasks: [askRefund, askAudit, reviewLetter, askAddress, askPayout],
      workflows: [errands, refunds, payout, payoutDesk, audit, letters, slowErrand, haunted],
    }),
  ],
  mcpServers: { desk: { url: `http://${allowedHost || "127.0.0.1:9"}/desk` } },
  agents: [
    { id: "clerk", persona: "work/clerk" },
    { id: "titler", persona: "work/titler" },
    { id: "porter", persona: "work/porter" },
    { id: "telegraphist", persona: "work/telegraphist" },
  ],
  channels: { letterbox: { agent: "clerk", adapter: () => letterbox, user: () => ({ subject: "local" }) } },
});

export const { Conversation, Agent, Coordinator, Trigger, Channel, EventLog, Workspace, Executor } = app;
export default app.handler;
