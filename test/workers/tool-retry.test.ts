/** Attempts of tool calls on the real Worker, with its Executor. */
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { LiveConversation } from "../../src/client/state.ts";
import { checkInvariants, crash, createAgent, createConversation, request } from "./world.ts";

let persistent: string;

beforeAll(async () => {
  persistent = await createAgent("test/persistent");
});

afterEach(checkInvariants);

const isOver = (turnId: string) => (state: LiveConversation) =>
  state.turns.some(({ id, status }) => id === turnId && status !== "active");

/** Calls a tool, and returns its result as text. */
const calling = (call: string, input: object) => (key: string) => ({
  replies: [[{ call, input: { key, ...input } }], [{ text: "Done." }]],
});

test("A45 TOOLRETRY-1 a tool that fails twice and then works is one call with one result, and each failure is visible", async () => {
  const conversation = await createConversation(persistent);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(calling("flaky", { failures: 2 }));
  await client.until(isOver(turnId));
  const runs = await play.runs(3);
  expect(new Set(runs.map(({ operationId }) => operationId)).size).toBe(1);
  const turn = await conversation.turn(turnId);
  expect(turn.moves[0]).toMatchObject({
    toolCall: { attempt: 3 },
    toolResult: { success: true, result: { runs: 3 } },
  });
  expect(turn).not.toHaveProperty("issues");
  const [operationId] = runs.map((run) => run.operationId);
  const errors = client.framesOf("error").map((frame) => [frame.operationId, frame.data.message]);
  expect(errors).toEqual([
    [operationId, "Run 1 failed."],
    [operationId, "Run 2 failed."],
  ]);
  const journal = await conversation.journal();
  expect(journal.filter(({ type }) => type === "tool.call.failed")).toMatchObject([
    { operationId, data: { attempt: 1, code: "EXECUTION_FAILED" } },
    { operationId, data: { attempt: 2, code: "EXECUTION_FAILED" } },
  ]);
  expect(await play.requests()).toHaveLength(2);
});

test("A45 TOOLRETRY-1 after its last attempt the model gets the error; a failure that the tool reported is tried once", async () => {
  const conversation = await createConversation(persistent);
  const client = await conversation.connect();
  const tired = await conversation.play(calling("flaky", { failures: 9 }));
  const refused = await conversation.play(calling("fails", { retriable: false }));
  await client.until(isOver(tired.turnId));
  await client.until(isOver(refused.turnId));
  expect(await tired.play.runs(3)).toHaveLength(3);
  expect(await refused.play.runs(1)).toHaveLength(1);
  const error = { code: "EXECUTION_FAILED", message: "Run 3 failed." };
  expect((await conversation.turn(tired.turnId)).moves[0]).toMatchObject({ toolResult: { error } });
  expect(await conversation.turn(tired.turnId)).toMatchObject({ issues: { toolFailures: 1 } });
});

test("TOOLRETRY-3 H1 a crash during an attempt repeats it, without using up an attempt", async () => {
  const conversation = await createConversation(persistent);
  const { play, turnId } = await conversation.play(calling("flaky", { failures: 2, gate: "third" }));
  await play.reached("third");
  await crash();
  await conversation.view();
  await play.reached("third", 2);
  await play.open("third");
  await vi.waitFor(async () => expect((await conversation.turn(turnId)).status).toBe("completed"), 20_000);
  const [move] = (await conversation.turn(turnId)).moves;
  expect(move).toMatchObject({ toolCall: { attempt: 3 }, toolResult: { success: true } });
});

test("TOOLRETRY-2 STOP-1 a stop ends the pause before an attempt", async () => {
  const conversation = await createConversation(persistent);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(calling("slow_again", {}));
  await client.until(() => client.framesOf("error").length === 1);
  const [status, turn] = await conversation.stop(turnId);
  expect([status, turn.status, turn.error?.code]).toEqual([200, "failed", "CANCELLED"]);
  expect(await play.runs(1)).toHaveLength(1);
});

test("TOOLFORM-3 AUTHOR-2 a posted tool has attempts in its version; attempts of a `once` tool are refused with the fix", async () => {
  const library = `lib${crypto.randomUUID().slice(0, 8)}`;
  const post = async (body: object) => {
    const init = {
      method: "POST",
      body: JSON.stringify({ name: "posted", description: "Posted.", ...body }),
    };
    const response = await request(`/api/libraries/${library}/tools`, init);
    return [response.status, await response.json<object>()] as const;
  };
  const retry = { maxAttempts: 4, backoffMs: 10 };
  const [created, version] = await post({ id: "again", task: "test/save", retry });
  expect([created, version]).toMatchObject([201, { version: 1, definition: { retry } }]);
  const [same] = await post({ id: "again", task: "test/save", retry: { backoffMs: 10, maxAttempts: 4 } });
  expect(same).toBe(200);
  const [refused, problem] = await post({ id: "charge", task: "test/charge", retry });
  const message = expect.stringContaining('Declare `effect: "idempotent"`');
  expect([refused, problem]).toMatchObject([422, { errors: [{ path: "/retry", message }] }]);
});
