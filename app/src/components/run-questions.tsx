/** The questions of the run that a tool call waits for, and of the runs of its sub-workflows, inside the conversation. */
import { useRef } from "react";
import type { RunView } from "../../../src/client/index.ts";
import { useRun } from "../../../src/client/react/index.ts";
import { client } from "../client.ts";
import { messageOf } from "../format.ts";
import { useLiveRun } from "../hooks/use-live-run.ts";
import { ErrorNote } from "./error-note.tsx";
import { type GateDrafts, RunGates } from "./run-gates.tsx";

export function RunQuestions({ id }: { id: string }) {
  const { run, error, refresh } = useRun(id, { client });
  if (run !== undefined) return <LiveQuestions run={run} />;
  return error === undefined ? null : <ErrorNote text={messageOf(error)} onRetry={refresh} />;
}

function LiveQuestions({ run }: { run: RunView }) {
  const { workflow, log, answer } = useLiveRun(run.id);
  const drafts = useRef<GateDrafts>(new Map());
  return (
    <>
      <RunGates run={run} log={log} definition={workflow.value?.definition} drafts={drafts} answer={answer} />
      {run.active.map(({ runId }) => runId !== undefined && <RunQuestions key={runId} id={runId} />)}
    </>
  );
}
