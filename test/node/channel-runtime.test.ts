/** The posts of a thread with a platform that does not answer, on a virtual clock. */
import { expect, test, vi } from "vitest";
import { NotNow } from "../../src/agents/base/mailbox/handlers.ts";
import { ChannelRuntime } from "../../src/agents/channel/runtime.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ChannelDelivery } from "../../src/protocol/channels.ts";
import type { SubscribedFrame } from "../../src/protocol/subscribers.ts";

const never = () => Promise.reject(new Error("No event waits."));

test("CHANNEL-5 a platform that does not answer stops no thread, and an edit is tried again", async () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const database = new NodeSqlDatabase();
  const clock = new VirtualClock();
  const silent = Promise.withResolvers<ChannelDelivery>().promise;
  const sent: string[] = [];
  const runtime = new ChannelRuntime({
    ...{ database, keyValue: new NodeKeyValue(database), clock },
    armWakeup: async () => undefined,
    adapter: () => ({
      deliver: async (_, { text }) => {
        sent.push(text);
        return sent.length === 1 ? silent : { status: "delivered", reference: "1" };
      },
      edit: async (_, reference, { text }) => {
        sent.push(`${reference}: ${text}`);
        return sent.length === 4 ? silent : { status: "delivered" };
      },
    }),
    conversation: never,
    conversationIdOf: never,
    self: () => ({ kind: "channel", tenant: "acme", id: "slack-1" }),
  });
  const { store } = runtime;
  database.transaction(() => {
    store.put({ channel: "slack", tenant: "acme", agentId: "guide", thread: "t", generation: 0 });
    store.addInput(
      {
        channel: "slack",
        tenant: "acme",
        agentId: "guide",
        thread: "t",
        id: "e",
        subject: "ada",
        surface: 1,
        text: "",
      },
      clock.now(),
    );
    store.endInput(1, "turn_1");
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
  expect(store.nextPost()).toBeUndefined();
  expect(errors).not.toHaveBeenCalled();
});

test("CHANNEL-3 CHANNEL-4 frames of another conversation post nothing, and frames of a turn that begins come again", async () => {
  const database = new NodeSqlDatabase();
  const clock = new VirtualClock();
  const runtime = new ChannelRuntime({
    ...{ database, keyValue: new NodeKeyValue(database), clock },
    armWakeup: async () => undefined,
    adapter: () => ({ deliver: async () => ({ status: "delivered" }) }),
    conversation: never,
    conversationIdOf: never,
    self: () => ({ kind: "channel", tenant: "acme", id: "slack-1" }),
  });
  const { store } = runtime;
  const event = {
    channel: "slack",
    tenant: "acme",
    agentId: "guide",
    thread: "t",
    subject: "ada",
    surface: 1,
  };
  const answer = { operationId: "op_1", approved: true };
  database.transaction(() => {
    store.put({
      channel: "slack",
      tenant: "acme",
      agentId: "guide",
      thread: "t",
      generation: 0,
      owner: "ada",
    });
    store.addInput({ ...event, id: "first", text: "Hello." }, clock.now());
  });
  const frame: SubscribedFrame = {
    v: 1,
    type: "message.completed",
    time: "2026-01-01T00:00:00Z",
    turnId: "turn_1",
    messageId: "msg_1",
    data: { agentId: "guide", content: "Good morning." },
  };
  const receive = (from: string) =>
    database.transaction(() => runtime.receive({ frames: [frame], cursor: 1 }, from, "conv_1", () => {}));
  receive("conv_1");
  expect(store.nextPost(), "a turn of somebody else").toBeUndefined();
  // The attempt of the message has begun. An answer passes the message.
  database.transaction(() => {
    store.delayInput(1, 5, clock.now());
    store.addInput({ ...event, id: "second", text: "", answer }, clock.now());
  });
  expect(() => receive("conv_1")).toThrow(NotNow);
  database.transaction(() => store.endInput(1, "turn_1"));
  receive("conv_0");
  expect(store.nextPost(), "another conversation").toBeUndefined();
  receive("conv_1");
  expect(store.nextPost()).toMatchObject({ body: { text: "Good morning." }, turnId: "turn_1" });
});
