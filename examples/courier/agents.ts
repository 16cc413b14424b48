/** An agent with a tool whose result comes hours later: the courier reports it to the handle's address. */
import { z } from "zod";
import { defineAgent, defineTool } from "../../src/portable.ts";

const ship = defineTool({
  name: "ship",
  description: "Sends a parcel, and returns where it was delivered.",
  input: z.object({ to: z.string() }),
  effect: "idempotent",
  async: true,
  execute: async ({ to }, { defer, operationId }) => {
    const deferred = await defer({ expiresInMs: 72 * 3_600_000 });
    // A real courier gets the address with the order, and the operation id as its idempotency key. The address is a permission: log it only
    // on your own machine.
    console.log(`Parcel ${operationId} to ${to}: POST the result to ${deferred.url}`);
    return deferred;
  },
});

export const agents = [
  defineAgent({
    id: "shop",
    instructions: "You send parcels and tell the customer when they arrive.",
    tools: [ship],
  }),
];
