/** The move of a tenant's lists: its decisions. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TenantPlace } from "../../src/d1/tenant-databases.ts";
import { afterCopy, afterDeletion, nextMove } from "../../src/d1/tenant-move.ts";

const SETTLED_MS = 30_000;

/** Takes steps until the move waits or is done. Returns the place and the numbers of copied and deleted slices. */
function drive(place: TenantPlace | null, target: string, now: number, slices = 1) {
  let [current, copied, deleted] = [place, 0, 0];
  for (;;) {
    const step = nextMove(current, target, now);
    if (step.type === "done" || step.type === "wait") return { place: current, copied, deleted, last: step };
    if (step.type === "store") current = step.place;
    else if (current === null) throw new Error("A copy needs a place.");
    else if (step.type === "copy") {
      copied += 1;
      current = afterCopy(current, copied < slices ? `row ${copied}` : null, now);
    } else {
      deleted += 1;
      current = afterDeletion(current);
    }
  }
}

describe("I6 the move of a tenant's lists", () => {
  test("LISTS-1 LISTS-2 waits before the copy and before the deletion", () => {
    const begun = drive(null, "DB_1", 1_000);
    expect(begun).toMatchObject({ copied: 0, last: { type: "wait", until: 1_000 + SETTLED_MS } });
    expect(begun.place).toMatchObject({ name: "DB", target: "DB_1" });
    const copied = drive(begun.place, "DB_1", 1_000 + SETTLED_MS, 3);
    expect(copied).toMatchObject({ copied: 3, deleted: 0, last: { type: "wait" } });
    expect(copied.place).toMatchObject({ name: "DB_1", target: null, left: "DB" });
    const ended = drive(copied.place, "DB_1", 1_000 + 2 * SETTLED_MS);
    expect(ended).toMatchObject({ deleted: 1, last: { type: "done" } });
    expect(ended.place).toMatchObject({ name: "DB_1", target: null, left: null });
  });

  test("LISTS-3 refuses another target during a move, and takes the old database as a cancellation", () => {
    const { place } = drive(null, "DB_1", 0);
    expect(() => nextMove(place, "DB_2", 0)).toThrow("The lists move to DB_1.");
    const cancelled = drive(place, "DB", 10);
    expect(cancelled.place).toMatchObject({ name: "DB", target: null, left: "DB_1" });
    expect(drive(cancelled.place, "DB", 10 + SETTLED_MS)).toMatchObject({
      deleted: 1,
      last: { type: "done" },
    });
    expect(() => nextMove(cancelled.place, "DB_1", 10)).toThrow("The lists move to DB.");
  });

  test("LISTS-1 LISTS-2 each order of calls ends in the target, and rows are never deleted from the database in use", () => {
    const calls = fc.array(
      fc.record({
        target: fc.constantFrom("DB", "DB_1", "DB_2"),
        pause: fc.integer({ min: 0, max: 40_000 }),
      }),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(calls, fc.constantFrom("DB", "DB_1", "DB_2"), (moves, final) => {
        let now = 0;
        // A closure changes it.
        let place = null as TenantPlace | null;
        const call = (target: string) => {
          try {
            place = drive(place, target, now).place;
          } catch (error) {
            expect(error).toMatchObject({ code: "CONFLICT" });
          }
          expect(place?.left ?? "").not.toBe(place?.name);
          expect(place?.target ?? "").not.toBe(place?.name);
        };
        for (const { target, pause } of moves) {
          now += pause;
          call(target);
        }
        for (let left = 0; left < 6; left++) {
          now += SETTLED_MS;
          call(place?.target ?? (place?.left == null ? final : place.name));
        }
        expect(nextMove(place, final, now)).toEqual({ type: "done" });
      }),
    );
  });
});
