/** A workflow, indexed for its runs. Pure. */
import { itemNames } from "../../../library/workflows/expressions.ts";
import { findMeetings } from "../../../library/workflows/soundness/meetings.ts";
import type {
  WorkflowDefinition,
  WorkflowNode,
  WorkflowTransition,
} from "../../../protocol/workflow-definition.ts";
import type { Meeting } from "./state.ts";

export interface Graph {
  readonly definition: WorkflowDefinition;
  /** Returns a node. Throws for a `ref` of another workflow. */
  node(ref: string): WorkflowNode;
  /** Returns a transition. Throws for a `ref` of another workflow. */
  transition(ref: string): WorkflowTransition;
  /** The nodes with a sub-workflow or an agent. */
  readonly calls: ReadonlySet<string>;
  /** Reports whether a step behind a node may make several tokens of one. */
  multiplies(ref: string): boolean;
  /** Returns the transitions of a node by priority, the lowest number first. */
  tiers(ref: string): readonly (readonly WorkflowTransition[])[];
  items(ref: string): ReadonlySet<string>;
  /** Returns the fan-in of a fan-out; `null` without a fan-in. */
  meeting(origin: string, group: string): Meeting | null;
}

const known = new WeakMap<WorkflowDefinition, Graph>();

/** Returns the cached graph of a workflow. */
export function graphOf(definition: WorkflowDefinition): Graph {
  const graph = known.get(definition) ?? makeGraph(definition);
  known.set(definition, graph);
  return graph;
}

const NO_NAMES: ReadonlySet<string> = new Set();

function makeGraph(definition: WorkflowDefinition): Graph {
  const nodes = new Map(definition.nodes.map((node) => [node.ref, node]));
  const tiers = new Map(
    [...Map.groupBy(definition.transitions, ({ from }) => from)].map(([ref, own]) => [ref, tiersOf(own)]),
  );
  const transitions = new Map(definition.transitions.map((transition) => [transition.ref, transition]));
  const multiplying = new Set(
    definition.transitions.flatMap(({ from, foreach, spawnCount = 1 }) =>
      foreach !== undefined || spawnCount > 1 ? [from] : [],
    ),
  );
  const names = itemNames(definition);
  const meetings = findMeetings(definition);
  return {
    definition,
    calls: new Set(
      definition.nodes.flatMap(({ ref, workflow, agent }) =>
        (workflow ?? agent) === undefined ? [] : [ref],
      ),
    ),
    node(ref) {
      const node = nodes.get(ref);
      if (node === undefined) throw new Error(`The workflow has no node "${ref}".`);
      return node;
    },
    transition(ref) {
      const transition = transitions.get(ref);
      if (transition === undefined) throw new Error(`The workflow has no transition "${ref}".`);
      return transition;
    },
    multiplies: (ref) => multiplying.has(ref),
    tiers: (ref) => tiers.get(ref) ?? [],
    items: (ref) => names.get(ref) ?? NO_NAMES,
    meeting: (origin, group) => meetingOf(meetings(origin, group)),
  };
}

function tiersOf(transitions: readonly WorkflowTransition[]): WorkflowTransition[][] {
  const byPriority = Map.groupBy(transitions, ({ priority }) => priority);
  return [...byPriority].sort(([one], [other]) => one - other).map(([, tier]) => tier);
}

function meetingOf(transition: WorkflowTransition | undefined): Meeting | null {
  const { ref = "", to = "", synchronization } = transition ?? {};
  return synchronization === undefined ? null : { target: to, transition: ref, synchronization };
}
