import { defineAgent } from "dramatis";
import { refund } from "./refund";

const clerk = defineAgent({
  id: "clerk",
  name: "Clerk",
  instructions: "You help customers of a shop. Refund an order if the customer asks for it.",
  tools: [refund],
  examples: ['!tool refund {"order": "A-7"}'],
});

/** The agents of the application. The console opens with the first. */
export const agents = [clerk];
