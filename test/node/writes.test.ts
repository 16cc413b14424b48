/** The bytes that turns with many or large results write: G4's budget, for each of its lines. */
import { expect, test } from "vitest";
import { LINES, type Line, ratioOf, runLine } from "../../bench/writes/lines.ts";

/** Small results of pure tools have the fewest commits, and so the smallest allowance. */
const FURTHER: readonly Line[] = LINES.filter(({ name }) => name.endsWith("small")).map((line) => ({
  ...line,
  name: `${line.name} pure`,
  effect: "pure",
}));

test.each([...LINES, ...FURTHER])(
  "TURNROW-2 $name: a turn writes at most 2.5 times its content, and 8 KiB for each commit",
  async (line) => {
    const written = await runLine(line);
    expect(written.content).toBe(line.rounds * line.calls * line.size);
    // The message and the answer; each reply, and the results of a round unless its tools are pure.
    expect(written.commits).toBeGreaterThanOrEqual(2 + line.rounds * (line.effect === "once" ? 2 : 1));
    expect(written.bytes, "fewer than the results have").toBeGreaterThan(written.content);
    expect(ratioOf(written)).toBeLessThanOrEqual(2.5);
  },
);
