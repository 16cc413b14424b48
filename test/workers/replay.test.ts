/** Replays of ended turns on the real Worker: no request reaches the model, no tool runs, and the entries are equal. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/http.ts";
import type { TurnReplay } from "../../src/protocol/recording.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { replayRecording } from "../../src/testing/index.ts";
import type { StepScript } from "../support/provider-script.ts";
import { Play } from "./provider.ts";
import { ADA, checkInvariants, createAgent, createConversation, request, TestConversation } from "./world.ts";

let plain: string;
let handy: string;
let careful: string;
let backed: string;
let manager: string;

beforeAll(async () => {
  [plain, handy, careful, backed] = await Promise.all([
    createAgent("test/plain"),
    createAgent("test/handy"),
    createAgent("test/careful"),
    createAgent("test/backed"),
  ]);
  const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });
  const helper = await createAgent({ identity: identity("You are the helper.") });
  const tool = { id: "ask_replayed", name: "ask_replayed", description: "Asks.", target: { agent: helper } };
  const made = await request("/api/libraries/replays/tools", { method: "POST", body: JSON.stringify(tool) });
  expect(made.status).toBe(201);
  manager = await createAgent({ identity: identity("Ask."), tools: { toolIds: ["replays/ask_replayed"] } });
});

afterEach(checkInvariants);

const say = (text: string): StepScript[] => [{ text }];
const ASK = { name: "ask", description: "Asks the user.", inputSchema: { type: "object" } };

interface Started {
  conversation: TestConversation;
  play: Play;
  turnId: string;
}

async function replayOf({ path }: TestConversation, turnId: string, principal?: Principal) {
  const response = await request(`${path}/turns/${turnId}/replay`, { method: "POST" }, principal);
  // SAFETY: the API answers a replay or a problem; the tests assert which.
  return { status: response.status, body: (await response.json()) as TurnReplay & { code?: string } };
}

/** Replays an ended turn, and expects no request, no run, and no difference in the live replay and in the fixture's. */
async function expectReplayed({ conversation, play, turnId }: Started, partial?: TurnReplay["partial"]) {
  await conversation.ended(turnId);
  const before = {
    requests: await play.requests(),
    runs: await play.runs(),
    journal: await conversation.journal(),
  };
  const replay = { calls: 0, divergence: null, ...(partial && { partial }) };
  expect(await replayOf(conversation, turnId)).toEqual({ status: 200, body: replay });
  const recording = await request(`${conversation.path}/turns/${turnId}/recording`);
  expect(recording.status).toBe(200);
  expect(replayRecording(await recording.json())).toEqual(replay);
  expect(await play.requests()).toEqual(before.requests);
  expect(await play.runs()).toEqual(before.runs);
  expect(await conversation.journal()).toEqual(before.journal);
}

async function started(agent: string, ...given: Parameters<TestConversation["play"]>): Promise<Started> {
  const conversation = await createConversation(agent);
  return { conversation, ...(await conversation.play(...given)) };
}

describe("H3 REPLAY-1 a turn replays without a call", () => {
  test("H3 REPLAY-1 a plain turn", async () => {
    await expectReplayed(await started(plain, { replies: [say("Hello.")] }));
  });

  test("H3 REPLAY-1 a turn with tools of each effect, and an unknown tool", async () => {
    const turn = await started(handy, (key) => ({
      replies: [
        [
          { call: "double", input: { n: 4 } },
          { call: "save", input: { key, n: 1 } },
          { call: "missing", input: {} },
        ],
        [
          { call: "charge", input: { key, n: 2 } },
          { call: "fails", input: {} },
        ],
        say("Done."),
      ],
    }));
    await expectReplayed(turn);
  });

  test("H3 REPLAY-1 a model call that failed and was repeated, and a stream that was reset", async () => {
    const attempts = [
      { status: 503, message: "Busy." },
      [{ text: "Half" }, { cut: true as const }],
      say("Whole."),
    ];
    await expectReplayed(await started(plain, { replies: [{ attempts }] }));
  });

  test("H3 REPLAY-1 a fallback to another model", async () => {
    await expectReplayed(
      await started(backed, { replies: [{ attempts: [{ status: 401, message: "No." }, say("Yes.")] }] }),
    );
  });

  test("H3 REPLAY-1 CAUSE-1 a withdrawn answer is named as partial", async () => {
    const output = {
      name: "number",
      schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    };
    const turn = await started(plain, { replies: [say('{"n": "x"}'), say('{"n": 1}')] }, { output });
    await turn.conversation.ended(turn.turnId);
    const journal = await turn.conversation.journal();
    const seq = journal.find(({ type }) => type === "message.reset")?.seq ?? 0;
    await expectReplayed(turn, [{ seq, reason: "The text of the withdrawn answer is not stored." }]);
  });

  test.each([true, false])("H3 REPLAY-1 an approval, granted: %s", async (approved) => {
    const conversation = await createConversation(careful);
    const client = await conversation.connect();
    const turn = await conversation.play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], say("Done.")],
    }));
    const { operationId } = await client.frame("approval.requested");
    const init = { method: "POST", body: JSON.stringify({ approved, reason: "As agreed." }) };
    await request(`${conversation.path}/operations/${operationId}/approval`, init);
    await expectReplayed({ conversation, ...turn });
  });

  test("H3 REPLAY-1 a call of a client's tool", async () => {
    const conversation = await createConversation(plain);
    const client = await conversation.connect();
    const turn = await conversation.play(
      { replies: [[{ call: "ask", input: {} }], say("Fine.")] },
      { tools: [ASK] },
    );
    const { operationId = "" } = await client.frame("tool.requested");
    await conversation.result(operationId, { result: { answer: "yes" } });
    await expectReplayed({ conversation, ...turn });
  });

  test("H3 REPLAY-1 a call of another agent, and the turn of the called agent", async () => {
    const child = new Play({ replies: [say("Forty-two.")] });
    const turn = await started(manager, {
      replies: [[{ call: "ask_replayed", input: { message: child.content } }], say("It is 42.")],
    });
    await expectReplayed(turn);
    const { moves } = await turn.conversation.turn(turn.turnId);
    const below = new TestConversation(moves[0]?.toolCall?.agent?.conversationId ?? "");
    const { id = "" } =
      (await (await request(`${below.path}/turns`)).json<{ turns: { id: string }[] }>()).turns[0] ?? {};
    await expectReplayed({ conversation: below, play: child, turnId: id });
  });

  test("H3 REPLAY-1 a stopped turn keeps its shown text", async () => {
    const turn = await started(plain, { replies: [[{ text: "Once upon" }, { gate: "never" }]] });
    await turn.play.reached("never");
    await turn.conversation.stop(turn.turnId, { reason: "Enough." });
    await expectReplayed(turn);
    await turn.play.open("never");
  });

  test("H3 REPLAY-1 a turn that answers a message again with the calls of the earlier turn", async () => {
    const turn = await started(handy, {
      replies: [[{ call: "double", input: { n: 4 } }], say("Eight.")],
    });
    await turn.conversation.ended(turn.turnId);
    const init = { method: "POST", body: "{}" };
    const response = await request(`${turn.conversation.path}/turns/${turn.turnId}/regenerate`, init);
    const { turnId } = await response.json<{ turnId: string }>();
    await expectReplayed({ ...turn, turnId });
  });

  test("H3 REPLAY-1 a turn that failed", async () => {
    await expectReplayed(await started(plain, { replies: [{ status: 400, message: "Bad request." }] }));
  });
});

describe("H3 who may replay", () => {
  test("H3 REPLAY-1 an active turn and a turn with erased content are conflicts", async () => {
    const turn = await started(plain, { replies: [[{ gate: "open" }, ...say("Hello.")]] });
    await turn.play.reached("open");
    expect(await replayOf(turn.conversation, turn.turnId)).toMatchObject({
      status: 409,
      body: { code: "CONFLICT" },
    });
    await turn.play.open("open");
    await turn.conversation.ended(turn.turnId);
    const [message] = await turn.conversation.messages();
    const erased = await request(`${turn.conversation.path}/events/${message?.id}`, { method: "DELETE" });
    expect(erased.status).toBe(204);
    expect(await replayOf(turn.conversation, turn.turnId)).toMatchObject({
      status: 409,
      body: { code: "CONFLICT" },
    });
  });

  test("H3 RECORDINGS-1 readers replay a turn; only principals that may delete the conversation export it", async () => {
    const turn = await started(plain, { replies: [say("Hello.")] });
    await turn.conversation.ended(turn.turnId);
    const stranger: Principal = { subject: "eve", tenant: ADA.tenant, roles: ["member"] };
    expect((await replayOf(turn.conversation, turn.turnId, stranger)).status).toBe(404);
    const exported = await request(`${turn.conversation.path}/turns/${turn.turnId}/recording`, {}, stranger);
    expect(exported.status).toBe(404);
    const operator: Principal = { subject: "olga", tenant: ADA.tenant, roles: ["operator"] };
    expect((await replayOf(turn.conversation, turn.turnId, operator)).status).toBe(200);
    expect((await replayOf(turn.conversation, "turn_01JD0000000000000000000001")).status).toBe(404);
  });

  test("H3 RECORDING-1 the client reads a recording and a replay; the recording leaves out other turns", async () => {
    const conversation = await createConversation(plain);
    const first = await conversation.play({ replies: [say("One.")] });
    await conversation.ended(first.turnId);
    const second = await conversation.play({ replies: [say("Two.")] });
    await conversation.ended(second.turnId);
    const client = createClient({
      baseUrl: "http://dramatis.test",
      fetch: (input, init) => request(new URL(new Request(input).url).pathname, init),
    });
    const recording = await client.turns.recording(conversation.id, first.turnId);
    expect(JSON.stringify(recording)).not.toContain("Two.");
    expect(recording.rows.flatMap(({ entries }) => entries.map(({ type }) => type))).toEqual([
      ...[
        "turn.started",
        "message.user",
        "message.started",
        "message.completed",
        "turn.completed",
        "turn.finalized",
      ],
    ]);
    expect(await client.turns.replay(conversation.id, first.turnId)).toEqual({ calls: 0, divergence: null });
  });
});
