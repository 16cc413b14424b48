/**
 * Random lives of conversations with tasks and hooks that ask models, under a budget or a lease: with failures,
 * retries, stops, crashes and expiries. In every life, budgets and leases hold, each request is charged, and all work
 * ends.
 */
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { defineAction, defineTask } from "../../src/library/define/define-task.ts";
import { type Action, step } from "../../src/library/tasks/step.ts";
import type { Amounts } from "../../src/model/spending.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { sleepWith } from "../../src/ports/deadline.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import { defined } from "../../src/shared/defined.ts";
import { Random } from "../../src/testing/random.ts";
import { type OpenRequest, SteeredConversation } from "../support/steered-model.ts";

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue(undefined));
beforeEach(() => void vi.spyOn(console, "warn").mockReturnValue(undefined));
afterEach(() => void vi.restoreAllMocks());

/** Seeds of each kind in every run. `npm test -- task-budget-seeds` with another `FIRST_SEED` runs others. */
const SEEDS = 25;
const FIRST = Number(process.env.FIRST_SEED ?? 1);
const STEPS = 22;
/** Tokens of a call, at most. */
const CALL_TOKENS = 400;
/** Longer than any deadline here. */
const LONG_MS = 700_000;

const asks = (template: string, more: object = {}) =>
  ({ kind: "llm", template, maxInputTokens: 150, maxOutputTokens: 50, ...more }) as Action;

function tool(name: string, effect: ToolEffect, attempts: number) {
  const mark = defineAction({ id: `mark_${name}`, input: z.looseObject({}), effect, execute: () => null });
  const isRepeated = attempts > 1;
  const task = defineTask({
    id: `task_${name}`,
    input: z.object({ topic: z.string() }),
    ...(isRepeated && { retry: { maxAttempts: attempts, initialDelayMs: 1 } }),
    steps: [
      step("mark", { action: mark, outputMapping: { "state.done": "true" } }),
      step("ask", {
        action: asks("{{ topic }}", { outputSchema: { type: "object" } }),
        outputMapping: { "output.text": "result.response" },
        ...(isRepeated && { onFailure: "retry" }),
      }),
    ],
  });
  return { task, tool: defineTool({ name, description: "Asks.", target: { task } }) };
}

const hook = (id: string, output: Record<string, string>) =>
  defineTask({
    id,
    input: z.looseObject({ user_message: z.string() }),
    steps: [
      step("ask", {
        action: asks("{{ user_message }}"),
        outputMapping: { "state.facts": "result.response" },
      }),
      step("write", {
        action: { kind: "update_context", values: { role: "'user'", content: "state.facts" } },
        outputMapping: output,
      }),
    ],
  });

const TOOLS = ["once", "idempotent", "again"] as const;
const tools = [tool("once", "once", 1), tool("idempotent", "idempotent", 1), tool("again", "idempotent", 3)];
const library = defineLibrary("lib", {
  tasks: [
    hook("request", {
      "output.model": "'m'",
      "output.stream": "true",
      "output.max_tokens": "50",
      "output.messages": "[result]",
    }),
    hook("memories", { "output.operations": "[{'op': 'write', 'content': state.facts}]" }),
    ...tools.map(({ task }) => task),
  ],
  tools: tools.map((one) => one.tool),
});

/** Lets pauses end at once, and counts them as time. */
class HastyClock implements Clock {
  #skew = 0;

  now = () => Date.now() + this.#skew;
  sleep = (milliseconds: number, signal?: AbortSignal) =>
    sleepWith(this.timer, milliseconds, signal ?? new AbortController().signal);

  /** A deadline keeps its length, and a pause takes no time. */
  timer = (milliseconds: number, callback: () => void) => {
    const isPause = milliseconds < 9_000;
    const timer = setTimeout(
      () => {
        if (isPause) this.pass(milliseconds);
        callback();
      },
      isPause ? 0 : milliseconds,
    );
    return () => clearTimeout(timer);
  };

  pass(milliseconds: number): void {
    this.#skew += milliseconds;
  }
}

/** Events over all seeds, by name. */
type Fired = Map<string, number>;

class Life {
  readonly violations: string[] = [];
  #open: OpenRequest[] = [];
  #turns: string[] = [];
  #sent = 0;
  /** A stop, a crash or an expiry charged an estimate. */
  #isEstimated = false;

  private constructor(
    private room: SteeredConversation,
    private readonly random: Random,
    private readonly fired: Fired,
    private readonly limits: { budget?: Budget; cap?: Amounts },
    private readonly clock: HastyClock,
  ) {}

  static async begin(seed: number, isLeased: boolean, fired: Fired): Promise<Life> {
    const random = new Random(seed);
    const calls = random.int(2, 11);
    const budget =
      !isLeased && random.chance(0.8) ? { modelCalls: calls, tokens: 500 + calls * 300 } : undefined;
    const cap = { tokens: calls * CALL_TOKENS, nanoDollars: 0, toolCalls: 0, modelCalls: calls };
    const memory = {
      ...(random.chance(0.3) && { contextAssembly: { task: "lib/request" } }),
      ...(random.chance(0.4) && { memoryExtraction: { task: "lib/memories" } }),
    };
    const clock = new HastyClock();
    const room = await SteeredConversation.create(library, defined({ budget }), memory, {
      clock,
      profile: { parameters: { max_tokens: 50 } },
      ...(isLeased && { leased: true as const }),
    });
    return new Life(room, random, fired, isLeased ? { cap } : defined({ budget }), clock);
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      await this.#settle();
      await this.#act();
      this.#check();
    }
    for (let step = 0; step < 60 && !this.#isOver; step++) {
      await this.#settle();
      const request = this.#open.shift();
      if (request !== undefined) request.answer("{}");
      else this.#expire(step > 15);
      this.#check();
    }
    this.#checkEnd();
  }

  get #isOver(): boolean {
    const { active, extraction } = this.room.runtime.state;
    const isRunning = Object.keys(extraction?.running ?? {}).length > 0;
    return this.#open.length === 0 && active.size === 0 && !isRunning;
  }

  #note(name: string): void {
    this.fired.set(name, (this.fired.get(name) ?? 0) + 1);
  }

  async #act(): Promise<void> {
    const { random } = this;
    const request = this.#open.length > 0 && random.chance(0.6) ? this.#taken() : undefined;
    if (request !== undefined) return this.#reply(request);
    const draw = random.fraction();
    if (draw < 0.5 && this.#turns.length < 3) {
      this.#note("message");
      this.#turns.push(await this.room.say("Hello"));
    } else if (draw < 0.65) {
      this.#note("crash");
      this.#isEstimated = true;
      this.#open = [];
      this.room = await this.room.restarted();
    } else if (draw < 0.75 && this.#turns.length > 0) {
      this.#note("stop");
      this.#isEstimated = true;
      await this.room.stop(random.pick(this.#turns)).catch(() => undefined);
    } else if (draw < 0.78) {
      this.#note("stop of all");
      this.#isEstimated = true;
      await this.room.stopAll().catch(() => undefined);
    } else if (draw < 0.85) this.#expire(true);
  }

  #taken(): OpenRequest | undefined {
    return this.#open.splice(this.random.int(0, this.#open.length - 1), 1)[0];
  }

  #reply(request: OpenRequest): void {
    const { random } = this;
    const draw = random.fraction();
    if (request.body.tools !== undefined && draw < 0.5) {
      this.#note("calls");
      const calls = random.list(random.int(1, 3), (): [string, { topic: string }] => [
        random.pick(TOOLS),
        { topic: "a" },
      ]);
      request.call(...calls);
    } else if (draw < 0.6) {
      this.#note("failure");
      request.fail("No.");
    } else if (draw < 0.75) {
      this.#note("no data");
      request.answer("plain");
    } else request.answer("{}");
  }

  #expire(isLate: boolean): void {
    if (isLate) {
      this.#note("expiry");
      this.#isEstimated = true;
      this.clock.pass(LONG_MS);
    }
    this.room.runtime.reconcile();
  }

  /** Lets all independent work continue, and answers the questions for the lease. */
  async #settle(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      for (let turn = 0; turn < 6; turn++) await setImmediate();
      await new Promise((resolve) => setTimeout(resolve, 0));
      await this.#lease();
    }
    while (this.room.untaken > 0) {
      this.#open.push(await this.room.request());
      this.#sent += 1;
    }
    this.#open = this.#open.filter((request) => !request.isAborted());
  }

  async #lease(): Promise<void> {
    const { cap } = this.limits;
    for (let question = 0; question < 5; question++) {
      const lease = this.room.runtime.state.leases?.tester;
      if (cap === undefined || lease?.asked === undefined) return;
      // The agent takes its time.
      if (question === 0 && this.random.chance(0.15)) return;
      const { needs, wants } = lease.asked;
      const fits = needs.modelCalls <= cap.modelCalls && needs.tokens <= cap.tokens;
      this.#note(fits ? "granted" : "refused");
      const granted = {
        ...wants,
        modelCalls: Math.min(wants.modelCalls, cap.modelCalls),
        tokens: Math.min(wants.tokens, cap.tokens),
      };
      const excess = {
        scope: "agent",
        limit: "modelCalls",
        allowed: cap.modelCalls,
        used: cap.modelCalls,
        needed: 1,
      } as const;
      const unit = this.room.runtime.begin();
      const answer = fits ? { granted } : { granted: lease.granted, excess };
      unit.stage([{ type: "conversation.budget.leased", agentId: "tester", seq: lease.seq, answer }]);
      await unit.release();
    }
  }

  #check(): void {
    const { spent, leases } = this.room.runtime.state;
    const { budget, cap } = this.limits;
    const lease = leases?.tester;
    if (budget?.modelCalls !== undefined && spent.modelCalls > budget.modelCalls)
      this.violations.push(`${spent.modelCalls} calls of ${budget.modelCalls}`);
    if (budget?.tokens !== undefined && spent.tokens > budget.tokens)
      this.violations.push(`${spent.tokens} tokens of ${budget.tokens}`);
    if (lease === undefined || cap === undefined) return;
    if (lease.spent.modelCalls > cap.modelCalls || lease.spent.tokens > cap.tokens)
      this.violations.push(`the lease: ${JSON.stringify(lease.spent)} of ${JSON.stringify(cap)}`);
  }

  #checkEnd(): void {
    const { runtime, queries } = this.room;
    const { active, extraction, spent, leases } = runtime.state;
    const lease = leases?.tester;
    const stuck = [...active.values()].map(({ call, assembly, operations }) => ({
      call,
      assembly,
      operations,
    }));
    if (active.size > 0) this.violations.push(`stuck: ${JSON.stringify(stuck)}`);
    if (Object.keys(extraction?.running ?? {}).length > 0)
      this.violations.push(`stuck: ${JSON.stringify(extraction)}`);
    if (spent.modelCalls < this.#sent) this.violations.push(`${spent.modelCalls} charged of ${this.#sent}`);
    if (!this.#isEstimated && spent.modelCalls !== this.#sent)
      this.violations.push(`${spent.modelCalls} charged, and ${this.#sent} asked`);
    if (lease !== undefined && lease.spent.modelCalls !== spent.modelCalls)
      this.violations.push(
        `the lease has ${lease.spent.modelCalls} calls, the conversation ${spent.modelCalls}`,
      );
    const { items } = queries.journal(runtime.state, { limit: 200 });
    for (const id of this.#turns) {
      const ends = items.filter(
        ({ type, turnId }) => turnId === id && (type === "turn.completed" || type === "turn.failed"),
      );
      if (ends.length !== 1) this.violations.push(`the turn ${id} has ${ends.length} ends`);
    }
  }
}

test.each([
  ["the budget of a conversation", false],
  ["the lease of an agent", true],
])(
  "BUDGET-8 LEDGER-5 LEASE-5 H4 A72 %s holds in random lives, and every request is charged",
  async (_, isLeased) => {
    const fired: Fired = new Map();
    const found: string[] = [];
    for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
      const life = await Life.begin(seed, isLeased, fired);
      await life.run();
      if (life.violations.length > 0) found.push(`seed ${seed}: ${life.violations[0]}`);
    }
    expect(found).toEqual([]);
    for (const name of ["message", "crash", "stop", "expiry", "calls", "failure", "no data"])
      expect(fired.get(name) ?? 0, name).toBeGreaterThan(SEEDS / 10);
    if (isLeased) expect(fired.get("refused") ?? 0).toBeGreaterThan(SEEDS / 10);
  },
  60_000,
);
