/** The names of branches. Pure. */
import { utf8Length } from "./utf8.ts";

const MAX_BRANCH_BYTES = 200;
/** A segment that git refuses: empty, or with a dot at its beginning, or with a reserved end. */
const REFUSED_SEGMENT = /^$|^\.|\.$|\.lock$/;

export function branchProblem(name: string): string | undefined {
  const isAllowed =
    utf8Length(name) <= MAX_BRANCH_BYTES &&
    name.isWellFormed() &&
    !/[\p{Cc} ~^:?*[\\]|\.\.|@\{|^-|^@$|^HEAD$/u.test(name) &&
    !name.split("/").some((segment) => REFUSED_SEGMENT.test(segment));
  return isAllowed
    ? undefined
    : `is not a valid name of a branch. Use at most ${MAX_BRANCH_BYTES} bytes of letters, digits, ".", "_", "-" and "/".`;
}
