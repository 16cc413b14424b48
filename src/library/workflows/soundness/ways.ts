/**
 * The ways to nodes. Pure.
 *
 * SOUND-1  Every node is reached from the initial node.
 */
import type { WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import type { Places } from "./issue.ts";
import type { Liveness } from "./liveness.ts";

/** Returns the unreachable nodes (SOUND-1), and the transitions that never fire (SOUND-2). */
export function wayIssues(
  { nodes, transitions, initialNode }: WorkflowDefinition,
  { atlas, dead }: Liveness,
  at: Places,
): InputIssue[] {
  const reached = new Set(atlas.places.map(({ node }) => node));
  const unreached = nodes
    .filter(({ ref }) => !reached.has(ref))
    .map(({ ref }) =>
      at.node(
        ref,
        "SOUND-1",
        `Node "${ref}" is unreachable from the initial node "${initialNode}". Add a transition to it, or remove the node.`,
      ),
    );
  const silent = transitions.flatMap((transition) => {
    if (!reached.has(transition.from) || atlas.followed.has(transition)) return [];
    const before = dead.get(transition);
    if (before === undefined) {
      const text = `Transition "${transition.ref}" has no effect: its branch always reaches an "any" fan-in too, which cancels its token. Give one of the two a condition or another priority.`;
      return [at.transition(transition, "SOUND-2", text)];
    }
    const why =
      before === null
        ? 'its condition is "false". Change the condition, or remove the transition.'
        : `transition "${before.ref}" has the lower priority ${before.priority} and always fires. Give "${before.ref}" a condition, or both the same priority.`;
    return [at.transition(transition, "SOUND-2", `Transition "${transition.ref}" never fires: ${why}`)];
  });
  return [...unreached, ...silent];
}
