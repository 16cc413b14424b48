/** The pure rules of titles. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  forkTitle,
  isFrom,
  MAX_AUTOMATIC_TITLE,
  titleOf,
} from "../../src/agents/conversation/core/titles.ts";

const text = fc.string({
  unit: fc.oneof(fc.constantFrom(" ", "\n", "\u0000", "\u202e", "😀", "a"), fc.string({ maxLength: 1 })),
  maxLength: 300,
});

describe("G24 titles", () => {
  test("G24 TITLE-4 are one line of at most 80 characters without control characters, and come from their text", () => {
    fc.assert(
      fc.property(text, (given) => {
        const title = titleOf(given);
        if (title === null) return;
        expect(title.length).toBeLessThanOrEqual(MAX_AUTOMATIC_TITLE);
        expect(title.isWellFormed() || !given.isWellFormed()).toBe(true);
        expect(title).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
        expect(title).toBe(title.trim());
        if (title !== "…") expect(isFrom(title, given)).toBe(true);
        const fork = forkTitle(title) ?? "";
        expect(fork).not.toBe(title);
        if (title !== "…") expect(isFrom(fork, given)).toBe(true);
      }),
    );
  });

  test("G24 TITLE-5 a title that is cut after a Greek sigma comes from its text", () => {
    const given = `ΑΑ${"ΟΔΗΓΙΕΣ".repeat(30)}`;
    for (const title of [titleOf(given), forkTitle(titleOf(given) ?? "")])
      expect(isFrom(title ?? "", given)).toBe(true);
  });

  test("G24 TITLE-4 cuts a text between words, and ignores a text without visible characters", () => {
    const long = titleOf(`${"word ".repeat(30)}`);
    expect(long).toMatch(/ word…$/);
    expect(titleOf(" \n\u0000 ")).toBeNull();
    expect(titleOf("What is\n12*(3+4)?")).toBe("What is 12*(3+4)?");
  });
});
