/**
 * The paths that are written before each place. Pure.
 *
 * SOUND-7  A node within branches writes `output` only, which is its branch's own. `state` is written outside branches, or by a merge.
 */
import type { WorkflowDefinition, WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { jsonPointer } from "../../../shared/validation.ts";
import { namesOf } from "../paths.ts";
import { Bits } from "./bits.ts";
import { componentsOf } from "./components.ts";
import type { Places } from "./issue.ts";
import type { Liveness } from "./liveness.ts";
import type { Place } from "./places.ts";

/** Names of a path, joined by a character that no name of a written path has. */
const SEPARATOR = "\u0000";

/** Paths that may have been written at a point of a run. */
export interface Written {
  /** Reports whether something may have been written at the path, above it or below it. */
  covers(path: readonly string[]): boolean;
}

/** Paths that may have been written: when a place's node begins, when it has completed, and when the run ends. */
export interface Writes {
  before(place: Place): Written;
  after(place: Place): Written;
  atEnd: Written;
}

/** Returns the writes to `state` within branches (SOUND-7). */
export function branchIssues(definition: WorkflowDefinition, { atlas }: Liveness, at: Places): InputIssue[] {
  const nodes = new Map(definition.nodes.map((node) => [node.ref, node]));
  const issues = new Map<string, InputIssue>();
  const add = (issue: InputIssue) => issues.set(issue.path, issue);
  const text = (what: string, path: string, group: string) =>
    `${what} writes \`${path}\` within branches of the group "${group}", which share \`state\`. Write \`output.…\`, which each branch has for itself, and merge it where the branches meet.`;
  for (const { node, within } of atlas.places) {
    if (within === null) continue;
    for (const path of Object.keys(nodes.get(node)?.outputMapping ?? {}))
      if (path.startsWith("state."))
        add(
          at.node(
            node,
            "SOUND-7",
            text(`Node "${node}"`, path, within.group),
            jsonPointer([path], "/outputMapping"),
          ),
        );
  }
  for (const { outer, joins } of atlas.fanOuts) {
    if (outer === null) continue;
    for (const join of joins) {
      const target = join.synchronization?.merge?.target;
      if (target?.startsWith("state."))
        add(
          at.transition(
            join,
            "SOUND-7",
            text(`The merge of transition "${join.ref}"`, target, outer.group),
            "/synchronization/merge/target",
          ),
        );
    }
  }
  return [...issues.values()];
}

/** Finds the possible writes before each place. A parallel token may have written everything after the place where it split off. */
export function findWrites(definition: WorkflowDefinition, { atlas, dead }: Liveness): Writes {
  const index = new PathIndex();
  const { places } = atlas;
  const byNode = new Map(
    [...Map.groupBy(places, ({ within }) => within)].map(([within, inside]) => [
      within,
      new Map(inside.map((place) => [place.node, place])),
    ]),
  );
  const entering = places.map((): string[] => []);
  const leaving = writtenByNodes(definition, places);
  for (const { joins, outer } of atlas.fanOuts)
    for (const { to, synchronization } of joins) {
      const place = byNode.get(outer)?.get(to);
      if (place !== undefined && synchronization?.merge !== undefined)
        entering[place.index]?.push(keyOf(namesOf(synchronization.merge.target)));
    }
  entering[0]?.push(...defaultPaths(definition.contextSchema ?? {}, ["state"]));
  for (const paths of [...entering, ...leaving]) for (const path of paths) index.add(path);

  const edges = (at: number) => (places[at]?.ways ?? []).map(({ to }) => to.index);
  const { of, count } = componentsOf(places.length, edges);
  const members = Map.groupBy(places, (place) => of[place.index] ?? 0);
  const make = () => new Bits(index.size);
  const none = make();
  const own = Array.from({ length: count }, make);
  for (const place of places)
    for (const path of [...(entering[place.index] ?? []), ...(leaving[place.index] ?? [])])
      own[of[place.index] ?? 0]?.add(index.of(path));

  // Components are numbered from last to first.
  const following = own.map(make);
  const splits = splittingNodes(definition, dead);
  for (let component = 0; component < count; component++) {
    const after = following[component] ?? none;
    after.addAll(own[component] ?? none);
    for (const { ways } of members.get(component) ?? [])
      for (const { to } of ways)
        if (of[to.index] !== component) after.addAll(following[of[to.index] ?? 0] ?? none);
  }
  const incoming = own.map(make);
  const outgoing = own.map(make);
  for (let component = count - 1; component >= 0; component--) {
    const after = outgoing[component] ?? none;
    const inside = members.get(component) ?? [];
    after.addAll(incoming[component] ?? none);
    after.addAll(own[component] ?? none);
    if (inside.some(({ node }) => splits.has(node))) after.addAll(following[component] ?? none);
    for (const { ways } of inside)
      for (const { to } of ways) if (of[to.index] !== component) incoming[of[to.index] ?? 0]?.addAll(after);
  }
  const isLoop = (place: Place) => {
    const component = of[place.index] ?? 0;
    const inside = members.get(component) ?? [];
    return inside.length > 1 || place.ways.some(({ to }) => to === place);
  };
  const atEnd = make();
  for (const place of places) if (place.within === null) atEnd.addAll(outgoing[of[place.index] ?? 0] ?? none);
  const written = (bits: Bits, more: readonly string[] = []): Written => ({
    covers: (path) => index.covers(path, bits, more),
  });
  return {
    before: (place) => {
      const component = of[place.index] ?? 0;
      return isLoop(place)
        ? written(outgoing[component] ?? none)
        : written(incoming[component] ?? none, entering[place.index]);
    },
    after: (place) => written(outgoing[of[place.index] ?? 0] ?? none),
    atEnd: written(atEnd),
  };
}

/** Returns the paths that each place's node writes. A node without a mapping writes the output of its branch. */
function writtenByNodes({ nodes }: WorkflowDefinition, places: readonly Place[]): string[][] {
  const byRef = new Map(
    nodes.map(({ ref, task, workflow, agent, outputMapping }) => [
      ref,
      {
        paths: Object.keys(outputMapping ?? {}).map((path) => keyOf(namesOf(path))),
        isWhole: (task ?? workflow ?? agent) !== undefined && outputMapping === undefined,
      },
    ]),
  );
  return places.map(({ node, within }) => {
    const { paths = [], isWhole = false } = byRef.get(node) ?? {};
    return isWhole && within !== null ? ["output"] : paths;
  });
}

/** Returns the nodes that make parallel tokens, not only branches of one fan-out. */
function splittingNodes(
  { transitions }: WorkflowDefinition,
  dead: ReadonlyMap<WorkflowTransition, unknown>,
): Set<string> {
  const tiers = Map.groupBy(
    transitions.filter((one) => !dead.has(one)),
    ({ from, priority }) => `${from} ${priority}`,
  );
  const splitting = [...tiers.values()].filter((tier) => {
    const [first] = tier;
    const isOne = tier.length === 1 && first?.foreach === undefined && (first?.spawnCount ?? 1) === 1;
    const isFanOut =
      first?.siblingGroup !== undefined && tier.every((one) => one.siblingGroup === first.siblingGroup);
    return !isOne && !isFanOut;
  });
  return new Set(splitting.flatMap(([first]) => first?.from ?? []));
}

function defaultPaths(schema: JsonObject, names: readonly string[]): string[] {
  const { properties } = schema;
  if (!isJsonObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, member]) =>
    isJsonObject(member) && member.default !== undefined ? [keyOf([...names, name])] : [],
  );
}

function keyOf(names: readonly string[]): string {
  return names.join(SEPARATOR);
}

class PathIndex {
  readonly #numbers = new Map<string, number>();
  /** The numbers of the paths below each path. */
  readonly #below = new Map<string, Set<number>>();

  get size(): number {
    return this.#numbers.size;
  }

  add(path: string): void {
    if (this.#numbers.has(path)) return;
    const number = this.#numbers.size;
    this.#numbers.set(path, number);
    for (const above of prefixesOf(path.split(SEPARATOR))) {
      const below = this.#below.get(above) ?? new Set();
      this.#below.set(above, below.add(number));
    }
  }

  of(path: string): number {
    return this.#numbers.get(path) ?? 0;
  }

  covers(path: readonly string[], bits: Bits, more: readonly string[]): boolean {
    const extra = new Set(more.map((one) => this.of(one)));
    const isWritten = (number: number | undefined) =>
      number !== undefined && (bits.has(number) || extra.has(number));
    return (
      prefixesOf(path).some((above) => isWritten(this.#numbers.get(above))) ||
      [...(this.#below.get(keyOf(path)) ?? [])].some(isWritten)
    );
  }
}

function prefixesOf(names: readonly string[]): string[] {
  return names.map((_, index) => keyOf(names.slice(0, index + 1)));
}
