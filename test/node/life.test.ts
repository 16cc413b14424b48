/** The life of a conversation: its view while its turns wait, its end by a user, and that it never ends by time. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { shownStatus } from "../../src/agents/conversation/core/life.ts";
import type { Operation } from "../../src/agents/conversation/core/operation.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import type { Signal } from "../../src/agents/conversation/core/signals.ts";
import { type ConversationState, NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { conversationView } from "../../src/agents/conversation/reads/views.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { Json } from "../../src/shared/json.ts";
import { messageOfAda, recordOf } from "../support/records.ts";
import { SteeredConversation } from "../support/steered-model.ts";

const ADA = { type: "user", userId: "ada" } as const;
const DAY_MS = 86_400_000;

/** A library with a background job, which ends when the test ends it, and a `once` tool that ignores its signal. */
function works() {
  const [job, mail] = [Promise.withResolvers<Json>(), Promise.withResolvers<Json>()];
  const tool = (name: string, effect: "once" | "idempotent", result: Promise<Json>, isAsync: boolean) =>
    defineTool({
      name,
      description: name,
      effect,
      ...(isAsync ? { async: true as const } : {}),
      input: z.object({}),
      execute: () => result,
    });
  const tools = [
    tool("job", "idempotent", job.promise, true),
    tool("mail", "once", mail.promise, false),
  ] as const;
  return { library: defineLibrary("works", { tools }), endJob: job.resolve, sendMail: mail.resolve };
}

const ASK = { name: "ask", description: "Asks the person.", inputSchema: { type: "object" } } as const;

/** The statuses that clients get, in order. */
const statuses = ({ frames }: SteeredConversation) =>
  frames.flatMap((frame) =>
    frame.type === "conversation.updated" && frame.data.status !== undefined ? [frame.data.status] : [],
  );
const shown = ({ runtime }: SteeredConversation) => conversationView(runtime.state).status;
const ends = (turnId: string) => (frame: Frame) =>
  (frame.type === "turn.completed" || frame.type === "turn.failed") && frame.turnId === turnId;
const isWaiting = ({ type, data }: Frame) =>
  type === "conversation.updated" && "status" in data && data.status === "waiting";

describe("the shown status", () => {
  test("A23 LIFE-1 LIFE-2 of a plain turn is `active`, without an entry", async () => {
    const room = await SteeredConversation.create(works().library);
    const id = await room.say("Hello");
    (await room.request()).answer("Hi.");
    await room.until(ends(id));
    expect([shown(room), statuses(room)]).toEqual(["active", []]);
  });

  test("A23 LIFE-1 LIFE-2 waits with work in the background, and a message makes it active again", async () => {
    const { library, endJob } = works();
    const room = await SteeredConversation.create(library);
    const first = await room.say("Begin the job");
    (await room.request()).call(["job", {}]);
    (await room.request()).answer("It runs.");
    await room.until(isWaiting);
    expect([shown(room), statuses(room)]).toEqual(["waiting", ["waiting"]]);

    const second = await room.say("And you?");
    expect([shown(room), statuses(room)]).toEqual(["active", ["waiting", "active"]]);
    (await room.request()).answer("I am fine.");
    await room.until(ends(second));
    expect(statuses(room)).toEqual(["waiting", "active", "waiting"]);

    endJob("done");
    (await room.request()).answer("The job is done.");
    await room.until(ends(first));
    expect([shown(room), statuses(room)]).toEqual(["active", ["waiting", "active", "waiting", "active"]]);
  });

  test("A23 LIFE-1 waits for a tool of the client, and a stop makes it active again", async () => {
    const room = await SteeredConversation.create(works().library);
    const { type, caller, data } = messageOfAda("Ask me");
    const { turnId } = await room.runtime.accept({ type, caller, data: { ...data, tools: [ASK] } });
    (await room.request()).call(["ask", {}]);
    await room.until(isWaiting);
    await room.stop(turnId);
    expect([shown(room), statuses(room)]).toEqual(["active", ["waiting", "active"]]);
  });

  test("A23 LIFE-1 is `waiting` if there is a turn that has begun, and each such turn only waits", () => {
    const operation = fc.record({
      target: fc.constantFrom("code" as const, "client" as const),
      mode: fc.constantFrom("sync" as const, "async" as const),
      status: fc.constantFrom("pending" as const, "deferred" as const, "completed" as const),
    });
    const turn = fc.record({
      calls: fc.boolean(),
      queued: fc.boolean(),
      answered: fc.boolean(),
      operations: fc.array(operation, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 4 }), (turns) => {
        const state = stateOf(
          turns.map(({ calls, queued, answered, operations }) => ({
            call: calls ? { item: 1, attempt: 1, notBefore: 0, final: false } : null,
            ...(queued ? { queued } : {}),
            ...(answered ? { waiting: 3 } : {}),
            operations: operations.map(operationOf),
          })),
        );
        const begun = turns.filter(({ queued }) => !queued);
        const waits = begun.every(({ calls, answered, operations }) => {
          const blocking = operations.filter(({ mode, status }) => mode === "sync" && status !== "completed");
          const due = operations.some(({ mode, status }) => mode === "async" && status === "completed");
          if (calls) return false;
          if (blocking.length === 0) return answered && !due;
          return blocking.every(({ target, status }) => target === "client" || status === "deferred");
        });
        expect(shownStatus(state)).toBe(begun.length > 0 && waits ? "waiting" : "active");
        for (const status of ["completed", "failed"] as const)
          expect(shownStatus({ ...state, status })).toBe(status);
      }),
    );
  });
});

describe("the end of a conversation", () => {
  test("A23 A25 LIFE-3 LIFE-4 stops its turns, and refuses all input from then on, also after a crash", async () => {
    const room = await SteeredConversation.create(works().library);
    const id = await room.say("Tell me a story");
    const request = await room.request();
    request.say("Once");
    await room.until(({ type }) => type === "message.delta");
    await room.end("Enough.");
    expect(request.isAborted()).toBe(true);
    expect(room.turn(id)).toMatchObject({
      status: "failed",
      error: { code: "CANCELLED", message: "The conversation was ended." },
    });
    expect([shown(room), statuses(room)]).toEqual(["completed", ["completed"]]);

    const before = room.frames.length;
    await room.end("Again.");
    const closed = { code: "CONVERSATION_CLOSED" };
    for (const life of [room, await room.restarted()]) {
      await expect(life.say("One more")).rejects.toMatchObject(closed);
      await expect(life.stopAll()).rejects.toMatchObject(closed);
      await expect(life.runtime.changes.resume({ caller: ADA })).rejects.toMatchObject(closed);
      await expect(life.runtime.changes.update({ caller: ADA, order: "queued" })).rejects.toMatchObject(
        closed,
      );
      expect([shown(life), life.untaken]).toEqual(["completed", 0]);
    }
    expect(room.frames).toHaveLength(before);
    const { items } = room.queries.journal(room.runtime.state);
    expect(items.at(-1)).toMatchObject({
      type: "conversation.ended",
      data: { status: "completed", by: ADA, reason: "Enough." },
    });
    expect(room.queries.messages(room.runtime.state).items).toMatchObject([
      { content: "Tell me a story" },
      { content: "Once", stopped: true },
    ]);
  });

  test("A25 LIFE-4 a message that repeats a recorded one has the same answer as before", async () => {
    const room = await SteeredConversation.create(works().library);
    const message = { ...messageOfAda("Hello"), id: "k" };
    const before = await room.runtime.accept(message);
    (await room.request()).answer("Hi.");
    await room.until(ends(before.turnId));
    await room.end();
    expect(await room.runtime.accept(message)).toEqual({ ...before, repeated: true });
    await expect(room.runtime.accept({ ...messageOfAda("Other"), id: "k" })).rejects.toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
    });
  });

  test("LIFE-4 OP-6 a late success of a `once` tool is noted as the success of a stopped turn", async () => {
    const { library, sendMail } = works();
    const room = await SteeredConversation.create(library);
    await room.say("Send it");
    (await room.request()).call(["mail", {}]);
    await room.until(({ type }) => type === "tool.requested");
    await room.end();
    sendMail("sent");
    for (;;) {
      const { items } = room.queries.journal(room.runtime.state);
      if (items.some(({ type }) => type === "tool.late")) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([shown(room), room.untaken]).toEqual(["completed", 0]);
  });

  test("LIFE-3 also stops the queued turns and the turn in the background", async () => {
    const room = await SteeredConversation.create(works().library, { order: "queued" });
    const first = await room.say("Begin the job");
    (await room.request()).call(["job", {}]);
    (await room.request()).answer("It runs.");
    await room.until(isWaiting);
    const second = await room.say("Two");
    await room.request();
    const third = await room.say("Three");
    await room.end();
    expect([first, second, third].map((id) => room.turn(id).error?.code)).toEqual(Array(3).fill("CANCELLED"));
    expect([room.untaken, room.runtime.busy, shown(room)]).toEqual([0, false, "completed"]);
  });

  test.each(["completed", "failed"] as const)(
    "A23 LIFE-4 in a conversation that is %s, no signal has an effect",
    (status) => {
      const state: ConversationState = { ...stateOf([]), turns: 3, status };
      const facts = { startedAt: 1, finishedAt: 2 };
      const address = { turn: 1, item: 1, attempt: 1 };
      const reply = { text: "Hi.", toolCalls: [], finishReason: "stop" as const };
      const signals: Signal[] = [
        messageOfAda("Hello"),
        { type: "conversation.cancel", caller: ADA },
        { type: "conversation.resume", caller: ADA },
        { type: "conversation.update", caller: ADA, order: "queued" },
        { type: "conversation.llm.completed", ...address, facts, reply },
        {
          type: "conversation.llm.not_called",
          ...address,
          error: { code: "X", message: "", retriable: false },
        },
        {
          type: "conversation.tool.completed",
          ...address,
          result: { success: true, result: 1, tool_call_id: "c" },
        },
        {
          type: "conversation.side_call.completed",
          session: "tester",
          begunBy: 1,
          attempt: 1,
          reply,
          facts,
        },
        { type: "conversation.cmd.expire" },
        { type: "conversation.cmd.recover" },
      ];
      for (const signal of signals) {
        const answer = () => plan(state, signal, { now: 5, stem: "", gate: allowAll });
        if (/message|cancel|resume|update/.test(signal.type))
          expect(answer).toThrow(expect.objectContaining({ code: "CONVERSATION_CLOSED" }));
        else expect(answer()).toEqual([]);
      }
    },
  );
});

test("A24 LIFE-3 after 60 days without a message the next message is answered", async () => {
  const clock = new VirtualClock();
  const room = await SteeredConversation.create(works().library, {}, {}, { clock });
  const first = await room.say("Hello");
  (await room.request()).answer("Hi.");
  await room.until(ends(first));
  await clock.advance(60 * DAY_MS);
  room.runtime.reconcile();
  const later = await room.restarted();
  expect([shown(room), shown(later)]).toEqual(["active", "active"]);
  const second = await later.say("Still there?");
  const request = await later.request();
  expect(request.messages.map(({ content }) => content)).toEqual(
    expect.arrayContaining(["Hello", "Hi.", "Still there?"]),
  );
  request.answer("Yes.");
  await later.until(ends(second));
  const [before, after] = [later.turn(first), later.turn(second)];
  expect(after.answer).toBe("Yes.");
  expect(Date.parse(after.createdAt) - Date.parse(before.createdAt)).toBe(60 * DAY_MS);
});

function operationOf(members: Pick<Operation, "target" | "mode" | "status">, index: number): Operation {
  return {
    item: 10 + index,
    reply: 0,
    toolCallId: `call_${index}`,
    name: "work",
    tool: null,
    effect: "once",
    attempt: 1,
    timeoutMs: 1_000,
    input: {},
    ...(members.status === "completed" ? { result: { tool_call_id: "c", success: true, result: 1 } } : {}),
    ...members,
  };
}

function stateOf(turns: Pick<Turn, "call" | "operations">[]): ConversationState {
  const record = recordOf();
  const active = turns.map((members, index): [number, Turn] => [
    index + 1,
    {
      n: index + 1,
      stem: "01ARZ3NDEKTSV4RRFFQ",
      agentId: record.agents[0].id,
      caller: ADA,
      input: "go",
      status: "active",
      createdAt: 1,
      firstSeq: 2,
      snapshotSeq: 1,
      items: 3,
      replies: [],
      recoveries: 0,
      issues: {},
      ...members,
    },
  ]);
  return { ...NEW_STATE, record, seq: 5, turns: turns.length, active: new Map(active), stored: new Map() };
}

test("STOREDTIME-2 RECOVER-1 a crash after a pause counts, if the clock was set back by less than the pause", async () => {
  let offset = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + offset };
  const library = defineLibrary("none", { tools: [] });
  let conversation = await SteeredConversation.create(library, {}, {}, { clock });
  await conversation.say("Hello?");
  await conversation.request();
  for (let crash = 1; crash <= 3; crash++) {
    conversation = await conversation.restarted();
    await conversation.request();
    const [turn] = [...conversation.runtime.state.active.values()];
    const { newestAt } = conversation.runtime.store;
    const pause = (turn?.call?.notBefore ?? 0) - newestAt;
    // The clock shows the middle of the pause again.
    if (pause > 1) offset += newestAt + Math.floor(pause / 2) - clock.now();
  }
  conversation = await conversation.restarted();
  const entries = conversation.runtime.store.journal.forward(1, 1_000).flatMap((row) => row.entries);
  expect(entries.filter(({ type }) => type === "turn.resumed")).toHaveLength(4);
});
