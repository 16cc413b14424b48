/** The posts of a thread with a platform that does not answer, on a virtual clock. */
import { expect, test, vi } from "vitest";
import { ChannelRuntime } from "../../src/agents/channel/runtime.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ChannelDelivery } from "../../src/protocol/channels.ts";

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
