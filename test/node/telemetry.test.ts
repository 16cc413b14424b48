/** Spans: their ids, the places that headers name, their form for collectors, and their way out. */
import { once } from "node:events";
import { createServer } from "node:http";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { logLines } from "../../src/adapters/telemetry/log-lines.ts";
import { otlpBody } from "../../src/adapters/telemetry/otlp.ts";
import { exporterOf, otlpExporter } from "../../src/adapters/telemetry/otlp-exporter.ts";
import {
  EXPORT_TIMEOUT_MS,
  MAX_BATCH_SPANS,
  MAX_WAITING_SPANS,
  SpanQueue,
} from "../../src/adapters/telemetry/span-queue.ts";
import type { Operation } from "../../src/agents/conversation/core/operation.ts";
import { endedSpans, spansOf } from "../../src/agents/conversation/core/spans.ts";
import { type ConversationState, NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { beginTransition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { noteWork, workTimes } from "../../src/agents/conversation/core/work-times.ts";
import { startTurnSchema } from "../../src/agents/conversation/inbound/requests.ts";
import { parseTraceparent, type Span, spanIdOf, traceIdOf, traceparentOf } from "../../src/model/span.ts";
import { validate } from "../../src/shared/validation.ts";
import { recordOf } from "../support/records.ts";

afterEach(() => vi.restoreAllMocks());

function span(index: number, more: Partial<Span> = {}): Span {
  return {
    traceId: traceIdOf("t"),
    spanId: spanIdOf(String(index)),
    name: "chat m",
    kind: "client",
    startedAt: 1_700_000_000_000,
    endedAt: 1_700_000_000_250,
    attributes: {},
    ...more,
  };
}

describe("LOG-1 lines of the log", () => {
  const tool = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search" };
  const chat = { "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "dramatis.attempts": 1 };
  const ids = {
    "dramatis.turn.id": "turn_1",
    "gen_ai.conversation.id": "conv_1",
    "gen_ai.agent.id": "guide",
  };

  test("has turns, failed tools and model errors, and no correlation id", () => {
    const spans = [
      span(1, {
        attributes: { ...ids, "dramatis.turn.status": "failed", "dramatis.turn.duration_ms": 900 },
        error: "CANCELLED",
      }),
      span(2, {
        attributes: { ...ids, ...tool, "dramatis.correlation.id": "Ada's order" },
        error: "TIMEOUT",
      }),
      span(3, { attributes: { ...ids, ...tool } }),
      span(4, { attributes: { ...ids, ...chat } }),
      span(5, { attributes: { ...ids, ...chat, "dramatis.attempts": 2 } }),
      span(6, { attributes: { ...ids, ...chat, "http.response.status_code": 429 }, error: "rate_limit" }),
    ];
    const where = "turn=turn_1 conversation=conv_1 agent=guide";
    const trace = `trace=${traceIdOf("t")}`;
    expect(logLines(spans)).toEqual([
      `tool failed tool=search ${where} code=TIMEOUT ms=250 ${trace}`,
      `model retried model=m attempts=2 ${where} ms=250 ${trace}`,
      `model failed model=m status=429 attempts=1 ${where} code=rate_limit ms=250 ${trace}`,
      `turn failed ms=900 ${where} code=CANCELLED ${trace}`,
    ]);
  });

  test("keeps each value on its line", () => {
    const attributes = { ...tool, "gen_ai.tool.name": "a b\nturn completed" };
    expect(logLines([span(1, { attributes, error: "TIMEOUT" })])).toEqual([
      expect.stringContaining(String.raw`tool="a b\nturn completed" `),
    ]);
  });
});

describe("places in traces", () => {
  const hex = (length: number) =>
    fc
      .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
      .map((digits) => digits.join(""))
      .filter((text) => !/^0+$/.test(text));

  test("SPAN-2 a header is restored unchanged", () => {
    fc.assert(
      fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, isSampled) => {
        const place = { traceId, spanId, isSampled };
        expect(parseTraceparent(traceparentOf(place))).toEqual(place);
      }),
    );
  });

  test.each([
    ["", "absent"],
    ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", "short"],
    ["00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "capitals"],
    ["00-00000000000000000000000000000000-00f067aa0ba902b7-01", "no trace"],
    ["00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "no span"],
    ["ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "forbidden version"],
    ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", "more than version 00 has"],
  ])("SPAN-2 %j is invalid: %s", (header) => {
    expect(parseTraceparent(header)).toBeUndefined();
  });

  test("SPAN-2 a later version may have more", () => {
    const header = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what-comes";
    expect(parseTraceparent(header)).toMatchObject({ spanId: "00f067aa0ba902b7", isSampled: false });
  });

  test("SPAN-2 of a later version's header, a message keeps the parts that spans need; an endless header is invalid", () => {
    const place = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
    const storedMessage = (traceparent: string) =>
      validate(startTurnSchema, { content: "Hi", traceparent }, "", "The message");
    expect(storedMessage(`cc-${place}-03-${"z".repeat(100)}`)).toEqual({
      content: "Hi",
      traceparent: `00-${place}-01`,
    });
    expect(storedMessage(`00-${place}-00`)).toEqual({ content: "Hi", traceparent: `00-${place}-00` });
    for (const header of [`cc-${place}-01-${"z".repeat(60_000)}`, "nonsense"])
      expect(storedMessage(header)).toEqual({ content: "Hi" });
  });

  test("SPAN-1 ids have their form, derive from their texts, and differ if the texts differ", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { minLength: 2, maxLength: 40 }), (texts) => {
        expect(new Set(texts.map(spanIdOf)).size).toBe(texts.length);
        expect(new Set(texts.map(traceIdOf)).size).toBe(texts.length);
        for (const text of texts) {
          expect(spanIdOf(text)).toMatch(/^(?!0+$)[0-9a-f]{16}$/);
          expect(traceIdOf(text)).toMatch(/^(?!0+$)[0-9a-f]{32}$/);
          expect(spanIdOf(text)).toBe(spanIdOf(`${text}`));
        }
      }),
    );
  });
});

describe("OTLP", () => {
  test("OTLP-1 has ids in hexadecimal, times in nanoseconds, and a value of each type", () => {
    const attributes = { text: "a", whole: 12, half: 0.5, yes: true, list: ["stop"] };
    const sent = span(1, { parentSpanId: "00f067aa0ba902b7", attributes, error: "TIMEOUT" });
    expect(otlpBody([sent], "shop")).toEqual({
      resourceSpans: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "shop" } }] },
          scopeSpans: [
            {
              scope: { name: "dramatis" },
              spans: [
                {
                  traceId: sent.traceId,
                  spanId: sent.spanId,
                  parentSpanId: "00f067aa0ba902b7",
                  name: "chat m",
                  kind: 3,
                  startTimeUnixNano: "1700000000000000000",
                  endTimeUnixNano: "1700000000250000000",
                  attributes: [
                    { key: "text", value: { stringValue: "a" } },
                    { key: "whole", value: { intValue: "12" } },
                    { key: "half", value: { doubleValue: 0.5 } },
                    { key: "yes", value: { boolValue: true } },
                    { key: "list", value: { arrayValue: { values: [{ stringValue: "stop" }] } } },
                    { key: "error.type", value: { stringValue: "TIMEOUT" } },
                  ],
                  status: { code: 2, message: "TIMEOUT" },
                },
              ],
            },
          ],
        },
      ],
    });
  });

  test("OTLP-2 the environment names the collector, its headers and the service; redirects and refusals are failures", async () => {
    const seen: { url: string | undefined; key: string | undefined; body: string }[] = [];
    const server = createServer(async (incoming, outgoing) => {
      let body = "";
      for await (const chunk of incoming) body += chunk;
      seen.push({ url: incoming.url, key: incoming.headers["x-key"]?.toString(), body });
      if (incoming.url?.startsWith("/moved")) outgoing.writeHead(307, { location: "/elsewhere" }).end();
      else outgoing.writeHead(incoming.url?.startsWith("/no") ? 401 : 200).end("{}");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      // SAFETY: it listens on a port.
      const { port } = server.address() as { port: number };
      const base = `http://127.0.0.1:${port}`;
      const { signal } = new AbortController();
      const headers = { OTEL_EXPORTER_OTLP_HEADERS: "x-key=sk%2C1, other = 2", OTEL_SERVICE_NAME: " shop " };
      await exporterOf({ OTEL_EXPORTER_OTLP_ENDPOINT: `${base}/`, ...headers })?.export([span(1)], signal);
      expect(seen[0]).toMatchObject({ url: "/v1/traces", key: "sk,1" });
      expect(seen[0]?.body).toContain('"shop"');
      await exporterOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${base}/own` })?.export([span(1)], signal);
      expect(seen[1]?.url).toBe("/own");
      for (const [path, why] of [
        ["/moved", "307"],
        ["/no", "401"],
      ] as const)
        await expect(
          otlpExporter({ url: base + path, headers: { "x-key": "sk" } }).export([span(1)], signal),
        ).rejects.toThrow(why);
      expect(seen.map(({ url }) => url)).not.toContain("/elsewhere");
    } finally {
      server.close();
    }
  });

  test("OTLP-2 without a collector no span is exported; an invalid setting is named without its value", () => {
    expect(exporterOf({})).toBeUndefined();
    expect(exporterOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "  " })).toBeUndefined();
    expect(() => exporterOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:sk-1" })).toThrow(
      /OTEL_EXPORTER_OTLP_ENDPOINT must/,
    );
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example" };
    for (const headers of ["sk-secret", "=sk-secret", "a=%sk-secret", "a b=sk-secret", "a=x%0Ask-secret"]) {
      const failure = () => exporterOf({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers });
      expect(failure, headers).toThrow(/OTEL_EXPORTER_OTLP_HEADERS must/);
      expect(failure, headers).not.toThrow(/sk-secret/);
    }
  });
});

describe("the queue of spans", () => {
  /** A clock with timers that the test fires. */
  function steered() {
    const timers = new Set<() => void>();
    return {
      clock: {
        timer(milliseconds: number, callback: () => void) {
          expect(milliseconds).toBe(EXPORT_TIMEOUT_MS);
          timers.add(callback);
          return () => timers.delete(callback);
        },
      },
      fire() {
        for (const callback of timers) callback();
      },
    };
  }

  /** An exporter that answers on the test's command. */
  function exporter() {
    const batches: (readonly Span[])[] = [];
    const answers: { resolve: () => void; reject: (error: unknown) => void }[] = [];
    return {
      batches,
      answers,
      export(spans: readonly Span[]) {
        batches.push(spans);
        return new Promise<void>((resolve, reject) => answers.push({ resolve, reject }));
      },
    };
  }

  const many = (count: number) => Array.from({ length: count }, (_, index) => span(index));
  const turnsOfLoop = () => new Promise((resolve) => setImmediate(resolve));

  test("SPANOUT-2 exports at once; later spans are the next batch, of bounded size", async () => {
    const out = exporter();
    const work: Promise<void>[] = [];
    const queue = new SpanQueue(steered().clock, out, (one) => work.push(one));
    queue.add(many(1));
    queue.add(many(2));
    queue.add(many(MAX_BATCH_SPANS));
    expect(out.batches.map(({ length }) => length)).toEqual([1]);
    for (let answered = 0; answered < 3; answered++) {
      out.answers[answered]?.resolve();
      await turnsOfLoop();
    }
    await Promise.all(work);
    expect(out.batches.map(({ length }) => length)).toEqual([1, MAX_BATCH_SPANS, 2]);
    expect(work).toHaveLength(1);
  });

  test("SPANOUT-1 failures and silence lose their batch only", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const out = exporter();
    const { clock, fire } = steered();
    const queue = new SpanQueue(clock, out, () => undefined);
    queue.add([span(1)]);
    queue.add([span(2)]);
    out.answers[0]?.reject(new Error("No."));
    await turnsOfLoop();
    fire();
    await turnsOfLoop();
    queue.add([span(3)]);
    expect(out.batches.map(([one]) => one?.spanId)).toEqual(
      [1, 2, 3].map((index) => spanIdOf(String(index))),
    );
    expect(errors).toHaveBeenCalledTimes(2);
    const throws = new SpanQueue(clock, { export: () => expect.fail("broken") }, () => undefined);
    throws.add([span(1)]);
    await turnsOfLoop();
    expect(errors).toHaveBeenCalledTimes(3);
  });

  test("SPANOUT-2 the oldest are lost beyond the limit, and the log says how many", () => {
    const warnings = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const queue = new SpanQueue(steered().clock, exporter(), () => undefined);
    queue.add([span(0)]);
    queue.add(many(MAX_WAITING_SPANS + 5));
    expect(warnings.mock.calls).toEqual([[expect.stringMatching(/^5 spans were lost/)]]);
  });
});

describe("the working times of a turn", () => {
  const record = recordOf();
  const calling = { item: 1, attempt: 1, notBefore: 0, final: false };
  const base: Turn = {
    ...{ n: 1, stem: "01ARZ3NDEKTSV4RRFFQ", agentId: record.agents[0].id, input: "go" },
    caller: { type: "user", userId: "ada" },
    status: "active",
    ...{ createdAt: 10, firstSeq: 2, snapshotSeq: 2, items: 2, call: calling },
    ...{ replies: [], operations: [], recoveries: 0, issues: {} },
  };
  const stateOf = (...turns: Turn[]): ConversationState => {
    const active = new Map(turns.filter(({ status }) => status === "active").map((turn) => [turn.n, turn]));
    return { ...NEW_STATE, record, seq: 5, turns: 1, active, stored: new Map() };
  };
  /** The turn after a commit that makes it `next`. */
  const commit = (before: Turn | undefined, next: Turn, now: number): Turn => {
    const state = before === undefined ? stateOf() : stateOf(before);
    const transition = { ...beginTransition(stateOf(next)), touched: new Map([[1, next]]) };
    const noted = noteWork(state, transition, now);
    const turn = noted.touched.get(1);
    if (next.status === "active") expect(noted.state.active.get(1)).toBe(turn);
    return turn ?? expect.fail("no turn");
  };
  const waits = (turn: Turn): Turn => ({ ...turn, call: null, waiting: 7 });
  const over = (turn: Turn, now: number): Turn => ({
    ...turn,
    call: null,
    status: "completed",
    completedAt: now,
  });

  test("WORK-1 a turn without waits stores no times, and has a single time from its start to its end", () => {
    const begun = commit(undefined, base, 10);
    const ended = commit(begun, over(begun, 30), 30);
    expect([begun.worked, ended.worked]).toEqual([undefined, undefined]);
    expect(workTimes(ended)).toEqual([{ from: 10, to: 30 }]);
  });

  test("WORK-1 waits do not count, and a turn that ends while it waits ends with an empty time", () => {
    const waiting = commit(base, waits(base), 20);
    expect(waiting.worked).toEqual([{ from: 10, to: 20 }]);
    expect(commit(waiting, { ...waiting, recoveries: 1 }, 25).worked).toBe(waiting.worked);
    const again = commit(waiting, { ...waiting, call: calling }, 90);
    expect(again.worked).toEqual([{ from: 10, to: 20 }, { from: 90 }]);
    expect(workTimes(commit(again, over(again, 99), 99))).toEqual([
      { from: 10, to: 20 },
      { from: 90, to: 99 },
    ]);
    expect(workTimes(commit(waiting, over(waiting, 95), 95)).at(-1)).toEqual({ from: 95, to: 95 });
  });

  test("WORK-1 a queued turn begins to work at its turn", () => {
    const queued = commit(undefined, { ...base, call: null, queued: true }, 10);
    expect(queued.worked).toEqual([]);
    const begun = commit(queued, { ...base, worked: [] }, 40);
    expect(begun.worked).toEqual([{ from: 40 }]);
  });

  test("SPANS-4 a name that a model made up is in no span, and a long id of a provider is cut", () => {
    const invented = `SECRET_${"x".repeat(3_000)}`;
    const operation: Operation = {
      ...{ item: 2, reply: 0, toolCallId: "c".repeat(3_000), name: invented, tool: null },
      effect: "pure",
      target: "code",
      mode: "sync",
      status: "failed",
      ...{ attempt: 1, timeoutMs: 0, input: {}, completedAt: 20 },
    };
    const known = { ...operation, item: 3, name: "look", tool: { library: "lib", id: "look", version: 1 } };
    const spans = spansOf(record, { ...base, operations: [operation, known] });
    expect(spans.map(({ name, attributes }) => [name, attributes["gen_ai.tool.name"]])).toEqual([
      ["execute_tool unknown", "unknown"],
      ["execute_tool look", "look"],
    ]);
    for (const { attributes } of spans) expect(String(attributes["gen_ai.tool.call.id"]).length).toBe(64);
    expect(JSON.stringify(spans)).not.toContain("SECRET");
  });

  test("SPANS-5 a wait for a person has a span once it is over, and the part of the turn after it its number", () => {
    const operation: Operation = {
      ...{
        reply: 0,
        item: 3,
        name: "pay",
        tool: { library: "lib", id: "pay", version: 1 },
        toolCallId: "c",
        input: {},
        effect: "once",
      },
      ...{ target: "code", mode: "sync", status: "awaiting_approval", attempt: 1, deadline: 1_000 },
      timeoutMs: 1_000,
    };
    const waiting = { ...waits(base), worked: [{ from: 10, to: 20 }], operations: [operation] };
    const names = (turn: Turn) => spansOf(record, turn).map(({ name }) => name);
    expect(names(waiting)).toEqual([expect.stringContaining("invoke_agent")]);
    const approval = { outcome: "denied", by: { type: "user", userId: "ada" }, at: 90 } as const;
    const result = { tool_call_id: "c", success: false, error: { code: "APPROVAL_DENIED", message: "No." } };
    const { deadline: _, ...answered } = {
      ...operation,
      status: "failed",
      approval,
      result,
      completedAt: 90,
    };
    const ended: Turn = {
      ...over(waiting, 99),
      worked: [...waiting.worked, { from: 90, to: 99 }],
      operations: [answered as Operation],
    };
    const [first, second, wait, ...others] = spansOf(record, ended);
    expect(others, "unapproved calls have not run").toEqual([]);
    expect(first?.attributes).not.toHaveProperty("dramatis.turn.part");
    expect(second?.attributes).toMatchObject({
      "dramatis.turn.part": 2,
      "dramatis.turn.status": "completed",
    });
    expect(wait).toMatchObject({
      name: "await_approval pay",
      startedAt: 10,
      endedAt: 90,
      parentSpanId: first?.spanId,
    });
    expect(wait?.attributes).toMatchObject({ "dramatis.approval.outcome": "denied" });
  });

  test("SPANS-1 SPANS-2 each span ends once, whatever the commits", () => {
    const kinds = fc.array(fc.constantFrom("wait", "work", "end"), { maxLength: 12 });
    fc.assert(
      fc.property(kinds, (steps) => {
        let turn = commit(undefined, base, 10);
        const spans: Span[] = endedSpans(record, undefined, turn);
        let now = 10;
        for (const step of [...steps, "end"]) {
          if (turn.status !== "active") break;
          now += 10;
          const next =
            step === "wait" ? waits(turn) : step === "work" ? { ...turn, call: calling } : over(turn, now);
          const changed = commit(turn, next, now);
          spans.push(...endedSpans(record, turn, changed));
          turn = changed;
        }
        expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
        expect(spans.map(({ spanId }) => spanId).sort()).toEqual(
          spansOf(record, turn)
            .map(({ spanId }) => spanId)
            .sort(),
        );
        expect(spans.at(-1)).toMatchObject({
          endedAt: now,
          attributes: { "dramatis.turn.status": "completed" },
        });
      }),
    );
  });
});
