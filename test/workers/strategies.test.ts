/** The library `strategies` on the real Worker: a conversation calls its tools, and the runs ask the offline model. */
import { afterEach, expect, test } from "vitest";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import { call } from "./run-helpers.ts";
import { checkInvariants, createAgent, createConversation } from "./world.ts";

afterEach(checkInvariants);

const CALLS = [
  { name: "debate", input: { topic: "Tea?" }, members: ["winner", "reasoning", "rounds"] },
  {
    name: "chain_of_verification",
    input: { question: "Who was Ada?" },
    members: ["answer", "draft", "checks"],
  },
  { name: "tree_of_thought", input: { problem: "24?", depth: 3 }, members: ["answer", "path", "scores"] },
  { name: "research", input: { question: "The moon?" }, members: ["answer", "findings", "dropped"] },
];

test.each(CALLS)("A53 a conversation calls $name", async ({ name, input, members }) => {
  const agent = await createAgent({
    identity: { systemPrompt: "You think." },
    tools: { toolIds: [`strategies/${name}`] },
  });
  const conversation = await createConversation(agent);
  const { turnId } = await conversation.say(`!tool ${name} ${JSON.stringify(input)}`);
  expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
  const { moves } = await conversation.turn(turnId);
  const id = moves.flatMap(({ toolCall }) => toolCall?.runId ?? [])[0] ?? "";
  const run = await call<RunView>("GET", `/${id}`, 200);
  expect(run.error).toBeUndefined();
  expect(run.status).toBe("completed");
  expect(Object.keys(run.output ?? {}).sort()).toEqual(members.toSorted());
  const results = moves.flatMap(({ toolResult }) => (toolResult === undefined ? [] : [toolResult.result]));
  expect(results).toEqual([run.output]);
});
