import { defineAgent } from "dramatis";
import { refund } from "./refund";

const clerk = defineAgent({
  id: "clerk",
  name: "Clerk",
  instructions: "You help customers of a shop. Refund an order if the customer asks for it.",
  tools: [refund],
  examples: ['!tool refund {"order": "A-7"}'],
});

/** The agents of the application, in the order of the console. */
export const agents = [clerk];
