/**
 * Liquid templates over JSON. A library parses them. They are compiled to functions here, because a hostile template must terminate. Pure.
 *
 * TEMPLATE-1  A text without tags and outputs renders as itself. Values are plain text and are not escaped. A missing value is empty, the
 *             items of a list are concatenated, and a map is JSON.
 * TEMPLATE-2  A template reads own members only, and never `__proto__`, `constructor` and `prototype`. Values are never templates.
 * TEMPLATE-3  A template has the tags `if`, `unless`, `case`, `for`, `break`, `continue`, `assign`, `capture`, `comment`, `raw` and `#`,
 *             and filters without access to clock, chance or files. Any other tag or filter is an error.
 * TEMPLATE-4  Each step of rendering is charged to a budget before it runs. Rendering ends when the budget is used up, for any template and
 *             values. The rendered text has at most `MAX_RENDERED_LENGTH` characters.
 * TEMPLATE-5  `templateIssues` finds every error that does not depend on values: syntax, names, counts of arguments, size and nesting.
 */
import {
  AssignTag,
  BreakTag,
  CaptureTag,
  CaseTag,
  ContinueTag,
  ForTag,
  type Hash,
  IfTag,
  Output,
  RawTag,
  type Template,
  TypeGuards,
  UnlessTag,
} from "liquidjs";
import type { InputIssue } from "../errors.ts";
import { checkName, ExpressionError, type Value } from "../expressions/values.ts";
import type { JsonObject } from "../json.ts";
import { Meter, Spent } from "../json-schema/meter.ts";
import { compileEquality, compileToken, compileValue, type Frame, type Names } from "./expressions.ts";
import { parse, syntax, tooDeep } from "./parse.ts";
import { MAX_RENDERED_LENGTH, MAX_TEMPLATE_DEPTH } from "./template-limits.ts";
import { isTrue, itemsOf, numberOf, spendMade, textOf } from "./values.ts";

/** Writes a part of a template. Reports a `break` or a `continue` for the loop around it. */
type Block = (frame: Frame) => "break" | "continue" | undefined;

/** Steps of compiling the templates of one definition. No single template within the limits needs them. */
const COMPILE_STEPS = 250_000;

export function templateBudget(): Meter {
  return new Meter(COMPILE_STEPS);
}

/** Returns the problems of a template, with `base` as their path. The templates of one definition share `meter`. */
export function templateIssues(source: string, base = "", meter = templateBudget()): InputIssue[] {
  try {
    compile(source, meter);
    return [];
  } catch (error) {
    if (error instanceof Spent)
      return [
        {
          path: base,
          message:
            "Is too complex to compile together with the definition's other templates: use fewer tags and outputs, or move steps into another task.",
        },
      ];
    if (!(error instanceof ExpressionError)) throw error;
    return [{ path: base, message: error.message }];
  }
}

/**
 * Returns the text of a template with these values. Throws `ExpressionError`, and `Spent` if the steps are used up.
 * @example render("Hello {{ user.name }}", { user: { name: "Ann" } }, meter); // "Hello Ann"
 */
export function render(source: string, values: JsonObject, meter: Meter): string {
  const block = compile(source, meter);
  const frame: Frame = { values, meter, assigned: new Map(), loops: [], text: "", written: 0 };
  block(frame);
  return frame.text.toWellFormed();
}

function compile(source: string, meter: Meter): Block {
  const parsed = parse(source, meter);
  return typeof parsed === "string" ? writing(parsed) : compileAll(parsed, [], MAX_TEMPLATE_DEPTH + 1);
}

function compileAll(templates: readonly Template[], names: Names, depth: number): Block {
  if (depth === 0) throw tooDeep();
  const blocks = templates.map((template) => compileOne(template, names, depth - 1));
  return (frame) => {
    for (const block of blocks) {
      frame.meter.spend(1);
      const flow = block(frame);
      if (flow !== undefined) return flow;
    }
    return undefined;
  };
}

function compileOne(template: Template, names: Names, depth: number): Block {
  const { token } = template;
  if (TypeGuards.isHTMLToken(token)) return writing(token.getContent());
  if (template instanceof Output) {
    const value = compileValue(template.value, names);
    return (frame) => write(textOf(value(frame), frame.meter), frame);
  }
  if (template instanceof RawTag) return writing(template.render());
  if (template instanceof AssignTag) return compileAssign(template, names);
  if (template instanceof CaptureTag) return compileCapture(template, names, depth);
  if (template instanceof IfTag || template instanceof UnlessTag) return compileIf(template, names, depth);
  if (template instanceof CaseTag) return compileCase(template, names, depth);
  if (template instanceof ForTag) return compileFor(template, names, depth);
  if (template instanceof BreakTag) return () => "break";
  if (template instanceof ContinueTag) return () => "continue";
  // A comment.
  return () => undefined;
}

function writing(text: string): Block {
  return (frame) => write(text, frame);
}

function write(text: string, frame: Frame): undefined {
  frame.written += text.length;
  if (frame.written > MAX_RENDERED_LENGTH)
    throw new ExpressionError("Range", `The text would have more than ${MAX_RENDERED_LENGTH} characters.`);
  spendMade(frame.meter, text.length);
  frame.text += text;
}

function compileAssign(tag: AssignTag, names: Names): Block {
  const [variable] = tag.localScope();
  const [value] = tag.arguments();
  if (variable === undefined || value === undefined || !("initial" in value))
    throw syntax("assign needs a name and a value.");
  const name = checkName(variable.content);
  const part = compileValue(value, names);
  return (frame) => void frame.assigned.set(name, part(frame));
}

function compileCapture({ variable, templates }: CaptureTag, names: Names, depth: number): Block {
  const name = checkName(variable);
  const block = compileAll(templates, names, depth);
  return (frame) => {
    const before = frame.text;
    frame.text = "";
    const flow = block(frame);
    frame.assigned.set(name, frame.text);
    frame.text = before;
    return flow;
  };
}

function compileIf(tag: IfTag | UnlessTag, names: Names, depth: number): Block {
  const branches = tag.branches.map(({ value, templates }, index) => ({
    condition: compileValue(value, names),
    wanted: index > 0 || tag instanceof IfTag,
    block: compileAll(templates, names, depth),
  }));
  const otherwise = compileAll(tag.elseTemplates ?? [], names, depth);
  return (frame) => {
    const taken = branches.find(({ condition, wanted }) => isTrue(condition(frame)) === wanted);
    return (taken?.block ?? otherwise)(frame);
  };
}

function compileCase({ value, branches, elseTemplates }: CaseTag, names: Names, depth: number): Block {
  const subject = compileValue(value, names);
  const cases = branches.map(({ values, templates }) => ({
    tests: values.map((one) => compileEquality(one, names)),
    block: compileAll(templates, names, depth),
  }));
  const otherwise = compileAll(elseTemplates, names, depth);
  return (frame) => {
    const compared = subject(frame);
    let isMet = false;
    for (const { tests, block } of cases) {
      frame.meter.spend(tests.length);
      if (!tests.some((test) => test(compared, frame))) continue;
      isMet = true;
      const flow = block(frame);
      if (flow !== undefined) return flow;
    }
    return isMet ? undefined : otherwise(frame);
  };
}

function compileFor(tag: ForTag, names: Names, depth: number): Block {
  const variable = checkName(tag.variable);
  const source = compileToken(tag.collection, names);
  const { offset, limit, isReversed } = compileModifiers(tag.hash, names);
  const block = compileAll(tag.templates, [...names, variable], depth);
  const otherwise = compileAll(tag.elseTemplates, names, depth);
  return (frame) => {
    const { meter, loops } = frame;
    const all = itemsOf(source(frame), meter);
    if (all.length === 0) return otherwise(frame);
    const from = Math.max(0, numberOf(offset?.(frame), meter));
    const count = limit === undefined ? all.length : Math.max(0, numberOf(limit(frame), meter));
    meter.spend(all.length);
    const chosen = all.slice(from, from + count);
    const items = isReversed ? chosen.toReversed() : chosen;
    const loop = { item: undefined as Value, index: 0, length: items.length };
    loops.push(loop);
    for (const [index, item] of items.entries()) {
      meter.spend(1);
      loop.item = item;
      loop.index = index;
      if (block(frame) === "break") break;
    }
    loops.pop();
    return undefined;
  };
}

function compileModifiers({ hash }: Hash, names: Names) {
  const unknown = Object.keys(hash).find((name) => !["offset", "limit", "reversed"].includes(name));
  if (unknown !== undefined) throw syntax(`"for" takes offset, limit and reversed, and not "${unknown}".`);
  const { offset, limit } = hash;
  if (offset?.getText() === "continue") throw syntax("offset: continue is not supported.");
  return {
    offset: offset && compileToken(offset, names),
    limit: limit && compileToken(limit, names),
    isReversed: Object.hasOwn(hash, "reversed"),
  };
}
