/** Triggers in Node: their times, outages, failures, and a crash at every boundary. */
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { disabled, failed, scheduled, started, takeDue } from "../../src/agents/trigger/core/firing.ts";
import type { Firing, TriggerRecord } from "../../src/agents/trigger/core/record.ts";
import { GIVE_UP_MS, MAX_PAUSE_MS } from "../../src/agents/trigger/core/trigger-limits.ts";
import { TriggerRuntime } from "../../src/agents/trigger/runtime.ts";
import { TriggerStore } from "../../src/agents/trigger/store/trigger-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { TriggerStarted, TriggerWhen } from "../../src/protocol/trigger-api.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { MortalClock } from "../simulation/clocks.ts";
import { Crossings, crossKeyValue, crossSql, Fault } from "../support/crossings.ts";

const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);
const at = (minutes: number) => new Date(START + minutes * MINUTE).toISOString();

function recordOf(when: TriggerWhen): TriggerRecord {
  const starts = { workflow: "lib/flow" };
  const who = { id: "trig_1", tenant: "acme", createdBy: "ada", actsAs: "ada" };
  return { ...who, when, starts, enabled: true, createdAt: START, updatedAt: START };
}

/** Answers an attempt to start; `never` leaves it open. */
type Answer = (firing: Firing) => TriggerStarted | "never";

/** A trigger with an actor that can be killed. The wake-up is stored with its data, as in the platform's job queue. */
class World {
  readonly clock = new VirtualClock(START);
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  /** The keys of attempts, in order. */
  readonly attempts: string[] = [];
  wakeUps = 0;
  /** The keys of attempts for a time that was not stored as due. */
  readonly undue: string[] = [];
  /** The starts so far: the platform starts once for each key. */
  readonly started = new Map<string, Firing>();
  runtime: TriggerRuntime;
  #life: MortalClock;

  constructor(
    when: TriggerWhen,
    readonly answer: Answer = ({ key }) => ({ runId: key }),
    readonly crossings = new Crossings(),
  ) {
    this.#life = new MortalClock(this.clock);
    this.runtime = this.#begin();
    void this.runtime.create(scheduled(recordOf(when), this.clock.now()));
  }

  get record(): TriggerRecord {
    return new TriggerStore(this).get();
  }

  /** Ends the life of the actor. A wake-up begins the next life. */
  kill(): void {
    this.#life.die();
    this.#life = new MortalClock(this.clock);
    this.runtime = this.#begin();
  }

  /** Lets time pass. Wake-ups run, unless the platform is `down`. */
  async pass(minutes: number, isDown = false): Promise<void> {
    const end = this.clock.now() + minutes * MINUTE;
    for (let steps = 0; steps < 10_000; steps++) {
      await breathe();
      if (this.crossings.crashed) this.#rebirth();
      const job = isDown ? undefined : this.keyValue.get<number>("job");
      const next = Math.min(job ?? Number.POSITIVE_INFINITY, this.clock.nextDue ?? Number.POSITIVE_INFINITY);
      if (next > end) break;
      await this.clock.advance(Math.max(0, next - this.clock.now()));
      if (job === undefined || job > this.clock.now()) continue;
      this.keyValue.delete("job");
      this.wakeUps += 1;
      this.#guarded(() => {
        this.runtime.reconcile();
        const due = this.runtime.dueIn;
        if (due !== null) this.#arm(due);
      });
    }
    await this.clock.advance(end - this.clock.now());
    await breathe();
  }

  #begin(): TriggerRuntime {
    return new TriggerRuntime(this.#ports());
  }

  #ports() {
    const life = this.crossings.beginLife();
    return {
      database: crossSql(this.database, life),
      keyValue: crossKeyValue(this.keyValue, life),
      clock: this.#life,
      armWakeup: async (milliseconds: number) => life.cross("alarm", () => this.#arm(milliseconds)),
      note: async () => undefined,
      start: async (firing: Firing): Promise<TriggerStarted> => {
        try {
          return await life.cross("start", () => this.#start(firing));
        } catch (error) {
          if (this.crossings.isCrash(error)) return new Promise(() => undefined);
          throw error;
        }
      },
    };
  }

  async #start(firing: Firing): Promise<TriggerStarted> {
    this.attempts.push(firing.key);
    if (this.record.due?.scheduledAt !== Date.parse(firing.key)) this.undue.push(firing.key);
    const answer = this.answer(firing);
    if (answer === "never") return new Promise(() => undefined);
    const before = this.started.get(firing.key);
    if (before !== undefined) expect(firing, "FIRE-2").toEqual(before);
    this.started.set(firing.key, firing);
    return answer;
  }

  #arm(milliseconds: number): void {
    const time = this.clock.now() + milliseconds;
    const job = this.keyValue.get<number>("job");
    if (job === undefined || job > time) this.keyValue.put("job", time);
  }

  #rebirth(): void {
    this.kill();
    this.#guarded(() => this.runtime.wake());
  }

  #guarded(body: () => void): void {
    try {
      body();
    } catch (error) {
      if (!(error instanceof Fault || this.crossings.isCrash(error))) throw error;
      // The platform runs a job again that failed.
      this.#arm(5_000);
    }
  }
}

/** Runs all promise reactions that are ready. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const EVERY_FIVE: TriggerWhen = { cron: "*/5 * * * *" };

describe("G13 a trigger", () => {
  test("FIRE-1 fires at each time of its cron expression, and records the started run", async () => {
    const world = new World(EVERY_FIVE);
    await world.pass(16);
    expect(world.attempts).toEqual([at(5), at(10), at(15)]);
    const { lastStarted, nextAt, due } = world.record;
    expect({ lastStarted, nextAt, due }).toEqual({
      lastStarted: { runId: at(15) },
      nextAt: START + 20 * MINUTE,
      due: undefined,
    });
  });

  test("fires once at a time", async () => {
    const world = new World({ at: at(7) });
    await world.pass(100);
    expect(world.attempts).toEqual([at(7)]);
    expect(world.record.nextAt).toBeUndefined();
  });

  test("FIRE-3 12 hours down: a cron of five minutes fires once", async () => {
    const world = new World(EVERY_FIVE);
    world.kill();
    await world.pass(12 * 60 + 2, true);
    await world.pass(4);
    expect(world.attempts).toEqual([at(5), at(725)]);
  });

  test("FIRE-3 a start that takes long leaves one firing for the times that it missed", async () => {
    let isOpen = false;
    const world = new World({ cron: "* * * * *" }, ({ key }) => {
      if (isOpen) return { runId: key };
      throw new DramatisError("UNAVAILABLE", "Not now.");
    });
    await world.pass(10.5);
    expect([...new Set(world.attempts)]).toEqual([at(1)]);
    isOpen = true;
    await world.pass(8);
    expect([...world.started.keys()].slice(0, 3)).toEqual([at(1), at(2), expect.any(String)]);
    expect(world.started.size).toBeLessThan(10);
    expect(world.record.lastError).toBeUndefined();
  });

  test("FIRE-4 a passing failure is repeated with growing pauses, and given up after a day", async () => {
    const world = new World({ at: at(1) }, () => {
      throw new DramatisError("RATE_LIMITED", "Too much.", { retriable: true });
    });
    await world.pass(2);
    expect(world.attempts.length).toBeGreaterThan(4);
    expect(world.record).toMatchObject({
      due: { attempts: expect.any(Number) },
      lastError: { code: "RATE_LIMITED" },
    });
    await world.pass(60);
    const before = world.attempts.length;
    await world.pass(60);
    expect(world.attempts.length - before).toBe(12);
    await world.pass(24 * 60);
    expect(world.record.due).toBeUndefined();
    const after = world.attempts.length;
    await world.pass(24 * 60);
    expect(world.attempts).toHaveLength(after);
  });

  test("FIRE-4 a final failure is recorded, and the next time follows", async () => {
    const world = new World(EVERY_FIVE, ({ key }) => {
      if (key === at(10)) return { runId: key };
      throw new DramatisError("NOT_FOUND", "There is no such workflow.");
    });
    await world.pass(6);
    expect(world.attempts).toEqual([at(5)]);
    expect(world.record.lastError).toEqual({
      code: "NOT_FOUND",
      message: "There is no such workflow.",
      at: START + 5 * MINUTE,
    });
    await world.pass(5);
    expect(world.record.lastStarted).toEqual({ runId: at(10) });
    expect(world.record.lastError).toBeUndefined();
  });

  test("FIRE-4 an attempt without an answer ends after 30 seconds, and is repeated", async () => {
    let isLost = true;
    const world = new World({ at: at(1) }, ({ key }) => (isLost ? "never" : { runId: key }));
    await world.pass(1.1);
    isLost = false;
    await world.pass(1);
    expect(world.attempts).toEqual([at(1), at(1)]);
    expect(world.record.lastStarted).toEqual({ runId: at(1) });
  });

  test.each([0, 90, 30 * 60, 9 * 24 * 60])(
    "FIRE-4 a start is tried for a day from its first attempt, %i minutes after its time",
    async (outage) => {
      const tries: number[] = [];
      const world = new World({ at: at(1) }, () => {
        tries.push(world.clock.now());
        throw new DramatisError("UNAVAILABLE", "Not now.");
      });
      world.kill();
      await world.pass(1 + outage, true);
      await world.pass(26 * 60);
      expect(world.record.due).toBeUndefined();
      const spent = (tries.at(-1) ?? 0) - (tries[0] ?? 0);
      expect(tries[0]).toBe(START + (1 + outage) * MINUTE);
      expect(spent).toBeLessThanOrEqual(GIVE_UP_MS);
      expect(spent).toBeGreaterThan(GIVE_UP_MS - 2 * MAX_PAUSE_MS);
    },
  );

  test("FIRE-1 answers to earlier times, in any order and number, do not affect the present time", () => {
    const NO = { code: "UNAVAILABLE", message: "No.", retriable: true };
    const outcomes = {
      started: (record: TriggerRecord, key: string, now: number) => started(record, key, { runId: key }, now),
      passing: (record: TriggerRecord, key: string, now: number) => failed(record, key, NO, now),
      final: (record: TriggerRecord, key: string, now: number) =>
        failed(record, key, { ...NO, code: "NOT_FOUND", retriable: false }, now),
    };
    const answer = fc.record({
      outcome: fc.constantFrom("started", "passing", "final"),
      age: fc.nat(20),
      after: fc.nat(10 * MINUTE),
    });
    let late = 0;
    fc.assert(
      fc.property(fc.array(answer, { minLength: 1, maxLength: 40 }), (answers) => {
        let [record, now] = [scheduled(recordOf(EVERY_FIVE), START), START];
        // The first key belongs to a delivery.
        const keys = ["delivery"];
        for (const { outcome, age, after } of answers) {
          now += after;
          const taken = takeDue(record, now);
          record = taken?.record ?? record;
          if (taken !== null && !keys.includes(taken.firing.key)) keys.push(taken.firing.key);
          const { due } = record;
          const key = keys.at(-1 - (age % keys.length)) ?? "";
          record = outcomes[outcome](record, key, now);
          if (due === undefined) continue;
          if (key === new Date(due.scheduledAt).toISOString()) {
            if (outcome !== "passing") expect(record.due).toBeUndefined();
            continue;
          }
          late += 1;
          expect(record.due).toEqual(due);
        }
      }),
    );
    expect(late).toBeGreaterThan(50);
  });

  test("FIRE-5 does not fire while it is disabled, not even for due times", async () => {
    const world = new World(EVERY_FIVE, () => {
      throw new DramatisError("UNAVAILABLE", "Not now.");
    });
    await world.pass(5.01);
    await world.runtime.update(disabled);
    const { length } = world.attempts;
    await world.pass(30);
    expect(world.attempts).toHaveLength(length);
    await world.runtime.update((record, now) => scheduled({ ...record, enabled: true }, now));
    expect(world.record.nextAt).toBe(START + 40 * MINUTE);
  });

  test("FIRE-9 a time during an attempt waits for its end, without a busy actor", async () => {
    const world = new World({ cron: "* * * * *" }, () => "never");
    await world.pass(1.6);
    // The second attempt runs until 2:01.
    await world.runtime.update(disabled);
    await world.runtime.update((record, now) => scheduled({ ...record, enabled: true }, now));
    const before = world.wakeUps;
    await world.pass(0.5);
    expect(world.wakeUps - before).toBeLessThan(5);
    expect(world.attempts).toEqual([at(1), at(1), at(2)]);
  });

  test("FIRE-2 a due start keeps its request while the trigger changes", async () => {
    let isOpen = false;
    const world = new World({ at: at(1) }, ({ key }) => {
      if (isOpen) return { runId: key };
      throw new DramatisError("UNAVAILABLE", "Not now.");
    });
    await world.pass(1.01);
    await world.runtime.update((record) => ({ ...record, starts: { workflow: "lib/other" }, actsAs: "bob" }));
    isOpen = true;
    await world.pass(5);
    expect([...world.started.values()]).toMatchObject([{ starts: { workflow: "lib/flow" }, actsAs: "ada" }]);
  });
});

test("G13 FIRE-1 FIRE-2 FIRE-8 a crash at any boundary: each time starts exactly one run", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const run = async (crossings: Crossings) => {
    const world = new World(EVERY_FIVE, undefined, crossings);
    await world.pass(1);
    crossings.arm();
    await world.pass(20);
    crossings.disarm();
    await world.pass(2);
    return world;
  };
  const golden = new Crossings();
  const expected = [at(5), at(10), at(15), at(20)];
  expect([...(await run(golden)).started.keys()]).toEqual(expected);
  expect(golden.count).toBeGreaterThan(60);
  for (let point = 0; point < golden.count; point++) {
    const world = await run(new Crossings([point]));
    const place = `crash at point ${point}, ${golden.names[Math.floor(point / 2)]}`;
    expect([...world.started.keys()], place).toEqual(expected);
    expect(world.record, place).toMatchObject({
      nextAt: START + 25 * MINUTE,
      lastStarted: { runId: at(20) },
    });
  }
});

test("G13 FIRE-8 an error at any boundary: only a stored due time is attempted, and each time has an attempt", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const run = async (faults: number[]) => {
    const crossings = new Crossings([], faults);
    const world = new World(EVERY_FIVE, undefined, crossings);
    await world.pass(1);
    crossings.arm();
    await world.pass(12);
    crossings.disarm();
    await world.pass(1);
    return { world, crossings };
  };
  const { crossings } = await run([]);
  expect(crossings.count).toBeGreaterThan(30);
  for (let point = 0; point < crossings.count; point++) {
    const { world } = await run([point]);
    expect(world.undue, `error at point ${point}`).toEqual([]);
    expect(new Set(world.attempts), `error at point ${point}`).toEqual(new Set([at(5), at(10)]));
  }
});
