/** The expressions of a workflow, by their place, with the names that they may use. Pure. */
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { jsonPointer } from "../../shared/validation.ts";

/** The names that every expression may use. */
const AREAS: readonly string[] = ["input", "state", "output"];
const AREAS_AT_FAN_IN: readonly string[] = [...AREAS, "fanIn"];

/** Names that no item of a `foreach` may have. */
export const TAKEN_NAMES: readonly string[] = [...AREAS, "result", "fanIn"];

export interface PlacedExpression {
  source: string;
  /** JSON pointer. */
  path: string;
  /**
   * Shared by all expressions of one node. All transitions with `fanIn` share one list, and all transitions without
   * it share another.
   */
  names: readonly string[];
}

function ofMapping(
  mapping: Readonly<Record<string, string>> | undefined,
  base: string,
  names: readonly string[],
) {
  return Object.entries(mapping ?? {}).map(([name, source]) => ({
    source,
    path: jsonPointer([name], base),
    names,
  }));
}

/** Returns the names of the items that each node sees. */
export function itemNames({ transitions }: WorkflowDefinition): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map<string, Set<string>>();
  for (const { to, foreach } of transitions)
    if (foreach !== undefined) names.set(to, (names.get(to) ?? new Set()).add(foreach.itemVar));
  return names;
}

/** Returns the expressions of one node's mappings. `base` is the JSON pointer of the node. */
export function nodeExpressions(
  definition: WorkflowDefinition,
): ReadonlyMap<string, { input: PlacedExpression[]; output: PlacedExpression[] }> {
  const items = itemNames(definition);
  const joined = fanInTargets(definition);
  return new Map(
    definition.nodes.map(({ ref, task, workflow, agent, inputMapping, outputMapping }, index) => {
      const own = [...(joined.has(ref) ? AREAS_AT_FAN_IN : AREAS), ...(items.get(ref) ?? [])];
      const owner = task ?? workflow ?? agent;
      const base = `/nodes/${index}`;
      return [
        ref,
        {
          input: ofMapping(inputMapping, `${base}/inputMapping`, own),
          output: ofMapping(
            outputMapping,
            `${base}/outputMapping`,
            owner === undefined ? own : [...own, "result"],
          ),
        },
      ];
    }),
  );
}

export function transitionExpressions(definition: WorkflowDefinition): PlacedExpression[][] {
  const joined = fanInTargets(definition);
  return definition.transitions.map(({ from, condition, foreach }, index) => {
    const names = joined.has(from) ? AREAS_AT_FAN_IN : AREAS;
    const base = `/transitions/${index}`;
    return [
      ...(condition === undefined ? [] : [{ source: condition, path: `${base}/condition`, names }]),
      ...(foreach === undefined
        ? []
        : [{ source: foreach.collection, path: `${base}/foreach/collection`, names }]),
    ];
  });
}

export function outputExpressions({ outputMapping }: WorkflowDefinition): PlacedExpression[] {
  return ofMapping(outputMapping, "/outputMapping", AREAS);
}

function fanInTargets({ transitions }: WorkflowDefinition): Set<string> {
  return new Set(
    transitions.flatMap(({ to, synchronization }) => (synchronization === undefined ? [] : [to])),
  );
}
