/**
 * The mailbox in Node: its pure core, and mailboxes on a hostile network with crashes and faults at every crossing, on a
 * virtual clock.
 */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { answerSchema } from "../../src/agents/base/mailbox/checks.ts";
import { NotNow } from "../../src/agents/base/mailbox/handlers.ts";
import { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import {
  ACT_WITHIN_MS,
  delayAfter,
  MAX_ATTEMPTS,
  RECEIPT_KEPT_MS,
  REDELIVER_WITHIN_MS,
  SEND_WITHIN_MS,
} from "../../src/agents/base/mailbox/mailbox-limits.ts";
import { newEntry, type OutboxInput, stepOutbox } from "../../src/agents/base/mailbox/outbox-entry.ts";
import type { MailboxPorts } from "../../src/agents/base/mailbox/ports.ts";
import { decideReceipt } from "../../src/agents/base/mailbox/receipt.ts";
import { StorageRefusal } from "../../src/agents/base/storage/schema-upgrade.ts";
import type { KeyValue } from "../../src/ports/key-value.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Envelope, NewEnvelope } from "../../src/protocol/envelope.ts";
import type { Answer } from "../../src/protocol/mailbox-api.ts";
import { DramatisError, type ErrorData } from "../../src/shared/errors.ts";
import {
  type Behaviour,
  type Fate,
  MailWorld,
  operationIdAt,
  type SimulatedActor,
} from "../support/mail-world.ts";

beforeEach(() => {
  vi.spyOn(console, "error").mockReturnValue();
});

afterEach(() => {
  vi.restoreAllMocks();
});

const NOW = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;
const ERROR: ErrorData = { code: "X", message: "x", retriable: false };
const address = (id: string) => ({ kind: "tester", tenant: "t", id });
const envelope: Envelope = {
  operationId: operationIdAt(NOW, "1"),
  from: address("a"),
  to: address("b"),
  type: "work",
  body: null,
  sentAt: NOW,
};

/** From zero to beyond every timeout, and beyond the last attempt. */
const delay = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 50 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1_000, max: 60_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 3_600_000, max: 20_000_000 }) },
);

const fate: fc.Arbitrary<Fate> = fc.record({
  requests: fc.array(delay, { maxLength: 3 }),
  answer: fc.option(delay, { freq: 2 }),
  breaks: fc.option(delay, { freq: 2 }),
});

const behaviour: fc.Arbitrary<Behaviour> = fc.array(
  fc.constantFrom("accept", "refuse", "busy", "busy", "busy", "defect"),
  { maxLength: 12 },
);

interface Decision {
  from: "a" | "b";
  reply: boolean;
  rollBack: boolean;
  behaviour: Behaviour;
  /** The time before the decision, in milliseconds. */
  after: number;
}

const decision: fc.Arbitrary<Decision> = fc.record({
  from: fc.constantFrom("a", "b"),
  reply: fc.boolean(),
  rollBack: fc.oneof(
    { weight: 4, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  ),
  behaviour,
  after: fc.integer({ min: 0, max: 5_000 }),
});

const points = fc.array(fc.integer({ min: 0, max: 150 }), { maxLength: 6 });

const scenario = fc.record({
  decisions: fc.array(decision, { minLength: 1, maxLength: 6 }),
  fates: fc.array(fate, { maxLength: 60 }),
  crashes: fc.tuple(points, points),
  faults: fc.tuple(points, points),
  redeliveries: fc.integer({ min: 0, max: 2 }),
});

interface Scenario {
  decisions: Decision[];
  fates: Fate[];
  crashes: [a: number[], b: number[]];
  faults: [a: number[], b: number[]];
  redeliveries: number;
}

interface Operation {
  id: string;
  sender: SimulatedActor;
  receiver: SimulatedActor;
  reply: boolean;
  rollBack: boolean;
}

const sorted = (numbers: number[]) => [...new Set(numbers)].sort((a, b) => a - b);

/** Runs a scenario to its end. Returns the outcomes of each decision, before and after redeliveries. */
async function run({ decisions, fates, crashes, faults, redeliveries }: Scenario) {
  const behaviours = new Map<string, Behaviour>();
  const world = new MailWorld({ fates, behaviours });
  const a = world.add("a", sorted(crashes[0]), sorted(faults[0]));
  const b = world.add("b", sorted(crashes[1]), sorted(faults[1]));
  const operations: Operation[] = [];
  for (const [index, { from, reply, rollBack, behaviour, after }] of decisions.entries()) {
    await world.clock.advance(after);
    const id = operationIdAt(world.clock.now(), String(index));
    behaviours.set(id, [...behaviour]);
    const [sender, receiver] = from === "a" ? [a, b] : [b, a];
    operations.push({ id, sender, receiver, reply, rollBack });
    await sender.decide(id, receiver.address, reply, rollBack);
  }
  await world.untilQuiet();
  const outcomes = () =>
    operations.map(({ id, sender, receiver, reply, rollBack }) => ({
      reply,
      rollBack,
      committed: sender.committed(id),
      acts: receiver.acts(id),
      reported: sender.reported(id),
      replies: sender.repliesTo(id),
      dead: sender.deadLetters().some((letter) => letter.id === id),
    }));
  const first = outcomes();
  for (let round = 0; round < redeliveries; round++) {
    await a.redeliverAll();
    await b.redeliverAll();
    await world.untilQuiet();
  }
  return { world, first, last: outcomes(), idle: a.isIdle && b.isIdle };
}

describe("a hostile network, crashes and faults", () => {
  test("MAIL-6 MAIL-10 MAIL-11 one crash or fault at every crossing of either side: delivered, and replied to, once", async () => {
    const plain: Scenario = {
      decisions: [{ from: "a", reply: true, rollBack: false, behaviour: [], after: 0 }],
      fates: [],
      crashes: [[], []],
      faults: [[], []],
      redeliveries: 0,
    };
    const golden = await run(plain);
    let [runs, uncommitted] = [0, 0];
    for (const [side, name] of ["a", "b"].entries()) {
      const count = golden.world.actors.get(name)?.crossings.count ?? 0;
      expect(count).toBeGreaterThan(20);
      for (const kind of ["crashes", "faults"] as const) {
        for (let point = 0; point < count; point++) {
          const at: [number[], number[]] = side === 0 ? [[point], []] : [[], [point]];
          const { first, idle } = await run({ ...plain, [kind]: at });
          const [operation] = first;
          const where = `${kind} of ${name} at ${point}`;
          runs += 1;
          expect(idle, where).toBe(true);
          if (operation?.committed === true) {
            expect(operation, where).toMatchObject({
              acts: 1,
              reported: [{ status: "delivered", late: false }],
              replies: [{ late: false }],
            });
          } else {
            uncommitted += 1;
            expect(operation, where).toMatchObject({ acts: 0, reported: [], replies: [] });
          }
        }
      }
    }
    expect(uncommitted).toBeGreaterThan(0);
    expect(uncommitted).toBeLessThan(runs / 2);
    console.info(`${runs} crashes and faults, ${uncommitted} of them before the commit`);
  });

  test("MAIL-4 MAIL-7 after a failure because the receiver was always busy, late copies of attempts have no effect", async () => {
    const late: Fate = { requests: [1, 20_000_000], answer: 1, breaks: null };
    const world = new MailWorld({
      fates: Array.from({ length: MAX_ATTEMPTS }, () => late),
      behaviours: new Map([
        [envelope.operationId, Array.from({ length: MAX_ATTEMPTS }, () => "busy" as const)],
      ]),
    });
    const [a, b] = [world.add("a"), world.add("b")];
    await a.decide(envelope.operationId, b.address, false, false);
    await world.untilQuiet();
    expect(world.carried.map(({ attempt }) => attempt.number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(a.reported(envelope.operationId)).toEqual([{ status: "failed", late: false }]);
    expect(b.acts(envelope.operationId)).toBe(0);
  });

  test("MAIL-11 an outcome is reported once, even if its commit seemed to fail", async () => {
    const lost: Fate = { requests: [], answer: null, breaks: null };
    for (let point = 0; point < 60; point++) {
      const { first } = await run({
        decisions: [{ from: "a", reply: false, rollBack: false, behaviour: [], after: 0 }],
        fates: [lost],
        crashes: [[], []],
        faults: [[point, point + 1], []],
        redeliveries: 0,
      });
      const [operation] = first;
      expect(operation?.reported.length, `faults at ${point} and after`).toBe(operation?.committed ? 1 : 0);
    }
  });

  test("MAIL-11 MAIL-14 an effect runs once if the call of its handler commits, and never if it throws, at both ends", async () => {
    const failing = fc.oneof(
      behaviour,
      fc.array(fc.constantFrom("accept", "busy", "defect"), { maxLength: 30 }),
      fc.constant(Array.from({ length: 40 }, () => "defect" as const)),
    );
    const seen = { ran: 0, thrown: 0 };
    await fc.assert(
      fc.asyncProperty(
        behaviour,
        failing,
        fc.array(fate, { maxLength: 5 }),
        async (taken, reported, fates) => {
          const { operationId } = envelope;
          const behaviours = new Map([
            [operationId, [...taken]],
            [`reported:${operationId}`, [...reported]],
          ]);
          const world = new MailWorld({ fates, behaviours });
          const [a, b] = [world.add("a"), world.add("b")];
          await a.decide(operationId, b.address, false, false);
          await world.untilQuiet();
          expect(world.wrongEffects).toEqual([]);
          expect([...world.effects].sort()).toEqual([...a.committedCalls(), ...b.committedCalls()].sort());
          seen.ran += world.effects.size;
          seen.thrown += world.calls - world.effects.size;
        },
      ),
      { numRuns: 100 },
    );
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(50);
  }, 180_000);

  test("MAIL-3 MAIL-4 MAIL-6 MAIL-10 MAIL-11 MAIL-16 receivers act at most once, each outcome is single and true, and the world reaches rest", async () => {
    const seen = { delivered: 0, failed: 0, unknown: 0, late: 0, replies: 0, lateReplies: 0 };
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { world, first, last, idle } = await run(given);
        expect(idle, "no work is open").toBe(true);
        expect(world.wrongEffects).toEqual([]);
        for (const { committed, rollBack, acts, reported, dead, reply, replies } of first) {
          if (rollBack) expect(committed).toBe(false);
          expect(acts, "acts").toBeLessThanOrEqual(committed ? 1 : 0);
          expect(reported.length, "outcomes").toBe(committed ? 1 : 0);
          for (const { status, late } of reported) {
            seen[status] += 1;
            expect(late).toBe(false);
            expect(dead, "a dead letter unless delivered").toBe(status !== "delivered");
            if (status === "failed") expect(acts, "acts of failed operations").toBe(0);
            if (status === "delivered") expect(acts, "acts of delivered operations").toBe(1);
          }
          expect(replies.length).toBeLessThanOrEqual(reply ? acts : 0);
        }
        for (const { committed, acts, reported, replies } of last) {
          expect(acts, "acts after redelivery").toBeLessThanOrEqual(1);
          expect(
            reported.slice(1).every(({ late }) => late),
            "later outcomes are late",
          ).toBe(true);
          if (reported.some(({ status }) => status === "delivered")) expect(acts).toBe(1);
          if (!committed) expect(reported).toEqual([]);
          seen.late += reported.length > 1 ? 1 : 0;
          seen.replies += replies.length;
          seen.lateReplies += replies.filter(({ late }) => late).length;
        }
      }),
      { numRuns: 100 },
    );
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
    console.info(seen);
  }, 120_000);
});

describe("an entry", () => {
  const answer: fc.Arbitrary<OutboxInput> = fc.constantFrom<OutboxInput>(
    { type: "answered", answer: { type: "busy", error: ERROR } },
    { type: "answered", answer: { type: "busy", error: ERROR, retryAfterMs: 60_000 } },
    { type: "unanswered", error: ERROR },
    { type: "woken" },
  );
  const end: fc.Arbitrary<OutboxInput> = fc.constantFrom<OutboxInput>(
    { type: "answered", answer: { type: "done", result: 1 } },
    { type: "answered", answer: { type: "refused", error: ERROR, recorded: false } },
    { type: "answered", answer: { type: "refused", error: ERROR, recorded: true } },
  );

  test("MAIL-3 MAIL-4 MAIL-5 has one outcome after at most ten attempts, and fails only if the receiver cannot act", () => {
    fc.assert(
      fc.property(
        fc.array(answer, { minLength: 10, maxLength: 10 }),
        fc.nat(10),
        end,
        (answers, when, last) => {
          let entry = newEntry(envelope);
          let now = NOW;
          let unanswered = false;
          const numbers = [entry.attempt];
          for (const [index, input] of [...answers.slice(0, when), last].entries()) {
            const isSilent = input.type === "unanswered" || input.type === "woken";
            const step = stepOutbox(entry, input, now);
            if (step.type === "settle") {
              const { status } = step.outcome;
              const refusal =
                input.type === "answered" && input.answer.type === "refused" ? input.answer : null;
              if (status === "failed")
                expect(refusal?.recorded === true || !(unanswered || isSilent)).toBe(true);
              const isBusy = input.type === "answered" && input.answer.type === "busy";
              if (status === "failed") expect(refusal).not.toBeNull();
              if (status === "unknown") expect(unanswered || isSilent || isBusy).toBe(true);
              if (refusal === null && status !== "delivered") expect(index).toBe(9);
              return;
            }
            unanswered ||= isSilent;
            now = step.entry.dueAt ?? now;
            entry = stepOutbox(step.entry, { type: "begin" }, now).entry;
            numbers.push(entry.attempt);
            expect(numbers).toEqual(numbers.map((_, position) => position + 1));
          }
          throw new Error("no outcome");
        },
      ),
    );
  });

  test("MAIL-5 an attempt that a crash may have interrupted counts as made and unanswered; a waiting entry keeps waiting", () => {
    const fresh = newEntry(envelope);
    const woken = stepOutbox(fresh, { type: "woken" }, NOW + 5);
    expect(woken).toEqual({ type: "wait", entry: { ...fresh, unanswered: true, dueAt: NOW + 5 } });
    expect(stepOutbox({ ...fresh, dueAt: NOW + 9 }, { type: "woken" }, NOW + 5)).toEqual({
      type: "wait",
      entry: { ...fresh, dueAt: NOW + 9 },
    });
    expect(stepOutbox({ ...fresh, attempt: 10 }, { type: "woken" }, NOW)).toMatchObject({
      type: "settle",
      outcome: { status: "unknown" },
    });
  });

  test('MAIL-4 a last attempt with the answer "not now" is unknown: its refusal was not recorded', () => {
    const last = { ...newEntry(envelope), attempt: MAX_ATTEMPTS };
    expect(stepOutbox(last, { type: "answered", answer: { type: "busy", error: ERROR } }, NOW)).toMatchObject(
      { type: "settle", outcome: { status: "unknown", error: ERROR } },
    );
  });

  test("attempts take about 66 minutes, and respect the wait that a busy receiver requests", () => {
    const delays = Array.from({ length: MAX_ATTEMPTS - 1 }, (_, index) => delayAfter(index + 1) / 1_000);
    expect(delays).toEqual([1, 4, 16, 64, 256, 900, 900, 900, 900]);
    const busy = (retryAfterMs: number): OutboxInput => ({
      type: "answered",
      answer: { type: "busy", error: ERROR, retryAfterMs },
    });
    const entry = newEntry(envelope);
    expect(stepOutbox(entry, busy(10), NOW).entry.dueAt).toBe(NOW + 1_000);
    expect(stepOutbox(entry, busy(7_000), NOW).entry.dueAt).toBe(NOW + 7_000);
    expect(stepOutbox(entry, busy(DAY), NOW).entry.dueAt).toBe(NOW + 900_000);
  });
});

describe("a receipt", () => {
  const id = envelope.operationId;

  test("MAIL-6 a completed operation gets the same answer at any age", () => {
    for (const age of [0, 31 * DAY, 400 * DAY]) {
      expect(decideReceipt(id, 7, { type: "done", result: 1 }, NOW + age)).toEqual({
        type: "answer",
        answer: { type: "done", result: 1 },
      });
    }
  });

  test("MAIL-7 a refusal holds for its attempt and all earlier attempts", () => {
    const receipt = { type: "refused", attempt: 3, error: ERROR } as const;
    for (const attempt of [1, 2, 3]) {
      expect(decideReceipt(id, attempt, receipt, NOW)).toMatchObject({
        answer: { type: "refused", recorded: true },
      });
    }
    expect(decideReceipt(id, 4, receipt, NOW)).toEqual({ type: "act" });
  });

  test("MAIL-8 an operation that may be forgotten is refused at any attempt", () => {
    expect(decideReceipt(id, 1, undefined, NOW + 32 * DAY)).toEqual({ type: "act" });
    for (const now of [NOW + 32 * DAY + 1, NOW + 36 * DAY, NOW - 2 * DAY]) {
      expect(decideReceipt(id, 1, undefined, now)).toMatchObject({ answer: { type: "refused" } });
    }
    expect(SEND_WITHIN_MS).toBeLessThan(REDELIVER_WITHIN_MS);
    expect(REDELIVER_WITHIN_MS).toBeLessThan(ACT_WITHIN_MS);
    expect(ACT_WITHIN_MS).toBeLessThan(RECEIPT_KEPT_MS);
  });
});

describe("a mailbox", () => {
  const silent = () => new Promise<never>(() => undefined);

  const refusing = async (): Promise<Answer> => ({ type: "refused", error: ERROR, recorded: true });

  function open(deliver: MailboxPorts["deliver"] = silent) {
    const database = new NodeSqlDatabase();
    const clock = new VirtualClock(NOW);
    const ports: MailboxPorts = {
      database,
      keyValue: new NodeKeyValue(database),
      clock,
      checkStorage: () => undefined,
      whenArmed: () => Promise.resolve(),
      self: () => address("a"),
      deliver,
      arm: () => Promise.resolve(),
      directory: () => null,
    };
    const mailbox = new Mailbox(ports);
    const ids = seededIds(1, clock);
    const send = (more: Partial<NewEnvelope> = {}) =>
      mailbox.send({ operationId: `op_${ids.ulid()}`, to: address("b"), type: "work", body: null, ...more });
    const entries = () => ports.keyValue.list("mailbox:out:", 2_000).length;
    return { mailbox, ports, database, clock, ids, send, entries };
  }

  const errorOf = (body: () => unknown): unknown => {
    try {
      body();
    } catch (error) {
      return error;
    }
    throw new Error("Nothing was thrown.");
  };

  test("MAIL-1 MAIL-2 refuses to send envelopes that every mailbox would refuse", () => {
    const { send, entries } = open();
    const bad: [Partial<NewEnvelope>, string][] = [
      [{ operationId: "op_1" }, "INVALID_INPUT"],
      [{ operationId: operationIdAt(NOW - 15 * DAY, "1") }, "INVALID_INPUT"],
      [{ operationId: operationIdAt(NOW + 2 * DAY, "1") }, "INVALID_INPUT"],
      [{ to: { ...address("b"), tenant: "other" } }, "INVALID_INPUT"],
      [{ to: { ...address("b"), id: "x:y" } }, "INVALID_INPUT"],
      [{ to: address("a") }, "INVALID_INPUT"],
      [{ type: "No Type" }, "INVALID_INPUT"],
      [{ body: undefined as never }, "INVALID_INPUT"],
      [{ body: { at: new Date() } as never }, "INVALID_INPUT"],
      [{ body: "x".repeat(768 * 1024) }, "TOO_LARGE"],
    ];
    for (const [fields, code] of bad) expect(errorOf(() => send(fields))).toMatchObject({ code });
    expect(entries()).toBe(0);
  });

  test("MAIL-1 an operation id identifies one envelope: a repeated send is one, another envelope is refused", () => {
    const { send, entries, ids } = open();
    const operationId = `op_${ids.ulid()}`;
    send({ operationId, body: { a: 1, b: 2 } });
    send({ operationId, body: { b: 2, a: 1 } });
    expect(errorOf(() => send({ operationId, body: { a: 2 } }))).toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
    });
    expect(entries()).toBe(1);
  });

  test("MAIL-13 the outbox is bounded in number and bytes, and an overflow takes back the decision", async () => {
    const { send, entries, ports, database } = open();
    for (let n = 0; n < 999; n++) send();
    const decision = () =>
      database.transaction(() => {
        ports.keyValue.put("fact", 1);
        send();
        send();
        return null;
      });
    expect(errorOf(decision)).toMatchObject({ code: "QUEUE_OVERFLOW", retriable: true });
    expect(ports.keyValue.get("fact")).toBeUndefined();
    expect(entries()).toBe(999);
    send();
    expect(errorOf(() => send())).toMatchObject({ code: "QUEUE_OVERFLOW" });
    const large = open();
    for (let n = 0; n < 11; n++) large.send({ body: "x".repeat(760_000) });
    expect(errorOf(() => large.send({ body: "x".repeat(760_000) }))).toMatchObject({
      code: "QUEUE_OVERFLOW",
    });
  });

  test("MAIL-20 a full outbox accepts owed envelopes, up to a second bound, and a wake finds all of them", () => {
    const { send, entries, ports, mailbox, ids } = open();
    const owe = () =>
      mailbox.send(
        { operationId: `op_${ids.ulid()}`, to: address("b"), type: "work", body: null },
        { owed: true },
      );
    for (let n = 0; n < 1_000; n++) send();
    for (let n = 0; n < 1_000; n++) owe();
    expect(entries()).toBe(2_000);
    for (const more of [send, owe]) expect(errorOf(() => more())).toMatchObject({ code: "QUEUE_OVERFLOW" });
    const woken = new Mailbox(ports);
    const operationId = operationIdAt(NOW, "WOKEN");
    const next = { operationId, to: address("b"), type: "work", body: null };
    expect(errorOf(() => woken.send(next, { owed: true }))).toMatchObject({ code: "QUEUE_OVERFLOW" });
    const large = open();
    const body = "x".repeat(760_000);
    for (let n = 0; n < 11; n++) large.send({ body });
    const last = { operationId: `op_${large.ids.ulid()}`, to: address("b"), type: "work", body };
    expect(() => large.mailbox.send(last, { owed: true })).not.toThrow();
  });

  test("MAIL-13 an entry that a wake finds has the same size as when it was sent", () => {
    const { send, ports } = open();
    const body = "é".repeat(375_000);
    for (let n = 0; n < 11; n++) send({ body });
    expect(errorOf(() => send({ body }))).toMatchObject({ code: "QUEUE_OVERFLOW" });
    const woken = new Mailbox(ports);
    const operationId = operationIdAt(NOW, "WOKEN");
    const more = { operationId, to: address("b"), type: "work", body };
    expect(errorOf(() => woken.send(more))).toMatchObject({ code: "QUEUE_OVERFLOW" });
  });

  test("MAIL-1 later changes of the sent object do not change the envelope in transit", async () => {
    const bodies: unknown[] = [];
    const { send, clock, mailbox } = open(async ({ body }) => {
      bodies.push(body);
      if (bodies.length === 1) throw new Error("lost");
      return { type: "done", result: null };
    });
    const cart = { items: ["tea"] };
    send({ body: cart });
    cart.items.push("coffee");
    await clock.advance(60_000);
    mailbox.wake();
    await clock.advance(0);
    expect(bodies).toEqual([{ items: ["tea"] }, { items: ["tea"] }]);
  });

  test("MAIL-10 a repeated send resolves only when the wake-up is armed, after a failure and in a new life", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const { ports } = open();
    const outcomes = [false, true, true];
    let armed = 0;
    const watched: MailboxPorts = {
      ...ports,
      arm: async () => {
        armed += 1;
        if (!outcomes.shift()) throw new Error("no alarm");
      },
    };
    const envelope = { operationId: operationIdAt(NOW, "ARM"), to: address("b"), type: "work", body: null };
    const first = new Mailbox(watched);
    await expect(first.send(envelope)).rejects.toThrow("no alarm");
    await first.send(envelope);
    expect(armed).toBe(2);
    await new Mailbox(watched).send(envelope);
    expect(armed).toBe(3);
    log.mockRestore();
  });

  test.each([Number.NaN, -5_000, 1.5])(
    "a receiver still answers if its handler requests a wait of %d ms",
    async (wait) => {
      const { ports } = open();
      const mailbox = new Mailbox(ports);
      mailbox.receives("work", z.null(), () => {
        throw new NotNow("Later.", wait);
      });
      const envelope = {
        operationId: operationIdAt(NOW, "WAIT"),
        from: address("b"),
        to: address("a"),
        type: "work",
        body: null,
        sentAt: NOW,
      };
      const answer = await mailbox.receive(envelope, { number: 1, last: false });
      expect(answerSchema.parse(answer)).toMatchObject({ type: "busy", error: { message: "Later." } });
    },
  );

  test("MAIL-17 sending under the operation id of a dead letter does not send", async () => {
    const numbers: number[] = [];
    const { send, clock, mailbox, ids, entries } = open((_, { number }) => {
      numbers.push(number);
      return refusing();
    });
    const operationId = `op_${ids.ulid()}`;
    send({ operationId, body: { a: 1 } });
    await clock.advance(0);
    send({ operationId, body: { a: 1 } });
    expect(errorOf(() => send({ operationId, body: { a: 2 } }))).toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
    });
    await clock.advance(0);
    expect(entries()).toBe(0);
    expect(numbers).toEqual([1]);
    await mailbox.redeliver(operationId);
    await clock.advance(0);
    expect(numbers).toEqual([1, 2]);
  });

  test("MAIL-6 a delivered operation that is sent again has no second effect, and is reported as delivered", async () => {
    const world = new MailWorld({ fates: [], behaviours: new Map() });
    const [a, b] = [world.add("a"), world.add("b")];
    const id = operationIdAt(world.clock.now(), "AGAIN");
    for (let time = 0; time < 2; time++) {
      await a.decide(id, b.address, false, false);
      await world.untilQuiet();
    }
    expect(b.acts(id)).toBe(1);
    expect(a.reported(id).map(({ status }) => status)).toEqual(["delivered", "delivered"]);
  });

  /** Returns an envelope to the mailbox of `open`. */
  const incoming = (more: object = {}) => ({ ...envelope, from: address("b"), to: address("a"), ...more });

  test("MAIL-18 an older release does not lose newer envelopes: unknown types wait, unknown members are dropped", async () => {
    const { mailbox, database, send } = open();
    const seen: unknown[] = [];
    mailbox.receives("work", z.null(), (_, delivery) => {
      seen.push(delivery.envelope);
      return null;
    });
    const unknown = incoming({ type: "of.tomorrow" });
    const log = vi.spyOn(console, "error").mockReturnValue();
    for (let number = 1; number <= 2; number++) {
      expect(await mailbox.receive(unknown, { number, last: false })).toMatchObject({
        type: "busy",
        error: { code: "UNSUPPORTED" },
      });
    }
    const missing = 'This actor has no handler for envelopes of type "of.tomorrow".';
    expect(log.mock.calls, "once").toEqual([[`${missing} It has handlers for: work.`]]);
    expect(database.all("SELECT name FROM sqlite_master WHERE name LIKE 'mailbox%'")).toEqual([]);
    expect(await mailbox.receive(unknown, { number: 10, last: true })).toMatchObject({
      type: "refused",
      recorded: true,
    });
    const wider = incoming({
      operationId: operationIdAt(NOW, "2"),
      priority: 1,
      to: { ...address("a"), region: "x" },
    });
    expect(await mailbox.receive(wider, { number: 1, last: false, traced: true })).toMatchObject({
      type: "done",
    });
    expect(seen).toEqual([incoming({ operationId: operationIdAt(NOW, "2") })]);
    const extra = { priority: 1 } as Partial<NewEnvelope>;
    expect(errorOf(() => send(extra))).toMatchObject({ code: "INVALID_INPUT" });
  });

  test.each<[what: string, returned: () => unknown, problem: string]>([
    [
      "a Promise",
      () => Promise.reject(new Error("late")),
      "returned a Promise. Handlers are synchronous: start other work by `afterCommit`.",
    ],
    ["nothing", () => undefined, "returned nothing. Return `null`."],
    ["a Date", () => new Date(0), "returned a value that is not JSON."],
    [
      "too much",
      () => "x".repeat(70_000),
      "returned more than 65536 bytes. Send a large result in a separate envelope.",
    ],
  ])(
    "a handler that returned %s is a defect, and the log names the type and the cause",
    async (_what, returned, problem) => {
      const { mailbox } = open();
      const log = vi.spyOn(console, "error").mockReturnValue();
      mailbox.receives("work", z.null(), () => returned() as null);
      expect(await mailbox.receive(incoming(), { number: 1, last: false })).toMatchObject({ type: "busy" });
      const logged = log.mock.calls.map(([error]) => (error as Error).message);
      expect(logged).toContain(`The handler of "work" ${problem}`);
    },
  );

  test("MAIL-15 only the receiver of an operation may reply to it, in transit or dead", async () => {
    const answers: Answer[] = [{ type: "refused", error: ERROR, recorded: true }];
    const { mailbox, send, clock, ids, database } = open(() => {
      const answer = answers.shift();
      return answer === undefined ? silent() : Promise.resolve(answer);
    });
    mailbox.receives("result", z.null(), () => null);
    const [dead, underWay] = [`op_${ids.ulid()}`, `op_${ids.ulid()}`];
    send({ operationId: dead });
    await clock.advance(0);
    send({ operationId: underWay });
    for (const inReplyTo of [dead, underWay]) {
      const reply = (from: string) =>
        mailbox.receive(
          incoming({
            operationId: `op_${ids.ulid()}`,
            from: address(from),
            type: "result",
            inReplyTo,
          }),
          { number: 1, last: false },
        );
      expect(await reply("c")).toMatchObject({
        type: "refused",
        error: { code: "FORBIDDEN" },
        recorded: false,
      });
      expect(mailbox.deadLetters().items[0]?.repliedAt).toBeUndefined();
      expect(database.all("SELECT name FROM sqlite_master WHERE name = 'mailbox_inbox'")).toEqual([]);
    }
    const reply = incoming({ operationId: `op_${ids.ulid()}`, type: "result", inReplyTo: underWay });
    expect(await mailbox.receive(reply, { number: 1, last: false })).toMatchObject({ type: "done" });
  });

  test("MAIL-14 the attempt fails if an effect and the arming of a wake-up do, and no failure is left unheard", async () => {
    const unheard: unknown[] = [];
    const hear = (reason: unknown) => unheard.push(reason);
    process.on("unhandledRejection", hear);
    const { mailbox, ports } = open();
    ports.whenArmed = () => {
      throw new Error("It is not armed.");
    };
    mailbox.receives("work", z.null(), (_, { afterCommit }) => {
      afterCommit(() => Promise.reject(new Error("The effect failed.")));
      return null;
    });
    await expect(mailbox.receive(incoming(), { number: 1, last: false })).rejects.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", hear);
    expect(unheard).toEqual([]);
    ports.whenArmed = () => Promise.resolve();
    expect(await mailbox.receive(incoming(), { number: 2, last: false })).toMatchObject({ type: "done" });
  });

  test("MAIL-21 data that a handler needs is read before its transaction, and overlapping attempts act once", async () => {
    const { mailbox, database } = open();
    const reads: PromiseWithResolvers<string>[] = [];
    const handled: string[] = [];
    const read = () => {
      const pending = Promise.withResolvers<string>();
      reads.push(pending);
      return pending.promise;
    };
    mailbox.receivesAfter("work", z.null(), read, (_, __, found) => {
      expect(database.isInTransaction()).toBe(true);
      handled.push(found);
      return { found };
    });
    const first = mailbox.receive(incoming(), { number: 1, last: false });
    const second = mailbox.receive(incoming(), { number: 2, last: false });
    reads[1]?.resolve("second");
    expect(await second).toEqual({ type: "done", result: { found: "second" } });
    reads[0]?.resolve("first");
    expect(await first).toEqual({ type: "done", result: { found: "second" } });
    expect(await mailbox.receive(incoming(), { number: 3, last: false })).toMatchObject({ type: "done" });
    expect([reads.length, handled]).toEqual([2, ["second"]]);
  });

  test("MAIL-21 a read that throws decides the attempt as a handler that throws", async () => {
    const { mailbox, ids } = open();
    let thrown: unknown = new DramatisError("UNAVAILABLE", "Not now.", { retriable: true });
    const read = async () => {
      throw thrown;
    };
    mailbox.receivesAfter("work", z.null(), read, () => null);
    const receive = (number: number, last = false) => mailbox.receive(incoming(), { number, last });
    expect(await receive(1)).toMatchObject({ type: "busy", error: { code: "UNAVAILABLE" } });
    thrown = new TypeError("A defect.");
    expect(await receive(2)).toMatchObject({ type: "busy" });
    thrown = new DramatisError("FORBIDDEN", "Never.");
    expect(await receive(3)).toMatchObject({ type: "refused", recorded: true, error: { code: "FORBIDDEN" } });
    const late = incoming({ operationId: `op_${ids.ulid()}` });
    thrown = new DramatisError("UNAVAILABLE", "Not now.", { retriable: true });
    expect(await mailbox.receive(late, { number: 10, last: true })).toMatchObject({
      type: "refused",
      recorded: true,
    });
    const wrong = incoming({ operationId: `op_${ids.ulid()}`, body: 5 });
    expect(await mailbox.receive(wrong, { number: 1, last: false })).toMatchObject({
      type: "refused",
      recorded: false,
      error: { code: "INVALID_INPUT" },
    });
  });

  test("MAIL-19 UPGRADE-3 storage of a newer release is not written: not now, later, or UNAVAILABLE", async () => {
    const refusal = new StorageRefusal("of a newer release", { retriable: true });
    for (const of of ["actor", "mailbox"]) {
      const world = open();
      world.mailbox.receives("work", z.null(), () => null);
      world.send();
      if (of === "mailbox") world.ports.keyValue.put("mailbox:version", 2);
      const ports = {
        ...world.ports,
        whenArmed: () => Promise.resolve(),
        checkStorage: () => {
          if (of === "actor") throw refusal;
        },
      };
      const mailbox = new Mailbox(ports);
      mailbox.receives("work", z.null(), () => null);
      const dump = () => [
        ports.keyValue.list("", 1_000),
        world.database.all("SELECT name FROM sqlite_master"),
      ];
      const before = dump();
      expect(mailbox.wake()).toBe(60_000);
      expect(await mailbox.receive(incoming(), { number: 10, last: true })).toMatchObject({
        type: "busy",
        error: { code: "UNAVAILABLE" },
      });
      const operationId = operationIdAt(NOW, "3");
      const code = "UNAVAILABLE";
      const more = { operationId, to: address("b"), type: "work", body: null };
      expect(errorOf(() => mailbox.send(more))).toMatchObject({ code });
      expect(errorOf(() => mailbox.deadLetters())).toMatchObject({ code });
      await expect(mailbox.redeliver(operationId)).rejects.toMatchObject({ code });
      expect(dump()).toEqual(before);
    }
  });

  test("MAIL-12 first attempts to one destination run one by one in the order of sending; other destinations do not wait", async () => {
    const carried: string[] = [];
    const pending: (() => void)[] = [];
    const { send, clock, ids } = open(({ operationId, to }) => {
      carried.push(`${to.id} ${operationId}`);
      return new Promise((resolve) => {
        pending.push(() => resolve({ type: "done", result: null }));
      });
    });
    const [first, second, third] = [`op_${ids.ulid()}`, `op_${ids.ulid()}`, `op_${ids.ulid()}`];
    send({ operationId: third });
    send({ operationId: first });
    send({ operationId: second, to: address("c") });
    await clock.advance(0);
    expect(carried).toEqual([`b ${third}`, `c ${second}`]);
    pending[0]?.();
    await clock.advance(0);
    expect(carried).toEqual([`b ${third}`, `c ${second}`, `b ${first}`]);
  });

  test("MAIL-12 later envelopes overtake a failed one; an attempt without an answer ends after 30 seconds", async () => {
    const carried: string[] = [];
    const { send, clock, mailbox, ids } = open(async ({ operationId }) => {
      carried.push(operationId);
      return carried.length === 1 ? silent() : { type: "done", result: null };
    });
    const [first, second] = [`op_${ids.ulid()}`, `op_${ids.ulid()}`];
    send({ operationId: first });
    send({ operationId: second });
    await clock.advance(29_999);
    expect(carried).toEqual([first]);
    await clock.advance(1);
    expect(carried).toEqual([first, second]);
    await clock.advance(1_000);
    expect(mailbox.wake()).toBe(30_000);
    await clock.advance(0);
    expect(carried).toEqual([first, second, first]);
    expect(mailbox.wake()).toBeNull();
  });

  test("MAIL-22 a withdrawn envelope is not retried, takes no room, and has neither an outcome nor a dead letter", async () => {
    const carried: string[] = [];
    const { send, clock, mailbox, entries, database, ports } = open(async ({ type }, { number }) => {
      carried.push(`${type} ${number}`);
      throw new Error("away");
    });
    const reported: string[] = [];
    mailbox.outcomes("work", ({ outcome }) => void reported.push(outcome.status));
    send();
    send({ type: "other" });
    await clock.advance(0);
    const withdraw = () => mailbox.withdraw(address("b"), "work");
    const rolledBack = () =>
      database.transaction(() => {
        withdraw();
        throw new Error("no");
      });
    expect(rolledBack).toThrow("no");
    await clock.advance(1_000);
    mailbox.wake();
    await clock.advance(0);
    expect(carried, "a withdrawal that is rolled back has no effect").toEqual([
      "work 1",
      "other 1",
      "work 2",
      "other 2",
    ]);
    const before = mailbox.room().envelopes;
    withdraw();
    expect(mailbox.room().envelopes).toBe(before + 1);
    for (let hour = 0; hour < 2; hour++) {
      for (let wait = mailbox.wake(); wait !== null && wait <= 900_000; wait = mailbox.wake())
        await clock.advance(Math.max(1, wait));
    }
    expect(carried.filter((one) => one.startsWith("work"))).toEqual(["work 1", "work 2"]);
    expect([reported, entries(), mailbox.deadLetters().items.map(({ type }) => type)]).toEqual([
      [],
      0,
      ["other"],
    ]);
    expect(new Mailbox(ports).wake()).toBeNull();
  });

  test("MAIL-24 envelopes that name an erased operation leave the outbox and the dead letters, except envelopes that end its work", async () => {
    const { send, clock, mailbox, entries, database } = open(async ({ type }) => {
      if (type !== "refused") throw new Error("away");
      return { type: "refused", error: ERROR, recorded: true };
    });
    const [erased, other] = ["op_01JH00000000000000000000E1", "op_01JH00000000000000000000E2"];
    for (const of of [erased, other])
      for (const type of ["refused", "work"]) send({ type, body: { of, text: `Ann ${of}` } });
    send({ type: "cancel", body: { of: erased } });
    // One destination has one attempt at a time.
    for (let turn = 0; turn < 5; turn++) await clock.advance(0);
    const letters = () => mailbox.deadLetters().items.map(({ body }) => body);
    expect([letters().length, entries()]).toEqual([2, 3]);
    const rolledBack = () =>
      database.transaction(() => {
        mailbox.discard(erased, ["cancel"]);
        throw new Error("no");
      });
    expect(rolledBack).toThrow("no");
    expect([letters().length, entries()]).toEqual([2, 3]);
    mailbox.discard(erased, ["cancel"]);
    expect([letters(), entries()]).toEqual([[{ of: other, text: `Ann ${other}` }], 2]);
  });

  test.each<[end: string, answer: () => Promise<Answer>]>([
    ["fails", () => Promise.reject(new Error("away"))],
    ["is refused", refusing],
    ["arrives", async () => ({ type: "done", result: null })],
  ])("MAIL-22 an attempt that runs during the withdrawal and %s is ignored", async (_, answer) => {
    let end = (): void => undefined;
    const under = new Promise<void>((resolve) => {
      end = resolve;
    });
    const { send, clock, mailbox, entries } = open(() => under.then(answer));
    const reported: string[] = [];
    mailbox.outcomes("work", ({ outcome }) => void reported.push(outcome.status));
    send();
    await clock.advance(0);
    mailbox.withdraw(address("b"), "work");
    end();
    await clock.advance(0);
    expect([reported, entries(), mailbox.deadLetters().items, mailbox.wake()]).toEqual([[], 0, [], null]);
  });

  test("MAIL-22 a withdrawal that cannot be read when its attempt ends is noticed later", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
    let end = (): void => undefined;
    const under = new Promise<void>((resolve) => {
      end = resolve;
    });
    let attempts = 0;
    const { ports, ids, clock } = open(() => {
      attempts += 1;
      return under.then(() => Promise.reject(new Error("away")));
    });
    let isDown = false;
    const keyValue: KeyValue = {
      ...{ put: (...given) => ports.keyValue.put(...given), delete: (key) => ports.keyValue.delete(key) },
      list: (...given) => ports.keyValue.list(...given),
      get: (key) => {
        if (isDown) throw new Error("The disk is silent.");
        return ports.keyValue.get(key);
      },
    };
    const mailbox = new Mailbox({ ...ports, keyValue });
    const operationId = `op_${ids.ulid()}`;
    await mailbox.send({ operationId, to: address("b"), type: "work", body: null });
    await clock.advance(0);
    mailbox.withdraw(address("b"), "work");
    isDown = true;
    end();
    await clock.advance(0);
    expect(errors).toHaveBeenCalled();
    isDown = false;
    expect(mailbox.wake()).toBeNull();
    await clock.advance(900_000);
    expect([attempts, mailbox.deadLetters().items, new Mailbox(ports).wake()]).toEqual([1, [], null]);
    errors.mockRestore();
  });

  test("MAIL-11 an outcome becomes a dead letter if its handler fails in another series of attempts", async () => {
    const { send, clock, mailbox, entries } = open(async () => ({ type: "done", result: null }));
    let tries = 0;
    mailbox.outcomes("work", () => {
      tries += 1;
      throw new Error("a defect");
    });
    send();
    await clock.advance(0);
    for (let step = 0; step < 30 && entries() > 0; step++) {
      await clock.advance(900_000);
      mailbox.wake();
      await clock.advance(0);
    }
    expect(tries).toBe(20);
    expect(mailbox.deadLetters().items).toMatchObject([
      { status: "unknown", error: { code: "INTERNAL_ERROR" } },
    ]);
  });

  test("MAIL-5 MAIL-16 no attempt number is used twice, after a crash or by a redelivery", async () => {
    const numbers: number[] = [];
    const answers: Answer[] = [{ type: "busy", error: ERROR }];
    const first = open((_, { number }) => {
      numbers.push(number);
      const answer = answers.shift();
      return answer === undefined ? silent() : Promise.resolve(answer);
    });
    const operationId = `op_${first.ids.ulid()}`;
    first.send({ operationId });
    await first.clock.advance(1_000);
    first.mailbox.wake();
    await first.clock.advance(0);
    expect(numbers).toEqual([1, 2]);
    const second = new Mailbox(first.ports);
    answers.push({ type: "refused", error: ERROR, recorded: true });
    second.wake();
    await first.clock.advance(0);
    expect(second.deadLetters().items).toMatchObject([{ id: operationId, status: "failed", attempts: 3 }]);
    await second.redeliver(operationId);
    await first.clock.advance(0);
    expect(numbers).toEqual([1, 2, 3, 4]);
  });

  test("MAIL-8 receipts are deleted when their operations would be refused anyway", async () => {
    const { mailbox, database, clock } = open();
    mailbox.receives("work", z.null(), () => null);
    const take = (n: number) =>
      mailbox.receive(
        {
          ...envelope,
          to: address("a"),
          from: address("b"),
          operationId: operationIdAt(clock.now(), String(n)),
        },
        { number: 1, last: false },
      );
    const storedReceipts = () => database.all("SELECT operation_id FROM mailbox_inbox").length;
    for (let n = 0; n < 120; n++) await take(n);
    expect(storedReceipts()).toBe(120);
    await clock.advance(34 * DAY);
    for (let n = 0; n < 60; n++) await take(n);
    expect(storedReceipts()).toBe(180);
    await clock.advance(2 * DAY);
    for (let n = 0; n < 110; n++) await take(n);
    expect(storedReceipts()).toBe(170);
  });

  test("MAIL-16 a dead letter older than 30 days is not delivered again, and pages are bounded", async () => {
    const { send, clock, mailbox, ids } = open(async () => ({
      type: "refused",
      error: ERROR,
      recorded: true,
    }));
    const operationId = `op_${ids.ulid()}`;
    send({ operationId });
    await clock.advance(0);
    expect(mailbox.deadLetters().items).toMatchObject([{ id: operationId, status: "failed" }]);
    await expect(mailbox.redeliver("op_nonsense")).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(mailbox.redeliver(`op_${ids.ulid()}`)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await clock.advance(31 * DAY);
    await expect(mailbox.redeliver(operationId)).rejects.toMatchObject({ code: "CONFLICT" });
    for (const page of [{ limit: 0 }, { limit: 201 }, { cursor: "x" }, { order: "up" as never }]) {
      expect(errorOf(() => mailbox.deadLetters(page))).toMatchObject({ code: "INVALID_INPUT" });
    }
  });

  test("dead letters are bounded in number: the oldest is deleted", async () => {
    const { send, clock, mailbox, ids } = open(async () => ({
      type: "refused",
      error: ERROR,
      recorded: true,
    }));
    const all = Array.from({ length: 1_003 }, () => `op_${ids.ulid()}`);
    for (const operationId of all) {
      send({ operationId });
      if (Number(operationId.at(-1)) % 2 === 0) await clock.advance(0);
    }
    await clock.advance(0);
    expect(mailbox.deadLetters({ limit: 2 }).items.map(({ id }) => id)).toEqual(all.slice(3, 5));
    expect(mailbox.deadLetters({ limit: 1, order: "desc" }).items.map(({ id }) => id)).toEqual(all.slice(-1));
  });

  test("dead letters and their pages are bounded in bytes", async () => {
    const { send, clock, mailbox, ids } = open(refusing);
    const all = Array.from({ length: 90 }, () => `op_${ids.ulid()}`);
    for (const operationId of all) {
      send({ operationId, body: "x".repeat(750_000) });
      await clock.advance(0);
    }
    const found: string[] = [];
    const pages: number[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page = mailbox.deadLetters({ limit: 200, ...(cursor === "" ? {} : { cursor }) });
      found.push(...page.items.map(({ id }) => id));
      pages.push(page.items.length);
      cursor = page.nextCursor;
    }
    expect(found).toEqual(all.slice(-89));
    expect(Math.max(...pages)).toBe(6);
  });

  test("a dead letter is deleted when its operation is 35 days old", async () => {
    const { send, clock, mailbox } = open(refusing);
    send();
    await clock.advance(34 * DAY);
    send({ operationId: operationIdAt(clock.now(), "2") });
    await clock.advance(0);
    expect(mailbox.deadLetters().items).toHaveLength(2);
    await clock.advance(2 * DAY);
    send({ operationId: operationIdAt(clock.now(), "3") });
    await clock.advance(0);
    expect(mailbox.deadLetters().items.map(({ id }) => id)).toEqual([
      operationIdAt(NOW + 34 * DAY, "2"),
      operationIdAt(NOW + 36 * DAY, "3"),
    ]);
  });

  test("sender and receiver store a part of a long error", async () => {
    const issue = { path: `/${"p".repeat(10_000)}`, message: "m".repeat(10_000) };
    const long = {
      ...ERROR,
      message: `${"x".repeat(1_999)}\u{1F600}${"x".repeat(3_000_000)}`,
      errors: Array.from({ length: 300 }, () => issue),
    };
    const { send, clock, mailbox, database } = open(async () => ({
      type: "refused",
      error: long,
      recorded: true,
    }));
    send();
    await clock.advance(0);
    const [letter] = mailbox.deadLetters().items;
    expect(letter?.error.message).toBe("x".repeat(1_999));
    expect(letter?.error.errors).toHaveLength(20);
    expect(letter?.error.errors?.[0]).toEqual({
      path: issue.path.slice(0, 500),
      message: issue.message.slice(0, 500),
    });
    mailbox.receives("work", z.null(), () => {
      throw new DramatisError("CONFLICT", long.message);
    });
    expect(await mailbox.receive(incoming(), { number: 1, last: false })).toMatchObject({
      type: "refused",
      recorded: true,
    });
    const [receipt] = database.all<{ size: number }>("SELECT length(answer) AS size FROM mailbox_inbox");
    expect(receipt?.size).toBeLessThan(3_000);
  });

  describe("with a directory", () => {
    function openWithDirectory() {
      const put = vi.fn<(tenant: string, letter: { id: string }) => Promise<void>>(async () => undefined);
      const remove = vi.fn<(tenant: string, operationId: string) => Promise<void>>(async () => undefined);
      const world = open(refusing);
      const ports: MailboxPorts = { ...world.ports, directory: () => ({ put, remove }) };
      const mailbox = new Mailbox(ports);
      const send = (operationId = `op_${world.ids.ulid()}`) => {
        mailbox.send({ operationId, to: address("b"), type: "work", body: null });
        return operationId;
      };
      return { ...world, ports, mailbox, put, send };
    }

    test("DEAD-3 a failed put is retried after 15 s, doubling to 15 minutes", async () => {
      const { mailbox, clock, put, send } = openWithDirectory();
      put.mockRejectedValue(new Error("down"));
      send();
      await clock.advance(0);
      expect(put).toHaveBeenCalledTimes(1);
      expect(mailbox.wake()).toBe(15_000);
      expect(put, "too early").toHaveBeenCalledTimes(1);
      const waits: (number | null)[] = [];
      for (let wait: number | null = 15_000; waits.length < 8; waits.push(wait)) {
        await clock.advance(wait ?? 0);
        wait = mailbox.wake();
      }
      await clock.advance(0);
      expect(waits).toEqual([30, 60, 120, 240, 480, 900, 900, 900].map((seconds) => seconds * 1_000));
      expect(put).toHaveBeenCalledTimes(9);
      put.mockResolvedValue(undefined);
      await clock.advance(900_000);
      mailbox.wake();
      await clock.advance(0);
      expect(mailbox.wake()).toBeNull();
    });

    test("DEAD-3 a letter that the directory rejects does not delay others", async () => {
      const { mailbox, clock, put, send, ids } = openWithDirectory();
      const stuck = `op_${ids.ulid()}`;
      put.mockImplementation(async (_, { id }) => {
        if (id === stuck) throw new Error("too strange");
      });
      send(stuck);
      const other = send();
      await clock.advance(0);
      await clock.advance(15_000);
      mailbox.wake();
      await clock.advance(0);
      expect(put.mock.calls.map(([, { id }]) => id)).toContain(other);
      expect(mailbox.wake()).not.toBeNull();
    });

    test("DEAD-3 without a directory, notes cause no wake-up", async () => {
      const { clock, put, send, ports } = openWithDirectory();
      put.mockRejectedValue(new Error("down"));
      send();
      await clock.advance(0);
      expect(new Mailbox({ ...ports, directory: () => null }).wake()).toBeNull();
      expect(new Mailbox({ ...ports, self: () => null }).wake()).toBeNull();
      expect(new Mailbox(ports).wake()).toBe(15_000);
    });
  });

  test("DEAD-1 the view of an error has no secrets", async () => {
    const secret = "use sk-abcdefghijkl";
    const { send, clock, mailbox } = open(async () => ({
      type: "refused",
      error: { ...ERROR, message: secret, errors: [{ path: `/${secret}`, message: secret }] },
      recorded: true,
    }));
    send();
    await clock.advance(0);
    expect(mailbox.deadLetters().items[0]?.error).toEqual({
      ...ERROR,
      message: "use [redacted]",
      errors: [{ path: "/use [redacted]", message: "use [redacted]" }],
    });
  });

  test("DEAD-1 the view of a letter has no secrets, and at most 16 KiB of body", async () => {
    const { send, clock, mailbox } = open(async () => ({ type: "refused", error: ERROR, recorded: true }));
    send({ body: { apiKey: "k", nested: [{ Authorization: { a: 1 }, note: "use sk-abcdefghijkl" }] } });
    send({ body: "x".repeat(17_000) });
    await clock.advance(0);
    expect(mailbox.deadLetters().items.map(({ body }) => body)).toEqual([
      { apiKey: "[redacted]", nested: [{ Authorization: "[redacted]", note: "use [redacted]" }] },
      null,
    ]);
  });

  test("a late result reaches the handler, marked as late, and its dead letter contains the time", async () => {
    const { send, clock, mailbox, ids } = open(async () => ({
      type: "refused",
      error: ERROR,
      recorded: true,
    }));
    const taken: unknown[] = [];
    mailbox.receives("result", z.string(), (body, { late }) => {
      taken.push([body, late]);
      return null;
    });
    const operationId = `op_${ids.ulid()}`;
    send({ operationId });
    await clock.advance(0);
    const reply = (body: string, inReplyTo: string) => ({
      ...envelope,
      operationId: `op_${ids.ulid()}`,
      from: address("b"),
      to: address("a"),
      type: "result",
      body,
      inReplyTo,
    });
    const first = { number: 1, last: false };
    expect(await mailbox.receive(reply("late", operationId), first)).toMatchObject({ type: "done" });
    expect(await mailbox.receive(reply("in time", `op_${ids.ulid()}`), first)).toMatchObject({
      type: "done",
    });
    expect(taken).toEqual([
      ["late", true],
      ["in time", false],
    ]);
    expect(mailbox.deadLetters().items).toMatchObject([{ repliedAt: new Date(clock.now()).toISOString() }]);
  });
});
