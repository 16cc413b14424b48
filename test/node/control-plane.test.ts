/** A conversation's agents, callers, status and gate, and the commit that a turn sees: in the state, and as stored. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callerKey, originOf } from "../../src/agents/conversation/core/caller.ts";
import type { AgentDecision } from "../../src/agents/conversation/core/decisions.ts";
import { baseContext } from "../../src/agents/conversation/core/planning/context.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { reduce } from "../../src/agents/conversation/core/reducer.ts";
import type { AttemptFacts, Signal } from "../../src/agents/conversation/core/signals.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  chainOf,
  type Head,
} from "../../src/agents/conversation/core/state.ts";
import { beginTransition, type Transition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { metricsOfClosedCalls } from "../../src/agents/conversation/effects/reports.ts";
import { SessionWindows } from "../../src/agents/conversation/effects/session-windows.ts";
import {
  conversationSummary,
  conversationView,
  turnView,
} from "../../src/agents/conversation/reads/views.ts";
import { ConversationDatabase } from "../../src/agents/conversation/store/conversation-database.ts";
import { packHead, unpackHead } from "../../src/agents/conversation/store/journal.ts";
import type { ModelReply } from "../../src/model/reply.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { Caller } from "../../src/protocol/caller-schemas.ts";
import type { VersionChain } from "../../src/protocol/definitions.ts";
import { callId } from "../../src/protocol/ids.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";

const PIN = { version: 1, hash: "h" };
const FACTS: AttemptFacts = {
  startedAt: 1,
  finishedAt: 2,
  usage: { inputTokens: 1_000 },
};
const ADA: Caller = { type: "user", userId: "ada" };

/** An agent with its own instructions, models, prices, tools and limits. */
function agent(id: string, price: number, maxMovesPerTurn: number): { id: string; chain: VersionChain } {
  const model = (modelId: string) => ({ provider: "openai" as const, modelId, costPer1kInput: price });
  const inputSchema = { type: "object" };
  const definition = {
    name: `tool_${id}`,
    description: id,
    effect: "pure" as const,
    timeoutMs: 1,
    inputSchema,
  };
  const persona = {
    identity: { systemPrompt: `You are ${id}.` },
    tools: { constraints: { maxMovesPerTurn } },
  };
  return {
    id,
    chain: {
      persona: { ...PIN, id, definition: persona },
      tools: [{ ...PIN, library: "lib", id: `tool-${id}`, definition }],
      modelProfile: { ...PIN, id: `model-${id}`, definition: model(`${id}-1`) },
      fallbacks: [{ ...PIN, id: `other-${id}`, definition: model(`${id}-2`) }],
    },
  };
}

const RECORD: ConversationIdentity = {
  id: "conv_two",
  tenant: "test",
  title: null,
  projectId: "default",
  participants: [
    { type: "user", id: "ada" },
    { type: "agent", id: "first" },
    { type: "agent", id: "second" },
  ],
  agents: [agent("first", 1, 9), agent("second", 2, 1)],
  createdAt: 1,
};

/** A conversation of two agents in Node. */
class Pair {
  readonly database = new NodeSqlDatabase();
  readonly counter = new CostCounter();
  readonly #counted = countingDatabase(this.database, new NodeKeyValue(this.database), this.counter);
  readonly store = new ConversationDatabase(this.#counted.db, this.#counted.kv);
  readonly windows = this.newWindows();
  state: ConversationState = this.store.create(RECORD);
  #stems = 0;

  newWindows(): SessionWindows {
    return new SessionWindows(this.store, () => RECORD);
  }

  /** Starts a turn of an agent. Only users' messages start turns yet, and only turns of the first agent. */
  start(agentId: string, input: string, caller: Caller = ADA, clientId = ""): Turn {
    const turn = this.state.turns + 1;
    this.#stems += 1;
    const stem = `01ARZ3NDEKTSV4RR${String(this.#stems).padStart(3, "0")}`;
    const before = this.state;
    this.#commit([
      { type: "START_TURN", turn, stem, agentId, caller, ...(clientId === "" ? {} : { clientId }), input },
      { type: "CALL_LLM", turn, final: false },
    ]);
    const started = this.turn(turn);
    this.windows.begin(started, before);
    return started;
  }

  /** Takes a signal. Returns the turn as it is then. */
  send(signal: Extract<Signal, { turn: number }>): Turn {
    this.#commit(plan(this.state, signal, { now: 5, stem: "", gate: allowAll }));
    const turn = this.turn(signal.turn);
    if (turn.status !== "active") this.windows.end(turn);
    return turn;
  }

  reply(n: number, text: string, toolCalls: ModelReply["toolCalls"] = []): Turn {
    const { item = 0, attempt = 0 } = this.turn(n).call ?? {};
    const reply: ModelReply = {
      text,
      toolCalls,
      finishReason: "stop",
      native: [{ type: "text", length: 2 }],
    };
    return this.send({ type: "conversation.llm.completed", turn: n, item, attempt, reply, facts: FACTS });
  }

  turn(n: number): Turn {
    const turn = this.state.active.get(n) ?? this.store.turn(n);
    if (turn === null) throw new Error(`There is no turn ${n}.`);
    return turn;
  }

  /** Writes a commit of anything else, as later decisions may. */
  change(members: Partial<ConversationState>): void {
    const transition = beginTransition({ ...this.state, ...members });
    this.#write({ ...transition, entries: [{ type: "conversation.started" }] });
  }

  #commit(decisions: readonly AgentDecision[]): void {
    this.#write(reduce(beginTransition(this.state), decisions, 5));
  }

  #write(transition: Transition): void {
    this.state = this.store.commit(transition, 5).state;
  }
}

const contents = (messages: readonly { content: string }[]) => messages.map(({ content }) => content);

describe("agents", () => {
  test("a turn's instructions, tools, models, limits, prices and metrics belong to its own agent", () => {
    for (const { id, price, isLast } of [
      { id: "first", price: 1, isLast: false },
      { id: "second", price: 2, isLast: true },
    ]) {
      const pair = new Pair();
      const { n } = pair.start(id, "go");
      const context = baseContext(RECORD, [], pair.turn(n));
      expect(context.systemInstructions).toEqual([`You are ${id}.`]);
      expect(context.tools?.map(({ name }) => name)).toEqual([`tool_${id}`]);

      const before = pair.turn(n);
      const called = pair.reply(n, "", [
        { id: "a", name: "tool_first", arguments: {} },
        { id: "b", name: "tool_second", arguments: {} },
      ]);
      const errors = called.operations.map(({ name, result }) => [name, result?.error?.code]);
      const others = id === "first" ? "tool_second" : "tool_first";
      expect(errors.filter(([, code]) => code !== undefined)).toEqual([[others, "NOT_FOUND"]]);
      expect(called.replies[0]?.native).toMatchObject({ modelId: `${id}-1` });
      expect(pair.state.usage.nanoDollars).toBe(price * 1e9);
      const metrics = metricsOfClosedCalls(RECORD, before, called);
      expect(metrics.map(({ cost, info }) => [cost, info.agentContext.labels])).toMatchObject([
        [price, { model: `${id}-1` }],
      ]);

      const item = called.operations.find(({ result }) => result === undefined)?.item ?? 0;
      const result = { tool_call_id: "", success: true, result: 1 };
      const asked = pair.send({ type: "conversation.tool.completed", turn: n, item, attempt: 1, result });
      expect(asked.call?.final, "the second agent may make one move").toBe(isLast);

      const error = { category: "auth", message: "no", retriable: false, provider: "openai" } as const;
      const address = { turn: n, item: asked.call?.item ?? 0, attempt: 1, facts: FACTS, streamed: false };
      const fallen = pair.send({ type: "conversation.llm.failed", ...address, error });
      expect(fallen.call?.profile).toBe(1);
      const done = pair.reply(n, "done");
      const { calls, cost, agentId } = turnView(RECORD, done, undefined);
      expect(agentId).toBe(id);
      expect(calls.map(({ id, model }) => [id, model])).toEqual(
        [`${id}-1`, `${id}-1`, `${id}-2`].map((model, index) => [callId(done, index), model]),
      );
      expect(cost).toBe(3 * price);
    }
  });

  test("each agent has its own session, without the other's events", () => {
    const pair = new Pair();
    for (const [id, text] of [
      ["first", "one"],
      ["second", "two"],
      ["first", "three"],
    ] as const) {
      const { n } = pair.start(id, text);
      pair.reply(n, `re ${text}`);
    }
    expect(pair.state.sessions).toEqual({ first: 4, second: 2 });
    const seen = (id: string) => contents(pair.windows.messagesFor(pair.start(id, "?")));
    expect(seen("first")).toEqual(["one", "re one", "three", "re three"]);
    expect(seen("second")).toEqual(["two", "re two"]);
    expect(new Set(pair.store.events.load("second").map(({ sessionId }) => sessionId))).toEqual(
      new Set(["second"]),
    );
  });

  test("H5 WINDOW-3 finding a cycle's place in its session costs no statement, and one if the turn began before a wake", () => {
    const pair = new Pair();
    for (const text of ["one", "two"]) pair.reply(pair.start("first", text).n, `re ${text}`);
    const reading = (windows: SessionWindows, turn: Turn) => {
      pair.counter.reset();
      windows.messagesFor(turn);
      return pair.counter.cost.statements;
    };
    const turns = [1, 2, 3, 4].map((n) => pair.start("first", `${n}`));
    const [first, second, third, fourth] = turns as [Turn, Turn, Turn, Turn];
    expect(reading(pair.windows, first), "the window is read").toBe(1);
    expect(reading(pair.windows, second)).toBe(0);
    const woken = pair.newWindows();
    expect(reading(woken, first), "the head and the window").toBe(2);
    expect(reading(woken, first)).toBe(0);
    expect(reading(woken, third), "the head").toBe(1);
    pair.reply(first.n, "re three");
    expect(reading(pair.windows, fourth), "its visible window is absent").toBe(1);
  });

  test("views name the first agent as the conversation's, and an unknown agent is a defect", () => {
    expect(conversationSummary(RECORD)).toMatchObject({
      agentId: "first",
      participants: RECORD.participants,
    });
    expect(() => chainOf(RECORD, "nobody")).toThrow('"nobody" does not participate');
  });

  test("WINDOW-3 cycles of two agents see earlier commits, in memory and after a crash", () => {
    const agentId = fc.constantFrom("first", "second");
    const step = fc.oneof(
      fc.record({ kind: fc.constant("start" as const), agentId }),
      fc.record({ kind: fc.constant("end" as const), pick: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 25 }), (script) => {
        const pair = new Pair();
        const completed: { agentId: string; text: string; seq: number }[] = [];
        for (const next of script) {
          if (next.kind === "start") {
            if (pair.state.active.size < 4) pair.start(next.agentId, `${pair.state.turns + 1}`);
            continue;
          }
          const turn = [...pair.state.active.values()][next.pick % Math.max(1, pair.state.active.size)];
          if (turn === undefined) continue;
          pair.reply(turn.n, `re ${turn.n}`);
          completed.push({ agentId: turn.agentId, text: `re ${turn.n}`, seq: pair.state.seq });
          for (const active of pair.state.active.values()) {
            const expected = completed
              .filter(({ agentId, seq }) => agentId === active.agentId && seq <= active.snapshotSeq)
              .map(({ text }) => text);
            for (const windows of [pair.windows, pair.newWindows()]) {
              const answers = windows.messagesFor(active).filter(({ role }) => role === "assistant");
              expect(contents(answers)).toEqual(expected);
            }
          }
        }
        const stored = pair.store.load();
        expect(stored).toEqual(pair.state);
      }),
      { numRuns: 100 },
    );
  });
});

describe("callers", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 6 });
  const tricky = fc.oneof(text, fc.constantFrom("", "1:a", "agent", "3:ada:k", ":", "agent:1:a"));
  const caller: fc.Arbitrary<Caller> = fc.oneof(
    tricky.map((userId) => ({ type: "user" as const, userId })),
    fc.tuple(tricky, tricky).map(([agentId, turnId]) => ({ type: "agent" as const, agentId, turnId })),
    tricky.map((runId) => ({ type: "workflow" as const, runId })),
  );
  const withoutTurn = (who: Caller) => (who.type === "agent" ? { ...who, turnId: "" } : who);

  test("CALLER-1 keys of two callers are equal only for the same caller and the same key", () => {
    fc.assert(
      fc.property(caller, tricky, caller, tricky, (one, key, other, otherKey) => {
        const isSame =
          JSON.stringify([withoutTurn(one), key]) === JSON.stringify([withoutTurn(other), otherKey]);
        expect(callerKey(one, key) === callerKey(other, otherKey)).toBe(isSame);
      }),
      { numRuns: 2_000 },
    );
    expect(callerKey(ADA, "k"), "as every release stored it").toBe("3:ada:k");
  });

  test("each kind of caller starts turns: its key, its origin in the session, and its view", () => {
    const callers: [Caller, origin: string][] = [
      [ADA, "user:ada"],
      [{ type: "agent", agentId: "second", turnId: "turn_1" }, "agent:second"],
      [{ type: "workflow", runId: "run_1" }, "workflow:run_1"],
    ];
    const pair = new Pair();
    for (const [who, origin] of callers) {
      const { n } = pair.start("first", "go", who, "key");
      const done = pair.reply(n, "done");
      expect(originOf(who)).toBe(origin);
      expect(pair.store.events.load("first").at(-2)?.metadata?.origin).toBe(origin);
      expect(turnView(RECORD, done, undefined).caller).toEqual(who);
      expect(pair.store.turn(n)).toEqual(done);
    }
    expect(callers.map(([who]) => pair.store.turnOfKey(who, "key"))).toEqual([1, 2, 3]);
  });
});

describe("status and gate", () => {
  test("a new conversation is active and open; its gate is shown as idle or running", () => {
    const pair = new Pair();
    expect(conversationView(pair.state)).toMatchObject({ status: "active", gate: "idle" });
    pair.start("first", "go");
    expect(conversationView(pair.state)).toMatchObject({ status: "active", gate: "running" });
  });

  test("the members that a commit sets are in its head, are kept by later commits, and are shown after a wake", () => {
    const pair = new Pair();
    pair.change({ status: "completed", gate: "cancelled", order: "queued" });
    pair.start("first", "go");
    const woken = pair.store.load();
    expect(woken).toEqual(pair.state);
    expect(woken && conversationView(woken)).toMatchObject({
      status: "completed",
      gate: "cancelled",
      turns: "queued",
    });
  });
});

describe("stored forms", () => {
  const usage = fc.record({
    calls: fc.nat(3),
    inputTokens: fc.nat(),
    cachedInputTokens: fc.nat(),
    outputTokens: fc.nat(),
    nanoDollars: fc.nat(),
  });
  const none = { calls: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, nanoDollars: 0 };
  const count = { turn: fc.nat(), cover: fc.nat(), upTo: fc.nat(), tokens: fc.nat(), startedAt: fc.nat() };
  const compaction = fc.oneof(
    fc.record(count),
    fc.record({ ...count, call: fc.record({ attempt: fc.nat(), notBefore: fc.nat() }) }),
  );
  const head: fc.Arbitrary<Head> = fc.record({
    turns: fc.nat(9),
    sessions: fc.dictionary(fc.constantFrom("a", "b", "constructor"), fc.nat()),
    active: fc.array(fc.nat()),
    usage: fc.oneof(fc.constant(none), usage),
    spent: fc.record({ tokens: fc.nat(), nanoDollars: fc.nat(), toolCalls: fc.nat(), modelCalls: fc.nat() }),
    status: fc.constantFrom("active", "completed", "failed"),
    gate: fc.constantFrom("open", "cancelled"),
    order: fc.constantFrom("parallel", "queued", "interrupt"),
    compactions: fc.dictionary(fc.constantFrom("a", "constructor"), compaction),
  });
  const parsed = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));

  test("HEAD-1 a head is restored unchanged", () => {
    fc.assert(
      fc.property(head, (value) => {
        expect(unpackHead(parsed(packHead(value)))).toEqual({ ...value, sessions: { ...value.sessions } });
      }),
    );
  });
});
