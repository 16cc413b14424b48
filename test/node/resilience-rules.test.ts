/** The rules of resilience, whatever happens: pauses, breakers and lines. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  admitCall,
  type BreakerSettings,
  type BreakerState,
  CLOSED,
  record,
  type Verdict,
} from "../../src/adapters/resilience/breaker.ts";
import { HostGuards, hostKey } from "../../src/adapters/resilience/host-guards.ts";
import { type Claim, Limiter, LOST_AFTER_MS, type Slot } from "../../src/adapters/resilience/limiter.ts";
import { type FailedAttempt, nextStep } from "../../src/adapters/resilience/next-step.ts";
import { completeResilience, requestDeadline } from "../../src/adapters/resilience/profile.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const RUNS = { numRuns: 150 };
const span = fc.nat(200_000);
const optionalSpan = fc.option(span, { nil: undefined });

describe("pauses", () => {
  const failedAttempt: fc.Arbitrary<FailedAttempt> = fc
    .record({
      base: fc.nat(10_000),
      max: span,
      jitter: fc.tuple(
        fc.double({ min: 0, max: 2, noNaN: true }),
        fc.double({ min: 0, max: 2, noNaN: true }),
      ),
      failed: fc.integer({ min: 1, max: 20 }),
      maxAttempts: fc.integer({ min: 1, max: 20 }),
      suggested: optionalSpan,
      asked: optionalSpan,
      retryable: fc.boolean(),
      hasFallback: fc.boolean(),
      category: fc.constantFrom("transient", "validation", "rate_limit", "auth"),
      left: fc.integer({ min: -10, max: 300_000 }),
      random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    })
    .map(({ base, max, jitter, failed, suggested, asked, left, random, ...given }) => ({
      profile: completeResilience({
        maxAttempts: given.maxAttempts,
        baseBackoffMs: base,
        maxBackoffMs: max,
        jitterFactorRange: [Math.min(...jitter), Math.max(...jitter)],
      }),
      error: {
        category: given.category,
        retryable: given.retryable,
        ...(suggested === undefined ? {} : { suggestedBackoffMs: suggested }),
        ...(asked === undefined ? {} : { retryAfterMs: asked }),
      },
      failed,
      hasFallback: given.hasFallback,
      now: 1_000_000,
      deadline: 1_000_000 + left,
      random,
    }));

  test("RESIL-1 RESIL-2 RESIL-3 a pause has the right length, within its bounds, and ends before the deadline", () => {
    fc.assert(
      fc.property(failedAttempt, (attempt) => {
        const { profile, error, failed, now, deadline, random } = attempt;
        const step = nextStep(attempt);
        if (step.type === "fall-back")
          expect(attempt.hasFallback && error.category !== "validation").toBe(true);
        if (step.type === "give-up" && now < deadline) {
          expect(attempt.hasFallback && error.category !== "validation").toBe(false);
        }
        if (step.type !== "retry") return;
        expect(error.retryable && failed < profile.maxAttempts).toBe(true);
        expect(now + step.delayMs).toBeLessThan(deadline);
        expect(step.delayMs).toBeGreaterThanOrEqual(0);
        const asked = error.suggestedBackoffMs ?? error.retryAfterMs;
        const [from, to] = profile.jitterFactorRange;
        const own = profile.baseBackoffMs * 2 ** (failed - 1) * (from + (to - from) * random);
        expect(step.delayMs).toBeCloseTo(Math.min(profile.maxBackoffMs, asked ?? own), 3);
        if (attempt.hasFallback && error.category !== "validation") {
          expect(step.delayMs).toBeLessThanOrEqual(own);
        }
      }),
      RUNS,
    );
  });

  test("the spec's numbers are the defaults, and the earliest bound is the deadline", () => {
    const profile = completeResilience();
    expect(profile).toEqual({
      maxAttempts: 1,
      retryEnabled: true,
      perAttemptTimeoutMs: 30_000,
      overallTimeoutMs: 90_000,
      baseBackoffMs: 250,
      maxBackoffMs: 60_000,
      jitterFactorRange: [0.8, 1.2],
    });
    expect(requestDeadline(profile, 1_000)).toBe(91_000);
    expect(requestDeadline({ ...profile, maxEndToEndLatencyMs: 5 }, 1_000)).toBe(1_005);
    expect(requestDeadline({ ...profile, maxEndToEndLatencyMs: 5 }, 1_000, 1_002)).toBe(1_002);
  });
});

describe("a breaker", () => {
  const settings: BreakerSettings = { failures: 3, windowMs: 1_000, coolDownMs: 500 };
  const verdict = fc.oneof(
    { weight: 5, arbitrary: fc.constant<Verdict>("failed") },
    { weight: 2, arbitrary: fc.constantFrom<Verdict>("alive", "unknown") },
  );
  /** An attempt begins, an open attempt ends, time passes or jumps. */
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.constant({ type: "begin" } as const) },
    { weight: 5, arbitrary: fc.record({ type: fc.constant("end" as const), which: fc.nat(5), verdict }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant("pass" as const), milliseconds: fc.nat(400) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant("jump" as const),
        milliseconds: fc.integer({ min: -3_000, max: 3_000 }),
      }),
    },
  );
  const steps = fc.array(step, { minLength: 20, maxLength: 80 });

  test("BREAKER-1 BREAKER-2 BREAKER-3 BREAKER-4 whatever happens", () => {
    fc.assert(
      fc.property(steps, (actions) => {
        let state: BreakerState = CLOSED;
        let now = 1_000_000;
        let jumped = false;
        const running: boolean[] = [];
        const probes: number[] = [];
        /** Failures since the last success, as an observer counts them. */
        let row: number[] = [];
        for (const action of actions) {
          const before: BreakerState = state;
          switch (action.type) {
            case "pass":
              now += action.milliseconds;
              break;
            case "jump":
              now += action.milliseconds;
              jumped ||= action.milliseconds < 0;
              break;
            case "begin": {
              const admission = admitCall(state, settings, now);
              state = admission.state;
              if (admission.admitted) {
                running.push(admission.isProbe);
                expect(admission.isProbe).toBe(before.phase !== "closed");
                const last = probes.at(-1);
                if (admission.isProbe && before.phase === "half-open" && last !== undefined && !jumped) {
                  expect(now - last).toBeGreaterThanOrEqual(settings.coolDownMs);
                }
                if (admission.isProbe) probes.push(now);
              } else {
                expect(before.phase).not.toBe("closed");
                expect(admission.retryAfterMs).toBeGreaterThan(0);
                expect(admission.retryAfterMs).toBeLessThanOrEqual(settings.coolDownMs);
                expect(admitCall(state, settings, now + admission.retryAfterMs).admitted).toBe(true);
              }
              break;
            }
            case "end": {
              const isProbe = running.splice(action.which % Math.max(1, running.length), 1)[0];
              if (isProbe === undefined) break;
              state = record(state, { isProbe, verdict: action.verdict }, settings, now);
              if (before.phase === "open") expect(state).toBe(before);
              if (before.phase === "half-open" && !isProbe) expect(state).toBe(before);
              if (before.phase === "half-open" && isProbe) {
                expect(state.phase).toBe(action.verdict === "alive" ? "closed" : "open");
              }
              if (before.phase === "closed") {
                if (action.verdict === "alive") row = [];
                if (action.verdict === "failed") {
                  row = [...row.filter((at) => at > now - settings.windowMs), now];
                }
                expect(state.phase).toBe(row.length >= settings.failures ? "open" : "closed");
              }
              if (state.phase === "closed" && before.phase !== "closed") row = [];
              break;
            }
            default:
              action satisfies never;
          }
        }
      }),
      RUNS,
    );
  });

  /** The breaker after attempts that end with these verdicts at these times, all admitted at once. */
  const afterEnds = (...ends: [at: number, verdict: Verdict][]) =>
    ends.reduce<BreakerState>(
      (state, [at, verdict]) => record(state, { isProbe: false, verdict }, settings, at),
      CLOSED,
    );

  test("BREAKER-1 failures count within the window, and since the last success", () => {
    expect(afterEnds([0, "failed"], [500, "failed"], [999, "failed"])).toEqual({
      phase: "open",
      until: 1_499,
    });
    expect(afterEnds([0, "failed"], [500, "failed"], [1_000, "failed"]).phase).toBe("closed");
    expect(afterEnds([0, "failed"], [1, "failed"], [2, "alive"], [3, "failed"]).phase).toBe("closed");
    expect(afterEnds([0, "failed"], [1, "failed"], [2, "unknown"], [3, "failed"]).phase).toBe("open");
  });

  test("BREAKER-2 a clock that jumps back prolongs no pause", () => {
    const open: BreakerState = { phase: "open", until: 1_000_000 };
    expect(admitCall(open, settings, 0)).toMatchObject({ admitted: false, retryAfterMs: 500 });
  });

  test("BREAKER-3 BREAKER-4 only the probe decides", () => {
    const probing = admitCall({ phase: "open", until: 100 }, settings, 100).state;
    for (const verdict of ["alive", "failed", "unknown"] as const) {
      expect(record(probing, { isProbe: false, verdict }, settings, 110)).toBe(probing);
    }
    expect(record(probing, { isProbe: true, verdict: "alive" }, settings, 110)).toBe(CLOSED);
    const failed = record(probing, { isProbe: true, verdict: "failed" }, settings, 110);
    expect(admitCall(failed, settings, 609)).toMatchObject({ admitted: false, retryAfterMs: 1 });
    const unknown = record(probing, { isProbe: true, verdict: "unknown" }, settings, 110);
    expect(admitCall(unknown, settings, 110)).toMatchObject({ admitted: true, isProbe: true });
  });

  test("BREAKER-3 a probe that is never heard of is given up", () => {
    const open: BreakerState = { phase: "open", until: 100 };
    const probe = admitCall(open, settings, 100);
    expect(probe).toMatchObject({ admitted: true, isProbe: true });
    expect(admitCall(probe.state, settings, 599)).toMatchObject({ admitted: false, retryAfterMs: 1 });
    expect(admitCall(probe.state, settings, 600)).toMatchObject({ admitted: true, isProbe: true });
  });

  test("BREAKER-5 hosts, models and accounts have separate breakers, and a bounded number of breakers is kept", async () => {
    const profile = (host: string) =>
      ({ provider: "openai", modelId: "m", baseUrl: `https://${host}/v1` }) as const;
    expect(hostKey(profile("one"))).not.toBe(hostKey(profile("two")));
    expect(hostKey({ provider: "openai" })).toBe(hostKey(profile("api.openai.com")));
    expect(hostKey({ provider: "workers-ai" })).toBe("workers-ai");
    const guards = new HostGuards(new VirtualClock(), { breaker: { failures: 1 } });
    const { signal } = new AbortController();
    const fail = async (host: string) =>
      (await guards.enter(profile(host), { leaseMs: 1, signal })).leave("failed");
    await fail("first");
    await expect(guards.enter(profile("first"), { leaseMs: 1, signal })).rejects.toThrowError(/in a row/);
    await expect(
      guards.enter({ ...profile("first"), modelId: "n" }, { leaseMs: 1, signal }),
    ).resolves.toBeDefined();
    await expect(
      guards.enter(profile("first"), { leaseMs: 1, signal, account: "account" }),
    ).resolves.toBeDefined();
    const keyed = { ...profile("first"), apiKeySecret: "OTHER_KEY" };
    await expect(guards.enter(keyed, { leaseMs: 1, signal })).resolves.toBeDefined();
    for (let n = 0; n < 1_000; n++) await fail(`host-${n}`);
    await expect(guards.enter(profile("first"), { leaseMs: 1, signal })).resolves.toBeDefined();
    await expect(guards.enter(profile("host-999"), { leaseMs: 1, signal })).rejects.toThrowError(/in a row/);
  });
});

describe("a line of calls", () => {
  const which = fc.nat(9);
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant({ type: "ask" } as const) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant("release" as const), which }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant("leave" as const), which }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("again" as const), which }) },
  );
  const steps = fc.array(fc.tuple(step, fc.boolean()), { minLength: 10, maxLength: 60 });
  const limits = fc.record({ concurrent: fc.integer({ min: 1, max: 3 }), queued: fc.nat(4) });

  const clock = new VirtualClock();
  const one: Claim = { tenant: "t", leaseMs: 1_000 };

  test("LIMITER-1 LIMITER-2 LIMITER-4 never above the limit, in order, and no slot is lost", () => {
    fc.assert(
      fc.property(limits, steps, (limit, actions) => {
        const limiter = new Limiter({ total: limit.concurrent, queued: limit.queued }, clock);
        const holders: Slot[] = [];
        const spent: Slot[] = [];
        let waiting: Slot[] = [];
        for (const [action, asksBackwards] of actions) {
          switch (action.type) {
            case "ask": {
              const isFull = holders.length >= limit.concurrent && waiting.length >= limit.queued;
              if (isFull) expect(() => limiter.claim(one)).toThrowError(/are waiting/);
              else waiting.push(limiter.claim(one));
              break;
            }
            case "release": {
              const [holder] = holders.splice(action.which % Math.max(1, holders.length), 1);
              holder?.release();
              if (holder !== undefined) spent.push(holder);
              break;
            }
            case "leave": {
              const [leaver] = waiting.splice(action.which % Math.max(1, waiting.length), 1);
              leaver?.release();
              break;
            }
            case "again": {
              const former = spent[action.which % Math.max(1, spent.length)];
              former?.release();
              expect(former?.take() ?? false).toBe(false);
              break;
            }
            default:
              action satisfies never;
          }
          // All waiting callers ask. The slots go to the first callers, whatever the order of asking.
          const free = limit.concurrent - holders.length;
          const taken = asksBackwards
            ? new Set(waiting.toReversed().filter((slot) => slot.take()))
            : new Set(waiting.filter((slot) => slot.take()));
          expect([...taken].sort(byPlace(waiting))).toEqual(waiting.slice(0, Math.max(0, free)));
          holders.push(...taken);
          waiting = waiting.filter((slot) => !taken.has(slot));
          expect(holders.length).toBeLessThanOrEqual(limit.concurrent);
        }
        for (const slot of [...waiting, ...holders]) slot.release();
        expect(limiter.isIdle).toBe(true);
      }),
      RUNS,
    );
  });

  const byPlace = (line: readonly Slot[]) => (one: Slot, other: Slot) =>
    line.indexOf(one) - line.indexOf(other);

  test("LIMITER-3 a slot with a lost holder is free again when its lease is over, and the line continues", async () => {
    const clock = new VirtualClock();
    const limiter = new Limiter({ total: 1, queued: 5 }, clock);
    const lost = limiter.claim({ ...one, leaseMs: LOST_AFTER_MS * 2 });
    const gone = limiter.claim(one);
    const waiting = limiter.claim(one);
    await clock.advance(LOST_AFTER_MS - 1);
    expect(waiting.take()).toBe(false);
    await clock.advance(LOST_AFTER_MS - 1);
    expect(waiting.take()).toBe(false);
    await clock.advance(2);
    expect(waiting.take()).toBe(true);
    lost.release();
    expect(gone.take()).toBe(false);
    waiting.release();
    expect(gone.take()).toBe(true);
    gone.release();
    expect(limiter.isIdle).toBe(true);
  });

  /** Grants slots of a limiter one at a time to calls that wait, each by its name, and returns the names in order. */
  function served(limiter: Limiter, holder: Slot, waiting: Map<string, Slot>): string[] {
    const order: string[] = [];
    for (let held: Slot | undefined = holder; held !== undefined; ) {
      held.release();
      const next: [string, Slot] | undefined = [...waiting].find(([, slot]) => slot.take());
      if (next !== undefined) {
        order.push(next[0]);
        waiting.delete(next[0]);
      }
      held = next?.[1];
    }
    expect(limiter.isIdle).toBe(true);
    return order;
  }

  test("LIMITER-2 tenants take turns, whatever the length of their queues, and a leaving call loses no turn", () => {
    const limiter = new Limiter({ total: 1 }, clock);
    const claim = (tenant: string) => limiter.claim({ ...one, tenant });
    const holder = claim("a");
    for (const left of Array.from({ length: 9 }, () => claim("b"))) left.release();
    const waiting = new Map(
      ["a1", "a2", "a3", "a4", "b1", "b2", "c1"].map((name) => [name, claim(name.slice(0, 1))]),
    );
    expect(served(limiter, holder, waiting)).toEqual(["b1", "c1", "a1", "b2", "a2", "a3", "a4"]);
  });

  test("LIMITER-2 a tenant that claims again after each of its calls does not pass the others", () => {
    const limiter = new Limiter({ total: 1 }, clock);
    const claim = (tenant: string) => limiter.claim({ ...one, tenant });
    let eager = claim("eager");
    const waiting = claim("patient");
    eager.release();
    eager = claim("eager");
    expect([eager.take(), waiting.take()]).toEqual([false, true]);
    const next = claim("patient");
    waiting.release();
    expect([next.take(), eager.take()]).toEqual([false, true]);
  });

  test("LIMITER-4 a tenant's first call waits also in a queue that others fill", () => {
    const limiter = new Limiter({ total: 1, queued: 2 }, clock);
    const claim = (tenant: string) => limiter.claim({ ...one, tenant });
    const holder = claim("a");
    for (const _ of [1, 2]) claim("a");
    expect(() => claim("a")).toThrowError(/are waiting/);
    const first = claim("b");
    expect(() => claim("b")).toThrowError(/are waiting/);
    holder.release();
    expect(first.take()).toBe(true);
  });

  test("LIMITER-1 LIMITER-5 a tenant holds at most its share, or one larger claim, and then delays no other tenant", () => {
    const limiter = new Limiter({ total: 12, perTenant: 6 }, clock);
    const claim = (tenant: string, units: number) => limiter.claim({ ...one, tenant, units });
    const large = claim("a", 8);
    expect(limiter.held).toBe(8);
    const waiting = Array.from({ length: 400 }, () => claim("a", 1));
    expect(limiter.held).toBe(8);
    const other = claim("b", 4);
    expect(limiter.held).toBe(12);
    large.release();
    expect(waiting.filter((slot) => slot.take())).toHaveLength(6);
    other.release();
    expect(waiting.filter((slot) => slot.take()).length, "the share is the limit also without others").toBe(
      6,
    );
  });

  test("LIMITER-5 a tenant at its share never delays others, even in later turns, and its small calls do not pass its large call forever", () => {
    const limiter = new Limiter({ total: 12, perTenant: 6 }, clock);
    const claim = (tenant: string, units: number) => limiter.claim({ ...one, tenant, units });
    claim("a", 4);
    const large = claim("a", 5);
    for (let n = 0; n < 3; n++) claim("b", 1);
    expect(limiter.held).toBe(7);
    const passing = Array.from({ length: 20 }, () => {
      const slot = claim("a", 1);
      const passes = slot.take();
      slot.release();
      return passes;
    });
    expect(passing.indexOf(false)).toBe(12);
    expect(large.take()).toBe(false);
  });

  test("LIMITER-5 small calls pass a large call that waits for room, but not forever", () => {
    const limiter = new Limiter({ total: 12, perTenant: 6 }, clock);
    const claim = (tenant: string, units: number) => limiter.claim({ ...one, tenant, units });
    const first = claim("a", 2);
    const large = claim("b", 16);
    const passing = Array.from({ length: 20 }, (_, n) => {
      const slot = claim(`c${n}`, 1);
      const passes = slot.take();
      if (passes) slot.release();
      return passes;
    });
    expect(passing.filter(Boolean)).toHaveLength(12);
    expect(passing.indexOf(false)).toBe(12);
    first.release();
    expect(large.take()).toBe(true);
    expect(limiter.held).toBe(16);
  });

  test("LIMITER-1 LIMITER-5 weights and tenants: never above the limits, and every call is eventually granted", () => {
    const claims = fc.array(
      fc.record({ tenant: fc.constantFrom("a", "b", "c"), units: fc.integer({ min: 1, max: 15 }) }),
      { minLength: 1, maxLength: 40 },
    );
    fc.assert(
      fc.property(claims, fc.infiniteStream(fc.nat(100)), (given, numbers) => {
        const limiter = new Limiter({ total: 12, perTenant: 6 }, clock);
        const calls = given.map((claim) => ({ ...claim, slot: limiter.claim({ ...one, ...claim }) }));
        let waiting = calls;
        let holding: typeof calls = [];
        while (waiting.length + holding.length > 0) {
          const taken = waiting.filter(({ slot }) => slot.take());
          waiting = waiting.filter((call) => !taken.includes(call));
          holding.push(...taken);
          const sum = (list: typeof calls) => list.reduce((total, { units }) => total + units, 0);
          expect(limiter.held).toBe(sum(holding));
          if (holding.length > 1) expect(sum(holding)).toBeLessThanOrEqual(12);
          for (const own of Map.groupBy(holding, ({ tenant }) => tenant).values())
            if (own.length > 1) expect(sum(own)).toBeLessThanOrEqual(6);
          expect(holding.length, "if no slot is held, a caller gets a slot").toBeGreaterThan(0);
          const [ends] = holding.splice((numbers.next().value ?? 0) % holding.length, 1);
          ends?.slot.release();
          holding = [...holding];
        }
        expect(limiter.isIdle).toBe(true);
      }),
      RUNS,
    );
  });

  test("LIMITER-2 an abort leaves the line", async () => {
    const clock = new VirtualClock();
    const guards = new HostGuards(clock, { concurrency: { concurrent: 1, queued: 1 } });
    const profile = { provider: "openai", modelId: "m" } as const;
    const { signal } = new AbortController();
    const controller = new AbortController();
    const pass = await guards.enter(profile, { leaseMs: 60_000, signal });
    const reason = new Error("gone");
    const leaving = guards.enter(profile, { leaseMs: 60_000, signal: controller.signal });
    controller.abort(reason);
    await expect(leaving).rejects.toBe(reason);
    const next = guards.enter(profile, { leaseMs: 60_000, signal });
    pass.leave("alive");
    pass.leave("alive");
    await clock.runNext();
    (await next).leave("alive");
    expect(clock.pending).toBe(0);
  });
});
