/** Stops and resumes on the real Worker, over each of its entrances. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { LiveConversation } from "../../src/client/state.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { cancelledOperations } from "./library.ts";
import { Play } from "./provider.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

const CANCELLED = { code: "CANCELLED", message: "The turn was stopped.", retriable: true };

let plain: string;
let handy: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
  handy = await createAgent("test/handy");
});

afterEach(checkInvariants);

/** A reply that shows a text and then waits. */
const half = (text: string) => ({ replies: [[{ text }, { gate: "shown" }, { text: " and the rest." }]] });

const isOver = (turnId: string) => (state: LiveConversation) =>
  state.turns.some(({ id, status }) => id === turnId && status !== "active");

/** Reports that these are the texts in progress. */
const shows =
  (...texts: string[]) =>
  ({ turns }: LiveConversation) =>
    turns
      .flatMap(({ items }) => items.flatMap((item) => (item.type === "partial" ? [item.text] : [])))
      .join() === texts.join();

/** The messages of the last request of a script, without the instructions. */
async function lastRequestOf(play: Play): Promise<[role: string, content: string | null][]> {
  const requests = await play.requests(1);
  const messages = requests.at(-1)?.body.messages ?? [];
  return messages.slice(1).map(({ role, content }) => [role, content]);
}

describe("a turn", () => {
  test("G18 STOP-1 STOP-3 is stopped beside another: its model call is aborted at once, its text stays, and the other turn continues", async () => {
    const conversation = await createConversation(plain);
    const client = await conversation.connect();
    const one = await conversation.play(half("One"));
    const two = await conversation.play(half("Two"));
    for (const { play } of [one, two]) await play.reached("shown");
    await client.until(shows("One", "Two"));

    const [status, turn] = await conversation.stop(one.turnId, { reason: "Wrong question." });
    expect([status, turn.status, turn.error, turn.answer]).toEqual([200, "failed", CANCELLED, null]);
    expect(await one.play.closes(1)).toEqual([{ reply: 0 }]);

    await client.until(isOver(one.turnId));
    const item = client.state.turns.find(({ id }) => id === one.turnId)?.items.at(-1);
    expect(item).toMatchObject({ type: "message", message: { content: "One", stopped: true } });
    const frames = client.frames.filter(({ turnId }) => turnId === one.turnId).slice(-2);
    expect(frames).toMatchObject([
      { type: "message.completed", data: { content: "One", stopped: true } },
      { type: "turn.failed", data: { error: CANCELLED } },
    ]);

    expect(await conversation.stop(one.turnId)).toEqual([200, turn]);
    await two.play.open("shown");
    await client.until(isOver(two.turnId));
    expect((await conversation.turn(two.turnId)).answer).toBe("Two and the rest.");
    const [late, problem] = await conversation.stop(two.turnId);
    expect([late, problem.code]).toEqual([409, "CONFLICT"]);

    const messages = await conversation.messages();
    expect(messages.filter(({ role }) => role === "agent")).toMatchObject([
      { turnId: one.turnId, content: "One", stopped: true },
      { turnId: two.turnId, content: "Two and the rest." },
    ]);
    expect(messages.filter(({ stopped }) => stopped)).toHaveLength(1);
    const journal = await conversation.journal();
    expect(journal.filter(({ type }) => type === "turn.failed")).toMatchObject([
      { data: { by: { type: "user", userId: "ada" }, reason: "Wrong question." } },
    ]);
  });

  test("G18 E14 STOP-1 OP-5 its running tools abort within a second, each is cancelled once, and after a stop in a `once` call the model learns that its outcome is unknown", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [
          { call: "patient", input: { key } },
          { call: "charge", input: { key, gate: "never" } },
          { call: "patient", input: { key } },
        ],
        [{ text: "Never said." }],
      ],
    }));
    const runs = await play.runs(3);
    const patient = runs.flatMap(({ tool, operationId }) => (tool === "patient" ? [operationId] : []));
    const [status] = await conversation.stop(turnId);
    expect(status).toBe(200);
    await vi.waitFor(() => expect(patient.every((id) => cancelledOperations.has(id))).toBe(true), 1_000);

    await client.until(isOver(turnId));
    const cancelled = client.framesOf("tool.cancelled");
    expect(cancelled.map(({ operationId }) => operationId).sort()).toEqual(
      runs.map(({ operationId }) => operationId).sort(),
    );
    expect(cancelled.map(({ data }) => data.error.code)).toEqual(Array(3).fill("CANCELLED"));
    const tools = client.state.turns.flatMap(({ items }) =>
      items.flatMap((item) => (item.type === "tool" ? [item.operation.state] : [])),
    );
    expect(tools).toEqual(Array(3).fill("cancelled"));
    await play.open("never");

    const again = await conversation.play({ replies: [[{ text: "I do not know." }]] });
    await client.until(isOver(again.turnId));
    const asked = await lastRequestOf(again.play);
    expect(asked.map(([role]) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "tool",
      "tool",
      "system",
      "user",
    ]);
    expect(asked.filter(([role]) => role === "tool").map(([, content]) => content)).toEqual([
      expect.stringContaining("was stopped"),
      expect.stringContaining("Outcome unknown"),
      expect.stringContaining("was stopped"),
    ]);
    expect(await play.runs()).toHaveLength(3);
    expect(await play.requests()).toHaveLength(1);
    expect(client.framesOf("tool.cancelled")).toHaveLength(3);
  });

  test.each(["before its cancellation has left", "after it got its cancellation"])(
    "G18 OP-6 BATCH-5 with a `once` tool that still succeeds %s has one note of the result, and the model gets it",
    async (when) => {
      const conversation = await createConversation(handy);
      const client = await conversation.connect();
      const { play, turnId } = await conversation.play((key) => ({
        replies: [
          [
            { call: "charge", input: { key, gate: "paid", deaf: true, n: 7 } },
            { call: "patient", input: { key } },
          ],
        ],
      }));
      const patient = (await play.runs(2)).find(({ tool }) => tool === "patient")?.operationId ?? "";
      await conversation.stop(turnId);
      if (when.startsWith("after"))
        await vi.waitFor(() => expect(cancelledOperations.has(patient)).toBe(true), 2_000);
      await play.open("paid");
      await client.until(isOver(turnId));
      const late = async () => (await conversation.journal()).filter(({ type }) => type === "tool.late");
      await vi.waitFor(async () => expect(await late()).toHaveLength(1), 5_000);
      const again = await conversation.play({ replies: [[{ text: "It was charged." }]] });
      await client.until(isOver(again.turnId));
      const notes = (await lastRequestOf(again.play)).filter(([, content]) =>
        content?.includes("it took effect"),
      );
      expect(notes).toEqual([["system", expect.stringContaining('"n":7')]]);
      expect(await late()).toHaveLength(1);
    },
  );

  test("G10 G18 STOP-1 that waits for a tool of its client ends, and a late result is refused", async () => {
    const conversation = await createConversation(plain);
    const client = await conversation.connect();
    const tools = [{ name: "look", description: "Looks.", inputSchema: { type: "object" as const } }];
    const { play, turnId } = await conversation.play(
      { replies: [[{ call: "look", input: {} }], [{ text: "Never said." }]] },
      { tools },
    );
    const { operationId = "" } = await client.frame("tool.requested");
    await client.frame("turn.waiting");
    const [status, { error }] = await conversation.stop(turnId);
    expect([status, error]).toEqual([200, CANCELLED]);
    await client.frame("tool.cancelled", (frame) => frame.operationId === operationId);
    expect(await conversation.result(operationId, { result: 1 })).toMatchObject([409, { code: "CONFLICT" }]);
    expect(await play.requests()).toHaveLength(1);
  });

  test("G18 STOP-1 a client tool is answered, then a stop in the continuation: the provider's request is aborted", async () => {
    const conversation = await createConversation(plain);
    const client = await conversation.connect();
    const tools = [{ name: "look", description: "Looks.", inputSchema: { type: "object" as const } }];
    const { play, turnId } = await conversation.play(
      { replies: [[{ call: "look", input: {} }], [{ text: "I see" }, { gate: "shown" }]] },
      { tools },
    );
    const { operationId = "" } = await client.frame("tool.requested");
    await client.frame("turn.waiting");
    expect((await conversation.result(operationId, { result: 1 }))[0]).toBe(200);
    await play.reached("shown");
    await client.until(shows("I see"));
    await conversation.stop(turnId);
    expect(await play.closes(2)).toContainEqual({ reply: 1 });
    expect(client.framesOf("tool.cancelled")).toEqual([]);
  });

  test("STOP-1 continues when the connection that follows it closes", async () => {
    const conversation = await createConversation(plain);
    const play = new Play(half("Still"));
    const body = JSON.stringify({ content: play.content });
    const reader = await conversation.events("/turns", { method: "POST", body });
    const { turnId = "" } = await reader.upTo("message.started");
    await play.reached("shown");
    await reader.cancel();
    await play.open("shown");
    expect(await conversation.ended(turnId)).toMatchObject({ answer: "Still and the rest." });
  });
});

describe("a conversation", () => {
  test("G18 E14 E15 E16 STOP-2 is stopped with its turns, records messages, and resumes with all of them", async () => {
    const conversation = await createConversation(plain);
    const client = await conversation.connect();
    const one = await conversation.play(half("One"));
    const two = await conversation.play(half("Two"));
    for (const { play } of [one, two]) await play.reached("shown");
    await client.until(shows("One", "Two"));

    const [status, stopped] = await conversation.gate("cancel", { reason: "Lunch." });
    expect([status, stopped.gate]).toEqual([200, "cancelled"]);
    await client.until(({ conversation: view }) => view?.gate === "cancelled");
    for (const { turnId } of [one, two]) expect((await conversation.turn(turnId)).error).toEqual(CANCELLED);
    expect(await conversation.gate("cancel")).toEqual([200, stopped]);

    const play = new Play({ replies: [[{ text: "Never said." }]] });
    const body = JSON.stringify({ content: play.content, idempotencyKey: "meanwhile" });
    const reader = await conversation.events("/turns", { method: "POST", body });
    const frames = await reader.rest();
    expect(frames.map(({ type }) => type)).toEqual(["turn.started", "message.user", "turn.failed"]);
    const { turnId } = await conversation.say(play.content, { idempotencyKey: "meanwhile" });
    expect(frames[0]?.turnId).toBe(turnId);
    expect((await conversation.turn(turnId)).error?.code).toBe("CANCELLED");
    await client.until(isOver(turnId));
    expect(client.state.messages.at(-1)).toMatchObject({ role: "user", content: play.content });

    const [resumed, view] = await conversation.gate("resume");
    expect([resumed, view.gate]).toEqual([200, "idle"]);
    await client.until(({ conversation: live }) => live?.gate === "idle");
    const [refused, problem] = await conversation.gate("resume");
    expect([refused, problem.code]).toEqual([409, "NOT_CANCELLED"]);

    const again = await conversation.play({ replies: [[{ text: "All right." }]] });
    await client.until(isOver(again.turnId));
    expect((await conversation.turn(again.turnId)).answer).toBe("All right.");
    expect(await play.requests()).toEqual([]);
    expect(await lastRequestOf(again.play)).toEqual([
      ["user", one.play.content],
      ["assistant", "One"],
      ["system", expect.stringContaining("was stopped")],
      ["user", two.play.content],
      ["assistant", "Two"],
      ["system", expect.stringContaining("was stopped")],
      ["user", play.content],
      ["system", expect.stringContaining("not answered")],
      ["user", again.play.content],
    ]);
    const late = await conversation.connect();
    await late.until(({ turns }) => turns.length === 4);
    expect(late.state.turns).toEqual(client.state.turns);
    expect(late.state.messages).toEqual(client.state.messages);
  });

  test("G18 E16 STOP-2 is stopped and resumed over a WebSocket, and stays stopped after an eviction", async () => {
    const conversation = await createConversation(plain);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play(half("One"));
    await play.reached("shown");
    client.send({ type: "turn.cancel", turnId, reason: "Enough." });
    await client.until(isOver(turnId));
    client.send({ type: "conversation.cancel" });
    await client.frame("conversation.updated", ({ data }) => data.gate === "cancelled");
    await conversation.evict();
    expect((await conversation.view()).gate).toBe("cancelled");
    client.send({ type: "conversation.resume", reason: "Back." });
    await client.frame("conversation.updated", ({ data }) => data.gate === "idle");

    client.send({ type: "conversation.resume" });
    await client.frame("error", ({ data }) => data.code === "NOT_CANCELLED");
    const done = await conversation.play({ replies: [[{ text: "Done." }]] });
    await client.until(isOver(done.turnId));
    client.send({ type: "turn.cancel", turnId: done.turnId });
    await client.frame("error", ({ data }) => data.code === "CONFLICT" && data.ref === done.turnId);
    client.send({ type: "turn.cancel", turnId: "turn_none" });
    await client.frame("error", ({ data }) => data.code === "NOT_FOUND" && data.ref === "turn_none");
    const journal = await conversation.journal();
    expect(
      journal.flatMap(({ type, data }) => (type.startsWith("conversation.resumed") ? [data] : [])),
    ).toEqual([{ by: { type: "user", userId: "ada" }, reason: "Back." }]);
  });

  test("RUN-9 STOP-1 is stopped with its turns however often it was stopped and resumed without any", async () => {
    const conversation = await createConversation(plain);
    const toggled: number[] = [];
    for (let n = 0; n < 20; n++)
      toggled.push((await conversation.gate(n % 2 === 0 ? "cancel" : "resume"))[0]);
    expect(toggled).toEqual(Array(20).fill(200));
    const [one, two] = [await conversation.play(half("One")), await conversation.play(half("Two"))];
    for (const { play } of [one, two]) await play.reached("shown");
    expect((await conversation.stop(one.turnId))[0]).toBe(200);
    expect(await conversation.gate("cancel")).toMatchObject([200, { gate: "cancelled" }]);
    expect((await conversation.turn(two.turnId)).error).toEqual(CANCELLED);
    expect(await conversation.gate("cancel")).toMatchObject([200, { gate: "cancelled" }]);
    expect(await conversation.gate("resume")).toMatchObject([429, { code: "RATE_LIMITED" }]);
  });

  test("G18 STOP-4 is stopped by users who may read it, resumed by users who may speak in it, and is unknown to others", async () => {
    const conversation = await createConversation(plain);
    const { play, turnId } = await conversation.play(half("One"));
    await play.reached("shown");
    const member: Principal = { subject: "mel", tenant: "test", roles: ["member"] };
    const stranger: Principal = { subject: "ada", tenant: "elsewhere", roles: ["admin"] };
    const operator: Principal = { subject: "olga", tenant: "test", roles: ["operator"] };
    for (const principal of [member, stranger]) {
      const answers = await Promise.all([
        conversation.stop(turnId, {}, principal),
        conversation.gate("cancel", {}, principal),
        conversation.gate("resume", {}, principal),
      ]);
      expect(answers.map(([status, { code }]) => [status, code])).toEqual(Array(3).fill([404, "NOT_FOUND"]));
    }
    expect((await conversation.turn(turnId)).status).toBe("active");
    expect((await conversation.stop(turnId, {}, operator))[0]).toBe(200);
    expect((await conversation.gate("cancel", {}, operator))[1].gate).toBe("cancelled");
    expect(await conversation.gate("resume", {}, operator)).toMatchObject([403, { code: "FORBIDDEN" }]);
    expect((await conversation.gate("resume"))[1].gate).toBe("idle");
    const journal = await conversation.journal();
    const by = (userId: string) => ({ by: { type: "user", userId } });
    expect(journal.slice(-3).map(({ type, data }) => [type, data])).toEqual([
      ["turn.failed", by("olga")],
      ["conversation.cancelled", by("olga")],
      ["conversation.resumed", by("ada")],
    ]);
  });

  test("STOP-1 STOP-2 takes a reason or no body at all, and refuses anything else", async () => {
    const conversation = await createConversation(plain);
    const { turnId } = await conversation.play({ replies: [[{ text: "Done." }]] });
    await conversation.ended(turnId);
    const send = (body: string | null) =>
      request(`${conversation.path}/cancel`, { method: "POST", body }).then(({ status }) => status);
    expect(await send(null)).toBe(200);
    expect(await send("")).toBe(200);
    expect(await send("{}")).toBe(200);
    expect(await send('{"reason":"Enough."}')).toBe(200);
    expect(await send('{"why":"Enough."}')).toBe(422);
    expect(await send(`{"reason":"${"x".repeat(501)}"}`)).toBe(422);
    expect(await send('{"reason":""}')).toBe(422);
    expect(await send("{")).toBe(400);
    const unknown = async (of: TestConversation, id: string) => (await of.stop(id))[0];
    expect(await unknown(conversation, "turn_01JD0000000000000000000000")).toBe(404);
    expect(await unknown(conversation, "turn_1")).toBe(404);
  });
});
