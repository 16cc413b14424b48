/**
 * The paths that a workflow writes, and those it reads from branches. Pure.
 *
 * FLOWPATH-1  A workflow writes below `state` and `output` only, by names that expressions can read.
 */
import { checkName, ExpressionError } from "../../shared/expressions/values.ts";
import { cut } from "../../shared/text.ts";
import { MAX_PATH_NAMES } from "./workflow-limits.ts";

const WRITTEN = /^(state|output)((?:\.[A-Za-z_][A-Za-z0-9_]*)+)$/;
const MERGED = /^_branch\.output((?:\.[A-Za-z_][A-Za-z0-9_]*)*)$/;

/** Returns the problem of a path that a node or a merge writes; `null` if it may. */
export function writtenPathProblem(path: string): string | null {
  const [, , names] = WRITTEN.exec(path) ?? [];
  if (names === undefined)
    return `Must be "state" or "output" and the names of members, as in "state.order.total". It is ${JSON.stringify(cut(path, 80))}.`;
  return nameProblem(names);
}

/** Returns the problem of the source of a merge; `null` if it may be read. */
export function mergeSourceProblem(path: string): string | null {
  const [, names] = MERGED.exec(path) ?? [];
  if (names === undefined)
    return `Must be "_branch.output", or a path below it, as in "_branch.output.score". It is ${JSON.stringify(cut(path, 80))}.`;
  return nameProblem(names);
}

export function namesOf(path: string): string[] {
  return path.split(".");
}

/** Returns the problem of the names of a path, which begin with a dot. */
function nameProblem(path: string): string | null {
  const [, ...names] = namesOf(path);
  if (names.length > MAX_PATH_NAMES)
    return `Must have at most ${MAX_PATH_NAMES} names of members. It has ${names.length}.`;
  try {
    for (const name of names) checkName(name);
    return null;
  } catch (error) {
    if (error instanceof ExpressionError) return error.message;
    throw error;
  }
}
