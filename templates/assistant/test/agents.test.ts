import { call, createTestApp } from "dramatis/testing";
import { expect, test } from "vitest";
import { agents } from "../src/agents";

test("the assistant calculates with its tool", async () => {
  const app = createTestApp({ agents });
  app.model.script(call("calculator", { expression: "12 * 34" }), "It is 408.");
  const turn = await app.send("assistant", "What is 12 * 34?");
  expect(turn).toMatchObject({ text: "It is 408.", calls: [{ name: "calculator", output: 408 }] });
});

test("the calculator explains what it cannot do", async () => {
  const app = createTestApp({ agents });
  app.model.script(call("calculator", { expression: "1 / 0" }), "That has no value.");
  const turn = await app.send("assistant", "What is 1 / 0?");
  expect(turn.calls[0]?.error?.message).toContain("not a calculation");
});
