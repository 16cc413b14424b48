/** One step of a trace: its name, its bar on the common time axis, and its duration. Open, it shows the input and the result of a call, and all details. */
import { useState } from "react";
import type { TurnView } from "../../../src/client/index.ts";
import { amountsText, durationText, isStopped } from "../format.ts";
import { amountsOf, type StepKind, type TraceRow } from "../trace.ts";
import { type Fact, Facts } from "./facts.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { JsonView } from "./json-view.tsx";

const looks: Record<StepKind, { text: string; icon: IconName; bar: string }> = {
  agent: { text: "Agent", icon: "agent", bar: "bg-accent" },
  call: { text: "Call of an agent", icon: "send", bar: "bg-accent/50" },
  model: { text: "Model call", icon: "model", bar: "bg-caution" },
  tool: { text: "Tool", icon: "tool", bar: "bg-muted" },
  wait: { text: "Wait", icon: "clock", bar: "bg-muted/40" },
};

/** Deeper steps have the indent of this depth. */
const MAX_INDENT = 8;
/** The shortest bar, as a fraction of the full width. Shorter bars would be invisible. */
const MIN_WIDTH = 0.006;

const COLUMNS = "sm:grid-cols-[minmax(0,2fr)_minmax(0,3fr)_4.5rem]";
/** With tokens and cost. */
export const WIDE_COLUMNS = "sm:grid-cols-[minmax(0,2fr)_minmax(0,3fr)_6rem_4.5rem_5rem]";

interface TraceStepProps {
  row: TraceRow;
  /** Shows tokens and cost in columns of their own. */
  hasAmounts?: boolean;
  /** The call of the step, with its input and its result. */
  move?: TurnView["moves"][number] | undefined;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function TraceStep({ row, hasAmounts = false, move, nameOf }: TraceStepProps) {
  const { span, kind, subject, isContinued, depth, startsAfter, durationMs, left, width } = row;
  const [open, setOpen] = useState(false);
  const { text, icon, bar } = looks[kind];
  const isAgent = kind === "agent" || kind === "call";
  const { tokens, usd, attempts } = amountsOf(span);
  const isStop = isStopped(span.error);
  const shown = Math.max(width, MIN_WIDTH);
  return (
    <li data-testid="trace-step" data-kind={kind} data-depth={depth}>
      <details
        onToggle={(event) => {
          if (event.target === event.currentTarget) setOpen(event.currentTarget.open);
        }}
        className="rounded-lg open:bg-sunken"
      >
        <summary
          className={`grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 rounded-lg px-2 py-1.5 text-xs hover:bg-sunken pointer-coarse:py-2.5 [&::-webkit-details-marker]:hidden ${hasAmounts ? WIDE_COLUMNS : COLUMNS}`}
        >
          <span
            className="flex min-w-0 items-center gap-1.5"
            style={{ paddingLeft: `${Math.min(depth, MAX_INDENT) * 0.75}rem` }}
          >
            <Icon name={icon} className="size-3.5 text-muted" />
            <span className="sr-only">
              Level {depth + 1}. {text}:{" "}
            </span>
            <span
              className={`min-w-0 truncate ${isAgent ? "font-medium" : kind === "wait" ? "" : "font-mono"}`}
            >
              {isAgent ? nameOf(subject) : kind === "wait" ? `Approval of ${subject}` : subject}
              {isContinued && <span className="font-normal text-muted">, continued</span>}
            </span>
            {hasAmounts && attempts > 1 && (
              <span className="shrink-0 rounded bg-caution-tint px-1 text-caution">{attempts} attempts</span>
            )}
            {span.error !== undefined && (
              <span className={`shrink-0 ${isStop ? "text-muted" : "text-danger"}`}>
                {!isStop && <span className="sr-only">failed: </span>}
                {isStop ? "Stopped" : span.error}
              </span>
            )}
          </span>
          {hasAmounts && (
            <>
              <span className="text-muted tabular-nums max-sm:hidden sm:order-3 sm:text-right">
                {tokens > 0 && tokens.toLocaleString()}
              </span>
              <span className="text-muted tabular-nums max-sm:hidden sm:order-4 sm:text-right">
                {usd > 0 && amountsText({ usd })}
              </span>
            </>
          )}
          <span className="text-right text-muted tabular-nums sm:order-last">
            <span className="sr-only">{span.open ? "continues since " : "took "}</span>
            {span.open && <Icon name="spinner" className="spin mr-1 inline size-3 text-accent" />}
            {durationText(durationMs)}
            <span className="sr-only">, began after {durationText(startsAfter)}</span>
          </span>
          <span aria-hidden="true" className="relative col-span-2 h-2 rounded-full bg-line/60 sm:col-span-1">
            <span
              className={`absolute inset-y-0 rounded-full ${span.error === undefined ? bar : isStop ? "bg-muted/60" : "bg-danger"}`}
              style={{ left: `${Math.min(left, 1 - shown) * 100}%`, width: `${shown * 100}%` }}
            />
          </span>
          {hasAmounts && (tokens > 0 || usd > 0) && (
            <span className="col-span-2 text-muted tabular-nums sm:hidden">
              {amountsText({ ...(tokens > 0 ? { tokens } : {}), usd })}
            </span>
          )}
        </summary>
        {open && <Details row={row} move={move} />}
      </details>
    </li>
  );
}

function Details({ row: { span, startsAfter }, move }: Pick<TraceStepProps, "row" | "move">) {
  const { toolCall, toolResult } = move ?? {};
  const { attributes, startedAt, spanId, name } = span;
  const number = (key: string) => (typeof attributes[key] === "number" ? attributes[key] : undefined);
  const input = number("gen_ai.usage.input_tokens");
  const output = number("gen_ai.usage.output_tokens");
  const usd = number("dramatis.cost.usd");
  const tokens =
    input === undefined && output === undefined
      ? undefined
      : `${(input ?? 0).toLocaleString()} in · ${(output ?? 0).toLocaleString()} out`;
  const facts: Fact[] = [
    ["Span", `${name} · ${spanId}`],
    ["Began", `${startedAt}, after ${durationText(startsAfter)}`],
    ["Tokens", tokens],
    ["Cost", usd === undefined ? undefined : amountsText({ usd })],
  ];
  return (
    <div className="space-y-2 px-2 pt-1 pb-3 text-xs">
      {toolResult?.error !== undefined && (
        <p data-testid="step-error" className="rounded-lg bg-danger-tint px-2.5 py-2 wrap-anywhere">
          <span className="font-mono text-danger">{toolResult.error.code}</span> {toolResult.error.message}
        </p>
      )}
      {toolCall !== undefined && <JsonView label="Input" value={toolCall.input} />}
      {toolResult?.success === true && <JsonView label="Result" value={toolResult.result} />}
      <Facts facts={facts} />
      <JsonView label="Attributes" value={attributes} />
    </div>
  );
}
