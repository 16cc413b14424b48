/** Signals from outside: their envelopes, their ids, and the queue of messages that cannot begin yet. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { UsageCopy } from "../../src/agents/conversation/copies/usage-copy.ts";
import { callerKey } from "../../src/agents/conversation/core/caller.ts";
import {
  MAX_ACTIVE_TURNS,
  MAX_QUEUED_BYTES,
  MAX_QUEUED_SIGNALS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { correlationOf } from "../../src/agents/conversation/core/correlation.ts";
import { fitting } from "../../src/agents/conversation/core/planning/signal-queue.ts";
import { Ingress } from "../../src/agents/conversation/inbound/ingress.ts";
import { openSignal } from "../../src/agents/conversation/inbound/signal-envelope.ts";
import { Stops } from "../../src/agents/conversation/inbound/stops.ts";
import type { Directory } from "../../src/d1/directory.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { NO_USAGE } from "../../src/model/usage.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import { stemOf } from "../../src/protocol/ids.ts";
import { INTERNAL_TYPES, RESERVED_TYPES, type SignalResult } from "../../src/protocol/signals.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { utf8Length } from "../../src/shared/utf8.ts";
import { jsonValues, memberNames } from "../support/json-values.ts";
import { SteeredConversation } from "../support/steered-model.ts";

const ADA: Principal = { subject: "ada", tenant: "test", roles: ["member"] };
const MESSAGE = "conversation.user.message";
const NO_TOOLS = defineLibrary("none", {});

/** Returns the problem of an envelope, if any. */
function problemOf(envelope: unknown): string | undefined {
  try {
    openSignal(envelope);
    return undefined;
  } catch (error) {
    if (!(error instanceof DramatisError) || error.code !== "INVALID_SIGNAL") throw error;
    return error.toData().errors?.[0]?.message;
  }
}

describe("an envelope", () => {
  const message = { type: MESSAGE, data: { content: "Hello" } };

  test.each([
    ["missing_type", { data: {} }],
    ["missing_type", { type: "  ", data: {} }],
    ["missing_type", { type: 1, data: {} }],
    ["invalid_type", { type: "conversation.unknown", data: {} }],
    ["invalid_type", { type: "constructor", data: {} }],
    ["missing_data_envelope", { type: MESSAGE }],
    ["missing_data_envelope", { type: MESSAGE, content: "flat" }],
    ["missing_data_envelope", { ...message, content: "beside the data" }],
    ["invalid_data", { type: MESSAGE, data: null }],
    ["invalid_data", { type: MESSAGE, data: ["content"] }],
    ["invalid_data", "conversation.user.message"],
    ["invalid_data", null],
    ["invalid_meta", { ...message, meta: "m" }],
    ["invalid_meta", { ...message, meta: { correlation_id: 5 } }],
    ["invalid_extensions", { ...message, extensions: [] }],
    ["invalid_extensions", { ...message, extensions: { correlation_id: "x".repeat(201) } }],
    ["invalid_id", { ...message, id: "" }],
    ["invalid_source", { ...message, source: 1 }],
    ["invalid_time", { ...message, time: 1 }],
    ["invalid_specversion", { ...message, specversion: 1 }],
  ])("E2 SIGNAL-2 is refused as %s: %j", (problem, envelope) => {
    expect(problemOf(envelope)).toBe(problem);
  });

  test.each([...INTERNAL_TYPES])("E1 SIGNAL-1 of the internal type %s is not accepted", (type) => {
    expect(problemOf({ type, data: {} })).toBe("external_type_not_allowed");
  });

  test.each([...RESERVED_TYPES])("E1 SIGNAL-1 of the command %s is not accepted", (type) => {
    expect(problemOf({ type, data: {} })).toBe("reserved_type");
  });

  test("E2 opens without meta and extensions, with null for both, and with all standard members", () => {
    expect(openSignal(message)).toEqual(message);
    expect(openSignal({ ...message, meta: null, extensions: null })).toEqual(message);
    const all = { id: "one", source: "/shop", time: "2026-01-01T00:00:00Z", specversion: "1.0" };
    expect(openSignal({ ...message, ...all })).toEqual({ ...message, id: "one" });
  });

  test("E3 SIGNAL-3 a correlation id is trimmed, `meta` wins over `extensions`, and a blank id is ignored", () => {
    const of = (meta: object, extensions: object) =>
      openSignal({ ...message, meta, extensions }).correlationId;
    expect(of({ correlation_id: " a " }, { correlation_id: "b" })).toBe("a");
    expect(of({}, { correlation_id: "b" })).toBe("b");
    expect(of({ correlation_id: "  " }, {})).toBeUndefined();
  });

  test("E1 E2 opens only for the three types, whatever its other members", () => {
    fc.assert(
      fc.property(fc.dictionary(memberNames(), jsonValues()), fc.string(), (members, type) => {
        expect(problemOf({ ...members, type })).toBeDefined();
      }),
    );
  });
});

describe("a signal", () => {
  test("E3 CORR-1 without a correlation id gets an id that derives from its turn", () => {
    const [one, other] = [stemOf(systemIds.ulid()), stemOf(systemIds.ulid())];
    expect(correlationOf({ stem: one })).toMatch(/^corr-[0-9a-f]{20}$/);
    expect(correlationOf({ stem: one })).toBe(correlationOf({ stem: one }));
    expect(correlationOf({ stem: other })).not.toBe(correlationOf({ stem: one }));
    expect(correlationOf({ stem: one, correlationId: "mine" })).toBe("mine");
  });

  test("E4 CORR-2 CALLER-1 two signals share a key only with equal callers, ids and correlation ids", () => {
    const text = fc.oneof(fc.constantFrom("", "1:", "c1:a:", "1:a:b", "agent:"), fc.string());
    const signal = fc.tuple(text, text, fc.option(text, { nil: undefined }));
    fc.assert(
      fc.property(signal, signal, ([user, id, correlation], [otherUser, otherId, other]) => {
        const one = callerKey({ type: "user", userId: user }, id, correlation);
        const two = callerKey({ type: "user", userId: otherUser }, otherId, other);
        expect(one === two).toBe(user === otherUser && id === otherId && correlation === other);
      }),
    );
  });
});

/** A conversation in Node with its door for signals. */
class Room {
  pauses = 0;

  constructor(
    readonly room: SteeredConversation,
    checkSpeaker: () => void = () => undefined,
    private readonly ingress = new Ingress({
      runtime: room.runtime,
      stops: new Stops({
        runtime: room.runtime,
        queries: room.queries,
        access: { stateFor: () => room.runtime.state, checkSpeaker: () => undefined },
      }),
      access: { checkSpeaker },
      ids: systemIds,
      clock: {
        sleep: (milliseconds) => {
          this.pauses += 1;
          return systemClock.sleep(milliseconds);
        },
      },
    }),
  ) {}

  /** `isOff`: messages are recorded only, so that turns are over at once. */
  static async create(isOff = false): Promise<Room> {
    return new Room(await SteeredConversation.create(NO_TOOLS, isOff ? { orchestration: false } : {}));
  }

  send(signals: unknown, sender = ADA): Promise<SignalResult[]> {
    return this.ingress.ingest(sender, signals);
  }

  get runtime() {
    return this.room.runtime;
  }

  /** Wakes the actor as often as it wants to. Returns how often that was. */
  drain(): number {
    let wakes = 0;
    for (; this.runtime.dueIn === 0; wakes++) this.runtime.reconcile();
    return wakes;
  }

  entries(type: string) {
    const found: JournalEntryView[] = [];
    for (let cursor: string | undefined = "0"; cursor !== undefined; ) {
      const page = this.room.queries.journal(this.runtime.state, { limit: 100, cursor });
      found.push(...page.items.filter((entry) => entry.type === type));
      cursor = page.nextCursor;
    }
    return found;
  }

  contents(): unknown[] {
    const turns = Array.from({ length: this.runtime.state.turns }, (_, index) =>
      this.runtime.store.turn(index + 1),
    );
    return turns.map((turn) => turn?.input);
  }
}

const statusOf = (result: SignalResult) => (result.ok ? result.value.status : result.error.code);
const messages = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({
    id: `id ${from + index}`,
    type: MESSAGE,
    data: { content: `message ${from + index}` },
  }));

describe("a batch", () => {
  test("SIGNAL-4 each signal has its own answer: a refused signal stops no other and is not stored", async () => {
    const room = await Room.create();
    const results = await room.send([
      ...messages(1),
      { type: "conversation.llm.completed", data: {} },
      { type: MESSAGE, data: { content: "", more: 1 } },
      ...messages(1, 1),
    ]);
    expect(results.map(statusOf)).toEqual(["started", "INVALID_SIGNAL", "INVALID_SIGNAL", "started"]);
    expect(room.contents()).toEqual(["message 0", "message 1"]);
  });

  test("E4 the same id and correlation id are applied once; with another correlation id it is another message", async () => {
    const room = await Room.create(true);
    const [one] = messages(1);
    const first = await room.send({ ...one, meta: { correlation_id: "a" } });
    const again = await room.send({ ...one, meta: { correlation_id: " a" } });
    const other = await room.send({ ...one, meta: { correlation_id: "b" } });
    const plain = await room.send(one);
    expect(first).toMatchObject([{ value: { status: "started", repeated: false, correlationId: "a" } }]);
    expect(again).toMatchObject([{ value: { repeated: true, correlationId: "a" } }]);
    expect(other).toMatchObject([{ value: { repeated: false, correlationId: "b" } }]);
    expect(plain).toMatchObject([{ value: { repeated: false } }]);
    expect(room.runtime.state.turns).toBe(3);
  });

  test("E4 a repeated stop and a repeated resume are applied once", async () => {
    const room = await Room.create();
    const stop = {
      id: "stop",
      type: "conversation.cancel",
      data: { reason: "enough" },
      meta: { correlation_id: "c" },
    };
    const resume = { id: "resume", type: "conversation.resume" };
    expect(await room.send([stop, resume])).toMatchObject([{ ok: true }, { ok: true }]);
    expect(await room.send([stop, resume])).toMatchObject([{ ok: true }, { ok: true }]);
    expect(room.runtime.state.gate).toBe("open");
    expect(room.entries("conversation.cancelled")).toEqual([
      expect.objectContaining({ correlationId: "c", causeId: "stop" }),
    ]);
    expect((await room.send({ ...resume, id: "another" })).map(statusOf)).toEqual(["NOT_CANCELLED"]);
    const taken = { ...messages(1)[0], id: "stop", meta: { correlation_id: "c" } };
    expect((await room.send(taken)).map(statusOf)).toEqual(["IDEMPOTENCY_CONFLICT"]);
    await room.send({ ...messages(1)[0], id: "said" });
    expect((await room.send({ ...stop, id: "said", meta: null })).map(statusOf)).toEqual([
      "IDEMPOTENCY_CONFLICT",
    ]);
  });

  test("E3 the journal names the correlation and the cause of each entry", async () => {
    const room = await Room.create();
    const [result] = await room.send({ ...messages(1)[0], meta: { correlation_id: "order-7" } });
    const { turnId, messageId } = result?.ok && result.value.status === "started" ? result.value : {};
    (await room.room.request()).answer("Done.");
    await room.room.until(({ type }) => type === "turn.completed");
    const { items } = room.room.queries.journal(room.runtime.state);
    const ofTurn = items.filter((entry) => entry.turnId === turnId);
    expect(new Set(ofTurn.map(({ correlationId }) => correlationId))).toEqual(new Set(["order-7"]));
    expect(ofTurn.map(({ type, causeId }) => [type, causeId])).toEqual([
      ["turn.started", "id 0"],
      ["message.user", "id 0"],
      ["message.started", messageId],
      ["message.completed", messageId],
      ["turn.completed", messageId],
      ["turn.finalized", messageId],
    ]);
    expect(room.room.turn(turnId ?? "").correlationId).toBe("order-7");
  });
});

describe("the queue", () => {
  test("E6 SIGQUEUE-1 SIGQUEUE-3 SIGNAL-5 300 messages begin in their order, 128 in a step, and a stop is handled between steps", async () => {
    const room = await Room.create(true);
    const results = await room.send(messages(300));
    expect(results.slice(0, 128).map(statusOf)).toEqual(Array(128).fill("started"));
    expect(room.pauses, "other conversations of the thread continue in the pauses").toBe(2);
    expect(results.slice(128).map(statusOf)).toEqual(Array(172).fill("queued"));
    room.runtime.reconcile();
    expect(room.runtime.state.turns).toBe(256);
    const { first = 0, next = 0, bytes } = room.runtime.state.queue ?? {};
    const waiting = Array.from({ length: next - first }, (_, n) => room.runtime.store.signals.get(first + n));
    expect(bytes).toBe(waiting.reduce((sum, signal) => sum + utf8Length(JSON.stringify(signal)), 0));
    await room.send({ type: "conversation.cancel" });
    expect(room.drain()).toBe(1);
    expect(room.contents()).toEqual(messages(300).map(({ data }) => data.content));
    expect(room.entries("conversation.queue.drained").map(({ data }) => data)).toEqual([
      { count: 128, left: 44 },
      { count: 44, left: 0 },
    ]);
    expect(room.runtime.store.turn(256)?.status).toBe("completed");
    expect(room.runtime.store.turn(257)?.error?.code).toBe("CANCELLED");
    expect(room.runtime.state.queue).toBeUndefined();
  });

  test("SIGQUEUE-1 a message waits while too many turns are active, and each begins once, across crashes", async () => {
    const room = await Room.create();
    const results = await room.send(messages(MAX_ACTIVE_TURNS + 3));
    expect(results.slice(MAX_ACTIVE_TURNS).map(statusOf)).toEqual(["queued", "queued", "queued"]);
    expect(room.runtime.dueIn).not.toBe(0);
    const next = new Room(await room.room.restarted());
    expect((await next.send(messages(1, 100))).map(statusOf)).toEqual(["queued"]);
    expect(next.drain()).toBe(0);
    // The stop of one turn lets one message begin.
    const [first] = next.room.queries.turns({ limit: 1 }).items;
    await next.room.stop(first?.id ?? "");
    expect(next.drain()).toBe(1);
    expect(next.runtime.state.turns).toBe(MAX_ACTIVE_TURNS + 1);
    await next.room.stopAll();
    next.drain();
    expect(next.contents()).toEqual(
      [...messages(MAX_ACTIVE_TURNS + 3), ...messages(1, 100)].map(({ data }) => data.content),
    );
  });

  test("SIGQUEUE-1 a message that cannot begin is refused with an entry and a frame that name it", async () => {
    const room = await Room.create(true);
    const answer = { id: "orphan", type: MESSAGE, data: { content: "Yes", replyToMessageId: "msg_0" } };
    const twice = { ...messages(1, 150)[0], data: { content: "another body" } };
    const results = await room.send([...messages(200), answer, twice]);
    expect(statusOf(results.at(-1) as SignalResult), "of two bodies under one key, the first counts").toBe(
      "IDEMPOTENCY_CONFLICT",
    );
    room.drain();
    expect(room.entries("conversation.signal.refused").map(({ data }) => data)).toEqual([
      { id: "orphan", code: "INVALID_INPUT", message: expect.any(String) },
    ]);
    expect(room.room.frames.filter(({ type }) => type === "error").map(({ data }) => data)).toMatchObject([
      { code: "INVALID_INPUT", ref: "orphan" },
    ]);
    expect(room.runtime.state.turns).toBe(200);
  });

  test("SIGQUEUE-1 when the conversation ends, each queued message is refused, and none runs", async () => {
    const room = await Room.create();
    await room.send(messages(MAX_ACTIVE_TURNS + 2));
    await room.runtime.changes.end({ caller: { type: "user", userId: "ada" } });
    expect(room.drain()).toBe(1);
    expect(room.entries("conversation.signal.refused").map(({ data }) => data)).toMatchObject([
      { id: `id ${MAX_ACTIVE_TURNS}`, code: "CONVERSATION_CLOSED" },
      { id: `id ${MAX_ACTIVE_TURNS + 1}`, code: "CONVERSATION_CLOSED" },
    ]);
    expect(room.runtime.state).toMatchObject({ turns: MAX_ACTIVE_TURNS, status: "completed" });
  });

  test("E5 SIGQUEUE-2 messages without room are dropped with an entry that names them, and are accepted when repeated", async () => {
    const room = await Room.create();
    const long = (index: number) => ({
      id: `long ${index}`,
      type: MESSAGE,
      data: { content: String.fromCharCode(97 + (index % 26)).repeat(1_000_000) },
    });
    const all = Array.from({ length: 54 }, (_, index) => long(index));
    const results = await room.send(all);
    const dropped = all.filter((_, index) => statusOf(results[index] as SignalResult) === "QUEUE_OVERFLOW");
    expect(new Set(results.map(statusOf))).toEqual(new Set(["started", "queued", "QUEUE_OVERFLOW"]));
    expect(room.entries("conversation.queue.overflow").map(({ data }) => data)).toMatchObject([
      { reason: "queue_overflow", dropped: dropped.length, ids: dropped.map(({ id }) => id) },
    ]);
    for (let times = 0; times < 3; times++) await room.send(dropped);
    expect(room.entries("conversation.queue.overflow"), "one entry until a message leaves").toHaveLength(1);
    await room.room.stopAll();
    room.drain();
    expect(room.runtime.state.turns).toBe(all.length - dropped.length);
    const again = await room.send(dropped.slice(0, 1));
    expect(again).toMatchObject([{ ok: true, value: { status: "failed", repeated: false } }]);
  });

  test("SIGQUEUE-4 a message counts against the rate of turns when it is accepted, and not again when it begins", async () => {
    const turnLimit = { burst: 201, perMinute: 1 };
    const steered = await SteeredConversation.create(NO_TOOLS, { orchestration: false }, {}, { turnLimit });
    const room = new Room(steered);
    expect((await room.send(messages(199))).filter(({ ok }) => !ok)).toEqual([]);
    room.drain();
    expect(room.runtime.state.turns).toBe(199);
    const results = await room.send(messages(4, 199));
    expect(results.map(statusOf)).toEqual(["started", "started", "RATE_LIMITED", "RATE_LIMITED"]);
  });

  test("SIGQUEUE-4 dropped messages use no rate, and after a refusal for the rate none is taken", async () => {
    const turnLimit = { burst: MAX_ACTIVE_TURNS + 40, perMinute: 1 };
    const steered = await SteeredConversation.create(NO_TOOLS, {}, {}, { turnLimit });
    const room = new Room(steered);
    await room.send(messages(MAX_ACTIVE_TURNS));
    const huge = (index: number) => ({
      id: `huge ${index}`,
      type: MESSAGE,
      data: { content: "x".repeat(1_000_000) },
    });
    const dropped = await room.send(Array.from({ length: 60 }, (_, index) => huge(index)));
    const taken = dropped.filter(({ ok }) => ok).length;
    expect(dropped.slice(taken).map(statusOf)).toEqual(Array(60 - taken).fill("QUEUE_OVERFLOW"));
    expect(taken).toBeGreaterThan(30);
    const rest = await room.send(messages(12, 100));
    const left = 40 - taken;
    expect(rest.map(statusOf)).toEqual([
      ...Array(left).fill("queued"),
      ...Array(12 - left).fill("RATE_LIMITED"),
    ]);
  });

  test("SIGQUEUE-5 a batch that is repeated while it waits is accepted again, and waits once", async () => {
    const room = await Room.create();
    const all = messages(MAX_ACTIVE_TURNS + 5);
    await room.send(all);
    const again = await room.send(all);
    expect(again.slice(0, MAX_ACTIVE_TURNS)).toMatchObject(
      Array(MAX_ACTIVE_TURNS).fill({ ok: true, value: { repeated: true } }),
    );
    expect(again.slice(MAX_ACTIVE_TURNS).map(statusOf)).toEqual(Array(5).fill("queued"));
    const next = new Room(await room.room.restarted());
    const changed = { ...all.at(-1), data: { content: "another body" } };
    expect((await next.send([...all.slice(-2), changed])).map(statusOf)).toEqual([
      "queued",
      "queued",
      "IDEMPOTENCY_CONFLICT",
    ]);
    expect(next.runtime.state.queue).toMatchObject({ first: 0, next: 5 });
    await next.room.stopAll();
    next.drain();
    expect(next.contents()).toEqual(all.map(({ data }) => data.content));
    expect(next.entries("conversation.signal.refused")).toEqual([]);
  });

  test("SIGQUEUE-5 the place of a refused message does not count for a later message", async () => {
    const room = await Room.create();
    const orphan = { id: "orphan", type: MESSAGE, data: { content: "Yes", replyToMessageId: "msg_0" } };
    await room.send([...messages(MAX_ACTIVE_TURNS + 1), orphan]);
    const [first] = room.room.queries.turns({ limit: 1 }).items;
    await room.room.stop(first?.id ?? "");
    room.drain();
    expect(room.entries("conversation.signal.refused")).toHaveLength(1);
    await room.send(messages(3, 100));
    expect(room.runtime.state.queue).toMatchObject({ first: 0, next: 3 });
    const known = { ...orphan, data: { content: "Yes" } };
    expect((await room.send(known)).map(statusOf)).toEqual(["queued"]);
    expect(room.runtime.state.queue).toMatchObject({ next: 4 });
  });

  test("SIGQUEUE-7 only the queued messages of a sender who has left are refused", async () => {
    const room = await Room.create();
    const ben = { type: "user", id: "ben" } as const;
    await room.room.join(ben);
    await room.send(messages(MAX_ACTIVE_TURNS));
    await room.send(messages(2, 100), { ...ADA, subject: "ben" });
    await room.send(messages(1, 200));
    await room.send(messages(1, 300), { ...ADA, subject: "an admin" });
    await room.room.leave(ben);
    await room.room.stopAll();
    room.drain();
    expect(room.contents().slice(MAX_ACTIVE_TURNS)).toEqual(["message 200", "message 300"]);
    expect(room.entries("conversation.signal.refused").map(({ data }) => data)).toMatchObject([
      { id: "id 100", code: "FORBIDDEN" },
      { id: "id 101", code: "FORBIDDEN" },
    ]);
  });

  test("SIGNAL-4 a sender who leaves during a batch sends no more of it", async () => {
    const steered = await SteeredConversation.create(NO_TOOLS);
    const left = new DramatisError("NOT_FOUND", "There is no conversation.");
    let checks = 0;
    const room = new Room(steered, () => {
      checks += 1;
      if (checks > 2) throw left;
    });
    expect((await room.send(messages(4))).map(statusOf)).toEqual([
      "started",
      "started",
      "NOT_FOUND",
      "NOT_FOUND",
    ]);
  });

  test("SIGQUEUE-6 a message with an unreadable row is given up, with or without its name, and later messages begin", async () => {
    let later = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + later };
    const room = new Room(await SteeredConversation.create(NO_TOOLS, {}, {}, { clock }));
    await room.send(messages(MAX_ACTIVE_TURNS + 3));
    room.room.database.run("UPDATE signals SET body = 'broken' WHERE n = 1");
    await room.room.stopAll();
    const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
    let pauses = 0;
    for (; room.runtime.state.queue !== undefined && pauses < 20; pauses++) {
      room.drain();
      later += 70_000;
    }
    logged.mockRestore();
    expect(pauses).toBeLessThan(20);
    expect(room.contents().slice(MAX_ACTIVE_TURNS)).toEqual(
      [
        messages(MAX_ACTIVE_TURNS + 1)[MAX_ACTIVE_TURNS],
        messages(MAX_ACTIVE_TURNS + 3)[MAX_ACTIVE_TURNS + 2],
      ].map((message) => message?.data.content),
    );
    expect(room.entries("conversation.signal.refused").map(({ data }) => data)).toEqual([
      { code: "INTERNAL_ERROR", message: expect.any(String) },
    ]);
  });

  test("SIGQUEUE-2 holds 10 000 messages and 32 MiB", () => {
    const queue = { first: 5, next: MAX_QUEUED_SIGNALS + 3, bytes: 0 };
    const small = { bytes: 1 };
    expect(fitting(queue, [small, small, small])).toBe(2);
    expect(fitting({ ...queue, next: 5, bytes: MAX_QUEUED_BYTES - 1 }, [small, small])).toBe(1);
  });
});

describe("the wake-up of the active window", () => {
  test.each([
    ["kept while messages wait that may begin", true, 0],
    ["withdrawn when no work is due", false, 1],
  ])("SIGQUEUE-1 USAGE-1 is %s, once the usage is published", async (_, isDue, expected) => {
    const room = await Room.create();
    const put = Promise.withResolvers<void>();
    let disarmed = 0;
    const state = { ...room.runtime.state, usage: { ...NO_USAGE, calls: 1 } };
    const copy = new UsageCopy(
      {
        clock: systemClock,
        runtime: { state, dueIn: isDue ? 0 : null },
        directory: () => ({ putUsage: async () => put.resolve() }) as unknown as Directory,
      },
      {
        disarm: () => {
          disarmed += 1;
        },
      },
    );
    copy.changed();
    copy.wake();
    await put.promise;
    await expect.poll(() => copy.wake()).toBeNull();
    expect(disarmed).toBe(expected);
  });
});

describe("orchestration", () => {
  test("E24 off records messages and calls no model; on calls it, with all that was recorded", async () => {
    const room = await Room.create(true);
    await room.send(messages(2));
    expect(room.room.untaken).toBe(0);
    expect(room.room.queries.turns().items.map(({ status }) => status)).toEqual(["completed", "completed"]);
    const caller = { type: "user", userId: "ada" } as const;
    await room.runtime.changes.update({ caller, orchestration: true });
    await room.send(messages(1, 2));
    const request = await room.room.request();
    expect(request.messages.slice(1).map(({ content }) => content)).toEqual([
      "message 0",
      "message 1",
      "message 2",
    ]);
    await room.runtime.changes.update({ caller, orchestration: false });
    request.answer("Late, and still an answer.");
    await room.room.until(({ type }) => type === "message.completed");
  });
});
