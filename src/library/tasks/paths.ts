/**
 * The paths that the steps of a task write. Pure.
 *
 * AREAS-1  A step writes to a path below `state` or `output`. Missing objects along the path are created. If another value is in the way, the
 *          write fails and changes no value.
 */
import { checkName, ExpressionError } from "../../shared/expressions/values.ts";

export const AREA_NAMES = ["input", "state", "output"] as const;

/** The member of the state with the result of the last step without an `outputMapping`. */
export const LAST_OUTPUT = "_lastOutput";
/** The member of the state with the failures that did not stop the task. */
export const ERRORS = "_errors";

const PATH = /^(state|output)((?:\.[A-Za-z_][A-Za-z0-9_]*)+)$/;

/** Returns the problem of a path in an `outputMapping`; `null` if the path is valid. */
export function pathProblem(path: string): string | null {
  const [, , names = ""] = PATH.exec(path) ?? [];
  if (names === "") return 'Must be "state" or "output" and the names of members, as in "state.order.total".';
  const members = names.slice(1).split(".");
  for (const name of members) {
    try {
      checkName(name);
    } catch (error) {
      if (error instanceof ExpressionError) return error.message;
      throw error;
    }
  }
  const [first = ""] = members;
  return path.startsWith("state.") && [LAST_OUTPUT, ERRORS].includes(first)
    ? `The task itself writes \`state.${first}\`. Write another member.`
    : null;
}
