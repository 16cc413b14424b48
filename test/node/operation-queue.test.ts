import fc from "fast-check";
import { expect, test } from "vitest";
import { OperationQueue } from "../../src/agents/workspace/operation-queue.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

test("WORKSPACE-8 an operation that waits too long is refused, and does not run later", async () => {
  const clock = new VirtualClock();
  const queue = new OperationQueue(clock);
  const ran: string[] = [];
  const first = queue.run("long", async () => {
    await clock.sleep(100_000);
    ran.push("long");
  });
  const second = queue.run("late", async () => void ran.push("late"));
  await Promise.all([
    clock.advance(50_000),
    expect(second).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true }),
  ]);
  await clock.advance(10_000);
  const third = queue.run("next", async () => void ran.push("next"));
  await clock.advance(39_000);
  expect(ran).toEqual([]);
  await clock.advance(1_000);
  await Promise.all([first, third]);
  expect(ran).toEqual(["long", "next"]);
});

test("WORKSPACE-8 a cancellation reaches each operation with the key", async () => {
  const queue = new OperationQueue(new VirtualClock());
  const stopped: string[] = [];
  const running = queue.run("one", (signal) => {
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const repeated = queue.run("one", async () => void stopped.push("repeated"));
  const both = Promise.allSettled([running, repeated]);
  await Promise.resolve().then(() => undefined);
  queue.cancel("one");
  expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(stopped).toEqual([]);
});

test("WORKSPACE-8 operations never overlap, keep their order, and cancelled ones do not begin", async () => {
  const operations = fc.array(fc.tuple(fc.nat({ max: 5 }), fc.boolean(), fc.boolean()), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(operations, async (given) => {
      const clock = new VirtualClock();
      const queue = new OperationQueue(clock);
      const began: number[] = [];
      let running = 0;
      const results = given.map(([takes, fails], n) =>
        queue
          .run(`op_${n}`, async () => {
            expect(++running).toBe(1);
            began.push(n);
            await clock.sleep(takes);
            running--;
            if (fails) throw new Error("It fails.");
          })
          .catch(() => undefined),
      );
      for (const [n, [, , isCancelled]] of given.entries()) if (isCancelled) queue.cancel(`op_${n}`);
      await clock.advance(100);
      await Promise.all(results);
      expect(began).toEqual([...given.keys()].filter((n) => given[n]?.[2] !== true));
    }),
  );
});
