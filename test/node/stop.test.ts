/** Stopped turns: the work that ends with them, the state that stays, and late arrivals. */
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { SteeredConversation } from "../support/steered-model.ts";

const ADA = { type: "user", userId: "ada" } as const;
const ofType =
  (type: Frame["type"]) =>
  (frame: Frame): boolean =>
    frame.type === type;

/** A library with a `once` tool that ignores its signal until the test ends it, and a tool that obeys. */
function office() {
  const sent = Promise.withResolvers<string>();
  const [begun, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const mail = defineTool({
    name: "mail",
    description: "Sends a mail.",
    effect: "once",
    input: z.object({ to: z.string() }),
    execute: () => {
      begun.resolve();
      return sent.promise;
    },
  });
  const count = defineTool({
    name: "count",
    description: "Counts.",
    effect: "idempotent",
    input: z.object({}),
    execute: (_input, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          aborted.resolve();
          reject(signal.reason);
        });
      }),
  });
  return {
    send: sent.resolve,
    begun: begun.promise,
    aborted: aborted.promise,
    library: defineLibrary("office", { tools: [mail, count] }),
  };
}

describe("a stop", () => {
  test("STOP-1 OP-5 E14 while a `once` mail is sent, then 'try again': cancels each running operation once, and the request reports the outcome of the mail as unknown", async () => {
    const { library, aborted } = office();
    const room = await SteeredConversation.create(library);
    const id = await room.say("Mail Ben and count");
    (await room.request()).call(["mail", { to: "Ben" }], ["count", {}]);
    await room.until(ofType("tool.requested"));
    await room.stop(id);
    await room.stop(id);
    const cancelled = room.frames.filter(ofType("tool.cancelled"));
    expect(cancelled.map(({ data }) => ("error" in data ? data.error : null))).toEqual([
      { code: "CANCELLED", message: expect.stringContaining("Outcome unknown"), retriable: false },
      { code: "CANCELLED", message: '"count" was stopped before it had a result.', retriable: false },
    ]);
    expect(room.frames.filter(ofType("turn.failed"))).toHaveLength(1);
    const { status, error, moves } = room.turn(id);
    expect({ status, code: error?.code }).toEqual({ status: "failed", code: "CANCELLED" });
    expect(moves.map(({ toolResult }) => toolResult?.error?.code)).toEqual(["CANCELLED", "CANCELLED"]);
    await room.say("Try again");
    const request = await room.request();
    const texts = request.messages.map(({ role, content }) => `${role} ${content}`);
    expect(texts.filter((text) => text.startsWith("tool"))).toEqual([
      expect.stringContaining("Outcome unknown"),
      expect.stringContaining("was stopped before it had a result"),
    ]);
    expect(texts.at(-2)).toMatch(/^system .*The turn was stopped\./);
    await aborted;
  });

  test("OP-6 the next cycle gets the success of a stopped `once` tool, once", async () => {
    const { library, send, begun } = office();
    const room = await SteeredConversation.create(library);
    const id = await room.say("Mail Ben");
    (await room.request()).call(["mail", { to: "Ben" }]);
    await begun;
    await room.stop(id);
    send("receipt 7");
    const operationId = room.frames.find(ofType("tool.cancelled"))?.operationId ?? "";
    const result = { tool_call_id: "call_0", success: true, result: "receipt 7" };
    for (let copy = 0; copy < 5; copy++)
      await room.runtime.results.takeResult({ operationId, attempt: 1, result });
    await room.say("Was it sent?");
    const notes = (await room.request()).messages.filter(({ content }) => `${content}`.includes("receipt 7"));
    expect(notes).toEqual([{ role: "system", content: expect.stringContaining("it took effect") }]);
    expect(lateEntries(room)).toHaveLength(1);
  });

  test("OP-6 BATCH-5 the success of a stopped `once` tool that arrives before its cancellation has left is noted, once", async () => {
    const { library, send, begun } = office();
    const room = await SteeredConversation.create(library);
    const id = await room.say("Mail Ben");
    (await room.request()).call(["mail", { to: "Ben" }]);
    await begun;
    await room.stop(id);
    send("receipt 7");
    await vi.waitFor(() => expect(lateEntries(room)).toHaveLength(1), { timeout: 5_000 });
    await room.say("Was it sent?");
    const { messages } = await room.request();
    expect(messages.filter(({ content }) => `${content}`.includes("receipt 7"))).toHaveLength(1);
  });

  test("OP-6 the failure of a stopped `once` tool and the success of an `idempotent` tool are not noted", async () => {
    const { library } = office();
    const room = await SteeredConversation.create(library);
    const id = await room.say("Mail Ben and count");
    (await room.request()).call(["mail", { to: "Ben" }], ["count", {}]);
    await room.until(ofType("tool.requested"));
    await room.stop(id);
    const [mail = "", count = ""] = room.frames
      .filter(ofType("tool.cancelled"))
      .map(({ operationId }) => operationId);
    const error = { code: "EXECUTION_FAILED", message: "No ink.", retriable: false } as const;
    await room.runtime.results.takeResult({
      operationId: mail,
      attempt: 1,
      result: { tool_call_id: "call_0", success: false, error },
    });
    await room.runtime.results.takeResult({
      operationId: count,
      attempt: 1,
      result: { tool_call_id: "call_1", success: true, result: 7 },
    });
    expect(lateEntries(room)).toEqual([]);
    await room.runtime.results.takeResult({
      operationId: mail,
      attempt: 1,
      result: { tool_call_id: "call_0", success: true, result: "receipt 7" },
    });
    expect(lateEntries(room)).toHaveLength(1);
  });

  test("STOP-2 E15 E16 a stopped conversation calls no model until it resumes, and answers no message of that time", async () => {
    const room = await SteeredConversation.create(office().library);
    await room.say("A");
    await room.say("B");
    const requests = [await room.request(), await room.request()];
    await room.stopAll();
    await room.stopAll();
    expect(requests.map((request) => request.isAborted())).toEqual([true, true]);
    const refused = await room.say("C");
    expect(room.turn(refused)).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
    await room.runtime.changes.resume({ caller: ADA });
    await expect(room.runtime.changes.resume({ caller: ADA })).rejects.toMatchObject({
      code: "NOT_CANCELLED",
    });
    expect(room.untaken).toBe(0);
    await room.say("D");
    const { messages } = await room.request();
    expect(messages.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual([
      "A",
      "B",
      "C",
      "D",
    ]);
    expect(
      room.queries.journal(room.runtime.state).items.filter(({ type }) => type.startsWith("conversation.")),
    ).toMatchObject([
      { type: "conversation.started" },
      { type: "conversation.cancelled", data: { by: ADA } },
      { type: "conversation.resumed", data: { by: ADA } },
    ]);
  });

  test("STOP-3 shown text stays as a stopped message, even if the model failed in its middle", async () => {
    const room = await SteeredConversation.create(office().library);
    const id = await room.say("Tell me");
    const request = await room.request();
    request.say("Once upon");
    request.say(" a time");
    await room.until(({ type, data }) => type === "message.delta" && data.text.includes("time"));
    await room.stop(id);
    const [message] = room.queries.messages(room.runtime.state).items.filter(({ role }) => role === "agent");
    expect(message).toMatchObject({ content: "Once upon a time", stopped: true });
    expect(room.turn(id)).toMatchObject({ answer: null, agentMessageIds: [message?.id] });
    expect(room.turn(id).calls).toMatchObject([{ outcome: { ok: false, errorCategory: "canceled" } }]);
    await expect(room.stop(await answered(room))).rejects.toMatchObject({ code: "CONFLICT" });
  });
});

/** Returns the notes of late results in the journal. */
function lateEntries({ queries, runtime }: SteeredConversation) {
  return queries.journal(runtime.state).items.filter(({ type }) => type === "tool.late");
}

/** Returns the id of a turn that has completed. */
async function answered(room: SteeredConversation): Promise<string> {
  const id = await room.say("Hello");
  const request = await room.request();
  request.say("Hi.");
  request.end();
  await room.until((frame) => frame.type === "turn.completed" && frame.turnId === id);
  return id;
}
