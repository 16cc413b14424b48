import { call, createTestApp } from "dramatis/testing";
import { expect, test } from "vitest";
import { agents } from "../src/agents";

test("an order is refunded after a person has approved it", async () => {
  const app = createTestApp({ agents });
  app.model.script(call("refund", { order: "A-7" }), "You get your money.");
  const turn = await app.send("clerk", "Please refund the order A-7.");
  expect(app.effects).toEqual([]);
  const [gate] = app.approvals();
  if (gate === undefined) throw new Error("Nobody is asked.");
  await app.answer(gate, { approved: true });
  expect(app.effects).toMatchObject([{ tool: "pay", output: { receipt: "receipt-A-7" } }]);
  expect((await app.settle(turn)).text).toBe("You get your money.");
});
