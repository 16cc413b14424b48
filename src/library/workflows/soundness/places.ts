/**
 * The places where a workflow's tokens can be: a node, with the fan-outs around it. Conditions may turn out either way. Pure.
 *
 * SOUND-10  The check of a workflow within the limits takes bounded time. A workflow with too many places is refused by name.
 */
import type { WorkflowDefinition, WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import { MAX_FAN_OUT_DEPTH, MAX_PLACES, MAX_WAYS } from "../workflow-limits.ts";

/** A fan-out, seen from its branches. */
export interface FanOut {
  group: string;
  /** The place with the token that fans out. */
  origin: Place;
  /** The fan-out around it. */
  outer: FanOut | null;
  depth: number;
  starts: Set<WorkflowTransition>;
  joins: Set<WorkflowTransition>;
}

/** A node, within fan-outs. */
export interface Place {
  index: number;
  node: string;
  within: FanOut | null;
  ways: Way[];
}

/**
 * A path of a token: a `step` within the same fan-outs, the `start` of a branch, or the path `around` the branches of
 * a fan-out. `around` leads from the origin of a fan-out to its fan-in. Its transition is any of the transitions that
 * start branches.
 */
export interface Way {
  kind: "step" | "start" | "around";
  to: Place;
  transition: WorkflowTransition;
}

/** A transition that mixes the branches of two fan-outs. `inner` is the innermost group. */
export interface Mixed {
  kind: "crossed" | "repeated" | "deep";
  transition: WorkflowTransition;
  inner: string;
}

export interface Atlas {
  places: Place[];
  fanOuts: FanOut[];
  mixed: Mixed[];
  /** The transitions that only let tokens pass, although they join branches. */
  passed: Set<WorkflowTransition>;
  /** The transitions with tokens that continue. */
  followed: Set<WorkflowTransition>;
  /** A limit is reached: places are missing. */
  isCut: boolean;
}

export function transitionsByNode({ transitions }: WorkflowDefinition): Map<string, WorkflowTransition[]> {
  return Map.groupBy(transitions, ({ from }) => from);
}

/** Returns the places that tokens reach by the transitions that are not `dead`. */
export function explore(
  definition: WorkflowDefinition,
  outgoing: ReadonlyMap<string, readonly WorkflowTransition[]>,
  dead: ReadonlySet<WorkflowTransition>,
  isUsedUp: (place: Place, transition: WorkflowTransition) => boolean = () => false,
): Atlas {
  const explorer = new Explorer();
  explorer.place(definition.initialNode, null);
  for (const place of explorer.atlas.places) {
    for (const transition of followedFrom(place, outgoing.get(place.node) ?? [], dead))
      if (!isUsedUp(place, transition)) explorer.follow(place, transition);
    if (explorer.atlas.isCut) break;
  }
  return explorer.atlas;
}

/**
 * Returns the transitions that lead on from a place. A branch that arrives at an `any` fan-in ends with that: what else fires with the
 * arrival is cancelled at once.
 */
function followedFrom(
  { within }: Place,
  transitions: readonly WorkflowTransition[],
  dead: ReadonlySet<WorkflowTransition>,
): WorkflowTransition[] {
  const live = transitions.filter((one) => !dead.has(one));
  if (within === null) return live;
  const isArrival = ({ synchronization }: WorkflowTransition) =>
    synchronization?.strategy === "any" && synchronization.siblingGroup === within.group;
  const ends = live.filter(
    (one) => isArrival(one) && isAlways(one.condition) && one.loopConfig === undefined,
  );
  return live.filter((one) => isArrival(one) || !ends.some(({ priority }) => priority === one.priority));
}

export function isAlways(condition: string | undefined): boolean {
  return condition === undefined || condition.trim() === "true";
}

class Explorer {
  readonly atlas: Atlas = {
    places: [],
    fanOuts: [],
    mixed: [],
    passed: new Set(),
    followed: new Set(),
    isCut: false,
  };
  readonly #places = new Map<FanOut | null, Map<string, Place>>();
  readonly #fanOuts = new Map<Place, Map<string, FanOut>>();
  readonly #mixed = new Map<WorkflowTransition, Set<string>>();
  readonly #meetings = new Map<FanOut, Set<string>>();
  #ways = 0;

  place(node: string, within: FanOut | null): Place {
    const { places } = this.atlas;
    const own = this.#places.get(within) ?? new Map<string, Place>();
    this.#places.set(within, own);
    const known = own.get(node);
    if (known !== undefined) return known;
    const place: Place = { index: places.length, node, within, ways: [] };
    own.set(node, place);
    places.push(place);
    if (places.length >= MAX_PLACES) this.atlas.isCut = true;
    return place;
  }

  follow(place: Place, transition: WorkflowTransition): void {
    const { synchronization, siblingGroup, to } = transition;
    const { within } = place;
    const joined = synchronization?.siblingGroup;
    this.atlas.followed.add(transition);
    if (siblingGroup !== undefined) this.#start(place, transition, siblingGroup);
    else if (joined !== undefined && within?.group === joined) this.#arrive(within, transition);
    else {
      if (joined !== undefined) this.#pass(within, joined, transition);
      this.#way(place, "step", this.place(to, within), transition);
    }
  }

  #pass(within: FanOut | null, joined: string, transition: WorkflowTransition): void {
    this.atlas.passed.add(transition);
    if (within !== null && isWithin(within, joined)) this.#mix("crossed", transition, within.group);
  }

  #start(place: Place, transition: WorkflowTransition, group: string): void {
    const { within } = place;
    const depth = (within?.depth ?? 0) + 1;
    if (isWithin(within, group) || depth > MAX_FAN_OUT_DEPTH) {
      this.#mix(depth > MAX_FAN_OUT_DEPTH ? "deep" : "repeated", transition, within?.group ?? group);
      return;
    }
    const own = this.#fanOuts.get(place) ?? new Map<string, FanOut>();
    this.#fanOuts.set(place, own);
    const fanOut = own.get(group) ?? {
      group,
      origin: place,
      outer: within,
      depth,
      starts: new Set(),
      joins: new Set(),
    };
    if (!own.has(group)) this.atlas.fanOuts.push(fanOut);
    own.set(group, fanOut);
    fanOut.starts.add(transition);
    this.#way(place, "start", this.place(transition.to, fanOut), transition);
    for (const target of this.#meetings.get(fanOut) ?? []) this.#around(fanOut, transition, target);
  }

  /** Leads the way of the fan-out's origin around its branches, by each transition that starts them. */
  #arrive(fanOut: FanOut, transition: WorkflowTransition): void {
    fanOut.joins.add(transition);
    const meetings = this.#meetings.get(fanOut) ?? new Set();
    this.#meetings.set(fanOut, meetings);
    if (meetings.has(transition.to)) return;
    meetings.add(transition.to);
    for (const start of fanOut.starts) this.#around(fanOut, start, transition.to);
  }

  #around(fanOut: FanOut, start: WorkflowTransition, target: string): void {
    this.#way(fanOut.origin, "around", this.place(target, fanOut.outer), start);
  }

  #way(from: Place, kind: Way["kind"], to: Place, transition: WorkflowTransition): void {
    from.ways.push({ kind, to, transition });
    this.#ways += 1;
    if (this.#ways >= MAX_WAYS) this.atlas.isCut = true;
  }

  #mix(kind: Mixed["kind"], transition: WorkflowTransition, inner: string): void {
    const known = this.#mixed.get(transition) ?? new Set();
    this.#mixed.set(transition, known);
    if (known.has(kind)) return;
    known.add(kind);
    this.atlas.mixed.push({ kind, transition, inner });
  }
}

function isWithin(within: FanOut | null, group: string): boolean {
  for (let around = within; around !== null; around = around.outer) if (around.group === group) return true;
  return false;
}
