/**
 * Regular expressions of JavaScript with the flag `u`, as trees. Pure. Expects a valid expression; does not check the
 * syntax again.
 */
import { ANY, type CharSet, CLASSES, complement, EVERYTHING, union } from "./char-set.ts";

export type Pattern =
  | { type: "chars"; set: CharSet }
  /** Tests the position and consumes nothing: `\b`, `\B`. */
  | { type: "place" }
  | { type: "start" }
  | { type: "end" }
  /** Lookahead, positive or negative. */
  | { type: "look"; body: Pattern }
  | { type: "sequence"; items: Pattern[] }
  | { type: "choice"; items: Pattern[] }
  | { type: "repeat"; body: Pattern; min: number; max: number };

/** Refuses a pattern or schema whose work has no known bound. For a pattern, the message names the part. */
export class UnboundedPattern extends Error {}

/** Limit of nested groups. */
const MAX_DEPTH = 20;

/**
 * Parses a pattern. Throws `UnboundedPattern` for back-references, lookbehind, flag modifiers, and groups nested deeper than
 * `MAX_DEPTH`.
 */
export function parsePattern(source: string): Pattern {
  return new Reader([...source]).choice();
}

const CONTROLS: ReadonlyMap<string, number> = new Map([
  ["n", 10],
  ["r", 13],
  ["t", 9],
  ["v", 11],
  ["f", 12],
  ["0", 0],
]);

class Reader {
  #at = 0;
  #depth = 0;

  constructor(private readonly chars: readonly string[]) {}

  choice(): Pattern {
    const items = [this.#sequence()];
    while (this.#take("|")) items.push(this.#sequence());
    const [only] = items;
    return items.length === 1 && only !== undefined ? only : { type: "choice", items };
  }

  #sequence(): Pattern {
    const items: Pattern[] = [];
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek())
      items.push(this.#repeated(this.#atom()));
    return { type: "sequence", items };
  }

  #repeated(body: Pattern): Pattern {
    const range = this.#range();
    if (range === null) return body;
    this.#take("?");
    return { type: "repeat", body, ...range };
  }

  #range(): { min: number; max: number } | null {
    if (this.#take("*")) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take("+")) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take("?")) return { min: 0, max: 1 };
    if (!this.#take("{")) return null;
    const [least = "", most = least] = this.#until("}").split(",");
    return { min: Number(least), max: most === "" ? Number.POSITIVE_INFINITY : Number(most) };
  }

  #atom(): Pattern {
    const char = this.#next();
    if (char === "(") return this.#group();
    if (char === "[") return { type: "chars", set: this.#class() };
    if (char === ".") return { type: "chars", set: ANY };
    if (char === "^") return { type: "start" };
    if (char === "$") return { type: "end" };
    if (char !== "\\") return { type: "chars", set: one(codeOf(char)) };
    if (this.#take("b") || this.#take("B")) return { type: "place" };
    return { type: "chars", set: this.#escape() };
  }

  #group(): Pattern {
    const isLook = this.#take("?=") || this.#take("?!");
    if (this.#take("?<=") || this.#take("?<!"))
      throw new UnboundedPattern("Must not use lookbehind, as in (?<=a).");
    if (this.#take("?<")) this.#until(">");
    else if (!isLook && !this.#take("?:") && this.#peek() === "?")
      throw new UnboundedPattern("Must not change flags within a group, as in (?i:a).");
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new UnboundedPattern(`Must not nest groups deeper than ${MAX_DEPTH}.`);
    const body = this.choice();
    this.#depth -= 1;
    this.#next();
    return isLook ? { type: "look", body } : body;
  }

  #class(): CharSet {
    const isNegated = this.#take("^");
    const sets: CharSet[] = [];
    while (!this.#take("]")) {
      const from = this.#member();
      if (this.#peek() !== "-" || this.#peek(1) === "]") sets.push(from);
      else {
        this.#next();
        sets.push([[from[0]?.[0] ?? 0, this.#member()[0]?.[0] ?? 0]]);
      }
    }
    const set = union(...sets);
    return isNegated ? complement(set) : set;
  }

  #member(): CharSet {
    const char = this.#next();
    if (char !== "\\") return one(codeOf(char));
    return this.#take("b") ? one(8) : this.#escape();
  }

  /** Reads the characters after a backslash. */
  #escape(): CharSet {
    const char = this.#next();
    const known = CLASSES.get(char);
    if (known !== undefined) return known;
    const control = CONTROLS.get(char);
    if (control !== undefined) return one(control);
    if (char === "k" || /[1-9]/.test(char))
      throw new UnboundedPattern("Must not use a back-reference, as in \\1.");
    if (char === "p" || char === "P") {
      this.#until("}");
      return EVERYTHING;
    }
    if (char === "c") return one(codeOf(this.#next()) % 32);
    if (char === "x") return one(this.#hex(2));
    return one(char === "u" ? this.#unicode() : codeOf(char));
  }

  #unicode(): number {
    if (this.#take("{")) return Number.parseInt(this.#until("}"), 16);
    const code = this.#hex(4);
    const isLead = code >= 0xd800 && code < 0xdc00;
    const rest = this.chars.slice(this.#at, this.#at + 6).join("");
    if (!isLead || !/^\\u[dD][c-fC-F]/.test(rest)) return code;
    this.#at += 2;
    return codeOf(String.fromCharCode(code, this.#hex(4)));
  }

  #hex(digits: number): number {
    const text = this.chars.slice(this.#at, this.#at + digits).join("");
    this.#at += digits;
    return Number.parseInt(text, 16);
  }

  #peek(ahead = 0): string | undefined {
    return this.chars[this.#at + ahead];
  }

  #next(): string {
    return this.chars[this.#at++] ?? "";
  }

  #take(text: string): boolean {
    if (![...text].every((char, index) => this.#peek(index) === char)) return false;
    this.#at += text.length;
    return true;
  }

  /** Returns the text before `end` and consumes `end`. */
  #until(end: string): string {
    let text = "";
    for (let char = this.#next(); char !== end && char !== ""; char = this.#next()) text += char;
    return text;
  }
}

function one(code: number): CharSet {
  return [[code, code]];
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}
