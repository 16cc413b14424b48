/**
 * Where branches meet. Pure.
 *
 * MEET-1  The branches of a fan-out meet at the fan-in that they can reach, which is known before any of them arrives: an empty list, or
 *         branches that all end early, continue at that fan-in.
 */
import type { WorkflowDefinition, WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import { findLive } from "./liveness.ts";

/** Returns a transition by which the branches arrive that start at a node, as members of a group; `undefined` if nothing joins them. */
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
