/** Titles that a model writes: the real runtime with a model that the test steers. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { sideCalls } from "../../src/agents/conversation/core/side-calls.ts";
import { modelTitle } from "../../src/agents/conversation/core/titles.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { MAX_MODEL_TITLE, titledMessage, titleRequest } from "../../src/model/title-request.ts";
import type { TitlePolicy } from "../../src/policy/titles.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import { sideCallId } from "../../src/protocol/ids.ts";
import { hasSideCall } from "../support/running-work.ts";
import { type OpenRequest, SteeredConversation } from "../support/steered-model.ts";

const NO_TOOLS = defineLibrary("none", { tools: [] });
const ADA = { caller: { type: "user", userId: "ada" } } as const;
const QUESTION = "Which trains go from Vienna to Graz in the morning?";

interface Options {
  titler?: Partial<ModelProfile>;
  titles?: TitlePolicy;
  budget?: Budget;
}

function create(options: Options = { titler: {} }): Promise<SteeredConversation> {
  return SteeredConversation.create(NO_TOOLS, {}, {}, { titles: () => "message", ...options });
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
  while (hasSideCall(runtime)) await new Promise((resolve) => setImmediate(resolve));
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
      await turnOf(conversation, "And back?");
      expect([hasSideCall(conversation.runtime), conversation.untaken]).toEqual([false, 0]);
    }
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
    ["", null],
    ["\u3164\u2800", null],
    [`${"-a-".replace("a", "\u0301".repeat(70))}a\nTrains to Graz`, "Trains to Graz"],
    [`${"word ".repeat(30)}`, `${"word ".repeat(10)}word…`],
  ])("G24 TITLE-8 %j gives %j", (given, title) => {
    expect(modelTitle(given)).toBe(title);
  });

  test("G24 TITLE-8 a long line of marks costs little time", () => {
    const began = performance.now();
    expect(modelTitle(`a${"~".repeat(50_000)}a`)).toBe("a");
    expect(performance.now() - began).toBeLessThan(2_000);
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
