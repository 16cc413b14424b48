/** Actors that subscribe to a conversation, on the real Worker. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { MAX_ATTEMPTS } from "../../src/agents/base/mailbox/mailbox-limits.ts";
import { MAX_SUBSCRIBERS } from "../../src/agents/conversation/inbound/socket-limits.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { ConversationFrames, SubscribeActor, SubscribedFrame } from "../../src/protocol/subscribers.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { Courier, Trap } from "./worker.ts";
import {
  ADA,
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  partialText,
  request,
  skipInvariants,
  type TestConversation,
} from "./world.ts";

const MEMBER: Principal = { subject: "mel", tenant: "test", roles: ["member"] };

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
});

afterEach(async () => {
  await checkInvariants();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The RPC methods of a conversation. */
const rpc = ({ stub }: TestConversation) =>
  // SAFETY: the class of this namespace has these methods.
  stub as unknown as Pick<
    ConversationApi,
    "subscribeActor" | "unsubscribeActor" | "removeParticipant" | "addParticipant"
  >;

/** An actor that stores the frames it gets. */
class Subscriber {
  readonly id = crypto.randomUUID();
  readonly to = { kind: "courier", tenant: ADA.tenant, id: this.id };

  async #actor() {
    return getAgentByName<Cloudflare.Env, Courier>(exports.Courier, `${ADA.tenant}:${this.id}`);
  }

  async set(what: "trap" | "mood", value: Trap | string): Promise<void> {
    await (await this.#actor()).set(what, value);
  }

  async batches(): Promise<ConversationFrames[]> {
    // SAFETY: the courier stores these.
    return (await (await this.#actor()).record("frames")) as ConversationFrames[];
  }

  async attempts(): Promise<number> {
    // SAFETY: the type of a stub nests too deep for this record.
    return ((await (await this.#actor()).record("attempts")) as unknown[]).length;
  }

  async frames(): Promise<SubscribedFrame[]> {
    return (await this.batches()).flatMap(({ frames }) => frames);
  }

  async subscribe(conversation: TestConversation, more: Omit<SubscribeActor, "to"> = {}, principal = ADA) {
    return rpc(conversation).subscribeActor(principal, { to: this.to, ...more });
  }

  async unsubscribe(conversation: TestConversation, principal = ADA) {
    return rpc(conversation).unsubscribeActor(principal, this.to);
  }
}

/** Returns the durable frames that a WebSocket gets after an entry. */
async function framesAfter(conversation: TestConversation, from: number): Promise<Frame[]> {
  const client = await conversation.connect({ from });
  await client.settled();
  client.close();
  return client.frames.filter(({ seq }) => seq !== undefined);
}

/** Runs a turn with a tool call. Returns its id. */
async function turn(conversation: TestConversation, text = "It is 2."): Promise<string> {
  const { turnId } = await conversation.play({
    replies: [[{ text: "I double it. " }, { call: "double", input: { n: 1 } }], [{ text }]],
  });
  await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
  return turnId;
}

/** Returns the stored subscribers and envelopes of a conversation. */
const stored = (conversation: TestConversation) =>
  runInDurableObject(conversation.stub, (_, { storage }) => ({
    subscribers: [...storage.kv.list<object>({ prefix: "subscriber:" })].map(([, value]) => value),
    outbox: [...storage.kv.list<{ dueAt: number | null }>({ prefix: "mailbox:out:" })].map(
      ([, value]) => value,
    ),
  }));

/** Waits until no attempt runs. Then moves the clock, and fires the alarm. */
async function retry(conversation: TestConversation): Promise<void> {
  const isWaiting = async () => {
    const { outbox } = await stored(conversation);
    return outbox.every(({ dueAt }) => dueAt !== null);
  };
  await expect.poll(isWaiting).toBe(true);
  vi.setSystemTime(Date.now() + 16 * 60_000);
  await runDurableObjectAlarm(conversation.stub);
}

describe("E23 SUBSCRIBER-1 a subscriber gets each durable frame once and in order", () => {
  test("E23 SUBSCRIBER-1 the frames equal those of a WebSocket, without text in progress, over an eviction of the conversation", async () => {
    const conversation = await createConversation(handy);
    const one = new Subscriber();
    expect(await one.subscribe(conversation, { from: 0 })).toMatchObject({ ok: true, value: { cursor: 0 } });
    await turn(conversation);
    await conversation.evict();
    await turn(conversation);
    const expected = await framesAfter(conversation, 0);
    expect(expected.filter(({ type }) => type === "tool.completed")).toHaveLength(2);
    await expect.poll(() => one.frames()).toEqual(expected);
    expect((await one.frames()).map(({ type }) => type)).not.toContain("message.delta");
  });

  test.each<Trap>(["crash before", "crash after", "hang", "throw"])(
    "E23 SUBSCRIBER-1 SUBSCRIBER-3 no frame is lost or repeated if the subscriber's attempt ends with: %s",
    async (trap) => {
      vi.spyOn(console, "error").mockReturnValue();
      const conversation = await createConversation(handy);
      const one = new Subscriber();
      await one.subscribe(conversation, { from: 0 });
      await expect.poll(async () => (await stored(conversation)).outbox).toEqual([]);
      await one.set("trap", trap);
      await turn(conversation);
      const expected = await framesAfter(conversation, 0);
      await expect.poll(() => one.attempts()).toBeGreaterThan(0);
      // The crash of the conversation interrupts an attempt that hangs.
      if (trap === "hang") await crash();
      for (let tries = 0; tries < 5 && (await stored(conversation)).outbox.length > 0; tries++)
        await retry(conversation);
      await expect.poll(() => one.frames()).toEqual(expected);
    },
  );

  test("E23 SUBSCRIBER-2 a crash of all actors in the middle of turns loses and repeats no frame", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const conversation = await createConversation(handy);
    const one = new Subscriber();
    await one.subscribe(conversation);
    const cursor = (await conversation.journal()).length;
    for (let round = 0; round < 3; round++) {
      const { turnId } = await conversation.play({
        replies: [[{ call: "double", input: { n: round } }], [{ text: `Round ${round}.` }]],
      });
      await crash();
      vi.setSystemTime(Date.now() + 60_000);
      await conversation.wake();
      await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
    }
    for (let tries = 0; tries < 5 && (await stored(conversation)).outbox.length > 0; tries++)
      await retry(conversation);
    await expect
      .poll(async () => (await one.frames()).map(({ seq }) => seq))
      .toEqual((await framesAfter(conversation, cursor)).map(({ seq }) => seq));
  });

  test("E23 SUBSCRIBER-1 a long history arrives in several envelopes, a long frame without its data, and new frames after it", async () => {
    const conversation = await createConversation(handy);
    const filler = "long ".repeat(9_000);
    for (let count = 0; count < 4; count++) await turn(conversation, `${count} ${filler}`);
    await turn(conversation, filler.repeat(4));
    const one = new Subscriber();
    await one.subscribe(conversation, { from: 0 });
    await turn(conversation);
    const expected = await framesAfter(conversation, 0);
    await expect.poll(async () => (await one.frames()).length).toBe(expected.length);
    const frames = await one.frames();
    expect(frames.map(({ seq }) => seq)).toEqual(expected.map(({ seq }) => seq));
    expect(frames.filter(({ omitted }) => omitted).map(({ type }) => type)).toEqual([
      "message.user",
      "message.completed",
    ]);
    expect((await one.batches()).length).toBeGreaterThan(3);
  });
});

test("E23 SUBSCRIBER-1 filters: a subscriber gets only frames of its types, and no envelope without frames", async () => {
  const conversation = await createConversation(handy);
  const one = new Subscriber();
  await one.subscribe(conversation, { types: ["turn.completed"] });
  const first = await turn(conversation);
  const second = await turn(conversation);
  await expect
    .poll(async () => (await one.frames()).map(({ type, turnId }) => [type, turnId]))
    .toEqual([
      ["turn.completed", first],
      ["turn.completed", second],
    ]);
  await expect.poll(async () => (await stored(conversation)).outbox).toEqual([]);
  expect(await one.attempts()).toBe(2);
});

/** A conversation with the text "Hello " in progress. `end` completes the turn. */
async function inProgress() {
  const conversation = await createConversation(handy);
  const { play, turnId } = await conversation.play({
    replies: [[{ text: "Hello " }, { gate: "rest" }, { text: "again." }]],
  });
  const reader = await conversation.connect();
  await reader.until((state) => partialText(state) === "Hello ");
  const end = async () => {
    await play.open("rest");
    await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
  };
  return { conversation, end };
}

describe("E23 CURSOR-4 deltas are separate, and a reader gets only frames of its types", () => {
  test("E23 CURSOR-4 a WebSocket without deltas gets all other frames, also over an eviction", async () => {
    const { conversation, end } = await inProgress();
    const without = await conversation.connect({ query: "?deltas=false" });
    expect((await without.frame("snapshot")).data.partials).toEqual([]);
    const all = await conversation.connect();
    await end();
    await conversation.evict();
    await turn(conversation);
    await Promise.all([without.settled(), all.settled()]);
    expect(all.framesOf("message.delta").length).toBeGreaterThan(0);
    expect(without.framesOf("message.delta")).toEqual([]);
    const durable = ({ frames }: { frames: Frame[] }) =>
      frames.filter(({ seq }) => seq !== undefined).slice(1);
    expect(durable(without)).toEqual(durable(all));
  });

  test("E23 CURSOR-4 a WebSocket of some types resumes with its last number without loss or repetition", async () => {
    const { conversation, end } = await inProgress();
    const query = "?types=turn.started,turn.completed";
    const first = await conversation.connect({ query });
    await first.frame("snapshot");
    await end();
    await first.frame("turn.completed");
    const { position } = first;
    first.close();
    await turn(conversation);
    const second = await conversation.connect({ query: `${query}&from=${position}` });
    await turn(conversation);
    await second.frame("turn.completed", () => true, 2);
    const types = [first, second].map(({ frames }) => frames.map(({ type }) => type));
    expect(types).toEqual([
      ["snapshot", "turn.completed"],
      ["turn.started", "turn.completed", "turn.started", "turn.completed"],
    ]);
  });

  test("E23 CURSOR-4 server-sent events take the same filters, and refuse unknown types", async () => {
    const { conversation, end } = await inProgress();
    const stream = await conversation.events("/events?types=turn.completed,message.completed&deltas=false");
    await stream.next();
    await end();
    await stream.upTo("turn.completed");
    expect(stream.frames.map(({ type }) => type)).toEqual([
      "snapshot",
      "message.completed",
      "turn.completed",
    ]);
    const refused = await request(`${conversation.path}/events?types=turn.ended`);
    expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining("turn.completed")]);
  });
});

test("E23 SUBSCRIBER-1 a subscriber resumes at a cursor, and a repeated subscription keeps its cursor", async () => {
  const conversation = await createConversation(handy);
  const one = new Subscriber();
  await one.subscribe(conversation, { from: 0 });
  await turn(conversation);
  const expected = await framesAfter(conversation, 0);
  await expect.poll(() => one.frames()).toEqual(expected);
  await expect.poll(async () => (await stored(conversation)).outbox).toEqual([]);
  const cursor = (await conversation.journal()).length;
  expect(await one.subscribe(conversation)).toMatchObject({ value: { cursor } });
  expect(await one.frames()).toEqual(expected);

  expect(await one.unsubscribe(conversation)).toMatchObject({ ok: true });
  await turn(conversation);
  expect(await one.frames()).toEqual(expected);
  await one.subscribe(conversation, { from: cursor });
  await expect.poll(() => one.frames()).toEqual(await framesAfter(conversation, 0));
});

test("E23 SUBSCRIBER-5 who may subscribe: readers, for actors of their tenant, up to a limit; only the same user or an operator unsubscribes", async () => {
  const conversation = await createConversation(handy);
  const one = new Subscriber();
  expect(await one.subscribe(conversation, {}, MEMBER)).toMatchObject({ error: { code: "NOT_FOUND" } });
  const foreign = { ...one.to, tenant: "other" };
  expect(await rpc(conversation).subscribeActor(ADA, { to: foreign })).toMatchObject({
    error: { code: "FORBIDDEN" },
  });
  expect(await one.subscribe(conversation, { from: 99 })).toMatchObject({ error: { code: "INVALID_INPUT" } });
  // SAFETY: deliberately not a type of frames.
  const types = ["message.delta"] as unknown as NonNullable<SubscribeActor["types"]>;
  expect(await one.subscribe(conversation, { types })).toMatchObject({ error: { code: "INVALID_INPUT" } });
  for (let count = 0; count < MAX_SUBSCRIBERS; count++)
    expect(await new Subscriber().subscribe(conversation)).toMatchObject({ ok: true });
  expect(await one.subscribe(conversation)).toMatchObject({ error: { code: "CONFLICT" } });

  const other = await createConversation(handy);
  await rpc(other).addParticipant(ADA, { type: "user", id: MEMBER.subject });
  expect(await one.subscribe(other)).toMatchObject({ ok: true });
  expect(await one.unsubscribe(other, MEMBER)).toMatchObject({ error: { code: "FORBIDDEN" } });
  expect(await one.subscribe(other, { from: 0 }, MEMBER)).toMatchObject({ error: { code: "FORBIDDEN" } });
  expect(await one.unsubscribe(other)).toMatchObject({ ok: true });
  expect(await one.unsubscribe(other)).toMatchObject({ ok: true });
  await expect.poll(async () => (await stored(other)).subscribers).toEqual([]);
});

test("E23 SUBSCRIBER-5 a conversation cannot subscribe itself", async () => {
  const conversation = await createConversation(handy);
  const to = { kind: "conversation", tenant: ADA.tenant, id: conversation.id };
  expect(await rpc(conversation).subscribeActor(ADA, { to })).toMatchObject({
    error: { code: "INVALID_INPUT" },
  });
  const { turnId } = await conversation.say("Hello");
  await conversation.ended(turnId);
});

test("E23 SUBSCRIBER-5 a user who leaves the conversation ends its subscription", async () => {
  const conversation = await createConversation(handy);
  const one = new Subscriber();
  await rpc(conversation).addParticipant(ADA, { type: "user", id: MEMBER.subject });
  expect(await one.subscribe(conversation, {}, MEMBER)).toMatchObject({ ok: true });
  await rpc(conversation).removeParticipant(ADA, { type: "user", id: MEMBER.subject });
  await turn(conversation);
  await expect.poll(async () => (await one.batches()).map(({ ended }) => ended)).toEqual(["access"]);
  expect(await one.frames()).toEqual([]);
  await expect.poll(async () => (await stored(conversation)).subscribers).toEqual([]);
});

describe("E23 SUBSCRIBER-4 a subscriber is dropped, and a dead letter has the reason", () => {
  test("if it refuses frames", async () => {
    const conversation = await createConversation(handy);
    const [one, other] = [new Subscriber(), new Subscriber()];
    await one.set("mood", "refuse");
    await one.subscribe(conversation);
    await other.subscribe(conversation);
    await turn(conversation);
    await expect.poll(async () => (await stored(conversation)).subscribers).toHaveLength(1);
    await turn(conversation);
    await expect
      .poll(async () => (await other.frames()).filter(({ type }) => type === "turn.completed").length)
      .toBe(2);
    const letters = await request("/api/dead-letters?order=desc&limit=200");
    expect(await letters.text()).toContain(one.id);
  });

  test("if it cannot be reached", async () => {
    const conversation = await createConversation(handy);
    const one = new Subscriber();
    await one.subscribe(conversation);
    await one.set("trap", "down");
    await turn(conversation);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) await retry(conversation);
    await expect.poll(() => stored(conversation)).toEqual({ subscribers: [], outbox: [] });
  });
});

test("E23 SUBSCRIBER-5 the deletion of a conversation ends its subscriptions", async () => {
  const conversation = await createConversation(handy);
  skipInvariants(conversation);
  const one = new Subscriber();
  await one.subscribe(conversation);
  await turn(conversation);
  await expect.poll(async () => (await one.frames()).map(({ type }) => type)).toContain("turn.completed");
  const response = await request(conversation.path, { method: "DELETE" });
  expect(response.status).toBe(204);
  await expect
    .poll(async () => (await one.batches()).map(({ ended }) => ended).filter(Boolean))
    .toEqual(["deleted"]);
  await expect.poll(() => stored(conversation)).toEqual({ subscribers: [], outbox: [] });
});

test("E23 SUBSCRIBER-2 an undelivered envelope contains no text, and its later attempt has no erased text", async () => {
  vi.spyOn(console, "error").mockReturnValue();
  const conversation = await createConversation(handy);
  const one = new Subscriber();
  await one.subscribe(conversation);
  await one.set("trap", "down");
  const secret = `secret-${crypto.randomUUID()}`;
  await turn(conversation, secret);
  await expect.poll(() => one.attempts()).toBeGreaterThan(0);
  expect(JSON.stringify(await stored(conversation))).not.toContain(secret);
  for (const { id } of await conversation.messages()) {
    const erased = await request(`${conversation.path}/events/${id}`, { method: "DELETE" });
    expect(erased.status).toBe(204);
  }
  await one.set("trap", "none");
  for (let tries = 0; tries < 5 && (await stored(conversation)).outbox.length > 0; tries++)
    await retry(conversation);
  const erasures = async () => (await one.frames()).filter(({ type }) => type === "entry.erased");
  await expect.poll(async () => (await erasures()).length).toBe((await conversation.messages()).length);
  expect(JSON.stringify(await one.frames())).not.toContain(secret);
});

test("E23 SUBSCRIBER-6 without subscribers a conversation stores nothing for them", async () => {
  const conversation = await createConversation(handy);
  await turn(conversation);
  expect(await stored(conversation)).toMatchObject({ subscribers: [] });
  const record = await runInDurableObject(conversation.stub, (_, { storage }) =>
    JSON.stringify([...storage.kv.list()]),
  );
  expect(record).not.toContain("subscribe");
});
