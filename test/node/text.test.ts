/** Texts that are cut. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { shownInput } from "../../src/protocol/agent-call.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { shortenToJson } from "../../src/shared/text.ts";
import { utf8Length } from "../../src/shared/utf8.ts";

const bytesOf = (text: string) => utf8Length(JSON.stringify(text));

test("DELEGATE-10 a text fits as JSON, whatever its characters, and a text that fits is not cut", () => {
  const unit = fc.constantFrom("a", "\u0001", '"', "\\", "é", "😀", "\ud800", "\u2028");
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit, maxLength: 300 }));
  fc.assert(
    fc.property(text, fc.integer({ min: 5, max: 400 }), (given, bytes) => {
      const cut = shortenToJson(given, bytes);
      expect(bytesOf(cut)).toBeLessThanOrEqual(bytes);
      if (bytesOf(given) <= bytes) {
        expect(cut).toBe(given);
        return;
      }
      expect(cut.endsWith("…")).toBe(true);
      const kept = cut.slice(0, -1);
      expect(given.startsWith(kept)).toBe(true);
      if (given.isWellFormed()) expect(cut.isWellFormed()).toBe(true);
      // The next character would have been too much: it has two units and twelve bytes at most.
      expect(bytesOf(cut) + 12).toBeGreaterThan(Math.min(bytes, bytesOf(given)));
    }),
    { numRuns: 500 },
  );
});

test("ASK-1 an input is shown above its agent unless it is too long, or too deep for an envelope", () => {
  const deep = (levels: number): JsonObject => (levels === 1 ? {} : { a: deep(levels - 1) });
  expect(shownInput(deep(56))).toEqual(deep(56));
  expect(shownInput(deep(57))).toBeUndefined();
  expect(shownInput({ text: "x".repeat(4_085) })).toBeDefined();
  expect(shownInput({ text: "x".repeat(4_086) })).toBeUndefined();
});
