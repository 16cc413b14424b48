import { defineTask, defineWorkflow, node, step, transition } from "dramatis";
import { z } from "zod";

/** An operator decides, and not the customer. With `notRequester: true`, an operator cannot decide on an own request either. */
const ask = defineTask({
  id: "ask",
  input: z.object({ order: z.string() }),
  steps: [
    step("ask", {
      action: {
        kind: "human.approve",
        prompt: "Refund the order {{ order }}?",
        approval: { by: "operator" },
      },
    }),
  ],
});

/** Replace the body with a request to your bank. A `once` task never runs twice. */
const pay = defineTask({
  id: "pay",
  input: z.object({ order: z.string() }),
  output: z.object({ receipt: z.string() }),
  effect: "once",
  execute: ({ order }) => ({ receipt: `receipt-${order}` }),
});

export const refund = defineWorkflow("refund", {
  description: "Refunds an order after an operator has approved it.",
  input: z.object({ order: z.string() }),
  context: z.object({ approved: z.boolean(), receipt: z.string() }),
  initialNode: "ask",
  nodes: [
    node("ask", { task: ask, outputMapping: { "state.approved": "result.approved" } }),
    node("pay", { task: pay, outputMapping: { "state.receipt": "result.receipt" } }),
  ],
  transitions: [transition({ from: "ask", to: "pay", condition: "state.approved" })],
  outputMapping: { approved: "state.approved", receipt: "state.receipt" },
});
