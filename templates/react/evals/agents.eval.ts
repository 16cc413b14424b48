import { call, contains, defineEval, evalAgent, toolOrder } from "dramatis/testing";
import { agents } from "../src/agents";

// With `dramatis eval --live`, a model answers cases without `replies`.
export default defineEval({
  name: "assistant",
  data: [
    {
      input: "What is 12 * 34?",
      expected: "408",
      replies: [call("calculator", { expression: "12 * 34" }), "12 * 34 is 408."],
    },
  ],
  run: evalAgent({ agents }, "assistant"),
  scorers: [contains(), toolOrder(["calculator"])],
});
