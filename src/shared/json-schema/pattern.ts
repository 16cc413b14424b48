/**
 * Regular expressions from outside, on an engine without backtracking. Pure.
 *
 * PATTERN-1  A match takes at most `size` steps for each character of the text, whatever the pattern and the text are. A
 *            pattern that the engine cannot match in this way is refused, and the message says what to change.
 */
import { RE2JS } from "re2js";
import { toEngineSyntax, UnsupportedPattern } from "./pattern-syntax.ts";

/** Limit of the characters of a pattern. */
const MAX_LENGTH = 500;
/** Limit of the size of a pattern. */
const MAX_SIZE = 1_500;

/** A compiled pattern. */
export interface Pattern {
  /** Steps for each character of a text, at most. */
  readonly size: number;
  /** Reports whether the pattern matches a part of the text, as `RegExp.test` does. */
  test(text: string): boolean;
}

/** Compiles a pattern of JavaScript. Throws `UnsupportedPattern`. */
export function compilePattern(source: string): Pattern {
  if (source.length > MAX_LENGTH) throw new UnsupportedPattern(`Must have at most ${MAX_LENGTH} characters.`);
  const { source: translated, size, conditions } = toEngineSyntax(source);
  if (size > MAX_SIZE)
    throw new UnsupportedPattern(
      `Must have at most ${MAX_SIZE} parts with its counted repetitions written out. It has ${size}.`,
    );
  const matcher = compiled(translated);
  const checks = conditions.map((condition) => ({ ...condition, matcher: compiled(condition.source) }));
  return {
    size,
    test: (text) =>
      checks.every((check) => finds(check.matcher, text) !== check.isNegated) && finds(matcher, text),
  };
}

function compiled(source: string): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new UnsupportedPattern(
      `Is not supported: ${detail}. Write categories and scripts as in \\p{L}, \\p{Lu} and \\p{Script=Greek}.`,
    );
  }
}

/** Searches without the engine's automaton of states, which would keep megabytes of them for a hostile pattern. */
function finds(matcher: RE2JS, text: string): boolean {
  return matcher.matcher(text).find();
}
