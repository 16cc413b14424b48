/**
 * The rows of a trace, for a timeline. Pure.
 *
 * TRACEVIEW-1  Each span has one row, below the row of its parent. Spans of one parent are in the order of their starts. A span
 *              without a loaded parent is at the top. A turn after a wait is next to its start, and is marked as its continuation.
 * TRACEVIEW-2  A bar stays within the time of the whole trace, even if the clocks of the actors differ.
 * TRACEVIEW-3  Waits of any length have at most three quarters of the width. During a wait, only calls of agents are open. The
 *              order of all beginnings and ends stays.
 */
import type { SpanView, TraceView } from "../../src/client/index.ts";

/** The kind of work that a span is. `call`: a call of an agent, as its caller sees it. `wait`: a wait for a person. */
export type StepKind = "agent" | "call" | "model" | "tool" | "wait";

export interface TraceRow {
  span: SpanView;
  kind: StepKind;
  /** The agent that worked or was called, the model, or the tool that ran or waited. */
  subject: string;
  /** The turn of an agent continues after a wait. */
  isContinued: boolean;
  /** Number of rows above it that it belongs to. */
  depth: number;
  /** Milliseconds from the first beginning of the trace. */
  startsAfter: number;
  durationMs: number;
  /** The bar: its beginning and its length, as fractions of the whole room. */
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

export interface TraceRows {
  rows: TraceRow[];
  /** Waits have less room than their time (TRACEVIEW-3). */
  shortened: boolean;
}

export function rowsOf(spans: readonly SpanView[]): TraceRows {
  const timed = timedOf(spans);
  const { first } = extentOf(timed);
  const { placeOf, room, shortened } = roomOf(timed);
  const byId = new Map(timed.map((one) => [one.spanId, one]));
  const parentOf = ({ spanId, parentSpanId = "" }: Timed) =>
    parentSpanId === spanId ? undefined : byId.get(parentSpanId);
  const below = Map.groupBy(timed, (one) => {
    const parent = parentOf(one);
    const above = parent !== undefined && isContinued(one.span) ? parentOf(parent) : parent;
    return above?.spanId ?? "";
  });
  const rows: TraceRow[] = [];
  const add = ({ span, from, to }: Timed, depth: number) => {
    const left = room === 0 ? 0 : placeOf(from) / room;
    const width = room === 0 ? 1 : (placeOf(to) - placeOf(from)) / room;
    const times = { startsAfter: from - first, durationMs: to - from, left, width };
    rows.push({ span, ...stepOf(span), isContinued: isContinued(span), depth, ...times });
    for (const child of below.get(span.spanId) ?? []) add(child, depth + 1);
  };
  for (const span of below.get("") ?? []) add(span, 0);
  return { rows, shortened };
}

export function summaryOf({ spans }: Pick<TraceView, "spans">): TraceSummary {
  const steps = spans.map(stepOf);
  const sumOf = (...names: string[]) =>
    spans
      .flatMap(({ attributes }) => names.map((name) => attributes[name]))
      .reduce<number>((sum, count) => sum + (typeof count === "number" ? count : 0), 0);
  return {
    agents: new Set(steps.flatMap(({ kind, subject }) => (kind === "agent" ? [subject] : []))).size,
    modelCalls: steps.filter(({ kind }) => kind === "model").length + sumOf("dramatis.task.model_calls"),
    tokens: sumOf(
      "gen_ai.usage.input_tokens",
      "gen_ai.usage.output_tokens",
      "dramatis.task.input_tokens",
      "dramatis.task.output_tokens",
    ),
    durationMs: extentOf(timedOf(spans)).length,
  };
}

/** Returns the tokens, the dollars and the attempts of a span itself. */
export function amountsOf({ attributes }: SpanView): { tokens: number; usd: number; attempts: number } {
  const of = (name: string) => Number(attributes[name] ?? 0);
  const counted = of("gen_ai.usage.input_tokens") + of("gen_ai.usage.output_tokens");
  const ofTask = of("dramatis.task.input_tokens") + of("dramatis.task.output_tokens");
  return { tokens: counted + ofTask, usd: of("dramatis.cost.usd"), attempts: of("dramatis.attempts") };
}

/** Returns the spans with their times, by start. If two start together, the longer span is first. */
function timedOf(spans: readonly SpanView[]): Timed[] {
  return spans
    .map((span) => {
      const from = Date.parse(span.startedAt);
      return { ...span, span, from, to: Math.max(from, Date.parse(span.endedAt)) };
    })
    .toSorted((a, b) => a.from - b.from || b.to - a.to);
}

/** Maximum room of all waits, as a multiple of the room of all work. */
const MAX_WAITS = 3;

interface Stretch {
  from: number;
  to: number;
  /** Its beginning in the room. */
  at: number;
  /** Room for a millisecond. */
  scale: number;
}

/** Maps times to the axis of the bars. Work keeps its scale, and long waits shrink. `spans` are in the order of their starts. */
function roomOf(spans: readonly Timed[]): {
  placeOf: (time: number) => number;
  room: number;
  shortened: boolean;
} {
  const works: { from: number; to: number }[] = [];
  for (const { span, from, to } of spans) {
    const { kind } = stepOf(span);
    if (kind === "call" || kind === "wait") continue;
    const last = works.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else works.push({ from, to });
  }
  const worked = works.reduce((sum, { from, to }) => sum + to - from, 0);
  const { first, length } = extentOf(spans);
  const stretches: Stretch[] = [];
  let room = 0;
  const add = (from: number, to: number, scale: number) => {
    if (to <= from) return;
    stretches.push({ from, to, at: room, scale });
    room += (to - from) * scale;
  };
  const waits = length - worked;
  const waitScale = worked === 0 ? 1 : Math.min(1, (worked * MAX_WAITS) / waits);
  let end = first;
  for (const { from, to } of works) {
    add(end, from, waitScale);
    add(from, to, 1);
    end = to;
  }
  add(end, first + length, waitScale);
  const placeOf = (time: number) => {
    let [low, high] = [0, stretches.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((stretches[middle]?.to ?? time) < time) low = middle + 1;
      else high = middle;
    }
    const found = stretches[low];
    return found === undefined ? room : found.at + Math.max(0, time - found.from) * found.scale;
  };
  return { placeOf, room, shortened: stretches.some(({ scale }) => scale < 1) };
}

function extentOf(spans: readonly Timed[]): { first: number; length: number } {
  const first = spans.reduce((least, { from }) => Math.min(least, from), Infinity);
  const last = spans.reduce((most, { to }) => Math.max(most, to), -Infinity);
  return spans.length === 0 ? { first: 0, length: 0 } : { first, length: last - first };
}

function isContinued({ attributes }: SpanView): boolean {
  return Number(attributes["dramatis.turn.part"]) > 1;
}

function stepOf({ name, kind, attributes }: SpanView): { kind: StepKind; subject: string } {
  const of = (attribute: string) => String(attributes[attribute] ?? name);
  switch (attributes["gen_ai.operation.name"]) {
    case "chat":
      return { kind: "model", subject: of("gen_ai.request.model") };
    case "execute_tool":
      return { kind: "tool", subject: of("gen_ai.tool.name") };
    case "await_approval":
      return { kind: "wait", subject: of("gen_ai.tool.name") };
    default:
      return { kind: kind === "client" ? "call" : "agent", subject: of("gen_ai.agent.id") };
  }
}
