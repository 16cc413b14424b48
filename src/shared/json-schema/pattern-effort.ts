/**
 * Estimates the steps of a backtracking engine at a regular expression. Pure.
 *
 * PATTERN-1  The estimate is an upper bound for every text, up to a constant factor. A pattern whose steps grow exponentially
 *            with the length of the text is refused.
 *
 * Counts the ways to match. A repetition is ambiguous if its body and the text after it can begin with the same character.
 * Repeating an ambiguous part grows exponentially.
 */
import { type CharSet, NOTHING, overlap, union } from "./char-set.ts";
import { type Pattern, parsePattern, UnboundedPattern } from "./pattern.ts";

/** Limit of the characters of a pattern. */
const MAX_LENGTH = 500;
/** Limit of the characters of a pattern with its counted repetitions written out. */
const MAX_SIZE = 10_000;
/** Length of the text for which a pattern is judged when it is defined. */
const USUAL_LENGTH = 32;
/** Limit of the steps at such a text. */
const MAX_USUAL_STEPS = 20_000_000;

/** Describes the problem of a pattern; `null` if it has none. */
export function patternProblem(source: unknown): string | null {
  if (typeof source !== "string") return "Must be a string.";
  if (source.length > MAX_LENGTH) return `Must have at most ${MAX_LENGTH} characters.`;
  try {
    new RegExp(source, "u");
  } catch {
    return "Must be a regular expression of JavaScript with the flag `u`.";
  }
  try {
    if (patternSteps(source, USUAL_LENGTH) <= MAX_USUAL_STEPS) return null;
    return "Can match the same text in too many ways. Begin neighbouring repetitions with different characters.";
  } catch (error) {
    if (error instanceof UnboundedPattern) return error.message;
    throw error;
  }
}

const parsed = new Map<string, Pattern>();
const MAX_PARSED = 200;

/** Estimates the steps at a text of `length` characters. Throws `UnboundedPattern`, or `SyntaxError` for an invalid pattern. */
export function patternSteps(source: string, length: number): number {
  const pattern = parsed.get(source) ?? checkedPattern(source);
  if (parsed.size >= MAX_PARSED) parsed.clear();
  parsed.set(source, pattern);
  const { work } = waysAndWork(pattern, NOTHING, length + 1);
  return isAnchored(pattern) ? work : work * (length + 1);
}

function checkedPattern(source: string): Pattern {
  if (source.length > MAX_LENGTH) throw new UnboundedPattern(`Must have at most ${MAX_LENGTH} characters.`);
  new RegExp(source, "u");
  const pattern = parsePattern(source);
  if (sizeOf(pattern) <= MAX_SIZE) return pattern;
  throw new UnboundedPattern(
    `Must have at most ${MAX_SIZE} characters with its counted repetitions written out.`,
  );
}

/**
 * Counts the `ways` to match, and the `work` of trying all of them. `next` holds the characters that may follow; `most` limits
 * the rounds of a repetition.
 */
function waysAndWork(pattern: Pattern, next: CharSet, most: number): { ways: number; work: number } {
  switch (pattern.type) {
    case "chars":
    case "place":
    case "start":
    case "end":
      return { ways: 1, work: 1 };
    case "look":
      return { ways: 1, work: waysAndWork(pattern.body, NOTHING, most).work };
    case "sequence": {
      const followers = followersOf(pattern.items, next);
      return pattern.items.reduce(
        (sum, item, index) => {
          const { ways, work } = waysAndWork(item, followers[index] ?? next, most);
          return { ways: sum.ways * ways, work: sum.work + sum.ways * work };
        },
        { ways: 1, work: 1 },
      );
    }
    case "choice": {
      const efforts = pattern.items.map((item) => waysAndWork(item, next, most));
      const beginnings = pattern.items.map((item) => beginningOf(item, next));
      const isClear = beginnings.every((one, index) =>
        beginnings.slice(index + 1).every((other) => areApart(one, other)),
      );
      const ways = efforts.map((effort) => effort.ways);
      return {
        ways: isClear ? Math.max(...ways) : ways.reduce((sum, count) => sum + count, 0),
        work: efforts.reduce((sum, { work }) => sum + work, 1),
      };
    }
    case "repeat":
      return repetition(pattern, next, most);
    default:
      return pattern satisfies never;
  }
}

function repetition(
  { body, min, max }: Extract<Pattern, { type: "repeat" }>,
  next: CharSet,
  most: number,
): { ways: number; work: number } {
  const { set, isOptional } = firstOf(body);
  const inner = waysAndWork(body, max > 1 ? union(set, next) : next, most);
  const isClear = !isOptional && !overlap(set, next);
  if (max !== Number.POSITIVE_INFINITY) {
    const ends = isClear ? 1 : max - min + 1;
    const ways = ends * inner.ways ** max;
    return { ways, work: 1 + inner.work * (inner.ways === 1 ? Math.max(1, max) : ways) };
  }
  if (inner.ways > 1 || widthOf(body) === 0) {
    throw new UnboundedPattern(
      "Unlimited repetition of an ambiguous part, as in (a+)*. Begin each repetition with a character that the rest of it cannot match.",
    );
  }
  // All rounds together consume each character once; a lookahead reads ahead again in every round.
  const round = looksAhead(body) ? inner.work : sizeOf(body);
  return { ways: isClear ? 1 : most, work: 1 + round * Math.max(most, min) };
}

/** Returns the characters that may follow each of the items. */
function followersOf(items: readonly Pattern[], next: CharSet): CharSet[] {
  const followers: CharSet[] = [];
  let follower = next;
  for (const item of items.toReversed()) {
    followers.unshift(follower);
    const { set, isOptional } = firstOf(item);
    follower = isOptional ? union(set, follower) : set;
  }
  return followers;
}

/** Returns the possible first characters; `isOptional` if the pattern may consume none. Nothing follows an end. */
function firstOf(pattern: Pattern): { set: CharSet; isOptional: boolean } {
  switch (pattern.type) {
    case "chars":
      return { set: pattern.set, isOptional: false };
    case "place":
    case "start":
    case "look":
      return { set: NOTHING, isOptional: true };
    case "end":
      return { set: NOTHING, isOptional: false };
    case "sequence": {
      const sets: CharSet[] = [];
      for (const item of pattern.items) {
        const { set, isOptional } = firstOf(item);
        sets.push(set);
        if (!isOptional) return { set: union(...sets), isOptional: false };
      }
      return { set: union(...sets), isOptional: true };
    }
    case "choice": {
      const firsts = pattern.items.map(firstOf);
      return {
        set: union(...firsts.map(({ set }) => set)),
        isOptional: firsts.some(({ isOptional }) => isOptional),
      };
    }
    case "repeat": {
      const { set, isOptional } = firstOf(pattern.body);
      return { set, isOptional: isOptional || pattern.min === 0 };
    }
    default:
      return pattern satisfies never;
  }
}

/**
 * Returns the possible first characters, position by position while they are fixed. Includes the following characters if the
 * whole item is fixed.
 */
function beginningOf(pattern: Pattern, next: CharSet): CharSet[] {
  const items = pattern.type === "sequence" ? pattern.items : [pattern];
  const sets: CharSet[] = [];
  for (const [index, item] of items.entries()) {
    if (item.type === "chars") sets.push(item.set);
    else {
      const { set, isOptional } = firstOf({ type: "sequence", items: items.slice(index) });
      return [...sets, isOptional ? union(set, next) : set];
    }
  }
  return [...sets, next];
}

/** Reports whether the two alternatives can never begin with the same text. */
function areApart(one: readonly CharSet[], other: readonly CharSet[]): boolean {
  return one.some((set, index) => {
    const beside = other[index];
    return beside !== undefined && !overlap(set, beside);
  });
}

/** Returns the least number of characters that the pattern consumes. */
function widthOf(pattern: Pattern): number {
  switch (pattern.type) {
    case "chars":
      return 1;
    case "sequence":
      return pattern.items.reduce((sum, item) => sum + widthOf(item), 0);
    case "choice":
      return Math.min(...pattern.items.map(widthOf));
    case "repeat":
      return pattern.min * widthOf(pattern.body);
    default:
      return 0;
  }
}

function looksAhead(pattern: Pattern): boolean {
  if (pattern.type === "look") return true;
  if (pattern.type === "repeat") return looksAhead(pattern.body);
  return (pattern.type === "sequence" || pattern.type === "choice") && pattern.items.some(looksAhead);
}

/** Returns the length of the pattern with counted repetitions written out. */
function sizeOf(pattern: Pattern): number {
  switch (pattern.type) {
    case "look":
      return 1 + sizeOf(pattern.body);
    case "sequence":
    case "choice":
      return pattern.items.reduce((sum, item) => sum + sizeOf(item), 1);
    case "repeat": {
      const { body, min, max } = pattern;
      return 1 + sizeOf(body) * Math.max(1, min, max === Number.POSITIVE_INFINITY ? 0 : max);
    }
    default:
      return 1;
  }
}

function isAnchored(pattern: Pattern): boolean {
  if (pattern.type === "start") return true;
  if (pattern.type === "choice") return pattern.items.every(isAnchored);
  return pattern.type === "sequence" && pattern.items[0] !== undefined && isAnchored(pattern.items[0]);
}
