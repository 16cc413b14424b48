/** A copy of a directory that is slow, or down for a while. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Copy } from "../../src/agents/base/copies/copy.ts";
import { CopiesWakeup, JournalCopy } from "../../src/agents/base/copies/journal-copy.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** The storage of an actor across its lives, and the directory. */
class World {
  now = Date.UTC(2026, 0, 1);
  stored = { value: "", changedAt: this.now };
  armed: number | null = null;
  listed = "";
  put: () => Promise<unknown> = async () => undefined;

  begin(): Copy {
    return new Copy({
      directory: () => true,
      put: async () => {
        const { value } = this.stored;
        const again = await this.put();
        this.listed = value;
        return again;
      },
      changedAt: () => this.stored.changedAt,
      clock: { now: () => this.now },
      wakeup: {
        arm: async (milliseconds) => {
          this.armed ??= this.now + milliseconds;
        },
        disarm: () => {
          this.armed = null;
        },
      },
    });
  }

  async change(copy: Copy, value: string): Promise<void> {
    this.stored = { value, changedAt: this.now };
    await copy.note();
  }

  /** Fires the wake-up. */
  ring(copy: Copy): void {
    this.now = this.armed ?? Number.NaN;
    const again = copy.wake();
    this.armed = again === null ? null : this.now + again;
  }
}

test("PUB-1 the wake-up publishes a change if its actor died before publishing it", async () => {
  const world = new World();
  await world.change(world.begin(), "first");
  expect(world.armed).toBe(world.now + 15 * SECOND);
  world.ring(world.begin());
  expect(world.armed, "stays armed until the put has succeeded").not.toBeNull();
  await settled();
  expect(world.listed).toBe("first");
  expect(world.armed).toBeNull();
});

test("PUB-1 the next life publishes a change if a life ends during a slow put", async () => {
  const world = new World();
  await world.change(world.begin(), "first");
  world.put = () => new Promise(() => undefined);
  world.ring(world.begin());
  await settled();
  world.put = async () => undefined;
  world.ring(world.begin());
  await settled();
  expect(world.listed).toBe("first");
});

test("PUB-2 a change during a put causes another put after it", async () => {
  const world = new World();
  const copy = world.begin();
  const waiting: (() => void)[] = [];
  world.put = () => new Promise<void>((resolve) => waiting.push(resolve));
  await world.change(copy, "old");
  const published = copy.publish();
  await world.change(copy, "new");
  void copy.publish();
  expect(waiting).toHaveLength(1);
  waiting[0]?.();
  await settled();
  expect([world.listed, world.armed === null]).toEqual(["old", false]);
  waiting[1]?.();
  await published;
  expect([world.listed, world.armed]).toEqual(["new", null]);
});

test("PUB-3 retries start after 15 seconds and back off to 15 minutes", async () => {
  const world = new World();
  world.put = () => Promise.reject(new Error("no such table"));
  const copy = world.begin();
  await world.change(copy, "first");
  await copy.publish();
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 10; attempt++) {
    const before = world.now;
    // Every other attempt runs in a new life.
    world.ring(attempt % 2 === 0 ? copy : world.begin());
    pauses.push(world.now - before);
    await settled();
  }
  const expected = [15 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE];
  expect(pauses).toEqual([...expected, 15 * MINUTE, 15 * MINUTE, 15 * MINUTE]);
  world.put = async () => undefined;
  world.ring(copy);
  await settled();
  expect(world.listed).toBe("first");
  await world.change(copy, "second");
  expect(world.armed).toBe(world.now + 15 * SECOND);
});

test("PUB-4 a put that can do more later is repeated then, and by a change at once", async () => {
  const world = new World();
  const copy = world.begin();
  let puts = 0;
  world.put = async () => {
    puts += 1;
    return puts < 3 ? MINUTE : undefined;
  };
  await world.change(copy, "first");
  world.armed = null;
  await copy.publish();
  expect([puts, world.armed]).toEqual([1, world.now + MINUTE]);
  await copy.publish();
  expect(puts, "not before its time").toBe(1);
  await world.change(copy, "second");
  await copy.publish();
  expect(puts).toBe(2);
  world.now += MINUTE;
  world.ring(copy);
  await settled();
  expect([puts, world.armed, copy.wake()]).toEqual([3, null, null]);
});

test("PUB-5 without a directory a change arms no wake-up and is not put", async () => {
  const world = new World();
  const put = vi.fn(async () => undefined);
  const arm = vi.fn(async () => undefined);
  const copy = new Copy({
    put,
    directory: () => null,
    clock: { now: () => world.now },
    wakeup: { arm, disarm: () => undefined },
  });
  await copy.note();
  await copy.publish();
  expect(copy.wake()).toBeNull();
  expect([put.mock.calls, arm.mock.calls]).toEqual([[], []]);
});

test("A70 RECORDS-1 a noted change whose wake-up could not be armed is armed again after a second", async () => {
  const clock = new VirtualClock();
  let [arms, fails] = [0, true];
  const wakeup = {
    arm: async () => {
      arms += 1;
      if (fails) throw new Error("There is no alarm.");
    },
    disarm: () => undefined,
  };
  const window = new CopiesWakeup(clock, wakeup, () => copy.isBehind);
  const journal = { forward: () => [{ seq: 1, at: 0, entries: [{}] }] };
  const target = {
    find: () => true,
    published: async () => 0,
    put: async () => {
      throw new Error("The log is down.");
    },
  };
  const runtime = { exists: true, dueIn: null, store: { journal } };
  const copy = new JournalCopy<boolean>({ clock, runtime }, target, window);
  await expect(copy.note()).rejects.toThrow("no alarm");
  await copy.publish();
  fails = false;
  await clock.advance(1_000);
  expect([arms, copy.isBehind]).toEqual([2, true]);
});
