import { contains, defineEval, evalAgent } from "dramatis/testing";
import { agents } from "../src/agents";

// With `dramatis eval --live`, a model answers cases without `replies`.
export default defineEval({
  name: "clerk",
  data: [{ input: "Hello", expected: "order", replies: ["Hello! Which order do you mean?"] }],
  run: evalAgent({ agents }, "clerk"),
  scorers: [contains()],
});
