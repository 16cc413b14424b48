/** Deadlines: the side that ends the wait, its reason, and the handling of late results. */
import { describe, expect, test } from "vitest";
import { Deadline, race, withDeadline } from "../../src/ports/deadline.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const never = () => new Promise<never>(() => {});

describe("withDeadline", () => {
  test("passes a result and a failure on, and leaves no timer", async () => {
    const clock = new VirtualClock();
    expect(await withDeadline(clock, 10, async () => "done")).toBe("done");
    const failure = new Error("broken");
    await expect(withDeadline(clock, 10, () => Promise.reject(failure))).rejects.toBe(failure);
    await expect(
      withDeadline(clock, 10, () => {
        throw failure;
      }),
    ).rejects.toBe(failure);
    expect(clock.pending).toBe(0);
  });

  test("rejects at expiry, and aborts the work's signal for the same reason", async () => {
    const clock = new VirtualClock();
    const signals: AbortSignal[] = [];
    const late = withDeadline(clock, 10, (signal) => {
      signals.push(signal);
      return never();
    });
    const rejected = late.catch((error: unknown) => error);
    await clock.advance(10);
    expect(String(await rejected)).toBe("TimeoutError: Timed out after 10 ms.");
    expect(signals[0]?.reason).toBe(await rejected);
  });

  test("rejects with the reason of the outer signal, also if that has aborted before", async () => {
    const clock = new VirtualClock();
    const outer = new AbortController();
    const waiting = withDeadline(clock, 10, never, { outer: outer.signal });
    outer.abort("left");
    await expect(waiting).rejects.toBe("left");
    const run = () => expect.fail("must not run");
    await expect(withDeadline(clock, 10, run, { outer: outer.signal })).rejects.toBe("left");
    expect(clock.pending).toBe(0);
  });
});

test("a late answer to the abort is discarded, and a late failure is ignored", async () => {
  const controller = new AbortController();
  const discarded: string[] = [];
  const onAbort = (listener: () => void) => controller.signal.addEventListener("abort", listener);
  const result = race(
    () => new Promise<string>((resolve) => onAbort(() => resolve("late"))),
    controller.signal,
    (late) => discarded.push(late),
  );
  const failure = race(
    () => new Promise<string>((_, reject) => onAbort(() => reject(new Error("late")))),
    controller.signal,
  );
  controller.abort("reason");
  await expect(result).rejects.toBe("reason");
  await expect(failure).rejects.toBe("reason");
  expect(discarded).toEqual(["late"]);
});

test("a stopped deadline no longer aborts", async () => {
  const clock = new VirtualClock();
  const outer = new AbortController();
  const deadline = new Deadline(clock, 10, { outer: outer.signal });
  deadline.stop();
  outer.abort();
  await clock.advance(20);
  expect(deadline.signal.aborted).toBe(false);
});
