/**
 * Hostile bodies for a JSON reader, in the spirit of JSONTestSuite: almost valid JSON, barely acceptable JSON, and
 * extremes.
 */
import fc from "fast-check";

const encoder = new TextEncoder();
const bytesOf = (text: string) => encoder.encode(text);

/** Texts that violate RFC 8259, by rule. */
const BROKEN_TEXTS = [
  "",
  " ",
  "\u0000",
  "{",
  "[",
  "}",
  "{]",
  '{"a"',
  '{"a":',
  '{"a":1,',
  '{"a":1,}',
  "[1,]",
  "[,1]",
  "[1,,2]",
  "[1 2]",
  '{"a" 1}',
  "{a:1}",
  "{'a':1}",
  '{"a":1 "b":2}',
  '{"a":1}}',
  '{"a":1}{"b":2}',
  '{"a":1}#',
  '{"a":1}//c',
  '/*c*/{"a":1}',
  '{"a":1}\u0000',
  "NaN",
  "-NaN",
  "Infinity",
  "-Infinity",
  "undefined",
  "True",
  "nul",
  "01",
  "-01",
  "+1",
  "1.",
  ".1",
  "-",
  "1e",
  "1e+",
  "0x10",
  "1_000",
  "1e1.5",
  "１",
  '"',
  '"\\"',
  '"\\x41"',
  '"\\u12"',
  '"\\u{41}"',
  '"\\',
  '"a\nb"',
  '"a\tb"',
  '"\u0000"',
  "\u00a0{}",
  "\u2028{}",
  "\ufeff\ufeff{}",
  "{}\ufeff",
] as const;

/** Unusual but valid JSON. */
const ODD_TEXTS = [
  "null",
  "0",
  "-0",
  "1e400",
  "-1e400",
  "1e-400",
  "123456789012345678901234567890",
  "0.1e1",
  `0.${"1".repeat(5_000)}`,
  "9".repeat(5_000),
  '""',
  '"\\u0000"',
  '"\\ud83d\\ude00"',
  '"\\/"',
  '"\u2028\u2029\u007f"',
  "[]",
  "{}",
  '{"":0}',
  '{"a":1,"a":2}',
  '{"__proto__":{"admin":true}}',
  '{"__proto__":null,"constructor":{"prototype":{"admin":true}}}',
  '{"a":{"__proto__":[]},"toString":1,"hasOwnProperty":2}',
  " \t\r\n{ } \n",
  "\ufeff{}",
  "[[[[[[[[[[1]]]]]]]]]]",
] as const;

/** Bytes that are not UTF-8. */
const BAD_BYTES = [
  [0xff],
  [0x22, 0x80, 0x22],
  [0x22, 0xc0, 0xaf, 0x22],
  [0x22, 0xe2, 0x82, 0x22],
  [0x22, 0xed, 0xa0, 0x80, 0x22],
  [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
  [0x22, 0xf8, 0x88, 0x80, 0x80, 0x80, 0x22],
  [0xef, 0xbb],
  [0xfe, 0xff, 0x00, 0x7b, 0x00, 0x7d],
  [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00],
  [0x7b, 0x22, 0x61, 0x22, 0x3a, 0x31, 0x7d, 0xff],
] as const;

/** UTF-16 without a byte order mark: by chance valid UTF-8, with many NUL. */
function utf16(text: string, littleEndian: boolean): Uint8Array {
  const view = new DataView(new ArrayBuffer(text.length * 2));
  for (let i = 0; i < text.length; i++) view.setUint16(i * 2, text.charCodeAt(i), littleEndian);
  return new Uint8Array(view.buffer);
}

const escapes = fc.constantFrom("\\ud800", "\\udfff", "\\ud800\\ud800", "\\udc00\\ud800", "a\\ud83d");
const loneSurrogates = fc
  .tuple(escapes, fc.constantFrom('"X"', '{"X":1}', '{"a":"X"}', '[1,{"b":["X"]}]', '{"content":"X"}'))
  .map(([escaped, frame]) => bytesOf(frame.replace("X", escaped)));

const openings = fc.constantFrom("[", '{"a":', '[{"content":', '{"content":[');
const nested = fc
  .tuple(openings, fc.constantFrom(65, 100, 1_000, 100_000), fc.boolean())
  .map(([opening, levels, closed]) => {
    const closing = Array.from(opening, (character) => ({ "[": "]", "{": "}" })[character] ?? "")
      .toReversed()
      .join("");
    return bytesOf(`${opening.repeat(levels)}1${closed ? closing.repeat(levels) : ""}`);
  });

const huge = fc
  .constantFrom(
    `"${"a".repeat(1_500_000)}"`,
    `{"${"k".repeat(300_000)}":1}`,
    `{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":0`).join(",")}}`,
    `[${"0,".repeat(100_000)}0]`,
    `{"content":"${"\\u0000".repeat(100_000)}"}`,
    " ".repeat(3_000_000),
  )
  .map(bytesOf);

const listOf = (count: number, item: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => item(n)).join(",");

/** JSON values that cost far more than their length. Each text has less than two mebibytes. */
export const HOSTILE_SHAPES = {
  "names that collide": `{${listOf(120_000, (n) => `"${n * 65_536}":0`)}}`,
  "a few thousand names that collide": `{${listOf(5_000, (n) => `"${n * 65_536}":0`)}}`,
  "texts that collide": `[${listOf(120_000, (n) => `"${n * 65_536}"`)}]`,
  "lists in each other": `${"[".repeat(900_000)}${"]".repeat(900_000)}`,
  "lists that are not closed": "[".repeat(1_900_000),
  "objects in each other": `${'{"a":'.repeat(200_000)}0${"}".repeat(200_000)}`,
  "lists beside each other": `[${listOf(600_000, () => "[]")}]`,
  "objects beside each other": `[${listOf(200_000, () => '{"a":0}')}]`,
  "very many items": `[${listOf(900_000, () => "0")}]`,
  "very many names": `{${listOf(120_000, (n) => `"k${n}":0`)}}`,
  "very many empty texts": `[${listOf(600_000, () => '""')}]`,
  "quotes only": '"'.repeat(1_900_000),
} as const;

/** Returns the levels of nesting, 0 for a value that is no container. Looks no deeper than one level beyond `limit`. */
export function jsonDepth(value: unknown, limit: number): number {
  if (typeof value !== "object" || value === null || limit < 0) return 0;
  const members = Array.isArray(value) ? value : Object.values(value);
  return 1 + members.reduce<number>((deepest, member) => Math.max(deepest, jsonDepth(member, limit - 1)), 0);
}

/** Returns the number of values as a text's reader counts them: containers, and commas between members. */
export function valuesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const members = Object.values(value);
  return members.reduce<number>((sum, member) => sum + valuesIn(member), 1 + Math.max(0, members.length - 1));
}

/** JSON with a part removed, inserted, doubled or changed. */
const damaged = fc
  .tuple(
    fc.json({ maxDepth: 4 }),
    fc.nat({ max: 200 }),
    fc.nat({ max: 8 }),
    fc.oneof(
      fc.uint8Array({ maxLength: 4 }),
      fc.constantFrom(",", ":", '"', "\\", "}", "]", "\u0000", "\ufeff", "//").map(bytesOf),
    ),
  )
  .map(([text, at, length, put]) => {
    const bytes = bytesOf(text);
    const start = Math.min(at, bytes.length);
    return new Uint8Array([...bytes.slice(0, start), ...put, ...bytes.slice(start + length)]);
  });

const truncated = fc
  .tuple(fc.json({ maxDepth: 4 }), fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([text, part]) => bytesOf(text.slice(0, Math.floor(text.length * part))));

const otherEncodings = fc
  .tuple(fc.json({ maxDepth: 2 }), fc.boolean(), fc.boolean())
  .map(([text, littleEndian, mark]) => utf16(`${mark ? "\ufeff" : ""}${text}`, littleEndian));

export const FIXED_BODIES: readonly Uint8Array[] = [
  ...BROKEN_TEXTS.map(bytesOf),
  ...ODD_TEXTS.map(bytesOf),
  ...BAD_BYTES.map((bytes) => new Uint8Array(bytes)),
];

export const hostileBodies: fc.Arbitrary<Uint8Array> = fc.oneof(
  { weight: 3, arbitrary: damaged },
  { weight: 2, arbitrary: truncated },
  { weight: 2, arbitrary: fc.constantFrom(...FIXED_BODIES) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
  { weight: 1, arbitrary: loneSurrogates },
  { weight: 1, arbitrary: otherEncodings },
  { weight: 1, arbitrary: nested },
  { weight: 1, arbitrary: huge },
);

/** The fields of a valid body, each replaced by an invalid value. */
export function spoiled(valid: Readonly<Record<string, unknown>>): fc.Arbitrary<string> {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom(
      -1,
      1e308,
      Number.MAX_SAFE_INTEGER,
      "\u0000",
      "../..",
      "a:b",
      "\u202e",
      "x".repeat(5_000),
      Array(2_000).fill(0),
      { toString: "x" },
    ),
  );
  const extra = fc.constantFrom("__proto__", "constructor", "toJSON", "", "role", "tenant", "\u0000");
  return fc
    .tuple(fc.constantFrom(...Object.keys(valid)), value, fc.option(extra, { nil: undefined }))
    .map(([key, value, more]) => {
      const members = Object.entries({ ...valid, [key]: value }).map(
        ([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`,
      );
      if (more !== undefined) members.push(`${JSON.stringify(more)}:${JSON.stringify(value)}`);
      return `{${members.join(",")}}`;
    });
}
