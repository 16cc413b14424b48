/** An editor that asks two critics at the same time, and combines their answers. */
import { defineAgent } from "../../src/portable.ts";

const style = defineAgent({
  id: "style",
  description: "Finds sentences that are hard to read.",
  instructions: "Name the sentence that is hardest to read, and rewrite it.",
});
const facts = defineAgent({
  id: "facts",
  description: "Finds claims without a source.",
  instructions: "Name the claim that needs a source.",
});

export const agents = [
  defineAgent({
    id: "editor",
    instructions: "Ask both critics in one reply. Then give the writer one list.",
    agents: [style, facts],
  }),
];
