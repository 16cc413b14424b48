/** The policy of the real Worker: rules, limits of calls, and the codes of failed calls. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TOOL_ERROR_CODES } from "../../src/protocol/executor-api.ts";
import { seededRepository } from "../support/seeded-repository.ts";
import { post } from "./http-client.ts";
import { Play } from "./provider.ts";
import {
  ADA,
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  type TestConversation,
} from "./world.ts";

interface Call {
  call: string;
  input: object;
}

let guarded: string;

beforeAll(async () => {
  const tools = [
    { id: "bill", name: "bill", description: "Bills.", target: { task: "test/bill" } },
    { id: "ask", name: "ask", description: "Asks.", target: { agent: await createAgent("test/plain") } },
  ];
  for (const tool of tools) expect((await post("/api/libraries/guard/tools", tool, ADA)).status).toBe(201);
  await seededRepository(ADA.tenant, "policed", { "a.txt": "a\n" });
  guarded = await agentIn("policed");
});

afterAll(checkInvariants);

async function agentIn(project: string): Promise<string> {
  const own = ["double", "look_up", "save", "charge", "fails", "march", "hang"].map((id) => `test/${id}`);
  const toolIds = [...own, "guard/bill", "guard/ask", "dramatis/repo_write", "dramatis/shell_exec"];
  const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
  const agent = await post(
    "/api/agents",
    { persona: { identity, tools: { toolIds } }, projectIds: [project, "default"] },
    ADA,
  );
  expect(agent.status, JSON.stringify(agent.body)).toBe(201);
  return agent.body.id;
}

/** Plays a turn with replies of calls. Returns the error codes of the calls, `null` for a success. */
async function codes(conversation: TestConversation, ...replies: Call[][]): Promise<(string | null)[]> {
  const { turnId } = await conversation.play({ replies: [...replies, [{ text: "Done." }]] });
  const { moves } = await conversation.ended(turnId);
  return moves.flatMap(({ toolResult }) =>
    toolResult === undefined ? [] : [toolResult.error?.code ?? null],
  );
}

/** Returns the decisions in the journal. */
async function decisionsOf(conversation: TestConversation) {
  const entries = (await conversation.journal()).filter(({ type }) => type.startsWith("policy."));
  return entries.map(({ type, data }) => [type, data]);
}

test("E26 POLICY-6 POLICY-7 rules by path and host deny calls, and the journal has each rule", async () => {
  const conversation = await createConversation(guarded);
  const secret = { call: "repo_write", input: { path: "%72elease/../release/a", content: "x" } };
  const results = await codes(
    conversation,
    [secret],
    [{ call: "shell_exec", input: { command: "echo 1 > ./release//a" } }],
    [
      {
        call: "look_up",
        input: { key: "k", gate: JSON.stringify({ url: "https://API.example.com:8443/" }) },
      },
    ],
    [{ call: "bill", input: { order: "1", strict: false, prices: "http://2130706433:9/" } }],
    [{ call: "double", input: { n: 1 } }],
  );
  expect(results).toEqual([...Array.from({ length: 4 }, () => "PERMISSION_DENIED"), null]);
  expect(await decisionsOf(conversation)).toEqual([
    ["policy.denied", { rule: "no-release", reason: "Ask Ada." }],
    ["policy.denied", { rule: "no-release", reason: "Ask Ada.", taint: ["tool"] }],
    ["policy.denied", { rule: "no-example", taint: ["tool"] }],
    ["policy.denied", { rule: "network" }],
  ]);
});

test("H8 POLICY-4 a once call after untrusted content asks, and shows its origin", async () => {
  const conversation = await createConversation(guarded);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play((key) => ({
    replies: [
      [{ call: "look_up", input: { key } }],
      [{ call: "charge", input: { key } }],
      [{ text: "Done." }],
    ],
  }));
  const { operationId, data } = await client.frame("approval.requested");
  expect(data).toMatchObject({ name: "charge", policy: { rule: "ask-tainted", taint: ["tool"] } });
  expect((await play.runs()).map(({ tool }) => tool)).toEqual(["look_up"]);
  const approved = await post(
    `${conversation.path}/operations/${operationId}/approval`,
    { approved: true },
    ADA,
  );
  expect(approved.status).toBe(200);
  expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Done." });
  expect((await play.runs()).map(({ tool }) => tool)).toEqual(["look_up", "charge"]);
  expect(await decisionsOf(conversation)).toEqual([
    ["policy.asked", { rule: "ask-tainted", taint: ["tool"] }],
  ]);
});

describe("E27 limits of calls", () => {
  test("EFFECT-7 four foreground calls of a conversation run at a time, and the others follow", async () => {
    const conversation = await createConversation(guarded);
    const client = await conversation.connect();
    const gated = (key: string, call: string, count: number) =>
      Array.from({ length: count }, (_, n) => ({ call, input: { key, n, gate: "door" } }));
    const first = await conversation.play((key) => ({
      replies: [gated(key, "look_up", 3), [{ text: "One." }]],
    }));
    await first.play.reached("door", 3);
    const second = await conversation.play((key) => ({
      replies: [gated(key, "save", 6), [{ text: "Two." }]],
    }));
    await client.frame("tool.requested", () => true, 9);
    await second.play.reached("door", 1);
    const other = await createConversation(guarded);
    expect(await codes(other, [{ call: "double", input: { n: 1 } }]), "another conversation").toEqual([null]);
    expect(await second.play.runs()).toHaveLength(1);
    await first.play.open("door");
    await second.play.reached("door", 4);
    expect(await conversation.ended(first.turnId)).toMatchObject({ answer: "One." });
    expect((await second.play.runs()).map(({ input }) => (input as { n: number }).n).sort()).toEqual([
      0, 1, 2, 3,
    ]);
    await second.play.open("door");
    expect(await conversation.ended(second.turnId)).toMatchObject({ answer: "Two." });
    const runs = await second.play.runs();
    expect(new Set(runs.map(({ operationId }) => operationId)).size).toBe(6);
    expect(runs).toHaveLength(6);
  });

  test("EFFECT-7 a turn with many calls does not hold back the calls of another turn", async () => {
    const conversation = await createConversation(guarded);
    const gated = (key: string, door: string, count: number) =>
      Array.from({ length: count }, (_, n) => ({ call: "save", input: { key, n, gate: `${door}${n}` } }));
    const first = await conversation.play((key) => ({
      replies: [gated(key, "first", 8), [{ text: "One." }]],
    }));
    await first.play.reached("first3");
    const second = await conversation.play((key) => ({
      replies: [gated(key, "second", 3), [{ text: "Two." }]],
    }));
    // The first call of the second turn runs beside four calls of the first turn.
    await second.play.reached("second0");
    expect(await first.play.runs()).toHaveLength(4);
    await second.play.open("second0");
    for (const n of [0, 1]) await first.play.open(`first${n}`);
    await second.play.reached("second1");
    for (const n of [1, 2]) await second.play.open(`second${n}`);
    expect(await conversation.ended(second.turnId)).toMatchObject({ answer: "Two." });
    for (const n of [2, 3, 4, 5, 6, 7]) await first.play.open(`first${n}`);
    expect(await conversation.ended(first.turnId)).toMatchObject({ answer: "One." });
  });

  test("EFFECT-7 calls that wait survive a crash, and run once it is over", async () => {
    const conversation = await createConversation(guarded);
    const gated = (key: string) =>
      Array.from({ length: 6 }, (_, n) => ({ call: "save", input: { key, n, gate: "door" } }));
    const { play, turnId } = await conversation.play((key) => ({
      replies: [gated(key), [{ text: "Six." }]],
    }));
    await play.reached("door", 4);
    await crash();
    await play.open("door");
    const { answer, moves } = await conversation.ended(turnId);
    expect([answer, moves.map(({ toolResult }) => toolResult?.success)]).toEqual([
      "Six.",
      [...Array(6).fill(true), undefined],
    ]);
    expect(new Set((await play.runs()).map(({ operationId }) => operationId)).size).toBe(6);
  });

  test("REPEAT-5 after three time-outs in a row a turn calls a tool no more", async () => {
    const conversation = await createConversation(guarded);
    const hang = { call: "hang", input: {} };
    const double = { call: "double", input: { n: 1 } };
    const results = await codes(conversation, [hang, double], [hang], [hang], [hang], [hang, double]);
    const denied = "PERMISSION_DENIED";
    expect(results).toEqual(["TIMEOUT", null, "TIMEOUT", "TIMEOUT", denied, denied, null]);
    const decision = [
      "policy.denied",
      expect.objectContaining({
        rule: "repeated-timeouts",
        reason: expect.stringContaining("3 calls timed out"),
      }),
    ];
    expect(await decisionsOf(conversation)).toEqual([decision, decision]);
    expect(await codes(conversation, [hang]), "another turn").toEqual(["TIMEOUT"]);
  });

  test("TASK-1 the schema is checked first, also of a call that a rule denies", async () => {
    const conversation = await createConversation(guarded);
    const march = (input: object) => [{ call: "march", input }];
    expect(await codes(conversation, march({ key: 1 }), march({ key: "k", gate: "g" }))).toEqual([
      "INVALID_INPUT",
      "PERMISSION_DENIED",
    ]);
    expect(await decisionsOf(conversation)).toMatchObject([["policy.denied", { rule: "no-march" }]]);
  });
});

test("A46 each code of a failed call reaches the model", async () => {
  const project = "policed";
  const conversation = await createConversation(guarded);
  const write = { call: "repo_write", input: { path: "b.txt", content: "b" } };
  expect(await codes(conversation, [write])).toEqual([null]);
  // The workspace fails for a reason that its caller must not learn.
  const workspace = (exports as unknown as Record<string, DurableObjectNamespace>).Workspace?.getByName(
    `${ADA.tenant}:conv-${conversation.id}`,
  ) as DurableObjectStub;
  await runInDurableObject(workspace, (_, { storage }) => void storage.sql.exec("DROP TABLE receipts"));
  const declined = new Play({ replies: [[{ call: "decline", input: { reason: "No." } }]] });
  const asking = await codes(await createConversation(guarded), [
    { call: "ask", input: { message: declined.content } },
  ]);
  const found = await codes(
    conversation,
    [{ call: "fails", input: { key: "k", retriable: false } }],
    [{ call: "hang", input: {} }],
    [{ call: "nothing", input: {} }],
    [{ call: "march", input: { key: "k", gate: "g" } }],
    [{ call: "double", input: { n: "one" } }],
    [{ call: "repo_write", input: { path: "c.txt", content: project } }],
  );
  const expected = [
    ...["AGENT_DECLINED", "EXECUTION_FAILED", "TIMEOUT", "NOT_FOUND"],
    ...["PERMISSION_DENIED", "INVALID_INPUT", "INTERNAL_ERROR"],
  ];
  expect([...asking, ...found]).toEqual(expected);
  // Other tests produce the codes that the platform adds.
  const added = ["APPROVAL_DENIED", "CANCELLED", "BUDGET_EXCEEDED"];
  expect([...expected, ...added].sort()).toEqual([...TOOL_ERROR_CODES].sort());
});
