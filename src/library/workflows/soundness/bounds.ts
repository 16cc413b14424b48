/** The bounds of loops that are used up wherever a token can be at a place. Pure. */
import type { WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import type { Atlas, FanOut, Place } from "./places.ts";

/** Steps of finding them. Beyond, no bound counts as used up. */
const MAX_STEPS = 200_000;

/** Returns, for each transition, the places where it is used up on every path and can no longer fire. Places are texts of `placeKey`. */
export function usedUp({ places }: Atlas): Map<WorkflowTransition, Set<string>> {
  const bounded = new Set(
    places.flatMap(({ ways }) =>
      ways.flatMap(({ transition }) => (transition.loopConfig === undefined ? [] : [transition])),
    ),
  );
  const size = places.reduce((sum, { ways }) => sum + ways.length + 1, 0);
  if (bounded.size * size > MAX_STEPS) return new Map();
  return new Map(
    [...bounded].map((transition) => {
      const most = transition.loopConfig?.maxIterations ?? 0;
      const fewest = fewestUses(places, transition);
      const keys = places.filter(({ index }) => (fewest[index] ?? 0) >= most).map(placeKey);
      return [transition, new Set(keys)];
    }),
  );
}

/** Returns a text that names a place in all atlases of a workflow. */
export function placeKey({ node, within }: Place): string {
  const around: string[] = [];
  for (let one: FanOut | null = within; one !== null; one = one.outer)
    around.push(`${one.origin.node} ${one.group}`);
  return [node, ...around].join("\n");
}

/** Returns how often a token has used a transition at least when it comes to each place: the shortest ways, of lengths 0 and 1. */
function fewestUses(places: readonly Place[], transition: WorkflowTransition): number[] {
  const fewest = new Array<number>(places.length).fill(Number.POSITIVE_INFINITY);
  let now = places.slice(0, 1);
  for (let uses = 0; now.length > 0; uses++) {
    const later: Place[] = [];
    for (const place of now) {
      if ((fewest[place.index] ?? 0) <= uses) continue;
      fewest[place.index] = uses;
      for (const way of place.ways) (way.transition === transition ? later : now).push(way.to);
    }
    now = later;
  }
  return fewest;
}
