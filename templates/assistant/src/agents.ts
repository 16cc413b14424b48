import { defineAgent } from "dramatis";
import { calculator } from "./calculator";

const assistant = defineAgent({
  id: "assistant",
  name: "Assistant",
  instructions: "You are a friendly assistant. Calculate with your calculator, never in your head.",
  tools: [calculator],
  memory: "user",
  examples: ["What is 12 * 34?", "Remember that my cat is called Miso.", "What is my cat called?"],
});

/** The agents of the application, in the order of the console. */
export const agents = [assistant];
