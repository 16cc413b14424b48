/** The order of turns that overlap, on the real Worker. */
import { afterEach, beforeAll, expect, test } from "vitest";
import type { LiveConversation } from "../../src/client/state.ts";
import type { TurnOrder } from "../../src/protocol/conversation-schemas.ts";
import type { Play } from "./provider.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

let plain: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
});

afterEach(checkInvariants);

/** A reply that shows a text and then waits. */
const half = (text: string) => ({ replies: [[{ text }, { gate: "shown" }, { text: " and the rest." }]] });

const isOver = (turnId: string) => (state: LiveConversation) =>
  state.turns.some(({ id, status }) => id === turnId && status !== "active");

async function patch(
  { path }: TestConversation,
  body: object,
): Promise<[status: number, turns: TurnOrder | undefined]> {
  const response = await request(path, { method: "PATCH", body: JSON.stringify(body) });
  const { turns } = await response.json<{ turns?: TurnOrder }>();
  return [response.status, turns];
}

/** The messages of the last request of a script, without the instructions. */
async function lastRequestOf(play: Play): Promise<string[]> {
  const requests = await play.requests(1);
  return (requests.at(-1)?.body.messages ?? []).slice(1).map(({ role, content }) => `${role}: ${content}`);
}

test("ORDER-1 H2 queued turns wait, over HTTP and for a client that connects later, and begin when the previous turn ends", async () => {
  const conversation = await createConversation(plain);
  expect(await patch(conversation, { turns: "queued" })).toEqual([200, "queued"]);
  const one = await conversation.play(half("One"));
  await one.play.reached("shown");
  const two = await conversation.play({ replies: [[{ text: "Two." }]] });
  expect(await conversation.turn(two.turnId)).toMatchObject({ status: "active", phase: "queued" });
  const client = await conversation.connect();
  await client.until(({ turns }) => turns.some(({ id, phase }) => id === two.turnId && phase === "queued"));
  expect(await two.play.requests(0)).toEqual([]);
  await one.play.open("shown");
  await client.until(isOver(two.turnId));
  expect(client.state.turns.map(({ phase }) => phase)).toEqual([undefined, undefined]);
  expect((await lastRequestOf(two.play)).slice(0, -1)).toEqual([
    `user: ${one.play.content}`,
    "assistant: One and the rest.",
  ]);
  expect(client.state.conversation).toMatchObject({ turns: "queued" });
});

test("TITLE-1 LIFE-4 a conversation gets another title, live, in the list and in the journal, until it has ended", async () => {
  const conversation = await createConversation(plain);
  const client = await conversation.connect();
  expect(await patch(conversation, { title: "Trip to Porto" })).toEqual([200, "parallel"]);
  await client.until(({ conversation: shown }) => shown?.title === "Trip to Porto");
  const listed = async () => {
    const response = await request("/api/conversations?order=desc&limit=100");
    const { conversations } = await response.json<{
      conversations: { id: string; title: string | null }[];
    }>();
    return conversations.find(({ id }) => id === conversation.id)?.title;
  };
  await expect.poll(listed).toBe("Trip to Porto");
  for (const title of ["", "  ", 5, "x".repeat(201), "\ud800"])
    expect([title, (await patch(conversation, { title }))[0]]).toEqual([title, 422]);
  const changes = async () =>
    (await conversation.journal()).filter(({ type }) => type === "conversation.updated").length;
  expect(await patch(conversation, { title: "Trip to Porto" })).toEqual([200, "parallel"]);
  expect(await changes()).toBe(1);
  expect(await patch(conversation, { title: null })).toEqual([200, "parallel"]);
  await client.until(({ conversation: shown }) => shown?.title === null);
  await expect.poll(listed).toBeNull();
  expect((await request(`${conversation.path}/complete`, { method: "POST" })).status).toBe(200);
  expect((await patch(conversation, { title: "Late" }))[0]).toBe(409);
});

test("ORDER-2 H2 a message interrupts the active turn, and its model sees the text shown so far", async () => {
  const conversation = await createConversation(plain);
  expect(await patch(conversation, { turns: "interrupt" })).toEqual([200, "interrupt"]);
  const client = await conversation.connect();
  const one = await conversation.play(half("One"));
  await one.play.reached("shown");
  const two = await conversation.play({ replies: [[{ text: "Two." }]] });
  await client.until(isOver(two.turnId));
  expect(await conversation.turn(one.turnId)).toMatchObject({
    status: "failed",
    error: { code: "CANCELLED" },
  });
  expect((await lastRequestOf(two.play)).slice(0, 3)).toEqual([
    `user: ${one.play.content}`,
    "assistant: One",
    expect.stringMatching(/^system: /),
  ]);
  await one.play.closes(1);
});

test("ORDER-3 A20 A21 M17 H2 parallel turns end in any order; the later turn gets a note on the active turn, but not its messages or moves", async () => {
  const conversation = await createConversation(plain);
  expect((await patch(conversation, { turns: "random" }))[0]).toBe(422);
  expect((await patch(conversation, {}))[0]).toBe(422);
  const one = await conversation.play(half("One"));
  await one.play.reached("shown");
  const two = await conversation.play({ replies: [[{ text: "Two." }]] });
  await conversation.ended(two.turnId);
  expect((await conversation.turn(one.turnId)).status).toBe("active");
  const [note, ...others] = await lastRequestOf(two.play);
  expect(note).toMatch(/^system: Other turns of this conversation are in progress/);
  expect(others).toEqual([`user: ${two.play.content}`]);
  await one.play.open("shown");
  await conversation.ended(one.turnId);
  const moves = async (turnId: string) =>
    (await conversation.turn(turnId)).moves.map(({ reasoning }) => reasoning);
  expect(await moves(one.turnId)).toEqual(["One and the rest."]);
  expect(await moves(two.turnId)).toEqual(["Two."]);
  const three = await conversation.play({ replies: [[{ text: "Three." }]] });
  await conversation.ended(three.turnId);
  expect(await lastRequestOf(three.play)).toEqual([
    `user: ${two.play.content}`,
    "assistant: Two.",
    `user: ${one.play.content}`,
    "assistant: One and the rest.",
    `user: ${three.play.content}`,
  ]);
});
