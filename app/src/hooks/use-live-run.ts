/** Loads the workflow of a run, and follows the run live. */
import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import type { RunWorkflow } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { RunFollower } from "../runs/run-follower.ts";
import { type Resource, useResource } from "./use-resource.ts";

export interface LiveRun {
  workflow: Resource<RunWorkflow>;
  follower: RunFollower;
  /** Changes whenever `follower.log` has changed. */
  version: number;
}

/**
 * Calls `onChange` when the run is over, and when a question to a person comes or goes behind the entry `seq`, at which the caller has loaded
 * the run. The caller is remounted for another id.
 */
export function useLiveRun(id: string, seq: number, onChange: () => void): LiveRun {
  const [follower] = useState(() => new RunFollower(id));
  const version = useSyncExternalStore(follower.subscribe, follower.snapshot);
  const load = useCallback((signal: AbortSignal) => client.runs.workflow(id, { signal }), [id]);
  const workflow = useResource(load);
  // Each end is another object: a run that was retried ends again.
  const { end } = follower.log;
  useEffect(() => {
    if (end !== undefined) onChange();
  }, [end, onChange]);
  const { gatesAt } = follower.log;
  useEffect(() => {
    if (gatesAt > seq) onChange();
  }, [gatesAt, seq, onChange]);
  return { workflow, follower, version };
}
