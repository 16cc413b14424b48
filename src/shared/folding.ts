/**
 * Folds all ways of writing a text into one form, for comparisons and searches. Pure.
 *
 * FOLD-1  Case is folded with Unicode's full default case folding: `ß`, `ẞ` and `SS` are equal, and so are `ς` and `Σ`. `ı` and `i` differ.
 * FOLD-2  Canonically equivalent texts have one form. The form `NFKC` also joins compatible characters, such as `ﬁ` and `fi`.
 * FOLD-3  Optional marks are dropped: accents of Greek (capitals lack them), the dots of Cyrillic `ё`, stress marks, and the points of
 *         Hebrew and Arabic. A mark that makes another letter stays, as in `й` and `ü`.
 * FOLD-4  Invisible characters are dropped: soft hyphens, joiners, variation selectors. The tags of a flag stay, because they distinguish
 *         Scotland from Wales.
 * FOLD-5  The first 30 marks in a row count. The time of folding grows linearly with the length of a text.
 */

export function foldCase(text: string): string {
  // The first step turns `ẞ` into `ß`, and the second `ß` into `SS`. The capital of `ı` is `I`, so `ı` must stay.
  const parts = text.split("ı").map((part) => part.toLowerCase().toUpperCase().toLowerCase());
  return parts.join("ı").replaceAll("ς", "σ");
}

/** Returns a text in one form for all ways of writing it. */
export function foldText(text: string, form: "NFC" | "NFKC" = "NFC"): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const apart = form === "NFC" ? "NFD" : "NFKD";
  const decomposed = normalized(text.replace(UNSEEN, ""), apart);
  // Folding may give a letter that has a decomposition of its own.
  const small = normalized(foldCase(decomposed), apart);
  return normalized(small.replace(POINTS, "").replace(OPTIONAL_MARKS, ""), form);
}

/** Returns a form of a text with bounded rows of marks. `normalize` sorts the marks of a row in quadratic time. */
function normalized(text: string, form: "NFC" | "NFD" | "NFKC" | "NFKD"): string {
  return text.replace(LONG_ROW, "$1").normalize(form);
}

/** More marks in a row than Unicode's Stream-Safe Text Format has. The two marks of Japanese letters are marks in compatible forms only. */
const LONG_ROW = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu;
const ASCII = /^\p{ASCII}*$/u;
/** A flag is a black flag with up to 7 tags. */
const UNSEEN =
  /(?:(?![\u{e0020}-\u{e007f}])\p{Default_Ignorable_Code_Point})+|(?<!\u{1f3f4}[\u{e0020}-\u{e007f}]{0,6})[\u{e0020}-\u{e007f}]/gu;
/** The points of Hebrew and Arabic. They are removed first, so that a mark after a point follows its letter. */
const POINTS =
  /[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670]/gu;
const OPTIONAL_MARKS = /(?<=\p{Script=Greek})\p{M}+|(?<=е\u0301*)\u0308+|(?<=[аеиоуыэюя]\u0308*)\u0301+/gu;
