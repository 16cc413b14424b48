/** The posts of a thread with a platform that does not answer, on a virtual clock. */
import { describe, expect, test, vi } from "vitest";
import { NotNow } from "../../src/agents/base/mailbox/handlers.ts";
import { TurnPreview } from "../../src/agents/channel/preview.ts";
import { type ChannelPorts, ChannelRuntime } from "../../src/agents/channel/runtime.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ChannelAdapter, ChannelDelivery } from "../../src/protocol/channels.ts";
import type { ConversationFrames, SubscribedFrame } from "../../src/protocol/subscribers.ts";
import { DramatisError } from "../../src/shared/errors.ts";

const never = () => Promise.reject(new Error("No conversation answers."));
const OP = { operationId: "op_1", approved: true };
const EVENT = {
  ...{ channel: "slack", tenant: "acme", agentId: "guide", thread: "t" },
  ...{ subject: "ada", surface: 1, text: "Hello." },
};

/** A thread with an adapter. Its conversations do not answer. `live` begins another life on the same storage. */
function threadWith(adapter: ChannelAdapter) {
  const database = new NodeSqlDatabase();
  const clock = new VirtualClock();
  const live = (ports: Partial<ChannelPorts> = {}) =>
    new ChannelRuntime({
      ...{ database, keyValue: new NodeKeyValue(database), clock },
      armWakeup: async () => undefined,
      adapter: () => adapter,
      conversation: never,
      conversationIdOf: async () => "conv_1",
      self: () => ({ kind: "channel", tenant: "acme", id: "slack-1" }),
      ...ports,
    });
  const runtime = live();
  const { store } = runtime;
  const receive = (body: Partial<ConversationFrames>, from = "conv_1") =>
    database.transaction(() => runtime.receive({ frames: [], cursor: 1, ...body }, from, () => {}));
  database.transaction(() =>
    store.put({
      ...{ channel: "slack", tenant: "acme", agentId: "guide", thread: "t", generation: 0 },
      conversation: { id: "conv_1", owner: "ada" },
    }),
  );
  /** Adds a message with a running turn. */
  const addTurn = (id: string, turnId: string, conversationId = "conv_1") =>
    database.transaction(() => {
      store.addInput({ ...EVENT, id }, clock.now());
      const { seq = 0 } = store.dueInput(clock.now()) ?? {};
      store.placeInput(seq, conversationId);
      store.endInput(seq, turnId);
    });
  return { database, clock, runtime, store, live, receive, addTurn };
}

const answerOf = (turnId: string, content = "Good morning."): SubscribedFrame => ({
  ...{ v: 1, type: "message.completed", time: "2026-01-01T00:00:00Z", turnId, messageId: `msg_${turnId}` },
  data: { agentId: "guide", content },
});

test("CHANNEL-5 a platform that does not answer stops no thread, and an edit is tried again", async () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const silent = Promise.withResolvers<ChannelDelivery>().promise;
  const sent: string[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const { clock, runtime, store, database, addTurn } = threadWith({
    deliver: async (_, { text }, signal) => {
      sent.push(text);
      signals.push(signal);
      return sent.length === 1 ? silent : { status: "delivered", reference: "1" };
    },
    edit: async (_, reference, { text }) => {
      sent.push(`${reference}: ${text}`);
      return sent.length === 4 ? silent : { status: "delivered" };
    },
  });
  addTurn("e", "turn_1");
  database.transaction(() => {
    store.putPreview("turn_1", { messageId: "msg_2", reference: "7" });
    store.addPost(1, { text: "First." }, {}, clock.now());
    store.addPost(1, { text: "Second." }, { turnId: "turn_1", messageId: "msg_2" }, clock.now());
    store.addPost(1, { text: "Third." }, { turnId: "turn_1", messageId: "msg_3" }, clock.now());
  });
  runtime.reconcile();
  for (let minute = 0; minute < 2; minute += 1) {
    await clock.advance(60_000);
    runtime.reconcile();
  }
  await clock.advance(1_000);
  expect(sent).toEqual(["…", "…", "1: First.", "7: Second.", "7: Second.", "…", "1: Third."]);
  expect(signals.map((signal) => signal?.aborted)).toEqual([true, false, false]);
  expect(store.nextPost()).toBeUndefined();
  expect(errors).not.toHaveBeenCalled();
});

test("CHANNEL-5 a text whose message can no longer change gets another message, once", async () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const gone: ChannelDelivery = {
    ...{ status: "failed", retryable: false },
    error: { code: "message_not_found", message: "Gone." },
  };
  const sent: string[] = [];
  const { clock, runtime, store, database, addTurn } = threadWith({
    deliver: async (_, { text }) => {
      sent.push(text);
      return { status: "delivered", reference: "new" };
    },
    edit: async (_, reference, { text }) => {
      sent.push(`${reference}: ${text}`);
      return reference === "old" || text === "Third." ? gone : { status: "delivered" };
    },
  });
  addTurn("e", "turn_1");
  database.transaction(() => {
    store.putPreview("turn_1", { messageId: "msg_1", reference: "old" });
    store.addPost(1, { text: "First." }, { turnId: "turn_1", messageId: "msg_1" }, clock.now());
    store.addPost(1, { text: "Third." }, {}, clock.now());
  });
  runtime.reconcile();
  await clock.advance(1_000);
  expect(sent).toEqual(["old: First.", "…", "new: First.", "…", "new: Third."]);
  expect(store.nextPost()).toBeUndefined();
  expect(String(errors.mock.calls)).toContain("message_not_found");
});

test("CHANNEL-5 an adapter that edits without references is named in the log", async () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const sent: string[] = [];
  const { clock, runtime, store, database } = threadWith({
    deliver: async (_, { text }) => {
      sent.push(text);
      return { status: "delivered" };
    },
    edit: async () => ({ status: "delivered" }),
  });
  database.transaction(() => store.addPost(1, { text: "First." }, {}, clock.now()));
  runtime.reconcile();
  await clock.advance(1_000);
  expect(sent).toEqual(["…"]);
  expect(String(errors.mock.calls)).toContain("returns a `reference` from `deliver`");
});

test("CHANNEL-3 CHANNEL-4 frames of another conversation post nothing, and frames of a turn that begins come again", () => {
  const { store, database, clock, receive } = threadWith({ deliver: async () => ({ status: "delivered" }) });
  database.transaction(() => store.addInput({ ...EVENT, id: "first" }, clock.now()));
  const frames = [answerOf("turn_1")];
  receive({ frames });
  expect(store.nextPost(), "a turn of somebody else").toBeUndefined();
  // The attempt of the message has begun. An answer passes the message.
  database.transaction(() => {
    store.placeInput(1, "conv_1");
    store.delayInput(1, 5, clock.now());
    store.addInput({ ...EVENT, id: "second", text: "", answer: OP }, clock.now());
  });
  expect(() => receive({ frames })).toThrow(NotNow);
  expect(() => receive({ frames }, "conv_0")).not.toThrow();
  database.transaction(() => store.endInput(1, "turn_1"));
  receive({ frames }, "conv_0");
  expect(store.nextPost(), "another conversation").toBeUndefined();
  receive({ frames });
  expect(store.nextPost()).toMatchObject({ body: { text: "Good morning." }, turnId: "turn_1" });
});

test("CHANNEL-3 CHANNEL-4 the turns of an earlier conversation still answer, and its deletion deletes their texts only", () => {
  const { store, database, receive, addTurn } = threadWith({
    deliver: async () => ({ status: "delivered" }),
  });
  addTurn("first", "turn_1");
  addTurn("second", "turn_2");
  const renewed = { ...EVENT, generation: 1, conversation: { id: "conv_2", owner: "ada" } };
  database.transaction(() => store.put(renewed));
  addTurn("third", "turn_3", "conv_2");
  receive({ frames: [answerOf("turn_1"), answerOf("turn_2")] });
  receive({ frames: [answerOf("turn_3", "Of the second.")] }, "conv_2");
  expect(store.nextPost()).toMatchObject({ turnId: "turn_1" });
  expect(store.conversations()).toEqual(["conv_2", "conv_1"]);
  receive({ ended: "deleted" });
  expect(store.find()).toMatchObject({ generation: 1, conversation: { id: "conv_2" } });
  expect(store.nextPost()).toMatchObject({ body: { text: "Of the second." } });
  expect(store.conversations()).toEqual(["conv_2"]);
  receive({ ended: "deleted" }, "conv_2");
  expect(store.find()).toMatchObject({ generation: 2 });
  expect(store.find()).not.toHaveProperty("conversation");
  expect(store.nextPost()).toBeUndefined();
});

test("CHANNEL-3 a conversation can be deleted while the application lacks the channel", () => {
  const { store, live, database, addTurn, receive } = threadWith({
    deliver: async () => ({ status: "delivered" }),
  });
  addTurn("first", "turn_1");
  receive({ frames: [answerOf("turn_1")] });
  const lacking = live({
    adapter: () => {
      throw new Error("There is no such channel.");
    },
  });
  database.transaction(() =>
    lacking.receive({ frames: [], cursor: 1, ended: "deleted" }, "conv_1", () => {}),
  );
  expect(store.nextPost()).toBeUndefined();
});

test("CHANNEL-3 the deletion of a conversation deletes the sender of a message that it refused", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const { store, database, clock, live } = threadWith({ deliver: async () => ({ status: "delivered" }) });
  database.transaction(() => store.addInput({ ...EVENT, id: "first" }, clock.now()));
  const runtime = live({
    conversation: () => Promise.reject(new DramatisError("TOO_LARGE", "The message is too large.")),
  });
  runtime.wake();
  await clock.advance(1);
  const rows = () => database.all("SELECT subject, surface, body FROM channel_inputs");
  expect(rows()).toEqual([{ subject: "ada", surface: "1", body: null }]);
  database.transaction(() =>
    runtime.receive({ frames: [], cursor: 1, ended: "deleted" }, "conv_1", () => {}),
  );
  expect(rows()).toEqual([{ subject: "", surface: "null", body: null }]);
});

test("CHANNEL-3 an answer to a request leaves no trace of its sender", async () => {
  const { database, clock, store, live } = threadWith({ deliver: async () => ({ status: "delivered" }) });
  database.transaction(() => store.addInput({ ...EVENT, id: "button", text: "", answer: OP }, clock.now()));
  const rows = () => database.all("SELECT id, subject, surface, body FROM channel_inputs");
  expect(rows()).toMatchObject([{ subject: "ada", surface: "1" }]);
  live({
    conversation: () => Promise.reject(new DramatisError("NOT_FOUND", "No call waits.")),
  }).wake();
  await clock.advance(1);
  expect(rows()).toEqual([{ id: "button", subject: "", surface: "null", body: null }]);
});

test("CHANNEL-6 an answer passes the messages, and a failing answer stops no message", () => {
  const { store, database, clock } = threadWith({ deliver: async () => ({ status: "delivered" }) });
  database.transaction(() => {
    for (const id of ["first", "second"]) store.addInput({ ...EVENT, id }, clock.now());
    store.addInput({ ...EVENT, id: "button", text: "", answer: OP }, clock.now());
  });
  const next = () => store.dueInput(clock.now())?.id;
  expect(next()).toBe("button");
  database.transaction(() => store.delayInput(3, 1, clock.now() + 60_000));
  expect(next()).toBe("first");
  database.transaction(() => store.delayInput(1, 1, clock.now() + 30_000));
  expect(next(), "messages keep their order").toBeUndefined();
  expect(store.dueAt).toBe(clock.now() + 30_000);
});

test("CHANNEL-2 CHANNEL-5 crashes use up no attempts: a text and a message wait for a result", async () => {
  const silent = Promise.withResolvers<never>().promise;
  const sent: string[] = [];
  let isSilent = true;
  const { store, database, clock, live } = threadWith({
    deliver: async (_, { text }) => {
      sent.push(text);
      return isSilent ? silent : { status: "delivered", reference: "1" };
    },
    edit: async (_, reference, { text }) => {
      sent.push(`${reference}: ${text}`);
      return { status: "delivered" };
    },
  });
  database.transaction(() => {
    store.addPost(1, { text: "First." }, {}, clock.now());
    store.addInput({ ...EVENT, id: "first" }, clock.now());
  });
  let starts = 0;
  const conversation = () => {
    starts += 1;
    return silent;
  };
  for (let life = 0; life < 20; life += 1) {
    // The life ends during its attempts.
    live({ conversation }).wake();
    await clock.advance(1);
  }
  expect([starts, sent.length]).toEqual([20, 20]);
  expect(store.nextPost()).toMatchObject({ attempts: 0, isSending: true });
  expect(store.dueInput(clock.now())).toMatchObject({ attempts: 0 });
  isSilent = false;
  live({ conversation }).wake();
  await clock.advance(1);
  expect(sent.slice(20)).toEqual(["…", "1: First."]);
});

test("CHANNEL-3 a changed agent begins with a new message, and a begun message ends where it began", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  for (const hasBegun of [false, true]) {
    const { store, database, clock, live } = threadWith({ deliver: async () => ({ status: "delivered" }) });
    database.transaction(() => {
      store.addInput({ ...EVENT, agentId: "other", id: "first" }, clock.now());
      if (hasBegun) store.placeInput(1, "conv_1");
    });
    live().wake();
    await clock.advance(1);
    expect(store.find()).toMatchObject(hasBegun ? { agentId: "guide" } : { agentId: "other", generation: 1 });
  }
});

test("CHANNEL-4 a refused message holds up no frames, and a message whose start is unknown does", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  for (const [code, isHeldUp] of [
    ["RATE_LIMITED", false],
    ["UNAVAILABLE", true],
  ] as const) {
    const { store, database, clock, live } = threadWith({ deliver: async () => ({ status: "delivered" }) });
    database.transaction(() => store.addInput({ ...EVENT, id: "first" }, clock.now()));
    const runtime = live({
      conversation: () => Promise.reject(new DramatisError(code, "Not now.", { retriable: true })),
    });
    runtime.wake();
    await clock.advance(1);
    const receive = () =>
      database.transaction(() =>
        runtime.receive({ frames: [answerOf("turn_9")], cursor: 1 }, "conv_1", () => {}),
      );
    if (isHeldUp) expect(receive).toThrow(NotNow);
    else expect(receive).not.toThrow();
  }
});

test("CHANNEL-7 the error of a turn replaces the preview of its incomplete message", async () => {
  const sent: string[] = [];
  const { clock, runtime, store, database, addTurn, receive } = threadWith({
    deliver: async (_, { text }) => {
      sent.push(text);
      return { status: "delivered", reference: "new" };
    },
    edit: async (_, reference, { text }) => {
      sent.push(`${reference}: ${text}`);
      return { status: "delivered" };
    },
  });
  addTurn("first", "turn_1");
  database.transaction(() => {
    store.putPreview("turn_1", { messageId: "msg_turn_1", reference: "1" });
    store.putPreview("turn_1", { messageId: "msg_b", reference: "2" });
  });
  const failed = {
    ...{ v: 1, type: "turn.failed", time: "2026-01-01T00:00:00Z", turnId: "turn_1" },
    data: { error: { code: "MODEL_FAILED", message: "No." } },
  } as SubscribedFrame;
  receive({ frames: [answerOf("turn_1"), failed, failed] });
  runtime.reconcile();
  await clock.advance(1);
  const error = "I could not answer (MODEL_FAILED).";
  expect(sent).toEqual(["1: Good morning.", `2: ${error}`, "…", `new: ${error}`]);
});

test("CHANNEL-3 a text is not shown if its conversation is deleted while its placeholder is sent", async () => {
  const answer = Promise.withResolvers<ChannelDelivery>();
  const edit = vi.fn(async (): Promise<ChannelDelivery> => ({ status: "delivered" }));
  const { clock, runtime, store, addTurn, receive } = threadWith({ deliver: () => answer.promise, edit });
  addTurn("first", "turn_1");
  receive({ frames: [answerOf("turn_1", "A secret.")] });
  runtime.reconcile();
  await clock.advance(1);
  receive({ ended: "deleted" });
  answer.resolve({ status: "delivered", reference: "1" });
  await clock.advance(1);
  expect(edit).not.toHaveBeenCalled();
  expect(store.nextPost()).toBeUndefined();
});

test("CHANNEL-5 a text that may have been sent is not sent again after a life without the channel", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const sent: string[] = [];
  const { store, database, clock, live } = threadWith({
    deliver: async (_, { text }) => {
      sent.push(text);
      return { status: "delivered" };
    },
  });
  database.transaction(() => store.addPost(1, { text: "The invoice." }, {}, clock.now()));
  const silent = Promise.withResolvers<ChannelDelivery>().promise;
  const deliver = () => {
    sent.push("The first attempt.");
    return silent;
  };
  live({ adapter: () => ({ deliver }) }).wake();
  await clock.advance(1);
  const lacking = live({
    adapter: () => {
      throw new Error("There is no such channel.");
    },
  });
  lacking.wake();
  await clock.advance(5_000);
  live().wake();
  await clock.advance(5_000);
  expect(sent).toEqual(["The first attempt."]);
  expect(store.nextPost()).toBeUndefined();
});

describe("CHANNEL-7 a preview", () => {
  const delta = (messageId: string, offset: number, text: string) =>
    new TextEncoder().encode(
      `${JSON.stringify({ v: 1, type: "message.delta", time: "2026-01-01T00:00:00Z", turnId: "turn_1", messageId, data: { offset, text } })}\n`,
    );

  /** A preview of a message that grows every second, for `seconds`. */
  async function growing(adapter: Required<Pick<ChannelAdapter, "deliver" | "edit">>, seconds: number) {
    const clock = new VirtualClock();
    const preview = new TurnPreview({ clock, adapter, surface: 1, mayBegin: () => true, store: () => {} });
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    void preview.follow(readable);
    const writer = writable.getWriter();
    const write = async (messageId: string, count: number) => {
      for (let second = 0; second < count; second += 1) {
        void writer.write(delta(messageId, second, "x"));
        // The stream is read in real time.
        await new Promise((resolve) => setImmediate(resolve));
        await clock.advance(1_000);
      }
    };
    await write("msg_1", seconds);
    return { preview, write };
  }

  test.each([
    { status: "delivered" },
    { status: "failed", retryable: true, retryAfterMs: 60_000, error: { code: "429", message: "Slowly." } },
    { status: "uncertain", error: { code: "NETWORK", message: "Cut." } },
  ] satisfies ChannelDelivery[])("ends if its placeholder has no known place: $status", async (result) => {
    const deliver = vi.fn(async () => result);
    const edit = vi.fn(async (): Promise<ChannelDelivery> => ({ status: "delivered" }));
    await growing({ deliver, edit }, 20);
    expect([deliver.mock.calls.length, edit.mock.calls.length]).toEqual([1, 0]);
  });

  test("shows the text as it grows", async () => {
    const edit = vi.fn(async (..._: unknown[]): Promise<ChannelDelivery> => ({ status: "delivered" }));
    await growing({ deliver: async () => ({ status: "delivered", reference: "1" }), edit }, 4);
    expect(edit.mock.calls.slice(0, 2).map(([, ...rest]) => rest.slice(0, 2))).toEqual([
      ["1", { text: "x …" }],
      ["1", { text: expect.stringMatching(/^xx+ …$/) }],
    ]);
  });

  test("ends if its placeholder is refused by an error", async () => {
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const deliver = vi.fn(() => Promise.reject(new Error("No answer.")));
    await growing({ deliver, edit: async () => ({ status: "delivered" }) }, 20);
    expect(deliver).toHaveBeenCalledTimes(1);
  });

  test("CHANNEL-3 of a deleted conversation shows nothing more", async () => {
    const deliver = vi.fn(async (): Promise<ChannelDelivery> => ({ status: "delivered", reference: "1" }));
    const { preview, write } = await growing({ deliver, edit: async () => ({ status: "delivered" }) }, 2);
    preview.stop();
    await write("msg_2", 5);
    expect(deliver).toHaveBeenCalledTimes(1);
  });

  test("that ends while its placeholder is sent shows no text", async () => {
    const answer = Promise.withResolvers<ChannelDelivery>();
    const edit = vi.fn(async (): Promise<ChannelDelivery> => ({ status: "delivered" }));
    const { preview } = await growing({ deliver: () => answer.promise, edit }, 2);
    const ended = preview.end();
    answer.resolve({ status: "delivered", reference: "1" });
    await ended;
    expect(edit).not.toHaveBeenCalled();
  });
});
