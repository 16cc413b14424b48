/** The timeline of a trace in the console: its rows, bars and sums. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { durationText } from "../../app/src/format.ts";
import { rowsOf, summaryOf } from "../../app/src/trace.ts";
import type { SpanView } from "../../src/client/index.ts";

const START = Date.UTC(2026, 10, 23, 12);
const at = (ms: number) => new Date(START + ms).toISOString();

function span(spanId: string, from: number, to: number, more: Partial<SpanView> = {}): SpanView {
  return {
    spanId,
    name: `span ${spanId}`,
    kind: "internal",
    startedAt: at(from),
    endedAt: at(to),
    attributes: {},
    ...more,
  };
}

const chat = (id: string, from: number, to: number, parentSpanId: string, tokens: [number, number]) =>
  span(id, from, to, {
    parentSpanId,
    kind: "client",
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": "offline-1",
      "gen_ai.usage.input_tokens": tokens[0],
      "gen_ai.usage.output_tokens": tokens[1],
    },
  });
const agent = (id: string, from: number, to: number, agentId: string, more: Partial<SpanView> = {}) =>
  span(id, from, to, {
    attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": agentId },
    ...more,
  });

/** A manager calls a model, and asks a helper, who calls a model. */
const SPANS: SpanView[] = [
  chat("d", 300, 700, "c", [50, 5]),
  agent("b", 200, 900, "helper", { parentSpanId: "a", kind: "client" }),
  agent("c", 250, 800, "helper", { parentSpanId: "b" }),
  agent("a", 0, 1_000, "manager"),
  chat("e", 10, 200, "a", [100, 10]),
];

describe("rows", () => {
  it("TRACEVIEW-1 are below their parents, in the order of their starts", () => {
    const rows = rowsOf(SPANS).rows.map(({ span, kind, subject, depth }) => [
      span.spanId,
      kind,
      subject,
      depth,
    ]);
    expect(rows).toEqual([
      ["a", "agent", "manager", 0],
      ["e", "model", "offline-1", 1],
      ["b", "call", "helper", 1],
      ["c", "agent", "helper", 2],
      ["d", "model", "offline-1", 3],
    ]);
    expect(rowsOf(SPANS).shortened).toBe(false);
    expect(rowsOf(SPANS).rows[2]).toMatchObject({ startsAfter: 200, durationMs: 700, left: 0.2, width: 0.7 });
  });

  it("TRACEVIEW-1 the turn after a wait is beside its start, and the wait has its name", () => {
    const tool = { "gen_ai.tool.name": "pay" };
    const rows = rowsOf([
      agent("boss", 0, 100, "boss"),
      agent("call", 100, 30_200, "dev", { parentSpanId: "boss", kind: "client" }),
      agent("dev", 100, 200, "dev", { parentSpanId: "call" }),
      span("wait", 200, 30_000, {
        parentSpanId: "dev",
        attributes: { "gen_ai.operation.name": "await_approval", ...tool },
      }),
      agent("more", 30_000, 30_200, "dev", {
        parentSpanId: "dev",
        attributes: { "gen_ai.agent.id": "dev", "dramatis.turn.part": 2 },
      }),
    ]);
    expect(
      rows.rows.map(({ span, kind, subject, depth, isContinued }) => [
        span.spanId,
        kind,
        subject,
        depth,
        isContinued,
      ]),
    ).toEqual([
      ["boss", "agent", "boss", 0, false],
      ["call", "call", "dev", 1, false],
      ["dev", "agent", "dev", 2, false],
      ["wait", "wait", "pay", 3, false],
      ["more", "agent", "dev", 2, true],
    ]);
    expect(rows.shortened).toBe(true);
  });

  it("TRACEVIEW-1 a span with an unknown or unfinished parent is at the top", () => {
    const rows = rowsOf(SPANS.filter(({ spanId }) => spanId !== "a" && spanId !== "b")).rows;
    expect(rows.map(({ span, depth }) => [span.spanId, depth])).toEqual([
      ["e", 0],
      ["c", 0],
      ["d", 1],
    ]);
  });

  it("TRACEVIEW-1 TRACEVIEW-2 any spans: one row each, below its parent, with a bar within the whole", () => {
    const time = fc.integer({ min: 0, max: 90_000_000 });
    const forest = fc
      .array(fc.record({ from: time, to: time, parent: fc.nat(40) }), { maxLength: 30 })
      .map((spans) =>
        spans.map(({ from, to, parent }, index) =>
          // A parent has a lower number: spans form no circle.
          span(`s${index}`, from, to, parent < index ? { parentSpanId: `s${parent}` } : {}),
        ),
      );
    fc.assert(
      fc.property(forest, (spans) => {
        const { rows } = rowsOf(spans);
        expect(rows.map(({ span }) => span.spanId).toSorted()).toEqual(
          spans.map(({ spanId }) => spanId).toSorted(),
        );
        rows.forEach(({ span, depth, left, width }, index) => {
          const parent = rows.findIndex((row) => row.span.spanId === span.parentSpanId);
          expect(parent).toBeLessThan(index);
          expect(depth).toBe(parent === -1 ? 0 : (rows[parent]?.depth ?? 0) + 1);
          expect(Math.min(left, width)).toBeGreaterThanOrEqual(0);
          expect(left + width).toBeLessThanOrEqual(1.000_001);
        });
        const byTime = rows.toSorted((a, b) => a.startsAfter - b.startsAfter);
        byTime.slice(1).forEach(({ left }, index) => {
          expect(left, "TRACEVIEW-3").toBeGreaterThanOrEqual((byTime[index]?.left ?? 0) - 1e-9);
        });
      }),
    );
  });

  it("TRACEVIEW-3 a wait of a day is shortened to leave room for the work, and its time is shown", () => {
    const day = 86_400_000;
    const { rows, shortened } = rowsOf([
      agent("a", 0, 500, "manager"),
      agent("b", 400, day, "helper", { parentSpanId: "a", kind: "client" }),
      agent("c", day, day + 500, "manager", { parentSpanId: "a" }),
    ]);
    expect(shortened).toBe(true);
    const [first, call, last] = rows;
    expect(first?.width).toBeCloseTo(1 / 8);
    expect(last?.width).toBeCloseTo(1 / 8);
    expect(call).toMatchObject({ durationMs: day - 400 });
    expect(call?.width).toBeCloseTo(3 / 4 + 1 / 40);
    expect(last?.startsAfter).toBe(day);
  });

  it("no spans: no rows, and a summary of zeros", () => {
    expect(rowsOf([])).toEqual({ rows: [], shortened: false });
    expect(summaryOf({ spans: [] })).toEqual({ agents: 0, modelCalls: 0, tokens: 0, durationMs: 0 });
  });

  it("a span of no length fills the bar of a trace of no length", () => {
    expect(rowsOf([span("a", 5, 5)]).rows).toMatchObject([{ left: 0, width: 1, durationMs: 0 }]);
  });
});

it("sums agents, model calls, tokens and time", () => {
  expect(summaryOf({ spans: SPANS })).toEqual({ agents: 2, modelCalls: 2, tokens: 165, durationMs: 1_000 });
});

it("counts a task's model calls", () => {
  const [first] = SPANS;
  if (first === undefined) throw new Error("There are spans.");
  const attributes = {
    "gen_ai.operation.name": "execute_tool",
    "dramatis.task.model_calls": 2,
    "dramatis.task.input_tokens": 60,
    "dramatis.task.output_tokens": 7,
  };
  const sum = summaryOf({ spans: [...SPANS, { ...first, name: "execute_tool bill", attributes }] });
  expect(sum).toMatchObject({ modelCalls: 4, tokens: 232 });
});

it.each([
  [0, "0 ms"],
  [999.4, "999 ms"],
  [1_234, "1.2 s"],
  [59_940, "59.9 s"],
  [59_960, "1 min 0 s"],
  [125_000, "2 min 5 s"],
  [3_599_700, "1 h 0 min"],
  [86_580_000, "24 h 3 min"],
])("%d ms as text", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
