/**
 * Loops. Pure.
 *
 * SOUND-6  Every loop ends: at least one of its transitions has a `loopConfig`. A bound on a transition that is
 *          within branches or joins branches does not count for a loop around them. The token after the fan-in starts
 *          from the counts of the fan-out.
 */
import type { InputIssue } from "../../../shared/errors.ts";
import { componentsOf } from "./components.ts";
import type { Places } from "./issue.ts";
import type { Liveness } from "./liveness.ts";

/** Nodes that an issue lists. */
const MAX_LISTED = 8;

/** Returns the loops that no bound ends, one issue for all that share nodes. */
export function loopIssues({ atlas: { places } }: Liveness, at: Places): InputIssue[] {
  const unbounded = places.map(({ ways }) =>
    ways.filter(({ kind, transition }) => kind !== "start" && transition.loopConfig === undefined),
  );
  const { of } = componentsOf(places.length, (index) => (unbounded[index] ?? []).map(({ to }) => to.index));
  const inLoop = places.flatMap((place) => {
    const inner = (unbounded[place.index] ?? []).filter(({ to }) => of[to.index] === of[place.index]);
    return inner.length === 0 ? [] : [{ place, inner }];
  });
  const loops = Map.groupBy(inLoop, ({ place }) => of[place.index]);
  const issues = [...loops.values()].flatMap((loop) => {
    const nodes = [...new Set(loop.map(({ place }) => place.node))];
    const ways = loop.flatMap(({ place, inner }) => inner.map((way) => ({ from: place, ...way })));
    const back = ways.find(({ from, to }) => to.index <= from.index);
    return back === undefined
      ? []
      : [at.transition(back.transition, "SOUND-6", text(nodes, back.transition.ref))];
  });
  // The same loop within other fan-outs has the same issue.
  return [...new Map(issues.map((issue) => [issue.path, issue])).values()];
}

function text(nodes: readonly string[], ref: string): string {
  const listed = nodes.slice(0, MAX_LISTED).map((node) => `"${node}"`);
  const more = nodes.length > MAX_LISTED ? ", and more" : "";
  return `The loop of ${listed.join(", ")}${more} has no bound, so it may never end. Give transition "${ref}" a \`loopConfig\`, such as {maxIterations: 10}.`;
}
