/** The order of turns that overlap, on the real Worker. */
import { afterEach, beforeAll, expect, test } from "vitest";
import type { LiveConversation } from "../../src/client/state.ts";
import type { TurnOrder } from "../../src/protocol/views.ts";
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
async function askedBy(play: Play): Promise<string[]> {
  const requests = await play.requests(1);
  return (requests.at(-1)?.body.messages ?? []).slice(1).map(({ role, content }) => `${role}: ${content}`);
}

test("ORDER-1 H2 queued turns wait, over HTTP and for a client that connects meanwhile, and begin when the one before is over", async () => {
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
  expect((await askedBy(two.play)).slice(0, -1)).toEqual([
    `user: ${one.play.content}`,
    "assistant: One and the rest.",
  ]);
  expect(client.state.conversation).toMatchObject({ turns: "queued" });
});

test("ORDER-2 H2 a message interrupts the active turn, and its model sees what that had shown", async () => {
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
  expect((await askedBy(two.play)).slice(0, 3)).toEqual([
    `user: ${one.play.content}`,
    "assistant: One",
    expect.stringMatching(/^system: /),
  ]);
  await one.play.closes(1);
});

test("ORDER-3 A20 A21 M17 H2 parallel turns end in any order; the later one is told of the active one, and has none of its messages or moves", async () => {
  const conversation = await createConversation(plain);
  expect((await patch(conversation, { turns: "random" }))[0]).toBe(422);
  expect((await patch(conversation, {}))[0]).toBe(422);
  const one = await conversation.play(half("One"));
  await one.play.reached("shown");
  const two = await conversation.play({ replies: [[{ text: "Two." }]] });
  await conversation.ended(two.turnId);
  expect((await conversation.turn(one.turnId)).status).toBe("active");
  const [note, ...others] = await askedBy(two.play);
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
  expect(await askedBy(three.play)).toEqual([
    `user: ${two.play.content}`,
    "assistant: Two.",
    `user: ${one.play.content}`,
    "assistant: One and the rest.",
    `user: ${three.play.content}`,
  ]);
});
