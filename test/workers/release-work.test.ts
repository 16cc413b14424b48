/**
 * Recorded conversations with queues, approvals, handles, hooks, compactions and limits, in real actors at the time of
 * their recording: their work ends, and they continue.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { DAY_MS } from "../../src/shared/time.ts";
import { PARTNERS, RECORDED_ENDS, RECORDED_ENTRIES } from "../support/releases/ends.ts";
import type { Recording } from "../support/releases/format.ts";
import { RECORDED_HELPER } from "../support/releases/library.ts";
import { openGate, runsOf } from "./provider.ts";
import { activeTurns, agentOf, arm, install, type Released, recorded, revive } from "./released.ts";
import { request, type TestConversation } from "./world.ts";

// Approvals and handles expire in a day.
const pass = (now: number) => vi.useFakeTimers({ toFake: ["Date"], now, shouldAdvanceTime: true });
afterAll(() => void vi.useRealTimers());

beforeAll(async () => {
  for (const recording of recorded("agent")) await install(agentOf(recording), recording);
  for (const agent of [LEARNER, HELPER]) await post("/api/agents", agent, 201);
});

const WORK = recorded("conversation").filter(({ name }) => name in RECORDED_ENTRIES);

const identity = { systemPrompt: "You are recorded.", modelProfileId: "test/scripted" };
/** The agent that notes extracted memories. */
const LEARNER = { id: "recorded-learner", persona: { identity, memory: { scope: "agent" } } };
const HELPER = { id: RECORDED_HELPER, persona: { identity, tools: { toolIds: ["release/refund"] } } };

const post = async (path: string, body: object, status: number) => {
  const response = await request(path, { method: "POST", body: JSON.stringify(body) });
  expect(response.status, await response.clone().text()).toBe(status);
};

/** Wakes a recorded conversation and its partner, and answers all that they wait for. */
async function resume(recording: Released): Promise<TestConversation> {
  pass(recording.now);
  const partner = WORK.find(
    ({ name, release }) => release === recording.release && name === PARTNERS[recording.name],
  );
  const taken = [recording, ...(partner === undefined ? [] : [partner])];
  const revived: TestConversation[] = [];
  for (const one of taken) revived.push(await revive(one, 0));
  for (const { views } of taken) {
    const turns = views.turns as { input: string }[];
    for (const { input } of turns) await openGate(JSON.parse(input).key, "hold");
  }
  // The platform may have fired a wake-up before, because it is due.
  for (const conversation of revived) await conversation.wake();
  for (const [index, { views, handles = [] }] of taken.entries()) {
    const { operations } = views.snapshot as { operations: { id: string; state: string }[] };
    for (const { id } of operations.filter(({ state }) => state === "awaiting_approval"))
      await post(`${revived[index]?.path}/operations/${id}/approval`, { approved: true }, 200);
    for (const handle of handles) await post(`/api/operations/${handle}/result`, { result: "One." }, 200);
  }
  const [conversation = expect.fail()] = revived;
  const { journal = [] } = recording.views as Record<string, object[]>;
  expect((await conversation.journal()).slice(0, journal.length)).toMatchObject(journal);
  return conversation;
}

/** The number of later entries of each type that the recording's end has. */
async function ended(conversation: TestConversation, { name, views }: Recording) {
  const later = (await conversation.journal()).slice((views.journal as unknown[]).length);
  const types = Object.keys(RECORDED_ENTRIES[name] ?? {});
  return Object.fromEntries(types.map((type) => [type, later.filter((entry) => entry.type === type).length]));
}

describe.each(WORK)("G4 conversation $name of $release on workerd", (recording) => {
  test("ends its work, and continues", async () => {
    const conversation = await resume(recording);
    const active = activeTurns(recording);
    const ends = await Promise.all(active.map(({ id }) => conversation.ended(id)));
    expect(ends.map(({ status, moves }) => [status, moves.at(-1)?.reasoning])).toEqual(
      RECORDED_ENDS[recording.name],
    );
    await expect.poll(() => ended(conversation, recording)).toEqual(RECORDED_ENTRIES[recording.name]);
    for (const { key } of active)
      expect((await runsOf(key)).filter(({ tool }) => ["charge", "pay"].includes(tool))).toEqual([]);
    const said = await conversation.messages();
    for (const message of (recording.views.messages as object[] | undefined) ?? [])
      expect(said).toContainEqual(message);
    // The conversation of a call ends with the call.
    if ((await conversation.view()).status === "completed") return;
    const { turnId } = await conversation.say(
      JSON.stringify({ key: crypto.randomUUID(), replies: [[{ text: "And after that?" }]] }),
    );
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
    if (recording.name === "during-extraction") {
      const learned = async () => (await request(`/api/agents/${LEARNER.id}/memories`)).text();
      await expect.poll(learned).toContain("Ada is recorded.");
    }
  });
});

test.each(WORK.filter(({ name }) => name === "retained"))(
  "G4 LASTING-1 conversation $name of $release on workerd: its wake-up deletes it after its retention",
  async (recording) => {
    pass(recording.now + 8 * DAY_MS);
    const conversation = await revive(recording);
    await arm(conversation.stub, 0, "dramatis-retention");
    await conversation.wake();
    await expect.poll(async () => (await request(conversation.path)).status).toBe(404);
  },
);
