/**
 * The transitions that never fire. Pure.
 *
 * SOUND-2  Every transition can fire: no transition of its node with a lower priority always fires, and its condition is not `false`.
 */
import type { WorkflowDefinition, WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import { placeKey, usedUp } from "./bounds.ts";
import { componentsOf } from "./components.ts";
import { type Atlas, explore, isAlways, type Place, transitionsByNode } from "./places.ts";

/** Rounds of finding more dead transitions from the known dead transitions. Further dead transitions are not reported. */
const MAX_ROUNDS = 4;

/** The dead transitions, each with the transition that fires instead, and the places that live transitions reach. */
export interface Liveness {
  atlas: Atlas;
  dead: ReadonlyMap<WorkflowTransition, WorkflowTransition | null>;
}

/** Finds the transitions that never fire. */
export function findLive(definition: WorkflowDefinition): Liveness {
  const outgoing = transitionsByNode(definition);
  const isKnown = (transition: WorkflowTransition) => transition.loopConfig === undefined;
  let dead = deadGiven(outgoing, isKnown);
  let atlas = explore(definition, outgoing, new Set(dead.keys()));
  for (let round = 0; round < MAX_ROUNDS && !atlas.isCut; round++) {
    const inLoop = transitionsInLoops(atlas);
    // Outside a loop, `loopConfig` never stops a transition.
    const next = deadGiven(outgoing, (one) => isKnown(one) || !inLoop.has(one));
    if (next.size === dead.size) break;
    dead = next;
    atlas = explore(definition, outgoing, new Set(dead.keys()));
  }
  return { atlas: withoutUsedUp(definition, outgoing, dead, atlas), dead };
}

/** Explores again without the transitions that are used up at a place, until the set of places stays the same. */
function withoutUsedUp(
  definition: WorkflowDefinition,
  outgoing: ReadonlyMap<string, readonly WorkflowTransition[]>,
  dead: ReadonlyMap<WorkflowTransition, unknown>,
  first: Atlas,
): Atlas {
  let atlas = first;
  for (let round = 0; round < MAX_ROUNDS && !atlas.isCut; round++) {
    const used = usedUp(atlas);
    const isUsedUp = (place: Place, transition: WorkflowTransition) =>
      used.get(transition)?.has(placeKey(place)) ?? false;
    const next = explore(definition, outgoing, new Set(dead.keys()), isUsedUp);
    if (next.places.length === atlas.places.length && next.mixed.length === atlas.mixed.length) return next;
    atlas = next;
  }
  return atlas;
}

/** Returns the dead transitions for a given set of unconditional transitions that always fire. */
function deadGiven(
  outgoing: ReadonlyMap<string, readonly WorkflowTransition[]>,
  isEndless: (transition: WorkflowTransition) => boolean,
): Map<WorkflowTransition, WorkflowTransition | null> {
  const dead = new Map<WorkflowTransition, WorkflowTransition | null>();
  for (const transitions of outgoing.values()) {
    const always = transitions.filter((one) => isAlways(one.condition) && isEndless(one));
    const first = always.reduce<WorkflowTransition | null>(
      (best, one) => (best === null || one.priority < best.priority ? one : best),
      null,
    );
    for (const transition of transitions) {
      if (transition.condition?.trim() === "false") dead.set(transition, null);
      else if (first !== null && first.priority < transition.priority) dead.set(transition, first);
    }
  }
  return dead;
}

/**
 * Returns the transitions by which a token can return to its node, in the same fan-outs or deeper. The token keeps
 * its counts.
 */
function transitionsInLoops({ places }: Atlas): Set<WorkflowTransition> {
  const byNode = Map.groupBy(places, ({ node }) => node);
  const numbers = new Map([...byNode.keys()].map((node, index) => [node, index]));
  const numberOf = ({ node }: Place) => numbers.get(node) ?? 0;
  const edges = [...byNode.values()].map((own) => [
    ...new Set(own.flatMap(({ ways }) => ways.map(({ to }) => numberOf(to)))),
  ]);
  const { of } = componentsOf(edges.length, (index) => edges[index] ?? []);
  return new Set(
    places.flatMap((place) =>
      place.ways
        .filter(({ to }) => of[numberOf(place)] === of[numberOf(to)])
        .map(({ transition }) => transition),
    ),
  );
}
