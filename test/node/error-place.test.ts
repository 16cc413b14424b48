import fc from "fast-check";
import { expect, test } from "vitest";
import { placeOf } from "../../src/shared/error-place.ts";
import { DramatisError } from "../../src/shared/errors.ts";

const THIS_FILE = "error-place.test.ts";

test("MEMLOG-1 an error of the platform has its message, any other error its name, its codes and its place", () => {
  expect(placeOf(new DramatisError("UNAVAILABLE", "The store is down."))).toBe(
    "UNAVAILABLE: The store is down.",
  );
  const error = Object.assign(new TypeError("D1_ERROR: no such table: Ann"), { code: "SQLITE_BUSY" });
  expect(placeOf(error)).toMatch(/^TypeError SQLITE_BUSY D1_ERROR\n\s+at /);
  expect(placeOf(error)).toContain(THIS_FILE);
  expect(placeOf(error)).not.toContain("Ann");
  expect(placeOf("Ann")).toBe("A thrown string.");
});

test("MEMLOG-1 no part of a message is logged, even if it looks like frames, or belongs to another error", () => {
  const line = fc.constantFrom(
    "    at Ann (pin:4711:3)",
    "Ann: 4711",
    "at Ann:1:1",
    "Ann\tnative)",
    "Error: Ann",
    "",
  );
  const message = fc.array(line, { maxLength: 4 }).map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(message, message, (first, second) => {
      const changed = new Error(first);
      changed.message = second;
      for (const error of [new Error(first), new RangeError(first, { cause: new Error(second) }), changed])
        expect(placeOf(error)).not.toContain("Ann");
      expect(placeOf(Object.assign(new Error(first), { name: "Ann" }))).toMatch(/^Error(?:\n|$)/);
    }),
  );
});

test("MEMLOG-1 an error that cannot be read is logged as such", () => {
  const hostile = new Error("Ann");
  Object.defineProperty(hostile, "stack", {
    get() {
      throw new Error("Ann");
    },
  });
  expect(placeOf(hostile)).toBe("An error that cannot be read.");
});
