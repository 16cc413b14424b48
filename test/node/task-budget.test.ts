/** Budgets and tasks that ask models: reservations, permitted requests, and charges if the outcome is unknown. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { LATE_RESULT_MS, MAX_RECOVERIES } from "../../src/agents/conversation/core/conversation-limits.ts";
import type { LeaseState } from "../../src/agents/conversation/core/lease.ts";
import { planStoppedTask } from "../../src/agents/conversation/core/planning/results.ts";
import type { BudgetLeased } from "../../src/agents/conversation/core/signals.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { defineAction, defineTask } from "../../src/library/define/define-task.ts";
import type { LibraryAction } from "../../src/library/tasks/built.ts";
import { type Action, step } from "../../src/library/tasks/step.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { RetryPolicy } from "../../src/protocol/definition-parts.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { defined } from "../../src/shared/defined.ts";
import { SteeredConversation } from "../support/steered-model.ts";

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue(undefined));
beforeEach(() => void vi.spyOn(console, "warn").mockReturnValue(undefined));
afterEach(() => void vi.restoreAllMocks());

/** Tokens of the answer that the tasks here allow. */
const ANSWER = 500;
/** Less than this is reserved: the answer, and 4 000 tokens beyond the few of the texts. */
const RESERVED = ANSWER + 4_100;

const asks = (template = "{{ topic }}", more: Partial<Action> = {}): Action =>
  ({ kind: "llm", template, maxOutputTokens: ANSWER, ...more }) as Action;

interface Asking {
  action?: Action;
  effect?: ToolEffect;
  attempts?: number;
  /** The pause before the second attempt. */
  delayMs?: number;
  /** Options of the step. */
  retry?: RetryPolicy;
  timeoutMs?: number;
}

/** A tool over a task that asks a model, and once more after a step with this effect. */
function asking({
  action = asks(),
  effect = "idempotent",
  attempts = 1,
  delayMs = 1,
  retry,
  timeoutMs,
}: Asking = {}) {
  const mark = defineAction({ id: "mark", input: z.looseObject({}), effect, execute: () => null });
  const task = defineTask({
    id: "ask",
    input: z.object({ topic: z.string() }),
    ...defined({ timeoutMs }),
    ...(attempts === 1 ? {} : { retry: { maxAttempts: attempts, initialDelayMs: delayMs } }),
    steps: [
      step("mark", { action: mark, outputMapping: { "state.done": "true" } }),
      step("ask", {
        action,
        outputMapping: { "output.text": "result.response" },
        ...defined({ retry }),
        ...(attempts > 1 && { onFailure: "retry" }),
      }),
    ],
  });
  const tool = defineTool({ name: "ask_model", description: "Asks.", target: { task } });
  return defineLibrary("lib", { tasks: [task], tools: [tool] });
}

/** A conversation with its own model, which answers shortly. */
const begin = (library: ReturnType<typeof asking>, budget?: Budget) =>
  SteeredConversation.create(
    library,
    budget === undefined ? {} : { budget },
    {},
    { profile: { parameters: { max_tokens: 100 } } },
  );

const over = (id: string) => (frame: Frame) =>
  (frame.type === "turn.completed" || frame.type === "turn.failed") && frame.turnId === id;
const spent = (room: SteeredConversation) => room.runtime.state.spent;
const resultOf = ({ moves }: TurnView) => moves[0]?.toolResult;

/** Has the model call the tool. Returns the turn's id. */
async function callsTool(room: SteeredConversation, input = { topic: "cats" }, calls = 1): Promise<string> {
  const id = await room.say("Ask");
  const request = await room.request();
  request.call(...Array.from({ length: calls }, () => ["ask_model", input] as [string, typeof input]));
  return id;
}

async function ended(room: SteeredConversation, id: string): Promise<TurnView> {
  (await room.request()).answer("Done.");
  await room.until(over(id));
  return room.turn(id);
}

describe("BUDGET-8 H4 a task that asks a model", () => {
  test("runs if the budget has room for its reservation, and is refused otherwise", async () => {
    const room = await begin(asking(), { tokens: RESERVED + 1_000 });
    const first = await callsTool(room);
    (await room.request()).answer("Cats sleep.");
    expect(resultOf(await ended(room, first))).toMatchObject({
      success: true,
      result: { text: "Cats sleep." },
    });
    const small = await begin(asking(), { tokens: ANSWER + 4_000 });
    const second = await callsTool(small);
    const turn = await ended(small, second);
    expect(resultOf(turn)).toMatchObject({
      success: false,
      error: { code: "BUDGET_EXCEEDED", message: expect.stringContaining("did not run") },
    });
    expect(spent(small)).toMatchObject({ modelCalls: 2, toolCalls: 0 });
    expect(turn.spent).toMatchObject({ toolCalls: 0 });
  });

  test("LEDGER-6 the calls of one reply are counted one after another", async () => {
    const room = await begin(asking(), { tokens: 2 * RESERVED + 1_000 });
    const id = await callsTool(room, { topic: "cats" }, 3);
    (await room.request()).answer("1");
    (await room.request()).answer("2");
    const { moves } = await ended(room, id);
    expect(moves.slice(0, 3).map(({ toolResult }) => toolResult?.success)).toEqual([true, true, false]);
  });

  test("LLM-5 its models get at most the reservation, whatever their texts become", async () => {
    const long = asks("{% for n in (1..3000) %}long words {% endfor %}");
    const free = await SteeredConversation.create(asking({ action: long }));
    const first = await callsTool(free);
    (await free.request()).answer("Long.");
    expect(resultOf(await ended(free, first))).toMatchObject({ result: { text: "Long." } });
    const room = await SteeredConversation.create(asking({ action: long }), { budget: { tokens: 100_000 } });
    const second = await callsTool(room);
    expect(resultOf(await ended(room, second))).toMatchObject({
      error: { code: "BUDGET_EXCEEDED", message: expect.stringMatching(/Step "ask": .*set maxInputTokens/) },
    });
    expect(spent(room).modelCalls).toBe(2);
    const allowed = asks("{% for n in (1..3000) %}long words {% endfor %}", { maxInputTokens: 20_000 });
    const wide = await SteeredConversation.create(asking({ action: allowed }), {
      budget: { tokens: 100_000 },
    });
    const third = await callsTool(wide);
    (await wide.request()).answer("Long.");
    expect(resultOf(await ended(wide, third))).toMatchObject({ result: { text: "Long." } });
  });

  test("makes a new reservation for each further attempt, which needs room, too", async () => {
    const answer = asks("{{ topic }}", { outputSchema: { type: "object" } });
    const library = asking({ action: answer, attempts: 5 });
    const room = await SteeredConversation.create(library, { budget: { modelCalls: 4 } });
    const id = await callsTool(room);
    for (const text of ["no data", "nor this"]) (await room.request()).answer(text);
    const turn = await ended(room, id);
    expect(resultOf(turn)).toMatchObject({ error: { code: "BUDGET_EXCEEDED" } });
    expect(spent(room).modelCalls).toBe(4);
  });

  test("BUDGET-2 counts in the budget of its turn, while it runs and afterwards", async () => {
    const room = await begin(asking());
    const id = await room.say("Ask", { budget: { modelCalls: 3 } });
    (await room.request()).call(
      ...Array.from({ length: 3 }, () => ["ask_model", { topic: "cats" }] as [string, { topic: string }]),
    );
    const requests = [await room.request(), await room.request()];
    for (const request of requests) request.answer("Cats sleep.");
    await room.until(over(id));
    const { error, moves, spent: used } = room.turn(id);
    expect(error?.code).toBe("BUDGET_EXCEEDED");
    expect(moves.map(({ toolResult }) => toolResult?.success)).toEqual([true, true, false]);
    expect(used).toMatchObject({ modelCalls: 3 });
  });

  test("LEDGER-6 reserves each attempt of a step", async () => {
    const library = asking({ retry: { maxAttempts: 3, backoffMs: 0 } });
    const room = await begin(library, { tokens: 2 * RESERVED + 1_000 });
    const id = await callsTool(room);
    expect(resultOf(await ended(room, id))).toMatchObject({ error: { code: "BUDGET_EXCEEDED" } });
    const wide = await begin(library, { modelCalls: 5 });
    const other = await callsTool(wide);
    (await wide.request()).answer("Cats sleep.");
    expect(resultOf(await ended(wide, other))).toMatchObject({ success: true });
  });

  test("LEDGER-5 an open request counts with its maximum usage at the time limit", async () => {
    const room = await begin(asking({ timeoutMs: 50 }));
    const id = await callsTool(room);
    await room.request();
    expect(resultOf(await ended(room, id))).toMatchObject({ error: { code: "TIMEOUT" } });
    expect(spent(room).modelCalls).toBe(3);
    expect(spent(room).tokens).toBeGreaterThan(ANSWER);
  });

  test("counts from the moment of a new budget while it runs, and continues", async () => {
    const room = await begin(asking());
    const id = await callsTool(room);
    const asked = await room.request();
    await room.runtime.changes.update({
      caller: { type: "user", userId: "ada" },
      budget: { tokens: RESERVED },
    });
    const next = await room.say("More");
    expect(room.turn(next).error?.code).toBe("BUDGET_EXCEEDED");
    asked.answer("Cats sleep.");
    expect(resultOf(await ended(room, id))).toMatchObject({ success: true });
  });

  test("makes a new reservation if a budget is set in the pause before its next attempt", async () => {
    const answer = asks("{{ topic }}", { outputSchema: { type: "object" } });
    const room = await SteeredConversation.create(asking({ action: answer, attempts: 2, delayMs: 30_000 }));
    const id = await callsTool(room);
    (await room.request()).answer("no data");
    const types = () =>
      room.queries.journal(room.runtime.state, { limit: 100 }).items.map(({ type }) => type);
    await expect.poll(() => types()).toContain("tool.call.failed");
    await room.runtime.changes.update({ caller: { type: "user", userId: "ada" }, budget: { tokens: 10 } });
    expect(resultOf(room.turn(id))).toMatchObject({ error: { code: "BUDGET_EXCEEDED" } });
    expect(room.untaken).toBe(0);
  });

  test("counts in full if a budget of another kind is set", async () => {
    const room = await begin(asking(), { modelCalls: 50 });
    await callsTool(room);
    await room.request();
    await room.runtime.changes.update({
      caller: { type: "user", userId: "ada" },
      budget: { tokens: RESERVED },
    });
    expect(room.turn(await room.say("More")).error?.code).toBe("BUDGET_EXCEEDED");
  });

  test("LEDGER-5 a crash charges the attempt, and the next attempt needs room", async () => {
    const before = await SteeredConversation.create(asking(), { budget: { modelCalls: 3 } });
    const id = await callsTool(before);
    await before.request();
    const room = await before.restarted();
    expect(spent(room)).toMatchObject({ modelCalls: 2 });
    expect(spent(room).tokens).toBeGreaterThan(ANSWER + 4_000);
    // The third call is its own. The answer has no call left.
    (await room.request()).answer("Cats sleep.");
    await room.until(over(id));
    expect(room.turn(id).error?.code).toBe("BUDGET_EXCEEDED");
    expect(spent(room).modelCalls).toBe(3);
  });

  test("LEDGER-5 the end of a stopped turn reports the rest after its charge", async () => {
    const room = await begin(asking(), { tokens: 20_000 });
    const id = await callsTool(room);
    await room.request();
    await room.stop(id);
    const { tokens } = spent(room);
    expect(room.frames.find(({ type }) => type === "turn.failed")?.data).toMatchObject({
      budgetLeft: { tokens: 20_000 - tokens },
    });
  });

  test("TASKLOG-2 the journal records the progress of a stopped task", async () => {
    const room = await SteeredConversation.create(asking());
    const id = await callsTool(room);
    await room.request();
    await room.stop(id);
    const entries = () => room.queries.journal(room.runtime.state, { limit: 100 }).items;
    await expect.poll(() => entries().map(({ type }) => type)).toContain("task.failed");
    expect(entries().find(({ type }) => type === "task.failed")?.data).toMatchObject({
      task: "lib/ask@1",
      steps: 2,
      failedStep: "ask",
    });
    expect(room.turn(id).error?.code).toBe("CANCELLED");
  });

  test("TASKLOG-2 of late results, only a stopped result is noted", () => {
    const task = { task: { library: "l", id: "t", version: 1 }, steps: [], durationMs: 1 };
    const late = { turn: 1, item: 2, attempt: 1, task };
    const error = { code: "CANCELLED", message: "", retriable: false } as const;
    const note = { type: "NOTE_STOPPED_TASK", turn: 1, item: 2, task };
    expect(planStoppedTask({ ...late, result: { tool_call_id: "c", success: false, error } })).toEqual([
      note,
    ]);
    const failed = { ...error, code: "TIMEOUT" } as const;
    expect(
      planStoppedTask({ ...late, result: { tool_call_id: "c", success: false, error: failed } }),
    ).toEqual([]);
    expect(planStoppedTask({ ...late, result: { tool_call_id: "c", success: true, result: 1 } })).toEqual([]);
  });

  test("LEDGER-5 a `once` task that a crash interrupts is charged when its end can no longer be known", async () => {
    let now = Date.now();
    const clock = { ...systemClock, now: () => now };
    const before = await SteeredConversation.create(asking({ effect: "once" }), {}, {}, { clock });
    await callsTool(before);
    await before.request();
    const room = await before.restarted();
    expect(spent(room).modelCalls).toBe(1);
    now += LATE_RESULT_MS;
    room.runtime.reconcile();
    const next = await room.request();
    expect(spent(room).modelCalls).toBe(2);
    expect(JSON.stringify(next.messages)).toContain("Outcome unknown");
  });
});

describe("LEASE-5 LEASE-8 H4 a task of an agent with a shared budget", () => {
  const leased = (library = asking()) => SteeredConversation.create(library, {}, {}, { leased: true });
  const leaseIn = (room: SteeredConversation): LeaseState | undefined => room.runtime.state.leases?.tester;
  const much = { tokens: 1e9, nanoDollars: 1e9, toolCalls: 0, modelCalls: 1 };

  function answer(room: SteeredConversation, given: BudgetLeased["answer"]): Promise<void> {
    const unit = room.runtime.begin();
    const { seq = 0 } = leaseIn(room) ?? {};
    unit.stage([{ type: "conversation.budget.leased", agentId: "tester", seq, answer: given }]);
    return unit.release();
  }

  /** Says something. The agent's model calls the tool, which waits for its lease. Returns the turn's id. */
  async function waits(room: SteeredConversation): Promise<string> {
    const id = await room.say("Ask");
    await answer(room, { granted: much });
    (await room.request()).call(["ask_model", { topic: "cats" }]);
    await room.until(({ type }) => type === "tool.requested");
    return id;
  }

  test("waits for the agent's answer, also through a crash without a charge, and then runs", async () => {
    const before = await leased();
    const id = await waits(before);
    expect(before.untaken).toBe(0);
    expect(leaseIn(before)?.asked).toBeDefined();
    expect(before.runtime.dueIn).toBeLessThan(10_000);
    const room = await before.restarted();
    expect([room.untaken, spent(room).modelCalls]).toEqual([0, 1]);
    await answer(room, { granted: { ...much, modelCalls: 9 } });
    (await room.request()).answer("Cats sleep.");
    expect(resultOf(await ended(room, id))).toMatchObject({ result: { text: "Cats sleep." } });
    expect(leaseIn(room)?.granted).toEqual(leaseIn(room)?.spent);
    expect(leaseIn(room)?.spent.modelCalls).toBe(3);
  });

  test("counts in the lease, so that two do not share the room of one", async () => {
    const room = await leased();
    await room.say("Ask");
    await answer(room, { granted: { ...much, modelCalls: 2 } });
    const topic = { topic: "cats" };
    (await room.request()).call(["ask_model", topic], ["ask_model", topic]);
    // The first question was asked ahead, for the calls after the first.
    for (let n = 0; n < 2; n++) await answer(room, { granted: { ...much, modelCalls: 2 } });
    await room.request();
    expect(room.untaken).toBe(0);
  });

  test("LLM-5 its models get at most the reservation", async () => {
    const long = asks("{% for n in (1..3000) %}long words {% endfor %}");
    const room = await SteeredConversation.create(asking({ action: long }), {}, {}, { leased: true });
    const id = await room.say("Ask");
    await answer(room, { granted: { ...much, modelCalls: 9 } });
    (await room.request()).call(["ask_model", { topic: "cats" }]);
    expect(resultOf(await ended(room, id))).toMatchObject({ error: { code: "BUDGET_EXCEEDED" } });
  });

  test("costs no usage if it is stopped while it waits, and has not run", async () => {
    const room = await leased(asking({ effect: "once" }));
    const id = await waits(room);
    await room.stop(id);
    expect(spent(room).modelCalls).toBe(1);
    expect(resultOf(room.turn(id))?.error?.message).toContain("was stopped before it had a result");
  });

  test("fails if its agent cannot be reached", async () => {
    const room = await leased();
    const id = await waits(room);
    const away = { error: { code: "UNAVAILABLE", message: "The agent is away.", retriable: true } } as const;
    for (let n = 0; n < 2; n++) await answer(room, away);
    await answer(room, { granted: { ...much, modelCalls: 9 } });
    expect(resultOf(await ended(room, id))).toMatchObject({
      error: { code: "EXECUTION_FAILED", message: expect.stringContaining("The agent is away.") },
    });
  });

  test("does not run if the agent's budget is used up, and the turn continues", async () => {
    const room = await leased();
    const id = await waits(room);
    const excess = { scope: "agent", limit: "tokens", allowed: 9, used: 9, needed: 5_000 } as const;
    // The first question was asked ahead. Its answer refuses no call.
    for (let n = 0; n < 2; n++) await answer(room, { granted: much, excess });
    await answer(room, { granted: { ...much, modelCalls: 9 } });
    expect(resultOf(await ended(room, id))).toMatchObject({ error: { code: "BUDGET_EXCEEDED" } });
  });
});

describe("BUDGET-8 HOOK-2 HOOK-4 H4 a hook that asks a model", () => {
  const hook = (
    id: string,
    output: Record<string, string>,
    {
      action = asks("{{ user_message }}", { maxInputTokens: 1_000 }),
      mark,
    }: { action?: Action; mark?: LibraryAction } = {},
  ) =>
    defineTask({
      id,
      input: z.looseObject({ user_message: z.string() }),
      steps: [
        ...(mark === undefined ? [] : [step("mark", { action: mark })]),
        step("ask", {
          action,
          outputMapping: { "state.facts": "result.response" },
        }),
        step("write", {
          action: { kind: "update_context", values: { role: "'user'", content: "state.facts" } },
          outputMapping: output,
        }),
      ],
    });
  const request = hook("request", {
    "output.model": "'m'",
    "output.stream": "true",
    "output.messages": "[result]",
  });
  const memories = hook("memories", { "output.operations": "[{'op': 'write', 'content': state.facts}]" });
  const library = defineLibrary("lib", { tasks: [request, memories] });
  const assembling = { contextAssembly: { task: "lib/request" } };
  const extracting = { memoryExtraction: { task: "lib/memories" } };
  const finalized = ({ type }: Frame) => type === "turn.finalized";

  test("fails its turn without a request if the budget has no room for it", async () => {
    const room = await SteeredConversation.create(library, { budget: { tokens: 1_400 } }, assembling, {
      profile: { parameters: { max_tokens: 100 } },
    });
    const id = await room.say("Hello");
    expect(room.turn(id).error).toMatchObject({ code: "BUDGET_EXCEEDED" });
    expect([room.untaken, spent(room).modelCalls]).toEqual([0, 0]);
    expect(room.frames.find(({ type }) => type === "budget.exceeded")?.data).toMatchObject({
      limit: "tokens",
    });
  });

  test("an extraction that has no room does not run, and its turn stays completed", async () => {
    const room = await SteeredConversation.create(library, { budget: { modelCalls: 1 } }, extracting);
    const id = await room.say("Hello");
    (await room.request()).answer("Hi.");
    await room.until(finalized);
    expect(room.turn(id).status).toBe("completed");
    expect([room.untaken, spent(room).modelCalls]).toEqual([0, 1]);
    const { items } = room.queries.journal(room.runtime.state, { limit: 100 });
    expect(items.find(({ type }) => type === "memory_extraction.failed")?.data).toMatchObject({
      code: "BUDGET_EXCEEDED",
    });
  });

  test("counts while it runs: other requests cannot use its reservation", async () => {
    const room = await SteeredConversation.create(library, { budget: { modelCalls: 2 } }, extracting);
    await room.say("Hello");
    (await room.request()).answer("Hi.");
    const asked = await room.request();
    const next = await room.say("More");
    expect(room.turn(next).error?.code).toBe("BUDGET_EXCEEDED");
    asked.answer("A fact.");
    await room.until(finalized);
    expect(spent(room).modelCalls).toBe(2);
  });

  test("counts from the moment when a budget is set while it runs", async () => {
    const room = await SteeredConversation.create(library, {}, extracting);
    await room.say("Hello");
    (await room.request()).answer("Hi.");
    await room.request();
    await room.runtime.changes.update({ caller: { type: "user", userId: "ada" }, budget: { modelCalls: 2 } });
    expect(room.turn(await room.say("More")).error?.code).toBe("BUDGET_EXCEEDED");
  });

  test("LEDGER-5 is charged if its turn, or its conversation, is stopped, once", async () => {
    const room = await SteeredConversation.create(library, {}, assembling);
    const id = await room.say("Hello");
    await room.request();
    await room.stop(id);
    expect(spent(room)).toMatchObject({ modelCalls: 1, tokens: 1_000 + ANSWER });
    expect(room.turn(id).spent).toMatchObject({ modelCalls: 1 });
    const other = await SteeredConversation.create(library, {}, extracting);
    await other.say("Hello");
    (await other.request()).answer("Hi.");
    await other.request();
    await other.stopAll();
    expect(spent(other)).toMatchObject({ modelCalls: 2, tokens: 110 + 1_000 + ANSWER });
  });

  test("LLM-5 gets at most the reservation", async () => {
    const long = hook(
      "request",
      { "output.model": "'m'", "output.stream": "true", "output.messages": "[result]" },
      { action: asks("{% for n in (1..6000) %}long words {% endfor %}{{ user_message }}") },
    );
    const wide = defineLibrary("lib", { tasks: [long] });
    const room = await SteeredConversation.create(
      wide,
      { budget: { tokens: 1e6 } },
      { ...assembling, contextTokens: 2_000 },
    );
    const id = await room.say("Hello");
    await room.until(over(id));
    expect(room.turn(id).error).toMatchObject({
      code: "CONTEXT_ASSEMBLY_FAILED",
      message: expect.stringContaining("set maxInputTokens"),
    });
    expect([room.untaken, spent(room).modelCalls]).toEqual([0, 0]);
  });

  test("LEASE-7 its lease stays while it runs", async () => {
    const room = await SteeredConversation.create(library, {}, extracting, { leased: true });
    await room.say("Hello");
    const granted = { tokens: 1e9, nanoDollars: 1e9, toolCalls: 0, modelCalls: 9 };
    const unit = room.runtime.begin();
    const seq = room.runtime.state.leases?.tester?.seq ?? 0;
    unit.stage([{ type: "conversation.budget.leased", agentId: "tester", seq, answer: { granted } }]);
    await unit.release();
    (await room.request()).answer("Hi.");
    const asked = await room.request();
    expect(room.runtime.state.leases?.tester?.granted.modelCalls).toBe(9);
    asked.answer("A fact.");
    await room.until(finalized);
    expect(room.runtime.state.leases?.tester?.granted.modelCalls).toBe(2);
  });

  test.each([
    ["a context hook", assembling, 0],
    ["an extraction", extracting, 1],
  ])(
    "LEDGER-5 %s with a `once` action is charged when its end can no longer be known",
    async (_, memory, calls) => {
      let now = Date.now();
      const clock = { ...systemClock, now: () => now };
      const once = {
        mark: defineAction({ id: "mark", input: z.looseObject({}), effect: "once", execute: () => null }),
      };
      const tasks = [
        hook(
          "request",
          { "output.model": "'m'", "output.stream": "true", "output.messages": "[result]" },
          once,
        ),
        hook("memories", { "output.operations": "[{'op': 'write', 'content': state.facts}]" }, once),
      ];
      const before = await SteeredConversation.create(defineLibrary("lib", { tasks }), {}, memory, { clock });
      await before.say("Hello");
      for (let call = 0; call < calls; call++) (await before.request()).answer("Hi.");
      await before.request();
      const room = await before.restarted();
      expect(spent(room).modelCalls).toBe(calls);
      now += LATE_RESULT_MS;
      room.runtime.reconcile();
      expect(spent(room).modelCalls).toBe(calls + 1);
      expect([...room.runtime.state.active.values()]).toEqual([]);
    },
  );

  test("LEDGER-5 an extraction that crashes for good is charged for each of its runs", async () => {
    let room = await SteeredConversation.create(library, {}, extracting);
    await room.say("Hello");
    (await room.request()).answer("Hi.");
    for (let run = 0; run <= MAX_RECOVERIES; run++) {
      await room.request();
      room = await room.restarted();
    }
    expect(spent(room).modelCalls).toBe(MAX_RECOVERIES + 2);
    expect(room.runtime.state.extraction?.running ?? {}).toEqual({});
  });

  test("LEDGER-5 is charged if its agent leaves", async () => {
    const room = await SteeredConversation.create(library, {}, extracting);
    await room.join({ type: "agent", id: "guest" });
    const id = await room.say("Hello", { to: "guest" });
    (await room.request()).answer("Hi.");
    await room.until(over(id));
    await room.request();
    await room.leave({ type: "agent", id: "guest" });
    expect(spent(room)).toMatchObject({ modelCalls: 2, tokens: 110 + 1_000 + ANSWER });
  });

  test("LEDGER-5 is charged once if it fails permanently", async () => {
    const room = await SteeredConversation.create(library, {}, assembling);
    const id = await room.say("Hello");
    for (let attempt = 1; attempt <= 3; attempt++) (await room.request()).fail("No.");
    await room.until(over(id));
    expect(room.turn(id).error?.code).toBe("CONTEXT_ASSEMBLY_FAILED");
    expect(spent(room)).toMatchObject({ modelCalls: 3, tokens: 0 });
  });

  test("LEDGER-5 is charged for each run that a crash interrupts", async () => {
    const first = await SteeredConversation.create(library, {}, assembling);
    await first.say("Hello");
    await first.request();
    const second = await first.restarted();
    expect(spent(second)).toMatchObject({ modelCalls: 1, tokens: 1_000 + ANSWER });
    const other = await SteeredConversation.create(library, {}, extracting);
    await other.say("Hello");
    (await other.request()).answer("Hi.");
    await other.request();
    const woken = await other.restarted();
    expect(spent(woken)).toMatchObject({ modelCalls: 2 });
    (await woken.request()).answer("A fact.");
    await woken.until(finalized);
    expect(spent(woken).modelCalls).toBe(3);
  });
});
