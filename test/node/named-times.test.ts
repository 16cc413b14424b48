/** Times in hostile texts: the work of reading them is bounded, whatever they are. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { extractByRules } from "../../src/library/built-in/rules/extract-by-rules.ts";
import { dayIn } from "../../src/library/memory/local-time.ts";
import { learnedTurn } from "../../src/library/memory/turn.ts";
import { ContentHash } from "../../src/memory/corpus/content-hash.ts";
import { analyzeQuery } from "../../src/memory/ranking/analyze-query.ts";
import { SpokenNames } from "../../src/memory/ranking/names.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { spaced, timePieces } from "../../src/shared/named-times.ts";

const NOW = Date.UTC(2026, 2, 14, 0, 30);
/** The longest text of a message. */
const LONGEST = 262_144;

const fragment = fc.constantFrom(
  ...[
    "  2020day",
    "  1 day",
    "1h",
    "1 ",
    "12-",
    "12/",
    "12:",
    "2020",
    "may",
    "march ",
    "monday",
    "next ",
    "last week",
  ],
  ...[
    "two ",
    "1st",
    " of ",
    " to ",
    " and ",
    " at ",
    ", ",
    ". ",
    "- ",
    "(",
    " ",
    "  ",
    "\t",
    "\n",
    "I like ",
    "my ",
    "é",
  ],
  ...["year", "month", "s ", "ago", "spring of ", "1 year 2 months ", "remember that ", "'", "!", "𝟚", "日"],
);
const hostile = fc
  .array(fragment, { minLength: 1, maxLength: 6 })
  .map((parts) => parts.join(""))
  .map((piece) => (length: number) => piece.repeat(Math.ceil(length / piece.length)).slice(0, length));

test("NAMEDTIME-1 the parser reads at most 8 pieces of 60 characters, in their order and without overlaps", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        hostile.map((text) => text(2_000)),
        fc.string({ unit: "binary" }),
      ),
      (given) => {
        const text = spaced(given);
        const pieces = timePieces(text);
        expect(pieces.length).toBeLessThanOrEqual(8);
        let end = 0;
        for (const piece of pieces) {
          expect(piece.text.length).toBeLessThanOrEqual(60);
          expect(piece.text).toBe(text.slice(piece.index, piece.index + piece.text.length));
          expect(piece.index).toBeGreaterThanOrEqual(end);
          end = piece.index + piece.text.length;
        }
      },
    ),
  );
});

test.each<[string, string[]]>([
  ["What did she say?", []],
  ["What happened on the second of May 2023?", ["What happened on the second of May 2023?"]],
  [
    `On 3 May 2023 we met, ${"and we talked of many things ".repeat(4)}until the last week of June`,
    ["On 3 May 2023 we met, and", "things until the last week of June"],
  ],
])("NAMEDTIME-1 of %j the parser reads %j", (text, pieces) => {
  expect(timePieces(text).map((piece) => piece.text)).toEqual(pieces);
});

test("NAMEDTIME-1 the reading of a hostile search, sentence or message ends", () => {
  const learn = (said: string) =>
    extractByRules(
      learnedTurn({
        ...{ user_text: said, agent_message: null, caller: { type: "user" } },
        completed_at: new Date(NOW).toISOString(),
      }),
    );
  const names = new SpokenNames();
  fc.assert(
    fc.property(hostile, (text) => {
      expect(analyzeQuery(text(LONGEST), NOW, names)).toBeDefined();
      expect(dayIn(text(LONGEST), NOW, "Asia/Tokyo")).not.toBe("");
      expect(learn(text(LONGEST))).toBeDefined();
    }),
    { numRuns: 60, examples: [[(length: number) => "  2020day".repeat(length / 9)]] },
  );
}, 180_000);

test("a long text of dots has a hash of its own", async () => {
  const hash = new ContentHash(new NodeKeyValue(new NodeSqlDatabase()));
  const dots = `${".".repeat(200_000)}x`;
  expect(await hash.of("ann", dots)).not.toBe(await hash.of("ann", "x"));
  expect(await hash.of("ann", "  It  rains!。. ")).toBe(await hash.of("ann", "it rains"));
});
