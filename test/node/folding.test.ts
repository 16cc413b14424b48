/** Forms of texts for comparisons, checked with all characters. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { foldCase, foldText } from "../../src/shared/folding.ts";

const FORMS = ["NFC", "NFKC"] as const;

/** Unicode's table of case folding. */
const TABLE = new Map(
  readFileSync(join(import.meta.dirname, "../fixtures/case-folding.txt"), "utf8")
    .split("\n")
    .filter((line) => /^[0-9a-f]/.test(line))
    .map((line) => {
      const [character = "", ...folded] = line
        .split(" ")
        .map((code) => String.fromCodePoint(Number.parseInt(code, 16)));
      return [character, folded.join("")] as const;
    }),
);

/** All characters but surrogates and the planes 4 to 13, 15 and 16, which Unicode leaves without characters or to private use. */
function* characters(): Generator<string> {
  for (let code = 0; code <= 0xeffff; code++)
    if ((code < 0xd800 || code > 0xdfff) && (code < 0x40000 || code >= 0xe0000))
      yield String.fromCodePoint(code);
}

test("FOLD-1 two characters are equal exactly if Unicode's full case folding makes them equal", () => {
  const [ours, theirs] = [new Map<string, string>(), new Map<string, string>()];
  const wrong: string[] = [];
  for (const character of characters()) {
    const unicode = TABLE.get(character) ?? character;
    const own = foldCase(character);
    if ((ours.get(unicode) ?? own) !== own || (theirs.get(own) ?? unicode) !== unicode) wrong.push(character);
    ours.set(unicode, own);
    theirs.set(own, unicode);
  }
  expect(TABLE.size).toBe(1_585);
  expect(wrong).toEqual([]);
});

test("FOLD-1 the case of a text is folded character by character, also for a final sigma", () => {
  const text = fc.string({ unit: fc.constantFrom(...TABLE.keys(), ...TABLE.values(), "a", " ", "\u0307") });
  fc.assert(
    fc.property(text, (given) => {
      const unicode = [...given].map((character) => TABLE.get(character) ?? character).join("");
      expect(foldCase(given)).toBe(foldCase(unicode));
    }),
  );
});

/** Reports whether a character is assigned and not an ideograph. Ideographs have no case and no marks. */
const isOfScript = (character: string) =>
  /[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{Cc}\p{Cf}]/u.test(character) &&
  !/\p{Unified_Ideograph}/u.test(character);

test.each(FORMS)("FOLD-2 the form %s is stable, and one for all canonically equivalent texts", (form) => {
  const wrong = [...characters()].filter(isOfScript).flatMap((character) =>
    [character, `a${character}`, `е${character}\u0301`, `α${character}`].filter((text) => {
      const folded = foldText(text, form);
      return [folded, text.normalize("NFC"), text.normalize("NFD")].some(
        (same) => foldText(same, form) !== folded,
      );
    }),
  );
  expect(wrong).toEqual([]);
});

test.each([
  ["Zürich", "ZU\u0308RICH"],
  ["Straße", "STRASSE"],
  ["ẞ", "ß"],
  ["ΟΔΟΣ", "οδός"],
  ["ΤΣΑΪ", "τσάι"],
  ["ᾳ", "ΑΙ"],
  ["развёртывание", "РАЗВЕРТЫВАНИЕ"],
  ["за\u0301мок", "замок"],
  ["שָׁלוֹם", "שלום"],
  ["كِتَاب", "كتاب"],
  ["co\u00adoperate", "Cooperate"],
  ["❤\ufe0f", "❤"],
  ["a\u{e0041}", "a"],
  ["ﬁle", "FILE"],
])("FOLD-1 FOLD-2 FOLD-3 FOLD-4 %j and %j are equal", (one, other) => {
  expect(foldText(one)).toBe(foldText(other));
});

test.each([
  ["ı", "i"],
  ["schön", "schon"],
  ["мой", "мои"],
  ["її", "іі"],
  ["أ", "ا"],
  ["10²", "102"],
  ["👍", "👎"],
  // Scotland and Wales.
  [
    "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
  ],
])("FOLD-1 FOLD-2 FOLD-3 %j and %j differ", (one, other) => {
  expect(foldText(one)).not.toBe(foldText(other));
});

test("FOLD-2 the compatible form joins wide, small and combined characters", () => {
  expect(foldText("Ｐｉｐｅ ½ ㎭", "NFKC")).toBe(foldText("PIPE 1⁄2 rad", "NFKC"));
});

/** Reports whether `normalize` sorts a mark that follows a character, or the character itself. */
function isSorted(character: string): boolean {
  const text = character.normalize("NFKD");
  const isMoved = (one: string, other: string) => (one + other).normalize("NFKD") !== one + other;
  return isMoved("\u0345", text) || isMoved(text, "\u0334");
}

test("FOLD-5 of each character that normal forms sort, the first 30 in a row count", () => {
  const long = [...characters()].filter(
    (character) =>
      isSorted(character) &&
      [...character.normalize("NFKD")].every((one) => isSorted(one)) &&
      FORMS.some((form) => foldText(`x${character.repeat(200)}`, form).length > 150),
  );
  expect(long).toEqual([]);
});

test.each<[string, string]>([
  ["marks of two classes", `x${"\u0302".repeat(100_000)}${"\u0323".repeat(100_000)}`],
  ["marks in turn", "\u0302\u0323".repeat(100_000)],
  ["marks between invisible characters", "\u0302\u200d\u0323\u200d".repeat(100_000)],
  ["marks between points that are removed", "\u0302\u0640\u0323\u0640".repeat(100_000)],
  ["marks with marks of Japanese letters", "\u0302\uff9e".repeat(100_000)],
])("FOLD-5 a long row of %s is folded", (_name, text) => {
  for (const form of FORMS) expect(foldText(text, form).length).toBeLessThan(text.length);
});
