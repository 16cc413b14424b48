/** Budgets: reserved before a call, charged after it, and a hard stop. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { spentByAgent } from "../../src/agents/conversation/core/ledger.ts";
import { planReservation } from "../../src/agents/conversation/core/planning/budget.ts";
import { packHead, unpackHead } from "../../src/agents/conversation/store/journal.ts";
import { defineLibrary, defineModelProfile, defineTool } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { step } from "../../src/library/tasks/step.ts";
import { maxOutputTokens } from "../../src/model/spending.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { SteeredConversation } from "../support/steered-model.ts";

const ADA = { type: "user", userId: "ada" } as const;
const empty = defineLibrary("empty", {});
const over =
  (turnId: string) =>
  (frame: Frame): boolean =>
    (frame.type === "turn.completed" || frame.type === "turn.failed") && frame.turnId === turnId;
const exceeded = (room: SteeredConversation) =>
  room.frames.flatMap((frame) => (frame.type === "budget.exceeded" ? [frame.data] : []));

/** A library with a tool `look`; `looked` counts its runs. */
function looking() {
  const counter = { looked: 0 };
  const look = defineTool({
    name: "look",
    description: "Looks.",
    effect: "pure",
    input: z.object({ n: z.number() }),
    execute: async ({ n }) => {
      counter.looked += 1;
      return n;
    },
  });
  return { counter, library: defineLibrary("looking", { tools: [look] }) };
}

describe("model calls", () => {
  test("H4 BUDGET-1 a turn without budget calls no model, and fails with BUDGET_EXCEEDED", async () => {
    const room = await SteeredConversation.create(empty);
    const id = await room.say("Hello", { budget: { tokens: 100 } });
    expect(room.turn(id)).toMatchObject({
      status: "failed",
      error: { code: "BUDGET_EXCEEDED", retriable: false },
      budget: { tokens: 100 },
      spent: { tokens: 0, modelCalls: 0 },
    });
    expect(room.untaken).toBe(0);
    const [excess] = exceeded(room);
    expect(excess).toMatchObject({ scope: "turn", limit: "tokens", allowed: 100, used: 0 });
    expect(excess?.needed).toBeGreaterThan(4_096);
  });

  test("H4 BUDGET-1 a reservation is estimated input and maximal output", () => {
    expect(maxOutputTokens({})).toBe(4_096);
    expect(maxOutputTokens({ parameters: { max_tokens: 100 } })).toBe(100);
    expect(maxOutputTokens({ parameters: { max_completion_tokens: 200 } })).toBe(200);
    expect(maxOutputTokens({ parameters: { maxOutputTokens: 300 } })).toBe(300);
    expect(maxOutputTokens({ parameters: { generationConfig: { maxOutputTokens: 400 } } })).toBe(400);
    expect(maxOutputTokens({ parameters: { thinking: { budget_tokens: 1_000 } } })).toBe(5_096);
  });

  test.each([
    [50_000, true],
    [100, false],
  ])(
    "H4 BUDGET-1 HOOK-2 the request of a context hook with a limit of %i tokens reserves that, whatever the profile says",
    async (max_tokens, isRefused) => {
      const assemble = defineTask({
        id: "assemble",
        input: z.looseObject({}),
        effect: "pure",
        execute: async () => ({ model: "m", messages: [{ role: "user", content: "Hello" }], max_tokens }),
      });
      const room = await SteeredConversation.create(
        defineLibrary("lib", { tasks: [assemble] }),
        {},
        { contextAssembly: { task: "lib/assemble" } },
        { profile: { parameters: { max_tokens: 1_000 } }, budget: { tokens: 900 } },
      );
      const id = await room.say("Hello");
      if (isRefused) {
        await room.until(over(id));
        expect(exceeded(room)[0]?.needed).toBeGreaterThan(max_tokens);
        expect(room.untaken).toBe(0);
        return;
      }
      (await room.request()).answer("Yes.");
      await room.until(over(id));
      expect(room.turn(id)).toMatchObject({ status: "completed" });
    },
  );

  test("H4 BUDGET-2 parallel turns share the budget of their conversation, and running calls are reserved", async () => {
    const room = await SteeredConversation.create(empty, { budget: { modelCalls: 2 } });
    const [a, b, c] = [await room.say("A"), await room.say("B"), await room.say("C")];
    expect([a, b].map((id) => room.turn(id).status)).toEqual(["active", "active"]);
    expect(room.turn(c).error?.code).toBe("BUDGET_EXCEEDED");
    (await room.request()).answer("1");
    (await room.request()).answer("2");
    await room.until(over(b));
    await room.until(over(a));
    expect(room.runtime.state.spent).toEqual({ tokens: 220, nanoDollars: 0, toolCalls: 0, modelCalls: 2 });
    expect(room.turn(await room.say("D")).error?.code).toBe("BUDGET_EXCEEDED");
  });

  test("H4 BUDGET-1 LEDGER-3 a queued turn that begins as another turn ends reserves for the history of that turn", async () => {
    const room = await SteeredConversation.create(empty, { order: "queued", budget: { tokens: 1_000_000 } });
    const one = await room.say("Tell me a story.");
    const story = await room.request();
    await room.say("And its end?");
    await room.say("And its moral?");
    story.answer("Once upon a time. ".repeat(1_000));
    const second = await room.request();
    await room.until(() => room.frames.some(over(one)));
    const reservedBy = (n: number) => room.runtime.state.active.get(n)?.call?.reserved?.inputTokens ?? 0;
    const [begun] = [reservedBy(2)];
    expect(begun).toBeGreaterThan(4_000);
    second.answer("They lived. ".repeat(1_000));
    await room.request();
    expect(reservedBy(3), "with the answers of both").toBeGreaterThan(begun + 2_000);
    const fresh = await room.restarted();
    await fresh.request();
    const { reserved } = fresh.runtime.state.active.get(3)?.call ?? {};
    expect(reserved?.inputTokens, "as it is read from the store").toBe(reservedBy(3));
  });

  test("H4 LEDGER-1 real usage replaces the reservation, and the rest can be used", async () => {
    const room = await SteeredConversation.create(empty, { budget: { tokens: 4_300 } });
    const first = await room.say("A");
    (await room.request()).answer("1");
    await room.until(over(first));
    expect(room.runtime.state.spent.tokens).toBe(110);
    const ended = room.frames.find(over(first));
    expect(ended?.data).toMatchObject({ budgetLeft: { tokens: 4_190 } });
    const second = await room.say("B");
    (await room.request()).answer("2");
    await room.until(over(second));
    expect(room.turn(await room.say("C")).error?.code).toBe("BUDGET_EXCEEDED");
  });

  test("H4 the smallest budget wins: persona, conversation or turn", async () => {
    const room = await SteeredConversation.create(
      empty,
      { budget: { modelCalls: 5 } },
      {},
      { budget: { modelCalls: 1 } },
    );
    expect(room.turn(await room.say("A", { budget: { modelCalls: 0 } })).status).toBe("failed");
    const id = await room.say("B");
    (await room.request()).answer("1");
    await room.until(over(id));
    await room.say("C");
    expect(exceeded(room)).toEqual([
      { scope: "turn", limit: "modelCalls", allowed: 0, used: 0, needed: 1 },
      { scope: "persona", limit: "modelCalls", allowed: 1, used: 1, needed: 1 },
    ]);
  });

  test("H4 BUDGET-7 the budget of a persona counts the usage of its own agent, also after a restart", async () => {
    const first = await SteeredConversation.create(empty, {}, {}, { budget: { modelCalls: 2 } });
    const ask = async (room: SteeredConversation, to: string) => {
      const id = await room.say("Hello", { to });
      const request = room.turn(id).status === "failed" ? undefined : await room.request();
      request?.answer("Hi.");
      if (request !== undefined) await room.until(over(id));
      return room.turn(id);
    };
    await ask(first, "tester");
    expect(first.runtime.state.spentBy).toBeUndefined();
    await first.join({ type: "agent", id: "lawyer" }, "You are lawyer.", { budget: { modelCalls: 1 } });
    await first.join({ type: "agent", id: "cook" });
    const room = await first.restarted();
    expect(room.runtime.state).toEqual(first.runtime.state);
    expect(room.runtime.state.spentBy).toMatchObject({
      tester: { modelCalls: 1 },
      lawyer: { modelCalls: 0 },
    });
    for (const agent of ["cook", "cook", "lawyer", "tester"])
      expect(await ask(room, agent)).toMatchObject({ agentId: agent, status: "completed" });
    const { conversation } = room.queries.snapshot(room.runtime.state, []);
    expect(conversation.budgetLeft).toEqual({ modelCalls: 0 });
    for (const agent of ["lawyer", "tester"])
      expect((await ask(room, agent)).error).toMatchObject({ code: "BUDGET_EXCEEDED" });
    expect(await ask(room, "cook")).toMatchObject({ status: "completed" });
    expect(room.runtime.state.spent.modelCalls).toBe(6);
    expect(exceeded(room)).toMatchObject([
      { scope: "persona", allowed: 1, used: 1 },
      { scope: "persona", allowed: 2, used: 2 },
    ]);
    expect((await room.restarted()).runtime.state).toEqual(room.runtime.state);
  });

  test("H4 LEDGER-2 a stop after 100 deltas leaves the ledger above zero, marked as an estimate", async () => {
    const room = await SteeredConversation.create(empty);
    const id = await room.say("Count, please.");
    const request = await room.request();
    for (let n = 0; n < 100; n++) request.say(`word${n} `);
    await room.until(
      ({ type, data }) => type === "message.delta" && "text" in data && data.text.includes("word99"),
    );
    await room.stop(id);
    const { spent, calls, usage } = room.turn(id);
    expect(spent).toMatchObject({ modelCalls: 1, estimated: true });
    expect(spent.tokens).toBeGreaterThan(100);
    expect(calls[0]?.estimated?.outputTokens).toBeGreaterThan(90);
    expect(usage).toBeNull();
    expect(room.runtime.state.spent.tokens).toBe(spent.tokens);
  });

  test("H4 LEDGER-2 of a reply that is stopped after an early count, the output that was received since is estimated", async () => {
    const room = await SteeredConversation.create(empty);
    const id = await room.say("Count, please.");
    const request = await room.request();
    request.count();
    for (let n = 0; n < 100; n++) request.say(`word${n} `);
    await room.until(
      ({ type, data }) => type === "message.delta" && "text" in data && data.text.includes("word99"),
    );
    await room.stop(id);
    const { spent, calls } = room.turn(id);
    expect(calls[0]).toMatchObject({
      usage: { inputTokens: 100, outputTokens: 10 },
      estimated: { inputTokens: 0 },
    });
    expect(spent.tokens).toBeGreaterThan(190);
  });

  test("H4 LEDGER-2 a reply without a count is estimated, and a refused request costs no tokens", async () => {
    const room = await SteeredConversation.create(empty);
    const first = await room.say("A");
    const request = await room.request();
    request.say("An answer of some words.");
    request.end();
    await room.until(over(first));
    expect(room.turn(first).spent).toMatchObject({ modelCalls: 1, estimated: true });
    const second = await room.say("B");
    (await room.request()).fail("No.");
    await room.until(over(second));
    expect(room.turn(second).spent).toEqual({ tokens: 0, usd: 0, toolCalls: 0, modelCalls: 1 });
  });

  test("H4 BUDGET-1 each round of a turn makes a new reservation", async () => {
    const { counter, library } = looking();
    const room = await SteeredConversation.create(library);
    const id = await room.say("Look.", { budget: { modelCalls: 1 } });
    (await room.request()).call(["look", { n: 1 }]);
    await room.until(over(id));
    expect(counter.looked).toBe(1);
    expect(room.turn(id)).toMatchObject({
      error: { code: "BUDGET_EXCEEDED" },
      spent: { modelCalls: 1, toolCalls: 1 },
    });
  });

  test("H4 lowering a budget stops the calls that no longer fit, and removing it continues them", async () => {
    const room = await SteeredConversation.create(empty);
    const id = await room.say("A");
    const request = await room.request();
    await room.runtime.changes.update({ caller: ADA, budget: { tokens: 10 } });
    expect(request.isAborted()).toBe(true);
    expect(room.turn(id).error?.code).toBe("BUDGET_EXCEEDED");
    expect(room.turn(id).spent.modelCalls).toBe(1);
    const frame = room.frames.find(({ type }) => type === "conversation.updated");
    expect(frame?.data).toEqual({ budget: { tokens: 10 }, budgetLeft: { tokens: 10 } });
    await room.runtime.changes.update({ caller: ADA, budget: null });
    const next = await room.say("B");
    (await room.request()).answer("1");
    await room.until(over(next));
    expect(room.turn(next).status).toBe("completed");
  });
});

test("H4 BUDGET-5 a summary that does not fit a budget is given up, and a summary that fits is reserved", async () => {
  const room = await SteeredConversation.create(empty);
  const { state } = room.runtime;
  const session = state.record.agents[0].id;
  const call = { attempt: 1, notBefore: 0 };
  const compaction = { turn: 1, cover: 4, upTo: 8, tokens: 5_000, startedAt: 0, call };
  const running = { ...state, compactions: { [session]: compaction } };
  const input = { now: 0, stem: "", gate: allowAll };
  expect(planReservation({ ...running, budget: { tokens: 9_000 } }, input)).toMatchObject([
    { type: "GIVE_UP_SIDE_CALL", session, error: { code: "BUDGET_EXCEEDED" } },
  ]);
  const [reserved] = planReservation({ ...running, budget: { tokens: 20_000 } }, input);
  expect(reserved).toMatchObject({ type: "RESERVE_SIDE_CALL", reserved: { outputTokens: 4_096 } });
  expect(planReservation(running, input)).toEqual([]);
});

describe("money", () => {
  test("H4 BUDGET-4 a budget in dollars is refused if a model has no price", async () => {
    const room = await SteeredConversation.create(empty);
    await expect(room.say("A", { budget: { usd: 1 } })).rejects.toMatchObject({ code: "INVALID_INPUT" });
    await expect(room.runtime.changes.update({ caller: ADA, budget: { usd: 1 } })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
    await expect(SteeredConversation.create(empty, {}, {}, { budget: { usd: 1 } })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
  });

  test.each(["llm", "llm.embed"] as const)(
    "H4 BUDGET-4 a budget in dollars is refused if a step `%s` asks a model without a price",
    async (kind) => {
      const profile = defineModelProfile("free", { provider: "openai", modelId: "unpriced" });
      const action = kind === "llm" ? { kind, profile, template: "Hi." } : { kind, profile };
      const asks = defineTask({ id: "asks", input: z.looseObject({}), steps: [step("a", { action })] });
      const tool = defineTool({ name: "ask", description: "Asks.", target: { task: asks } });
      const priced = { costPer1kInput: 1, costPer1kOutput: 2, parameters: { max_tokens: 50 } };
      const room = SteeredConversation.create(
        defineLibrary("lib", { tools: [tool] }),
        {},
        {},
        { budget: { usd: 1 }, profile: priced },
      );
      await expect(room).rejects.toThrow("The model openai/unpriced has no price");
    },
  );

  test("H4 a budget in dollars counts prices of input and output", async () => {
    const profile = { costPer1kInput: 1, costPer1kOutput: 2, parameters: { max_tokens: 50 } };
    const room = await SteeredConversation.create(empty, { budget: { usd: 0.3 } }, {}, { profile });
    const id = await room.say("A");
    (await room.request()).answer("1");
    await room.until(over(id));
    expect(room.turn(id).spent).toEqual({ tokens: 110, usd: 0.12, toolCalls: 0, modelCalls: 1 });
    const next = await room.say("B");
    (await room.request()).answer("2");
    await room.until(over(next));
    await room.say("C");
    expect(exceeded(room)).toMatchObject([{ limit: "usd", allowed: 0.3, used: 0.24 }]);
  });
});

describe("tool calls", () => {
  test("H4 BUDGET-3 limit 6, eight calls in a reply: six run, two get BUDGET_EXCEEDED", async () => {
    const { counter, library } = looking();
    const room = await SteeredConversation.create(library);
    const id = await room.say("Look.", { budget: { toolCalls: 6 } });
    (await room.request()).call(
      ...Array.from({ length: 8 }, (_, n) => ["look", { n }] as [string, { n: number }]),
    );
    const second = await room.request();
    expect(counter.looked).toBe(6);
    const results = second.messages
      .filter(({ role }) => role === "tool")
      .map(({ content }) => String(content));
    expect(results.filter((text) => text.includes("BUDGET_EXCEEDED"))).toHaveLength(2);
    second.answer("Done.");
    await room.until(over(id));
    expect(room.turn(id)).toMatchObject({ status: "completed", spent: { toolCalls: 6 } });
  });
});

describe("storage", () => {
  test("H4 LEDGER-1 heads of releases without a ledger count the usage that they have", () => {
    const head = unpackHead({ u: [3, 100, 0, 20, 7] });
    expect(head.spent).toEqual({ tokens: 120, nanoDollars: 7, toolCalls: 0, modelCalls: 3 });
    expect(packHead(head)).toEqual({ u: [3, 100, 0, 20, 7] });
  });

  test("BUDGET-7 a stored count of several agents without separate counts holds for each of them", () => {
    const { spent, spentBy } = unpackHead({ u: [3, 100, 0, 20, 7] });
    expect(spentBy).toBeUndefined();
    expect(spentByAgent({ spent }, "lawyer")).toEqual(spent);
  });
});
