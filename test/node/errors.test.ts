/** Errors that cross an RPC. */
import { expect, test } from "vitest";
import { DramatisError, dramatisError, hasCode } from "../../src/shared/errors.ts";

test("an error that lost its class in an RPC keeps its code, its message and whether a later attempt may succeed", () => {
  const sent = Object.assign(new Error("Busy."), { code: "UNAVAILABLE", retriable: true });
  expect(dramatisError(sent)).toMatchObject({ code: "UNAVAILABLE", message: "Busy.", retriable: true });
  const last = Object.assign(new Error("No."), { code: "UNAVAILABLE", retriable: false });
  expect(dramatisError(last)).toMatchObject({ retriable: false });
  const own = new DramatisError("CONFLICT", "Taken.");
  expect(dramatisError(own)).toBe(own);
  for (const other of [
    new Error("x"),
    Object.assign(new Error("x"), { code: "ENOENT" }),
    "UNAVAILABLE",
    null,
  ])
    expect(dramatisError(other)).toBeUndefined();
  expect([
    hasCode(own, "NOT_FOUND", "CONFLICT"),
    hasCode(own, "NOT_FOUND"),
    hasCode(sent, "UNAVAILABLE"),
  ]).toEqual([true, false, false]);
});
