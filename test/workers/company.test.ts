/** Agents that talk with each other in one conversation, on the real Worker. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { JournalEntryView, TurnSummary } from "../../src/protocol/conversation-schemas.ts";
import { Play } from "./provider.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

let guide: string;
let lawyer: string;

beforeAll(async () => {
  guide = await createAgent("test/plain");
  lawyer = await createAgent({
    identity: { systemPrompt: "You are the lawyer.", modelProfileId: "test/scripted" },
  });
});

afterEach(checkInvariants);

async function join({ path }: TestConversation, id: string): Promise<void> {
  const body = JSON.stringify({ type: "agent", id });
  expect((await request(`${path}/participants`, { method: "POST", body })).status).toBe(200);
}

async function turnsOf({ path }: TestConversation): Promise<TurnSummary[]> {
  const response = await request(`${path}/turns?limit=200`);
  return (await response.json<{ turns: TurnSummary[] }>()).turns;
}

describe("agents that mention each other", () => {
  test("TALK-1 TALK-2 two agents that mention each other stop at the bound, also after a crash, and every entrance shows it", async () => {
    const conversation = await createConversation(guide);
    await join(conversation, lawyer);
    const client = await conversation.connect();
    const play = new Play({
      replies: [[{ pass: `@${guide} @${lawyer}` }]],
    });
    client.send({ type: "turn.start", id: "one", content: play.content });
    await play.requests(3);
    await conversation.evict();
    await play.requests(8);
    const turns = await vi.waitFor(async () => {
      const found = await turnsOf(conversation);
      expect(found.map(({ status }) => status)).toEqual(Array(8).fill("completed"));
      return found;
    }, 10_000);
    expect(turns.map(({ agentId }) => agentId)).toEqual(
      Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? guide : lawyer)),
    );
    expect(turns.map(({ caller }) => caller)).toEqual(
      turns.map((_, n) => {
        const before = turns[n - 1];
        return before === undefined
          ? undefined
          : { type: "agent", agentId: before.agentId, turnId: before.id };
      }),
    );
    expect(turns.map(({ issues }) => issues?.notAsked)).toEqual([...Array(7).fill(undefined), [guide]]);
    const messages = await conversation.messages();
    expect(messages.map(({ role }) => role)).toEqual(["user", ...Array(8).fill("agent")]);
    const journal: JournalEntryView[] = await conversation.journal();
    expect(journal.filter(({ type }) => type === "turn.unasked")).toHaveLength(1);
  });
});

describe("a mention that starts no turn", () => {
  /** The mentioned agents that got no turn, with the reasons in the journal. */
  async function ignoredMentionsOf(conversation: TestConversation) {
    const journal = await conversation.journal();
    return journal
      .filter(({ type }) => type === "turn.unasked")
      .map(({ turnId, data }) => ({ turnId, data }));
  }

  test("TALK-2 TALK-3 of an agent without a price, in a turn with a budget in dollars, has the reason budget", async () => {
    const priced = await createAgent({
      identity: { systemPrompt: "You are the guide.", modelProfileId: "test/priced" },
    });
    const conversation = await createConversation(priced);
    await join(conversation, lawyer);
    const { turnId } = await conversation.play(
      { replies: [[{ text: `What do you think, @${lawyer}?` }]] },
      { to: priced, budget: { usd: 1_000 } },
    );
    expect(await conversation.ended(turnId)).toMatchObject({
      status: "completed",
      issues: { notAsked: [lawyer] },
    });
    expect(await ignoredMentionsOf(conversation)).toEqual([
      { turnId, data: { agentId: lawyer, reason: "budget" } },
    ]);
    expect(await turnsOf(conversation)).toHaveLength(1);
  });
});

test("HANDOFF-1 HANDOFF-2 by HTTP: an agent joins with a handoff that opens its session, and an invalid handoff is refused", async () => {
  const conversation = await createConversation(guide);
  const { turnId } = await conversation.play({ replies: [[{ text: "It is blue." }]] });
  await conversation.ended(turnId);
  const add = (body: object) =>
    request(`${conversation.path}/participants`, { method: "POST", body: JSON.stringify(body) });
  expect((await add({ type: "agent", id: lawyer, handoff: "everything" })).status).toBe(422);
  const answer = await add({ type: "agent", id: lawyer, handoff: "latest-turn" });
  expect(answer.status).toBe(200);
  const view = await answer.json<{ participants: object[] }>();
  expect(view.participants).toContainEqual({ type: "agent", id: lawyer });
  await conversation.evict();
  const { play, turnId: second } = await conversation.play(
    { replies: [[{ text: "Seen." }]] },
    { to: lawyer },
  );
  await conversation.ended(second);
  const [asked] = await play.requests(1);
  const [, told] = asked?.body.messages ?? [];
  expect(told?.content).toMatch(/^You join this conversation here\..*It is blue\./s);
});
