/** Leases of an agent's budget: between the pure rules of agent and conversation, over a network that loses and repeats. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  applyLease,
  type Lease,
  type LeaseTotals,
  mayFitLater,
  NO_LEASE,
  NO_TOTALS,
} from "../../src/agents/agent/leases.ts";
import {
  answered,
  ask,
  type LeaseState,
  leaseRequest,
  NEW_LEASE,
  returned,
} from "../../src/agents/conversation/core/lease.ts";
import { placeOf, planReturns } from "../../src/agents/conversation/core/planning/lease.ts";
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { type Amounts, addAmounts, isWithin, NOTHING, subtractAmounts } from "../../src/model/spending.ts";
import type { AgentBudget } from "../../src/protocol/budget.ts";
import { type LeaseAnswer, type LeaseRequest, leaseRequestSchema } from "../../src/protocol/budget-lease.ts";
import { SteeredConversation } from "../support/steered-model.ts";

const call = (tokens: number): Amounts => ({ ...NOTHING, tokens, nanoDollars: 2 * tokens, modelCalls: 1 });

/** The agent, as its actor stores it. */
class Ledger {
  totals: LeaseTotals = NO_TOTALS;
  readonly leases = new Map<string, Lease>();

  constructor(readonly budget: AgentBudget) {}

  take(id: string, request: LeaseRequest): LeaseAnswer {
    const before = this.leases.get(id) ?? NO_LEASE;
    const { lease, totals, answer } = applyLease(this.budget, this.totals, before, request);
    this.leases.set(id, lease);
    this.totals = totals;
    return answer;
  }
}

interface Message {
  id: string;
  request: LeaseRequest;
  answer?: LeaseAnswer;
}

/** One conversation: calls that wait, calls that run, and its lease. */
class Room {
  lease: LeaseState = NEW_LEASE;
  waiting: Amounts[] = [];
  running: Amounts[] = [];
  refused = 0;

  constructor(
    readonly id: string,
    readonly send: (message: Message) => void,
  ) {}

  get reserved(): Amounts {
    return this.running.reduce<Amounts>((sum, one) => addAmounts(sum, one), NOTHING);
  }

  set(next: LeaseState): void {
    const isNew = next.seq > this.lease.seq;
    this.lease = next;
    if (isNew) this.send({ id: this.id, request: leaseRequestSchema.parse(leaseRequest(next)) });
  }

  /** Places the calls that wait, as planning does. `isOld`: they have waited for an answer. */
  place(isOld: boolean): void {
    for (const one of this.waiting.splice(0)) {
      const place = placeOf(this.lease, this.reserved, one, isOld);
      if (place.type === "held") this.running.push(one);
      if (place.type === "waits") this.waiting.push(one);
      if (place.type === "refused") this.refused += 1;
      else if (place.next !== undefined) this.set(place.next);
    }
    if (this.waiting.length + this.running.length === 0) this.set(returned(this.lease));
  }

  start(tokens: number): void {
    this.waiting.push(call(tokens));
    this.place(false);
  }

  /** Ends a call, or loses it in a crash, which charges the whole reservation. */
  end(share: number): void {
    const one = this.running.shift();
    if (one === undefined) return;
    const used = { ...call(Math.floor(one.tokens * share)), modelCalls: 1 };
    this.lease = { ...this.lease, spent: addAmounts(this.lease.spent, used) };
    this.place(true);
  }

  hear(seq: number, answer: LeaseAnswer | null): void {
    const error = { code: "UNAVAILABLE" as const, message: "Away.", retriable: true };
    const given =
      answer === null ? { error } : answer.excess ? { excess: answer.excess } : { granted: answer.granted };
    const next = answered(this.lease, seq, given);
    if (next === this.lease) return;
    this.lease = next;
    this.place(true);
  }
}

const step = fc.record({
  what: fc.constantFrom("start", "end", "crash", "deliver", "repeat", "answer", "lose"),
  who: fc.nat(2),
  size: fc.integer({ min: 1, max: 60 }),
  at: fc.nat(5),
});

describe("LEASE-1 LEASE-2 an agent's budget", () => {
  test("H4 LEASE-5 LEASE-6 LEASE-7 holds without leaks under loss, repetition, reordering and crashes", () => {
    const budgets = fc.record(
      { tokens: fc.integer({ min: 0, max: 400 }), modelCalls: fc.nat(12), usd: fc.nat(700) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(budgets, fc.array(step, { maxLength: 80 }), ({ usd, ...limits }, steps) => {
        const budget = usd === undefined ? limits : { ...limits, usd: usd / 1e9 };
        const ledger = new Ledger(budget);
        const wire: Message[] = [];
        const sent: Message[] = [];
        const rooms = ["a", "b", "c"].map(
          (id) =>
            new Room(id, (message) => {
              wire.push(message);
              sent.push(message);
            }),
        );
        const roomOf = (id: string) => {
          const room = rooms.find((one) => one.id === id);
          if (room === undefined) throw new Error(id);
          return room;
        };
        const check = () => {
          const used = rooms.reduce<Amounts>(
            (sum, { lease, reserved }) => addAmounts(sum, addAmounts(lease.spent, reserved)),
            NOTHING,
          );
          if (budget.tokens !== undefined) expect(used.tokens).toBeLessThanOrEqual(budget.tokens);
          if (budget.modelCalls !== undefined) expect(used.modelCalls).toBeLessThanOrEqual(budget.modelCalls);
          if (usd !== undefined) expect(used.nanoDollars).toBeLessThanOrEqual(usd);
          for (const { id, lease } of rooms) {
            const known = ledger.leases.get(id) ?? NO_LEASE;
            const held = addAmounts(lease.granted, NOTHING);
            // A pending return holds less than the agent's record, never more.
            expect(isWithin(held, known.granted)).toBe(true);
          }
        };
        /** The agent acts on an envelope once, and repeats its answer. */
        const deliver = (message: Message) => {
          message.answer ??= ledger.take(message.id, message.request);
          return message.answer;
        };
        for (const { what, who, size, at } of steps) {
          const room = rooms[who];
          const message = wire[at % Math.max(1, wire.length)];
          if (what === "start") room?.start(size);
          if (what === "end") room?.end(size / 60);
          if (what === "crash") room?.end(1);
          if (what === "deliver" && message !== undefined) deliver(message);
          const old = sent[at % Math.max(1, sent.length)];
          // Below the mailbox: the same request once more, after any other requests.
          if (what === "repeat" && old?.answer !== undefined) ledger.take(old.id, old.request);
          if ((what === "answer" || what === "lose") && message !== undefined) {
            wire.splice(wire.indexOf(message), 1);
            const answer = what === "answer" ? deliver(message) : null;
            if (size > 30) deliver(message);
            roomOf(message.id).hear(message.request.seq, answer);
          }
          check();
        }
        // The network recovers, and every call ends.
        for (let round = 0; round < 500; round++) {
          const message = wire.shift();
          if (message !== undefined) roomOf(message.id).hear(message.request.seq, deliver(message));
          else if (rooms.every(({ running }) => running.length === 0)) break;
          for (const room of rooms) if (message === undefined) room.end(1);
          check();
        }
        // A return that got lost is made good by the conversation's next request.
        for (const room of rooms) {
          expect([room.waiting, room.running]).toEqual([[], []]);
          room.set({ ...returned({ ...room.lease, unsure: true }) });
        }
        for (const message of wire.splice(0)) deliver(message);
        const spent = rooms.reduce<Amounts>((sum, { lease }) => addAmounts(sum, lease.spent), NOTHING);
        expect(ledger.totals.spent).toEqual(spent);
        expect(subtractAmounts(ledger.totals.held, ledger.totals.spent)).toEqual(NOTHING);
      }),
      { numRuns: 1_000 },
    );
  });

  test("LEASE-3 leaves half of the rest beyond the next call to other conversations", () => {
    const ledger = new Ledger({ tokens: 1_000 });
    const asked = leaseRequestSchema.parse(leaseRequest(ask(NEW_LEASE, NOTHING, call(300))));
    expect(asked.wants.tokens).toBe(1_200);
    expect(ledger.take("a", asked).granted.tokens).toBe(650);
    const other = leaseRequestSchema.parse(leaseRequest(ask(NEW_LEASE, NOTHING, call(100))));
    expect(ledger.take("b", other).granted.tokens).toBe(225);
  });

  test("LEASE-2 a repeated request gets the same answer, even if the agent has more left", () => {
    const asked = leaseRequestSchema.parse(leaseRequest(ask(NEW_LEASE, NOTHING, call(300))));
    const first = applyLease({ tokens: 500 }, NO_TOTALS, NO_LEASE, asked);
    expect(first.answer.granted.tokens).toBe(400);
    const again = applyLease({ tokens: 5_000 }, first.totals, first.lease, asked);
    expect(again).toEqual({
      lease: first.lease,
      totals: first.totals,
      answer: { granted: first.lease.granted },
    });
  });

  test("LEASE-1 a conversation cannot take back its usage", () => {
    const asked = leaseRequestSchema.parse(leaseRequest(ask(NEW_LEASE, NOTHING, call(100))));
    const spent = { ...NOTHING, tokens: 300 };
    const before = applyLease({ tokens: 500 }, NO_TOTALS, NO_LEASE, { ...asked, spent });
    const after = applyLease({ tokens: 500 }, before.totals, before.lease, {
      ...asked,
      seq: 2,
      spent: NOTHING,
    });
    expect(after.totals.spent.tokens).toBe(300);
    expect(after.lease.spent.tokens).toBe(300);
  });

  test("LEASE-1 usage of a call beyond its lease is not leased to others", () => {
    const ledger = new Ledger({ tokens: 1_000 });
    const first = ask(NEW_LEASE, NOTHING, call(200));
    const { granted } = ledger.take("a", leaseRequestSchema.parse(leaseRequest(first)));
    const held = answered(first, 1, { granted });
    const over = { ...held, spent: { ...NOTHING, tokens: 900, modelCalls: 1 } };
    const refused = ledger.take("a", leaseRequestSchema.parse(leaseRequest(ask(over, NOTHING, call(200)))));
    expect(refused.excess).toMatchObject({ limit: "tokens" });
    expect(ledger.totals.held.tokens).toBe(900);
    const other = leaseRequestSchema.parse(leaseRequest(ask(NEW_LEASE, NOTHING, call(200))));
    expect(ledger.take("b", other).excess).toMatchObject({ limit: "tokens", used: 900 });
    const settled = returned(over);
    expect(settled).toEqual({ seq: 2, spent: over.spent, granted: over.spent });
    expect(returned(settled)).toBe(settled);
  });

  test("LEASE-10 a request that only idle leases block may fit later", () => {
    const ledger = new Ledger({ modelCalls: 4 });
    const asked = leaseRequestSchema.parse(leaseRequest(ask(NEW_LEASE, NOTHING, call(1))));
    for (const who of ["a", "b", "c", "d"]) ledger.take(who, asked);
    const { excess } = ledger.take("e", asked);
    expect(excess).toEqual({
      scope: "agent",
      limit: "modelCalls",
      allowed: 4,
      used: 4,
      needed: 1,
      leased: 4,
    });
    expect(excess && mayFitLater(excess)).toBe(true);
    const used = { ...NOTHING, modelCalls: 1 };
    for (const who of ["a", "b", "c", "d"])
      ledger.take(who, { seq: 2, spent: used, keeps: used, needs: used, wants: used });
    const final = ledger.take("f", asked).excess;
    expect(final).not.toHaveProperty("leased");
    expect(final && mayFitLater(final)).toBe(false);
  });

  test("LEASE-4 a request that does not fit names the limit and keeps the present lease", () => {
    const ledger = new Ledger({ modelCalls: 1, tokens: 500 });
    const first = ask(NEW_LEASE, NOTHING, call(100));
    const { granted } = ledger.take("a", leaseRequestSchema.parse(leaseRequest(first)));
    expect(granted.modelCalls).toBe(1);
    const held = answered(first, 1, { granted });
    const second = ask(held, call(100), call(100));
    const answer = ledger.take("a", leaseRequestSchema.parse(leaseRequest(second)));
    expect(answer).toEqual({
      granted,
      excess: { scope: "agent", limit: "modelCalls", allowed: 1, used: 1, needed: 1 },
    });
  });
});

describe("the lease of a conversation", () => {
  const granted = { ...NOTHING, tokens: 900 };

  test("LEASE-5 takes the answer to its newest question only, once", () => {
    const first = ask(NEW_LEASE, NOTHING, call(100));
    const unsure = answered(first, 1, { error: { code: "UNAVAILABLE", message: "Away.", retriable: true } });
    const second = ask(unsure, NOTHING, call(200));
    expect(answered(second, 1, { granted })).toBe(second);
    const held = answered(second, 2, { granted });
    expect(held).toMatchObject({ seq: 2, granted });
    expect(answered(held, 2, { granted: NOTHING })).toBe(held);
  });

  test("LEASE-7 returns no share while a question is open, and asks its agent to settle unanswered questions", () => {
    const asked = ask({ ...NEW_LEASE, granted }, NOTHING, call(2_000));
    expect(returned(asked)).toBe(asked);
    const unsure = answered(asked, 1, { error: { code: "UNAVAILABLE", message: "Away.", retriable: true } });
    expect(returned(unsure)).toEqual({ seq: 2, spent: NOTHING, granted: NOTHING });
    const nothing = answered(ask(NEW_LEASE, NOTHING, call(1)), 1, {
      error: { code: "UNAVAILABLE", message: "Away.", retriable: true },
    });
    expect(returned(nothing)).toEqual({ seq: 2, spent: NOTHING, granted: NOTHING });
    expect(returned(returned(nothing))).toEqual(returned(nothing));
  });

  test("LEASE-7 stays during a request for a summary, and is returned after it", () => {
    const lease = { ...NEW_LEASE, seq: 1, granted };
    const standing = { active: new Map(), leases: { tester: lease } };
    const resting = { ...standing, compactions: {} } as unknown as ConversationState;
    const compacting = { ...standing, compactions: { tester: { call: {} } } } as unknown as ConversationState;
    const other = { ...standing, compactions: { another: { call: {} } } } as unknown as ConversationState;
    const back = [
      { type: "SET_LEASE", agentId: "tester", lease: { seq: 2, spent: NOTHING, granted: NOTHING } },
    ];
    expect([resting, other, compacting].map(planReturns)).toEqual([back, back, []]);
  });

  test("LEASE-6 the refusal of an advance request fails no call", () => {
    const excess = { scope: "agent", limit: "tokens", allowed: 1, used: 1, needed: 1 } as const;
    expect(answered(ask(NEW_LEASE, NOTHING, call(1), { ahead: true }), 1, { excess })).not.toHaveProperty(
      "refusal",
    );
    expect(answered(ask(NEW_LEASE, NOTHING, call(1)), 1, { excess })).toHaveProperty("refusal", { excess });
  });
});

describe("a conversation of an agent with a budget", () => {
  const away = { error: { code: "UNAVAILABLE", message: "The agent is away.", retriable: true } } as const;
  const much = { granted: { tokens: 1e9, nanoDollars: 1e9, toolCalls: 0, modelCalls: 9 } };
  const leased = () => SteeredConversation.create(defineLibrary("empty", {}), {}, {}, { leased: true });
  const leaseIn = (room: SteeredConversation) => room.runtime.state.leases?.tester ?? NEW_LEASE;

  test("LEASE-8 a call waits for its agent: a crash during the wait charges no amount, and the answer continues the call", async () => {
    const before = await leased();
    const id = await before.say("Hello");
    expect(before.untaken).toBe(0);
    expect(leaseIn(before)).toMatchObject({ seq: 1, granted: NOTHING });
    expect(before.runtime.dueIn).toBeLessThan(10_000);
    const room = await before.restarted();
    expect([room.untaken, room.runtime.state.spent]).toEqual([0, NOTHING]);
    await room.answerLease(much);
    (await room.request()).answer("Hello!");
    await room.until(({ type }) => type === "turn.completed");
    expect(room.turn(id)).toMatchObject({ answer: "Hello!", spent: { tokens: 110, modelCalls: 1 } });
    const used = { ...NOTHING, tokens: 110, modelCalls: 1 };
    expect(leaseIn(room)).toEqual({ seq: 2, spent: used, granted: used });
  });

  test("LEASE-8 a call fails if its agent cannot be reached, or if it is stopped while it waits", async () => {
    const room = await leased();
    const first = await room.say("Hello");
    await room.answerLease(away);
    expect(room.turn(first).error).toMatchObject({ code: "UNAVAILABLE", retriable: true });
    const second = await room.say("Hello?");
    await room.stop(second);
    expect(room.turn(second)).toMatchObject({ error: { code: "CANCELLED" }, spent: { modelCalls: 0 } });
    await room.answerLease(much);
    expect(room.untaken).toBe(0);
    expect(leaseIn(room)).toMatchObject({ granted: NOTHING, spent: NOTHING });
  });

  test("LEASE-8 parallel calls wait for one answer, and calls beyond the budget fail", async () => {
    const room = await leased();
    const ids = [await room.say("A"), await room.say("B"), await room.say("C")];
    expect(leaseIn(room).seq).toBe(1);
    const two = { granted: { ...much.granted, modelCalls: 2 } };
    await room.answerLease(two);
    const requests = [await room.request(), await room.request()];
    expect(room.untaken).toBe(0);
    const excess = { scope: "agent", limit: "modelCalls", allowed: 2, used: 2, needed: 1 } as const;
    for (let n = 0; n < 2 && leaseIn(room).asked !== undefined; n++)
      await room.answerLease({ ...two, excess });
    expect(ids.map((id) => room.turn(id).error?.code)).toEqual([undefined, undefined, "BUDGET_EXCEEDED"]);
    for (const request of requests) request.answer("Done.");
    for (const id of ids.slice(0, 2)) {
      await room.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
    }
    expect(leaseIn(room).granted).toEqual(leaseIn(room).spent);
  });
});
