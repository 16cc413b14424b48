/** Makes texts, numbers and choices that depend on a seed only. Pure. */
import type { Json } from "../json.ts";
import { mulberry32 } from "../mulberry32.ts";
import { cut } from "../text.ts";

const WORDS = (
  "amber birch cedar dawn ember fjord grove harbor island juniper kestrel lagoon meadow north orchard pebble quartz " +
  "river summit timber umber valley willow yonder zephyr"
).split(" ");
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const HEX = "0123456789abcdef";
/** Letters of a text, unless its schema says otherwise. */
const TEXT_LENGTH = 8;

/** How texts without a format are made: random words, eight random letters, or the shortest text. */
export type TextMode = "words" | "letters" | "empty";

/** A source of numbers that look random. */
export class Draw {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = mulberry32(seed);
  }

  /** Called if the last value was a repetition, so the next value must differ. */
  vary(): void {}

  /** Returns a fraction from 0 to below 1. */
  next(): number {
    return this.#next();
  }

  /** Returns a whole number between both, these included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  of<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.between(0, items.length - 1)] ?? items[0];
  }

  text(characters: string, length: number): string {
    return Array.from({ length }, () => characters.charAt(this.between(0, characters.length - 1))).join("");
  }

  phrase(): string {
    return `${this.word()} ${this.word()}`;
  }

  word(): string {
    return WORDS[this.between(0, WORDS.length - 1)] ?? "";
  }
}

/** Returns the first choice, the lowest number and the same word, and after each `vary` the next choice. */
export class FirstChoice extends Draw {
  #variant = 0;

  constructor(private readonly only: string) {
    super(0);
  }

  override next(): number {
    return 0;
  }

  override between(low: number, high: number): number {
    return Math.min(high, low + this.#variant);
  }

  override phrase(): string {
    return this.word();
  }

  override word(): string {
    return this.#variant === 0 ? this.only : `${this.only}-${this.#variant + 1}`;
  }

  override vary(): void {
    this.#variant += 1;
  }
}

const twoDigits = (value: number) => String(value).padStart(2, "0");
const date = (draw: Draw) =>
  `20${twoDigits(draw.between(10, 29))}-${twoDigits(draw.between(1, 12))}-${twoDigits(draw.between(1, 28))}`;
const time = (draw: Draw) => `${[23, 59, 59].map((most) => twoDigits(draw.between(0, most))).join(":")}Z`;
const host = (draw: Draw) => `${draw.word()}.example.com`;

/** Texts by their format. Hosts are reserved for examples. */
const FORMATS: ReadonlyMap<Json | undefined, (draw: Draw) => string> = new Map([
  ["date-time", (draw) => `${date(draw)}T${time(draw)}`],
  ["date", date],
  ["time", time],
  ["duration", (draw) => `P${draw.between(1, 30)}D`],
  ["email", (draw) => `${draw.word()}@example.com`],
  ["hostname", host],
  ["ipv4", (draw) => `192.0.2.${draw.between(1, 254)}`],
  ["ipv6", (draw) => `2001:db8::${draw.text(HEX.slice(1), 3)}`],
  ["uri", (draw) => `https://${host(draw)}/${draw.word()}`],
  ["uri-reference", (draw) => `/${draw.word()}`],
  ["json-pointer", (draw) => `/${draw.word()}`],
  [
    "uuid",
    (draw) =>
      `${draw.text(HEX, 8)}-${draw.text(HEX, 4)}-4${draw.text(HEX, 3)}-8${draw.text(HEX, 3)}-${draw.text(HEX, 12)}`,
  ],
]);

/** Returns a text of a format, or one of this mode between both lengths. */
export function textOf(
  draw: Draw,
  mode: TextMode,
  { format, shortest, longest }: { format: Json | undefined; shortest: number; longest: number },
): string {
  const made = FORMATS.get(format)?.(draw);
  if (made !== undefined) return made;
  if (mode !== "words") {
    const length = mode === "empty" ? shortest : Math.max(shortest, Math.min(longest, TEXT_LENGTH));
    return draw.text(LETTERS, length);
  }
  let text = draw.phrase();
  while (text.length < shortest) text += ` ${draw.word()}`;
  return cut(text, longest).trim().padEnd(shortest, "x");
}
