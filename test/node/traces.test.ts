/** Reading of traces: which turns and conversations they contain, and their bounds. */
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Operation } from "../../src/agents/conversation/core/operation.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import {
  MAX_TRACE_SPANS,
  MAX_TRACE_TURNS,
  readTrace,
} from "../../src/agents/conversation/reads/trace-reader.ts";
import { gatherTrace, MAX_TRACE_CONVERSATIONS, TRACE_PART_MS } from "../../src/http/routes/traces.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { calledConversationId, operationId } from "../../src/protocol/ids.ts";
import type { SpanView, TracePart } from "../../src/protocol/trace.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { recordOf } from "../support/records.ts";

afterEach(() => vi.restoreAllMocks());

describe("the part of a conversation", () => {
  const record = recordOf();
  const turnOf = (n: number, from: number, to: number, of?: number): Turn => ({
    ...{ n, stem: "01ARZ3NDEKTSV4RRFFQ", agentId: record.agents[0].id, input: "go" },
    caller: { type: "user", userId: "ada" },
    ...(of === undefined ? {} : { exchange: { of, by: { type: "user", userId: "ada" } as const } }),
    status: "completed",
    ...{ createdAt: from, completedAt: to, firstSeq: 2, snapshotSeq: 2, items: 2, call: null },
    ...{ replies: [], operations: [], recoveries: 0, issues: {} },
  });

  /** A conversation with these turns. `reads` has the numbers of turns that were read with their content. */
  function room(...turns: Turn[]) {
    const reads: number[] = [];
    return {
      reads,
      read: (n: number) => {
        reads.push(n);
        return turns.find((turn) => turn.n === n);
      },
      after: (n: number, limit: number) => {
        const later = turns.filter((turn) => turn.n > n);
        return { turns: later.slice(0, limit), more: later.length > limit };
      },
    };
  }
  const partOf = (turn: Turn, turns: ReturnType<typeof room>) =>
    readTrace({ record }, turn, turns, {
      ...{ principal: { subject: "ada", tenant: "acme", roles: [] }, now: 0 },
    });
  const begins = ({ spans }: TracePart) => spans.map(({ startedAt }) => Date.parse(startedAt));

  test("TRACEREAD-1 has the turns of the exchange, asked for by any of them, and reads no other", () => {
    const [first, other, guest, late] = [
      turnOf(1, 10, 50),
      turnOf(2, 20, 30),
      turnOf(3, 50, 90, 1),
      turnOf(4, 91, 95),
    ];
    for (const asked of [first, guest]) {
      const turns = room(first, other, guest, late);
      const part = partOf(asked, turns);
      expect(begins(part)).toEqual([10, 50]);
      expect(part.partial).toBeUndefined();
      expect(turns.reads).not.toContain(2);
      expect(turns.reads).not.toContain(4);
    }
  });

  test("TRACEREAD-1 a finished exchange ends the search; an unfinished exchange makes the part partial at its bound", () => {
    const others = (from: number) =>
      Array.from({ length: MAX_TRACE_TURNS + 5 }, (_, index) => turnOf(index + 2, from, from + 1));
    const over = turnOf(1, 10, 50);
    expect(partOf(over, room(over, ...others(51))).partial).toBeUndefined();
    expect(partOf(over, room(over, ...others(50))).partial).toBe(true);
    const { completedAt: _, ...open } = { ...over, status: "active" as const };
    expect(partOf(open, room(open, ...others(51))).partial).toBe(true);
  });

  const operation: Operation = {
    ...{ reply: 0, item: 1, name: "double", tool: null, toolCallId: "c", input: {}, effect: "pure" },
    ...{ target: "code", mode: "sync", status: "completed", attempt: 1, completedAt: 20 },
    timeoutMs: 1_000,
    result: { tool_call_id: "c", success: true, result: 1 },
  };

  test("TRACEREAD-1 an exchange continues while any of its turns does, not only the newest", () => {
    const turns = [turnOf(1, 10, 50), turnOf(2, 20, 90, 1), turnOf(3, 30, 40, 1), turnOf(4, 60, 70, 1)];
    const [first = expect.fail()] = turns;
    expect(begins(partOf(first, room(...turns)))).toEqual([10, 20, 30, 60]);
  });

  test("TRACES-1 names the conversations of calls, one for each attempt, with their location; a joined agent has none", () => {
    const called: Operation = {
      ...{ ...operation, target: "agent", attempt: 2 },
      agent: { id: "helper", mode: "delegate", jurisdiction: "eu" },
    };
    const joined: Operation = { ...operation, target: "agent", item: 2, agent: { id: "a", mode: "loop_in" } };
    const turn = { ...turnOf(1, 10, 50), operations: [called, joined] };
    const id = operationId(turn, 1);
    expect(partOf(turn, room(turn)).opened).toEqual([1, 2].map((n) => calledConversationId(id, n, "eu")));
  });

  test("TRACEREAD-2 has no more spans than its bound", () => {
    const operations = Array.from({ length: MAX_TRACE_SPANS }, (_, item) => ({ ...operation, item }));
    const turn = { ...turnOf(1, 10, 50), operations };
    const part = partOf(turn, room(turn));
    expect(part.spans).toHaveLength(MAX_TRACE_SPANS);
    expect(part.partial).toBe(true);
    const fitting = { ...turn, operations: operations.slice(1) };
    expect(partOf(fitting, room(fitting)).partial).toBeUndefined();
  });
});

describe("the trace over all conversations", () => {
  const clock = new VirtualClock();
  const time = (ms: number) => new Date(ms).toISOString();
  const span = (id: string, from: number): SpanView => ({
    ...{ spanId: id, name: id, kind: "internal", attributes: {} },
    ...{ startedAt: time(from), endedAt: time(from + 5) },
  });
  const part = (id: string, from: number, opened: string[] = []): TracePart => ({
    ...{ traceId: "t", spans: [span(id, from)], opened },
  });

  test("TRACES-1 follows calls to any depth, in the order of their spans' starts", async () => {
    const parts: Record<string, TracePart> = { b: part("b", 30, ["d"]), c: part("c", 20), d: part("d", 10) };
    const found = await gatherTrace(
      clock,
      part("a", 5, ["b", "c"]),
      async (id) => parts[String(id)] ?? expect.fail(String(id)),
    );
    expect(found).toMatchObject({ traceId: "t", partial: false });
    expect(found.spans.map(({ name }) => name)).toEqual(["a", "d", "c", "b"]);
  });

  test("TRACES-4 of spans that start in the same millisecond, a parent precedes its children", async () => {
    const below = (name: string, parentSpanId: string) => ({
      ...span(name, 1),
      parentSpanId,
      endedAt: time(9),
    });
    const spans = [below("tool", "turn"), below("turn", "run"), span("run", 1), span("before", 0)];
    const found = await gatherTrace(clock, { ...part("run", 1), spans }, () =>
      expect.fail("nothing is below"),
    );
    expect(found.spans.map(({ name }) => name)).toEqual(["before", "run", "turn", "tool"]);
  });

  test("TRACES-3 has the turns that a run invited, unless the first part has them, and is partial if they cannot be read", async () => {
    const invited = { conversationId: "room", turnId: "turn", runId: "run" };
    const first = { ...part("run", 0), invited };
    const found = await gatherTrace(clock, first, async (below) => {
      expect(below).toEqual(invited);
      return part("guest", 1);
    });
    expect([found.spans.map(({ name }) => name), found.partial]).toEqual([["run", "guest"], false]);
    const none = () => expect.fail("The first part has the turns.");
    expect((await gatherTrace(clock, first, none, "room")).partial).toBe(false);
    const missing = () => Promise.reject(new DramatisError("NOT_FOUND", "There is no such conversation."));
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect((await gatherTrace(clock, first, missing)).partial).toBe(true);
    log.mockRestore();
  });

  test("TRACES-2 reads no more conversations than its bound, the nearest first", async () => {
    const wide = Array.from({ length: MAX_TRACE_CONVERSATIONS - 2 }, (_, index) => `wide${index}`);
    const read: string[] = [];
    const found = await gatherTrace(clock, part("a", 0, wide), async (below) => {
      const id = String(below);
      read.push(id);
      return part(id, 1, [`below ${id}`]);
    });
    expect(read.slice(0, -1)).toEqual(wide);
    expect(read).toHaveLength(MAX_TRACE_CONVERSATIONS - 1);
    expect(found.partial).toBe(true);
    expect(found.spans).toHaveLength(MAX_TRACE_CONVERSATIONS);
  });

  test("TRACES-2 a conversation that does not answer makes the trace partial; an unknown conversation does not", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const absent = () => Promise.reject(new DramatisError("NOT_FOUND", "There is no such conversation."));
    expect(await gatherTrace(clock, part("a", 0, ["b"]), absent)).toMatchObject({ partial: false });
    expect(log).not.toHaveBeenCalled();
    const broken = (below: unknown) =>
      below === "b" ? Promise.reject(new Error("reset")) : Promise.resolve(part(String(below), 1));
    const found = await gatherTrace(clock, part("a", 0, ["b", "c"]), broken);
    expect(found.partial).toBe(true);
    expect(found.spans.map(({ name }) => name)).toEqual(["a", "c"]);
    expect(log).toHaveBeenCalledOnce();
  });

  test("TRACES-2 a conversation that is silent makes the trace partial once its time is over", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const time = new VirtualClock();
    const silent = (below: unknown) =>
      below === "b" ? new Promise<never>(() => undefined) : Promise.resolve(part(String(below), 1));
    const found = gatherTrace(time, part("a", 0, ["b", "c"]), silent);
    await time.advance(TRACE_PART_MS);
    expect(await found).toMatchObject({ partial: true, spans: [{ name: "a" }, { name: "c" }] });
    expect(log).toHaveBeenCalledWith(expect.any(String), expect.objectContaining({ code: "UNAVAILABLE" }));
    log.mockRestore();
  });
});
