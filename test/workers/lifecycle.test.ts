/** The order of a turn's output, and the deadlines that one alarm serves, on the real Worker. */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { checkInvariants, createAgent, createConversation, type TestConversation } from "./world.ts";

let handy: string;
let buyer: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
  buyer = await createAgent("test/buyer");
});

afterEach(checkInvariants);

describe("E11 the frames of a model call", () => {
  test("begin, stream, and end as a message, or as interim text with its tool calls", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    await client.frame("snapshot");
    const { turnId } = await conversation.play((key) => ({
      replies: [
        [
          { text: "Let me see." },
          { call: "save", input: { key, n: 1 } },
          { call: "charge", input: { key, n: 2 } },
        ],
        [{ text: "Here " }, { text: "it is." }],
      ],
    }));
    await client.frame("turn.finalized");
    const types = client.frames
      .filter((frame) => frame.turnId === turnId)
      .map((frame) =>
        frame.type === "message.completed" && frame.data.interim ? "interim" : String(frame.type),
      );
    const results = ["tool.completed", "tool.completed"];
    expect(types.filter((type, index) => type !== "message.delta" || types[index - 1] !== type)).toEqual([
      "turn.started",
      "message.user",
      "message.started",
      "message.delta",
      "interim",
      "tool.requested",
      "tool.requested",
      ...results,
      "message.started",
      "message.delta",
      "message.completed",
      "turn.completed",
      "turn.finalized",
    ]);
    const agent = (await conversation.messages()).filter(({ role }) => role === "agent");
    expect(agent.map(({ content }) => content)).toEqual(["Here it is."]);
  });

  test("end with the turn's failure, without a message, if the model fails", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    await client.frame("snapshot");
    const { turnId } = await conversation.play({ replies: [{ status: 401, message: "No." }] });
    await client.frame("turn.failed");
    const frames = client.frames.filter((frame) => frame.turnId === turnId && frame.seq !== undefined);
    expect(frames.map(({ type }) => type)).toEqual([
      "turn.started",
      "message.user",
      "message.started",
      "turn.failed",
    ]);
    expect((await conversation.messages()).map(({ role }) => role)).toEqual(["user"]);
  });
});

const [MINUTE, HOUR] = [60_000, 3_600_000];

/** The time of the actor's alarm. A Durable Object has one. */
const alarmOf = ({ stub }: TestConversation) =>
  runInDurableObject(stub, (_, { storage }) => storage.getAlarm());

test("F15 of many deadlines each is met, by one alarm that is set for the next, also after evictions", async () => {
  const conversation = await createConversation(buyer);
  const turns: string[] = [];
  for (const hours of [3, 1, 2]) {
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "order", input: { key, ms: hours * HOUR } }], [{ text: "It is late." }]],
    }));
    await play.runs(1);
    turns[hours] = turnId;
  }
  await vi.waitFor(
    async () => {
      const types = (await conversation.journal()).map(({ type }) => type);
      expect(types.filter((type) => type === "tool.deferred")).toHaveLength(3);
    },
    { timeout: 20_000 },
  );
  const statuses = () =>
    Promise.all([1, 2, 3].map(async (hours) => (await conversation.turn(turns[hours] ?? "")).status));
  const begun = Date.now();
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["Date"], now: begun + MINUTE });
  for (const hours of [1, 2, 3]) {
    await conversation.evict();
    const deadline = begun + hours * HOUR;
    // The alarm also serves earlier due work, such as the usage of the turns.
    let alarm = 0;
    for (let wakes = 0; alarm < deadline - MINUTE; wakes++) {
      expect(wakes).toBeLessThan(10);
      expect(await statuses()).toEqual([1, 2, 3].map((other) => (other < hours ? "completed" : "active")));
      alarm = (await alarmOf(conversation)) ?? expect.fail("no alarm is set");
      expect(alarm).toBeLessThan(deadline + MINUTE);
      vi.setSystemTime(Math.max(alarm, Date.now()));
      expect(await conversation.wake()).toBe(true);
    }
    const turn = await conversation.ended(turns[hours] ?? "");
    expect([turn.status, turn.moves[0]?.toolResult?.error?.code]).toEqual(["completed", "TIMEOUT"]);
  }
}, 30_000);
