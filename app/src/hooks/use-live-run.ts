/** Follows a run live, with its course and its workflow. */
import { useCallback, useState } from "react";
import type { RunWorkflow } from "../../../src/client/index.ts";
import { type UseRunResult, useRun } from "../../../src/client/react/index.ts";
import { client } from "../client.ts";
import { RunLog } from "../runs/run-log.ts";
import { type Resource, useResource } from "./use-resource.ts";

export interface LiveRun extends UseRunResult {
  log: RunLog;
  workflow: Resource<RunWorkflow>;
}

/** For another `id`, remount the caller. */
export function useLiveRun(id: string): LiveRun {
  const live = useRun(id, { client });
  const [log] = useState(() => new RunLog());
  for (const event of live.events.slice(log.seq)) log.add(event);
  const load = useCallback((signal: AbortSignal) => client.runs.workflow(id, { signal }), [id]);
  return { ...live, log, workflow: useResource(load) };
}
