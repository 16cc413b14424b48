/** An agent that asks a person before it spends money. */
import { z } from "zod";
import { defineAgent, defineTool } from "../../src/portable.ts";

const refund = defineTool({
  name: "refund",
  description: "Refunds an order.",
  input: z.object({ order: z.string(), cents: z.int().min(1) }),
  effect: "once",
  approval: { by: "operator" },
  execute: ({ order, cents }) => ({ receipt: `receipt-${order}`, cents }),
});

export const agents = [
  defineAgent({ id: "clerk", instructions: "You help customers with their orders.", tools: [refund] }),
];
