/** A projection of a directory that is slow, or down for a while. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Projection } from "../../src/agents/base/projections/projection.ts";

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

  begin(): Projection {
    return new Projection({
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

  async change(projection: Projection, value: string): Promise<void> {
    this.stored = { value, changedAt: this.now };
    await projection.note();
  }

  /** Fires the wake-up. */
  ring(projection: Projection): void {
    this.now = this.armed ?? Number.NaN;
    const again = projection.wake();
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
  const projection = world.begin();
  const waiting: (() => void)[] = [];
  world.put = () => new Promise<void>((resolve) => waiting.push(resolve));
  await world.change(projection, "old");
  const published = projection.publish();
  await world.change(projection, "new");
  void projection.publish();
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
  const projection = world.begin();
  await world.change(projection, "first");
  await projection.publish();
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 10; attempt++) {
    const before = world.now;
    // Every other attempt runs in a new life.
    world.ring(attempt % 2 === 0 ? projection : world.begin());
    pauses.push(world.now - before);
    await settled();
  }
  const expected = [15 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE];
  expect(pauses).toEqual([...expected, 15 * MINUTE, 15 * MINUTE, 15 * MINUTE]);
  world.put = async () => undefined;
  world.ring(projection);
  await settled();
  expect(world.listed).toBe("first");
  await world.change(projection, "second");
  expect(world.armed).toBe(world.now + 15 * SECOND);
});

test("PUB-4 a put that can do more later is repeated then, and by a change at once", async () => {
  const world = new World();
  const projection = world.begin();
  let puts = 0;
  world.put = async () => {
    puts += 1;
    return puts < 3 ? MINUTE : undefined;
  };
  await world.change(projection, "first");
  world.armed = null;
  await projection.publish();
  expect([puts, world.armed]).toEqual([1, world.now + MINUTE]);
  await projection.publish();
  expect(puts, "not before its time").toBe(1);
  await world.change(projection, "second");
  await projection.publish();
  expect(puts).toBe(2);
  world.now += MINUTE;
  world.ring(projection);
  await settled();
  expect([puts, world.armed, projection.wake()]).toEqual([3, null, null]);
});

test("PUB-5 without a directory a change arms no wake-up and is not put", async () => {
  const world = new World();
  const put = vi.fn(async () => undefined);
  const arm = vi.fn(async () => undefined);
  const projection = new Projection({
    put,
    directory: () => null,
    clock: { now: () => world.now },
    wakeup: { arm, disarm: () => undefined },
  });
  await projection.note();
  await projection.publish();
  expect(projection.wake()).toBeNull();
  expect([put.mock.calls, arm.mock.calls]).toEqual([[], []]);
});
