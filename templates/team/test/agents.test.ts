import { call, createTestApp } from "dramatis/testing";
import { expect, test } from "vitest";
import { agents } from "../src/agents";

test("the manager asks the researcher, who finds a note", async () => {
  const app = createTestApp({ agents });
  app.model
    .of("manager")
    .script(call("ask_researcher", { message: "How long do refunds take?" }), "They take 14 days.");
  app.model.of("researcher").script(call("find_notes", { word: "refund" }), "Refunds take 14 days.");
  const turn = await app.send("manager", "How long do refunds take?");
  expect(turn.text).toBe("They take 14 days.");
  expect(app.effects).toMatchObject([{ tool: "find_notes", output: ["Refunds take 14 days."] }]);
});
