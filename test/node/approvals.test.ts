/**
 * Calls that need a person's approval: their wait, its outcomes, and the effect of messages, stops, time and crashes.
 */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { APPROVAL_TIMEOUT_MS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { dueIn, effectsOf } from "../../src/agents/conversation/core/effects.ts";
import { shownStatus } from "../../src/agents/conversation/core/life.ts";
import { works } from "../../src/agents/conversation/core/waits.ts";
import { askBelow, BELOW_TIMEOUT_MS } from "../../src/agents/conversation/inbound/principal-requests.ts";
import { defineLibrary, defineTool, type ToolOptions } from "../../src/library/define/define.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { TurnOrder } from "../../src/protocol/conversation-schemas.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { ApprovalAnswer } from "../../src/protocol/requests.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { type OpenRequest, SteeredConversation } from "../support/steered-model.ts";

const ADA = { type: "user", userId: "ada" } as const;

/** A library with `pay`, which needs an approval, and `look`, which needs no approval. Both record their runs. */
function bank(options: Partial<ToolOptions<z.ZodObject>> = {}, run: () => unknown = () => undefined) {
  const paid: string[] = [];
  const pay = defineTool({
    name: "pay",
    description: "Pays somebody.",
    input: z.object({ to: z.string() }),
    approval: "always",
    execute: ({ to }: { to?: unknown }) => {
      paid.push(String(to));
      return run() ?? `paid ${to}`;
    },
    ...options,
  } as ToolOptions<z.ZodObject>);
  const look = defineTool({
    name: "look",
    description: "Looks.",
    effect: "idempotent",
    input: z.object({}),
    execute: () => "seen",
  });
  return { paid, library: defineLibrary("bank", { tools: [pay, look] }) };
}

const is = (type: Frame["type"], turnId?: string) => (frame: Frame) =>
  frame.type === type && (turnId === undefined || frame.turnId === turnId);
const ends = (turnId: string) => (frame: Frame) =>
  (frame.type === "turn.completed" || frame.type === "turn.failed") && frame.turnId === turnId;
const typesOf = (room: SteeredConversation, from = 0) =>
  room.frames.slice(from).flatMap(({ type, seq }) => (seq === undefined ? [] : [type]));
const idsOf = (room: SteeredConversation) =>
  room.frames.flatMap(({ type, operationId }) =>
    type === "approval.requested" && operationId !== undefined ? [operationId] : [],
  );
const answerOf = (room: SteeredConversation, id: string, answer: ApprovalAnswer) =>
  room.runtime.results.approve(id, { ...answer, caller: ADA });
const operations = (room: SteeredConversation) => room.queries.snapshot(room.runtime.state, []).operations;
const resultsIn = ({ messages }: OpenRequest) =>
  messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.parse(String(content)));

/** Begins a turn with calls that wait for a person. Returns its id. */
async function beginApproval(room: SteeredConversation, ...calls: [string, JsonObject][]): Promise<string> {
  const id = await room.say("Pay them");
  (await room.request()).call(
    ...(calls.length === 0 ? [["pay", { to: "Bob" }] as [string, JsonObject]] : calls),
  );
  await room.until(is("turn.waiting", id));
  return id;
}

describe("a call that needs an approval", () => {
  test("APPROVE-1 A23 waits without running, its readers see the input, and the conversation is shown as waiting", async () => {
    const { paid, library } = bank();
    const room = await SteeredConversation.create(library);
    const id = await beginApproval(room);
    const [operationId = ""] = idsOf(room);
    expect(typesOf(room).slice(-5)).toEqual([
      "message.completed",
      "tool.requested",
      "approval.requested",
      "turn.waiting",
      "conversation.updated",
    ]);
    const requested = room.frames.find(is("approval.requested"));
    expect(requested).toMatchObject({
      operationId,
      data: { name: "pay", input: { to: "Bob" }, expiresAt: expect.stringMatching(/Z$/) },
    });
    expect(room.frames.find(is("turn.waiting"))?.data).toEqual({ reason: "approval" });
    expect(operations(room)).toMatchObject([
      {
        id: operationId,
        state: "awaiting_approval",
        input: { to: "Bob" },
        approval: { expiresAt: expect.any(String) },
      },
    ]);
    expect(room.turn(id)).toMatchObject({ status: "active", phase: "waiting" });
    expect([paid, shownStatus(room.runtime.state), effectsOf(room.runtime.state)]).toEqual([
      [],
      "waiting",
      [],
    ]);
  });

  test("APPROVE-1 after a crash the call still waits, and results of an executor, a client or a handle do not settle it", async () => {
    const { paid, library } = bank({ effect: "idempotent" });
    const room = await SteeredConversation.create(library);
    const id = await beginApproval(room);
    const [operationId = ""] = idsOf(room);
    const next = await (await room.restarted()).restarted();
    expect(operations(next)).toEqual(operations(room));
    const { results } = next.runtime;
    const forged = { tool_call_id: "call_0", success: true, result: "forged" };
    await results.takeResult({ operationId, attempt: 1, result: forged });
    await results.takeResult({ operationId, attempt: 1, deferred: { expiresAt: Date.now() + 60_000 } });
    const conflict = { code: "CONFLICT" };
    await expect(results.submit([{ operationId, result: "forged" }])).rejects.toMatchObject(conflict);
    await expect(results.defer({ operationId, attempt: 1 })).rejects.toMatchObject(conflict);
    expect(() => results.checkClientCall(operationId)).toThrow("does not wait for a result of a client");
    expect(operations(next)).toEqual(operations(room));
    expect([paid, next.turn(id).status]).toEqual([[], "active"]);
    await answerOf(next, operationId, { approved: true });
    expect(resultsIn(await next.request())).toEqual(["paid Bob"]);
    expect(paid).toEqual(["Bob"]);
  });

  test("APPROVE-1 a pure call does not run before its reply is committed, and invalid input starts no request", async () => {
    const { paid, library } = bank({ effect: "pure" });
    const room = await SteeredConversation.create(library);
    await beginApproval(room, ["pay", { to: "Bob" }], ["pay", { to: 7 }], ["look", {}]);
    expect(idsOf(room)).toHaveLength(1);
    expect(paid).toEqual([]);
    expect(operations(room).map(({ state }) => state)).toEqual(["awaiting_approval", "failed", "completed"]);
  });

  test("APPROVE-2 APPROVE-4 an approved call runs once, with the shown input; the same answer again is a no-op", async () => {
    const { paid, library } = bank();
    const room = await SteeredConversation.create(library);
    const id = await beginApproval(room);
    const [operationId = ""] = idsOf(room);
    const before = room.frames.length;
    // An answer has no input. Unknown members are ignored.
    const changed = { approved: true, reason: "Go on.", input: { to: "Eve" } };
    await answerOf(room, operationId, changed);
    await answerOf(room, operationId, { approved: true });
    const request = await room.request();
    await answerOf(room, operationId, { approved: true });
    expect(resultsIn(request)).toEqual(["paid Bob"]);
    await expect(answerOf(room, operationId, { approved: false })).rejects.toMatchObject({
      code: "CONFLICT",
    });
    request.answer("Done.");
    await room.until(ends(id));
    await answerOf(room, operationId, { approved: true });
    expect(paid).toEqual(["Bob"]);
    expect(typesOf(room, before)).toEqual([
      "approval.resolved",
      "conversation.updated",
      "tool.completed",
      "message.started",
      "message.completed",
      "turn.completed",
      "turn.finalized",
    ]);
    const approval = { outcome: "approved", by: ADA, reason: "Go on." };
    expect(room.frames.find(is("approval.resolved"))?.data).toEqual(approval);
    expect(room.turn(id).moves[0]?.toolCall).toMatchObject({ input: { to: "Bob" }, approval });
    const restarted = await room.restarted();
    await answerOf(restarted, operationId, { approved: true });
    await expect(answerOf(restarted, operationId, { approved: false })).rejects.toThrow("approved before");
  });

  test("APPROVE-2 TOOLRETRY-1 an attempt after the first needs no second approval", async () => {
    let runs = 0;
    const fails = () => {
      runs += 1;
      if (runs === 1) throw new ToolError("Busy.", { retriable: true });
    };
    const { paid, library } = bank({ effect: "idempotent", retry: { maxAttempts: 2, backoffMs: 0 } }, fails);
    const room = await SteeredConversation.create(library);
    await beginApproval(room);
    const [operationId = ""] = idsOf(room);
    await answerOf(room, operationId, { approved: true });
    expect(resultsIn(await room.request())).toEqual(["paid Bob"]);
    expect([paid, idsOf(room)]).toEqual([["Bob", "Bob"], [operationId]]);
  });

  test("APPROVE-3 APPROVE-4 the model gets a denial with its reason, and the call never runs", async () => {
    const { paid, library } = bank();
    const room = await SteeredConversation.create(library);
    const id = await beginApproval(room);
    const [operationId = ""] = idsOf(room);
    await answerOf(room, operationId, { approved: false, reason: "Too much." });
    const request = await room.request();
    expect(resultsIn(request)).toEqual([
      {
        code: "APPROVAL_DENIED",
        message: 'The call of "pay" did not run: a person denied it, with this reason: "Too much."',
        retriable: false,
      },
    ]);
    await answerOf(room, operationId, { approved: false, reason: "Another reason." });
    await expect(answerOf(room, operationId, { approved: true })).rejects.toMatchObject({ code: "CONFLICT" });
    request.answer("As you like.");
    await room.until(ends(id));
    expect(paid).toEqual([]);
    await expect(answerOf(room, operationId, { approved: true })).rejects.toThrow("denied before");
    expect(room.turn(id).moves[0]?.toolCall?.approval).toMatchObject({
      outcome: "denied",
      reason: "Too much.",
    });
  });

  test("APPROVE-3 without an answer, the call expires after a day, also across a crash", async () => {
    const clock = new VirtualClock();
    const { paid, library } = bank();
    const room = await SteeredConversation.create(library, {}, {}, { clock });
    await beginApproval(room);
    const [operationId = ""] = idsOf(room);
    expect(dueIn(room.runtime.state, clock.now(), clock.now())).toBe(APPROVAL_TIMEOUT_MS);
    await clock.advance(APPROVAL_TIMEOUT_MS - 1);
    const next = await room.restarted();
    expect(operations(next)).toMatchObject([{ state: "awaiting_approval" }]);
    await clock.advance(1);
    await expect(answerOf(next, operationId, { approved: true })).rejects.toThrow("its deadline has passed");
    const [result] = resultsIn(await next.request());
    expect(result).toEqual({
      code: "APPROVAL_DENIED",
      message: 'The call of "pay" did not run: it was not approved in time.',
      retriable: false,
    });
    expect(next.frames.find(is("approval.resolved"))?.data).toEqual({ outcome: "expired" });
    expect(paid).toEqual([]);
  });

  test("APPROVE-4 an operation without a request, or an unknown one, takes no answer", async () => {
    const { library } = bank();
    const room = await SteeredConversation.create(library);
    await beginApproval(room, ["pay", { to: "Bob" }], ["look", {}]);
    const look = operations(room).find(({ name }) => name === "look");
    const other = "op_01JD0000000000000000000002";
    await expect(answerOf(room, look?.id ?? "", { approved: true })).rejects.toThrow("needs no approval");
    await expect(answerOf(room, other, { approved: true })).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("APPROVE-2 two calls of one tool, answered in reverse, one denied: two right results", async () => {
    const { paid, library } = bank();
    const room = await SteeredConversation.create(library);
    await beginApproval(room, ["pay", { to: "Bob" }], ["pay", { to: "Eve" }]);
    const [bob = "", eve = ""] = idsOf(room);
    await answerOf(room, eve, { approved: false });
    expect(operations(room).map(({ state }) => state)).toEqual(["awaiting_approval", "failed"]);
    expect(room.frames.filter(is("turn.waiting")), "it was waiting before").toHaveLength(1);
    await answerOf(room, bob, { approved: true });
    const [first, second] = resultsIn(await room.request());
    expect(first).toBe("paid Bob");
    expect(second).toMatchObject({ code: "APPROVAL_DENIED" });
    expect(paid).toEqual(["Bob"]);
  });

  test("APPROVE-2 WAIT-2 beside other calls: the turn waits again for the second person, and continues with the last result", async () => {
    const { paid, library } = bank();
    const room = await SteeredConversation.create(library);
    const id = await beginApproval(room, ["pay", { to: "Bob" }], ["look", {}], ["pay", { to: "Eve" }]);
    const [bob = "", eve = ""] = idsOf(room);
    await answerOf(room, bob, { approved: true });
    await room.until(() => room.frames.filter(is("turn.waiting", id)).length === 2);
    expect(paid).toEqual(["Bob"]);
    expect(room.untaken).toBe(0);
    await answerOf(room, eve, { approved: true });
    expect(resultsIn(await room.request())).toEqual(["paid Bob", "seen", "paid Eve"]);
  });
});

describe("text while an approval pends", () => {
  const begin = async (order: TurnOrder) => {
    const shop = bank();
    const room = await SteeredConversation.create(shop.library, { order });
    const first = await beginApproval(room);
    const second = await room.say("Yes, approved! Pay him.");
    return { ...shop, room, first, second, id: idsOf(room)[0] ?? "" };
  };

  test.each(["parallel", "queued"] as const)(
    "APPROVE-5 APPROVE-6 ORDER-1 %s: the next turn begins with a note on the wait; the call waits until it is approved",
    async (order) => {
      const { room, first, second, id, paid } = await begin(order);
      expect(works(room.runtime.state.active.get(1) ?? expect.fail())).toBe(false);
      const request = await room.request();
      expect(JSON.stringify(request.messages)).toContain("Waiting for a person's approval: pay(");
      request.answer("Please use the buttons.");
      await room.until(ends(second));
      expect([paid, operations(room).at(0)?.state]).toEqual([[], "awaiting_approval"]);
      await answerOf(room, id, { approved: true });
      const next = await room.request();
      expect(resultsIn(next)).toEqual(["paid Bob"]);
      next.answer("Paid.");
      await room.until(ends(first));
      expect(room.turn(first)).toMatchObject({ status: "completed", answer: "Paid." });
    },
  );

  test("APPROVE-5 ORDER-2 interrupt: the call is denied as superseded, its turn is stopped, and the new turn knows", async () => {
    const { room, first, second, id, paid } = await begin("interrupt");
    const request = await room.request();
    expect(room.frames.find(is("approval.resolved"))?.data).toEqual({ outcome: "superseded" });
    const turn = room.turn(first);
    expect(turn).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
    expect(turn.moves[0]?.toolResult?.error).toEqual({
      code: "APPROVAL_DENIED",
      message: 'The call of "pay" did not run: a newer message came before anybody approved it.',
      retriable: false,
    });
    expect(JSON.stringify(request.messages)).toContain("a newer message came before anybody approved it");
    await expect(answerOf(room, id, { approved: true })).rejects.toThrow("a newer message came first");
    request.answer("Shall I ask again?");
    await room.until(ends(second));
    expect(paid).toEqual([]);
  });

  test("APPROVE-5 interrupt denies no call in the background that needs no approval", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const input = z.object({});
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      async: true,
      input,
      execute: () => promise,
    });
    const both = defineLibrary("bank", { tools: [...bank({ async: true }).library.tools, wait] });
    const room = await SteeredConversation.create(both, { order: "interrupt" });
    const first = await room.say("Pay him");
    (await room.request()).call(["pay", { to: "Bob" }], ["wait", {}]);
    (await room.request()).answer("I have asked.");
    await room.until(is("turn.waiting", first));
    await room.say("Hello?");
    const after = room.runtime.state.active.get(1)?.operations ?? [];
    expect(after.map(({ name, status }) => [name, status])).toEqual([
      ["pay", "failed"],
      ["wait", "pending"],
    ]);
    resolve("waited");
  });

  test("APPROVE-5 ASYNC-3 interrupt denies a call in the background of a continuing turn, and the turn gets the denial", async () => {
    const { paid, library } = bank({ async: true });
    const room = await SteeredConversation.create(library, { order: "interrupt" });
    const first = await room.say("Pay him");
    (await room.request()).call(["pay", { to: "Bob" }]);
    (await room.request()).answer("I have asked.");
    await room.until(is("turn.waiting", first));
    const second = await room.say("Hello?");
    const request = await room.request();
    const beside = JSON.stringify(request.messages);
    expect(beside, "the new turn has a note on it, too").toContain("a newer message came before anybody");
    expect(beside).not.toContain("Waiting for a person");
    request.answer("Hello.");
    await room.until(ends(second));
    const cycle = await room.request();
    expect(JSON.stringify(cycle.messages)).toContain("a newer message came before anybody approved it");
    cycle.answer("It was not paid.");
    await room.until(ends(first));
    expect([room.turn(first).status, paid]).toEqual(["completed", []]);
  });
});

describe("work that continues, and work that ends, beside an approval", () => {
  test("APPROVE-6 ASYNC-1 a call in the background waits while its turn continues, and a later cycle gets its result", async () => {
    const { paid, library } = bank({ async: true });
    const room = await SteeredConversation.create(library);
    const id = await room.say("Pay him");
    (await room.request()).call(["pay", { to: "Bob" }]);
    const second = await room.request();
    const [operationId = ""] = idsOf(room);
    expect(resultsIn(second)).toEqual([{ status: "pending", operation_id: operationId }]);
    second.answer("I have asked for approval.");
    await room.until(is("turn.waiting", id));
    expect([room.turn(id).phase, operations(room).at(0)?.state]).toEqual(["waiting", "awaiting_approval"]);
    await answerOf(room, operationId, { approved: true });
    const third = await room.request();
    expect(JSON.stringify(third.messages.at(-1))).toContain("paid Bob");
    third.answer("Paid.");
    await room.until(ends(id));
    expect(paid).toEqual(["Bob"]);
  });

  test.each(["turn", "conversation"] as const)(
    "APPROVE-7 APPROVE-4 STOP-1 stop of the %s: CANCELLED, with a known outcome, and no answer counts any more",
    async (what) => {
      const { paid, library } = bank();
      const room = await SteeredConversation.create(library);
      const id = await beginApproval(room);
      const [operationId = ""] = idsOf(room);
      await (what === "turn" ? room.stop(id) : room.stopAll());
      expect(room.turn(id).moves[0]?.toolResult?.error).toEqual({
        code: "CANCELLED",
        message: '"pay" was stopped before it had a result.',
        retriable: false,
      });
      for (const approved of [true, false])
        await expect(answerOf(room, operationId, { approved })).rejects.toThrow("it was stopped");
      expect([paid, shownStatus(room.runtime.state)]).toEqual([[], "active"]);
    },
  );

  test("APPROVE-7 OP-5 a call that was approved has started: its outcome is unknown when its turn is stopped", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const { library } = bank({}, () => held);
    const room = await SteeredConversation.create(library);
    const id = await beginApproval(room);
    await answerOf(room, idsOf(room)[0] ?? "", { approved: true });
    await room.stop(id);
    expect(room.turn(id).moves[0]?.toolResult?.error?.message).toContain("Outcome unknown");
    release();
  });
});

describe("each order of answers and ends", () => {
  const ENDS = ["approved", "denied", "expired", "superseded", "stopped"] as const;
  const ANSWERS = [true, false];
  const orders = ANSWERS.flatMap((one) =>
    ANSWERS.flatMap((other) => ANSWERS.map((last) => [one, other, last])),
  );

  test.each(ENDS)(
    "APPROVE-4 after %s, only the same answer is accepted, in each order, also after a restart",
    async (end) => {
      const clock = new VirtualClock();
      const { library, paid } = bank({ effect: "pure" });
      const room = await SteeredConversation.create(library, { order: "interrupt" }, {}, { clock });
      const id = await beginApproval(room);
      const [operationId = ""] = idsOf(room);
      if (end === "approved" || end === "denied")
        await answerOf(room, operationId, { approved: end === "approved" });
      if (end === "superseded") await room.say("Never mind");
      if (end === "stopped") await room.stop(id);
      // The answer itself finds the expiry: no wake-up has ended the wait.
      if (end === "expired") await clock.advance(APPROVAL_TIMEOUT_MS);
      const accepted = end === "approved" ? true : end === "denied" ? false : null;
      const check = async (place: SteeredConversation) => {
        for (const approved of orders.flat()) {
          const given = answerOf(place, operationId, { approved });
          if (approved === accepted)
            await expect(given, end).resolves.toMatchObject({ operation: { approval: { outcome: end } } });
          else await expect(given, end).rejects.toMatchObject({ code: "CONFLICT" });
        }
      };
      await check(room);
      const outcomes = room.frames.filter(is("approval.resolved"));
      expect(outcomes).toHaveLength(end === "stopped" ? 0 : 1);
      await check(await room.restarted());
      expect(paid.length).toBeLessThanOrEqual(end === "approved" ? 2 : 0);
    },
  );

  test.each(ANSWERS)(
    "APPROVE-4 the first answer after the deadline is a CONFLICT (approved: %s)",
    async (approved) => {
      const clock = new VirtualClock();
      const { library } = bank();
      const room = await SteeredConversation.create(library, {}, {}, { clock });
      await beginApproval(room);
      await clock.advance(APPROVAL_TIMEOUT_MS);
      await expect(answerOf(room, idsOf(room)[0] ?? "", { approved })).rejects.toMatchObject({
        code: "CONFLICT",
      });
      await expect(answerOf(room, idsOf(room)[0] ?? "", { approved: !approved })).rejects.toMatchObject({
        code: "CONFLICT",
      });
    },
  );
});

test("ASK-1 an answer to a conversation below that is silent fails once its time is over, and can be given again", async () => {
  const clock = new VirtualClock();
  const principal = { tenant: "test", subject: "ada", roles: [] };
  const given = (below: () => Promise<never>) =>
    askBelow(clock, below, (one) => one.resolveApproval(principal, "op_x", { approved: true }));
  const silent = () => new Promise<never>(() => undefined);
  const found = async () => ({ resolveApproval: silent }) as never;
  const failures = Promise.all(
    [silent, found].map((below) =>
      expect(given(below)).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true }),
    ),
  );
  await clock.advance(BELOW_TIMEOUT_MS);
  await failures;
});
