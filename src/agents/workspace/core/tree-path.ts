/** Paths of files as tools and people name them. Pure. */
import { pathProblem } from "../../../git/path-problem.ts";
import { DramatisError, invalid } from "../../../shared/errors.ts";

/** The folder of the repository in a shell. */
export const ROOT = "/workspace";

/**
 * Returns a path relative to the root: `./src/a.ts` and `/workspace/src/a.ts` are `src/a.ts`, and the root is "". Throws `PERMISSION_DENIED`
 * for a path that leaves the root, and `INVALID_INPUT` for any other path that Git or the workspace refuses.
 */
export function treePath(given: string): string {
  const inRoot = /^\/workspace(?:\/+|$)/;
  const path = given.replace(inRoot.test(given) ? inRoot : /^(?:\.\/)+/, "").replace(/\/$/, "");
  if (path === "" || path === ".") return "";
  if (leaves(path)) throw outside(`"${given}" is outside of the repository. Write the path from its root.`);
  const problem = pathProblem(path);
  if (problem !== undefined) throw invalid(`"${given}" ${problem}`);
  return path;
}

/** Reports whether a path is absolute, or goes above its root. */
function leaves(path: string): boolean {
  let depth = 0;
  for (const segment of segmentsOf(path)) {
    depth += segment === ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return path.startsWith("/");
}

export function outside(message: string): DramatisError {
  return new DramatisError("PERMISSION_DENIED", message, { rule: "sandbox" });
}

export function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}
