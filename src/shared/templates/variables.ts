/** Finds the variables that a template requires. Pure. */
import {
  analyzeSync,
  CaseTag,
  IfTag,
  Output,
  type Value as ParsedValue,
  type Template,
  type Token,
  TypeGuards,
  UnlessTag,
} from "liquidjs";
import { parse } from "./parse.ts";
import { templateBudget } from "./template.ts";

/**
 * Returns the variables that a template reads without testing them in a condition or with the filter `default`. Throws as `parse`.
 * @example variablesOf("Dear {{ name | default: 'you' }}: {{ text }}"); // ["text"]
 */
export function variablesOf(source: string): string[] {
  const templates = parse(source, templateBudget());
  if (typeof templates === "string") return [];
  const tested = new Set(testedIn(templates));
  const { globals } = analyzeSync(templates, { partials: false });
  return Object.keys(globals).filter((name) => !tested.has(name));
}

function* testedIn(templates: readonly Template[]): Generator<string> {
  for (const template of templates) {
    if (template instanceof Output) {
      const { value } = template;
      if (value.filters.some(({ name }) => name === "default")) yield* rootsOf(value);
      continue;
    }
    if (template instanceof IfTag || template instanceof UnlessTag)
      for (const { value } of template.branches) yield* rootsOf(value);
    if (template instanceof CaseTag) yield* rootsOf(template.value);
    // Without partials, the library returns the parts of a tag at once.
    const inner = template.children?.(false, true).next();
    if (inner?.done === true) yield* testedIn(inner.value);
  }
}

/** Returns the variables of a value without its filters. */
function rootsOf({ initial }: ParsedValue): string[] {
  return initial.postfix.flatMap((token: Token) => {
    if (!TypeGuards.isPropertyAccessToken(token) || token.variable !== undefined) return [];
    const [first] = token.props;
    return first === undefined ? [] : [first.getText()];
  });
}
