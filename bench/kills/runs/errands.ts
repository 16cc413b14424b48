/** The workflows of the scenario `runs`: a fan-out of errands. Each errand is looked up and then charged once. */
import { z } from "zod";
import { defineTask } from "../../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../../src/library/define/define-workflow.ts";
import type { ToolContext } from "../../../src/library/tools/tool.ts";
import { ERRANDS } from "./names.ts";

const TIMEOUT_MS = 60_000;

const errand = z.object({ url: z.string(), call: z.string() });
const done = z.object({ call: z.string() });

/** Sends a request to the desk, with the id of the operation. */
async function ask(
  path: string,
  { url, call }: z.output<typeof errand>,
  { operationId, context, signal }: ToolContext,
): Promise<z.output<typeof done>> {
  const query = new URLSearchParams({ call, run: context.runId ?? "" });
  const headers = { "idempotency-key": operationId };
  const response = await fetch(`${url}/${path}?${query}`, { method: "POST", headers, signal });
  await response.text();
  return { call };
}

const look = defineTask({
  id: "look_up",
  input: errand,
  output: done,
  effect: "idempotent",
  timeoutMs: TIMEOUT_MS,
  execute: (input, context) => ask("look", input, context),
});

const charge = defineTask({
  id: "charge_card",
  input: errand,
  output: done,
  effect: "once",
  timeoutMs: TIMEOUT_MS,
  execute: (input, context) => ask("charge", input, context),
});

const lookNode = node("look", {
  task: look,
  inputMapping: { url: "input.url", call: "call" },
  outputMapping: { "output.call": "result.call" },
});
const chargeNode = node("charge", {
  task: charge,
  inputMapping: { url: "input.url", call: "output.call" },
  outputMapping: { "output.charged": "result.call" },
});
const doneNode = node("done", { outputMapping: { "state.fanIn": "fanIn" } });

const each = (to: string, collection: string, itemVar: string) =>
  transition({ from: "start", to, siblingGroup: "errands", foreach: { collection, itemVar } });

const joined = (from: string) =>
  transition({
    ...{ from, to: "done" },
    synchronization: {
      siblingGroup: "errands",
      strategy: "all",
      onTimeout: "proceed_with_available",
      merge: { source: "_branch.output.call", target: "state.calls", strategy: "collect" },
    },
  });

const context = z.object({ calls: z.array(z.unknown()), fanIn: z.unknown() });
const calls = z.array(z.string());

const below = defineWorkflow("below", {
  input: z.object({ url: z.string(), call: z.string(), calls }),
  context,
  initialNode: "start",
  nodes: [node("start"), lookNode, chargeNode, doneNode],
  transitions: [
    each("look", "input.calls", "call"),
    transition({ from: "look", to: "charge" }),
    joined("charge"),
  ],
  outputMapping: { call: "input.call", calls: "state.calls", fanIn: "state.fanIn" },
});

/** The main workflow. For each message it asks `hand`, an agent, to follow it. */
const errands = defineWorkflow(ERRANDS, {
  input: z.object({
    url: z.string(),
    calls,
    pairs: z.array(z.object({ call: z.string(), calls })),
    messages: z.array(z.string()),
  }),
  context,
  initialNode: "start",
  nodes: [
    node("start"),
    lookNode,
    chargeNode,
    node("below", {
      workflow: below,
      inputMapping: { url: "input.url", call: "pair.call", calls: "pair.calls" },
      outputMapping: { "output.call": "result.call" },
    }),
    node("ask", {
      agent: "hand",
      inputMapping: { message: "message" },
      outputMapping: { "output.call": "message" },
    }),
    doneNode,
  ],
  transitions: [
    each("look", "input.calls", "call"),
    each("below", "input.pairs", "pair"),
    each("ask", "input.messages", "message"),
    transition({ from: "look", to: "charge" }),
    ...["charge", "below", "ask"].map(joined),
  ],
  outputMapping: { calls: "state.calls", fanIn: "state.fanIn" },
});

export const errandTasks = [look, charge];
export const errandWorkflows = [below, errands];
