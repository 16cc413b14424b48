/** The conversation loop on workerd: real actors, real adapter and gateway, a scripted provider over loopback. */
import { beforeAll, describe, expect, test } from "vitest";
import { crash, createAgent, createConversation, partialText, type TestConversation } from "./world.ts";

let handy: string;
beforeAll(async () => {
  handy = await createAgent("test/handy");
});
const open = (): Promise<TestConversation> => createConversation(handy);

describe("x", () => {
  test("hello", async () => {
    const conversation = await open();
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Hi" }]] });
    const turn = await conversation.ended(turnId);
    expect(turn).toEqual(1);
  });
  test("evict midstream", async () => {
    const conversation = await open();
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play({
      replies: [{ attempts: [[{ text: "Hi " }, { gate: "g" }, { text: "x" }], [{ text: "Hello" }]] }],
    });
    await client.until((s) => partialText(s) === "Hi ");
    console.log("evicting", Date.now());
    await conversation.evict();
    console.log("evicted", Date.now());
    await client.frame("message.reset");
    await client.frame("turn.completed");
    console.log(Date.now(), JSON.stringify(client.frames, null, 1));
    await play.open("g");
  });
  test("crash midstream", async () => {
    const conversation = await open();
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play({
      replies: [{ attempts: [[{ text: "Hi " }, { gate: "g" }, { text: "x" }], [{ text: "Hello" }]] }],
    });
    await client.until((s) => partialText(s) === "Hi ");
    console.log("crashing", Date.now());
    await crash();
    console.log("crashed", Date.now());
    console.log(await client.whenClosed());
    expect(await conversation.wake()).toBe(true);
    const again = await conversation.connect({ from: client.position });
    await again.frame("message.reset");
    await again.frame("turn.completed");
    console.log(Date.now(), JSON.stringify(again.frames, null, 1));
    await play.open("g");
  });
});
