/**
 * The input and output of a conversation's clients on workerd: WebSocket, server-sent events and HTTP, through the
 * application's own endpoints.
 */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { durableActors } from "../../src/agents/base/lookup/durable-actors.ts";
import { MAX_ACTIVE_TURNS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { pendingCalls } from "../../src/client/outbox.ts";
import { systemIds } from "../../src/ports/system.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { StepScript } from "../support/provider-script.ts";
import { Play } from "./provider.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  partialText,
  request,
  seqsOf,
  TestConversation,
} from "./world.ts";

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

afterEach(checkInvariants);

const open = (): Promise<TestConversation> => createConversation(handy);

const say = (text: string): StepScript[] => [{ text }];

/** Frames that are durable facts. */
const durable = <Frame extends { seq?: number }>(frames: readonly Frame[]) =>
  frames.filter(({ seq }) => seq !== undefined);

describe("idempotency", () => {
  test("The same key and body answer the same turn, while it is active and when it is over; another body is a conflict", async () => {
    const conversation = await open();
    const idempotencyKey = "order-1";
    const play = new Play({ replies: [[{ gate: "go" }, { text: "Once." }]] });
    const first = await conversation.say(play.content, { idempotencyKey });
    await play.reached("go");
    expect(await conversation.say(play.content, { idempotencyKey })).toEqual(first);
    const other = { content: "Something else", idempotencyKey };
    const conflict = { status: 409, code: "IDEMPOTENCY_CONFLICT" };
    expect(await conversation.refused(other)).toEqual(conflict);
    await play.open("go");
    await conversation.ended(first.turnId);
    expect(await conversation.say(play.content, { idempotencyKey })).toEqual(first);
    expect(await conversation.refused(other)).toEqual(conflict);
    expect(
      await conversation.refused({
        content: play.content,
        idempotencyKey,
        replyToMessageId: first.messageId,
      }),
    ).toEqual(conflict);
    await conversation.evict();
    expect(await conversation.say(play.content, { idempotencyKey })).toEqual(first);
    expect(await play.requests()).toHaveLength(1);
    expect(await conversation.messages()).toHaveLength(2);
  });

  test("Equal messages that arrive at once under one key start one turn", async () => {
    const conversation = await open();
    const play = new Play({ replies: [say("One.")] });
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => conversation.say(play.content, { idempotencyKey: "k" })),
    );
    expect(new Set(answers.map(({ turnId }) => turnId)).size).toBe(1);
    await conversation.ended(answers[0]?.turnId ?? "");
    expect(await play.requests()).toHaveLength(1);
  });

  test("A frame's id is the same key: repeated it is ignored, with another body it is refused, on every socket", async () => {
    const conversation = await open();
    const client = await conversation.connect();
    const play = new Play({ replies: [[{ gate: "go" }, { text: "Once." }]] });
    const frame = { type: "turn.start", id: "frame-1", content: play.content } as const;
    client.send(frame);
    const { turnId, data } = await client.frame("turn.started");
    expect(data.clientId).toBe("frame-1");
    client.send(frame);
    client.send({ ...frame, content: "Something else" });
    const refused = { code: "IDEMPOTENCY_CONFLICT", ref: "frame-1", retriable: false };
    expect((await client.frame("error")).data).toMatchObject(refused);
    expect(await conversation.say(play.content, { idempotencyKey: "frame-1" })).toMatchObject({ turnId });
    await play.open("go");
    await client.frame("turn.finalized");
    client.send(frame);
    client.send({ ...frame, content: "Something else" });
    expect((await client.frame("error", () => true, 2)).data).toMatchObject(refused);
    await client.settled();
    expect(client.framesOf("turn.started")).toHaveLength(1);
    expect(await play.requests()).toHaveLength(1);
    // A client that resends may have missed the record. Only that client gets it again, without a number, because it is
    // not new.
    const [recorded, ...again] = client.framesOf("message.user");
    expect(recorded?.seq).toBeDefined();
    expect(again.map(({ seq, messageId, data }) => [seq, messageId, data])).toEqual(
      again.map(() => [undefined, recorded?.messageId, { clientId: "frame-1" }]),
    );
    expect(again).toHaveLength(2);
  });

  test("The keys of two users never meet", async () => {
    const conversation = await open();
    const eve: Principal = { subject: "eve", tenant: "test", roles: ["admin"] };
    const body = (content: string) => JSON.stringify({ content, idempotencyKey: "1" });
    const post = (content: string, principal?: Principal) =>
      request(`${conversation.path}/turns`, { method: "POST", body: body(content) }, principal);
    const [own, other] = [new Play({ replies: [say("A.")] }), new Play({ replies: [say("B.")] })];
    const answers = [await post(own.content), await post(other.content, eve)];
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    const ids = await Promise.all(answers.map((answer) => answer.json<{ turnId: string }>()));
    for (const { turnId } of ids) await conversation.ended(turnId);
    expect(new Set(ids.map(({ turnId }) => turnId)).size).toBe(2);
  });

  test("A repeated request for a stream replays the turn and ends with it", async () => {
    const conversation = await open();
    const play = new Play({ replies: [[{ text: "Hello" }, { gate: "go" }, { text: " there." }]] });
    const body = JSON.stringify({ content: play.content, idempotencyKey: "s" });
    const first = await conversation.events("/turns", { method: "POST", body });
    await first.upTo("message.delta");
    const second = await conversation.events("/turns", { method: "POST", body });
    expect((await second.upTo("message.delta")).data).toEqual({ offset: 0, text: "Hello" });
    await play.open("go");
    const [frames, again] = [await first.rest(), await second.rest()];
    expect(durable(again)).toEqual(durable(frames));
    const late = await conversation.events("/turns", { method: "POST", body });
    expect(await late.rest()).toEqual(durable(frames));
    expect(await play.requests()).toHaveLength(1);
  });
});

describe("joining and resuming", () => {
  test("WIRE-2 A client that joins in the middle of a text gets it with the snapshot, and the deltas continue from there", async () => {
    const conversation = await open();
    const [first, play] = [
      await conversation.connect(),
      new Play({ replies: [[{ text: "Grüße 👋 " }, { gate: "go" }, { text: "an alle" }]] }),
    ];
    const { turnId } = await conversation.say(play.content);
    await first.until((state) => partialText(state) === "Grüße 👋 ");
    const late = await conversation.connect();
    const { seq, data } = await late.frame("snapshot");
    expect(late.frames[0]?.type).toBe("snapshot");
    const [partial, ...more] = data.partials;
    expect(more).toEqual([]);
    expect(partial).toEqual({ turnId, messageId: expect.stringMatching(/^msg_/), text: "Grüße 👋 " });
    expect(data.turns).toMatchObject([{ id: turnId, status: "active" }]);
    expect(data.conversation).toMatchObject({ id: conversation.id, gate: "running" });
    expect(seq).toBe(first.position);
    await play.open("go");
    const delta = await late.frame("message.delta");
    expect(delta).toMatchObject({ messageId: partial?.messageId, data: { offset: "Grüße 👋 ".length } });
    await Promise.all([first, late].map((client) => client.frame("turn.finalized")));
    expect(late.state.messages).toEqual(first.state.messages);
    expect(late.state.turns).toEqual(first.state.turns);
  });

  test("CONN-1 SUB-1 F14 a client that resumes with `from` misses no frame and gets no frame twice", async () => {
    const conversation = await open();
    const [steady, leaving] = [await conversation.connect(), await conversation.connect()];
    const { play } = await conversation.play((key) => ({
      replies: [
        [{ text: "One " }, { gate: "a" }, { text: "two. " }, { call: "save", input: { key } }],
        [{ text: "Three " }, { gate: "b" }, { text: "four." }],
      ],
    }));
    await leaving.until((state) => partialText(state) === "One ");
    leaving.close();
    await play.open("a");
    await steady.until((state) => partialText(state) === "Three ");
    const back = await conversation.connect({ from: leaving.position });
    const resumed = await conversation.events("/events", {
      headers: { "last-event-id": String(leaving.position) },
    });
    expect((await back.frame("message.delta")).data).toEqual({ offset: 0, text: "Three " });
    await play.open("b");
    await Promise.all([steady, back].map((client) => client.frame("turn.finalized")));
    await resumed.upTo("turn.finalized");
    await resumed.cancel();
    expect(back.framesOf("snapshot")).toEqual([]);
    const all = durable(steady.frames).slice(1);
    expect([...durable(leaving.frames).slice(1), ...durable(back.frames)]).toEqual(all);
    expect(durable(resumed.frames)).toEqual(durable(back.frames));
    expect(resumed.ids).toEqual(resumed.frames.map(({ seq }) => seq?.toString()));
    const nothing = await conversation.connect({ from: steady.position });
    await nothing.settled();
    expect(nothing.frames.map(({ type }) => type)).toEqual(["pong"]);
    const everything = await conversation.connect({ from: 0 });
    await everything.settled();
    expect(durable(everything.frames)).toEqual(all);
  });

  test("A stream of one turn has its frames only, and closes after turn.completed or turn.failed", async () => {
    const conversation = await open();
    const ending = async (replies: Play) => {
      const stream = await conversation.events("/turns", {
        method: "POST",
        body: JSON.stringify({ content: replies.content }),
      });
      const frames = await stream.rest();
      expect(stream.ids).toEqual(frames.map(({ seq }) => seq?.toString()));
      expect(new Set(frames.map(({ turnId }) => turnId)).size).toBe(1);
      return frames.map(({ type }) => type);
    };
    const completed = ending(new Play({ replies: [[{ text: "A" }, { text: "B" }]] }));
    const failed = ending(new Play({ replies: [{ status: 400, message: "No." }] }));
    expect(await completed).toEqual([
      "turn.started",
      "message.user",
      "message.started",
      "message.delta",
      "message.completed",
      "turn.completed",
    ]);
    expect(await failed).toEqual(["turn.started", "message.user", "message.started", "turn.failed"]);
  });

  test("A68 two WebSocket clients both receive, and still do after the actor hibernated", async () => {
    const conversation = await open();
    const clients = await Promise.all([
      conversation.connect(),
      conversation.connect({ endpoint: "agents/conversation" }),
    ]);
    await Promise.all(clients.map((client) => client.frame("snapshot")));
    const [first] = clients;
    const ask = async (text: string) => {
      const play = new Play({ replies: [say(text)] });
      first?.send({ type: "turn.start", id: play.key, content: play.content });
      await Promise.all(
        clients.map((client) => client.frame("message.completed", ({ data }) => data.content === text)),
      );
    };
    await ask("Awake.");
    await Promise.all(clients.map((client) => client.frame("turn.finalized")));
    await runInDurableObject(conversation.stub, (actor) => void Reflect.set(actor, "wasHere", true));
    await conversation.evict();
    await ask("Woken.");
    expect(
      await runInDurableObject(conversation.stub, (actor) => Reflect.get(actor, "wasHere")),
    ).toBeUndefined();
    await Promise.all(clients.map((client) => client.frame("turn.finalized", () => true, 2)));
    const [one, two] = clients.map(({ frames }) => durable(frames).slice(1));
    expect(one).toEqual(two);
    expect(clients.map(({ closed }) => closed)).toEqual([null, null]);
  });

  test.each(["double", "save"])(
    "A68 an actor that has run the tool %s may hibernate as soon as its turn is over",
    async (tool) => {
      const conversation = await open();
      const client = await conversation.connect();
      const { turnId } = await conversation.play((key) => ({
        replies: [[{ call: tool, input: { key, n: 1 } }], say("Done.")],
      }));
      await client.frame("turn.finalized");
      const before = Date.now();
      await conversation.evict();
      expect(Date.now() - before, "milliseconds until the actor was free").toBeLessThan(5_000);
      expect(client.closed).toBeNull();
      expect(await conversation.turn(turnId)).toMatchObject({
        moves: [{ toolResult: { success: true } }, {}],
      });
    },
  );
});

describe("turns at once", () => {
  test("A13 two turns that stream at once have different message ids and do not mix", async () => {
    const conversation = await open();
    const client = await conversation.connect();
    const script = (name: string) => ({
      replies: [
        [{ text: `${name}1 ` }, { gate: "1" }, { text: `${name}2 ` }, { gate: "2" }, { text: `${name}3` }],
      ],
    });
    const a = await conversation.play(script("a"));
    const b = await conversation.play(script("b"));
    const stream = await conversation.events(`/events?from=0`);
    for (const gate of ["1", "2"]) {
      await Promise.all([a.play.reached(gate), b.play.reached(gate)]);
      await b.play.open(gate);
      await a.play.open(gate);
    }
    await client.frame("turn.completed", () => true, 2);
    for (const { turnId, name } of [
      { ...a, name: "a" },
      { ...b, name: "b" },
    ]) {
      const [started] = client.framesOf("message.started").filter((frame) => frame.turnId === turnId);
      const deltas = client
        .framesOf("message.delta")
        .filter(({ messageId }) => messageId === started?.messageId);
      expect(deltas.map(({ data }) => data.text).join("")).toBe(`${name}1 ${name}2 ${name}3`);
      expect(await conversation.turn(turnId)).toMatchObject({
        moves: [{ reasoning: `${name}1 ${name}2 ${name}3` }],
      });
    }
    await stream.cancel();
  });

  test(`The turn after ${MAX_ACTIVE_TURNS} active turns is refused with TOO_MANY_TURNS, until a turn ends`, async () => {
    const conversation = await open();
    const client = await conversation.connect();
    const play = new Play({ replies: [[{ gate: "go" }, { text: "Done." }]] });
    const turns = await Promise.all(
      Array.from({ length: MAX_ACTIVE_TURNS }, () => conversation.say(play.content)),
    );
    expect(new Set(turns.map(({ turnId }) => turnId)).size).toBe(MAX_ACTIVE_TURNS);
    expect(await conversation.refused({ content: play.content })).toEqual({
      status: 429,
      code: "TOO_MANY_TURNS",
    });
    client.send({ type: "turn.start", id: "one-more", content: play.content });
    expect((await client.frame("error")).data).toMatchObject({
      code: "TOO_MANY_TURNS",
      ref: "one-more",
      retriable: true,
    });
    await play.open("go");
    await client.frame("turn.completed", () => true, MAX_ACTIVE_TURNS);
    const { turnId } = await conversation.say(play.content);
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
  });
});

describe("results of tools", () => {
  test.each([
    ["march", "once"],
    ["browse", "pure"],
  ])(
    "The progress of a running tool is shown, after its request and before its result: %s (%s)",
    async (tool) => {
      const conversation = await open();
      const client = await conversation.connect();
      const { play } = await conversation.play((key) => ({
        replies: [[{ call: tool, input: { key, gate: "half" } }], say("There.")],
      }));
      await play.reached("half");
      const progress = await client.frame("tool.progress");
      expect(progress).toMatchObject({ data: { progress: { done: 1, of: 2 } } });
      expect(progress.seq).toBeUndefined();
      await play.open("half");
      await client.frame("turn.completed");
      const ofTool = client.frames.filter(({ type }) => type.startsWith("tool."));
      expect(ofTool.map(({ type }) => type)).toEqual([
        "tool.requested",
        "tool.progress",
        "tool.progress",
        "tool.completed",
      ]);
      expect(new Set(ofTool.map(({ operationId }) => operationId)).size).toBe(1);
    },
  );

  test("MOVES-2 An output of 1 MiB is shown, kept and replayed, and shortened for the model", async () => {
    const conversation = await open();
    const size = 1_048_574;
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "big", input: { size } }], say("Long.")],
    });
    const turn = await conversation.ended(turnId);
    expect(turn.moves[0]?.toolResult?.result).toHaveLength(size);
    const [, second] = await play.requests(2);
    const told = second?.body.messages.at(-1)?.content ?? "";
    expect(told.length).toBeGreaterThan(100_000);
    expect(told.length).toBeLessThan(size / 2);
    await conversation.evict();
    const client = await conversation.connect({ from: 0 });
    const { data } = await client.frame("tool.completed");
    expect(data.result).toHaveLength(size);
    const stream = await conversation.events("/events?from=0");
    expect((await stream.upTo("tool.completed")).data.result).toHaveLength(size);
    await stream.upTo("turn.finalized");
    const next = await conversation.play({ replies: [say("Still here.")] });
    expect((await stream.upTo("turn.started")).turnId).toBe(next.turnId);
    await stream.cancel();
    await conversation.ended(next.turnId);
  });

  test("A reader that keeps up is not cut off by many megabytes of results", async () => {
    const conversation = await open();
    const size = 900_000;
    const calls = Array.from({ length: 8 }, (): StepScript => ({ call: "big", input: { size } }));
    const play = new Play({ replies: [calls, say("All.")] });
    const body = JSON.stringify({ content: play.content });
    const stream = await conversation.events("/turns", { method: "POST", body });
    const frames = await stream.rest();
    expect(frames.filter(({ type }) => type === "tool.completed")).toHaveLength(8);
    expect(frames.at(-1)?.type).toBe("turn.completed");
  });

  test("A snapshot stays bounded however large the results are: omitted parts are read page by page", async () => {
    const conversation = await open();
    const calls = Array.from({ length: 3 }, (): StepScript => ({ call: "big", input: { size: 1_000_000 } }));
    const turnIds: string[] = [];
    for (let n = 0; n < 3; n++) {
      const { turnId } = await conversation.play({ replies: [calls, say(`Answer ${n}.`)] });
      await conversation.ended(turnId);
      turnIds.push(turnId);
    }
    const client = await conversation.connect();
    const { data } = await client.frame("snapshot");
    expect(JSON.stringify(data).length).toBeLessThan(300_000);
    expect(data.messages.map(({ turnId }) => turnId)).toEqual([turnIds[2], turnIds[2]]);
    expect(data.turns.map(({ id }) => id)).toEqual(turnIds.slice(2));
    const messages = await conversation.messages();
    expect(messages.map(({ turnId }) => turnId)).toEqual(turnIds.flatMap((id) => [id, id]));
    const replayed = await conversation.connect({ from: 0, acks: true });
    await replayed.frame("turn.finalized", () => true, 3);
    expect(replayed.framesOf("tool.completed")).toHaveLength(9);
    expect(seqsOf(replayed.frames)).toEqual((await conversation.journal()).slice(1).map(({ seq }) => seq));
  });

  test("G25 READER-1 READER-3 only a mark that the client has read makes room, also one from before an eviction", async () => {
    const conversation = await open();
    const client = await conversation.connect({ acks: "withheld" });
    const say = async (size: number) => {
      const { turnId } = await conversation.play({
        replies: [[{ call: "big", input: { size } }], [{ text: "Done." }]],
      });
      await conversation.ended(turnId);
    };
    await say(100_000);
    await client.frame("turn.finalized");
    expect(client.marks).not.toEqual([]);
    await conversation.evict();
    await say(500_000);
    for (let n = 1; n <= 20; n++) client.send({ type: "ack", mark: String(n) });
    await client.settled();
    expect(client.framesOf("error")).toEqual([]);
    expect(client.framesOf("tool.completed")).toHaveLength(1);
    const isOver = () => client.framesOf("turn.finalized").length === 2;
    for (let returned = 0; !isOver(); returned++) {
      await client.until(() => client.marks.length > returned || isOver());
      const mark = client.marks[returned];
      if (mark !== undefined) client.send({ type: "ack", mark });
    }
    expect(seqsOf(client.frames)).toEqual((await conversation.journal()).map(({ seq }) => seq));
  });

  test("READER-4 a message that is sent again many times is answered in a few bytes each", async () => {
    const conversation = await open();
    const client = await conversation.connect({ acks: true });
    const play = new Play({ replies: [say("Once.")] });
    const frame = {
      type: "turn.start",
      id: "same",
      content: `${play.content}${" ".repeat(300_000)}`,
    } as const;
    client.send(frame);
    await client.frame("turn.finalized");
    for (let n = 0; n < 10; n++) client.send(frame);
    await client.settled();
    const again = client.framesOf("message.user").filter(({ seq }) => seq === undefined);
    expect(again).toHaveLength(10);
    for (const answer of again) expect(JSON.stringify(answer).length).toBeLessThan(300);
  });
});

describe("doors", () => {
  const stranger: Principal = { subject: "eve", tenant: "test", roles: ["member"] };
  const elsewhere: Principal = { subject: "ada", tenant: "other", roles: ["admin"] };

  test("The SDK's endpoint sends the SDK's own messages and then the snapshot; the plain endpoint sends only frames", async () => {
    const conversation = await open();
    const [plain, sdk] = [
      await conversation.connect(),
      await conversation.connect({ endpoint: "agents/conversation" }),
    ];
    for (const client of [plain, sdk]) {
      await client.frame("snapshot");
      await client.settled();
    }
    expect(plain.others).toEqual([]);
    expect(sdk.others.length).toBeGreaterThan(0);
    for (const other of sdk.others)
      expect(other).toMatchObject({ type: expect.stringMatching(/^cf_agent_/) });
    expect(JSON.stringify(sdk.others)).not.toContain(conversation.id);
  });

  test.each(["conversations", "agents/conversation"] as const)(
    "GUARD-1 SDK state and SDK calls are refused on /%s",
    async (endpoint) => {
      // The SDK logs each call that it refuses.
      const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
      const conversation = await open();
      const client = await conversation.connect({ endpoint });
      await client.frame("snapshot");
      client.sendText(JSON.stringify({ type: "cf_agent_state", state: { owned: true } }));
      const methods = [
        ...["startTurn", "runTurn", "create", "toolStatePut", "handleTaskResult"],
        ...["handleWorkflowResult", "handleWorkflowError", "wholeResult"],
        ...["setState", "sql", "destroy", "onMessage"],
      ];
      for (const method of methods) {
        client.sendText(JSON.stringify({ type: "rpc", id: method, method, args: [] }));
      }
      await client.settled();
      quiet.mockRestore();
      if (endpoint === "conversations") {
        const codes = client.framesOf("error").map(({ data: { code, ref } }) => [code, ref]);
        expect(codes).toEqual([undefined, ...methods].map((id) => ["INVALID_SIGNAL", id]));
        expect(client.others).toEqual([]);
        expect(await conversation.journal()).toHaveLength(1);
        return;
      }
      const refusals = client.others.filter((other) =>
        JSON.stringify(other).includes("cf_agent_state_error"),
      );
      expect(refusals).toHaveLength(1);
      for (const method of methods) {
        const [answer, ...more] = client.others.filter(
          (other) => Reflect.get(Object(other), "id") === method,
        );
        expect(answer).toMatchObject({ type: "rpc", success: false });
        expect(more).toEqual([]);
      }
      expect(await conversation.journal()).toHaveLength(1);
      const again = await conversation.connect({ endpoint: "agents/conversation" });
      await again.settled();
      expect(JSON.stringify(again.others)).not.toContain("owned");
    },
  );

  test.each([
    ["text that is no JSON", "hello", { code: "INVALID_JSON" }],
    ["bytes", new Uint8Array([123, 125]).buffer, { code: "INVALID_JSON" }],
    ["no object", "[]", { code: "INVALID_SIGNAL" }],
    ["no type", '{"id":"a"}', { code: "INVALID_SIGNAL", ref: "a" }],
    ["an unknown type", '{"id":"a","type":"turn.eat"}', { code: "INVALID_SIGNAL", ref: "a" }],
    [
      "an unknown version",
      '{"v":2,"id":"a","type":"turn.start","content":"x"}',
      { code: "UNSUPPORTED", ref: "a" },
    ],
    [
      "an unknown field",
      '{"id":"a","type":"turn.start","content":"x","to":["b"]}',
      { code: "INVALID_SIGNAL", ref: "a" },
    ],
    ["no id", '{"type":"turn.start","content":"x"}', { code: "INVALID_SIGNAL" }],
    ["an id that is no text", '{"id":7,"type":"turn.start","content":"x"}', { code: "INVALID_SIGNAL" }],
    ["an empty id", '{"id":"","type":"turn.start","content":"x"}', { code: "INVALID_SIGNAL" }],
    [
      "an id with half a character",
      '{"id":"a\\ud800","type":"turn.start","content":"x"}',
      { code: "INVALID_INPUT" },
    ],
    ["blank content", '{"id":"a","type":"turn.start","content":" \\n"}', { code: "INVALID_INPUT", ref: "a" }],
    [
      "content with half a character",
      '{"id":"a","type":"turn.start","content":"\\udc00"}',
      { code: "INVALID_INPUT", ref: "a" },
    ],
    ["no parts", '{"id":"a","type":"turn.start","content":[]}', { code: "INVALID_SIGNAL", ref: "a" }],
    [
      "an image",
      '{"id":"a","type":"turn.start","content":[{"type":"image","url":"x"}]}',
      { code: "INVALID_INPUT", ref: "a" },
    ],
    [
      "too much content",
      JSON.stringify({ id: "a", type: "turn.start", content: "x".repeat(1_048_577) }),
      { code: "TOO_LARGE", ref: "a" },
    ],
    [
      "a frame beyond all bounds",
      JSON.stringify({ id: "a", type: "turn.start", content: "x".repeat(2_097_152) }),
      { code: "TOO_LARGE", ref: "a" },
    ],
    [
      "a reply to an unknown message",
      '{"id":"a","type":"turn.start","content":"x","replyToMessageId":"msg_1"}',
      { code: "INVALID_INPUT", ref: "a" },
    ],
  ])("A bad frame gets an error with the reason, and changes no state: %s", async (_, text, expected) => {
    const conversation = await open();
    const client = await conversation.connect();
    await client.frame("snapshot");
    client.sendText(text);
    const { seq, data } = await client.frame("error");
    expect(seq).toBeUndefined();
    expect(data).toEqual({ ...expected, message: expect.stringMatching(/./), retriable: false });
    const play = new Play({ replies: [say("Works.")] });
    client.send({ type: "turn.start", id: "a", content: play.content });
    await client.frame("turn.completed");
    expect(await conversation.messages()).toHaveLength(2);
    expect(client.framesOf("error")).toHaveLength(1);
  });

  test("A reply to an unknown message is refused with 422, even if only its stem is wrong", async () => {
    const conversation = await open();
    const { play, turnId } = await conversation.play({ replies: [say("Here.")] });
    const { userMessageId, agentMessageIds } = await conversation.ended(turnId);
    const other = await open();
    const foreign = await other.say(play.content);
    await other.ended(foreign.turnId);
    const beyond = `${userMessageId.slice(0, -1)}7`;
    const forged = userMessageId.replace(/^msg_.{19}/, "msg_00000000000000000000".slice(0, 23));
    for (const replyToMessageId of ["msg_1", turnId, foreign.messageId, beyond, forged]) {
      expect(await conversation.refused({ content: "x", replyToMessageId }), replyToMessageId).toEqual({
        status: 422,
        code: "INVALID_INPUT",
      });
    }
    for (const replyToMessageId of [userMessageId, ...agentMessageIds]) {
      await conversation.ended((await conversation.say(play.content, { replyToMessageId })).turnId);
    }
  });

  test("Strangers and other tenants find no conversation, by no door", async () => {
    const conversation = await open();
    for (const principal of [stranger, elsewhere]) {
      for (const path of ["", "/turns", "/messages", "/journal", "/events"]) {
        const response = await request(`${conversation.path}${path}`, {}, principal);
        expect(response.status, path).toBe(404);
        await response.body?.cancel();
      }
      const body = JSON.stringify({ content: "Let me in" });
      const posted = await request(`${conversation.path}/turns`, { method: "POST", body }, principal);
      expect(posted.status).toBe(404);
      await posted.body?.cancel();
      const client = await conversation.connect({ principal });
      expect(await client.whenClosed()).toEqual({ code: 4404 });
      expect(client.frames.map(({ type, data }) => [type, data])).toMatchObject([
        ["error", { code: "NOT_FOUND" }],
      ]);
    }
    expect(await conversation.journal()).toHaveLength(1);
  });

  test("Parameters and headers that the SDK would act on do not reach it", async () => {
    const conversation = await open();
    const query = "?__agents_transport=capnweb&_pk=mine&cf_agent_id=x";
    const client = await conversation.connect({ endpoint: "agents/conversation", query });
    await client.frame("snapshot");
    await client.settled();
    for (const path of [
      `/agents/conversation/${conversation.id}/sub/x`,
      `/agents/agent/${handy}`,
      "/agents/executor/x",
    ]) {
      const response = await request(path, { headers: { upgrade: "websocket" } });
      expect(response.status, path).toBe(404);
    }
  });
});

test("WIRE-1 JOURNAL-1 numbers of a long conversation ascend strictly on every kind of stream", async () => {
  const conversation = await open();
  const client = await conversation.connect();
  const stream = await conversation.events("/events");
  for (let n = 0; n < 5; n++) {
    const { turnId } = await conversation.play({
      replies: [[{ call: "double", input: { n } }], say(`${n * 2}.`)],
    });
    await client.frame("turn.finalized", (frame) => frame.turnId === turnId);
  }
  await client.settled();
  while (stream.frames.at(-1)?.seq !== client.position) await stream.next();
  await stream.cancel();
  expect(seqsOf(stream.frames)).toEqual(seqsOf(client.frames));
});

describe("tools that the client runs", () => {
  const ASK = {
    name: "ask",
    description: "Asks the user.",
    inputSchema: { type: "object", properties: { question: { type: "string" } }, required: ["question"] },
  };
  const asks = (...questions: string[]): StepScript[] =>
    questions.map((question) => ({ call: "ask", input: { question } }));
  const answered = say("Thank you.");

  /** When the platform wakes the actor, in milliseconds since the epoch. */
  const alarmOf = (conversation: TestConversation) =>
    runInDurableObject(conversation.stub, (_instance, { storage }) => storage.getAlarm());

  /** A turn that waits for its client. */
  async function waiting(...replies: StepScript[][]) {
    const conversation = await open();
    const client = await conversation.connect();
    await client.frame("snapshot");
    const started = await conversation.play({ replies: [...replies, answered] }, { tools: [ASK] });
    await client.frame("turn.waiting");
    const operations = pendingCalls(client.state).map(({ operationId }) => operationId);
    return { conversation, client, operations, ...started };
  }

  test("G10 CLIENTTOOL-1 CLIENTTOOL-3 over a WebSocket: offered with a message, answered after an eviction, on the same socket", async () => {
    const conversation = await open();
    const client = await conversation.connect();
    const play = new Play({ replies: [asks("Tea?"), answered] });
    client.send({ type: "turn.start", id: "k", content: play.content, tools: [ASK], toolChoice: "required" });
    const requested = await client.frame("tool.requested");
    expect(requested.data).toEqual({ name: "ask", input: { question: "Tea?" }, async: false, client: true });
    const { operationId = "", turnId = "" } = requested;
    expect((await client.frame("turn.waiting")).data).toEqual({ reason: "client-tools" });
    await conversation.evict();
    client.send({ type: "tool.result", operationId, result: { answer: "Yes" } });
    expect((await client.frame("tool.completed")).data).toEqual({ result: { answer: "Yes" } });
    await client.frame("turn.finalized");
    const { status, moves } = await conversation.turn(turnId);
    expect(status).toBe("completed");
    expect(moves[0]).toMatchObject({ toolCall: { client: true }, toolResult: { result: { answer: "Yes" } } });
    const requests = await play.requests();
    expect(requests.map(({ body }) => body.tool_choice)).toEqual(["required", "auto"]);
    expect(requests.every(({ body }) => body.tools?.at(-1)?.function.name === "ask")).toBe(true);
    client.send({ type: "tool.result", operationId, result: { answer: "Yes" } });
    client.send({ type: "tool.result", operationId, result: { answer: "No" } });
    expect((await client.frame("error")).data).toMatchObject({ code: "CONFLICT", ref: operationId });
    await client.settled();
    expect(client.framesOf("error")).toHaveLength(1);
    expect(client.framesOf("tool.completed")).toHaveLength(1);
  });

  test("G10 CLIENTTOOL-3 the call survives a crash: a new client finds it in the snapshot, and answers it by HTTP", async () => {
    const { conversation, turnId, play, operations } = await waiting(asks("Tea?"));
    await crash();
    const back = await conversation.connect();
    const { data } = await back.frame("snapshot");
    expect(data.operations).toMatchObject([{ id: operations[0], client: true, state: "running" }]);
    const [operationId = ""] = pendingCalls(back.state).map(({ operationId }) => operationId);
    expect(await conversation.result(operationId, { result: null })).toEqual([200, { operationId, turnId }]);
    await back.frame("turn.finalized");
    expect(await conversation.result(operationId, { result: null })).toEqual([200, { operationId, turnId }]);
    expect(await conversation.result(operationId, { result: 1 })).toMatchObject([409, { code: "CONFLICT" }]);
    expect((await conversation.turn(turnId)).moves[0]?.toolResult).toEqual({ success: true, result: null });
    expect(await play.requests()).toHaveLength(2);
    expect((await conversation.journal()).map(({ type }) => type)).not.toContain("turn.resumed");
  });

  test("A15 a mixed reply: the agent's tools run at once, and the next call waits for all", async () => {
    const reply = [...asks("Tea?"), { call: "double", input: { n: 4 } }, ...asks("Milk?")];
    const { conversation, client, turnId, play, operations } = await waiting(reply);
    const [tea = "", milk = ""] = operations;
    expect(client.framesOf("tool.completed").map(({ data }) => data.result)).toEqual([{ doubled: 8 }]);
    client.send({
      type: "tool.result",
      operationId: milk,
      error: { message: "None left.", retriable: false },
    });
    await client.frame("tool.failed");
    expect(await play.requests()).toHaveLength(1);
    expect(client.framesOf("turn.waiting")).toHaveLength(1);
    await conversation.result(tea, { result: "Yes" });
    await client.frame("turn.finalized");
    const results = (await play.requests())[1]?.body.messages.filter(({ role }) => role === "tool");
    expect(results?.map(({ content }) => content)).toEqual([
      '"Yes"',
      '{"doubled":8}',
      '{"code":"EXECUTION_FAILED","message":"None left.","retriable":false}',
    ]);
    expect((await conversation.turn(turnId)).issues).toEqual({ toolFailures: 1 });
  });

  test("G10 CLIENTTOOL-1 CLIENTTOOL-3 RECORDS-4 the client leaves: no heartbeat runs, then the wake-up alone informs the model", async () => {
    onTestFinished(() => void vi.useRealTimers());
    const { conversation, client, turnId, play, operations } = await waiting(asks("Tea?"));
    client.close();
    const asked = Date.parse((await conversation.turn(turnId)).moves[0]?.createdAt ?? "");
    vi.useFakeTimers({ toFake: ["Date"], now: asked + 11_000 });
    expect(await conversation.wake(), "the last heartbeat").toBe(true);
    const alarm = (await alarmOf(conversation)) ?? 0;
    expect(alarm - asked).toBeGreaterThanOrEqual(600_000);
    expect(alarm - asked).toBeLessThan(605_000);
    await crash();
    vi.setSystemTime(alarm);
    expect(await conversation.wake()).toBe(true);
    expect((await conversation.ended(turnId)).moves[0]?.toolResult?.error?.code).toBe("TIMEOUT");
    expect((await play.requests())[1]?.body.messages.at(-1)?.content).toContain("no result");
    const late = await conversation.result(operations[0] ?? "", { result: "Yes" });
    expect(late).toMatchObject([409, { code: "CONFLICT", detail: expect.stringContaining("too late") }]);
  });

  test("CONN-2 invalid results in frames and bodies change no state, and get an error that names the reason", async () => {
    const { conversation, client, operations } = await waiting(asks("Tea?"));
    const [operationId = ""] = operations;
    const before = await conversation.journal();
    const bad: [frame: object, code: string][] = [
      [{ operationId }, "INVALID_SIGNAL"],
      [{ operationId, result: 1, error: { message: "x" } }, "INVALID_SIGNAL"],
      [{ operationId, error: "x" }, "INVALID_SIGNAL"],
      [{ operationId, error: { message: "x", code: "MINE" } }, "INVALID_SIGNAL"],
      [{ operationId, result: 1, turnId: "x" }, "INVALID_SIGNAL"],
      [{ operationId, result: "\ud800" }, "INVALID_INPUT"],
      [{ operationId, result: "x".repeat(1024 * 1024) }, "TOO_LARGE"],
      [{ operationId: "op_1", result: 1 }, "NOT_FOUND"],
      [{ operationId: operationId.replace("op_", "turn_"), result: 1 }, "NOT_FOUND"],
    ];
    for (const [index, [frame, code]] of bad.entries()) {
      client.sendText(JSON.stringify({ type: "tool.result", ...frame }));
      const { data } = await client.frame("error", () => true, index + 1);
      expect(data).toMatchObject({ code, ref: Reflect.get(frame, "operationId") });
    }
    client.sendText(JSON.stringify({ type: "tool.result", operationId: 1, result: 1 }));
    expect((await client.frame("error", () => true, bad.length + 1)).data.ref).toBeUndefined();
    expect(await conversation.result(operationId, {})).toMatchObject([422, { code: "INVALID_INPUT" }]);
    const absent = `op_${"0".repeat(26)}`;
    for (const id of ["op_1", "x", absent])
      expect(await conversation.result(id, { result: 1 })).toMatchObject([404, { code: "NOT_FOUND" }]);
    expect(await conversation.journal()).toEqual(before);
    client.send({ type: "tool.result", operationId, result: 1 });
    await client.frame("turn.finalized");
  });

  test("a message with invalid tools starts no turn: 422 over HTTP, an error over a WebSocket", async () => {
    const conversation = await open();
    const client = await conversation.connect();
    const double = { ...ASK, name: "double" };
    const invalid = { status: 422, code: "INVALID_INPUT" };
    for (const more of [
      { tools: [double] },
      { tools: [ASK, ASK] },
      { toolChoice: { name: "ask" } },
      { tools: {} },
    ])
      expect(await conversation.refused({ content: "Hi", ...more })).toEqual(invalid);
    client.send({ type: "turn.start", id: "k", content: "Hi", tools: [double] });
    expect((await client.frame("error")).data).toMatchObject({ code: "INVALID_INPUT", ref: "k" });
    expect(await conversation.messages()).toEqual([]);
  });
});

describe("a conversation with history from elsewhere", () => {
  const create = (input: object) =>
    request("/api/conversations", { method: "POST", body: JSON.stringify({ agentId: handy, ...input }) });

  test("SEED-1 its model sees the history, and its transcript does not show it", async () => {
    const history = [
      { role: "user", content: "My name is Ada." },
      { role: "assistant", content: "Hello Ada." },
    ];
    const answer = await create({ history });
    expect(answer.status).toBe(201);
    const conversation = new TestConversation((await answer.json<{ id: string }>()).id);
    const { play, turnId } = await conversation.play({ replies: [say("Ada.")] });
    await conversation.ended(turnId);
    const [first] = await play.requests();
    expect(first?.body.messages.slice(1, -1)).toMatchObject(history);
    expect(await conversation.messages()).toHaveLength(2);
  });

  test("SEED-2 an inconsistent history is refused with the place, and no conversation is created", async () => {
    const answer = await create({ history: [{ role: "tool", content: "42", toolCallId: "a" }] });
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({
      code: "INVALID_INPUT",
      errors: [{ path: "/history/0/toolCallId" }],
    });
    expect((await create({ listed: false })).status, "not over HTTP").toBe(422);
    expect((await create({ history: [{ role: "user", content: "x".repeat(1024 * 1024) }] })).status).toBe(
      413,
    );
  });

  test("an unlisted conversation is found by its id, and in no list", async () => {
    const principal: Principal = { subject: "ada", tenant: "unlisted", roles: ["admin"] };
    const get = async (path: string) => (await request(path, {}, principal)).json<Record<string, object[]>>();
    const made = await request(
      "/api/agents",
      { method: "POST", body: '{"persona":"test/plain"}' },
      principal,
    );
    const { id: agentId } = await made.json<{ id: string }>();
    const actors = durableActors(env);
    const [hidden, shown] = [`conv_${systemIds.ulid()}`, `conv_${systemIds.ulid()}`];
    for (const [id, listed] of [
      [hidden, false],
      [shown, true],
    ] as const) {
      const actor = await actors.conversation("unlisted", id);
      expect(await actor.create(principal, { id, agentId, listed })).toMatchObject({ ok: true });
    }
    const agent = await actors.agent("unlisted", agentId);
    await expect.poll(async () => JSON.stringify(await agent.conversations())).toContain(shown);
    expect(JSON.stringify(await agent.conversations())).not.toContain(hidden);
    const { conversations } = await get("/api/conversations");
    expect(conversations?.map((listed) => Reflect.get(listed, "id"))).toEqual([shown]);
    expect(await get(`/api/conversations/${hidden}`)).toMatchObject({ id: hidden, listed: false });
    expect(await get(`/api/conversations/${shown}`)).not.toHaveProperty("listed");
    for (const mark of ["pin", "archive"]) {
      const answer = await request(`/api/conversations/${hidden}/${mark}`, { method: "PUT" }, principal);
      expect(answer.status).toBe(409);
      const problem = await answer.json<object>();
      expect(problem).toMatchObject({ code: "CONFLICT" });
      expect(problem).not.toHaveProperty("retriable");
    }
  });
});
