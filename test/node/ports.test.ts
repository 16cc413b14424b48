/** The ports on Node: the common contract, and the virtual clock and seeded ids. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemIds } from "../../src/ports/system.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";
import { portContract } from "../support/port-contract.ts";

describe("ports on node:sqlite", () => {
  portContract(async (body) => {
    const db = new NodeSqlDatabase();
    try {
      await body({ db, kv: new NodeKeyValue(db) });
    } finally {
      db.close();
    }
  });

  it("keeps a file's content", () => {
    const folder = mkdtempSync(join(tmpdir(), "ports-"));
    try {
      const first = new NodeSqlDatabase(join(folder, "actor.sqlite"));
      new NodeKeyValue(first).put("key", { n: 1 });
      first.close();
      const second = new NodeSqlDatabase(join(folder, "actor.sqlite"));
      expect(new NodeKeyValue(second).get("key")).toEqual({ n: 1 });
      second.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("countingDatabase", () => {
  it("COST-1 COST-2 counts each call of a statement or a key, and the keys written", () => {
    const inner = new NodeSqlDatabase();
    const counter = new CostCounter();
    const { db, kv } = countingDatabase(inner, new NodeKeyValue(inner), counter);
    const costOf = (work: () => unknown) => {
      counter.reset();
      work();
      return counter.cost;
    };
    expect(costOf(() => db.run("CREATE TABLE t (a)"))).toEqual({
      statements: 1,
      rowsWritten: 0,
      rowsRead: 0,
    });
    expect(costOf(() => [db.all("SELECT * FROM t"), [...db.each("SELECT * FROM t")]])).toMatchObject({
      statements: 2,
    });
    expect(costOf(() => db.transaction(() => kv.put("k", 1)))).toEqual({
      statements: 1,
      rowsWritten: 1,
      rowsRead: 0,
    });
    expect(costOf(() => [kv.get("k"), kv.list("", 1)])).toEqual({
      statements: 2,
      rowsWritten: 0,
      rowsRead: 0,
    });
    expect(costOf(() => kv.delete("k"))).toEqual({ statements: 1, rowsWritten: 1, rowsRead: 0 });
    inner.close();
  });
});

describe("VirtualClock", () => {
  it("CLOCK-1 moves only on request", async () => {
    const clock = new VirtualClock(1000);
    const slept = clock.sleep(5);
    expect(clock.now()).toBe(1000);
    expect(clock.pending).toBe(1);
    expect(clock.nextDue).toBe(1005);
    await clock.advance(5);
    await slept;
    expect(clock.now()).toBe(1005);
    expect(clock.pending).toBe(0);
    expect(await clock.runNext()).toBe(false);
    expect(clock.now()).toBe(1005);
  });

  it("CLOCK-2 wakes sleepers in order of their due time, each at its own time, and sleepers with equal time in order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(50), { maxLength: 20 }), async (delays) => {
        const clock = new VirtualClock(0);
        const woken: [index: number, at: number][] = [];
        for (const [index, delay] of delays.entries()) {
          void clock.sleep(delay).then(() => woken.push([index, clock.now()]));
        }
        await clock.advance(50);
        const expected = delays
          .map((due, index): [number, number] => [index, due])
          .sort((a, b) => a[1] - b[1] || a[0] - b[0]);
        expect(woken).toEqual(expected);
      }),
    );
  });

  it("CLOCK-2 wakes sleepers that were added during the advance", async () => {
    const clock = new VirtualClock(0);
    const times: number[] = [];
    const ticking = (async () => {
      while (times.length < 5) {
        await clock.sleep(10);
        times.push(clock.now());
      }
    })();
    await clock.advance(45);
    expect(times).toEqual([10, 20, 30, 40]);
    expect(clock.now()).toBe(45);
    expect(await clock.runNext()).toBe(true);
    await ticking;
    expect(clock.now()).toBe(50);
  });

  it("rejects and forgets a sleeper with an aborted signal, before or during its sleep", async () => {
    const clock = new VirtualClock(0);
    await expect(clock.sleep(1, AbortSignal.abort("before"))).rejects.toBe("before");
    const abort = new AbortController();
    const sleeping = clock.sleep(10, abort.signal);
    abort.abort("during");
    await expect(sleeping).rejects.toBe("during");
    expect(clock.pending).toBe(0);
  });
});

describe("seededIds", () => {
  it("is reproducible by seed, differs between seeds, and ascends", () => {
    const take = (seed: number) => {
      const clock = new VirtualClock();
      const ids = seededIds(seed, clock);
      return Array.from({ length: 50 }, () => ids.ulid());
    };
    expect(take(7)).toEqual(take(7));
    expect(take(7)).not.toEqual(take(8));
    const ids = take(7);
    expect(ids).toEqual([...new Set(ids)].sort());
    for (const id of ids) expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
  });

  it("is reproducible at time 0 too", () => {
    const clock = new VirtualClock(0);
    expect(seededIds(1, clock).ulid()).toBe(seededIds(1, clock).ulid());
  });
});

describe("systemIds", () => {
  const atTimes = (times: readonly number[]) => {
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      return times.map((time) => {
        vi.setSystemTime(time);
        return systemIds.ulid();
      });
    } finally {
      vi.useRealTimers();
    }
  };
  const start = Date.UTC(2100, 0);

  it("IDS-1 ascend within a millisecond, and when the clock goes back", () => {
    const ids = atTimes(Array.from({ length: 400 }, (_, n) => start + (n % 4 === 3 ? -60_000 : n >> 2)));
    expect(ids).toEqual([...new Set(ids)].sort());
    for (const id of ids) expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  });

  it("IDS-2 random digits never repeat, and every digit occurs at each place", () => {
    const later = start + 1_000_000;
    const digits = atTimes(Array.from({ length: 2_000 }, (_, n) => later + n)).map((id) => id.slice(10));
    for (const [from, to] of [
      [0, 8],
      [8, 16],
    ]) {
      expect(new Set(digits.map((text) => text.slice(from, to))).size).toBe(digits.length);
    }
    for (let place = 0; place < 16; place++) {
      expect(new Set(digits.map((text) => text[place])).size).toBe(32);
    }
  });
});
