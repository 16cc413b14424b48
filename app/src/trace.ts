/**
 * The rows of a trace, for a timeline. Pure.
 *
 * TRACEVIEW-1  Each span has one row, below that of its parent; those of one parent stand in the order of their beginnings. A span
 *              whose parent is not there stands at the top.
 * TRACEVIEW-2  A bar lies within the time of the whole trace, whatever the clocks of the actors say.
 */
import type { SpanView, TraceView } from "../../src/client/index.ts";

/** The kind of work that a span is. `call`: a call of an agent, as its caller sees it. */
export type StepKind = "agent" | "call" | "model" | "tool";

export interface TraceRow {
  span: SpanView;
  kind: StepKind;
  /** The agent that worked or was called, the model, or the tool. */
  subject: string;
  /** Number of rows above it that it belongs to. */
  depth: number;
  /** Milliseconds from the first beginning of the trace. */
  startsAfter: number;
  durationMs: number;
  /** The bar: its beginning and its length, as fractions of the whole trace. */
  left: number;
  width: number;
}

export interface TraceSummary {
  agents: number;
  modelCalls: number;
  tokens: number;
  durationMs: number;
}

type Timed = Omit<SpanView, "startedAt" | "endedAt"> & { span: SpanView; from: number; to: number };

export function rowsOf(spans: readonly SpanView[]): TraceRow[] {
  const timed = timedOf(spans);
  const { first, length } = extentOf(timed);
  const ids = new Set(timed.map(({ spanId }) => spanId));
  const below = Map.groupBy(timed, ({ spanId, parentSpanId }) =>
    parentSpanId !== undefined && parentSpanId !== spanId && ids.has(parentSpanId) ? parentSpanId : "",
  );
  const rows: TraceRow[] = [];
  const add = ({ span, from, to }: Timed, depth: number) => {
    const left = length === 0 ? 0 : (from - first) / length;
    const width = length === 0 ? 1 : (to - from) / length;
    const times = { startsAfter: from - first, durationMs: to - from, left, width };
    rows.push({ span, ...stepOf(span), depth, ...times });
    for (const child of below.get(span.spanId) ?? []) add(child, depth + 1);
  };
  for (const span of below.get("") ?? []) add(span, 0);
  return rows;
}

export function summaryOf({ spans }: Pick<TraceView, "spans">): TraceSummary {
  const steps = spans.map(stepOf);
  const tokens = spans.flatMap(({ attributes }) => [
    attributes["gen_ai.usage.input_tokens"],
    attributes["gen_ai.usage.output_tokens"],
  ]);
  return {
    agents: new Set(steps.flatMap(({ kind, subject }) => (kind === "agent" ? [subject] : []))).size,
    modelCalls: steps.filter(({ kind }) => kind === "model").length,
    tokens: tokens.reduce<number>((sum, count) => sum + (typeof count === "number" ? count : 0), 0),
    durationMs: extentOf(timedOf(spans)).length,
  };
}

/** Returns the spans with their times, by their beginnings; the longer one first where two begin together. */
function timedOf(spans: readonly SpanView[]): Timed[] {
  return spans
    .map((span) => {
      const from = Date.parse(span.startedAt);
      return { ...span, span, from, to: Math.max(from, Date.parse(span.endedAt)) };
    })
    .toSorted((a, b) => a.from - b.from || b.to - a.to);
}

function extentOf(spans: readonly Timed[]): { first: number; length: number } {
  const first = spans.reduce((least, { from }) => Math.min(least, from), Infinity);
  const last = spans.reduce((most, { to }) => Math.max(most, to), -Infinity);
  return spans.length === 0 ? { first: 0, length: 0 } : { first, length: last - first };
}

function stepOf({ name, kind, attributes }: SpanView): { kind: StepKind; subject: string } {
  const of = (attribute: string) => String(attributes[attribute] ?? name);
  switch (attributes["gen_ai.operation.name"]) {
    case "chat":
      return { kind: "model", subject: of("gen_ai.request.model") };
    case "execute_tool":
      return { kind: "tool", subject: of("gen_ai.tool.name") };
    default:
      return { kind: kind === "client" ? "call" : "agent", subject: of("gen_ai.agent.id") };
  }
}
