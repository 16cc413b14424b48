/** The waterfall of a turn: agents, model calls, tools and waits on one time axis. Up and Down move between its steps. */
import { type KeyboardEvent, useState } from "react";
import type { TurnView } from "../../../../src/client/index.ts";
import { amountsText, durationText, messageOf } from "../../format.ts";
import { useTurnTrace } from "../../hooks/use-turn-trace.ts";
import { rowsOf, summaryOf } from "../../trace.ts";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { TurnMemories } from "../memory/turn-memories.tsx";
import { TraceStep, WIDE_COLUMNS } from "../trace-step.tsx";

/** Steps that the button adds at a time. */
const PAGE_ROWS = 100;

interface WaterfallViewProps {
  turn: TurnView;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function WaterfallView({ turn, nameOf }: WaterfallViewProps) {
  const active = turn.status === "active";
  const { value: trace, error, reload } = useTurnTrace(turn.conversationId, turn.id, active);
  const [shown, setShown] = useState(PAGE_ROWS);
  if (trace === undefined)
    return error === undefined ? (
      <Loading label="Loading the waterfall" />
    ) : (
      <ErrorNote text={messageOf(error)} onRetry={reload} />
    );
  const { rows, shortened } = rowsOf(trace.spans);
  const moves = new Map(turn.moves.map((move) => [move.toolCall?.operationId, move]));
  const { agents, modelCalls, tokens, durationMs } = summaryOf(trace);
  const notes = [
    ...(active ? ["The turn continues. Open steps show their time until now."] : []),
    ...(shortened ? ["The bars shorten long waits."] : []),
    ...(trace.partial
      ? ["Some steps are missing: there are too many, or a conversation could not be read."]
      : []),
  ];
  const summary = [
    `${rows.length} ${rows.length === 1 ? "step" : "steps"}`,
    `${agents} ${agents === 1 ? "agent" : "agents"}`,
    `${modelCalls} model ${modelCalls === 1 ? "call" : "calls"}`,
    amountsText({ tokens }),
    durationText(durationMs),
  ];
  return (
    <section aria-label="Waterfall" data-testid="waterfall" className="space-y-2">
      <p className="px-2 text-xs text-muted">
        {summary.join(" · ")}. Trace <span className="font-mono wrap-anywhere">{trace.traceId}</span>
      </p>
      <div className="rounded-xl border border-line bg-surface p-1">
        <div
          aria-hidden="true"
          className={`hidden gap-x-3 border-b border-line px-2 py-1.5 text-xs text-muted sm:grid ${WIDE_COLUMNS}`}
        >
          <span>Step</span>
          <span>Time</span>
          <span className="text-right">Tokens</span>
          <span className="text-right">Cost</span>
          <span className="text-right">Duration</span>
        </div>
        <ol aria-label="Steps" onKeyDown={moveFocus}>
          {rows.slice(0, shown).map((row) => (
            <TraceStep
              key={row.span.spanId}
              row={row}
              move={moves.get(String(row.span.attributes["dramatis.operation.id"]))}
              nameOf={nameOf}
              hasAmounts
            />
          ))}
        </ol>
      </div>
      {rows.length > shown && (
        <LoadMore
          text={`Show ${Math.min(PAGE_ROWS, rows.length - shown)} more of ${rows.length} steps`}
          onClick={() => setShown(shown + PAGE_ROWS)}
        />
      )}
      {notes.map((note) => (
        <p key={note} className="px-2 text-xs text-muted">
          {note}
        </p>
      ))}
      {!active && <TurnMemories turnId={turn.id} />}
    </section>
  );
}

/** Moves the focus to the step above or below. */
function moveFocus(event: KeyboardEvent<HTMLOListElement>) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const steps = [...event.currentTarget.querySelectorAll<HTMLElement>("summary")];
  const at = steps.findIndex((summary) => summary.matches(":focus"));
  const next = at === -1 ? undefined : steps[at + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}
