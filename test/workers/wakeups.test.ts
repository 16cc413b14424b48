/** Wake-ups on the SDK's real job queue, over storage whose alarm fails, hangs or is late. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Sleeper } from "./worker.ts";

const MINUTE = 60_000;

/** Makes each change of a job fail. */
const FULL = "CREATE TRIGGER full BEFORE UPDATE ON cf_agents_jobs BEGIN SELECT RAISE(ABORT, 'full'); END";

/** Runs `body` inside a new actor. */
function asleep<Value>(body: (sleeper: Sleeper, storage: DurableObjectStorage) => Promise<Value>) {
  const stub = exports.Sleeper.getByName(crypto.randomUUID());
  return runInDurableObject(stub, (sleeper, { storage }) => body(sleeper, storage));
}

/** Returns the jobs in the queue, with their times from now. */
const jobs = (storage: DurableObjectStorage) =>
  storage.sql
    .exec<{ fn: string; time: number }>("SELECT fn, time FROM cf_agents_jobs ORDER BY fn")
    .toArray()
    .map(({ fn, time }) => [fn, time - Date.now()]);

/** Fires the platform's alarm, in time or late. */
const ring = (sleeper: Sleeper) => (sleeper as unknown as { alarm(): Promise<void> }).alarm();

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const wait = (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds);

describe("WAKE-3 a wake-up is armed", () => {
  test("only when the platform's alarm is set: the job of a failed attempt is not enough", () =>
    asleep(async ({ wakeups }, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("not now"));
      await expect(wakeups.arm("first", MINUTE)).rejects.toThrow("not now");
      expect(jobs(storage)).toEqual([["first", MINUTE]]);
      expect(await storage.getAlarm()).toBeNull();
      await wakeups.arm("first", MINUTE);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
      await wakeups.arm("first", MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
    }));

  test("for every caller at the same time", () =>
    asleep(async ({ wakeups }, storage) => {
      const refusals: ((error: Error) => void)[] = [];
      const setAlarm = vi
        .spyOn(storage, "setAlarm")
        .mockImplementationOnce(() => new Promise((_, reject) => void refusals.push(reject)));
      const both = [wakeups.arm("first", MINUTE), wakeups.arm("first", MINUTE)];
      const settled = Promise.allSettled(both);
      await vi.waitFor(() => expect(setAlarm).toHaveBeenCalledTimes(1));
      refusals[0]?.(new Error("after a while"));
      expect((await settled).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    }));

  test("by another wake-up's alarm, which is set from all jobs", () =>
    asleep(async ({ wakeups }, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("not now"));
      await expect(wakeups.arm("first", MINUTE)).rejects.toThrow("not now");
      await wakeups.arm("second", 2 * MINUTE);
      await wakeups.arm("first", MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    }));

  test("again, once, in a life that finds a job of the life before", async () => {
    const stub = exports.Sleeper.getByName(crypto.randomUUID());
    await runInDurableObject(stub, ({ wakeups }) => wakeups.arm("first", MINUTE));
    // As after a life that could not set its alarm.
    await runInDurableObject(stub, (_, { storage }) => storage.deleteAlarm());
    await evictDurableObject(stub);
    await runInDurableObject(stub, async ({ wakeups }, { storage }) => {
      const setAlarm = vi.spyOn(storage, "setAlarm");
      for (let time = 0; time < 3; time++) await wakeups.arm("first", MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(1);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    });
  });
});

describe("WAKE-3 an alarm that is set for the actor's start", () => {
  test("is not believed before it is set: a later request sets it", () =>
    asleep(async (sleeper, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("not now"));
      sleeper.starts = () => sleeper.wakeups.arm("first", MINUTE);
      await expect(sleeper.lifecycle.start()).rejects.toThrow("not now");
      expect(jobs(storage)).toEqual([["first", MINUTE]]);
      expect(await storage.getAlarm()).toBeNull();
      await sleeper.wakeups.arm("first", MINUTE);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
      await sleeper.wakeups.arm("first", MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
    }));

  test("holds up no start that waits for its wake-ups", () =>
    asleep(async (sleeper, storage) => {
      sleeper.starts = () => sleeper.wakeups.arm("first", MINUTE);
      await sleeper.lifecycle.start();
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    }));
});

test("WAKE-2 a handler that throws is called again, and stays in the queue however often it throws", () =>
  asleep(async (sleeper, storage) => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
    await sleeper.wakeups.arm("first", MINUTE);
    sleeper.isBroken = true;
    wait(MINUTE);
    for (let time = 1; time <= 5; time++) {
      await ring(sleeper);
      expect(sleeper.woken).toHaveLength(time);
      expect(jobs(storage)).toEqual([["first", 5_000]]);
      wait(5_000);
    }
    expect(logged).toHaveBeenCalledTimes(5);
    logged.mockRestore();
  }));

describe("WAKE-5 an early handler", () => {
  /** Resolves when a timer has called an early handler. */
  const called = (sleeper: Sleeper, name: string) =>
    new Promise<void>((resolve) => {
      sleeper.onWake = (woken) => woken === name && resolve();
    });

  test("is called before its job is due, and one write of the alarm moves the job", () =>
    asleep(async (sleeper, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm");
      sleeper.again = MINUTE;
      await sleeper.wakeups.arm("early", 300);
      expect(jobs(storage)).toEqual([["early", 300]]);
      await called(sleeper, "early");
      expect(jobs(storage)).toEqual([["early", MINUTE]]);
      await sleeper.wakeups.arm("early", MINUTE);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
      expect(sleeper.woken).toEqual(["early"]);
    }));

  test("costs one row and one alarm for each call; a call by the alarm costs two rows and three alarms", () =>
    asleep(async (sleeper, storage) => {
      const cursors: { rowsWritten: number }[] = [];
      const exec = storage.sql.exec.bind(storage.sql);
      vi.spyOn(storage.sql, "exec").mockImplementation((statement, ...values) => {
        const cursor = exec<never>(statement, ...values);
        cursors.push(cursor);
        return cursor;
      });
      const alarms = [vi.spyOn(storage, "setAlarm"), vi.spyOn(storage, "deleteAlarm")];
      const costOf = async (call: () => Promise<unknown>) => {
        cursors.length = 0;
        for (const alarm of alarms) alarm.mockClear();
        await call();
        const rows = cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
        return { rows, alarms: alarms.reduce((sum, { mock }) => sum + mock.calls.length, 0) };
      };
      sleeper.again = MINUTE;
      await sleeper.wakeups.arm("early", 300);
      const byTimer = async () => {
        await called(sleeper, "early");
        await sleeper.wakeups.arm("early", MINUTE);
      };
      expect(await costOf(byTimer)).toEqual({ rows: 1, alarms: 1 });
      wait(MINUTE);
      expect(await costOf(() => ring(sleeper))).toEqual({ rows: 2, alarms: 3 });
    }));

  test("that waits for long is called by the alarm, which keeps the actor in memory", () =>
    asleep(async (sleeper, storage) => {
      const timers = vi.spyOn(globalThis, "setTimeout");
      await sleeper.wakeups.arm("early", 5_251);
      expect(timers.mock.calls.filter(([, wait]) => wait === 5_001)).toEqual([]);
      sleeper.wakeups.disarm("early");
      await sleeper.wakeups.arm("early", 5_250);
      expect(timers.mock.calls.filter(([, wait]) => wait === 5_000)).toHaveLength(1);
      expect(jobs(storage)).toEqual([["early", 5_250]]);
      sleeper.wakeups.disarm("early");
      timers.mockRestore();
    }));

  test("that has nothing left to do ends the job", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.wakeups.arm("early", 300);
      await called(sleeper, "early");
      expect(jobs(storage)).toEqual([]);
      await vi.waitFor(async () => expect(await storage.getAlarm()).toBeNull());
    }));

  /** Holds the platform's alarm back, which on a slow machine comes before the timer. */
  const holdAlarm = (storage: DurableObjectStorage) => vi.spyOn(storage, "setAlarm").mockResolvedValue();

  test("that throws is called again", () =>
    asleep(async (sleeper, storage) => {
      holdAlarm(storage);
      const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
      sleeper.isBroken = true;
      await sleeper.wakeups.arm("early", 300);
      await called(sleeper, "early");
      expect(jobs(storage)).toEqual([["early", 5_000]]);
      expect(logged).toHaveBeenCalledTimes(1);
      logged.mockRestore();
    }));

  test("leaves the job where it is if it cannot be moved: the alarm fires", () =>
    asleep(async (sleeper, storage) => {
      const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
      holdAlarm(storage);
      sleeper.again = 1_000;
      await sleeper.wakeups.arm("early", 300);
      storage.sql.exec(FULL);
      await called(sleeper, "early");
      expect(jobs(storage)).toEqual([["early", 300]]);
      storage.sql.exec("DROP TRIGGER full");
      wait(300);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["early", "early"]);
      expect(jobs(storage)).toEqual([["early", 1_000]]);
      logged.mockRestore();
    }));

  test("is not called for a job that was cancelled, rolled back or moved", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.wakeups.arm("early", 260);
      sleeper.wakeups.disarm("early");
      expect(() =>
        storage.transactionSync(() => {
          void sleeper.wakeups.arm("early", 270);
          throw new Error("rolled back");
        }),
      ).toThrow("rolled back");
      await sleeper.wakeups.arm("later", 350);
      await called(sleeper, "later");
      expect(sleeper.woken).toEqual(["later"]);
    }));

  test("is called by the alarm in a life that finds a job of the life before", async () => {
    const stub = exports.Sleeper.getByName(crypto.randomUUID());
    await runInDurableObject(stub, ({ wakeups }) => wakeups.arm("early", 5_000));
    await evictDurableObject(stub);
    await runInDurableObject(stub, async (sleeper, { storage }) => {
      wait(5_000);
      holdAlarm(storage);
      sleeper.again = 300;
      await ring(sleeper);
      expect(jobs(storage)).toEqual([["early", 300]]);
      sleeper.again = MINUTE;
      await called(sleeper, "early");
      expect(sleeper.woken, "then by the timer").toEqual(["early", "early"]);
      expect(jobs(storage)).toEqual([["early", MINUTE]]);
    });
  });
});

describe("WAKE-4 while the alarm is late", () => {
  test("a later request does not delay a due job whose handler ran for an earlier time", () =>
    asleep(async (sleeper, storage) => {
      vi.spyOn(storage, "setAlarm").mockResolvedValue();
      await sleeper.wakeups.arm("first", MINUTE);
      sleeper.again = MINUTE;
      wait(MINUTE);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first"]);
      expect(jobs(storage)).toEqual([["first", MINUTE]]);

      wait(2 * MINUTE);
      await sleeper.wakeups.arm("first", 60 * MINUTE);
      expect(jobs(storage)).toEqual([["first", -MINUTE]]);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first", "first"]);
    }));

  test("a job that its handler asked for at once is another job, which a later request does not replace", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.wakeups.arm("first", 0);
      sleeper.again = 0;
      await ring(sleeper);
      const before = jobs(storage);
      await sleeper.wakeups.arm("first", MINUTE);
      expect(jobs(storage)).toEqual(before);
    }));

  test("a request during the handler's run wins over the time that the handler returns", () =>
    asleep(async (sleeper, storage) => {
      vi.spyOn(storage, "setAlarm").mockResolvedValue();
      await sleeper.wakeups.arm("first", 0);
      wait(1);
      const push = sleeper.woken.push.bind(sleeper.woken);
      sleeper.woken.push = (name) => {
        void sleeper.wakeups.arm("first", 0);
        return push(name);
      };
      await ring(sleeper);
      expect(jobs(storage)).toEqual([["first", 0]]);
    }));
});

describe("WAKE-6 a job comes no later than its handler asked for", () => {
  const HOUR = 60 * MINUTE;

  /** Rings a job whose handler asks for a minute; a request for an hour comes when `schedule` says. */
  async function ringWithRequest(sleeper: Sleeper, schedule: (request: () => void) => void): Promise<void> {
    await sleeper.wakeups.arm("first", 0);
    wait(1);
    sleeper.again = MINUTE;
    const push = sleeper.woken.push.bind(sleeper.woken);
    sleeper.woken.push = (name) => {
      schedule(() => void sleeper.wakeups.arm("first", HOUR));
      return push(name);
    };
    await ring(sleeper);
  }

  test("where a later request comes during the handler's run", () =>
    asleep(async (sleeper, storage) => {
      await ringWithRequest(sleeper, (request) => request());
      expect(jobs(storage)).toEqual([["first", MINUTE]]);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    }));

  test("where a later request comes before the queue has heard the handler's answer", () =>
    asleep(async (sleeper, storage) => {
      await ringWithRequest(sleeper, queueMicrotask);
      expect(jobs(storage)).toEqual([["first", MINUTE]]);
    }));

  test("and a job that was armed at the time of one whose handler ran is another job", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.wakeups.arm("first", 0);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first"]);
      await sleeper.wakeups.arm("first", 0);
      await sleeper.wakeups.arm("first", HOUR);
      expect(jobs(storage)).toEqual([["first", 0]]);
    }));

  test.each<[what: string, requested: number, again: number | null, time: number]>([
    ["later than the job, and sooner than the handler asks", 500, MINUTE, 500],
    ["later than the job, where the handler asks for nothing", 500, null, 500],
    ["sooner than the job, and than the handler asks", 100, MINUTE, 100],
    ["sooner than the job, where the handler asks for nothing", 100, null, 100],
    ["later than the handler asks", 200, 50, 50],
    ["at the time of the job", 300, MINUTE, 301],
  ])("where a timer calls the handler, and a request comes meanwhile: %s", (_, requested, again, time) =>
    asleep(async (sleeper, storage) => {
      sleeper.again = again;
      await sleeper.wakeups.arm("early", 300);
      await new Promise<void>((resolve) => {
        sleeper.onWake = () => {
          void sleeper.wakeups.arm("early", requested);
          resolve();
        };
      });
      expect(jobs(storage)).toEqual([["early", time]]);
      sleeper.wakeups.disarm("early");
    }),
  );

  test("where a timer has called the handler, the job could not be moved, and a later request comes", () =>
    asleep(async (sleeper, storage) => {
      const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
      sleeper.again = MINUTE;
      await sleeper.wakeups.arm("early", 300);
      storage.sql.exec(FULL);
      await new Promise<void>((resolve) => {
        sleeper.onWake = () => resolve();
      });
      storage.sql.exec("DROP TRIGGER full");
      await sleeper.wakeups.arm("early", HOUR);
      expect(jobs(storage)).toEqual([["early", MINUTE]]);
      expect(logged).toHaveBeenCalledTimes(1);
      logged.mockRestore();
    }));
});

test("WAKE-1 a request at the time of a job whose handler runs throws if it cannot be written", () =>
  asleep(async (sleeper, storage) => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
    await sleeper.wakeups.arm("first", 0);
    let thrown: unknown;
    sleeper.onWake = () => {
      storage.sql.exec(FULL);
      try {
        void sleeper.wakeups.arm("first", 0).catch(() => undefined);
      } catch (error) {
        thrown = error;
      }
      storage.sql.exec("DROP TRIGGER full");
    };
    await ring(sleeper);
    expect(thrown).toEqual(new Error('The wake-up "first" could not be written.'));
    logged.mockRestore();
  }));
