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

/** Returns the times of the jobs in the queue, from now. */
const jobs = (storage: DurableObjectStorage) =>
  storage.sql
    .exec<{ time: number }>("SELECT time FROM cf_agents_jobs")
    .toArray()
    .map(({ time }) => time - Date.now());

/** Fires the platform's alarm, in time or late. */
const ring = (sleeper: Sleeper) => (sleeper as unknown as { alarm(): Promise<void> }).alarm();

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const wait = (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds);

describe("WAKE-3 a wake-up is armed", () => {
  test("only when the platform's alarm is set: the job of a failed attempt is not enough", () =>
    asleep(async ({ first }, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("not now"));
      await expect(first.arm(MINUTE)).rejects.toThrow("not now");
      expect(jobs(storage)).toEqual([MINUTE]);
      expect(await storage.getAlarm()).toBeNull();
      await first.arm(MINUTE);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
      await first.arm(MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
    }));

  test("for every caller at the same time", () =>
    asleep(async ({ first }, storage) => {
      const refusals: ((error: Error) => void)[] = [];
      const setAlarm = vi
        .spyOn(storage, "setAlarm")
        .mockImplementationOnce(() => new Promise((_, reject) => void refusals.push(reject)));
      const both = [first.arm(MINUTE), first.arm(MINUTE)];
      const settled = Promise.allSettled(both);
      await expect.poll(() => setAlarm).toHaveBeenCalledTimes(1);
      refusals[0]?.(new Error("after a while"));
      expect((await settled).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    }));

  test("by another part's request", () =>
    asleep(async ({ first, second }, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("not now"));
      await expect(first.arm(MINUTE)).rejects.toThrow("not now");
      await second.arm(2 * MINUTE);
      await first.arm(MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    }));

  test("again, once, in a life that finds a job of the life before", async () => {
    const stub = exports.Sleeper.getByName(crypto.randomUUID());
    await runInDurableObject(stub, ({ first }) => first.arm(MINUTE));
    // As after a life that could not set its alarm.
    await runInDurableObject(stub, (_, { storage }) => storage.deleteAlarm());
    await evictDurableObject(stub);
    await runInDurableObject(stub, async ({ first }, { storage }) => {
      const setAlarm = vi.spyOn(storage, "setAlarm");
      for (let time = 0; time < 3; time++) await first.arm(MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(1);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    });
  });
});

describe("WAKE-3 an alarm that is set for the actor's start", () => {
  test("is not believed before it is set: a later request sets it", () =>
    asleep(async (sleeper, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("not now"));
      sleeper.starts = () => sleeper.first.arm(MINUTE);
      await expect(sleeper.lifecycle.start()).rejects.toThrow("not now");
      expect(jobs(storage)).toEqual([MINUTE]);
      expect(await storage.getAlarm()).toBeNull();
      await sleeper.first.arm(MINUTE);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
      await sleeper.first.arm(MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
    }));

  test("holds up no start that waits for its wake-ups", () =>
    asleep(async (sleeper, storage) => {
      sleeper.starts = () => sleeper.first.arm(MINUTE);
      await sleeper.lifecycle.start();
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    }));
});

test("WAKE-2 a handler that throws is called again, and stays in the queue however often it throws", () =>
  asleep(async (sleeper, storage) => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
    await sleeper.first.arm(MINUTE);
    sleeper.isBroken = true;
    wait(MINUTE);
    for (let time = 1; time <= 5; time++) {
      await ring(sleeper);
      expect(sleeper.woken).toHaveLength(time);
      expect(jobs(storage)).toEqual([5_000]);
      wait(5_000);
    }
    expect(logged).toHaveBeenCalledTimes(5);
    logged.mockRestore();
  }));

describe("WAKE-5 a handler that is due soon", () => {
  /** Resolves when a timer has called an early handler. */
  const called = (sleeper: Sleeper, name: string) =>
    new Promise<void>((resolve) => {
      sleeper.onWake = (woken) => woken === name && resolve();
    });

  test("is called before its job is due, and one write of the alarm moves the job", () =>
    asleep(async (sleeper, storage) => {
      const setAlarm = vi.spyOn(storage, "setAlarm");
      sleeper.again = MINUTE;
      await sleeper.first.arm(300);
      expect(jobs(storage)).toEqual([300]);
      await called(sleeper, "first");
      expect(jobs(storage)).toEqual([MINUTE]);
      await sleeper.first.arm(MINUTE);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
      expect(setAlarm).toHaveBeenCalledTimes(2);
      expect(sleeper.woken).toEqual(["first"]);
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
      await sleeper.first.arm(300);
      const byTimer = async () => {
        await called(sleeper, "first");
        await sleeper.first.arm(MINUTE);
      };
      expect(await costOf(byTimer)).toEqual({ rows: 1, alarms: 1 });
      wait(MINUTE);
      expect(await costOf(() => ring(sleeper))).toEqual({ rows: 2, alarms: 3 });
    }));

  test("that waits for long is called by the alarm, which keeps the actor in memory", () =>
    asleep(async (sleeper, storage) => {
      const timers = vi.spyOn(globalThis, "setTimeout");
      await sleeper.first.arm(5_251);
      expect(timers.mock.calls.filter(([, wait]) => wait === 5_001)).toEqual([]);
      sleeper.first.disarm();
      await sleeper.first.arm(5_250);
      expect(timers.mock.calls.filter(([, wait]) => wait === 5_000)).toHaveLength(1);
      expect(jobs(storage)).toEqual([5_250]);
      sleeper.first.disarm();
      timers.mockRestore();
    }));

  test("without further work ends the job", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.first.arm(300);
      await called(sleeper, "first");
      expect(jobs(storage)).toEqual([]);
      await expect.poll(() => storage.getAlarm()).toBeNull();
    }));

  /** Holds the platform's alarm back, because on a slow machine it rings before the timer. */
  const holdAlarm = (storage: DurableObjectStorage) => vi.spyOn(storage, "setAlarm").mockResolvedValue();

  test("that throws is called again", () =>
    asleep(async (sleeper, storage) => {
      holdAlarm(storage);
      const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
      sleeper.isBroken = true;
      await sleeper.first.arm(300);
      await called(sleeper, "first");
      expect(jobs(storage)).toEqual([5_000]);
      expect(logged).toHaveBeenCalledTimes(1);
      logged.mockRestore();
    }));

  test("does not move the job if it cannot be moved: the alarm moves it", () =>
    asleep(async (sleeper, storage) => {
      const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
      holdAlarm(storage);
      sleeper.again = 1_000;
      await sleeper.first.arm(300);
      storage.sql.exec(FULL);
      await called(sleeper, "first");
      expect(jobs(storage)).toEqual([300]);
      storage.sql.exec("DROP TRIGGER full");
      wait(300);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first"]);
      expect(jobs(storage)).toEqual([700]);
      logged.mockRestore();
    }));

  test("is not called for a job that was cancelled, rolled back or moved", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.first.arm(260);
      sleeper.first.disarm();
      expect(() =>
        storage.transactionSync(() => {
          void sleeper.first.arm(270);
          throw new Error("rolled back");
        }),
      ).toThrow("rolled back");
      await sleeper.second.arm(350);
      await called(sleeper, "second");
      // The request that was rolled back is due, too, but has no job of its own.
      expect(sleeper.woken).toEqual(["first", "second"]);
    }));

  test("is called by the alarm in a life that finds a job of the life before", async () => {
    const stub = exports.Sleeper.getByName(crypto.randomUUID());
    await runInDurableObject(stub, ({ first }) => first.arm(5_000));
    await evictDurableObject(stub);
    await runInDurableObject(stub, async (sleeper, { storage }) => {
      wait(5_000);
      holdAlarm(storage);
      sleeper.again = 300;
      await ring(sleeper);
      expect(jobs(storage)).toEqual([300]);
      sleeper.again = MINUTE;
      await called(sleeper, "first");
      expect(sleeper.woken, "then by the timer").toEqual(["first", "second", "first", "second"]);
      expect(jobs(storage)).toEqual([MINUTE]);
    });
  });
});

describe("WAKE-4 while the alarm is late", () => {
  test("a later request does not delay a due job with a handler that ran for an earlier time", () =>
    asleep(async (sleeper, storage) => {
      vi.spyOn(storage, "setAlarm").mockResolvedValue();
      await sleeper.first.arm(MINUTE);
      sleeper.again = MINUTE;
      wait(MINUTE);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first"]);
      expect(jobs(storage)).toEqual([MINUTE]);

      wait(2 * MINUTE);
      await sleeper.first.arm(60 * MINUTE);
      expect(jobs(storage)).toEqual([-MINUTE]);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first", "first"]);
    }));

  test("a job that its handler asked for at once is another job, which a later request does not replace", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.first.arm(0);
      sleeper.again = 0;
      await ring(sleeper);
      const before = jobs(storage);
      await sleeper.first.arm(MINUTE);
      expect(jobs(storage)).toEqual(before);
    }));

  test("a request during the handler's run wins over the time that the handler returns", () =>
    asleep(async (sleeper, storage) => {
      vi.spyOn(storage, "setAlarm").mockResolvedValue();
      await sleeper.first.arm(0);
      wait(1);
      const push = sleeper.woken.push.bind(sleeper.woken);
      sleeper.woken.push = (name) => {
        void sleeper.first.arm(0);
        return push(name);
      };
      await ring(sleeper);
      expect(jobs(storage)).toEqual([0]);
    }));
});

describe("WAKE-6 a job runs no later than its handler requested", () => {
  const HOUR = 60 * MINUTE;

  /** Rings a job with a handler that asks for a minute. `schedule` makes a request for an hour. */
  async function ringWithRequest(sleeper: Sleeper, schedule: (request: () => void) => void): Promise<void> {
    await sleeper.first.arm(0);
    wait(1);
    sleeper.again = MINUTE;
    const push = sleeper.woken.push.bind(sleeper.woken);
    sleeper.woken.push = (name) => {
      schedule(() => void sleeper.first.arm(HOUR));
      return push(name);
    };
    await ring(sleeper);
  }

  test("if a later request arrives during the handler's run", () =>
    asleep(async (sleeper, storage) => {
      await ringWithRequest(sleeper, (request) => request());
      expect(jobs(storage)).toEqual([MINUTE]);
      expect(await storage.getAlarm()).toBe(Date.now() + MINUTE);
    }));

  test("if a later request arrives before the queue has the handler's answer", () =>
    asleep(async (sleeper, storage) => {
      await ringWithRequest(sleeper, queueMicrotask);
      expect(jobs(storage)).toEqual([MINUTE]);
    }));

  test("and a job that is armed at the time of a job with a completed handler is another job", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.first.arm(0);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first"]);
      await sleeper.first.arm(0);
      await sleeper.first.arm(HOUR);
      expect(jobs(storage)).toEqual([0]);
    }));

  test.each<[what: string, requested: number, again: number | null, time: number]>([
    ["later than the job, and sooner than the handler asks", 500, MINUTE, 500],
    ["later than the job, if the handler requests no time", 500, null, 500],
    ["sooner than the job, and than the handler asks", 100, MINUTE, 100],
    ["sooner than the job, if the handler requests no time", 100, null, 100],
    ["later than the handler asks", 200, 50, 50],
    ["at the time of the job", 300, MINUTE, 301],
  ])("if a timer calls the handler, and a request arrives: %s", (_, requested, again, time) =>
    asleep(async (sleeper, storage) => {
      sleeper.again = again;
      await sleeper.first.arm(300);
      await new Promise<void>((resolve) => {
        sleeper.onWake = () => {
          void sleeper.first.arm(requested);
          resolve();
        };
      });
      expect(jobs(storage)).toEqual([time]);
      sleeper.first.disarm();
    }),
  );

  test("if a timer has called the handler, the job could not be moved, and a later request arrives", () =>
    asleep(async (sleeper, storage) => {
      const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
      sleeper.again = MINUTE;
      await sleeper.first.arm(300);
      storage.sql.exec(FULL);
      await new Promise<void>((resolve) => {
        sleeper.onWake = () => resolve();
      });
      storage.sql.exec("DROP TRIGGER full");
      await sleeper.first.arm(HOUR);
      expect(jobs(storage)).toEqual([MINUTE]);
      expect(logged).toHaveBeenCalledTimes(1);
      logged.mockRestore();
    }));
});

test("WAKE-1 a request at the time of a job throws during its handler's run if it cannot be written", () =>
  asleep(async (sleeper, storage) => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
    await sleeper.first.arm(0);
    let thrown: unknown;
    sleeper.onWake = () => {
      storage.sql.exec(FULL);
      try {
        void sleeper.first.arm(0).catch(() => undefined);
      } catch (error) {
        thrown = error;
      }
      storage.sql.exec("DROP TRIGGER full");
    };
    await ring(sleeper);
    expect(thrown).toEqual(new Error("The wake-up could not be written."));
    logged.mockRestore();
  }));

describe("WAKE-7 the parts of an actor", () => {
  test("share a job, which calls the parts that are due", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.second.arm(3 * MINUTE);
      await sleeper.first.arm(MINUTE);
      expect(jobs(storage)).toEqual([MINUTE]);
      wait(MINUTE);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first"]);
      expect(jobs(storage)).toEqual([2 * MINUTE]);
      wait(2 * MINUTE);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first", "second"]);
      expect(jobs(storage)).toEqual([]);
    }));

  test("keep the job until each of them has cancelled its wake-up", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.first.arm(MINUTE);
      await sleeper.second.arm(3 * MINUTE);
      sleeper.first.disarm();
      wait(MINUTE);
      await ring(sleeper);
      expect(sleeper.woken).toEqual([]);
      expect(jobs(storage)).toEqual([2 * MINUTE]);
      sleeper.second.disarm();
      expect(jobs(storage)).toEqual([]);
    }));

  test("are all called by a job of the life before, and keep their later requests", async () => {
    const stub = exports.Sleeper.getByName(crypto.randomUUID());
    await runInDurableObject(stub, ({ second }) => second.arm(MINUTE));
    await evictDurableObject(stub);
    await runInDurableObject(stub, async (sleeper, { storage }) => {
      await sleeper.first.arm(3 * MINUTE);
      sleeper.first.disarm();
      expect(jobs(storage)).toEqual([MINUTE]);
      wait(MINUTE);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first", "second"]);
      expect(jobs(storage)).toEqual([]);
    });
  });

  test("a request that another part makes in its handler does not delay them", () =>
    asleep(async (sleeper, storage) => {
      await sleeper.second.arm(3 * MINUTE);
      await sleeper.first.arm(0);
      sleeper.onWake = () => void sleeper.first.arm(60 * MINUTE);
      await ring(sleeper);
      expect(sleeper.woken).toEqual(["first"]);
      expect(jobs(storage)).toEqual([3 * MINUTE]);
    }));
});
