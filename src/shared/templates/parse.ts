/** Parses Liquid with its library. The library does not run templates here, because its run time and its function calls have no budget. */
import {
  Liquid,
  LiquidError,
  Parser,
  type Template,
  Tokenizer,
  type TopLevelToken,
  TypeGuards,
} from "liquidjs";
import { ExpressionError, spendText } from "../expressions/values.ts";
import type { Meter } from "../json-schema/meter.ts";
import { shorten } from "../text.ts";
import { FILTERS } from "./filters.ts";
import {
  MAX_TEMPLATE_CODE,
  MAX_TEMPLATE_DEPTH,
  MAX_TEMPLATE_LENGTH,
  MAX_TEMPLATE_TAGS,
  STEPS_OF_CODE_CHARACTER,
  STEPS_OF_TAG,
} from "./template-limits.ts";

/** The tags with content, and the standalone tags. */
const BLOCKS = new Set(["if", "unless", "case", "for", "capture", "comment", "raw"]);
const TAGS = new Set([...BLOCKS, "assign", "break", "continue", "#"]);
/** Length of a message about a template, which may repeat parts of it. */
const MAX_MESSAGE = 300;

const engine = new Liquid({ strictFilters: true });
for (const name of Object.keys(engine.tags)) if (!TAGS.has(name)) delete engine.tags[name];
for (const name of Object.keys(engine.filters)) engine.unregisterFilter(name);
// The parser only looks whether a filter is there.
for (const name of Object.keys(FILTERS)) engine.registerFilter(name, () => undefined);

/** Returns the parts of a template, or the text if it has no tags and outputs. Throws `ExpressionError`, and `Spent`. */
export function parse(source: string, meter: Meter): string | Template[] {
  if (source.length > MAX_TEMPLATE_LENGTH)
    throw syntax(`Must have at most ${MAX_TEMPLATE_LENGTH} characters.`);
  spendText(meter, source.length);
  if (!/\{[{%]/.test(source)) return source;
  meter.spend(source.length);
  try {
    const tokens = new Tokenizer(source).readTopLevelTokens(engine.options);
    checkSize(tokens, meter);
    return new Parser(engine).parseTokens(tokens);
  } catch (error) {
    throw asSyntaxError(error);
  }
}

function checkSize(tokens: readonly TopLevelToken[], meter: Meter): void {
  let [length, count, depth] = [0, 0, 0];
  for (const token of tokens) {
    if (TypeGuards.isHTMLToken(token)) continue;
    length += token.end - token.begin;
    count += 1;
    if (!TypeGuards.isTagToken(token)) continue;
    if (BLOCKS.has(token.name)) depth += 1;
    else if (token.name.startsWith("end")) depth -= 1;
    if (depth > MAX_TEMPLATE_DEPTH) throw tooDeep();
  }
  if (count > MAX_TEMPLATE_TAGS)
    throw syntax(`Must have at most ${MAX_TEMPLATE_TAGS} tags and outputs. It has ${count}.`);
  if (length > MAX_TEMPLATE_CODE)
    throw syntax(
      `The tags and outputs must have at most ${MAX_TEMPLATE_CODE} characters. They have ${length}.`,
    );
  meter.spend(length * STEPS_OF_CODE_CHARACTER + count * STEPS_OF_TAG);
}

export function tooDeep(): ExpressionError {
  return syntax(`Nests more than ${MAX_TEMPLATE_DEPTH} levels deep.`);
}

export function syntax(message: string): ExpressionError {
  return new ExpressionError("Syntax", message);
}

function asSyntaxError(error: unknown): unknown {
  if (error instanceof RangeError) return tooDeep();
  if (!LiquidError.is(error)) return error;
  if (error.originalError instanceof RangeError) return tooDeep();
  return syntax(`${shorten(error.message, MAX_MESSAGE)}.`);
}
