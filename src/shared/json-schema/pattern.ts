/**
 * Regular expressions from outside, on an engine without backtracking. Pure.
 *
 * PATTERN-1  A match takes at most `size` steps per character, plus some per search, for any pattern and text. A pattern that the engine
 *            cannot match in this way is refused, and the message says how to change it.
 * PATTERN-2  Compiling takes at most the steps of a budget. Each part is charged before it is compiled. The schemas of one request share a
 *            budget, equal patterns count once, and a pattern in memory is not compiled again.
 */
import { RE2JS } from "re2js";
import { errorText } from "../errors.ts";
import { WeakValues } from "../weak-values.ts";
import { Meter } from "./meter.ts";
import { toEngineSyntax, UnsupportedPattern } from "./pattern-syntax.ts";

const MAX_LENGTH = 500;
const MAX_SIZE = 1_500;

/** Limit of the steps of compiling a request's patterns: about 50 milliseconds. */
const MAX_COMPILE_STEPS = 1_000_000;
/** Steps for each character of a pattern, and for each part of its programs. */
const [STEPS_OF_CHARACTER, STEPS_OF_PART] = [15, 20];
/** Steps for each program, and for each character of it in the engine's syntax. */
const [STEPS_OF_PROGRAM, STEPS_OF_ENGINE_CHARACTER] = [1_000, 8];
/** Steps for a property of Unicode, which has up to 700 ranges, and for another escape, which has up to 11. */
const [STEPS_OF_PROPERTY, STEPS_OF_ESCAPE] = [5_000, 250];

/** Steps of a search for any text, because the engine prepares each search. */
const STEPS_OF_SEARCH = 30;

/** Patterns that are remembered while a schema holds them. */
const MAX_REMEMBERED = 10_000;

export interface Pattern {
  readonly source: string;
  /** Most steps per character of a text. */
  readonly size: number;
  /** Most searches of a text: one per condition, and one more. */
  readonly searches: number;
  readonly compileSteps: number;
  /** Reports whether the pattern matches a part of the text, as `RegExp.test` does. */
  test(text: string): boolean;
}

export function stepsOfMatch({ size, searches }: Pattern, text: string): number {
  return searches * STEPS_OF_SEARCH + size * (text.length + 1);
}

const compiledPatterns = new WeakValues<string, Pattern>(MAX_REMEMBERED);

export class Patterns {
  readonly #known = new Map<string, Pattern>();
  readonly #meter: Meter;

  constructor(steps = MAX_COMPILE_STEPS) {
    this.#meter = new Meter(steps);
  }

  /** The steps that were taken. */
  get spent(): number {
    return this.#meter.spent;
  }

  /** Compiles a pattern of JavaScript. Throws `UnsupportedPattern`, and `Spent` if its steps are not left. */
  compile(source: string): Pattern {
    const known = this.#known.get(source);
    if (known !== undefined) return known;
    const pattern = compile(source, this.#meter);
    this.#known.set(source, pattern);
    return pattern;
  }
}

function compile(source: string, meter: Meter): Pattern {
  if (source.length > MAX_LENGTH) throw new UnsupportedPattern(`Must have at most ${MAX_LENGTH} characters.`);
  meter.spend(stepsOfReading(source));
  const found = compiledPatterns.get(source);
  if (found !== undefined) {
    meter.spend(found.compileSteps);
    return found;
  }
  const { source: translated, size, conditions } = toEngineSyntax(source);
  if (size > MAX_SIZE)
    throw new UnsupportedPattern(
      `Must have at most ${MAX_SIZE} parts with its counted repetitions written out. It has ${size}.`,
    );
  const searches = 1 + conditions.length;
  const length = conditions.reduce((sum, condition) => sum + condition.source.length, translated.length);
  const compileSteps =
    size * STEPS_OF_PART + searches * STEPS_OF_PROGRAM + length * STEPS_OF_ENGINE_CHARACTER;
  meter.spend(compileSteps);
  const matcher = compiled(translated);
  const checks = conditions.map((condition) => ({ ...condition, matcher: compiled(condition.source) }));
  const pattern: Pattern = {
    source,
    size,
    searches,
    compileSteps,
    test: (text) =>
      checks.every((check) => finds(check.matcher, text) !== check.isNegated) && finds(matcher, text),
  };
  compiledPatterns.set(source, pattern);
  return pattern;
}

/** Returns the steps of reading a pattern twice: the platform checks it, and the engine builds its classes. */
function stepsOfReading(source: string): number {
  let steps = source.length * STEPS_OF_CHARACTER;
  for (const [text] of source.matchAll(/\\[pPdDsSwW]/g))
    steps += /[pP]/.test(text) ? STEPS_OF_PROPERTY : STEPS_OF_ESCAPE;
  return steps;
}

function compiled(source: string): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    const detail = errorText(error);
    throw new UnsupportedPattern(
      `Is not supported: ${detail}. Write categories and scripts as in \\p{L}, \\p{Lu} and \\p{Script=Greek}.`,
    );
  }
}

/** Searches without the engine's automaton of states, which would keep megabytes of them for a hostile pattern. */
function finds(matcher: RE2JS, text: string): boolean {
  return matcher.matcher(text).find();
}
