/** The core of a conversation as properties: random signals in random order, checked after every commit. */

import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import type { ConversationMedia } from "../../src/agents/conversation/context.ts";
import {
  MAX_ACTIVE_TURNS,
  MAX_CALLS_PER_REPLY,
  MAX_NATIVE_LENGTH,
  MAX_RECOVERIES,
  MAX_RESUME_PAUSE_MS,
  MIN_HEARTBEAT_MS,
  NOTICES,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { dueIn, effectsOf, endedEffects, heartbeatIn } from "../../src/agents/conversation/core/effects.ts";
import { framesOf } from "../../src/agents/conversation/core/frames.ts";
import { delayedTurns } from "../../src/agents/conversation/core/isolation.ts";
import { isOpen } from "../../src/agents/conversation/core/operation.ts";
import {
  baseContext,
  historyBudget,
  moveMessages,
} from "../../src/agents/conversation/core/planning/context.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { checkTurnSchemas } from "../../src/agents/conversation/core/planning/schema-check.ts";
import { reduce } from "../../src/agents/conversation/core/reducer.ts";
import type { AttemptFacts, Signal } from "../../src/agents/conversation/core/signals.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  nextEvent,
  primaryAgent,
} from "../../src/agents/conversation/core/state.ts";
import { beginCycles, step } from "../../src/agents/conversation/core/step.ts";
import { beginTransition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import {
  isRecorded,
  outcomesAt,
  turnEvents,
  turnFromEvents,
  turnRow,
} from "../../src/agents/conversation/core/turn-events.ts";
import { openOperations, runnableOperations } from "../../src/agents/conversation/core/turn-operations.ts";
import { waitOf, works } from "../../src/agents/conversation/core/waits.ts";
import { performModelCall } from "../../src/agents/conversation/effects/model-call.ts";
import { SessionWindow } from "../../src/agents/conversation/effects/session-window.ts";
import { SessionWindows } from "../../src/agents/conversation/effects/session-windows.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { newRecentTurns, TurnReader } from "../../src/agents/conversation/reads/turn-reader.ts";
import { movesOf } from "../../src/agents/conversation/reads/views.ts";
import { packCall, unpackCall } from "../../src/agents/conversation/store/call-rows.ts";
import { ConversationDatabase } from "../../src/agents/conversation/store/conversation-database.ts";
import { MAX_MOVES } from "../../src/library/personas/persona.ts";
import { selectHistory } from "../../src/memory/session/history.ts";
import type { SessionEvent } from "../../src/memory/session/session-event.ts";
import { estimateTokens } from "../../src/memory/session/tokens.ts";
import type { OutputSpec, ToolSpec } from "../../src/model/context.ts";
import type { ErrorCategory, ModelError } from "../../src/model/error.ts";
import { MAX_CONTINUATIONS } from "../../src/model/joined-reply.ts";
import type { ModelReply } from "../../src/model/reply.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import type { TurnOrder } from "../../src/protocol/conversation-schemas.ts";
import type { ToolEffect, VersionChain } from "../../src/protocol/definitions.ts";
import { endsTurn, type Frame } from "../../src/protocol/frames.ts";
import {
  MAX_ITEM_INDEX,
  MAX_TURN_NUMBER,
  messageId,
  operationId,
  parseItemId,
  stemOf,
  turnId,
} from "../../src/protocol/ids.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { agent, compaction, user as userEvent } from "../support/events.ts";
import { jsonValues } from "../support/json-values.ts";
import { PIN, PLAIN_CHAIN, recordOf } from "../support/records.ts";

const STEM = "01ARZ3NDEKTSV4RRFFQ";

const tool = (name: string, effect: ToolEffect, members: { async?: boolean } = {}) => ({
  ...PIN,
  library: "lib",
  id: name,
  definition: {
    name,
    description: name,
    effect,
    timeoutMs: 1000,
    ...members,
    inputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  },
});

function record(maxMovesPerTurn = 3, agentId = "tester"): ConversationIdentity {
  return recordOf(undefined, { agents: [{ id: agentId, chain: chainWith(maxMovesPerTurn) }] });
}

function chainWith(maxMovesPerTurn: number): VersionChain {
  return {
    persona: {
      ...PIN,
      id: "inline",
      definition: { identity: { systemPrompt: "Test." }, tools: { constraints: { maxMovesPerTurn } } },
    },
    tools: [
      tool("pure", "pure"),
      tool("safe", "idempotent"),
      tool("once", "once"),
      tool("later", "pure", { async: true }),
      tool("job", "once", { async: true }),
    ],
    modelProfile: PLAIN_CHAIN.modelProfile,
    fallbacks: [{ ...PIN, id: "second", definition: PRICED }],
  };
}

const PRICED = { provider: "openai", modelId: "second", costPer1kInput: 0.1, costPer1kOutput: 0.7 } as const;
const OUTPUT = {
  name: "answer",
  schema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
};

const ADA = { type: "user", userId: "ada" } as const;

const user = (content: string, tools: ToolSpec[] = [], output?: OutputSpec): Signal => ({
  type: "conversation.user.message",
  caller: ADA,
  data: {
    content,
    ...(output === undefined ? {} : { output }),
    ...(tools.length === 0 ? {} : { tools, toolChoice: "required" as const }),
  },
});

/** A client tool that a message may declare. */
const ASK: ToolSpec = {
  name: "ask",
  description: "Asks the user.",
  inputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
};
/** How long the client has, in steps of a script. */
const CLIENT_STEPS = 12;

/** The facts of an attempt if a test ignores them. */
const FACTS: AttemptFacts = { startedAt: 1_500, finishedAt: 1_900 };

/** The events of a turn, by their texts. */
const said = (question: string, answer: string) => [userEvent(question), agent(answer)];

const attemptFacts: fc.Arbitrary<AttemptFacts> = fc
  .record(
    {
      startedAt: fc.nat(9_000),
      finishedAt: fc.nat(9_000),
      firstTextAt: fc.nat(9_000),
      status: fc.constantFrom(200, 503),
      requestId: fc.string({ maxLength: 8 }),
      usage: fc.record({ inputTokens: fc.nat(9_999), outputTokens: fc.nat(9_999) }, { requiredKeys: [] }),
      rateLimit: fc.constant({ isRateLimited: true, rawHeaders: { "retry-after": "1" } }),
    },
    { requiredKeys: ["startedAt", "finishedAt"] },
  )
  .map((facts) => ({ ...facts }));

/**
 * The next event, chosen without the state. The driver makes a signal of it if possible. Weights and lengths are such
 * that one script in ten has a second cycle, and one in eight a queued turn.
 */
const scriptStep = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("message" as const),
      content: fc.string({ minLength: 1, unit: "grapheme" }),
      structured: fc.boolean(),
      tools: fc.subarray([ASK]),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("reply" as const),
      pick: fc.nat(),
      text: fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom('{"n": 1}', '{"n": "one"}')),
      finishReason: fc.constantFrom("stop" as const, "stop" as const, "length" as const),
      isNative: fc.boolean(),
      facts: attemptFacts,
      calls: fc.array(
        fc.record({
          name: fc.constantFrom("pure", "safe", "once", "ask", "unknown", "later", "job", "job"),
          id: fc.constantFrom("call_0", "call_1", "x"),
          n: fc.option(fc.integer(), { nil: undefined }),
          broken: fc.nat(5).map((n) => n === 0),
        }),
        { maxLength: 3 },
      ),
    }),
  },
  fc.record({
    kind: fc.constant("failure" as const),
    pick: fc.nat(),
    retriable: fc.boolean(),
    streamed: fc.boolean(),
    category: fc.constantFrom("transient" as const, "auth" as const, "safety" as const),
    facts: attemptFacts,
  }),
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("result" as const),
      pick: fc.nat(),
      success: fc.boolean(),
      value: jsonValues(),
    }),
  },
  fc.record({
    kind: fc.constant("submit" as const),
    pick: fc.nat(),
    success: fc.boolean(),
    value: jsonValues(),
  }),
  fc.record({ kind: fc.constant("expire" as const) }),
  fc.record({ kind: fc.constant("stale" as const), pick: fc.nat() }),
  fc.record({ kind: fc.constant("recover" as const) }),
  fc.record({ kind: fc.constant("stop" as const), pick: fc.nat() }),
  fc.record({ kind: fc.constant("stop all" as const) }),
  ...Array.from({ length: 3 }, () => fc.record({ kind: fc.constant("resume" as const) })),
  fc.record({
    kind: fc.constant("order" as const),
    order: fc.constantFrom("parallel", "queued", "queued", "interrupt").map((order) => order as TurnOrder),
  }),
);
type Step = typeof scriptStep extends fc.Arbitrary<infer Value> ? Value : never;

function pickFrom<Item>(items: readonly Item[], pick: number): Item | undefined {
  return items[pick % Math.max(1, items.length)];
}

function signalOf(state: ConversationState, next: Step): Signal | null {
  const turns = [...state.active.values()];
  const calling = turns.filter(({ call }) => call !== null);
  const pending = turns.flatMap((turn) => openOperations(turn).map((operation) => ({ turn, ...operation })));
  const waiting = pending.filter(({ target }) => target === "code");
  switch (next.kind) {
    case "message":
      return turns.length < 4 ? user(next.content, next.tools, next.structured ? OUTPUT : undefined) : null;
    case "reply": {
      const turn = pickFrom(calling, next.pick);
      if (turn?.call == null) return null;
      const reply: ModelReply = {
        text: next.text,
        toolCalls: next.calls.map(({ name, id, n, broken }) => ({
          id,
          name,
          arguments: n === undefined || broken ? {} : { n },
          ...(broken ? { invalidArguments: "{" } : {}),
        })),
        finishReason: next.finishReason,
        ...(next.facts.usage === undefined ? {} : { usage: next.facts.usage }),
        ...(next.isNative ? { native: [{ type: "text" as const, length: next.text.length }] } : {}),
      };
      return {
        type: "conversation.llm.completed",
        turn: turn.n,
        item: turn.call.item,
        attempt: turn.call.attempt,
        reply,
        facts: next.facts,
      };
    }
    case "failure": {
      const turn = pickFrom(calling, next.pick);
      if (turn?.call == null) return null;
      const { retriable, streamed, category, facts } = next;
      const error: ModelError = { category, message: "down", retriable, provider: "offline" };
      const { item, attempt } = turn.call;
      return { type: "conversation.llm.failed", turn: turn.n, item, attempt, error, facts, streamed };
    }
    case "result": {
      const target = pickFrom(waiting, next.pick);
      if (target === undefined) return null;
      const id = target.turn.operations.find(({ item }) => item === target.item)?.toolCallId ?? "";
      const outcome = next.success
        ? // Through JSON, as every result that arrives has been.
          { success: true, result: JSON.parse(JSON.stringify(next.value)) }
        : { success: false, error: { code: "EXECUTION_FAILED" as const, message: "no", retriable: false } };
      const result = { tool_call_id: id, ...outcome };
      return {
        type: "conversation.tool.completed",
        turn: target.turn.n,
        item: target.item,
        attempt: 1,
        result,
      };
    }
    case "submit": {
      const target = pickFrom(
        pending.filter(({ target }) => target === "client"),
        next.pick,
      );
      if (target === undefined) return null;
      const outcome = next.success
        ? { result: JSON.parse(JSON.stringify(next.value)) }
        : { error: { message: "no" } };
      return { type: "conversation.tool.submitted", turn: target.turn.n, item: target.item, outcome };
    }
    case "expire":
      return { type: "conversation.cmd.expire" };
    case "stale": {
      const turn = (next.pick % 5) + 1;
      const result = { tool_call_id: "x", success: true, result: "late" };
      return { type: "conversation.tool.completed", turn, item: 4000, attempt: 1, result };
    }
    case "recover":
      return { type: "conversation.cmd.recover" };
    case "stop": {
      const turn = pickFrom(turns, next.pick);
      return turn === undefined ? null : { type: "conversation.cancel", caller: ADA, turn: turn.n };
    }
    case "stop all":
      return { type: "conversation.cancel", caller: ADA };
    case "order":
      return { type: "conversation.update", caller: ADA, order: next.order };
    case "resume":
      return state.gate === "cancelled" ? { type: "conversation.resume", caller: ADA } : null;
    default:
      return next satisfies never;
  }
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of value instanceof Map ? value.values() : Object.values(value)) deepFreeze(member);
  return value;
}

/** A conversation in Node, driven signal by signal. It records the published frames. */
class Driver {
  readonly database = new NodeSqlDatabase();
  store = new ConversationDatabase(this.database, new NodeKeyValue(this.database));
  readonly live: Frame[] = [];
  readonly finished: Turn[] = [];
  /** The signals that were sent, in order. */
  readonly log: Signal[] = [];
  state: ConversationState;
  now = 1_000;

  constructor(maxMoves = 3, agentId = "tester") {
    this.state = deepFreeze(this.store.create(record(maxMoves, agentId)));
  }

  /** Clears the memory, and reads the stored state. */
  wake(): void {
    this.store = new ConversationDatabase(this.database, new NodeKeyValue(this.database));
    this.state = deepFreeze(this.store.load() ?? expect.fail("nothing is stored"));
  }

  send(signal: Signal): void {
    this.log.push(signal);
    this.now += 1_000;
    const clientToolTimeoutMs = CLIENT_STEPS * 1_000;
    const inProgress = () => ({ shown: this.now % 2_000 === 0 ? "What was shown" : " ", facts: FACTS });
    const input = { now: this.now, stem: STEM, gate: allowAll, clientToolTimeoutMs, inProgress };
    expect(plan(this.state, signal, input), "PLAN-1").toEqual(plan(this.state, signal, input));
    const transition = beginCycles(step(beginTransition(this.state), signal, input), input);
    if (transition.entries.length === 0) return;
    const { state, row } = this.store.commit(transition, this.now);
    expect(row.seq, "JOURNAL-1").toBe(this.state.seq + 1);
    this.state = deepFreeze(state);
    this.live.push(...framesOf(row, 0, this.state.record, (n) => transition.touched.get(n)));
    for (const turn of transition.touched.values()) if (turn.status !== "active") this.finished.push(turn);
  }
}

/** A conversation after all of a script that fits its state. */
function drive(script: readonly Step[]): Driver {
  const driver = new Driver();
  for (const next of script) {
    const signal = signalOf(driver.state, next);
    if (signal !== null) driver.send(signal);
  }
  return driver;
}

/** All that readers get of a conversation, as text. */
function projectionsOf({ store, state, live }: Driver): string {
  const queries = new ConversationQueries(store);
  const pages = <Item>(read: (cursor?: string) => { items: Item[]; nextCursor?: string }) => {
    const items: Item[] = [];
    let cursor: string | undefined;
    do {
      const page = read(cursor);
      items.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return items;
  };
  const from = (cursor?: string) => (cursor === undefined ? {} : { cursor });
  const turns = pages((cursor) => queries.turns(from(cursor)));
  return JSON.stringify([
    pages((cursor) => queries.messages(state, from(cursor))),
    pages((cursor) => queries.journal(state, from(cursor))),
    turns.map(({ id }) => queries.turn(state, id)),
    queries.snapshot(state, []),
    live,
  ]);
}

type Outcome = Extract<
  Signal,
  { type: "conversation.llm.completed" | "conversation.llm.failed" | "conversation.tool.completed" }
>;

function isOutcome(signal: Signal): signal is Outcome {
  return /^conversation\.(llm\.(completed|failed)|tool\.completed)$/.test(signal.type);
}

/** The outcomes of everything that a state has under way. */
function lateOutcomes({ active }: ConversationState): Signal[] {
  return [...active.values()].flatMap((turn) => [
    ...(turn.call === null ? [] : [calling({ active: new Map([[turn.n, turn]]) }, ["once"])]),
    ...openOperations(turn).map(({ item, attempt, toolCallId }): Signal => {
      const result = { tool_call_id: toolCallId, success: true, result: "late" };
      return { type: "conversation.tool.completed", turn: turn.n, item, attempt, result };
    }),
  ]);
}

/** The reply of the first turn's model, which calls these tools. */
function calling({ active }: Pick<ConversationState, "active">, names: readonly string[]): Signal {
  const [turn] = active.values();
  if (turn?.call == null) throw new Error("No model is called.");
  const { item, attempt } = turn.call;
  const toolCalls = names.map((name, index) => ({ id: `call_${index}`, name, arguments: { n: index } }));
  const reply: ModelReply = { text: "", toolCalls, finishReason: "tool_calls" };
  return { type: "conversation.llm.completed", turn: turn.n, item, attempt, reply, facts: FACTS };
}

describe("the core under random signals", () => {
  const steps = fc.array(scriptStep, { minLength: 1, maxLength: 60, size: "max" });

  test("ASYNC-5 BOUND-1 BEAT-1 A71 PLAN-1 EFFECT-1 EFFECT-4 CLIENTTOOL-3 TURN-1 every active turn calls its model or its open operations, or waits until a deadline, and finished turns stay finished", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const driver = new Driver();
        for (const next of script) {
          const signal = signalOf(driver.state, next);
          if (signal !== null) driver.send(signal);
          const effects = effectsOf(driver.state);
          const active = [...driver.state.active.values()];
          const held = delayedTurns(driver.state.active);
          const free = active.filter(({ n }) => !held.has(n));
          const working = free.filter(({ call }) => call !== null).map(({ n }) => `model:${n}`);
          const running = free.flatMap((turn) =>
            runnableOperations(turn)
              .filter(({ mode }) => turn.call === null || mode === "async")
              .map(({ item }) => `tool:${turn.n}:${item}:1`),
          );
          expect(effects.map(({ key }) => key.replace(/^(model:\d+).*/, "$1")).sort()).toEqual(
            [...working, ...running].sort(),
          );
          for (const turn of active) {
            const isCalled = effects.some((effect) => "turn" in effect && effect.turn.n === turn.n);
            const waits = openOperations(turn).some(({ deadline }) => deadline !== undefined);
            const isHeld = held.has(turn.n) && effects.length > 0;
            const isQueued = turn.queued === true && active.some(({ n, queued }) => n !== turn.n && !queued);
            const isDue = waitOf(turn) === "cycle";
            const mayBegin =
              driver.state.order === "parallel" || !active.some((o) => o.n !== turn.n && works(o));
            if (isDue) expect(mayBegin, "ASYNC-5").toBe(false);
            expect(
              isCalled || waits || isHeld || isQueued || isDue,
              "each turn continues alone, or after another turn",
            ).toBe(true);
          }
          const due = (wokeAt: number) => dueIn(driver.state, driver.now, wokeAt);
          if (effects.length === 0) expect(due(0) === null).toBe(active.length === 0);
          else {
            const youngest = Math.max(
              ...effects.map((effect) => ("turn" in effect ? effect.turn.createdAt : 0)),
            );
            expect(due(0)).toBeLessThanOrEqual(heartbeatIn(driver.now - youngest));
            expect(due(driver.now), "a new life").toBeLessThanOrEqual(MIN_HEARTBEAT_MS);
          }
        }
        const ends = driver.finished.map(({ n }) => n);
        expect(new Set(ends).size, "TURN-1").toBe(ends.length);
        for (const n of ends) expect(driver.state.active.has(n)).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  test("COMMIT-3 E7 a wake reads the same state as in memory", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const driver = new Driver();
        for (const next of script) {
          const signal = signalOf(driver.state, next);
          if (signal === null) continue;
          driver.send(signal);
          expect(driver.store.load()).toEqual(driver.state);
        }
      }),
      { numRuns: 100 },
    );
  });

  test("E7 the same log gives the same state and projections, in one life or with a wake before each signal", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const driver = drive(script);
        const [again, woken] = [new Driver(), new Driver()];
        for (const signal of driver.log) {
          again.send(signal);
          woken.wake();
          woken.send(signal);
        }
        for (const other of [again, woken]) {
          expect(other.state).toEqual(driver.state);
          expect(other.store.load()).toEqual(driver.state);
          expect(projectionsOf(other)).toBe(projectionsOf(driver));
        }
      }),
      { numRuns: 100 },
    );
  });

  test("E7 PLAN-2 A73 a repeated or late outcome, or an outcome for unknown work, is ignored", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const driver = new Driver();
        const outcomes: Signal[] = [];
        for (const next of script) {
          const signal = signalOf(driver.state, next);
          if (signal === null) continue;
          driver.send(signal);
          if (isOutcome(signal)) outcomes.push(signal, { ...signal, turn: signal.turn + 900 });
          const { state } = driver;
          for (const repeated of outcomes) driver.send(repeated);
          expect(driver.state).toBe(state);
        }
      }),
      { numRuns: 100 },
    );
  });

  test("E9 of the intents, two start an effect, and cancel_pending_tools ends pending calls", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("pure", "safe", "once", "job"), { minLength: 1 }), (names) => {
        const driver = new Driver();
        const calls = names.slice(0, MAX_CALLS_PER_REPLY);
        driver.send(user("Go"));
        expect(
          effectsOf(driver.state).map(({ kind }) => kind),
          "run the model",
        ).toEqual(["model"]);
        const called = [...driver.state.active.values()];
        driver.send(calling(driver.state, calls));
        const [turn] = driver.state.active.values();
        expect(endedEffects(called[0], turn).map((key) => key.split(":")[0])).toEqual(["model"]);
        const tools = effectsOf(driver.state).filter(({ kind }) => kind === "tool");
        expect(tools, "run each tool").toHaveLength(calls.length);
        driver.send({ type: "conversation.cancel", caller: ADA });
        expect(effectsOf(driver.state)).toEqual([]);
        expect(endedEffects(turn, driver.state.active.get(1))).toEqual(
          expect.arrayContaining(tools.map(({ key }) => key)),
        );
        const cancelled = driver.live.filter(({ type }) => type === "tool.cancelled");
        expect(cancelled, "cancel each tool").toHaveLength(calls.length);
      }),
      { numRuns: 30 },
    );
  });

  test("E14 E15 E16 outcomes after a stop start no work, before or after the resume", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const driver = drive(script);
        const late = lateOutcomes(driver.state);
        driver.send({ type: "conversation.cancel", caller: ADA });
        const stopped = driver.state;
        expect([stopped.gate, stopped.active.size, effectsOf(stopped)]).toEqual(["cancelled", 0, []]);
        for (const signal of late) driver.send(signal);
        expect(driver.state).toBe(stopped);
        const turns = driver.state.turns;
        driver.send(user("Is anybody there?"));
        expect([driver.state.gate, driver.state.turns, effectsOf(driver.state)]).toEqual([
          "cancelled",
          turns + 1,
          [],
        ]);
        driver.send({ type: "conversation.resume", caller: ADA });
        for (const signal of late) driver.send(signal);
        expect([driver.state.gate, driver.state.turns, effectsOf(driver.state)]).toEqual([
          "open",
          turns + 1,
          [],
        ]);
        driver.send(user("And now?"));
        expect(effectsOf(driver.state).map(({ kind }) => kind)).toEqual(["model"]);
      }),
      { numRuns: 100 },
    );
  });

  test("H2 a turn commits all its events at once, in the order of completion, whatever runs beside it", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const driver = drive(script);
        const stored = driver.store.events.load("tester", { tail: false, limit: 10_000 });
        const parts = ({ action, content }: SessionEvent) => ({ action, content });
        expect(stored.map(parts)).toEqual(
          driver.finished.flatMap((turn) => (isRecorded(turn) ? turnEvents(turn).map(parts) : [])),
        );
      }),
      { numRuns: 100 },
    );
  });

  test("ASYNC-2 RECORD-2 RECORD-3 TURN-3 RECORD-1 A29 A32 finished turns are restored completely, with one user message and the last reply as the answer", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const driver = drive(script);
        for (const turn of driver.finished) {
          expect(driver.store.turn(turn.n)).toEqual(turn);
          if (!isRecorded(turn)) throw new Error("A turn that is over has events.");
          expect(turnFromEvents(turnRow(turn), turnEvents(turn))).toEqual(turn);
          expect(turn.operations.filter(isOpen)).toEqual([]);
          const moves = turn.replies.flatMap((reply, index) => {
            const next = turn.replies[index + 1]?.item ?? Number.POSITIVE_INFINITY;
            const calls = turn.operations.filter(({ item }) => item > reply.item && item < next);
            const got = outcomesAt(turn, index).map(() => "system_instruction");
            if (calls.length === 0) return [...got, "agent_message"];
            return [...got, "tool_call_request", ...calls.map(() => "tool_result")];
          });
          const left = [...outcomesAt(turn, turn.replies.length), ...outcomesAt(turn, undefined)];
          const note = [...left, ...(turn.status === "failed" ? [turn] : [])].map(() => "system_instruction");
          if (turn.status === "completed") expect(left, "ASYNC-2").toEqual([]);
          expect(turnEvents(turn).map(({ action }) => action)).toEqual(["user_message", ...moves, ...note]);
          if (turn.status === "failed") continue;
          const views = movesOf(driver.state.record, turn);
          expect(views.map(({ sequence }) => sequence)).toEqual(views.map((_, index) => index + 1));
          expect(views.at(-1)?.reasoning ?? "").toBe(turn.replies.at(-1)?.text);
        }
      }),
      { numRuns: 100 },
    );
  });

  test("WIRE-1 TURN-2 replayed frames equal the live frames from every position, and each message that starts ends", () => {
    fc.assert(
      fc.property(steps, fc.nat(), (script, position) => {
        const driver = drive(script);
        const seqs = driver.live.map(({ seq }) => seq ?? 0);
        expect([...seqs].sort((a, b) => a - b)).toEqual(seqs);
        expect(new Set(seqs).size).toBe(seqs.length);
        const from = position % (driver.state.seq + 1);
        const replayed: Frame[] = [];
        for (let after = from, done = false; !done; ) {
          const slice = new ConversationQueries(driver.store).replay(driver.state, after);
          replayed.push(...slice.frames);
          after = slice.upTo;
          done = slice.done;
        }
        expect(replayed).toEqual(driver.live.filter(({ seq }) => (seq ?? 0) > from));
        for (const started of driver.live.filter(({ type }) => type === "message.started")) {
          const ended = driver.live.some(
            ({ type, messageId: id, turnId: turn }) =>
              (type === "message.completed" && id === started.messageId) ||
              (type === "turn.failed" && turn === started.turnId),
          );
          const active = [...driver.state.active.values()].some((turn) => turnId(turn) === started.turnId);
          expect(ended || active, "TURN-2").toBe(true);
        }
      }),
      { numRuns: 100 },
    );
  });

  test("QUERY-2 pages of messages, followed to the end, are the transcript in journal order, both ways", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 7 }), (script, limit) => {
        const driver = drive(script);
        const queries = new ConversationQueries(driver.store);
        const all = (order: "asc" | "desc") => {
          const ids: string[] = [];
          let cursor: string | undefined;
          do {
            const page = queries.messages(driver.state, {
              limit,
              order,
              ...(cursor === undefined ? {} : { cursor }),
            });
            expect(page.items.length).toBeLessThanOrEqual(limit);
            ids.push(...page.items.map(({ id }) => id));
            cursor = page.nextCursor;
          } while (cursor !== undefined);
          return ids;
        };
        const expected = driver.live
          .filter(
            ({ type, data }) =>
              type === "message.user" || (type === "message.completed" && !("interim" in data)),
          )
          .map(({ messageId: id }) => id);
        expect(all("asc")).toEqual(expected);
        const whole = queries.messages(driver.state, { limit: Math.max(1, Math.min(200, expected.length)) });
        expect(whole.nextCursor, "the last page has no cursor").toBeUndefined();
        expect(all("desc")).toEqual(expected.reverse());
      }),
      { numRuns: 100 },
    );
  });
});

describe("decisions beside a turn's", () => {
  test("a decision to send adds its envelope to the transition, in order", () => {
    const { state } = new Driver();
    const to = { kind: "agent", tenant: "t", id: "a" };
    const envelopes = ["first", "second"].map((type) => ({ operationId: "op", to, type, body: null }));
    const decisions = envelopes.map((envelope) => ({ type: "SEND" as const, envelope }));
    expect(reduce(beginTransition(state), decisions, 1)).toEqual({ ...beginTransition(state), envelopes });
  });

  test("COMMIT-1 the key of a message is part of its transition", () => {
    const driver = new Driver();
    driver.send({
      type: "conversation.user.message",
      id: "key",
      caller: { type: "user", userId: "ada" },
      data: { content: "Hi." },
    });
    expect(driver.store.turnOfKey({ type: "user", userId: "ada" }, "key")).toBe(1);
    expect(driver.store.turnOfKey({ type: "user", userId: "grace" }, "key")).toBeUndefined();
  });
});

const answer = (text: string): ModelReply => ({ text, toolCalls: [], finishReason: "stop" });

/** Gives the first open operation of the first turn its result, 1. */
function giveResult(driver: Driver): void {
  const [operation] = openOperations(
    [...driver.state.active.values()][0] ?? expect.fail("No turn is active."),
  );
  const { item = 0, toolCallId = "" } = operation ?? {};
  const result = { tool_call_id: toolCallId, success: true, result: 1 };
  driver.send({ type: "conversation.tool.completed", turn: 1, item, attempt: 1, result });
}

/** Ends the only active turn: the calls of one reply with their results, and the answer. */
function finishTurn(driver: Driver, results: readonly string[]): void {
  const turn = () => [...driver.state.active.values()][0];
  const reply = (value: ModelReply): Signal => {
    const { n = 0, call } = turn() ?? {};
    const address = { turn: n, item: call?.item ?? 0, attempt: 1 };
    return { type: "conversation.llm.completed", ...address, reply: value, facts: FACTS };
  };
  if (results.length > 0) {
    const toolCalls = results.map((_, index) => ({
      id: `call_${index}`,
      name: "pure",
      arguments: { n: index },
    }));
    driver.send(reply({ ...answer(""), toolCalls }));
    for (const [index, { item, toolCallId }] of (turn()?.operations ?? []).entries()) {
      const result = { tool_call_id: toolCallId, success: true, result: results[index] ?? "" };
      driver.send({ type: "conversation.tool.completed", turn: turn()?.n ?? 0, item, attempt: 1, result });
    }
  }
  driver.send(reply(answer("the answer")));
}

describe("the window of the session", () => {
  const steps = fc.array(scriptStep, { minLength: 1, maxLength: 80, size: "max" });

  test("H2 WINDOW-1 WINDOW-3 CONTEXT-1 the window in memory equals the store's window, and begins with a user's message", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 4 }), (script, recentTurnsLimit) => {
        const driver = new Driver();
        const { chain } = primaryAgent(driver.state.record);
        const persona = {
          ...chain.persona,
          definition: { ...chain.persona.definition, memory: { recentTurnsLimit } },
        };
        const limited = {
          ...driver.state.record,
          agents: [{ id: "tester", chain: { ...chain, persona } }],
        } as const;
        const windows = () => new SessionWindows(driver.store, () => limited);
        const kept = windows();
        for (const next of script) {
          const signal = signalOf(driver.state, next);
          if (signal === null) continue;
          const finished = driver.finished.length;
          const before = driver.state;
          driver.send(signal);
          for (const turn of driver.state.active.values()) {
            if (before.active.get(turn.n)?.snapshotSeq !== turn.snapshotSeq) kept.begin(turn, driver.state);
          }
          for (const turn of driver.finished.slice(finished)) {
            kept.end(turn);
          }
          for (const turn of driver.state.active.values()) {
            if (turn.queued) continue;
            const fresh = windows().messagesFor(turn);
            expect(kept.messagesFor(turn)).toEqual(fresh);
            const ended = driver.live.filter(
              (frame) => endsTurn(frame) && (frame.seq ?? 0) <= turn.snapshotSeq,
            ).length;
            expect(fresh.filter(({ role }) => role === "user")).toHaveLength(
              Math.min(recentTurnsLimit, ended),
            );
            if (fresh.length > 0) expect(fresh[0]?.role).toBe("user");
          }
        }
      }),
      { numRuns: 100 },
    );
  });

  test("WINDOW-1 WINDOW-2 large windows and narrow budgets: the window in memory equals the store's window, counted completely", () => {
    const sizes = fc.record({
      length: fc.oneof(fc.nat(60), fc.nat(12_000)),
      results: fc.array(fc.nat(12_000), { maxLength: 2 }),
      brings: fc.boolean(),
    });
    const words = (length: number) => "word ".repeat(length / 5);
    const large = { ...ASK, description: words(20_000) };
    const counts = new Map<string, number>();
    const countTokens = (text: string) => {
      const tokens = counts.get(text) ?? estimateTokens(text);
      counts.set(text, tokens);
      return tokens;
    };
    fc.assert(
      fc.property(
        fc.array(sizes, { minLength: 1, maxLength: 25 }),
        fc.constantFrom(10, 250_000, 270_000),
        (given, promptLength) => {
          const driver = new Driver();
          const { chain } = primaryAgent(driver.state.record);
          const identity = { systemPrompt: words(promptLength) };
          const persona = { ...chain.persona, definition: { ...chain.persona.definition, identity } };
          const narrow = { ...chain, persona };
          const kept = new SessionWindow(driver.store.events);
          for (const { length, results, brings } of given) {
            driver.send(user(`${words(length)}?`, brings ? [large] : []));
            const [looking] = driver.state.active.values();
            if (looking === undefined) throw new Error("No turn is active.");
            const position = nextEvent(driver.state.sessions, looking.agentId);
            const read = { before: position, userMessages: 20, limit: 10_000, maxBytes: 2 ** 25 };
            const counted = selectHistory(driver.store.events.loadWindow(looking.agentId, read), {
              tokenBudget: historyBudget(narrow, looking.tools),
              maxTurns: 20,
              maxResultTokens: 2_048,
              countTokens,
            });
            expect(kept.messagesFor(looking, narrow, () => position)).toEqual(counted.messages);
            finishTurn(driver, results.map(words));
            for (const turn of driver.finished.slice(-1)) kept.end(turn, narrow);
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  test("WINDOW-1 a turn that first reads after its neighbour has ended spoils no later window", () => {
    const driver = new Driver();
    const { chain } = primaryAgent(driver.state.record);
    const kept = new SessionWindow(driver.store.events);
    driver.send(user("one"));
    driver.send(user("two"));
    const [, late] = driver.state.active.values();
    if (late === undefined) throw new Error("Two turns are active.");
    finishTurn(driver, []);
    for (const turn of driver.finished) kept.end(turn, chain);
    expect(kept.messagesFor(late, chain, () => 0)).toEqual([]);
    finishTurn(driver, []);
    for (const turn of driver.finished.slice(-1)) kept.end(turn, chain);
    driver.send(user("three"));
    const [next] = driver.state.active.values();
    if (next === undefined) throw new Error("No turn is active.");
    const contents = kept.messagesFor(next, chain, () => 4).map(({ content }) => content);
    expect(contents).toEqual(["one", "the answer", "two", "the answer"]);
  });

  test("M22 WINDOW-1 CONTEXT-1 a compaction's summary is in front, even if it is older than the window", () => {
    const driver = new Driver();
    const { chain } = primaryAgent(driver.state.record);
    const limited = {
      ...chain,
      persona: {
        ...chain.persona,
        definition: { ...chain.persona.definition, memory: { recentTurnsLimit: 3 } },
      },
    };
    const { events } = driver.store;
    driver.send(user("the turn that looks"));
    const [looking] = driver.state.active.values();
    if (looking === undefined) throw new Error("No turn is active.");
    events.append("tester", 0, [
      ...said("u0", "a0"),
      ...said("u1", "a1"),
      compaction("k", 2),
      ...said("u2", "a2"),
    ]);
    const kept = new SessionWindow(events);
    const contentsAt = (n: number, window = new SessionWindow(events)) =>
      window.messagesFor({ ...looking, n }, limited, () => 7 + 2 * (n - 100)).map(({ content }) => content);
    expect(contentsAt(100, kept)).toEqual(["summary k", "u1", "a1", "u2", "a2"]);
    for (let n = 101; n < 112; n++) {
      const from = 7 + 2 * (n - 101);
      const reply = { item: 1, text: `a${n}`, finishReason: "stop" as const, at: 1 };
      const turn: Turn = {
        ...looking,
        n,
        status: "completed",
        call: null,
        input: `u${n}`,
        replies: [reply],
        events: { from, count: 2 },
      };
      events.append("tester", from, turnEvents(turn));
      kept.end(turn, limited);
      const contents = contentsAt(n, kept);
      expect(contents).toEqual(contentsAt(n));
      expect(contents[0]).toBe("summary k");
      expect(contents.at(-1)).toBe(`a${n}`);
      expect(contents.filter((content) => content.startsWith("u"))).toHaveLength(Math.min(3, n - 97));
    }
  });
});

describe("hostile names and sizes", () => {
  /** A whole turn: the message, the calls of one reply with their results, and the answer. */
  function wholeTurn(driver: Driver, results: string[]): void {
    driver.send(user("go"));
    finishTurn(driver, results);
  }

  test("an agent may be called as every object's constructor is", () => {
    const driver = new Driver(3, "constructor");
    wholeTurn(driver, []);
    wholeTurn(driver, []);
    expect(driver.finished.map(({ status, events }) => [status, events])).toEqual([
      ["completed", { from: 0, count: 2 }],
      ["completed", { from: 2, count: 2 }],
    ]);
    expect(driver.store.load()).toEqual(driver.state);
  });

  test("WINDOW-2 a small window is read once, a large one each time", () => {
    const driver = new Driver();
    const { chain } = primaryAgent(driver.state.record);
    const kept = new SessionWindow(driver.store.events);
    const reads = vi.spyOn(driver.store.events, "loadWindow");
    const readsOf = (results: string[]) => {
      wholeTurn(driver, results);
      const ended = driver.finished.at(-1);
      if (ended !== undefined) kept.end(ended, chain);
      driver.send(user("and now?"));
      const turn = [...driver.state.active.values()][0];
      if (turn === undefined) throw new Error("No turn is active.");
      reads.mockClear();
      kept.messagesFor(turn, chain, () => nextEvent(driver.state.sessions, turn.agentId));
      const count = reads.mock.calls.length;
      const address = { turn: turn.n, item: turn.call?.item ?? 0, attempt: 1 };
      driver.send({ type: "conversation.llm.completed", ...address, reply: answer("so"), facts: FACTS });
      for (const over of driver.finished.slice(-1)) kept.end(over, chain);
      return count;
    };
    expect([readsOf([]), readsOf([]), readsOf([])]).toEqual([1, 0, 0]);
    expect([readsOf(["x".repeat(100_000)]), readsOf([])]).toEqual([1, 1]);
  });

  test("CONTEXT-1 a turn with huge results keeps its place in the window, its results shortened", () => {
    const driver = new Driver();
    wholeTurn(driver, ["x".repeat(900_000), "y".repeat(900_000)]);
    driver.send(user("and now?"));
    const [turn] = driver.state.active.values();
    if (turn === undefined) throw new Error("No turn is active.");
    const messages = new SessionWindows(driver.store, () => driver.state.record).messagesFor(turn);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
    expect(JSON.parse(messages[2]?.content ?? "")).toMatch(/^x+… \(shortened: 900000 characters\)$/);
    expect(messages.at(-1)?.content).toBe("the answer");
  });

  test("QUERY-1 a list of turns ends before rows of a megabyte each fill the actor's memory", () => {
    const driver = new Driver();
    for (let n = 0; n < 12; n++) {
      driver.send(user("hello"));
      const [turn] = driver.state.active.values();
      const error: ModelError = {
        category: "validation",
        message: "no",
        retriable: false,
        provider: "offline",
      };
      const address = { turn: turn?.n ?? 0, item: turn?.call?.item ?? 0, attempt: 1 };
      driver.send({ type: "conversation.llm.failed", ...address, error, facts: FACTS, streamed: false });
    }
    driver.database.run("UPDATE turns SET body = json_set(body, '$.input', ?)", "z".repeat(1_000_000));
    const queries = new ConversationQueries(driver.store);
    const first = queries.turns({ limit: 200 });
    expect(first.items.length).toBeLessThan(7);
    const ids = [...first.items];
    for (let cursor = first.nextCursor; cursor !== undefined; ) {
      const page = queries.turns({ limit: 200, cursor });
      ids.push(...page.items);
      cursor = page.nextCursor;
    }
    expect(new Set(ids.map(({ id }) => id)).size).toBe(12);
  });

  test("READ-1 QUERY-1 the tools of messages count for the size of one read", () => {
    const driver = new Driver();
    const schema = { type: "object", description: "z".repeat(250_000) };
    for (let n = 0; n < 20; n++) driver.send(user("Hi", [{ ...ASK, inputSchema: schema }]));
    const reader = new TurnReader(driver.state, driver.store, newRecentTurns());
    const taken = Array.from({ length: 20 }, (_, n) => n + 1).filter(
      (n) => reader.admits(n) && reader.take(n),
    );
    expect(taken.length).toBe(17);
  });

  test("TOO_MANY_TURNS when the active turns hold too much content together", () => {
    const driver = new Driver();
    for (let n = 0; n < 16; n++) driver.send(user("z".repeat(1_000_000)));
    expect(() => driver.send(user("z".repeat(1_000_000)))).toThrow(
      expect.objectContaining({ code: "TOO_MANY_TURNS" }),
    );
  });
});

describe("limits of a turn", () => {
  const reply = (turn: Turn, calls: { name: string; n: number }[], text = "thinking"): Signal => ({
    type: "conversation.llm.completed",
    turn: turn.n,
    item: turn.call?.item ?? 0,
    attempt: turn.call?.attempt ?? 0,
    facts: FACTS,
    reply: {
      text,
      toolCalls: calls.map(({ name, n }, index) => ({ id: `call_${index}`, name, arguments: { n } })),
      finishReason: "stop",
    },
  });
  const first = (driver: Driver): Turn => {
    const [turn] = driver.state.active.values();
    if (turn === undefined) throw new Error("No turn is active.");
    return turn;
  };
  const finishTools = (driver: Driver) => {
    for (const { item, toolCallId } of openOperations(first(driver))) {
      const result = { tool_call_id: toolCallId, success: true, result: 1 };
      driver.send({ type: "conversation.tool.completed", turn: 1, item, attempt: 1, result });
    }
  };

  test("A33 out of moves, the last call gets no tools, and silence is answered by a notice", () => {
    const driver = new Driver(2);
    driver.send(user("go"));
    for (let move = 0; move < 2; move++) {
      expect(first(driver).call?.final).toBe(false);
      driver.send(reply(first(driver), [{ name: "pure", n: move }]));
      finishTools(driver);
    }
    expect(first(driver).call?.final).toBe(true);
    driver.send(reply(first(driver), [{ name: "pure", n: 9 }], ""));
    expect(driver.state.active.size).toBe(0);
    expect(driver.finished[0]?.status).toBe("completed");
    expect(driver.finished[0]?.replies.at(-1)?.text).toBe(NOTICES.movesExhausted);
  });

  test("A15 E12 the model is called again once every call of a reply has a result, in any order", () => {
    const driver = new Driver();
    driver.send(user("go"));
    driver.send(
      reply(first(driver), [
        { name: "once", n: 1 },
        { name: "safe", n: 2 },
        { name: "unknown", n: 3 },
      ]),
    );
    const waiting = openOperations(first(driver)).reverse();
    expect(waiting).toHaveLength(2);
    for (const { item, toolCallId } of waiting) {
      expect(first(driver).call).toBeNull();
      const result = { tool_call_id: toolCallId, success: true, result: item };
      driver.send({ type: "conversation.tool.completed", turn: 1, item, attempt: 1, result });
    }
    expect(first(driver).call).not.toBeNull();
    expect(first(driver).issues).toEqual({ toolFailures: 1 });
  });

  test("PLAN-2 A73 a repeated result is ignored", () => {
    const driver = new Driver();
    driver.send(user("go"));
    driver.send(
      reply(first(driver), [
        { name: "once", n: 1 },
        { name: "safe", n: 2 },
      ]),
    );
    const [operation] = openOperations(first(driver));
    const result = { tool_call_id: operation?.toolCallId ?? "", success: true, result: 1 };
    const signal: Signal = {
      type: "conversation.tool.completed",
      turn: 1,
      item: operation?.item ?? 0,
      attempt: 1,
      result,
    };
    driver.send(signal);
    const { state } = driver;
    driver.send(signal);
    expect(driver.state).toBe(state);
  });

  test("RECOVERY_EXHAUSTED after ten crashes, and never before", () => {
    const driver = new Driver();
    driver.send(user("go"));
    const crash = () => {
      driver.now += MAX_RESUME_PAUSE_MS;
      driver.send({ type: "conversation.cmd.recover" });
    };
    for (let crashes = 0; crashes < MAX_RECOVERIES; crashes++) crash();
    expect(first(driver).recoveries).toBe(MAX_RECOVERIES);
    expect(first(driver).call?.attempt, "a crash uses up no attempt").toBe(1);
    crash();
    expect(driver.finished[0]?.error?.code).toBe("RECOVERY_EXHAUSTED");
  });

  test("TOO_MANY_TURNS leaves no trace", () => {
    const driver = new Driver();
    for (let n = 0; n < MAX_ACTIVE_TURNS; n++) driver.send(user("go"));
    const { state } = driver;
    expect(() => driver.send(user("one more"))).toThrow(expect.objectContaining({ code: "TOO_MANY_TURNS" }));
    expect(driver.state).toBe(state);
  });
});

describe("models, their failures and their answers", () => {
  const active = (driver: Driver): Turn => {
    const [turn] = driver.state.active.values();
    if (turn === undefined) throw new Error("No turn is active.");
    return turn;
  };
  const address = (driver: Driver) => {
    const { n, call } = active(driver);
    return { turn: n, item: call?.item ?? 0, attempt: call?.attempt ?? 0 };
  };
  const fail = (
    driver: Driver,
    category: ErrorCategory,
    facts = FACTS,
    streamed = false,
    retryAfterMs?: number,
  ) =>
    driver.send({
      type: "conversation.llm.failed",
      ...address(driver),
      error: {
        category,
        message: "no",
        retriable: ["transient", "timeout"].includes(category),
        provider: "offline",
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      },
      facts,
      streamed,
    });
  const answer = (driver: Driver, reply: Partial<ModelReply>, facts = FACTS) =>
    driver.send({
      type: "conversation.llm.completed",
      ...address(driver),
      reply: { text: "", toolCalls: [], finishReason: "stop", ...reply },
      facts,
    });
  const toolCalls = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ id: `call_${index}`, name: "pure", arguments: { n: 1 } }));
  const viewOf = (driver: Driver) => {
    const { stem, n } = driver.finished.at(-1) ?? active(driver);
    return new ConversationQueries(driver.store).turn(driver.state, turnId({ stem, n }));
  };

  test("FALLBACK-1 FALLBACK-3 after three attempts the next model has three attempts, too; the end names both", () => {
    const driver = new Driver();
    driver.send(user("go"));
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(active(driver).call).toMatchObject({ attempt });
      fail(driver, "transient", FACTS, attempt === 3);
    }
    expect(driver.live.at(-2)).toMatchObject({ type: "error", data: { code: "MODEL_FAILED" } });
    expect(driver.live.at(-1)).toMatchObject({ type: "message.reset", data: { reason: "fallback" } });
    for (let attempt = 4; attempt <= 6; attempt++) {
      expect(active(driver).call).toMatchObject({ attempt, profile: 1, before: 3 });
      expect(driver.store.load(), "as a crash would leave it").toEqual(driver.state);
      driver.send({ type: "conversation.cmd.recover" });
      fail(driver, "timeout");
    }
    const { error, calls } = viewOf(driver);
    expect(error?.message).toBe(
      "The model call failed (timeout): no; models tried before: offline/offline-1 (transient)",
    );
    expect(calls.map(({ model, outcome }) => [model, outcome?.errorCategory, outcome?.attempts])).toEqual([
      ["offline-1", "transient", 3],
      ["second", "timeout", 3],
    ]);
  });

  test.each(["auth", "quota", "not_found", "unknown"] as const)(
    "FALLBACK-1 %s: another model is called at once",
    (category) => {
      const driver = new Driver();
      driver.send(user("go"));
      fail(driver, category);
      expect(active(driver).call).toMatchObject({ attempt: 2, profile: 1, before: 1 });
      fail(driver, category);
      expect(driver.finished[0]?.error?.code).toBe("MODEL_FAILED");
    },
  );

  test.each(["validation", "safety", "canceled"] as const)(
    "FALLBACK-1 %s: no other would help",
    (category) => {
      const driver = new Driver();
      driver.send(user("go"));
      fail(driver, category);
      expect(driver.finished[0]?.error?.message).toBe(`The model call failed (${category}): no`);
    },
  );

  test("FALLBACK-4 a wait that the provider requests: the next model is called at once", () => {
    const driver = new Driver();
    driver.send(user("go"));
    fail(driver, "transient", FACTS, false, 60_000);
    const { call } = active(driver);
    expect(call).toMatchObject({ attempt: 2, profile: 1, before: 1 });
    expect(call?.notBefore).toBeLessThan(60_000);
    expect(driver.store.load(), "as a crash would leave it").toEqual(driver.state);
    answer(driver, { text: "done" });
    expect(driver.finished[0]?.status).toBe("completed");
  });

  test("FALLBACK-4 a wait that is not longer than the backoff is no reason to fall back", () => {
    const driver = new Driver();
    driver.send(user("go"));
    fail(driver, "transient", FACTS, false, 500);
    expect(active(driver).call).toMatchObject({ attempt: 2 });
    expect(active(driver).call?.profile ?? 0).toBe(0);
  });

  test("FALLBACK-4 when the fallback fails too, the first model is called after its wait, for the remaining attempts", () => {
    const driver = new Driver();
    driver.send(user("go"));
    const began = active(driver).call?.notBefore ?? 0;
    fail(driver, "transient", FACTS, false, 60_000);
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(active(driver).call).toMatchObject({ profile: 1 });
      fail(driver, "timeout");
    }
    const back = active(driver).call;
    expect(back).toMatchObject({ attempt: 5, profile: 0, before: 3 });
    expect(back?.notBefore).toBeGreaterThanOrEqual(began + 60_000);
    expect(back?.deferred).toBeUndefined();
    expect(driver.store.load(), "as a crash would leave it").toEqual(driver.state);
    fail(driver, "transient");
    fail(driver, "transient");
    expect(driver.finished[0]?.error?.message).toMatch(
      /^The model call failed \(transient\): no; models tried before: \w+\/second \(timeout\)$/,
    );
    expect(viewOf(driver).calls.map(({ model, outcome }) => [model, outcome?.attempts])).toEqual([
      ["offline-1", 1],
      ["second", 3],
      ["offline-1", 2],
    ]);
  });

  test("FALLBACK-4 if every provider requests a wait, the shortest wait decides", () => {
    const driver = new Driver();
    driver.send(user("go"));
    fail(driver, "transient", FACTS, false, 60_000);
    fail(driver, "transient", FACTS, false, 5_000);
    expect(active(driver).call).toMatchObject({ attempt: 3, profile: 1, before: 1 });
    fail(driver, "auth");
    expect(active(driver).call).toMatchObject({ attempt: 4, profile: 0, before: 2 });
    fail(driver, "auth");
    expect(driver.finished[0]?.error?.code).toBe("MODEL_FAILED");
    const other = new Driver();
    other.send(user("go"));
    fail(other, "transient", FACTS, false, 5_000);
    fail(other, "transient", FACTS, false, 60_000);
    expect(active(other).call).toMatchObject({ attempt: 3, profile: 0, deferred: [{ profile: 1 }] });
  });

  test("FALLBACK-4 a deferred call starts after its wait, in its record, too", () => {
    const driver = new Driver();
    driver.send(user("go"));
    fail(driver, "transient", FACTS, false, 5_000);
    driver.now += 60_000;
    fail(driver, "auth");
    expect(active(driver).call).toMatchObject({ profile: 0, notBefore: driver.now });
    expect(viewOf(driver).calls.at(-1)?.startedAt).toBe(new Date(driver.now).toISOString());
  });

  test("FALLBACK-2 FALLBACK-4 a withdrawn reply is requested again from its model, and the deferred model may be called again", () => {
    const driver = new Driver();
    driver.send(user("go", [], OUTPUT));
    fail(driver, "transient", FACTS, false, 60_000);
    answer(driver, { text: "no JSON" });
    expect(active(driver).call).toMatchObject({
      attempt: 3,
      profile: 1,
      before: 2,
      deferred: [{ profile: 0 }],
    });
    fail(driver, "auth");
    expect(active(driver).call).toMatchObject({ attempt: 4, profile: 0 });
  });

  test("FALLBACK-2 the next cycle begins with the first model again", () => {
    const driver = new Driver();
    driver.send(user("go"));
    fail(driver, "auth");
    answer(driver, { toolCalls: toolCalls(1) });
    giveResult(driver);
    expect(active(driver).call).toMatchObject({ attempt: 1 });
    expect(active(driver).call?.profile).toBeUndefined();
  });

  const block = (id: string) => ({ type: "block" as const, value: { type: "server_tool_use", id } });
  const pause = (driver: Driver, text: string, given: Partial<ModelReply> = {}) =>
    answer(driver, { text, finishReason: "paused", ...given }, { ...FACTS, usage: { outputTokens: 5 } });

  test("PAUSE-1 a paused reply is continued: one message, one reply, and a record for each call", () => {
    const driver = new Driver(9);
    driver.send(user("go"));
    const { item } = address(driver);
    pause(driver, "One, ", { native: [{ type: "text", length: 5 }, block("s")], usage: { outputTokens: 5 } });
    expect(active(driver).call).toMatchObject({ item, attempt: 2, before: 1 });
    expect(driver.store.load(), "as a crash would leave it").toEqual(driver.state);
    const owner = { provider: "offline", modelId: "offline-1" };
    const parts = [{ type: "text", length: 5 }, block("s")];
    expect(moveMessages(active(driver))).toEqual([
      { role: "assistant", content: "One, ", native: { ...owner, parts } },
    ]);
    fail(driver, "transient");
    expect(active(driver).paused?.text, "no text was withdrawn").toBe("One, ");
    pause(driver, "two, ", { usage: { outputTokens: 5 } });
    expect(moveMessages(active(driver))).toMatchObject([{ content: "One, two, " }]);
    const usage = { outputTokens: 7 };
    answer(driver, { text: "three.", native: [block("t"), { type: "text", length: 6 }], usage });
    expect(driver.finished[0]).toMatchObject({ status: "completed", continuations: 2 });
    expect(driver.finished[0]?.replies).toMatchObject([
      {
        item,
        text: "One, two, three.",
        finishReason: "stop",
        usage: { outputTokens: 17 },
        native: {
          ...owner,
          parts: [...parts, { type: "text", length: 5 }, block("t"), { type: "text", length: 6 }],
        },
      },
    ]);
    expect(driver.finished[0]).not.toHaveProperty("paused");
    expect(driver.live.filter(({ type }) => type === "message.reset")).toEqual([]);
    expect(driver.live.filter(({ type }) => type === "message.completed")).toMatchObject([
      { data: { content: "One, two, three." } },
    ]);
    expect(viewOf(driver).calls.map(({ outcome }) => outcome?.attempts)).toEqual([1, 2, 1]);
  });

  test.each(["stop", "not_called"])("STOP-3 the shown text of a paused reply stays: %s", (how) => {
    const driver = new Driver(9);
    driver.send(user("go"));
    pause(driver, "One, two. ");
    driver.now = 99_000; // the driver shows a text at even seconds
    const { item, attempt } = address(driver);
    const error = { code: "UNAVAILABLE", message: "busy", retriable: true } as const;
    if (how === "stop")
      driver.send({ type: "conversation.cancel", turn: 1, caller: { type: "user", userId: "ada" } });
    else driver.send({ type: "conversation.llm.not_called", turn: 1, item, attempt, error });
    expect(driver.finished[0]?.replies).toMatchObject([{ text: "What was shown", stopped: true }]);
  });

  test("PAUSE-1 a continuation may call tools, and its data is the data of the whole", () => {
    const calling = new Driver(9);
    calling.send(user("go"));
    pause(calling, "I look. ");
    answer(calling, { text: "Now.", toolCalls: toolCalls(1), finishReason: "tool_calls" });
    expect(active(calling)).toMatchObject({
      replies: [{ text: "I look. Now." }],
      operations: [{ reply: 0 }],
    });
    expect(active(calling).paused).toBeUndefined();
    const data = new Driver(9);
    data.send(user("go", [], OUTPUT));
    pause(data, '{"n":');
    answer(data, { text: " 7}" });
    expect(viewOf(data)).toMatchObject({ status: "completed", output: { n: 7 } });
  });

  test.each([2, 3, 100])("PAUSE-2 pauses without end stop, with %i moves at most", (moves) => {
    const driver = new Driver(moves);
    driver.send(user("go"));
    for (let n = 0; driver.finished.length === 0; n++) {
      expect(n).toBeLessThan(MAX_CONTINUATIONS + 1);
      pause(driver, "More. ", { native: [{ type: "text", length: 6 }, block(`s${n}`)] });
    }
    const calls = Math.min(moves, MAX_CONTINUATIONS + 1);
    expect(driver.finished[0]?.replies).toMatchObject([
      { text: "More. ".repeat(calls), finishReason: "other" },
    ]);
    expect(driver.finished[0]?.replies[0]?.native).toBeUndefined();
    expect(viewOf(driver).calls).toHaveLength(calls);
  });

  test("PAUSE-2 a paused reply of more than a mebibyte is not sent again", () => {
    const driver = new Driver(9);
    driver.send(user("go"));
    const half = "x".repeat(600 * 1024);
    pause(driver, half);
    expect(driver.finished).toEqual([]);
    pause(driver, half);
    expect(driver.finished[0]?.replies).toMatchObject([{ text: half + half, finishReason: "other" }]);
  });

  test("PAUSE-2 a paused reply is not continued if its parts are too long to be stored", () => {
    const driver = new Driver(9);
    driver.send(user("go"));
    pause(driver, "One. ", { native: [{ type: "text", length: 5 }, block("x".repeat(MAX_NATIVE_LENGTH))] });
    expect(driver.finished[0]?.replies).toMatchObject([{ text: "One. ", finishReason: "other" }]);
  });

  test("PAUSE-2 continuations are moves: a turn that used them up answers without tools", () => {
    const driver = new Driver(3);
    driver.send(user("go"));
    pause(driver, "One. ");
    answer(driver, { toolCalls: toolCalls(1), finishReason: "tool_calls" });
    giveResult(driver);
    expect(active(driver).call?.final).toBe(false);
    pause(driver, "Two. ");
    expect(driver.finished[0]?.replies.at(-1)).toMatchObject({ text: "Two. ", finishReason: "other" });
  });

  test("PAUSE-3 a withdrawn message restarts, and another model starts from the beginning", () => {
    const withdrawn = (after: (driver: Driver) => void) => {
      const driver = new Driver(9);
      driver.send(user("go"));
      pause(driver, "One, ");
      after(driver);
      expect(driver.live.at(-1)).toMatchObject({ type: "message.reset" });
      expect(active(driver).paused).toBeUndefined();
      expect(moveMessages(active(driver))).toEqual([]);
      expect(driver.store.load()).toEqual(driver.state);
    };
    withdrawn((driver) => fail(driver, "transient", FACTS, true));
    withdrawn((driver) => fail(driver, "auth"));
    withdrawn((driver) => driver.send({ type: "conversation.cmd.recover" }));
    // In the pause before another attempt, which a crash interrupts too: the text was shown.
    withdrawn((driver) => {
      fail(driver, "transient");
      expect(active(driver).paused).toBeDefined();
      driver.now -= 900;
      driver.send({ type: "conversation.cmd.recover" });
    });
  });

  test("OUTPUT-2 a truncated answer and a refused answer fail immediately with the reason", () => {
    for (const [finishReason, message] of [
      ["length", "was cut off"],
      ["content_filter", "refused"],
    ] as const) {
      const driver = new Driver();
      driver.send(user("go", [], OUTPUT));
      answer(driver, { text: '{"n": ', finishReason });
      const { error } = viewOf(driver);
      expect(error).toMatchObject({ code: "OUTPUT_INVALID", retriable: true });
      expect(error?.message).toContain(message);
    }
  });

  test("OUTPUT-2 an empty answer is withdrawn too, and a repair has all of the model's attempts", () => {
    const driver = new Driver();
    driver.send(user("go", [], OUTPUT));
    answer(driver, { text: " " });
    expect(driver.live.at(-1)).toMatchObject({ type: "message.reset", data: { reason: "invalid_output" } });
    fail(driver, "transient");
    fail(driver, "transient");
    answer(driver, { text: '{"n": 7}' });
    expect(driver.live.find(({ type }) => type === "turn.completed")?.data).toMatchObject({
      output: { n: 7 },
    });
    expect(viewOf(driver)).toMatchObject({ output: { n: 7 } });
  });

  test("OUTPUT-1 OUTPUT-2 an answer with a number beyond the range of numbers does not fit", () => {
    const driver = new Driver();
    driver.send(user("go", [], OUTPUT));
    answer(driver, { text: '{"n": 1e400}' });
    expect(driver.live.at(-1)).toMatchObject({ type: "message.reset", data: { reason: "invalid_output" } });
    expect(moveMessages(active(driver)).at(-1)?.content).toContain("beyond the range of numbers");
  });

  test("CALLS-2 CALLS-3 a failed attempt with usage is charged, and rounding loses no amount", () => {
    const driver = new Driver();
    driver.send(user("go"));
    const used = (inputTokens: number, outputTokens: number) => ({
      ...FACTS,
      usage: { inputTokens, outputTokens },
    });
    fail(driver, "auth", used(1_000, 1_000));
    fail(driver, "transient", used(3, 0));
    answer(driver, { text: "done" }, { ...used(4, 1), requestId: "req_1", status: 200, firstTextAt: 1_600 });
    const view = viewOf(driver);
    expect(view.cost).toBe(0.0014);
    expect(view.usage).toEqual({ inputTokens: 1_007, outputTokens: 1_001 });
    expect(view.calls[1]).toMatchObject({
      cost: 0.0014,
      requestId: "req_1",
      usage: { inputTokens: 7, outputTokens: 1 },
    });
    expect(driver.state.usage).toEqual({
      calls: 2,
      inputTokens: 1_007,
      cachedInputTokens: 0,
      outputTokens: 1_001,
      nanoDollars: 1_400_000,
    });
  });

  test("CALLS-2 the usage of a reply that cannot be stored counts", () => {
    const driver = new Driver();
    driver.send(user("go"));
    const error = { code: "TOO_LARGE", message: "too large", retriable: false };
    const facts = { ...FACTS, usage: { inputTokens: 5, outputTokens: 6 } };
    driver.send({ type: "conversation.cmd.abandon", turn: 1, error, facts });
    expect(driver.state.usage).toMatchObject({ calls: 1, inputTokens: 5, outputTokens: 6 });
    expect(viewOf(driver).calls).toMatchObject([{ outcome: { ok: false, attempts: 1 } }]);
  });

  test("CALLS-1 a call in progress is shown, and ends with its turn", () => {
    const driver = new Driver();
    driver.send(user("go"));
    expect(viewOf(driver).calls).toMatchObject([{ provider: "offline", model: "offline-1" }]);
    fail(driver, "transient");
    const [open] = viewOf(driver).calls;
    expect(viewOf(driver).calls).toHaveLength(1);
    expect(open?.finishedAt).toBeUndefined();
    const error = { code: "INTERNAL_ERROR", message: "no", retriable: false };
    driver.send({ type: "conversation.cmd.abandon", turn: 1, error });
    expect(viewOf(driver).calls).toMatchObject([{ id: open?.id, outcome: { attempts: 1, ok: false } }]);
  });

  test("CALLROW-1 a record is restored unchanged from its row", () => {
    const call = fc
      .record(
        {
          item: fc.nat(),
          profile: fc.nat(3),
          startedAt: fc.nat(),
          attempts: fc.nat(9),
          finishedAt: fc.nat(),
          firstTextAt: fc.nat(),
          status: fc.nat(599),
          requestId: fc.string(),
          usage: fc.record(
            { inputTokens: fc.nat(), reasoningTokens: fc.nat(), totalTokens: fc.nat() },
            { requiredKeys: [] },
          ),
          rateLimit: fc.constant({ isRateLimited: true, rawHeaders: {} }),
          category: fc.constantFrom("none" as const, "quota" as const),
        },
        { requiredKeys: ["item", "profile", "startedAt", "attempts", "category"] },
      )
      .map((record) => ({ ...record }));
    fc.assert(
      fc.property(call, fc.nat(), (record, base) => {
        expect(unpackCall(JSON.parse(JSON.stringify(packCall(record, base))), base)).toEqual(record);
      }),
    );
  });

  test("NATIVE-2 a reply's native parts are kept with their model, unless the reply was changed or they are huge", () => {
    const native = [{ type: "block" as const, value: { thought: "deep" } }];
    const keptOf = (reply: Partial<ModelReply>, falls = false) => {
      const driver = new Driver(1);
      driver.send(user("go"));
      if (falls) fail(driver, "auth");
      answer(driver, { native, ...reply });
      const turn = driver.finished[0] ?? active(driver);
      return driver.store.turn(turn.n)?.replies[0]?.native;
    };
    expect(keptOf({ text: "Hi" })).toEqual({ provider: "offline", modelId: "offline-1", parts: native });
    expect(keptOf({ text: "Hi" }, true)).toEqual({ provider: "openai", modelId: "second", parts: native });
    expect(keptOf({ toolCalls: toolCalls(1) })).toMatchObject({ parts: native });
    expect(keptOf({ text: "" }), "an empty reply").toMatchObject({ parts: native });
    expect(keptOf({ toolCalls: toolCalls(MAX_CALLS_PER_REPLY + 1) }), "calls cut off").toBeUndefined();
    const huge = [{ type: "block" as const, value: { text: "x".repeat(MAX_NATIVE_LENGTH) } }];
    expect(keptOf({ text: "Hi", native: huge })).toBeUndefined();
  });

  test("NATIVE-1 the next turn's model gets the native parts of the last reply", () => {
    const driver = new Driver();
    driver.send(user("go"));
    answer(driver, { text: "Hi", native: [{ type: "text", length: 2, extra: { signature: "s" } }] });
    driver.send(user("and now?"));
    const history = new SessionWindows(driver.store, () => driver.state.record).messagesFor(active(driver));
    const parts = [{ type: "text", length: 2, extra: { signature: "s" } }];
    expect(history.at(-1)?.native).toEqual({ provider: "offline", modelId: "offline-1", parts });
    expect(baseContext(driver.state.record, history, active(driver)).cache).toEqual({
      key: "conv_test",
      stableMessages: history.length,
    });
  });

  test("CONTEXT-2 withdrawn answers stay at their place in every later request", () => {
    const driver = new Driver(5);
    driver.send(user("go", [], OUTPUT));
    answer(driver, { text: "one" });
    answer(driver, { toolCalls: toolCalls(1), text: "hm" });
    const before = moveMessages(active(driver)).slice(0, 3);
    giveResult(driver);
    answer(driver, { text: "two" });
    const messages = moveMessages(active(driver));
    expect(messages.slice(0, 3)).toEqual(before);
    expect(messages.map(({ role, content }) => (role === "system" ? role : content))).toEqual([
      "one",
      "system",
      "hm",
      "1",
      "two",
      "system",
    ]);
    expect(messages.at(-1)?.content).toContain("the answer is not JSON");
  });
});

describe("OUTPUT-4 a schema that cannot be used is refused with its place", () => {
  const deep = (levels: number): JsonObject => (levels === 0 ? {} : { not: deep(levels - 1) });
  /** Each level is applied twice by the level above. */
  const fan = Object.fromEntries(
    Array.from({ length: 60 }, (_, n) => {
      const next = { $ref: `#/$defs/${n + 1}` };
      return [String(n), n === 59 ? {} : { allOf: [next, next] }];
    }),
  );
  test.each<[path: string, schema: JsonObject]>([
    ["/type", {}],
    ["/type", { type: "string" }],
    ["/required", { type: "object", required: "n" }],
    ["/properties/a~1b/type", { type: "object", properties: { "a/b": { type: "text" } } }],
    ["/properties/a/pattern", { type: "object", properties: { a: { pattern: "(" } } }],
    ["/patternProperties/[", { type: "object", patternProperties: { "[": {} } }],
    ["/properties/a/items", { type: "object", properties: { a: { items: [{}] } } }],
    ["/properties/a/$ref", { type: "object", properties: { a: { $ref: "#/$defs/b" } } }],
    ["/properties/a/$ref", { type: "object", properties: { a: { $ref: "https://example.com/s" } } }],
    ["/allOf/0", { type: "object", allOf: [7] }],
    ["/properties/a/enum", { type: "object", properties: { a: { enum: [] } } }],
    ["", { type: "object", description: "x".repeat(64 * 1024) }],
    ["", { type: "object", ...deep(70) }],
    ["", { type: "object", allOf: [{ $ref: "#" }] }],
    ["", { type: "object", $defs: fan, $ref: "#/$defs/0" }],
  ])("%s", (path, schema) => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect(() => checkTurnSchemas({ output: { name: "x", schema } })).toThrow(
      expect.objectContaining({
        code: "INVALID_INPUT",
        message: expect.stringContaining(`/output/schema${path}: `),
        options: { errors: [{ path: `/output/schema${path}`, message: expect.any(String) }] },
      }),
    );
    quiet.mockRestore();
  });

  test("and common schemas are accepted", () => {
    const schema = z.toJSONSchema(
      z.object({
        pattern: z.string().regex(/^[a-z]+$/),
        required: z.array(z.union([z.int().min(0), z.null()])),
        const: z.literal("x"),
        more: z.record(z.string(), z.boolean()).optional(),
      }),
    );
    checkTurnSchemas({ output: { name: "x", schema: JSON.parse(JSON.stringify(schema)) } });
    checkTurnSchemas({
      output: {
        name: "tree",
        schema: { type: "object", properties: { kids: { type: "array", items: { $ref: "#" } } } },
      },
    });
  });
});

describe("MEDIA-3 attachments that are not given", () => {
  const attached = { type: "image" as const, url: `attachment:att_${"0".repeat(26)}` };
  const call = (media: ConversationMedia, clock: Clock) => {
    const driver = new Driver();
    driver.send({
      type: "conversation.user.message",
      caller: { type: "user", userId: "ada" },
      data: { content: [{ type: "text", text: "Look" }, attached] },
    });
    const [turn] = driver.state.active.values();
    if (turn?.call == null) throw new Error("A turn calls its model.");
    const input = {
      record: record(),
      turn,
      call: turn.call,
      history: () => [],
      shownTurns: () => [],
      onBegin: () => undefined,
      onText: () => undefined,
    };
    const gateway = { stream: () => expect.unreachable("Nothing is asked without what the user sent.") };
    return performModelCall(
      { clock, ids: seededIds(1, clock), gateway, adapters: adapterFor, media },
      input,
      new AbortController().signal,
    );
  };
  const clock: Clock = { now: () => 9_000, sleep: async () => undefined, timer: () => () => undefined };

  test("temporarily are requested again, like a model", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const fails = async () => Promise.reject(new Error("The bucket is down."));
    expect(await call({ head: fails, read: fails }, clock)).toMatchObject({
      type: "conversation.llm.failed",
      error: { category: "transient", retriable: true },
    });
    quiet.mockRestore();
  });

  test("at all end the attempt at its time limit", async () => {
    const never = () => new Promise<never>(() => undefined);
    const timers: (() => void)[] = [];
    const timer = (_: number, ring: () => void) => {
      timers.push(ring);
      return () => undefined;
    };
    const timed = { ...clock, timer };
    const outcome = call({ head: never, read: never }, timed);
    await expect.poll(() => timers).toHaveLength(1);
    timers[0]?.();
    expect(await outcome).toMatchObject({ type: "conversation.llm.failed", error: { category: "timeout" } });
  });
});

describe("ID-1 ids", () => {
  test("resolve to their parts", () => {
    const stem = fc.stringMatching(/^[0-9A-HJKMNP-TV-Z]{19}$/);
    const turn = fc.integer({ min: 1, max: MAX_TURN_NUMBER });
    const item = fc.integer({ min: 0, max: MAX_ITEM_INDEX });
    fc.assert(
      fc.property(stem, turn, item, (s, n, i) => {
        expect(parseItemId(messageId({ stem: s, n }, i))).toEqual({ prefix: "msg", stem: s, n, item: i });
        expect(parseItemId(operationId({ stem: s, n }, i))).toEqual({ prefix: "op", stem: s, n, item: i });
        expect(parseItemId(turnId({ stem: s, n }))).toEqual({ prefix: "turn", stem: s, n, item: 0 });
      }),
    );
  });

  test("ID-2 turns of one millisecond have different stems, whichever conversation they are in", () => {
    const { ulid } = seededIds(1, { now: () => 1_000 });
    const ids = Array.from({ length: 1_000 }, () => turnId({ stem: stemOf(ulid()), n: 1 }));
    expect(new Set(ids).size).toBe(1_000);
    for (const id of ids) expect(parseItemId(id)).toMatchObject({ n: 1, item: 0 });
  });

  test("there is room for every item of the longest turn", () => {
    const replies = MAX_MOVES + 1;
    expect(1 + replies * (1 + MAX_CALLS_PER_REPLY)).toBeLessThanOrEqual(MAX_ITEM_INDEX);
  });

  test("other text is no id", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(parseItemId(text)).toBeNull();
      }),
    );
    for (const text of [
      "",
      "turn_",
      "turn_0",
      "msg_01ARZ3NDEKTSV4RRFFQ69G5FAVX",
      "conv_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ]) {
      expect(parseItemId(text)).toBeNull();
    }
  });
});

test("an entry of a newer release has no frame", () => {
  const { state } = new Driver();
  const entry = { type: "conversation.renamed" as never, data: {} };
  expect(framesOf({ seq: 1, at: 0, entries: [entry] }, 0, state.record, () => undefined)).toEqual([]);
});
