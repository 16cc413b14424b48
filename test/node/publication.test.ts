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

test("A70 RECORDS-1 a commit arms the wake-up of the copies only if the actor wakes too late for them, and once", async () => {
  const armed: number[] = [];
  let isBehind = true;
  const arm = async (milliseconds: number) => void armed.push(milliseconds);
  const window = new CopiesWakeup(new VirtualClock(), { arm, disarm: () => undefined }, () => isBehind);
  window.armInCommit(15_000);
  expect(armed).toEqual([]);
  window.armInCommit(15_001);
  window.armInCommit(Number.POSITIVE_INFINITY);
  expect(armed, "the first transaction may have rolled back").toEqual([15_000, 15_000]);
  window.armAfterCommit(15_000);
  window.armInCommit(Number.POSITIVE_INFINITY);
  expect(armed, "the wake-up is armed").toHaveLength(3);
  isBehind = false;
  window.disarm();
  window.armInCommit(Number.POSITIVE_INFINITY);
  expect(armed).toHaveLength(4);
});

test("A70 RECORDS-1 PUB-3 a wake-up that could not be armed is armed again with its own pause, until the copy is published", async () => {
  const clock = new VirtualClock();
  let [armed, fails, isDown]: [number[], boolean, boolean] = [[], true, true];
  const arm = async (milliseconds: number) => {
    armed.push(milliseconds);
    if (fails) throw new Error("There is no alarm.");
  };
  const window = new CopiesWakeup(clock, { arm, disarm: () => undefined }, () => copy.isBehind);
  const put = async (_: boolean, __: unknown, upTo: number) => {
    if (isDown) throw new Error("The log is down.");
    return upTo + 1;
  };
  const journal = { forward: (from: number) => (from === 1 ? [{ seq: 1, at: 0, entries: [{}] }] : []) };
  const runtime = { exists: true, dueIn: 60_000 as number | null, store: { journal } };
  const copy = new JournalCopy<boolean>(
    { clock, runtime },
    { find: () => true, published: async () => 0, put },
    window,
  );
  const taken = () => armed.splice(0);

  copy.changed();
  await clock.advance(1_000);
  expect(taken(), "of a commit, and a second later").toEqual([15_000, 15_000]);
  fails = false;
  await clock.advance(1_000);
  expect(taken()).toEqual([15_000]);
  const pauses: number[] = [];
  for (let wake = 0; wake < 3; wake++) {
    window.fires();
    fails = true;
    expect(copy.wake(), "the actor works").toBeNull();
    await settled();
    fails = false;
    await clock.advance(1_000);
    const [first = 0, second] = taken();
    expect(second).toBe(first);
    pauses.push(first);
    await clock.advance(first - 1_000);
  }
  expect(pauses, "the time since the commit, and 15 seconds").toEqual([17_000, 34_000, 68_000]);

  window.fires();
  fails = true;
  copy.changed();
  await settled();
  isDown = false;
  await copy.publish();
  taken();
  await clock.advance(1_000);
  expect([copy.isBehind, taken()]).toEqual([false, []]);
});
