import { describe, expect, test } from "vitest";
import { calledMemory, memoryUser } from "../../src/agents/conversation/core/called-memory.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { readPastTurns } from "../../src/agents/conversation/reads/past-turns.ts";
import { memoryFor } from "../../src/agents/executor/memory.ts";
import { MEMORY_TOOLS } from "../../src/library/built-in/memory-tools.ts";
import { definePersona } from "../../src/library/define/define.ts";
import { memoryScope } from "../../src/library/memory/scope.ts";
import { completePersona } from "../../src/library/personas/persona.ts";
import { estimateTokens } from "../../src/memory/session/tokens.ts";
import type { MemoryApi, MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import type { Memory } from "../../src/protocol/memory-schemas.ts";
import type { ToolMemory } from "../../src/protocol/tool-memory.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { PLAIN_CHAIN, recordOf } from "../support/records.ts";

const identity = { systemPrompt: "You help." };
const CONTEXT = { tenant: "t", projectId: "p", agentId: "alice", conversationId: "conv", turnId: "turn" };

describe("MEMSET-1 the scope of a persona's memory", () => {
  test.each([
    ["memoryExtraction", { task: "learn" }],
    ["recall", { limit: 3 }],
    ["memoryTools", false],
    ["extract", true],
    ["ranking", { recency: 1 }],
    ["retention", { note: { days: 1, then: "delete" } }],
    ["consolidation", { minimum: 3 }],
  ])("is required in code if `%s` uses memory, and is `agent` in JSON", (setting, value) => {
    const memory = { [setting]: value };
    expect(() => definePersona("p", { identity, memory })).toThrow(/\/memory\/scope: .*add `scope`/);
    expect(
      definePersona("p", { identity, memory: { ...memory, scope: "user" } }).definition.memory?.scope,
    ).toBe("user");
    expect(completePersona({ identity, memory }).memory?.scope).toBe("agent");
  });

  test("MEMSET-2 is not required without memory, and a persona that was pinned without it has no scope", () => {
    expect(completePersona({ identity, memory: { recentTurnsLimit: 3 } }).memory).toEqual({
      recentTurnsLimit: 3,
    });
    expect(memoryScope({ memory: { memoryExtraction: { task: "lib/old" } } })).toBeUndefined();
  });
});

/** An agent's memory that notes how it is called, and has one memory. */
function noted() {
  const calls: [string, MemoryReader | MemoryWriter, unknown][] = [];
  const answer = async (name: string, who: MemoryReader | MemoryWriter, what: unknown) => {
    calls.push([name, who, what]);
    if (name === "delete") throw new DramatisError("NOT_FOUND", "Gone.");
    const memory = { id: "mem_1", version: 1, type: "fact", content: "Likes tea.", createdAt: "2026-01-01" };
    return name === "write" ? [memory as Memory] : { matches: [{ memory: memory as Memory }] };
  };
  const memory = memoryFor(
    {
      // SAFETY: the tools under test call these three methods only.
      agent: async () =>
        ({
          writeMemories: async (who: MemoryWriter, what: unknown) => ({
            ok: true,
            value: await answer("write", who, what),
          }),
          searchMemories: async (who: MemoryReader, what: unknown) => ({
            ok: true,
            value: await answer("search", who, what),
          }),
          deleteMemory: async (who: MemoryWriter, what: unknown) => ({
            ok: true,
            value: await answer("delete", who, what),
          }),
        }) as unknown as MemoryApi,
      pastTurns: () => Promise.reject(new Error("Not asked.")),
    },
    { context: CONTEXT, memory: { scope: "user", userId: "ann" } },
  );
  const run = (name: string, input: JsonObject) => {
    const tool = MEMORY_TOOLS.find(({ id }) => id === name);
    return tool?.run(input, {
      operationId: "op_1",
      signal: new AbortController().signal,
      context: CONTEXT,
      memory,
      workspace: { perform: () => Promise.reject(new Error("Not asked.")) },
      artifacts: { perform: () => Promise.reject(new Error("Not asked.")) },
      skills: [],
      state: { get: async () => null, put: async () => undefined, list: async () => [] },
      now: () => 0,
      defer: () => Promise.reject(new Error("Not asked.")),
      progress: () => undefined,
    });
  };
  return { calls, run };
}

describe("the tools of memory", () => {
  test("A58 MEMTOOL-1 MEMTOOL-2 `remember` writes for the call's user and conversation, whatever ids the input names", async () => {
    const { calls, run } = noted();
    await run("remember", {
      content: "Likes tea.",
      agent_id: "bob",
      userId: "eve",
      subject: { userId: "eve" },
    });
    const reader = { scope: "user", userId: "ann", conversationId: "conv" };
    expect(calls).toEqual([
      [
        "write",
        {
          reader,
          author: { kind: "tool", conversationId: "conv", turnId: "turn" },
          subject: { userId: "ann", conversationId: "conv" },
          sources: [{ conversationId: "conv", turnId: "turn" }],
        },
        [{ content: "Likes tea.", idempotencyKey: "op_1" }],
      ],
    ]);
  });

  test("MEMTOOL-3 MEMTOOL-4 `recall` has a floor of relevance, and quotes", async () => {
    const { calls, run } = noted();
    expect(await run("recall", { query: "tea?" })).toMatchObject({
      note: expect.stringContaining("no instructions"),
      memories: [{ id: "mem_1", version: 1, content: "Likes tea." }],
    });
    expect(calls[0]?.[2]).toMatchObject({ query: "tea?", minRelevance: 0.4 });
  });

  test("MEMTOOL-2 `forget` of a missing memory is a no-op and does not fail", async () => {
    expect(await noted().run("forget", { id: "mem_9" })).toMatchObject({ forgotten: false });
  });

  test("MEMTOOL-5 a call of an agent without memory, and a call without an agent, reach no memory", async () => {
    const ports = {
      agent: () => Promise.reject(new Error("Reached.")),
      pastTurns: () => Promise.reject(new Error()),
    };
    const run = { tenant: "t", projectId: "p", runId: "run_1", node: "n" };
    const reached = (call: Parameters<typeof memoryFor>[1]) => memoryFor(ports, call).search({ query: "x" });
    await expect(reached({ context: CONTEXT })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await expect(reached({ context: run, memory: { scope: "agent" } })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
  });
});

const TURN = {
  n: 3,
  stem: "0".repeat(20),
  agentId: "alice",
  caller: { type: "user", userId: "ann" },
  input: "Hello",
  replies: [],
  operations: [],
} as unknown as Turn;

describe("MEMTOOL-6 a call that writes", () => {
  const tainted = { id: "mem_1", version: 1, tainted: true } as Memory;
  const trusted = { id: "mem_2", version: 1 } as Memory;
  const page = { turnId: "turn_1", at: "2026-01-01T00:00:00Z", message: "Read it." };
  const READS: Record<string, (memory: ToolMemory) => Promise<unknown>> = {
    search: (memory) => memory.search({ query: "x" }),
    read: (memory) => memory.read("mem_1"),
    list: (memory) => memory.list(),
    pastTurns: (memory) => memory.pastTurns(),
  };

  test.each(Object.entries(READS))(
    "is tainted once it has read something tainted by `%s`",
    async (_, read) => {
      for (const isTainted of [false, true]) {
        const found = isTainted ? tainted : trusted;
        const writers: MemoryWriter[] = [];
        // SAFETY: these calls use these methods only.
        const agent = {
          writeMemories: async (writer: MemoryWriter) => {
            writers.push(writer);
            return { ok: true, value: [trusted] };
          },
          searchMemories: async () => ({ ok: true, value: { matches: [{ memory: found }] } }),
          readMemory: async () => ({ ok: true, value: found }),
          listMemories: async () => ({ ok: true, value: { items: [found] } }),
        } as unknown as MemoryApi;
        const turns = [isTainted ? { ...page, taint: ["tool" as const] } : page];
        const pastTurns = async () => ({ ok: true as const, value: { turns } });
        const call = { context: CONTEXT, memory: { scope: "agent" as const } };
        const memory = memoryFor({ agent: async () => agent, pastTurns }, call);
        await memory.write([{ content: "Before." }]);
        await read(memory);
        await memory.write([{ content: "After." }]);
        expect(writers.map((writer) => writer.tainted === true)).toEqual([false, isTainted]);
      }
    },
  );
});

describe("the rights of a turn", () => {
  test("RECALL-1 are the rights of its user; if the user is ambiguous, it has no rights", () => {
    const called = { type: "agent", agentId: "bob", turnId: "t" } as const;
    const of = (...readers: string[]) =>
      memoryUser(
        { call: { readers } as never },
        { ...TURN, caller: called, exchange: { of: 1, by: called } },
      );
    expect(memoryUser({}, TURN)).toBe("ann");
    expect(of("ann")).toBe("ann");
    expect(of("ann", "eve")).toBeUndefined();
    expect(
      calledMemory(recordOf(PLAIN_CHAIN), { ...TURN, agentId: recordOf(PLAIN_CHAIN).agents[0].id }, []),
    ).toEqual({});
  });
});

describe("A74 past turns", () => {
  const turns = Array.from({ length: 40 }, (_, index) => ({
    ...TURN,
    n: index + 1,
    agentId: index % 4 === 3 ? "bob" : "alice",
    status: "completed" as const,
    createdAt: index * 1_000,
    input: `Question ${index + 1}: ${"words ".repeat(20)}`,
    replies: [{ item: 1, text: `Answer ${index + 1}`, finishReason: "stop" as const, at: 0 }],
  }));
  let rows = 0;
  const ports = {
    list: (n: number, limit: number) => {
      const before = turns.filter((turn) => turn.n < n).reverse();
      rows = Math.max(rows, limit);
      return { turns: before.slice(0, limit), more: before.length > limit };
    },
    turn: (n: number) => turns[n - 1] ?? null,
  };

  test("PAST-1 PAST-2 PAST-3 pages have each turn of the agent once, the newest first, within their tokens", () => {
    const seen: string[] = [];
    let from = 41;
    for (let page = 0; page < 40; page++) {
      const { turns: found, next } = readPastTurns(ports, from, { agentId: "alice", tokens: 300 });
      expect(estimateTokens(JSON.stringify(found))).toBeLessThan(330);
      expect(found.length).toBeGreaterThan(0);
      seen.push(...found.map(({ message }) => message.split(":")[0] ?? ""));
      const last = turns.find(({ n }) => `Question ${n}` === seen.at(-1));
      if (next === undefined || last === undefined) break;
      from = last.n;
    }
    const own = turns.filter(({ agentId }) => agentId === "alice").reverse();
    expect(seen).toEqual(own.map(({ n }) => `Question ${n}`));
    expect(rows).toBeLessThanOrEqual(100);
  });
});
