/** Titles that a model writes: the real runtime with a model that the test steers. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Erasure } from "../../src/agents/conversation/core/erase-entry.ts";
import { NEW_LEASE } from "../../src/agents/conversation/core/lease.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { planSideCall } from "../../src/agents/conversation/core/planning/side-call.ts";
import { sideCalls } from "../../src/agents/conversation/core/side-calls.ts";
import type {
  SideCallCompleted,
  SideCallSignal,
  Signal,
} from "../../src/agents/conversation/core/signals.ts";
import type { SideCall, Titling } from "../../src/agents/conversation/core/state.ts";
import { step } from "../../src/agents/conversation/core/step.ts";
import { modelTitle } from "../../src/agents/conversation/core/titles.ts";
import { beginTransition, type Transition } from "../../src/agents/conversation/core/transition.ts";
import { unsavedSideCall } from "../../src/agents/conversation/core/unsaved.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { isCompaction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import { MAX_MODEL_TITLE, titledMessage, titleRequest } from "../../src/model/title-request.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import type { Persona } from "../../src/protocol/definitions.ts";
import { sideCallId } from "../../src/protocol/ids.ts";
import { defined } from "../../src/shared/defined.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { MortalClock } from "../simulation/clocks.ts";
import { turnOfEvents } from "../support/histories.ts";
import { hasSideCall } from "../support/running-work.ts";
import { type OpenRequest, SteeredConversation } from "../support/steered-model.ts";

const NO_TOOLS = defineLibrary("none", { tools: [] });
const ADA = { caller: { type: "user", userId: "ada" } } as const;
const QUESTION = "Which trains go from Vienna to Graz in the morning?";

interface Options extends NonNullable<Parameters<typeof SteeredConversation.create>[3]> {
  history?: SessionEvent[];
  memory?: Persona["memory"];
  /** The budget of the conversation. */
  limits?: Budget;
}

function create({ history = [], memory = {}, limits, ...options }: Options = { titler: {} }) {
  const beginning = { history, ...defined({ budget: limits }) };
  return SteeredConversation.create(NO_TOOLS, beginning, memory, { titles: () => "message", ...options });
}

/** Runs a turn to its end. */
async function turnOf(conversation: SteeredConversation, says = QUESTION, answer = "At 7:58 and 9:58.") {
  const id = await conversation.say(says);
  const request = await conversation.request();
  if (answer === "") request.fail("No.");
  else request.answer(answer);
  await conversation.until(
    ({ type, turnId }) => type.startsWith("turn.") && type !== "turn.started" && turnId === id,
  );
  return id;
}

/** Runs the first turn. Returns the request for the title. */
async function asked(
  options?: Options,
): Promise<{ conversation: SteeredConversation; order: OpenRequest; id: string }> {
  const conversation = await create(options);
  const id = await turnOf(conversation);
  return { conversation, order: await conversation.request(), id };
}

/** Resolves when no side call runs. */
async function settled({ runtime }: SteeredConversation): Promise<void> {
  while (hasSideCall(runtime)) await breathe();
}

const titleOf = ({ runtime }: SteeredConversation) => runtime.state.record.title;

const entries = ({ runtime }: SteeredConversation) =>
  runtime.store.journal
    .forward(1, 1_000)
    .flatMap((row) => row.entries)
    .filter(({ type }) => type.startsWith("conversation.title.") || type === "conversation.updated");

const titlesIn = (conversation: SteeredConversation) =>
  conversation.frames.flatMap(({ type, data }) =>
    type === "conversation.updated" && "title" in data ? [data.title] : [],
  );

const titleCall = ({ runtime }: SteeredConversation) => (runtime.state.titling as Titling).call;

const leaseIn = ({ runtime }: SteeredConversation) => runtime.state.leases?.tester ?? NEW_LEASE;

/** The answer of an agent that has granted this many calls since the conversation began. */
const granted = (modelCalls: number) => ({
  granted: { tokens: 1e9, nanoDollars: 1e9, toolCalls: 0, modelCalls },
});

const breathe = () => new Promise((resolve) => setImmediate(resolve));

const errors = vi.spyOn(console, "error");
beforeEach(() => {
  errors.mockReset();
});
afterEach(() => {
  expect(errors).not.toHaveBeenCalled();
});

describe("G24 a title by a model", () => {
  test("G24 TITLE-6 TITLE-7 CALLS-3 describes the first answered turn, after its answer, once", async () => {
    const { conversation, order, id } = await asked();
    expect(titleOf(conversation)).toBe(QUESTION);
    expect(order.body.model).toBe("titler");
    expect(JSON.stringify(order.messages)).toContain("At 7:58");
    expect(order.messages.at(-1)?.content).toContain(JSON.stringify(QUESTION));
    const { usage: before } = conversation.runtime.state;
    order.answer('**"Morning trains from Vienna to Graz."**\n');
    await settled(conversation);
    const { usage, spent } = conversation.runtime.state;
    expect(titleOf(conversation)).toBe("Morning trains from Vienna to Graz");
    expect(titlesIn(conversation)).toEqual([QUESTION, "Morning trains from Vienna to Graz"]);
    expect([usage.calls - before.calls, usage.inputTokens - before.inputTokens]).toEqual([1, 100]);
    expect(spent.modelCalls).toBe(2);
    expect(entries(conversation)).toEqual([
      { type: "conversation.updated", data: { title: QUESTION, by: ADA.caller, automatic: true } },
      { type: "conversation.title.started", data: { agentId: "tester", turnId: id } },
      {
        type: "conversation.updated",
        data: {
          title: "Morning trains from Vienna to Graz",
          by: { type: "agent", agentId: "tester", turnId: id },
          automatic: true,
        },
      },
    ]);
    expect(conversation.runtime.dueIn).toBeNull();
    await turnOf(conversation, "And back?");
    expect([hasSideCall(conversation.runtime), conversation.untaken]).toEqual([false, 0]);
    expect((await conversation.restarted()).runtime.state.record.title).toMatch(/^Morning/);
  });

  test("G24 TITLE-6 waits for the first answer: a failed turn starts no call", async () => {
    const conversation = await create();
    await turnOf(conversation, "Hello?", "");
    expect(hasSideCall(conversation.runtime)).toBe(false);
    const id = await turnOf(conversation, "Trains to Graz?");
    const order = await conversation.request();
    order.answer("Trains to Graz");
    await settled(conversation);
    expect(titleOf(conversation)).toBe("Trains to Graz");
    expect(entries(conversation).at(-1)?.data).toMatchObject({ by: { turnId: id } });
  });

  test("G24 TITLE-5 TITLE-6 no profile, an opt-out, a person's title and a removed title start no call", async () => {
    const plain = await create({});
    await turnOf(plain);
    const none = await create({ titler: {}, titles: () => "none" });
    await turnOf(none);
    const named = await create();
    const first = await named.say(QUESTION);
    await named.runtime.changes.update({ ...ADA, title: "Mine" });
    (await named.request()).answer("Yes.");
    await named.until(({ type, turnId }) => type === "turn.completed" && turnId === first);
    const removed = await create();
    await turnOf(removed, "Hello?", "");
    await removed.runtime.changes.update({ ...ADA, title: null });
    await turnOf(removed);
    for (const one of [plain, none, named, removed])
      expect([hasSideCall(one.runtime), one.untaken]).toEqual([false, 0]);
    expect([plain, none, named, removed].map(titleOf)).toEqual([QUESTION, null, "Mine", null]);
  });

  test("G24 TITLE-1 TITLE-4 TITLE-6 a person decides for no title, before the first message, before its answer and during the call", async () => {
    const before = await create();
    await before.runtime.changes.update({ ...ADA, title: null });
    await turnOf(before);
    const during = await create();
    // A message without visible text gives no title.
    const id = await during.say("\u0007");
    await during.runtime.changes.update({ ...ADA, title: null });
    (await during.request()).answer("Pardon?");
    await during.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
    const late = await create();
    await turnOf(late, "\u0007", "Pardon?");
    const order = await late.request();
    await late.runtime.changes.update({ ...ADA, title: null });
    expect([order.isAborted(), hasSideCall(late.runtime), titleOf(late)]).toEqual([true, false, null]);
    for (const one of [before, during]) {
      expect([titleOf(one), hasSideCall(one.runtime), one.untaken]).toEqual([null, false, 0]);
      await one.runtime.changes.update({ ...ADA, title: null });
      expect(entries(one), "the same decision changes nothing").toEqual([
        { type: "conversation.updated", data: { title: null, by: ADA.caller } },
      ]);
      const next = await one.restarted();
      await turnOf(next);
      expect([titleOf(next), next.untaken]).toEqual([null, 0]);
      await next.runtime.changes.update({ ...ADA, title: "Mine" });
      expect(titleOf(next)).toBe("Mine");
    }
    const named = await create();
    for (const title of ["Mine", "Mine"]) await named.runtime.changes.update({ ...ADA, title });
    expect(entries(named)).toHaveLength(1);
    const later = await create({});
    await turnOf(later, "\u0007");
    await later.runtime.changes.update({ ...ADA, title: null });
    expect(entries(later), "no title could follow").toEqual([]);
  });

  test("G24 TITLE-6 a first message without visible text gets its title from the answer only", async () => {
    const conversation = await create();
    await turnOf(conversation, "\u0007", "Pardon?");
    (await conversation.request()).answer("An empty message");
    await settled(conversation);
    expect(titlesIn(conversation)).toEqual(["An empty message"]);
    const failed = await create();
    await turnOf(failed, "\u0007", "");
    await turnOf(failed);
    expect([titleOf(failed), failed.untaken]).toEqual([null, 0]);
  });

  test("G24 TITLE-6 an unlisted conversation gets no title", async () => {
    const conversation = await create({ titler: {}, record: { listed: false } });
    await turnOf(conversation);
    expect([titleOf(conversation), conversation.untaken]).toEqual([null, 0]);
    expect(entries(conversation)).toEqual([]);
  });

  test("G24 TITLE-7 the end of another turn during the call starts no other call", async () => {
    const { conversation, order } = await asked();
    await turnOf(conversation, "And back?");
    expect(conversation.untaken).toBe(0);
    order.answer("Trains");
    await settled(conversation);
    expect(titleOf(conversation)).toBe("Trains");
    expect(entries(conversation).filter(({ type }) => type.endsWith(".started"))).toHaveLength(1);
  });

  test.each([false, true])(
    "G24 TITLE-7 TITLE-9 SELFCOMPACT-1 the end of a turn starts a summary and a title, and each has its own end (renamed: %s)",
    async (isRenamed) => {
      const words = "word ".repeat(200);
      const history = [0, 1, 2, 3]
        .flatMap((n) => turnOfEvents(n, words, [], words))
        .map((event, seq) => ({ ...event, seq }));
      const conversation = await create({ titler: {}, history, memory: { contextTokens: 2_000 } });
      await turnOf(conversation, `Hello? ${words}`);
      const both = [await conversation.request(), await conversation.request()];
      const [order, summary] = both.toSorted((one) => (one.body.model === "titler" ? -1 : 1));
      expect(sideCalls(conversation.runtime.state)).toHaveLength(2);
      if (isRenamed) await conversation.runtime.changes.update({ ...ADA, title: "Mine" });
      else order?.answer("Greetings");
      while (conversation.runtime.state.titling !== undefined) await breathe();
      expect(titleOf(conversation)).toBe(isRenamed ? "Mine" : "Greetings");
      expect([order, summary].map((one) => one?.isAborted())).toEqual([isRenamed, false]);
      summary?.answer("Ada greets.");
      await settled(conversation);
      const events = conversation.runtime.store.events.load("tester", { limit: 100 });
      expect(events.filter(isCompaction)).toMatchObject([
        { content: expect.stringContaining("Ada greets.") },
      ]);
      expect(conversation.runtime.state.usage.calls).toBe(3);
    },
  );

  test("G24 TITLE-7 a stop in the commit of the first answer ends the call for good", async () => {
    const conversation = await create();
    await conversation.say("\u0007");
    const { state } = conversation.runtime;
    const item = state.active.get(1)?.call?.item ?? 0;
    const signals: Signal[] = [
      {
        type: "conversation.llm.completed",
        ...{ turn: 1, item, attempt: 1 },
        reply: { text: "Pardon?", toolCalls: [], finishReason: "stop" },
        facts: { startedAt: 1, finishedAt: 2 },
      },
      { type: "conversation.cancel", ...ADA },
      { type: "conversation.resume", ...ADA },
    ];
    const input = { now: 5, stem: "", gate: allowAll, isTitled: () => true };
    const steps: Transition[] = [beginTransition(state)];
    for (const signal of signals) steps.push(step(steps.at(-1) as Transition, signal, input));
    expect(steps.map((one) => one.state.titling !== undefined)).toEqual([false, true, false, false]);
  });

  test("G24 TITLE-7 PARTY-5 the call ends with the part of its agent, and not with the part of another", async () => {
    for (const leaves of ["lawyer", "baker"]) {
      const conversation = await create();
      for (const id of ["lawyer", "baker"]) await conversation.join({ type: "agent", id });
      const id = await conversation.say(QUESTION, { to: "lawyer" });
      (await conversation.request()).answer("At 7:58.");
      await conversation.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
      const order = await conversation.request();
      await conversation.leave({ type: "agent", id: leaves });
      expect(order.isAborted()).toBe(leaves === "lawyer");
      order.answer("Trains");
      await settled(conversation);
      expect(titleOf(conversation)).toBe(leaves === "lawyer" ? QUESTION : "Trains");
    }
  });

  test("G24 TITLE-7 keeps the title of the message if the model fails, is unfinished or calls tools, and tries no more", async () => {
    const ends: ((order: OpenRequest) => void)[] = [
      (order) => order.fail("No."),
      (order) => order.answer(" \n**\n"),
      (order) => order.call(["look", {}]),
    ];
    for (const end of ends) {
      const { conversation, order, id } = await asked();
      end(order);
      await settled(conversation);
      expect(titleOf(conversation)).toBe(QUESTION);
      expect(conversation.turn(id).status).toBe("completed");
      expect(entries(conversation).at(-1)).toMatchObject({
        type: "conversation.title.failed",
        data: { attempt: 1, final: true, code: "MODEL_FAILED", turnId: id },
      });
      const next = await conversation.restarted();
      await turnOf(next, "And back?");
      expect([hasSideCall(next.runtime), next.untaken]).toEqual([false, 0]);
    }
  });

  test("G24 TITLE-7 gives up after three attempts that fail", async () => {
    const world = new VirtualClock();
    const { conversation, order } = await asked({ titler: {}, clock: world });
    order.fail("Busy.", true);
    for (const attempt of [2, 3]) {
      while (titleCall(conversation).attempt < attempt) await breathe();
      await world.advance(titleCall(conversation).notBefore - world.now());
      (await conversation.request()).fail("Busy.", true);
    }
    await settled(conversation);
    expect(entries(conversation).at(-1)?.data).toMatchObject({ attempt: 3, final: true, message: "Busy." });
    expect([conversation.untaken, titleOf(conversation)]).toEqual([0, QUESTION]);
  });

  test("G24 TITLE-7 SELFCOMPACT-4 BUDGET-1 LEDGER-3 a crash repeats the call as its next attempt, counts it, and gives up after three", async () => {
    let { conversation } = await asked({ titler: {}, budget: { modelCalls: 10 } });
    for (const attempt of [2, 3]) {
      expect(conversation.runtime.busy).toBe(false);
      expect(conversation.runtime.dueIn, "a wake-up while only the title is written").not.toBeNull();
      conversation = await conversation.restarted();
      await conversation.request();
      const [running] = sideCalls(conversation.runtime.state);
      expect([running?.call.attempt, conversation.runtime.state.spent.modelCalls]).toEqual([
        attempt,
        attempt,
      ]);
    }
    conversation = await conversation.restarted();
    expect([conversation.untaken, conversation.runtime.dueIn]).toEqual([0, null]);
    expect(conversation.runtime.state.spent.modelCalls).toBe(4);
    expect(titleOf(conversation)).toBe(QUESTION);
    expect(entries(conversation).at(-1)?.data).toMatchObject({
      attempt: 3,
      final: true,
      code: "RECOVERY_EXHAUSTED",
    });
    await turnOf(conversation, "And back?");
    expect(hasSideCall(conversation.runtime)).toBe(false);
  });

  test("G24 TITLE-9 LEDGER-1 a person's title ends the call and its cost is charged; a late reply changes nothing", async () => {
    const { conversation, order } = await asked();
    const { usage } = conversation.runtime.state;
    order.say("Morning");
    order.count();
    await new Promise((resolve) => setImmediate(resolve));
    await conversation.runtime.changes.update({ ...ADA, title: "Mine" });
    expect(order.isAborted()).toBe(true);
    expect(hasSideCall(conversation.runtime)).toBe(false);
    expect(conversation.runtime.state.usage.inputTokens - usage.inputTokens).toBe(100);
    order.answer(" trains");
    await turnOf(conversation, "And back?");
    expect(titleOf(conversation)).toBe("Mine");
    expect(entries(conversation).slice(-2)).toMatchObject([
      { data: { code: "CANCELLED", final: true } },
      { data: { title: "Mine" } },
    ]);
  });

  test("G24 TITLE-1 TITLE-9 a person keeps the shown title, before the first answer and during the call", async () => {
    const early = await create();
    const id = await early.say(QUESTION);
    await early.runtime.changes.update({ ...ADA, title: QUESTION });
    (await early.request()).answer("At 7:58.");
    await early.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
    expect(hasSideCall(early.runtime)).toBe(false);

    const { conversation, order } = await asked();
    await conversation.runtime.changes.update({ ...ADA, title: QUESTION });
    expect(order.isAborted()).toBe(true);
    order.answer("Morning trains");
    await turnOf(conversation, "And back?");
    expect(titleOf(conversation)).toBe(QUESTION);
    const before = entries(conversation).length;
    await conversation.runtime.changes.update({ ...ADA, title: QUESTION });
    expect(entries(conversation)).toHaveLength(before);
  });

  test("G24 TITLE-7 STOP-2 LIFE-3 a stop and the end of the conversation end the call for good", async () => {
    const ends: ((one: SteeredConversation) => Promise<unknown>)[] = [
      async (one) => {
        await one.stopAll();
        await one.runtime.changes.resume(ADA);
        await turnOf(one, "And back?");
      },
      (one) => one.end(),
    ];
    for (const end of ends) {
      const { conversation, order } = await asked();
      await end(conversation);
      expect(order.isAborted()).toBe(true);
      expect([hasSideCall(conversation.runtime), conversation.untaken]).toEqual([false, 0]);
      expect([titleOf(conversation), conversation.runtime.dueIn]).toEqual([QUESTION, null]);
    }
  });

  test("G24 BUDGET-5 a title that does not fit the budget is not written", async () => {
    const conversation = await create({ titler: {}, budget: { modelCalls: 1 } });
    await turnOf(conversation);
    expect(conversation.untaken).toBe(0);
    expect(titleOf(conversation)).toBe(QUESTION);
    expect(entries(conversation).at(-1)?.data).toMatchObject({ code: "BUDGET_EXCEEDED", final: true });
  });

  test("G24 BUDGET-1 LEDGER-3 the call reserves its request and its limit of tokens, and a crash is charged with both", async () => {
    for (const [titler, limit] of [
      [{}, 2_048],
      [{ parameters: { max_tokens: 9_000 } }, 2_048],
      [{ parameters: { max_tokens: 30 } }, 30],
    ] as const) {
      const { conversation, order } = await asked({ titler, limits: { tokens: 100_000 } });
      expect(order.body.max_tokens).toBe(limit);
      const { inputTokens = 0, outputTokens } = titleCall(conversation).reserved ?? {};
      expect(outputTokens).toBe(limit);
      const before = conversation.runtime.state.spent.tokens;
      const crashed = await conversation.restarted();
      await crashed.request();
      expect(crashed.runtime.state.spent.tokens - before).toBe(inputTokens + limit);
      // The provider has not counted yet, so the charge is the estimate of the request.
      await crashed.stopAll();
      expect(crashed.runtime.state.spent.tokens - before).toBe(2 * inputTokens + limit);
    }
  });

  test("G24 BUDGET-2 the call counts against the budgets of turns meanwhile: of the conversation, and of its own agent", async () => {
    for (const budget of [{ limits: { modelCalls: 3 } }, { budget: { modelCalls: 3 } }]) {
      const { conversation, order } = await asked({ titler: {}, ...budget });
      const fits = await conversation.say("And back?");
      const beyond = await conversation.say("And by bus?");
      expect(conversation.turn(beyond).error?.code).toBe("BUDGET_EXCEEDED");
      (await conversation.request()).answer("At 17:58.");
      order.answer("Trains");
      await settled(conversation);
      await conversation.until(({ type, turnId }) => type === "turn.completed" && turnId === fits);
      expect([titleOf(conversation), conversation.runtime.state.spent.modelCalls]).toEqual(["Trains", 3]);
    }
    const { conversation } = await asked({ titler: {}, budget: { modelCalls: 3 } });
    await conversation.join({ type: "agent", id: "lawyer" }, "You know the law.", {
      budget: { modelCalls: 1 },
    });
    const other = await conversation.say("Is it legal?", { to: "lawyer" });
    (await conversation.request()).answer("Yes.");
    await conversation.until(({ type, turnId }) => type === "turn.completed" && turnId === other);
  });

  test("G24 BUDGET-5 LEDGER-1 a lower budget ends the call that no longer fits, and its request is charged", async () => {
    const { conversation, order } = await asked({ titler: {}, limits: { modelCalls: 3 } });
    await conversation.runtime.changes.update({ ...ADA, budget: { modelCalls: 2 } });
    expect([order.isAborted(), hasSideCall(conversation.runtime)]).toEqual([false, true]);
    await conversation.runtime.changes.update({ ...ADA, budget: { modelCalls: 1 } });
    expect([order.isAborted(), hasSideCall(conversation.runtime)]).toEqual([true, false]);
    expect(entries(conversation).at(-1)?.data).toMatchObject({ code: "BUDGET_EXCEEDED", final: true });
    expect([titleOf(conversation), conversation.runtime.state.spent.modelCalls]).toEqual([QUESTION, 2]);
  });

  test("G24 LEASE-6 LEASE-7 LEASE-8 the call waits for a lease, keeps it, and returns it", async () => {
    const first = await create({ titler: {}, leased: true });
    const id = await first.say(QUESTION);
    await first.answerLease(granted(1));
    (await first.request()).answer("At 7:58.");
    await first.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
    expect([first.untaken, titleCall(first).leasing]).toEqual([0, true]);
    expect(first.runtime.dueIn).not.toBeNull();
    const conversation = await first.restarted();
    expect([conversation.untaken, titleCall(conversation)]).toEqual([0, titleCall(first)]);
    expect(conversation.runtime.state.spent.modelCalls).toBe(1);
    await conversation.answerLease(granted(2));
    const order = await conversation.request();
    expect(leaseIn(conversation).granted.modelCalls).toBe(2);
    expect(titleCall(conversation).leasing).toBeUndefined();
    // The wake-up starts no other attempt.
    conversation.runtime.reconcile();
    expect(conversation.untaken).toBe(0);
    await conversation.answerLease(granted(2));
    expect(leaseIn(conversation)).toMatchObject({ granted: { modelCalls: 2 }, spent: { modelCalls: 1 } });
    order.answer("Trains");
    await settled(conversation);
    const { granted: left, spent, asked: open } = leaseIn(conversation);
    expect([titleOf(conversation), spent.modelCalls, open]).toEqual(["Trains", 2, undefined]);
    expect(left).toEqual(spent);
  });

  test("G24 BUDGET-5 LEASE-8 the refusal of a lease ends the call, no turn fails, and the rest is returned", async () => {
    const conversation = await create({ titler: {}, leased: true });
    const id = await conversation.say(QUESTION);
    await conversation.answerLease(granted(1));
    (await conversation.request()).answer("At 7:58.");
    await conversation.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
    const excess = { scope: "agent", limit: "modelCalls", allowed: 1, used: 1, needed: 1 } as const;
    for (let n = 0; n < 2; n++) await conversation.answerLease({ ...granted(1), excess });
    expect(hasSideCall(conversation.runtime)).toBe(false);
    expect([conversation.turn(id).status, conversation.untaken]).toEqual(["completed", 0]);
    expect(entries(conversation).at(-1)?.data).toMatchObject({ code: "BUDGET_EXCEEDED", final: true });
    expect(leaseIn(conversation).granted).toEqual(leaseIn(conversation).spent);
    expect(titleOf(conversation)).toBe(QUESTION);
  });

  test("G24 TITLE-7 SELFCOMPACT-4 a failed attempt is repeated once, after its pause, also if the actor crashes during the pause", async () => {
    const world = new VirtualClock();
    const life = new MortalClock(world);
    const { conversation: first, order } = await asked({ titler: {}, clock: life });
    order.fail("Busy.", true);
    while (titleCall(first).attempt === 1) await breathe();
    life.die();
    const conversation = await first.restarted(new MortalClock(world));
    const { attempt, notBefore } = titleCall(conversation);
    expect([attempt, conversation.runtime.state.spent.modelCalls]).toEqual([2, 2]);
    expect(notBefore).toBeGreaterThan(world.now());
    await world.advance(notBefore - world.now() - 1);
    expect(conversation.untaken).toBe(0);
    await world.advance(1);
    conversation.runtime.reconcile();
    await world.advance(1_000);
    expect(conversation.untaken).toBe(1);
    (await conversation.request()).answer("Trains");
    await settled(conversation);
    expect([titleOf(conversation), conversation.runtime.state.spent.modelCalls]).toEqual(["Trains", 3]);
    expect(conversation.metrics).toMatchObject([{ outcome: { ok: true, attempts: 2 } }]);
    expect(conversation.usageChanges).toBe(1);
  });

  test("G24 TITLE-7 METRIC-2 a stop during the pause reports the attempt that failed", async () => {
    const world = new VirtualClock();
    const { conversation, order } = await asked({ titler: {}, clock: world });
    const { calls } = conversation.runtime.state.usage;
    conversation.metrics.splice(0);
    order.fail("Busy.", true);
    while (titleCall(conversation).attempt === 1) await breathe();
    await world.advance(50);
    await conversation.stopAll();
    const outcome = { errorCategory: "validation", attempts: 1, finishedAt: world.now() };
    expect(conversation.metrics).toMatchObject([{ outcome }]);
    expect(conversation.runtime.state.usage.calls).toBe(calls + 1);
  });

  test.each(["stored later", "stopped meanwhile"])(
    "G24 RUN-4 LEDGER-1 a title that could not be stored is %s: its request counts, and is not repeated",
    async (end) => {
      const { conversation, order } = await asked({ titler: {}, clock: new VirtualClock() });
      const { inputTokens } = conversation.runtime.state.usage;
      const transaction = vi.spyOn(conversation.database, "transaction");
      const fail = (error: Error) =>
        transaction.mockImplementationOnce(() => {
          throw error;
        });
      fail(new Error("The disk is full."));
      order.answer("Trains");
      while (transaction.mock.results.length === 0) await breathe();
      fail(new Error("The disk is still full."));
      conversation.runtime.reconcile();
      expect([hasSideCall(conversation.runtime), conversation.untaken]).toEqual([true, 0]);
      if (end === "stopped meanwhile") await conversation.stopAll();
      else conversation.runtime.reconcile();
      expect([hasSideCall(conversation.runtime), conversation.untaken]).toEqual([false, 0]);
      expect(titleOf(conversation)).toBe(end === "stored later" ? "Trains" : QUESTION);
      expect(conversation.runtime.state.usage.inputTokens - inputTokens).toBe(100);
      expect(errors).toHaveBeenCalledTimes(2);
      errors.mockReset();
    },
  );

  test("G24 RUN-4 TITLE-7 a title that can never be stored is given up, and its request counts", async () => {
    const { conversation, order } = await asked();
    const { inputTokens } = conversation.runtime.state.usage;
    vi.spyOn(conversation.database, "transaction").mockImplementationOnce(() => {
      throw new DramatisError("TOO_LARGE", "The row is too large.");
    });
    order.answer("Trains");
    await settled(conversation);
    expect(entries(conversation).at(-1)?.data).toMatchObject({
      final: true,
      message: "The row is too large.",
    });
    expect(titleOf(conversation)).toBe(QUESTION);
    expect(conversation.runtime.state.usage.inputTokens - inputTokens).toBe(100);
    expect(errors).toHaveBeenCalledOnce();
    errors.mockReset();
  });

  test("G24 TITLE-7 STOREDTIME-1 recovery leaves a call that waits for its time or for a lease, and charges its own reservation", async () => {
    const { conversation } = await asked();
    const reserved = { inputTokens: 7, outputTokens: 9 };
    const recovered = (call: Partial<SideCall>, wasSetBack = false) => {
      const { state } = conversation.runtime;
      const titling = { ...(state.titling as Titling), call: { attempt: 2, notBefore: 5_000, ...call } };
      const input = { now: 5_000, stem: "", gate: allowAll };
      return plan({ ...state, titling }, { type: "conversation.cmd.recover", wasSetBack }, input);
    };
    expect(recovered({ reserved })).toMatchObject([
      { type: "RETRY_SIDE_CALL", session: "tester", title: true, notBefore: 5_000, crashed: reserved },
    ]);
    expect(recovered({ reserved, attempt: 3 })).toMatchObject([
      { type: "GIVE_UP_SIDE_CALL", crashed: reserved },
    ]);
    expect(recovered({ notBefore: 5_001 })).toEqual([]);
    expect(recovered({ notBefore: 5_001 }, true)).toHaveLength(1);
    expect(recovered({ leasing: true })).toEqual([]);
  });

  test("G24 TITLE-9 ERASE-5 an erasure ends the call only if it changes the turn that the title describes", async () => {
    const { conversation } = await asked();
    const { state } = conversation.runtime;
    const compaction = {
      ...{ turn: 1, cover: 2, upTo: 2, tokens: 9, startedAt: 1 },
      call: titleCall(conversation),
    };
    const stopped = (n: number) => {
      const lists = { formerTitles: [], attachments: [], results: [], conversations: [], runs: [] };
      // SAFETY: planning reads the number of a turn only.
      const erasure = { turn: n, item: 0, turns: [{ n }], ...lists } as unknown as Erasure;
      const signal: Signal = { type: "conversation.entry.erase", ...ADA, erasure, envelopes: [] };
      const input = { now: 5, stem: "", gate: allowAll };
      return plan({ ...state, compactions: { tester: compaction } }, signal, input).slice(0, -1);
    };
    expect(stopped(1)).toMatchObject([{ type: "STOP_SIDE_CALL", session: "tester", title: true }]);
    expect(stopped(2)).toEqual([]);
  });

  test("G24 TITLE-7 the outcomes of other calls do not reach the title", async () => {
    const { conversation } = await asked();
    const { state } = conversation.runtime;
    const outcome: SideCallCompleted = {
      type: "conversation.side_call.completed",
      ...{ session: "tester", title: true as const, begunBy: 1, attempt: 1 },
      reply: { text: "Trains", toolCalls: [], finishReason: "stop" },
      facts: { startedAt: 1, finishedAt: 2 },
    };
    const { title: _title, ...summary } = outcome;
    const types = (signal: SideCallSignal) =>
      planSideCall(state, signal, { now: 1, stem: "", gate: allowAll }).map(({ type }) => type);
    expect(types(outcome)).toEqual(["TITLE"]);
    const [running] = sideCalls(state);
    const unsaved = (signal: Signal) => running && unsavedSideCall([signal], running);
    expect(unsaved(outcome)).toBe(outcome.facts);
    const others = [{ attempt: 2 }, { begunBy: 2 }, { session: "lawyer" }].map((one) => ({
      ...outcome,
      ...one,
    }));
    for (const other of [...others, summary]) {
      expect(types(other)).toEqual([]);
      expect(unsaved(other)).toBeUndefined();
    }
    expect(types({ ...outcome, reply: { ...outcome.reply, finishReason: "length" } })).toEqual([
      "GIVE_UP_SIDE_CALL",
    ]);
    const toolCalls = [{ id: "c", name: "look", arguments: {} }];
    expect(types({ ...outcome, reply: { ...outcome.reply, toolCalls } })).toEqual(["GIVE_UP_SIDE_CALL"]);
  });

  test("G24 METRIC-2 SPANS-2 is reported once, with all of its attempts", async () => {
    const { conversation, order, id } = await asked();
    conversation.metrics.splice(0);
    order.answer("Trains");
    await settled(conversation);
    const turn = conversation.queries.requireTurn(conversation.runtime.state, id);
    expect(conversation.metrics).toMatchObject([
      { outcome: { ok: true, attempts: 1 }, info: { requestId: sideCallId(turn, { title: true }) } },
    ]);
  });
});

describe("G24 the text of a title", () => {
  const noise = fc.constantFrom(
    "\n",
    "**",
    "*",
    "_",
    '"',
    "“",
    "# ",
    "- ",
    "`",
    "\u0000",
    "\u202e",
    "😀",
    "Title: ",
    ".",
    " ",
    "[",
    "](u)",
    "<think>",
    "</think>",
  );
  const reply = fc.array(fc.oneof(noise, fc.string({ unit: "binary", maxLength: 30 })), { maxLength: 12 });

  test("G24 TITLE-8 is one line of at most 60 characters without control characters, markdown and quotes around it", () => {
    fc.assert(
      fc.property(reply, (parts) => {
        const title = modelTitle(parts.join(""));
        if (title === null) return;
        expect(title.length).toBeLessThanOrEqual(MAX_MODEL_TITLE);
        expect(title.isWellFormed()).toBe(true);
        expect(title).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069\u2028\u2029]|\*\*|__|`/u);
        expect(title).toBe(title.trim());
        expect(title).not.toMatch(/^["“#*]|["”*]$/u);
        expect(title).toMatch(/[\p{L}\p{N}\p{S}]/u);
      }),
    );
  });

  test("G24 TITLE-8 the thoughts of a model, the marks of Markdown and the addresses of links are removed, and the words stay", () => {
    const word = fc.stringMatching(/^[a-zäß0-9]{1,6}$/u);
    const marks: ((text: string) => string)[] = [
      (text) => `*${text}*`,
      (text) => `_${text}_`,
      (text) => `**${text}**`,
      (text) => `~~${text}~~`,
      (text) => `\`${text}\``,
      (text) => `[${text}](https://a.example/b_(c)?d=*e*)`,
      (text) => `![${text}](<data:,x> "Image")`,
      (text) => text,
    ];
    const marked = fc
      .tuple(word, fc.constantFrom(...marks))
      .map(([text, mark]) => ({ text, says: mark(text) }));
    const thoughts = fc.constantFrom(
      "",
      "<think>Title: No.</think>",
      `\n<think>\n${"Hm. ".repeat(1_000)}\n</think>\n\n`,
      "<think></think> <thinking>Hm.</thinking>\n",
      "Okay, the user wants a title.\n</think>\n\n",
    );
    fc.assert(
      fc.property(thoughts, fc.array(marked, { minLength: 1, maxLength: 7 }), (before, words) => {
        const says = words.map((one) => one.says).join(" ");
        expect(modelTitle(before + says)).toBe(words.map(({ text }) => text).join(" "));
      }),
    );
  });

  test.each([
    ["Trains to Graz", "Trains to Graz"],
    ['"Trains to Graz."', "Trains to Graz"],
    ["Title: **Trains to Graz**", "Trains to Graz"],
    ["\n\n## „Züge nach Graz“\nMore text.", "Züge nach Graz"],
    ["「グラーツへの列車」", "グラーツへの列車"],
    ["Why …", "Why …"],
    ["What's new in C#?", "What's new in C#?"],
    ["3. Advent", "3. Advent"],
    ["Trains to***`*- Graz", "Trains to- Graz"],
    ["Trains_``_to Graz", "Trainsto Graz"],
    ["---\n***", null],
    ["*Title:* [**Trains**](https://oebb.at) to _*Graz*_", "Trains to Graz"],
    ["snake_case_name, 3*4*5 and 2 * 3 * 4", "snake_case_name, 3*4*5 and 2 * 3 * 4"],
    ["handlers[name](event) in [old] code", "handlers[name](event) in [old] code"],
    ["The mark </think> in replies", "The mark </think> in replies"],
    ["<think>I never say it", null],
    ["[](https://oebb.at)", null],
    ["", null],
    ["\u3164\u2800", null],
    [`${"-a-".replace("a", "\u0301".repeat(70))}a\nTrains to Graz`, "Trains to Graz"],
    [`${"word ".repeat(30)}`, `${"word ".repeat(10)}word…`],
  ])("G24 TITLE-8 %j gives %j", (given, title) => {
    expect(modelTitle(given)).toBe(title);
  });

  test("G24 TITLE-8 a long line of marks is read", () => {
    expect(modelTitle(`a${"~".repeat(50_000)}a`)).toBe("a");
  });

  test("G24 TITLE-6 the request quotes the message as data, on one line, and at most 2 000 characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 3_000 }), fc.string(), (message, answer) => {
        const [order] = titleRequest(message, answer).messages;
        expect(titledMessage(order?.content ?? "")).toBe(message.trim().slice(0, 2_000).toWellFormed());
      }),
    );
    expect(titledMessage('Message: "no order"')).toBeUndefined();
  });
});
