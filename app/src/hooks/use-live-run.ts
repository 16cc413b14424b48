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
 * Calls `onChange` when the run ends, and when a question to a person opens or closes after the entry `seq`. The caller
 * loaded the run at the entry `seq`. For another `id`, remount the caller.
 */
export function useLiveRun(id: string, seq: number, onChange: () => void): LiveRun {
  const [follower] = useState(() => new RunFollower(id));
  const version = useSyncExternalStore(follower.subscribe, follower.snapshot);
  const load = useCallback((signal: AbortSignal) => client.runs.workflow(id, { signal }), [id]);
  const workflow = useResource(load);
  // Each end is another object: a retried run ends again.
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
