/** Tools that a client runs, on the runtime in Node: results, their order, and calls without a result. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import {
  CLIENT_TOOL_TIMEOUT_MS,
  MAX_RECOVERIES,
  MIN_HEARTBEAT_MS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { parseSubmissions, startTurnSchema } from "../../src/agents/conversation/inbound/requests.ts";
import { checkHistory, seedEvents } from "../../src/agents/conversation/inbound/seed-history.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { pendingCalls } from "../../src/client/outbox.ts";
import { applyFrame } from "../../src/client/reducer.ts";
import { initialState } from "../../src/client/state.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ToolSpec } from "../../src/model/context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { Gate } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { historySchema } from "../../src/protocol/history.ts";
import type { StartTurn, ToolSubmission } from "../../src/protocol/requests.ts";
import { validate } from "../../src/shared/validation.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import {
  type ChatRequestBody,
  callPayloads,
  repliesSoFar,
  scriptedFetch,
  textPayloads,
} from "../support/chat-replies.ts";
import { recordOf } from "../support/records.ts";

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => {
  expect(errors.mock.calls).toEqual([]);
  errors.mockReset();
});

/** `hold` returns when `held` resolves. */
const libraryOf = (held: Promise<void>) =>
  defineLibrary("lib", {
    tools: [
      defineTool({
        name: "double",
        description: "Doubles.",
        input: z.object({ n: z.number() }),
        effect: "pure",
        execute: ({ n }) => n * 2,
      }),
      defineTool({
        name: "hold",
        description: "Waits.",
        input: z.object({}),
        effect: "idempotent",
        execute: () => held.then(() => "held"),
      }),
    ],
  });
const ASK: ToolSpec = {
  name: "ask",
  description: "Asks the user.",
  inputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
};

type Round = [name: string, input: object][];

/** A conversation that can be reloaded. Its model calls tools in rounds, then answers with their results. */
class Desk {
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  readonly clock = new VirtualClock();
  readonly ids = seededIds(3, this.clock);
  readonly requests: (ChatRequestBody & { tool_choice?: unknown })[] = [];
  /** Delays of the requested wake-ups in milliseconds, in order. */
  readonly wakeups: number[] = [];
  readonly frames: Frame[] = [];
  readonly #held = Promise.withResolvers<void>();
  readonly #code = new DeployedCode([libraryOf(this.#held.promise)]);
  runtime!: ConversationRuntime;
  client = initialState;

  private constructor(
    private readonly rounds: Round[],
    private readonly gate: Gate,
  ) {
    this.wake();
  }

  static async open(
    rounds: Round[],
    { gate = () => "allow", history = [] }: DeskOptions = {},
  ): Promise<Desk> {
    const desk = new Desk(rounds, gate);
    const profile = { provider: "openai", modelId: "scripted", baseUrl: "http://provider/v1" } as const;
    const persona = { identity: { systemPrompt: "Test." }, tools: { toolIds: ["lib/double", "lib/hold"] } };
    const now = desk.clock.now();
    await desk.runtime.create(
      recordOf(await resolveChain(new Registry(desk.#code), persona, profile), { createdAt: now }),
      { history: seedEvents(history, { sessionId: "tester", userId: "ada", now, ids: desk.ids }) },
    );
    return desk;
  }

  /** Loads the actor again. */
  wake(): void {
    const { database, keyValue, clock, ids } = this;
    const fetch = scriptedFetch((body) => {
      this.requests.push(body);
      const round = this.rounds[repliesSoFar(body)];
      return round === undefined ? textPayloads("Done.") : callPayloads("", round);
    });
    this.runtime = new ConversationRuntime({
      database,
      keyValue,
      clock,
      ids,
      gateway: createModelGateway({ secret: () => undefined, clock, fetch }),
      adapters: adapterFor,
      executor: localExecutor(this.#code, clock),
      gate: this.gate,
      ...noMail,
      armWakeup: async (milliseconds) => {
        this.wakeups.push(milliseconds);
      },
      publish: (frames: Frame[]) => {
        this.frames.push(...frames);
        for (const frame of frames) this.client = applyFrame(this.client, frame);
      },
    });
  }

  async say(input: Partial<StartTurn> = {}): Promise<string> {
    const { idempotencyKey: id, ...data } = validate(startTurnSchema, {
      content: "Go",
      tools: [ASK],
      ...input,
    });
    const caller = { type: "user", userId: "ada" } as const;
    const started = await this.runtime.accept({
      type: "conversation.user.message",
      ...(id === undefined ? {} : { id }),
      caller,
      data,
    });
    await this.settle();
    return started.turnId;
  }

  async submit(...results: ToolSubmission[]) {
    const { submitted: taken } = await this.runtime.results.submit(parseSubmissions(results));
    await this.settle();
    return taken;
  }

  /** Runs all work that needs no time. */
  async settle(): Promise<void> {
    for (let step = 0; step < 40; step++) await new Promise((resolve) => setImmediate(resolve));
    while (this.clock.pending > 0 && (this.clock.nextDue ?? Infinity) <= this.clock.now() + 100)
      await this.clock.runNext();
    for (let step = 0; step < 40; step++) await new Promise((resolve) => setImmediate(resolve));
  }

  async release(): Promise<void> {
    this.#held.resolve();
    await this.settle();
  }

  get types(): string[] {
    return this.frames.map(({ type }) => type);
  }

  get waiting(): string[] {
    return pendingCalls(this.client).map(({ operationId }) => operationId);
  }

  get last() {
    const { runtime } = this;
    const queries = new ConversationQueries(runtime.store);
    const { items } = queries.turns({ order: "desc", limit: 1 });
    return queries.turn(runtime.state, items[0]?.id ?? "");
  }

  get results() {
    return this.last.moves.flatMap(({ toolResult }) => toolResult ?? []);
  }
}

interface DeskOptions {
  gate?: Gate;
  history?: ContextMessage[];
}

const conflict = expect.objectContaining({ code: "CONFLICT" });

describe("a tool that the client runs", () => {
  test("CLIENTTOOL-1 CLIENTTOOL-3 the turn waits without an effect, and continues with the client's result", async () => {
    const desk = await Desk.open([[["ask", { n: 1 }]]]);
    const turnId = await desk.say();
    const [operationId = ""] = desk.waiting;
    expect(desk.clock.pending, "no effect runs").toBe(0);
    expect(desk.runtime.dueIn).toBe(CLIENT_TOOL_TIMEOUT_MS);
    expect(desk.client.turns[0]).toMatchObject({ status: "active" });
    expect(desk.requests[0]?.tools).toMatchObject([
      { function: { name: "double" } },
      { function: { name: "hold" } },
      { function: { name: "ask", parameters: ASK.inputSchema } },
    ]);
    const taken = [{ operationId, turnId }];
    expect(await desk.submit({ operationId, result: { yes: [1, null] } })).toEqual(taken);
    expect(desk.last.status).toBe("completed");
    expect(desk.last.moves[0]).toMatchObject({
      toolCall: { operationId, name: "ask", toolId: null, client: true },
      toolResult: { success: true, result: { yes: [1, null] } },
    });
    expect(desk.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: '{"yes":[1,null]}' });
    const { seq } = desk.runtime.state;
    expect(await desk.submit({ operationId, result: { yes: [1, null] } }), "again").toEqual(taken);
    await expect(desk.submit({ operationId, result: { yes: [1] } })).rejects.toEqual(conflict);
    await expect(desk.submit({ operationId, error: { message: "no" } })).rejects.toEqual(conflict);
    expect(desk.runtime.state.seq).toBe(seq);
  });

  test("CLIENTTOOL-1 results are atomic, in one commit, and only for waiting calls", async () => {
    const desk = await Desk.open([
      [
        ["ask", { n: 1 }],
        ["ask", { n: 2 }],
        ["double", { n: 4 }],
      ],
    ]);
    await desk.say();
    const [first = "", second = ""] = desk.waiting;
    const double = desk.last.moves[2]?.toolCall?.operationId ?? "";
    const { seq } = desk.runtime.state;
    const good = { operationId: first, result: 1 };
    const unknown = `op_${"0".repeat(26)}`;
    const foreign = `${first.slice(0, 3)}${"0".repeat(19)}${first.slice(-7)}`;
    for (const operationId of [unknown, foreign, "op_1", first.replace("op_", "msg_")]) {
      const given = desk.submit(good, { operationId, result: 1 });
      await expect(given).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
    await expect(desk.submit(good, { operationId: double, result: 8 })).rejects.toEqual(conflict);
    await expect(desk.submit(good, { ...good, result: 2 })).rejects.toEqual(conflict);
    expect(desk.runtime.state.seq, "no result was accepted").toBe(seq);
    await desk.submit(good, good, { operationId: second, error: { message: "The user left." } });
    expect(desk.runtime.store.journal.backward(seq + 1, 1)[0]?.entries.map(({ type }) => type)).toEqual([
      "tool.completed",
      "tool.failed",
      "message.started",
      "conversation.active",
    ]);
    expect(desk.results.map(({ result, error }) => error?.code ?? result)).toEqual([
      1,
      "EXECUTION_FAILED",
      8,
    ]);
    expect(desk.last.status).toBe("completed");
  });

  test.each(["client", "agent"])(
    "A15 a mixed reply is complete when both have answered, the %s's tool first",
    async (first) => {
      const desk = await Desk.open([
        [
          ["ask", { n: 1 }],
          ["hold", {}],
        ],
      ]);
      await desk.say();
      const answers = [
        () => desk.submit({ operationId: desk.waiting[0] ?? "", result: "yes" }),
        () => desk.release(),
      ];
      if (first === "agent") answers.reverse();
      expect(desk.runtime.dueIn).toBe(MIN_HEARTBEAT_MS);
      expect(desk.types).not.toContain("turn.waiting");
      await answers[0]?.();
      expect(desk.requests).toHaveLength(1);
      expect(desk.runtime.dueIn).toBe(first === "agent" ? CLIENT_TOOL_TIMEOUT_MS : MIN_HEARTBEAT_MS);
      expect(desk.types.includes("turn.waiting"), "it waits for the client only").toBe(first === "agent");
      await answers[1]?.();
      expect(desk.requests).toHaveLength(2);
      expect(desk.last.status).toBe("completed");
      expect(desk.results.map(({ result }) => result)).toEqual(["yes", "held"]);
    },
  );

  test("A7 a call that does not fit the client's schema is answered at once, and the client never sees it run", async () => {
    const desk = await Desk.open([[["ask", { n: "one" }]], [["ask", { n: 1 }]]]);
    await desk.say();
    expect(desk.results).toMatchObject([{ success: false, error: { code: "INVALID_INPUT" } }]);
    expect(desk.waiting).toHaveLength(1);
  });

  test("the gate also decides about a client's tool", async () => {
    const gate: Gate = ({ name, effect }) => (name === "ask" && effect === "once" ? "deny" : "allow");
    const desk = await Desk.open([[["ask", { n: 1 }]]], { gate });
    await desk.say();
    expect(desk.results).toMatchObject([{ success: false, error: { code: "PERMISSION_DENIED" } }]);
    expect(desk.last.status).toBe("completed");
  });

  test("CLIENTTOOL-1 an unanswered call times out, the model gets the timeout, and a late result is refused", async () => {
    const desk = await Desk.open([[["ask", { n: 1 }]]]);
    await desk.say();
    const [operationId = ""] = desk.waiting;
    await desk.clock.advance(CLIENT_TOOL_TIMEOUT_MS - 1);
    desk.runtime.reconcile();
    await desk.settle();
    expect(desk.last.status).toBe("active");
    await desk.clock.advance(1);
    const late = desk.submit({ operationId, result: 1 });
    await expect(late, "even before the wake-up").rejects.toEqual(conflict);
    desk.runtime.reconcile();
    await desk.settle();
    expect(desk.results).toMatchObject([{ success: false, error: { code: "TIMEOUT", retriable: true } }]);
    expect(desk.last.status).toBe("completed");
    expect(desk.waiting).toEqual([]);
    await expect(desk.submit({ operationId, result: 1 })).rejects.toEqual(conflict);
  });

  test("CLIENTTOOL-3 the wake-up is for the deadline while the turn waits, and for a heartbeat once it continues", async () => {
    const desk = await Desk.open([[["ask", { n: 1 }]], [["hold", {}]]]);
    await desk.say();
    expect(desk.wakeups).toEqual([MIN_HEARTBEAT_MS]);
    await desk.clock.advance(60_000);
    desk.wake();
    await desk.runtime.wake();
    expect(desk.wakeups).toEqual([MIN_HEARTBEAT_MS, CLIENT_TOOL_TIMEOUT_MS - 60_000]);
    await desk.submit({ operationId: desk.waiting[0] ?? "", result: 1 });
    expect(desk.wakeups.at(-1)).toBe(MIN_HEARTBEAT_MS);
    expect(desk.runtime.dueIn).toBe(MIN_HEARTBEAT_MS);
    await desk.release();
    expect(desk.last.status).toBe("completed");
    expect(desk.runtime.dueIn).toBeNull();
  });

  test("CLIENTTOOL-3 a waiting turn is unharmed and writes no row, however often its actor wakes", async () => {
    const desk = await Desk.open([[["ask", { n: 1 }]]]);
    await desk.say();
    const { seq } = desk.runtime.state;
    for (let life = 0; life < MAX_RECOVERIES + 5; life++) {
      desk.wake();
      await desk.runtime.wake();
      await desk.settle();
    }
    expect(desk.runtime.state.seq).toBe(seq);
    expect(desk.requests).toHaveLength(1);
    await desk.submit({ operationId: desk.waiting[0] ?? "", result: 1 });
    expect(desk.last.status).toBe("completed");
  });

  test("CLIENTTOOL-2 a result is kept unchanged, or refused: by size, and by the size of the turn", async () => {
    const calls = Array.from({ length: 10 }, (): Round[number] => ["ask", { n: 1 }]);
    const desk = await Desk.open([calls]);
    await desk.say();
    const mebibyte = "x".repeat(1024 * 1024 - 2);
    const tooLarge = expect.objectContaining({ code: "TOO_LARGE" });
    const [first = "", ...rest] = desk.waiting;
    await expect(desk.submit({ operationId: first, result: `${mebibyte}x` })).rejects.toEqual(tooLarge);
    const kept = rest.slice(0, 7);
    for (const operationId of kept) await desk.submit({ operationId, result: mebibyte });
    await expect(desk.submit({ operationId: first, result: mebibyte })).rejects.toEqual(tooLarge);
    for (const operationId of [first, ...rest.slice(7)]) await desk.submit({ operationId, result: null });
    expect(desk.last.status).toBe("completed");
    expect(desk.results.filter(({ result }) => result === mebibyte)).toHaveLength(7);
  });
});

describe("tools and schemas of a message", () => {
  const wide = (properties: number) => ({
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: properties }, (_, n) => [`p${n}`, { type: "string" }]),
    ),
  });

  test.each<[string, Partial<StartTurn>, string]>([
    ["a name of the agent's", { tools: [{ ...ASK, name: "double" }] }, "/tools/0/name"],
    ["a name twice", { tools: [ASK, ASK] }, "/tools/1/name"],
    ["an impossible name", { tools: [{ ...ASK, name: "a b" }] }, "/tools/0/name"],
    [
      "a schema of no object",
      { tools: [{ ...ASK, inputSchema: { type: "string" } }] },
      "/tools/0/inputSchema/type",
    ],
    ["too many", { tools: Array.from({ length: 65 }, (_, n) => ({ ...ASK, name: `t${n}` })) }, "/tools"],
    ["too large", { tools: [{ ...ASK, inputSchema: wide(12_000) }] }, "/tools"],
    ["a choice of an unknown tool", { toolChoice: { name: "nobody" } }, "/toolChoice/name"],
  ])("%s is refused with its place", async (_, input, path) => {
    const desk = await Desk.open([]);
    await expect(desk.say(input)).rejects.toMatchObject({
      code: "INVALID_INPUT",
      options: { errors: [expect.objectContaining({ path })] },
    });
    expect(desk.runtime.state.turns).toBe(0);
  });

  test("the choice of a tool is for the first reply only, and may be one of the agent's", async () => {
    const desk = await Desk.open([[["double", { n: 1 }]]]);
    await desk.say({ toolChoice: "required" });
    expect(desk.requests.map(({ tool_choice: choice }) => choice)).toEqual(["required", "auto"]);
    await expect(desk.say({ toolChoice: { name: "double" } })).resolves.toContain("turn_");
    await expect(desk.say({ toolChoice: { name: "ask" } })).resolves.toContain("turn_");
  });

  test("the same key with other tools is a conflict; an empty list of tools equals no list", async () => {
    const desk = await Desk.open([]);
    const key = { idempotencyKey: "k" };
    const turnId = await desk.say({ ...key, toolChoice: "none" });
    expect(await desk.say({ ...key, toolChoice: "none" })).toBe(turnId);
    const others: Partial<StartTurn>[] = [
      { toolChoice: "auto" },
      { toolChoice: "none", untrusted: true },
      { toolChoice: "none", tools: [] },
      { toolChoice: "none", tools: [{ ...ASK, description: "Other." }] },
    ];
    for (const other of others)
      await expect(desk.say({ ...key, ...other })).rejects.toMatchObject({ code: "IDEMPOTENCY_CONFLICT" });
    const mail = { idempotencyKey: "m", untrusted: true } as const;
    expect(await desk.say(mail)).toBe(await desk.say(mail));
    const plain = await desk.say({ idempotencyKey: "p", tools: [], toolChoice: "auto" });
    await expect(
      desk.runtime.accept({
        type: "conversation.user.message",
        id: "p",
        caller: { type: "user", userId: "ada" },
        data: { content: "Go" },
      }),
    ).resolves.toMatchObject({ turnId: plain, repeated: true });
  });
});

describe("a seeded history", () => {
  const call = (id: string) => ({ id, name: "search", arguments: { q: id } });
  const history: ContextMessage[] = [
    { role: "system", content: "Speak French." },
    { role: "user", content: "Qui est là ?", name: "bob" },
    { role: "assistant", content: "", toolCalls: [call("a"), call("b")] },
    { role: "tool", content: "two", toolCallId: "b" },
    { role: "tool", content: "one", toolCallId: "a", name: "search", metadata: { isSuccess: false } },
    { role: "assistant", content: "Moi." },
  ];

  test("SEED-1 the model sees it from the first turn on, and the transcript does not show it", async () => {
    const desk = await Desk.open([], { history: validate(historySchema, history) });
    await desk.say({ tools: [] });
    expect(desk.requests[0]?.messages).toMatchObject([
      { role: "system", content: "Test." },
      { role: "system", content: "Speak French." },
      { role: "user", content: "Qui est là ?" },
      { role: "assistant", tool_calls: [{ id: "a" }, { id: "b" }] },
      { role: "tool", content: "two", tool_call_id: "b" },
      { role: "tool", content: "one", tool_call_id: "a" },
      { role: "assistant", content: "Moi." },
      { role: "user", content: "Go" },
    ]);
    const queries = new ConversationQueries(desk.runtime.store);
    expect(queries.messages(desk.runtime.state).items.map(({ content }) => content)).toEqual(["Go", "Done."]);
    expect(queries.turns().items).toHaveLength(1);
    const events = desk.runtime.store.events.load("tester");
    expect(events.map(({ seq, action }) => [seq, action])).toEqual([
      [0, "system_instruction"],
      [1, "user_message"],
      [2, "tool_call_request"],
      [3, "tool_result"],
      [4, "tool_result"],
      [5, "agent_message"],
      [6, "user_message"],
      [7, "agent_message"],
    ]);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(events.slice(0, 6).map(({ metadata }) => metadata?.origin)).toEqual(Array(6).fill("client:ada"));
    expect(events[3]).toMatchObject({ toolName: "search", isSuccess: true });
    expect(events[4]).toMatchObject({ toolName: "search", isSuccess: false });
  });

  test("SEED-1 it survives a wake, and its events can be deleted like others", async () => {
    const desk = await Desk.open([], { history: [{ role: "user", content: "Before" }] });
    desk.wake();
    expect(desk.runtime.state.sessions).toEqual({ tester: 1 });
    const { events } = desk.runtime.store;
    events.delete("tester", [events.load("tester")[0]?.id ?? ""]);
    await desk.say({ tools: [] });
    expect(desk.requests[0]?.messages.map(({ content }) => content)).toEqual(["Test.", "Go"]);
    expect(events.load("tester").map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test.each<[string, unknown[], string]>([
    ["a result of no call", [{ role: "tool", content: "x", toolCallId: "a" }], "/history/0/toolCallId"],
    [
      "a call without its result",
      [
        { role: "assistant", content: "", toolCalls: [call("a")] },
        { role: "user", content: "x" },
      ],
      "/history/0/toolCalls/0/id",
    ],
    [
      "a result twice",
      [
        { role: "assistant", content: "", toolCalls: [call("a")] },
        { role: "tool", content: "x", toolCallId: "a" },
        { role: "tool", content: "x", toolCallId: "a" },
      ],
      "/history/2/toolCallId",
    ],
    [
      "an id twice",
      [
        { role: "assistant", content: "", toolCalls: [call("a"), call("a")] },
        { role: "tool", content: "x", toolCallId: "a" },
      ],
      "/history/0/toolCalls/1/id",
    ],
    ["an empty text", [{ role: "assistant", content: " " }], "/history/0/content"],
    ["another role", [{ role: "developer", content: "x" }], "/history/0/role"],
    [
      "a forged origin",
      [{ role: "user", content: "x", metadata: { origin: "user:eve" } }],
      "/history/0/metadata",
    ],
    [
      "a forged compaction",
      [{ role: "system", content: "x", metadata: { compactedEventCount: 9 } }],
      "/history/0/metadata",
    ],
    ["too many", Array(1_001).fill({ role: "user", content: "x" }), "/history"],
  ])("SEED-2 %s is refused with its place", (_, messages, path) => {
    expect(() => validate(historySchema, messages, "/history")).toThrow(
      expect.objectContaining({
        code: "INVALID_INPUT",
        options: { errors: [expect.objectContaining({ path })] },
      }),
    );
  });

  test("a history is bounded in bytes, in depth and to well-formed text", () => {
    let deep: unknown = {};
    for (let level = 0; level < 10_000; level++) deep = { deep };
    const said = (content: unknown) => [{ role: "user", content }];
    expect(() => checkHistory(said("x".repeat(1024 * 1024)))).toThrow(
      expect.objectContaining({ code: "TOO_LARGE" }),
    );
    expect(() => checkHistory(said(deep))).toThrow(expect.objectContaining({ code: "INVALID_JSON" }));
    expect(() => checkHistory(said("\ud800"))).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
    checkHistory(undefined);
  });
});
