/** The contract of a conversation's turns in storage, on any database: random turns through random commits and rollbacks. */

import fc from "fast-check";
import { expect, it } from "vitest";
import type { AgentDecision } from "../../src/agents/conversation/core/decisions.ts";
import type { Operation } from "../../src/agents/conversation/core/operation.ts";
import { reduce } from "../../src/agents/conversation/core/reducer.ts";
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import { beginTransition, type Transition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { turnEvents } from "../../src/agents/conversation/core/turn-events.ts";
import { openOperations } from "../../src/agents/conversation/core/turn-operations.ts";
import { ConversationDatabase } from "../../src/agents/conversation/store/conversation-database.ts";
import type { RequestTaint } from "../../src/model/taint.ts";
import type { SqlDatabase, SqlValue } from "../../src/ports/sql-database.ts";
import { CostCounter, countingDatabase } from "./counting.ts";
import type { Ports, WithPorts } from "./port-contract.ts";
import { recordOf } from "./records.ts";

const RECORD = recordOf();
const OPERATION = {
  name: "look_up",
  tool: { library: "lib", id: "look-up", version: 1 },
  effect: "once",
  target: "code",
  mode: "sync",
  status: "pending",
  attempt: 1,
  timeoutMs: 1_000,
} satisfies Partial<Operation>;

const EVERYTHING = { limit: 100_000, maxBytes: Number.MAX_SAFE_INTEGER };
const UNDONE = "The outer transaction has failed.";

/** A step, chosen without the state. Its turn applies it if possible. */
interface Step {
  turn: number;
  /** The turn's end, if the turn can end. */
  end: "" | "answer" | "fail";
  /** An interruption: a wake of the turn, or an answer that is withdrawn. */
  between: "" | "recovery" | "repair";
  /** The calls of a reply, by the size of their inputs. */
  calls: number[];
  /** The results of one commit. */
  results: { size: number; form: "text" | "object" | "error" | "none" }[];
  sizes: Record<"text" | "reasoning" | "native" | "input" | "tools", number>;
  /** The user's message has parts. */
  parts: boolean;
  /** The commit is rolled back first. */
  undone: boolean;
  /** The state is read again after the commit. */
  reload: boolean;
  /** The commit and the next commit run in one outer transaction. */
  staged: boolean;
}

/** Sizes of content around the limits of members (512 bytes, 4 KiB) and rows (8 KiB), in characters. */
const size: fc.Arbitrary<number> = fc.constantFrom(3, 400, 600, 3_900, 4_200);
const step: fc.Arbitrary<Step> = fc.record({
  turn: fc.nat(3),
  end: fc.constantFrom("", "", "", "", "", "", "answer", "answer", "fail"),
  between: fc.constantFrom("", "", "", "", "", "", "recovery", "repair"),
  calls: fc.array(size, { minLength: 1, maxLength: 9 }),
  results: fc.array(fc.record({ size, form: fc.constantFrom("text", "object", "error", "none") }), {
    minLength: 1,
    maxLength: 9,
  }),
  sizes: fc.record({ text: size, reasoning: size, native: size, input: size, tools: size }),
  parts: fc.boolean(),
  undone: fc.boolean(),
  reload: fc.boolean(),
  staged: fc.boolean(),
});

interface ObservedPorts extends Ports {
  /** Keys of the texts that were read. */
  requested: Set<string>;
}

/** A small step. */
const STEP: Step = {
  turn: 0,
  end: "",
  between: "",
  calls: [3],
  results: [{ size: 3, form: "text" }],
  sizes: { text: 3, reasoning: 3, native: 3, input: 3, tools: 3 },
  parts: false,
  undone: false,
  reload: false,
  staged: false,
};

/** A conversation with turns that decisions drive. */
class Turns {
  readonly store: ConversationDatabase;
  readonly finished = new Map<number, Turn>();
  state: ConversationState;
  #now = 1_000;
  #said = 0;

  readonly ports: ObservedPorts;

  constructor(inner: Ports) {
    const ports = observedPorts(inner);
    this.ports = ports;
    this.store = new ConversationDatabase(ports.db, ports.kv);
    this.state = this.store.create(RECORD);
  }

  /** Runs a script: each commit alone, or in one transaction with the next commit. */
  run(script: readonly Step[]): void {
    for (let index = 0; index < script.length; index++) {
      const [first, second] = [script[index], script[index + 1]];
      if (first === undefined) return;
      const steps = first.staged && second !== undefined ? [first, second] : [first];
      if (steps.length === 2) index += 1;
      this.#commit(steps);
    }
  }

  /** Commits one step after the other in one transaction, after a first attempt that is rolled back. */
  #commit(steps: readonly Step[]): void {
    const stage = () => {
      let { state } = this;
      const touched: Turn[] = [];
      for (const one of steps) {
        const transition = this.#transition(state, one);
        if (transition.entries.length === 0) continue;
        ({ state } = this.store.commit(transition, this.#now));
        touched.push(...transition.touched.values());
      }
      return { state, touched };
    };
    const undone = () => {
      stage();
      throw new Error(UNDONE);
    };
    if (steps.some((one) => one.undone)) expect(() => this.ports.db.transaction(undone)).toThrow(UNDONE);
    const { state, touched } = this.ports.db.transaction(stage);
    this.state = state;
    if (steps.some(({ reload }) => reload)) {
      this.reload();
      expect(this.state, "COMMIT-3").toEqual(state);
    }
    for (const turn of touched) if (turn.status !== "active") this.finished.set(turn.n, turn);
  }

  /** Reads the state again. */
  reload(): void {
    this.state = this.store.load() ?? this.state;
  }

  #transition(state: ConversationState, one: Step): Transition {
    this.#now += 1_000;
    return reduce(beginTransition(state), this.#decisions(state, one), this.#now);
  }

  #decisions(state: ConversationState, one: Step): AgentDecision[] {
    const active = [...state.active.values()];
    const turn = active[one.turn % Math.max(1, active.length)];
    if (turn === undefined || (active.length < 3 && one.turn === 3)) return this.#start(state, one);
    const { n } = turn;
    const waiting = openOperations(turn);
    const failure: AgentDecision[] = [{ type: "FAIL_TURN", turn: n, error: this.#error(one.sizes.text) }];
    if (one.end === "fail") return failure;
    if (one.between === "recovery") return [{ type: "RESUME_TURN", turn: n, notBefore: 0, reset: false }];
    if (waiting.length > 0) return this.#results(turn, waiting, one);
    if (one.between === "repair") {
      return [
        { type: "REPAIR_OUTPUT", turn: n, text: this.#text(one.sizes.text), problem: "it does not fit" },
      ];
    }
    const { text, reasoning, native } = one.sizes;
    const reply = {
      text: this.#text(text),
      reasoning: this.#text(reasoning),
      finishReason: "stop" as const,
      toolCalls: [],
      native: [{ type: "block" as const, value: { data: this.#text(native) } }],
    };
    const taints: RequestTaint = one.calls.length > 0 ? { taint: ["tool"], echoes: ["memory"] } : {};
    const measured = { startedAt: this.#now, finishedAt: this.#now + 5, requestId: this.#text(9) };
    const facts = { ...measured, ...taints };
    const attempt: AgentDecision = { type: "RECORD_ATTEMPT", turn: n, facts, category: "none", isLast: true };
    if (one.end === "answer") {
      return [attempt, { type: "APPEND_MESSAGE", turn: n, reply }, { type: "COMPLETE_TURN", turn: n }];
    }
    const calls = one.calls.map((length, index): AgentDecision => {
      const toolCallId = `call_${turn.items}_${index}`;
      const operation = { ...OPERATION, toolCallId, input: { query: this.#text(length) } };
      return { type: "DISPATCH_TASK", turn: n, operation };
    });
    return [attempt, { type: "RECORD_MOVE", turn: n, reply }, ...calls];
  }

  #start({ turns }: ConversationState, { sizes, parts }: Step): AgentDecision[] {
    const turn = turns + 1;
    const text = this.#text(sizes.input);
    const tool = { name: "ask", description: this.#text(sizes.tools), inputSchema: { type: "object" } };
    return [
      {
        type: "START_TURN",
        turn,
        stem: "01ARZ3NDEKTSV4RRFFQ",
        agentId: "tester",
        caller: { type: "user", userId: "ada" },
        input: parts ? [{ type: "text", text }] : text,
        tools: [tool],
      },
      { type: "CALL_LLM", turn, final: false },
    ];
  }

  #results({ n }: Turn, waiting: readonly Operation[], { results }: Step): AgentDecision[] {
    const given = waiting.slice(-results.length).map(({ item, toolCallId: id }, index): AgentDecision => {
      const { size: length, form } = results[index] ?? { size: 3, form: "none" };
      const value = form === "object" ? { data: [this.#text(length), "\ud800"] } : this.#text(length);
      const outcome =
        form === "error"
          ? { success: false, error: { ...this.#error(length), code: "EXECUTION_FAILED" as const } }
          : { success: true, result: form === "none" ? null : value };
      return { type: "RESUME_FROM_TOOL", turn: n, item, result: { tool_call_id: id, ...outcome } };
    });
    const isLast = given.length === waiting.length;
    return [...given, ...(isLast ? [{ type: "CALL_LLM" as const, turn: n, final: false }] : [])];
  }

  #error(length: number) {
    return { code: "INTERNAL_ERROR" as const, message: this.#text(length), retriable: false };
  }

  /** Returns a unique text. */
  #text(length: number): string {
    this.#said += 1;
    return `${this.#said} é👋"`.padEnd(length, "é👋 ").slice(0, length).toWellFormed();
  }
}

/** Reads all that a conversation has stored. */
function readAll({ store, state }: Turns): unknown {
  const numbers = Array.from({ length: state.turns }, (_, index) => index + 1);
  return [numbers.map((n) => store.turn(n)), store.events.load("tester", EVERYTHING)];
}

/** Checks that the stored texts are exactly the texts that a complete read needs. */
function expectEachTextIsNeeded(db: SqlDatabase, turns: Turns): void {
  const { requested } = turns.ports;
  requested.clear();
  readAll(turns);
  expect(storedKeys(db)).toEqual([...requested].sort());
}

/** Ports that record the keys of all texts that are read. */
function observedPorts({ db, kv }: Ports): ObservedPorts {
  const requested = new Set<string>();
  const observe = (statement: string, [value]: readonly SqlValue[]) => {
    if (!statement.startsWith("SELECT") || !/FROM cf_agents_long_text\s+WHERE key/.test(statement)) return;
    const text = String(value);
    for (const key of text.startsWith("[") ? JSON.parse(text) : [text]) requested.add(key);
  };
  const observed: SqlDatabase = {
    run: (statement, ...values) => db.run(statement, ...values),
    all: (statement, ...values) => db.all(statement, ...values),
    each: (statement, ...values) => {
      observe(statement, values);
      return db.each(statement, ...values);
    },
    transaction: (body) => db.transaction(body),
  };
  return { db: observed, kv, requested };
}

function storedKeys(db: SqlDatabase): string[] {
  const isThere = db.all("SELECT 1 FROM sqlite_master WHERE name = 'cf_agents_long_text'").length > 0;
  if (!isThere) return [];
  const rows = db.all<{ key: string }>("SELECT DISTINCT key FROM cf_agents_long_text");
  return rows.map(({ key }) => key).sort();
}

/** Registers the tests. Properties run `runs` times. */
export function turnStoreContract(withPorts: WithPorts, runs: number): void {
  const script = fc.array(step, { minLength: 15, maxLength: 40, size: "max" });
  const property = (body: (turns: Turns, ports: Ports, pick: number) => void) =>
    fc.assert(
      fc.asyncProperty(script, fc.nat(), (steps, pick) =>
        withPorts((ports) => {
          const turns = new Turns(ports);
          turns.run(steps);
          body(turns, ports, pick);
        }),
      ),
      { numRuns: runs },
    );

  it("TURNROW-1 TURNROW-3 COMMIT-4 EVENTS-5 any turn is restored with its events after any commits and rollbacks; no commit, rollback, end of a turn or deletion of events leaves an unused text", async () => {
    await property((turns, { db }, pick) => {
      const { store, state, finished } = turns;
      for (const [n, turn] of [...state.active, ...finished]) expect(store.turn(n)).toEqual(turn);
      const completed = [...finished.values()].flatMap(({ events, ...turn }) =>
        events === undefined ? [] : [{ ...turn, events }],
      );
      completed.sort((one, other) => one.events.from - other.events.from);
      const events = completed.flatMap(turnEvents);
      expect(store.events.load("tester", EVERYTHING)).toEqual(events);
      expect(store.events.loadWindow("tester", EVERYTHING)).toEqual({ events, isCutOff: false });
      expectEachTextIsNeeded(db, turns);

      const [gone = [], kept] = [0, 1].map((side) =>
        events.filter((_, index) => (index + pick) % 2 === side),
      );
      store.events.delete(
        "tester",
        gone.map(({ id }) => id),
      );
      expect(store.events.load("tester", EVERYTHING)).toEqual(kept);
      expectEachTextIsNeeded(db, turns);
      store.events.deleteSession("tester");
      expectEachTextIsNeeded(db, turns);
    });
  });

  it("TURNROW-2 LONG-3 a result of megabytes is stored in pieces, once, and its event refers to it", async () => {
    await withPorts(({ db, kv }) => {
      const turns = new Turns({ db, kv });
      const base = {
        ...STEP,
        results: [{ size: 4_000_000, form: "text" as const }],
        undone: true,
        reload: true,
      };
      turns.run([base, base, base, { ...base, between: "recovery" }, { ...base, end: "answer" }]);
      const [turn] = turns.finished.values();
      expect(turn?.operations[0]?.result?.result).toHaveLength(4_000_000);
      expect(turns.store.turn(1)).toEqual(turn);
      expect(storedKeys(db)).toHaveLength(1);
      expectEachTextIsNeeded(db, turns);
    });
  });

  it("QUERY-1 EVENTS-4 a list reads no texts; a turn or a window of events takes one statement for all of them", async () => {
    await withPorts((ports) => {
      const counter = new CostCounter();
      const counted = countingDatabase(ports.db, ports.kv, counter);
      const turns = new Turns(counted);
      const sizes = { text: 20_000, reasoning: 20_000, native: 20_000, input: 20_000, tools: 20_000 };
      const large: Step = { ...STEP, calls: [20_000, 3], results: [{ size: 20_000, form: "text" }], sizes };
      const rounds = [large, large, large, large, large, large];
      turns.run([large, ...rounds, { ...large, end: "answer" }, large, ...rounds, { ...large, end: "fail" }]);
      const statementsOf = (work: () => unknown) => {
        counter.reset();
        work();
        return counter.cost.statements;
      };
      const { store } = turns;
      expect(statementsOf(() => store.turns.list(0, "asc", 10).turns)).toBe(1);
      expect(statementsOf(() => store.turns.facts(2))).toBe(1);
      // The row, the texts of the turn itself, its events, and their contents.
      expect(statementsOf(() => store.turn(1))).toBe(4);
      expect(statementsOf(() => store.turn(2))).toBe(4);
      expect(statementsOf(() => store.events.loadWindow("tester", EVERYTHING))).toBe(2);
    });
  });
}
