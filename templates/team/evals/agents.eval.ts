import { call, contains, defineEval, evalAgent, toolOrder } from "dramatis/testing";
import { agents } from "../src/agents";

// With `dramatis eval --live`, a model answers cases without `replies`.
export default defineEval({
  name: "manager",
  data: [
    {
      input: "How long do refunds take?",
      expected: "14 days",
      replies: [
        call("ask_researcher", { message: "How long do refunds take?" }),
        call("find_notes", { word: "refund" }),
        "Refunds take 14 days.",
        "They take 14 days.",
      ],
    },
  ],
  run: evalAgent({ agents }, "manager"),
  scorers: [contains(), toolOrder(["ask_researcher"])],
});
