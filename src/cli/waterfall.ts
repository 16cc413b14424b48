/**
 * The waterfall of a turn: its spans in the order of their beginnings, each below its parent, with its place in time. Pure.
 *
 * CLITRACE-1  Every span has a line. A long wait does not hide it: a bar has at least one mark.
 */
import type { SpanView } from "../protocol/trace.ts";
import { clean, count, dollars, duration, heading, short } from "./text.ts";

/** Marks of the longest bar. */
const BAR = 16;

/** Returns the names of a span that people use: `model`, `tool`, `agent` and so on. */
const KINDS: Record<string, string> = {
  chat: "model",
  execute_tool: "tool",
  invoke_agent: "agent",
  await_approval: "wait for approval of",
  await_input: "wait for an answer to",
};

/** Returns the name of a span with its facts: status, tokens, cost, attempts and error. */
function labelOf({ name, attributes, error, open }: SpanView): string {
  const [kind = "", ...rest] = name.split(" ");
  const value = (key: string): number => Number(attributes[key] ?? 0);
  const tokens = value("gen_ai.usage.input_tokens") + value("gen_ai.usage.output_tokens");
  const estimated = value("dramatis.usage.estimated_tokens");
  const http = value("http.response.status_code");
  const part = value("dramatis.turn.part");
  const facts = [
    ...(error === undefined ? [] : [`FAILED ${error}${http >= 400 ? ` HTTP ${http}` : ""}`]),
    ...(open ? ["continues"] : []),
    ...(part > 0 ? [`part ${part}`] : []),
    ...(tokens > 0 ? [count(tokens, "token")] : estimated > 0 ? [`about ${count(estimated, "token")}`] : []),
    ...(value("dramatis.cost.usd") > 0 ? [dollars(value("dramatis.cost.usd"))] : []),
    ...(value("dramatis.attempts") > 1 ? [count(value("dramatis.attempts"), "attempt")] : []),
    ...(attributes["dramatis.approval.outcome"] === undefined
      ? []
      : [String(attributes["dramatis.approval.outcome"])]),
    ...(attributes["dramatis.deferred"] === true ? ["deferred"] : []),
  ];
  return [[KINDS[kind] ?? kind, ...rest].join(" "), ...facts].join(", ");
}

/** Returns the depth of each span below spans of the list. */
function depths(spans: readonly SpanView[]): Map<string, number> {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  return new Map(
    spans.map(({ spanId, parentSpanId }) => {
      let depth = 0;
      // A list without cycles ends earlier.
      for (let up = byId.get(parentSpanId ?? ""); up !== undefined && depth < spans.length; depth++)
        up = byId.get(up.parentSpanId ?? "");
      return [spanId, depth];
    }),
  );
}

/** Returns the waterfall as lines, or an empty text without spans. */
export function waterfall(spans: readonly SpanView[], width: number): string {
  if (spans.length === 0) return "";
  const times = spans.map((span) => ({
    span,
    from: Date.parse(span.startedAt),
    to: Date.parse(span.endedAt),
  }));
  const begin = Math.min(...times.map(({ from }) => from));
  const total = Math.max(1, ...times.map(({ to }) => to - begin));
  const depth = depths(spans);
  const longest = (title: string, texts: string[]) =>
    Math.max(title.length, ...texts.map(({ length }) => length));
  const starts = longest(
    "START",
    times.map(({ from }) => duration(from - begin)),
  );
  const tooks = longest(
    "TOOK",
    times.map(({ from, to }) => duration(to - from)),
  );
  const lines = times.map(({ span, from, to }) => {
    const start = Math.min(BAR - 1, Math.floor(((from - begin) / total) * BAR));
    const marks = Math.min(BAR - start, Math.max(1, Math.round(((to - from) / total) * BAR)));
    const bar = (" ".repeat(start) + "█".repeat(marks)).padEnd(BAR);
    const label = "  ".repeat(Math.min(8, depth.get(span.spanId) ?? 0)) + clean(labelOf(span));
    const row = `${duration(from - begin).padStart(starts)}  ${duration(to - from).padStart(tooks)}  ${bar}  `;
    const left = Math.max(20, width - row.length);
    const indent = label.length - label.trimStart().length;
    return row + " ".repeat(indent) + short(label, left - indent);
  });
  return [heading(`${"START".padStart(starts)}  ${"TOOK".padStart(tooks)}`), ...lines].join("\n");
}
