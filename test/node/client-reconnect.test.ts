/** When a client that lost its connection tries again, by a virtual clock. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ReconnectPolicy, waitAfterLoss } from "../../src/client/reconnect.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const fraction = fc.nat({ max: 999 }).map((n) => n / 1_000);

/** A client that records its attempts. The test opens and closes its connections. */
class Client {
  readonly clock = new VirtualClock();
  readonly attempts: number[] = [];
  readonly policy: ReconnectPolicy;

  constructor(random: () => number) {
    this.policy = new ReconnectPolicy(undefined, { clock: this.clock, random });
  }

  /** Makes an attempt, once it may be made. Returns how long that took. */
  async attempt(): Promise<number> {
    const from = this.clock.now();
    let isMade = false;
    const made = this.policy.nextAttempt().then(() => {
      isMade = true;
    });
    await this.clock.advance(0);
    while (!isMade) await this.clock.runNext();
    await made;
    this.attempts.push(this.clock.now());
    return this.clock.now() - from;
  }

  /** Has an open connection for so long, then loses it. */
  async connected(milliseconds: number): Promise<void> {
    this.policy.opened();
    await this.clock.advance(milliseconds);
    this.policy.shouldReconnect({ code: 1006 });
  }

  /** Tries again until the time since the loss is over, in vain. Returns the waits. */
  async outage(milliseconds: number): Promise<number[]> {
    const waits: number[] = [];
    for (const end = this.clock.now() + milliseconds; this.clock.now() < end; )
      waits.push(await this.attempt());
    return waits;
  }
}

describe("ADMIT-4 the wait after a loss", () => {
  test("is 0 to 50 ms at once, up to 250 ms for five seconds, and then up to a quarter of the loss and 10 s", () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000_000 }), fraction, fraction, (lostFor, low, high) => {
        const wait = waitAfterLoss(lostFor, low);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(lostFor < 5_000 ? 250 : Math.min(lostFor / 4, 10_000));
        if (lostFor > 0) expect(wait, "no two attempts at once").toBeGreaterThanOrEqual(25);
        if (lostFor <= 200) expect(wait).toBeLessThanOrEqual(50);
        expect(waitAfterLoss(lostFor + 1_000, low), "grows").toBeGreaterThanOrEqual(wait);
        if (low < high) expect(waitAfterLoss(lostFor, high), "is random").toBeGreaterThan(wait);
      }),
    );
    expect([0, 0.5, 0.99].map((random) => waitAfterLoss(0, random))).toEqual([0, 25, 49.5]);
  });

  test("a server that is away for an hour gets at most 60 requests in the first five seconds, and at most 800 in all", async () => {
    for (const random of [0.001, 0.5, 0.999]) {
      const client = new Client(() => random);
      await client.attempt();
      await client.connected(60_000);
      const lostAt = client.clock.now();
      const waits = await client.outage(3_600_000);
      const early = client.attempts.filter((at) => at > lostAt && at < lostAt + 5_000);
      expect(early.length).toBeLessThanOrEqual(60);
      expect(waits.length).toBeLessThanOrEqual(800);
      expect(waits[0]).toBeLessThanOrEqual(50);
      expect(Math.max(...waits)).toBeLessThanOrEqual(10_000);
    }
  });

  test("a server that is back within a second is reached at most a quarter of its absence later", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 200, max: 1_000 }),
        fc.infiniteStream(fraction),
        async (away, stream) => {
          const client = new Client(() => stream.next().value);
          await client.attempt();
          await client.connected(60_000);
          const lostAt = client.clock.now();
          await client.outage(away);
          expect(client.clock.now() - lostAt).toBeLessThanOrEqual(away * 1.25 + 1);
        },
      ),
      { numRuns: 30 },
    );
  });

  test("restarts after a connection of a second, but not after a shorter connection", async () => {
    const client = new Client(() => 0.5);
    expect(await client.attempt(), "the first connection").toBe(0);
    await client.connected(60_000);
    await client.outage(20_000);
    await client.connected(999);
    expect(await client.attempt()).toBeGreaterThan(1_000);
    await client.connected(1_000);
    expect(await client.attempt()).toBe(25);
  });

  test("a server that takes each connection and closes it at once is not asked in a loop", async () => {
    const client = new Client(() => 0.5);
    await client.attempt();
    const from = client.clock.now();
    while (client.clock.now() < from + 60_000) {
      await client.connected(0);
      await client.attempt();
    }
    expect(client.attempts.length).toBeLessThanOrEqual(100);
  });

  test("ADMIT-3 ends when a connection is requested, also for an attempt that waits", async () => {
    const client = new Client(() => 0.5);
    await client.attempt();
    await client.connected(60_000);
    await client.outage(60_000);
    const attempt = client.attempt();
    client.policy.atOnce();
    expect(await attempt).toBe(0);
    await client.clock.advance(3_600_000);
    client.policy.shouldReconnect({ code: 4404 });
    client.policy.atOnce();
    expect(await client.attempt(), "after a final close").toBe(0);
    client.policy.shouldReconnect({ code: 4429 });
    client.policy.atOnce();
    expect(await client.attempt()).toBe(5_000);
  });
});

describe("ADMIT-5 a client that is closed", () => {
  test("does not wait after a loss or after a close with 4429", async () => {
    for (const code of [1006, 4429]) {
      const client = new Client(() => 0.5);
      await client.attempt();
      await client.connected(60_000);
      client.policy.shouldReconnect({ code });
      const attempt = client.policy.nextAttempt();
      if (code === 4429) await client.clock.advance(100);
      expect(client.clock.pending).toBe(1);
      client.policy.close();
      await attempt;
      expect(client.clock.pending).toBe(0);
    }
  });

  test("waits again after a close with 4429 when a connection is requested", async () => {
    const client = new Client(() => 0.5);
    await client.attempt();
    client.policy.shouldReconnect({ code: 4429 });
    const attempt = client.attempt();
    client.policy.close();
    client.policy.atOnce();
    expect(await attempt).toBe(5_000);
    client.policy.close();
    client.policy.atOnce();
    client.policy.shouldReconnect({ code: 4429 });
    expect(await client.attempt()).toBe(5_000);
  });
});
