/**
 * Translates regular expressions of JavaScript (flag `u`) into the syntax of the linear-time engine. Pure.
 *
 * Every character, class and anchor is written out, so no rule of the engine's own syntax decides about a match: `\s`, `.`
 * and `$` mean the same as in JavaScript.
 */

/** A pattern cannot be used. The message says how to change it. */
export class UnsupportedPattern extends Error {}

export interface EnginePattern {
  source: string;
  /** Upper bound of the program's length per character of the pattern, with counted repetitions written out. */
  size: number;
  /** Conditions on the beginning of the text: a text matches if each condition matches, or does not where `isNegated`. */
  conditions: readonly { source: string; isNegated: boolean }[];
}

/** Levels of groups in each other. */
const MAX_DEPTH = 20;
/** Lookaheads at the beginning of a pattern: each is a search of its own. */
const MAX_CONDITIONS = 10;
/** Rounds of a counted repetition. The engine supports no more. */
const MAX_ROUNDS = 1_000;
/** Size of a Unicode property: it is a table of many ranges. */
const PROPERTY_SIZE = 8;

const QUANTIFIER_STARTS = new Set(["*", "+", "?", "{"]);

type Ranges = readonly (readonly [from: number, to: number])[];

const LAST = 0x10ffff;
const LINE_ENDS: Ranges = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const CLASSES: Readonly<Record<string, Ranges>> = {
  d: [[48, 57]],
  w: [
    [48, 57],
    [65, 90],
    [95, 95],
    [97, 122],
  ],
  s: [
    [9, 13],
    [32, 32],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x2028, 0x2029],
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ],
};
const CONTROLS: Readonly<Record<string, number>> = { 0: 0, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Translates a pattern. Throws `UnsupportedPattern`. */
export function toEngineSyntax(source: string): EnginePattern {
  try {
    new RegExp(source, "u");
  } catch {
    throw new UnsupportedPattern("Must be a regular expression of JavaScript with the flag `u`.");
  }
  return new Translator(source).pattern();
}

interface Part {
  source: string;
  size: number;
}

/** Reads a pattern that JavaScript accepts, from left to right. */
class Translator {
  readonly #chars: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#chars = [...source];
  }

  pattern(): EnginePattern {
    if (!this.#sees("^(?=") && !this.#sees("^(?!"))
      return { ...joined(this.#alternatives()), conditions: [] };
    this.#take("^");
    const conditions: (Part & { isNegated: boolean })[] = [];
    while (this.#sees("(?=") || this.#sees("(?!")) {
      if (conditions.length === MAX_CONDITIONS)
        throw new UnsupportedPattern(
          `Must have at most ${MAX_CONDITIONS} lookaheads. Use several schemas in allOf instead.`,
        );
      const isNegated = this.#sees("(?!");
      this.#at += "(?=".length;
      const { source, size } = this.#body();
      conditions.push({ source: `\\A${source}`, size, isNegated });
    }
    const alternatives = this.#alternatives();
    if (alternatives.length > 1)
      throw new UnsupportedPattern(
        "Must have the alternatives after a lookahead in a group, as in ^(?=a)(?:b|c).",
      );
    const { source, size } = joined(alternatives);
    const all = conditions.reduce((sum, condition) => sum + condition.size, size);
    return { source: `\\A${source}`, size: all, conditions };
  }

  /** Reads alternatives up to the end of their group. */
  #alternatives(): Part[] {
    const alternatives = [this.#sequence()];
    while (this.#take("|")) alternatives.push(this.#sequence());
    return alternatives;
  }

  #sequence(): Part {
    let source = "";
    let size = 1;
    while (this.#at < this.#chars.length && !this.#sees("|") && !this.#sees(")")) {
      const part = this.#repeated(this.#atom());
      source += part.source;
      size += part.size;
    }
    return { source, size };
  }

  #repeated({ source, size }: Part): Part {
    if (!QUANTIFIER_STARTS.has(this.#chars[this.#at] ?? "")) return { source, size };
    const isCounted = this.#sees("{");
    const end = isCounted ? this.#chars.indexOf("}", this.#at) : this.#at;
    const rest = this.#chars.slice(this.#at, end + "}?".length).join("");
    const [written = "", least, comma, most] = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(rest) ?? [];
    this.#at += written.length;
    // The engine takes a number with leading zeros for text.
    const quantifier = written.replace(/\b0+(?=\d)/g, "");
    if (least === undefined) return { source: source + quantifier, size: size + 1 };
    const rounds = Math.max(Number(least), Number(most), 1);
    if (!(rounds <= MAX_ROUNDS))
      throw new UnsupportedPattern(
        `Must repeat a part at most ${MAX_ROUNDS} times, as in a{0,${MAX_ROUNDS}}. Use maxLength for longer texts.`,
      );
    return { source: source + quantifier, size: rounds * (size + 1) + (comma === "" ? 0 : 1) };
  }

  #atom(): Part {
    if (this.#take("(")) return this.#group();
    if (this.#take("[")) return this.#class();
    if (this.#take(".")) return classOf(rangesText(LINE_ENDS), { isNegated: true });
    if (this.#take("^")) return { source: "\\A", size: 1 };
    if (this.#take("$")) return { source: "\\z", size: 1 };
    for (const boundary of ["\\b", "\\B"]) if (this.#take(boundary)) return { source: boundary, size: 1 };
    const [text, size] = this.#member();
    return classOf(text, { size });
  }

  #group(): Part {
    if (this.#take("?:")) return this.#body();
    for (const look of ["?=", "?!", "?<=", "?<!"])
      if (this.#sees(look))
        throw new UnsupportedPattern(
          "Must use lookahead only at the beginning, as in ^(?!a)b, and no lookbehind. Use two schemas in allOf instead.",
        );
    if (this.#take("?<")) while (!this.#take(">")) this.#next();
    else if (this.#sees("?"))
      throw new UnsupportedPattern("Must not change flags within a group, as in (?i:a). Write [Aa] instead.");
    return this.#body();
  }

  /** Reads the rest of a group. Groups do not capture, because only the match counts. */
  #body(): Part {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH)
      throw new UnsupportedPattern(`Must not nest groups deeper than ${MAX_DEPTH}.`);
    const body = joined(this.#alternatives());
    this.#depth -= 1;
    this.#take(")");
    return body;
  }

  #class(): Part {
    const isNegated = this.#take("^");
    let text = "";
    let size = 1;
    while (!this.#take("]")) {
      const [member, weight] = this.#take("-") ? [codeText(45), 1] : this.#member();
      text += member;
      size = Math.max(size, weight);
      if (this.#sees("-") && !this.#sees("-]")) {
        this.#next();
        text += `-${this.#member()[0]}`;
      }
    }
    return classOf(text, { isNegated, size });
  }

  /** Reads a character or a class escape; returns it as the content of a class, and its size. */
  #member(): [text: string, size: number] {
    const char = this.#next();
    if (char !== "\\") return [codeText(codeOf(char)), 1];
    const escaped = this.#next();
    const known = CLASSES[escaped.toLowerCase()];
    if (known !== undefined)
      return [rangesText(escaped === escaped.toLowerCase() ? known : complement(known)), 1];
    const control = CONTROLS[escaped];
    if (control !== undefined) return [codeText(control), 1];
    if (escaped === "k" || /[1-9]/.test(escaped))
      throw new UnsupportedPattern("Must not use a back-reference, as in \\1. Write the alternatives out.");
    if (escaped === "p" || escaped === "P") return [this.#property(escaped), PROPERTY_SIZE];
    if (escaped === "b") return [codeText(8), 1];
    if (escaped === "c") return [codeText(codeOf(this.#next()) % 32), 1];
    if (escaped === "x") return [codeText(this.#hex(2)), 1];
    return [codeText(escaped === "u" ? this.#unicode() : codeOf(escaped)), 1];
  }

  #property(letter: string): string {
    let name = "";
    for (this.#next(); !this.#take("}"); ) name += this.#next();
    return `\\${letter}{${name.replace(/^(?:Script|sc|General_Category|gc)=/, "")}}`;
  }

  #unicode(): number {
    if (this.#take("{")) {
      let digits = "";
      while (!this.#take("}")) digits += this.#next();
      return Number.parseInt(digits, 16);
    }
    const code = this.#hex(4);
    const isLead = code >= 0xd800 && code < 0xdc00;
    const rest = this.#chars.slice(this.#at, this.#at + 6).join("");
    if (!isLead || !/^\\u[dD][c-fC-F]/.test(rest)) return code;
    this.#at += 2;
    return codeOf(String.fromCharCode(code, this.#hex(4)));
  }

  #hex(digits: number): number {
    const text = this.#chars.slice(this.#at, this.#at + digits).join("");
    this.#at += digits;
    return Number.parseInt(text, 16);
  }

  #next(): string {
    const char = this.#chars[this.#at++];
    if (char === undefined) throw new UnsupportedPattern("Must be complete.");
    return char;
  }

  /** Reports whether a text of ASCII comes next. */
  #sees(text: string): boolean {
    for (let index = 0; index < text.length; index++)
      if (this.#chars[this.#at + index] !== text[index]) return false;
    return true;
  }

  #take(text: string): boolean {
    const isThere = this.#sees(text);
    if (isThere) this.#at += text.length;
    return isThere;
  }
}

function joined(alternatives: readonly Part[]): Part {
  return {
    source: `(?:${alternatives.map(({ source }) => source).join("|")})`,
    size: alternatives.reduce((sum, { size }) => sum + size + 1, 0),
  };
}

/** Writes a class. JavaScript's empty class never matches. The engine has no empty class. */
function classOf(text: string, { isNegated = false, size = 1 } = {}): Part {
  const isEmpty = text === "";
  const content = isEmpty ? rangesText([[0, LAST]]) : text;
  return { source: `[${isNegated === isEmpty ? "" : "^"}${content}]`, size };
}

function rangesText(ranges: Ranges): string {
  return ranges.map(([from, to]) => `${codeText(from)}-${codeText(to)}`).join("");
}

function codeText(code: number): string {
  return `\\x{${code.toString(16)}}`;
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}

function complement(ranges: Ranges): Ranges {
  const edges = [0, ...ranges.flatMap(([from, to]) => [from - 1, to + 1]), LAST];
  return ranges.concat([[0, 0]]).map((_, index) => [edges[2 * index] ?? 0, edges[2 * index + 1] ?? LAST]);
}
