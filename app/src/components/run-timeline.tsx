/** The timeline of a run: a table of the visits of its nodes, with a bar for the time of each. The name of a node shows its details. */
import { useEffect, useState } from "react";
import type { RunView, WorkflowDefinition } from "../../../src/client/index.ts";
import { durationText } from "../format.ts";
import type { RunLog } from "../runs/run-log.ts";
import { type NodeState, TOKEN_TEXT } from "../runs/run-texts.ts";
import { type TimelineRow, timelineOf } from "../runs/run-timeline.ts";
import { LoadMore } from "./load-more.tsx";

const BARS: Record<Exclude<NodeState, "idle">, string> = {
  ready: "bg-muted/60",
  working: "bg-accent",
  asking: "bg-caution",
  waiting: "bg-muted/60",
  retrying: "bg-caution",
  lost: "bg-caution",
  joined: "bg-muted/60",
  completed: "bg-accent",
  failed: "bg-danger",
  cancelled: "bg-muted/60",
};

/** Rows that are shown at once. */
const PAGE = 100;
/** The least length of a bar, as a fraction. */
const LEAST = 0.006;
const TICK_MS = 1_000;

interface RunTimelineProps {
  run: RunView;
  log: RunLog;
  definition: WorkflowDefinition;
  chosen: string | undefined;
  onChoose: (ref: string) => void;
}

export function RunTimeline({ run, log, definition, chosen, onChoose }: RunTimelineProps) {
  const [shown, setShown] = useState(PAGE);
  const endedAt = log.end?.time ?? run.endedAt;
  const now = useNow(endedAt === undefined);
  const begin = Date.parse(run.createdAt);
  const end = endedAt === undefined ? now : Date.parse(endedAt);
  const rows = timelineOf(log.tokens(), begin, end);
  if (rows.length === 0) return null;
  const nameOf = (ref: string) => definition.nodes.find((node) => node.ref === ref)?.name ?? ref;
  return (
    <section aria-labelledby="run-timeline" data-testid="run-timeline" className="space-y-2">
      <div className="flex items-baseline justify-between gap-3">
        <h2 id="run-timeline" className="text-sm font-semibold">
          Timeline
        </h2>
        <span className="text-xs text-muted tabular-nums">{durationText(Math.max(0, end - begin))}</span>
      </div>
      <table className="w-full table-fixed border-collapse text-xs">
        <colgroup>
          <col className="w-2/5 sm:w-1/3" />
          <col />
          <col className="w-20" />
        </colgroup>
        <thead>
          <tr>
            {["Node", "State and beginning", "Duration"].map((heading) => (
              <th key={heading} scope="col" className="relative p-0">
                <span className="sr-only">{heading}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row) => (
            <Row
              key={row.token.id}
              row={row}
              name={nameOf(row.token.node)}
              isChosen={chosen === row.token.node}
              onChoose={() => onChoose(row.token.node)}
            />
          ))}
        </tbody>
      </table>
      {rows.length > shown && (
        <LoadMore
          onClick={() => setShown((count) => count + PAGE)}
          text={`Show ${Math.min(PAGE, rows.length - shown)} more of ${rows.length}`}
        />
      )}
    </section>
  );
}

interface RowProps {
  row: TimelineRow;
  name: string;
  isChosen: boolean;
  onChoose: () => void;
}

function Row({
  row: { token, startsAfter, durationMs, isOpen, left, width },
  name,
  isChosen,
  onChoose,
}: RowProps) {
  const room = Math.max(LEAST, width);
  return (
    <tr data-testid="timeline-row" data-node={token.node} className="hover:bg-line/40">
      <th scope="row" className="py-0.5 pr-3 text-left font-normal">
        <button
          type="button"
          aria-pressed={isChosen}
          onClick={onChoose}
          className="flex w-full min-w-0 items-baseline gap-2 rounded px-1 py-1 text-left hover:underline aria-pressed:font-semibold pointer-coarse:py-2.5"
        >
          <span className="shrink-0 max-w-full truncate">{name}</span>
          {token.path !== undefined && (
            <span className="min-w-0 truncate font-mono font-normal text-muted max-sm:sr-only">
              {token.path}
            </span>
          )}
        </button>
      </th>
      <td className="relative">
        <span className="sr-only">
          {TOKEN_TEXT[token.state]}, began after {durationText(startsAfter)}
        </span>
        <span aria-hidden="true" className="relative block h-2 rounded-full bg-line/60">
          <span
            title={TOKEN_TEXT[token.state]}
            className={`absolute inset-y-0 rounded-full ${BARS[token.state]}`}
            style={{ left: `${Math.min(left, 1 - room) * 100}%`, width: `${room * 100}%` }}
          />
        </span>
      </td>
      <td className="pl-3 text-right text-muted tabular-nums">
        {isOpen && <span className="sr-only">so far </span>}
        {durationText(durationMs)}
      </td>
    </tr>
  );
}

/** Returns the present, which moves while `isMoving` is set. */
function useNow(isMoving: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isMoving) return;
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [isMoving]);
  return now;
}
