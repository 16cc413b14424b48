/**
 * The reads of expressions. Pure.
 *
 * SOUND-8  An expression reads only members of `state` and `output` that some path to it has written, and members of
 *          `input` that `inputSchema` has. A member may be missing if the expression tests it with `has(…)`, `in` or
 *          a comparison with null.
 */
import type { WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import type { Reads } from "../../../shared/expressions/reads.ts";
import { memberOf } from "../../definitions/schema-paths.ts";
import {
  nodeExpressions,
  outputExpressions,
  type PlacedExpression,
  transitionExpressions,
} from "../expressions.ts";
import type { Liveness } from "./liveness.ts";
import type { Writes, Written } from "./writes.ts";

export type ReadsOf = (source: string) => Reads;

/** Returns the paths that are read and never written (SOUND-8). */
export function readIssues(
  definition: WorkflowDefinition,
  { atlas }: Liveness,
  writes: Writes,
  readsOf: ReadsOf,
): InputIssue[] {
  const nodes = nodeExpressions(definition);
  const transitions = Map.groupBy(
    transitionExpressions(definition).map((expressions, index) => ({
      expressions,
      from: definition.transitions[index]?.from ?? "",
    })),
    ({ from }) => from,
  );
  const reader = new Reader(definition, readsOf);
  for (const place of atlas.places) {
    const before = writes.before(place);
    const after = writes.after(place);
    const { input = [], output = [] } = nodes.get(place.node) ?? {};
    const what = `Node "${place.node}"`;
    for (const expression of [...input, ...output]) reader.read(expression, before, what);
    for (const { expressions } of transitions.get(place.node) ?? [])
      for (const expression of expressions)
        reader.read(expression, after, `A transition from "${place.node}"`);
  }
  for (const expression of outputExpressions(definition))
    reader.read(expression, writes.atEnd, "The `outputMapping` of the workflow");
  return reader.issues();
}

/** Collects paths that are missing wherever their expression is evaluated. */
class Reader {
  readonly #missing = new Map<string, { issue: InputIssue; path: string }>();
  readonly #found = new Set<string>();

  constructor(
    private readonly definition: WorkflowDefinition,
    private readonly readsOf: ReadsOf,
  ) {}

  read({ source, path }: PlacedExpression, written: Written, what: string): void {
    for (const names of this.readsOf(source).paths) {
      const text = names.join(".");
      const key = `${path} ${text}`;
      if (names.length < 2 || this.#found.has(key)) continue;
      const message = this.#problem(names, written, `${what} reads \`${text}\``);
      if (message === null) this.#found.add(key);
      else this.#missing.set(key, { issue: { path, message }, path: key });
    }
  }

  issues(): InputIssue[] {
    return [...this.#missing.values()].filter(({ path }) => !this.#found.has(path)).map(({ issue }) => issue);
  }

  #problem([area = "", ...names]: readonly string[], written: Written, what: string): string | null {
    if (area === "input") {
      if (memberOf(this.definition.inputSchema, names).kind !== "absent") return null;
      return `SOUND-8: ${what}, which \`inputSchema\` does not have. Add it there, or read another member.`;
    }
    if (area !== "state" && area !== "output") return null;
    if (written.covers([area, ...names])) return null;
    return `SOUND-8: ${what}, but no path to it writes that member. Write it earlier in an \`outputMapping\` or a merge, or test it with has(…).`;
  }
}
