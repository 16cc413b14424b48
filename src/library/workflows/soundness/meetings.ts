/**
 * The meeting points of branches. Pure.
 *
 * MEET-1  The branches of a fan-out meet at the fan-in that they can reach. It is known before the first branch
 *         arrives. If the list is empty, or if all branches end early, the token continues at that fan-in.
 */
import type { WorkflowDefinition, WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import { findLive } from "./liveness.ts";

/** Returns a transition that joins a group's branches from a node, or `undefined` without a fan-in. */
export type Meetings = (origin: string, group: string) => WorkflowTransition | undefined;

/** Finds where the branches of each fan-out meet. In a sound workflow that is one fan-in for each node and group. */
export function findMeetings(definition: WorkflowDefinition): Meetings {
  const { fanOuts } = findLive(definition).atlas;
  const joined = new Map(
    fanOuts.flatMap(({ origin, group, joins }) =>
      [...joins].map((join) => [`${origin.node} ${group}`, join] as const).slice(0, 1),
    ),
  );
  return (origin, group) => joined.get(`${origin} ${group}`);
}
