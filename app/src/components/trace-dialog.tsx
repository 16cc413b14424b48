/** The trace of a turn over the page, kept up to date while the turn works. The dialog element handles focus and Escape. */
import { useContext } from "react";
import type { TraceView, TurnState } from "../../../src/client/index.ts";
import { ConversationId } from "../conversation-id.ts";
import { amountsText, durationText, messageOf } from "../format.ts";
import { useTurnTrace } from "../hooks/use-turn-trace.ts";
import { rowsOf, summaryOf } from "../trace.ts";
import { DialogPanel } from "./dialog-panel.tsx";
import { ErrorNote } from "./error-note.tsx";
import { TurnMemories } from "./memory/turn-memories.tsx";
import { TraceStep } from "./trace-step.tsx";

interface TraceDialogProps {
  turn: TurnState;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
  onClose: () => void;
}

/** Steps that are shown. */
const MAX_ROWS = 500;

export function TraceDialog({ turn, nameOf, onClose }: TraceDialogProps) {
  const active = turn.status === "active";
  const { value: trace, error, reload } = useTurnTrace(useContext(ConversationId), turn.id, active);

  return (
    <DialogPanel
      title="Trace"
      facts={trace !== undefined && <Facts trace={trace} />}
      closeLabel="Close the trace"
      testId="trace"
      onClose={onClose}
    >
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {trace === undefined && error === undefined && (
        <p role="status" className="px-2 py-3 text-xs text-muted">
          Loading…
        </p>
      )}
      {!active && <TurnMemories turnId={turn.id} />}
      {trace !== undefined && <Steps trace={trace} active={active} nameOf={nameOf} />}
    </DialogPanel>
  );
}

function Facts({ trace }: { trace: TraceView }) {
  const { agents, modelCalls, tokens, durationMs } = summaryOf(trace);
  const parts = [
    `${agents} ${agents === 1 ? "agent" : "agents"}`,
    `${modelCalls} model ${modelCalls === 1 ? "call" : "calls"}`,
    amountsText({ tokens }),
    durationText(durationMs),
  ];
  return (
    <>
      <p data-testid="trace-facts" className="text-xs text-muted">
        {parts.join(" · ")}
      </p>
      <p className="font-mono text-[0.6875rem] text-muted wrap-anywhere">
        <span className="sr-only">Trace id </span>
        {trace.traceId}
      </p>
    </>
  );
}

interface StepsProps {
  trace: TraceView;
  active: boolean;
  nameOf: (agentId: string) => string;
}

function Steps({ trace, active, nameOf }: StepsProps) {
  const { rows, shortened } = rowsOf(trace.spans);
  const notes = [
    ...(active ? ["The turn continues. Open steps show their time until now."] : []),
    ...(rows.length > MAX_ROWS ? [`The first ${MAX_ROWS} of ${rows.length} steps are shown.`] : []),
    ...(shortened ? ["The bars shorten long waits."] : []),
    ...(trace.partial
      ? ["Some steps are missing: there are too many, or a conversation could not be read."]
      : []),
  ];
  return (
    <>
      <ol aria-label="Steps">
        {rows.slice(0, MAX_ROWS).map((row) => (
          <TraceStep key={row.span.spanId} row={row} nameOf={nameOf} />
        ))}
      </ol>
      {notes.map((note) => (
        <p key={note} className="px-2 py-1.5 text-xs text-muted">
          {note}
        </p>
      ))}
    </>
  );
}
