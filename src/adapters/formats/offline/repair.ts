/**
 * Rule 17 for a developer with the tools of repositories: mends a function of two numbers whose tests fail. The tests say which of
 * `+ - * /` is right.
 */
import { isJsonObject, type JsonObject, parseJson } from "../../../shared/json.ts";
import { membersOf, objects } from "../common/json.ts";
import { call, labelled, type OfflineAnswer } from "./answer.ts";
import type { SeenResult, View } from "./view.ts";

const ASKED = /\b(?:fix|mend|repair)\b.*\btests?\b/i;
const ASSERTION = /\bequal\((\w+)\((-?\d+), ?(-?\d+)\), ?(-?\d+)\)/;
const OPERATION = /\b(\w+) ([-+*/]) (\w+);/;

const OPERATORS: Readonly<Record<string, (a: number, b: number) => number>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
};

/** Searches for the tests and the function, edits the function, commits, and reports. Leaves unexpected results to the next rule. */
export function repairFunction(view: View): OfflineAnswer | undefined {
  const { text, results, offers } = view;
  const tools = ["repo_search", "repo_edit", "repo_commit"];
  if (!ASKED.test(text) || !tools.every(offers) || results.some(({ failed }) => failed)) return undefined;
  const [tests, sources, , committed] = results;
  if (tests === undefined) return call("repo_search", { query: "equal(" });
  const asserted = linesOf(tests).flatMap(({ line }) => ASSERTION.exec(line)?.slice(1) ?? []);
  const [name] = asserted;
  if (name === undefined) return undefined;
  if (sources === undefined) return call("repo_search", { query: String.raw`\b${name}\b.*;$`, regex: true });
  const change = changeOf(linesOf(sources), asserted);
  if (change === undefined) return undefined;
  const { path, before, after } = change;
  if (results.length === 2) return call("repo_edit", { path, before, after });
  if (committed === undefined) return call("repo_commit", { message: `Mend ${name}` });
  const { branch } = factsOf(committed);
  return labelled(
    `I changed \`${before}\` to \`${after}\` in ${path}, as the tests of \`${name}\` demand, and committed the change on ${String(branch)}. I cannot run the tests. Read the changes, and merge them.`,
  );
}

interface Line {
  path: string;
  line: string;
}

/** Returns a change that makes all assertions about the first function true. `asserted` has name, numbers and result of each. */
function changeOf(lines: readonly Line[], asserted: readonly string[]) {
  const [name = ""] = asserted;
  for (const { path, line } of lines) {
    if (ASSERTION.test(line)) continue;
    const [before, left, , right] = OPERATION.exec(line) ?? [];
    const operator = Object.keys(OPERATORS).find((sign) => holds(OPERATORS[sign], name, asserted));
    if (before === undefined || operator === undefined) continue;
    const after = `${left} ${operator} ${right};`;
    if (after !== before) return { path, before, after };
  }
  return undefined;
}

function holds(
  operator: (typeof OPERATORS)[string] | undefined,
  name: string,
  asserted: readonly string[],
): boolean {
  for (let at = 0; at < asserted.length; at += 4) {
    const [of, a, b, result] = asserted.slice(at, at + 4);
    if (of === name && operator?.(Number(a), Number(b)) !== Number(result)) return false;
  }
  return true;
}

function linesOf(result: SeenResult): Line[] {
  return objects(factsOf(result).matches).map(({ path, text }) => ({
    path: String(path),
    line: String(text),
  }));
}

function factsOf({ text }: SeenResult): JsonObject {
  const facts = membersOf(parseJson(text));
  return isJsonObject(facts.result) ? facts.result : facts;
}
