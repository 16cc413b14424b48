/**
 * Measures JSON text in one pass, before it is parsed, because a small text may need much memory. Pure.
 *
 * JSON-1  Text from outside is parsed only if it has at most `MAX_VALUES` values, its nesting is within its reader's limit, and its whole
 *         numbers in quotes do not collide. So parsing it, and one pass over its value, takes milliseconds.
 * JSON-2  A copy of a text's value takes little memory. The engine may keep members with the names of small whole numbers in a table with a
 *         place for each number up to the largest. So the objects of a text have at most `MAX_EMPTY_PLACES` empty places.
 */

/** Maximum number of values in a text: members, items and containers. */
export const MAX_VALUES = 50_000;

/** Levels of nesting that a reader of model output takes: arguments of 64 levels, within the provider's own levels. */
export const MAX_REPLY_DEPTH = 128;

/** Maximum number of pairs of colliding names and texts. Each pair costs a set or a map some nanoseconds. */
const MAX_COLLISIONS = 2_000_000;
/** Number of groups that whole numbers are sorted into, by their last bits: the engine's hash of such a text is its number. */
const GROUPS = 1_024;
/** Number of places for numbers seen before. A repeated number does not collide. */
const SEEN = 4_096;

/** Maximum number of empty places in the tables of a text's objects, of 8 bytes each. */
const MAX_EMPTY_PLACES = 500_000;
/** Places for each member that do not count as empty: the engine reserves some for more members. */
const FREE_PLACES = 16;
/** The engine makes no table for numbers from `MAX_TABLE` on, or for a first number from `MAX_START` on. */
const [MAX_TABLE, MAX_START] = [5_000, 1_024];

const [QUOTE, COMMA, COLON, BACKSLASH] = [34, 44, 58, 92];
const [LIST, LIST_END, OBJECT, OBJECT_END] = [91, 93, 123, 125];
/** A text of up to 16 digits, escaped or not. */
const WHOLE_NUMBER = /^(?:[0-9]|\\u003[0-9]){1,16}$/;

/** The first limit that a text exceeds. `what` completes a sentence that begins with the text's name. */
export interface ShapeProblem {
  code: "INVALID_JSON" | "TOO_LARGE";
  what: string;
}

/** Returns the problem of a text's shape, or `null`. Accepts text that is not JSON. */
export function shapeProblem(text: string, maxDepth: number): ShapeProblem | null {
  // Created for the first number: most texts have no numbers, and a stream has many pieces.
  let collisions: Collisions | undefined;
  let tables: Tables | undefined;
  let values = 0;
  let strings = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at + 1);
      strings += 1;
      const number = wholeNumber(text, at + 1, end);
      if (number !== null) {
        collisions ??= new Collisions();
        if (collisions.exceedLimit(Number(number))) return tooLarge("names or texts that are whole numbers");
        if (number === String(Number(number)) && isName(text, end + 1)) {
          tables ??= new Tables();
          tables.add(depth, Number(number));
        }
      }
      at = end;
    } else if (code === COMMA) values += 1;
    else if (code === LIST || code === OBJECT) {
      values += 1;
      depth += 1;
      if (depth > maxDepth) return { code: "INVALID_JSON", what: `nests deeper than ${maxDepth} levels` };
    } else if (code === LIST_END || code === OBJECT_END) {
      if (tables?.exceedLimit(depth))
        return tooLarge('objects with few members and whole numbers as names, such as {"1000": 0}');
      depth -= 1;
    }
    // In JSON, each value has at most two texts: its name and itself.
    if (values > MAX_VALUES || strings > 2 * MAX_VALUES) return tooLarge(`values: at most ${MAX_VALUES}`);
  }
  return null;
}

function tooLarge(what: string): ShapeProblem {
  return { code: "TOO_LARGE", what: `has too many ${what}` };
}

/** Returns the place of the quote that ends a string, or the end of the text. Reads each character once. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start);
  if (end > start && text.charCodeAt(end - 1) === BACKSLASH) end = endOfEscaped(text, start);
  return end === -1 ? text.length : end;
}

function endOfEscaped(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return -1;
}

/** Reports whether a colon follows, which makes a string the name of a member. */
function isName(text: string, end: number): boolean {
  let at = end;
  while (text.charCodeAt(at) <= 32) at += 1;
  return text.charCodeAt(at) === COLON;
}

/** Returns the digits of the whole number that a string is; `null` for another string. */
function wholeNumber(text: string, start: number, end: number): string | null {
  const first = text.charCodeAt(start);
  const mayBeNumber = (first >= 48 && first <= 57) || first === BACKSLASH;
  if (!mayBeNumber || end - start > 16 * 6) return null;
  const raw = text.slice(start, end);
  return WHOLE_NUMBER.test(raw) ? raw.replaceAll("\\u003", "") : null;
}

/** Counts the empty places of objects with integer names of members. */
class Tables {
  /** The numbers of the open objects, by their depth. */
  readonly #open: (number[] | undefined)[] = [];
  #empty = 0;

  add(depth: number, number: number): void {
    if (number >= MAX_TABLE) return;
    this.#open[depth] ??= [];
    this.#open[depth].push(number);
  }

  /** Counts the places of the object that ends at a depth; reports whether there are too many. */
  exceedLimit(depth: number): boolean {
    const numbers = this.#open[depth] ?? [];
    this.#open[depth] = undefined;
    if (numbers.some((number) => number < MAX_START)) {
      const largest = numbers.reduce((one, other) => Math.max(one, other));
      this.#empty += Math.max(0, largest - FREE_PLACES * numbers.length);
    }
    return this.#empty > MAX_EMPTY_PLACES;
  }
}

/** Counts the pairs of whole numbers that end with the same bits. */
class Collisions {
  readonly #groups = new Uint32Array(GROUPS);
  readonly #seen = new Float64Array(SEEN);
  #pairs = 0;

  /** Counts a number; reports whether there are too many pairs. */
  exceedLimit(value: number): boolean {
    const place = (Math.imul(value % 0x7fffffff, 0x9e3779b1) >>> 20) % SEEN;
    if (this.#seen[place] === value + 1) return false;
    this.#seen[place] = value + 1;
    const group = value % GROUPS;
    this.#pairs += this.#groups[group] ?? 0;
    this.#groups[group] = (this.#groups[group] ?? 0) + 1;
    return this.#pairs > MAX_COLLISIONS;
  }
}
