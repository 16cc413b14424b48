/** Errors that cross an RPC. */
import { expect, test } from "vitest";
import { DramatisError, dramatisError, hasCode } from "../../src/shared/errors.ts";

test("an error that lost its class keeps its code, its message and its options", () => {
  const options = { retriable: true, errors: [{ path: "/a", message: "Is required." }], retryAfter: 5 };
  const sent = Object.assign(new Error("Busy."), { code: "UNAVAILABLE", options });
  const found = dramatisError(sent);
  expect(found?.toData()).toEqual({ code: "UNAVAILABLE", message: "Busy.", ...options });
  expect(found?.cause).toBe(sent);
  const plain = Object.assign(new Error("No."), { code: "UNAVAILABLE" });
  expect(dramatisError(plain)).toMatchObject({ retriable: false });
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
