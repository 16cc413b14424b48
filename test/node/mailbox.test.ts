/**
 * The mailbox in Node: its pure core, and mailboxes on a hostile network with crashes and faults at every crossing, on a
 * virtual clock.
 */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
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

/** From at once to beyond every timeout, and beyond the last attempt. */
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
  /** Time that passes before it. */
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

/** Runs a scenario to its end; what became of each decision, before redeliveries and after. */
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
      told: sender.told(id),
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
  test("MAIL-3 MAIL-4 MAIL-6 MAIL-10 MAIL-11 MAIL-16 acted on at most once, one true outcome, and rest", async () => {
    const seen = { delivered: 0, failed: 0, unknown: 0, late: 0, replies: 0, lateReplies: 0 };
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { first, last, idle } = await run(given);
        expect(idle, "nothing is under way").toBe(true);
        for (const { committed, rollBack, acts, told, dead, reply, replies } of first) {
          if (rollBack) expect(committed).toBe(false);
          expect(acts, "acts").toBeLessThanOrEqual(committed ? 1 : 0);
          expect(told.length, "outcomes").toBe(committed ? 1 : 0);
          for (const { status, late } of told) {
            seen[status] += 1;
            expect(late).toBe(false);
            expect(dead, "a dead letter unless delivered").toBe(status !== "delivered");
            if (status === "failed") expect(acts, "acts of what failed").toBe(0);
            if (status === "delivered") expect(acts, "acts of what was delivered").toBe(1);
          }
          expect(replies.length).toBeLessThanOrEqual(reply ? acts : 0);
        }
        for (const { committed, acts, told, replies } of last) {
          expect(acts, "acts after redelivery").toBeLessThanOrEqual(1);
          expect(
            told.slice(1).every(({ late }) => late),
            "later outcomes are late",
          ).toBe(true);
          if (told.some(({ status }) => status === "delivered")) expect(acts).toBe(1);
          if (!committed) expect(told).toEqual([]);
          seen.late += told.length > 1 ? 1 : 0;
          seen.replies += replies.length;
          seen.lateReplies += replies.filter(({ late }) => late).length;
        }
      }),
      { numRuns: 400 },
    );
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
    console.info(seen);
  });
});
