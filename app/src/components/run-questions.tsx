/** The questions of the run that a tool call waits for, and of the runs of its sub-workflows, inside the conversation. */
import { useCallback, useRef } from "react";
import type { RunView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { messageOf } from "../format.ts";
import { useLiveRun } from "../hooks/use-live-run.ts";
import { useResource } from "../hooks/use-resource.ts";
import { ErrorNote } from "./error-note.tsx";
import { type GateDrafts, RunGates } from "./run-gates.tsx";

export function RunQuestions({ id }: { id: string }) {
  const load = useCallback((signal: AbortSignal) => client.runs.get(id, { signal }), [id]);
  const { value: run, error, reload } = useResource(load);
  if (run !== undefined) return <LiveQuestions run={run} reload={reload} />;
  return error === undefined ? null : <ErrorNote text={messageOf(error)} onRetry={reload} />;
}

function LiveQuestions({ run, reload }: { run: RunView; reload: () => void }) {
  const { workflow, follower } = useLiveRun(run.id, run.seq, reload);
  const drafts = useRef<GateDrafts>(new Map());
  return (
    <>
      <RunGates
        run={run}
        log={follower.log}
        definition={workflow.value?.definition}
        drafts={drafts}
        onAnswered={reload}
      />
      {run.active.map(({ runId }) => runId !== undefined && <RunQuestions key={runId} id={runId} />)}
    </>
  );
}
