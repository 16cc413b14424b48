import { defineAgent } from "dramatis";
import { findNotes } from "./notes";

const researcher = defineAgent({
  id: "researcher",
  name: "Researcher",
  description: "Finds facts in the notes of the company.",
  instructions: "You find facts in the notes. Quote what you found. Say so if you found nothing.",
  tools: [findNotes],
  examples: ["What do our notes say about refunds?"],
});

const writer = defineAgent({
  id: "writer",
  name: "Writer",
  description: "Writes short texts from facts.",
  instructions: "You write short, plain texts. Use only the facts that you get.",
  examples: ["Write an answer to a customer: refunds take 14 days."],
});

const manager = defineAgent({
  id: "manager",
  name: "Manager",
  instructions:
    "You lead a researcher and a writer. Get the facts first, then the text. Answer greetings yourself.",
  agents: [researcher, writer],
  examples: ["Ask the researcher about refunds", "Ask the writer to greet a customer"],
});

/** The agents of the application. The console lists the agents in this order. After them it lists the agents that they ask. */
export const agents = [manager];
