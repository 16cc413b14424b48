/** Conversations that compact themselves, and requests that must fit: the real runtime with a model that the test steers. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { dueCut, planCompactions } from "../../src/agents/conversation/core/planning/compaction.ts";
import { summaryContext } from "../../src/agents/conversation/core/planning/context.ts";
import { fittedMoves } from "../../src/agents/conversation/core/planning/moves.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { planSideCall } from "../../src/agents/conversation/core/planning/side-call.ts";
import { reduce } from "../../src/agents/conversation/core/reducer.ts";
import { sideCallKey, sideCalls } from "../../src/agents/conversation/core/side-calls.ts";
import type { SideCallCompleted } from "../../src/agents/conversation/core/signals.ts";
import { chainOf } from "../../src/agents/conversation/core/state.ts";
import { beginTransition } from "../../src/agents/conversation/core/transition.ts";
import { SessionWindow } from "../../src/agents/conversation/effects/session-window.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { contextTokens } from "../../src/library/definitions/version-chain.ts";
import { summaryContent } from "../../src/memory/session/compaction.ts";
import { cutOf, type WindowSizes, windowTokens } from "../../src/memory/session/cut.ts";
import { EventStore } from "../../src/memory/session/event-store.ts";
import { LongText } from "../../src/memory/session/long-text.ts";
import { EventAction, isCompaction } from "../../src/memory/session/session-event.ts";
import { estimateTokens, messageTokens } from "../../src/memory/session/tokens.ts";
import { exceedsContext } from "../../src/model/error.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelProfile, ProviderId } from "../../src/model/profile.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { sideCallId, turnId } from "../../src/protocol/ids.ts";
import { turnOfEvents } from "../support/histories.ts";
import { PLAIN_CHAIN, recordOf } from "../support/records.ts";
import { hasSideCall } from "../support/running-work.ts";
import { type OpenRequest, SteeredConversation } from "../support/steered-model.ts";
import { checkByRules } from "../support/strict-apis.ts";

/** A text of about this number of tokens. */
const words = (count: number, word = "word") => Array.from({ length: count }, () => word).join(" ");

const NO_TOOLS = defineLibrary("none", { tools: [] });
const MEMORY = { contextTokens: 2_000 };
const STOP = { caller: { type: "user", userId: "ada" } } as const;

const isOrder = ({ messages }: OpenRequest) =>
  String(messages.at(-1)?.content).startsWith("This is an order of the platform");

const frames = (conversation: SteeredConversation) => conversation.frames.map(({ type }) => type);

/** Runs a turn of about `tokens` tokens to its end. Returns its request. */
async function turnOf(conversation: SteeredConversation, n: number, tokens = 400): Promise<OpenRequest> {
  const id = await conversation.say(`${n} ${words(tokens / 2)}`);
  const request = await conversation.request();
  expect(isOrder(request)).toBe(false);
  request.answer(`${n} ${words(tokens / 2)}`);
  await conversation.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
  return request;
}

/** Fills the history until a compaction runs. Returns the last turn's request and the request for a summary. */
async function filled(conversation: SteeredConversation, tokens = 400) {
  for (let n = 1; ; n++) {
    const last = await turnOf(conversation, n, tokens);
    if (hasSideCall(conversation.runtime)) return { last, order: await conversation.request(), turns: n };
    expect(n * tokens, "tokens until the budget is full").toBeLessThan(2_000);
  }
}

/** Resolves when no compaction runs. */
async function settled({ runtime }: SteeredConversation): Promise<void> {
  while (hasSideCall(runtime)) await new Promise((resolve) => setImmediate(resolve));
}

const entries = ({ runtime }: SteeredConversation) =>
  runtime.store.journal
    .forward(1, 1_000)
    .flatMap((row) => row.entries)
    .filter(({ type }) => type.startsWith("context."));

const errors = vi.spyOn(console, "error");
beforeEach(() => {
  errors.mockReset();
});
afterEach(() => {
  expect(errors).not.toHaveBeenCalled();
});

describe("a conversation", () => {
  test("SELFCOMPACT-1 starts one compaction if several turns end in one commit", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    for (let n = 1; n <= 3; n++) await turnOf(conversation, n, 450);
    await conversation.say(`4 ${words(500)}`);
    await conversation.say(`5 ${words(500)}`);
    await conversation.runtime.changes.update({ ...STOP, order: "interrupt" });
    const last = await conversation.say("6");
    await conversation.until(({ type, turnId }) => type === "turn.started" && turnId === last);
    expect(entries(conversation).map(({ type }) => type)).toEqual(["context.compaction.started"]);
  });

  test("SELFCOMPACT-1 SELFCOMPACT-2 SELFCOMPACT-5 CALLS-3 compacts itself when its budget is full, and no turn waits", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { last, order, turns } = await filled(conversation);
    expect(isOrder(order)).toBe(true);
    // The instructions and the whole turns up to the cut, as the last turn was sent them.
    const prefix = order.messages.slice(0, -1);
    expect(prefix).toEqual(last.messages.slice(0, prefix.length));
    expect(prefix.length).toBeGreaterThan(2);
    expect(prefix.at(-1)?.role).toBe("assistant");

    const during = await turnOf(conversation, turns + 1);
    expect(during.messages.slice(0, prefix.length)).toEqual(prefix);
    const before = conversation.runtime.state.usage;
    order.answer("The user counts.");
    await settled(conversation);
    const { usage } = conversation.runtime.state;
    expect(usage.calls - before.calls).toBe(1);
    expect(usage.inputTokens - before.inputTokens).toBe(100);

    const next = await turnOf(conversation, turns + 2);
    const [, summary, first] = next.messages;
    expect(summary?.role).toBe("system");
    expect(summary?.content).toContain("The user counts.");
    const covered = (prefix.length - 1) / 2;
    expect(first?.content).toContain(`${covered + 1} word`);
    expect(entries(conversation).map(({ type }) => type)).toEqual([
      "context.compaction.started",
      "context.compacted",
    ]);
    expect(entries(conversation)[1]?.data).toEqual({
      agentId: "tester",
      events: 2 * covered,
      tokens: expect.any(Number),
    });
    const events = conversation.runtime.store.events.load("tester", { limit: 100 });
    expect(events.filter(isCompaction)).toHaveLength(1);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index));
    const seen = JSON.stringify([
      conversation.queries.messages(conversation.runtime.state),
      conversation.frames,
    ]);
    expect(seen).not.toContain("The user counts.");
    expect(frames(conversation).filter((type) => type.startsWith("context."))).toEqual([]);
  });

  test("SELFCOMPACT-2 a cycle that has begun keeps its history when a compaction commits", async () => {
    const library = defineLibrary("lib", {
      tools: [
        defineTool({
          name: "look",
          description: "Looks.",
          input: z.object({}),
          effect: "pure",
          execute: () => "seen",
        }),
      ],
    });
    const conversation = await SteeredConversation.create(library, {}, MEMORY);
    const { order, turns } = await filled(conversation);
    await conversation.say(`${turns + 1} look`);
    const first = await conversation.request();
    order.answer("Summary.");
    await settled(conversation);
    first.call(["look", {}]);
    const second = await conversation.request();
    expect(second.messages.slice(0, first.messages.length)).toEqual(first.messages);
    second.answer("Done.");
  });

  test("SELFCOMPACT-3 an incompressible history is tried once, the turns run, and more history is tried again", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { order, turns } = await filled(conversation, 200);
    order.answer(words(1_500));
    await settled(conversation);
    expect(entries(conversation).at(-1)?.data).toMatchObject({ attempt: 1, final: true });
    const failedAt = conversation.runtime.state.sessions.tester ?? 0;
    let n = turns;
    while (!hasSideCall(conversation.runtime)) {
      await turnOf(conversation, ++n, 200);
      expect(n).toBeLessThan(turns + 8);
    }
    expect(n - turns, "turns without another attempt").toBeGreaterThan(1);
    const again = await conversation.request();
    expect(isOrder(again)).toBe(true);
    const { cover } = conversation.runtime.state.compactions.tester ?? { cover: 0 };
    expect(cover).toBeGreaterThanOrEqual(failedAt);
    again.answer("Short.");
    await settled(conversation);
    expect(conversation.runtime.state.compactions).toEqual({});
  });

  test("SELFCOMPACT-3 a reply with calls is tried again without calls; a final failure is not", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { order } = await filled(conversation);
    order.call(["look", {}]);
    const again = await conversation.request();
    expect(again.messages).toEqual(order.messages);
    again.fail("No.");
    await settled(conversation);
    expect(entries(conversation).map(({ data }) => data)).toMatchObject([
      {},
      { attempt: 1, final: false },
      { attempt: 2, final: true, message: "No." },
    ]);
  });

  test("SELFCOMPACT-1 a stop ends the compaction, and a stopped conversation starts no compaction", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { order, turns } = await filled(conversation);
    await conversation.stopAll();
    expect(order.isAborted()).toBe(true);
    expect(hasSideCall(conversation.runtime)).toBe(false);
    expect(conversation.runtime.dueIn).toBeNull();
    await conversation.say("In vain");
    expect(hasSideCall(conversation.runtime)).toBe(false);
    await conversation.runtime.changes.resume({ caller: { type: "user", userId: "ada" } });
    await turnOf(conversation, turns + 2, 20);
    expect(isOrder(await conversation.request())).toBe(true);
  });

  test("SELFCOMPACT-1 CALLS-3 a stop counts the interrupted call for a summary, and its usage", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { order } = await filled(conversation);
    const { usage: before } = conversation.runtime.state;
    const changes = conversation.usageChanges;
    order.say("The user");
    order.count();
    await new Promise((resolve) => setImmediate(resolve));
    await conversation.stopAll();
    const { usage } = conversation.runtime.state;
    expect(usage.calls - before.calls).toBe(1);
    expect(usage.inputTokens - before.inputTokens).toBe(100);
    expect(conversation.usageChanges - changes).toBe(1);
    expect(entries(conversation).at(-1)).toMatchObject({
      type: "context.compaction.failed",
      data: { attempt: 1, final: true, code: "CANCELLED" },
    });
    // The rest changes no usage, and is not counted again.
    await conversation.runtime.changes.resume(STOP);
    await conversation.stopAll();
    expect(conversation.runtime.state.usage).toEqual(usage);
    expect(conversation.usageChanges - changes).toBe(1);
  });

  test("METRIC-2 a call for a summary is reported once, with all of its attempts", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { order, turns } = await filled(conversation);
    const { turn } = conversation.runtime.state.compactions.tester ?? { turn: 0 };
    const of = conversation.queries.requireTurn(
      conversation.runtime.state,
      conversation.frames.findLast(({ type }) => type === "turn.completed")?.turnId ?? "",
    );
    expect(of.n).toBe(turn);
    expect(conversation.metrics.splice(0)).toHaveLength(turns);
    order.count();
    order.call(["look", {}]);
    const again = await conversation.request();
    expect(conversation.metrics).toEqual([]);
    again.answer("Short.");
    await settled(conversation);
    expect(conversation.metrics.splice(0)).toMatchObject([
      {
        span: "dramatis.chat",
        outcome: { ok: true, errorCategory: "none", attempts: 2 },
        info: { attempt: 2, requestId: sideCallId(of), correlationId: `conv_test:${turnId(of)}` },
        usage: { inputTokens: 200, outputTokens: 20 },
      },
    ]);
    let n = turns;
    while (!hasSideCall(conversation.runtime)) await turnOf(conversation, ++n);
    await conversation.request();
    conversation.metrics.splice(0);
    await conversation.stopAll();
    expect(conversation.metrics).toMatchObject([{ outcome: { errorCategory: "canceled", attempts: 1 } }]);
  });

  test("SELFCOMPACT-1 SELFCOMPACT-3 stops and resumes do not repeat the calls for a summary beyond its attempts", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    let { order, turns } = await filled(conversation);
    for (const attempt of [1, 2, 3]) {
      expect(isOrder(order)).toBe(true);
      expect(conversation.runtime.state.compactions.tester?.call?.attempt).toBe(attempt);
      await conversation.stopAll();
      expect(order.isAborted()).toBe(true);
      await conversation.runtime.changes.resume(STOP);
      await turnOf(conversation, ++turns, 20);
      if (attempt < 3) order = await conversation.request();
    }
    expect(hasSideCall(conversation.runtime)).toBe(false);
    const { calls } = conversation.runtime.state.usage;
    expect(calls).toBe(turns + 3);
  });

  test("SELFCOMPACT-1 a compaction after a stop is new: attempts and usage of the previous compaction do not count", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { turns } = await filled(conversation);
    const [first] = sideCalls(conversation.runtime.state);
    await conversation.stopAll();
    await conversation.runtime.changes.resume(STOP);
    await turnOf(conversation, turns + 1, 20);
    const { state } = conversation.runtime;
    const [second] = sideCalls(state);
    if (first === undefined || first.title || second === undefined) throw new Error("Both compactions ran.");
    expect(second).toMatchObject({ session: "tester", cover: first.cover });
    const { attempt } = second.call;
    const at = (attempts: number) => ({
      ...first,
      call: { ...first.call, attempt: attempts },
    });
    expect(sideCallKey(second)).not.toBe(sideCallKey(at(attempt)));
    const late: Omit<SideCallCompleted, "begunBy"> = {
      type: "conversation.side_call.completed",
      session: "tester",
      attempt,
      reply: { text: "Late.", toolCalls: [], finishReason: "stop" },
      facts: { startedAt: 1, finishedAt: 2 },
    };
    const input = { now: 1, stem: "", gate: allowAll };
    expect(planSideCall(state, { ...late, begunBy: first.turn }, input)).toEqual([]);
    expect(planSideCall(state, { ...late, begunBy: second.turn, attempt: 1 }, input)).toEqual([]);
    expect(planSideCall(state, { ...late, begunBy: second.turn }, input)).toHaveLength(1);
  });

  test("SELFCOMPACT-4 STOREDTIME-1 a crash counts the call that it may have interrupted, until no attempt is left", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    await filled(conversation);
    const [running] = sideCalls(conversation.runtime.state);
    if (running === undefined || running.title) throw new Error("A compaction runs.");
    const recovered = (attempt: number, notBefore: number, wasSetBack: boolean) => {
      const state = {
        ...conversation.runtime.state,
        active: new Map(),
        compactions: { tester: { ...running, call: { attempt, notBefore } } },
      };
      const input = { now: 5_000, stem: "", gate: allowAll };
      return plan(state, { type: "conversation.cmd.recover", wasSetBack }, input).map(({ type }) => type);
    };
    expect(recovered(1, 5_000, false)).toEqual(["RETRY_SIDE_CALL"]);
    expect(recovered(2, 4_000, false)).toEqual(["RETRY_SIDE_CALL"]);
    expect(recovered(3, 4_000, false)).toEqual(["GIVE_UP_SIDE_CALL"]);
    // It waits for its time. If the clock was set back, its time may have come.
    expect(recovered(2, 5_001, false)).toEqual([]);
    expect(recovered(2, 5_001, true)).toEqual(["RETRY_SIDE_CALL"]);
    expect(recovered(3, 5_001, true)).toEqual(["GIVE_UP_SIDE_CALL"]);
  });

  test("SELFCOMPACT-4 a compaction alone continues after a crash, as the next attempt, and is given up after three", async () => {
    let conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { order } = await filled(conversation);
    for (const attempt of [2, 3]) {
      expect(conversation.runtime.busy).toBe(false);
      expect(conversation.runtime.dueIn, "a wake-up while only a compaction runs").not.toBeNull();
      conversation = await conversation.restarted();
      const again = await conversation.request();
      expect(again.messages).toEqual(order.messages);
      expect(conversation.runtime.state.compactions.tester?.call?.attempt).toBe(attempt);
    }
    conversation = await conversation.restarted();
    expect(conversation.untaken).toBe(0);
    expect(hasSideCall(conversation.runtime)).toBe(false);
    expect(conversation.runtime.dueIn).toBeNull();
    expect(entries(conversation).map(({ data }) => data)).toMatchObject([
      {},
      { attempt: 1, final: false },
      { attempt: 2, final: false },
      { attempt: 3, final: true, code: "RECOVERY_EXHAUSTED" },
    ]);
  });

  test("SELFCOMPACT-3 a summary as long as the replaced text is refused, also within twice its target", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    await filled(conversation);
    const { state } = conversation.runtime;
    const [running] = sideCalls(state);
    if (running === undefined || running.title) throw new Error("A compaction runs.");
    const text = words(100);
    const size = estimateTokens(summaryContent(text));
    const replacing = (tokens: number) => {
      const compactions = { tester: { ...running, tokens } };
      const signal: SideCallCompleted = {
        type: "conversation.side_call.completed",
        session: "tester",
        begunBy: running.turn,
        attempt: 1,
        reply: { text, toolCalls: [], finishReason: "stop" },
        facts: { startedAt: 1, finishedAt: 2 },
      };
      const input = { now: 1, stem: "", gate: allowAll };
      return planSideCall({ ...state, compactions }, signal, input).map(({ type }) => type);
    };
    expect(size).toBeLessThan(400);
    expect(replacing(size + 1)).toEqual(["COMPACT_SESSION"]);
    expect(replacing(size)).toEqual(["GIVE_UP_SIDE_CALL"]);
  });

  test("CALLS-2 the usage of a failed attempt at a summary is counted, and its call once", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, MEMORY);
    const { order } = await filled(conversation);
    const { usage: before } = conversation.runtime.state;
    order.count();
    order.call(["look", {}]);
    const again = await conversation.request();
    expect(conversation.runtime.state.usage).toMatchObject({
      calls: before.calls,
      inputTokens: before.inputTokens + 100,
    });
    again.answer("Short.");
    await settled(conversation);
    expect(conversation.runtime.state.usage).toMatchObject({
      calls: before.calls + 1,
      inputTokens: before.inputTokens + 200,
      outputTokens: before.outputTokens + 20,
    });
  });

  test("CALLS-2 HEAD-1 the usage of a failed attempt at a summary is stored before any call has ended", async () => {
    const texts = [1, 2, 3, 4].map((n) => `${n} ${words(200)}`);
    const history = texts
      .flatMap((text, n) => turnOfEvents(n, text, [], text))
      .map((event, seq) => ({ ...event, seq }));
    const conversation = await SteeredConversation.create(NO_TOOLS, { history, order: "queued" }, MEMORY);
    await conversation.say("This turn has no answer.");
    await conversation.request();
    await conversation.stop(await conversation.say("This turn waits, and its end starts the compaction."));
    const order = await conversation.request();
    expect(isOrder(order)).toBe(true);
    order.count();
    order.call(["look", {}]);
    await conversation.request();
    const { usage, spent } = conversation.runtime.state;
    expect(usage).toMatchObject({ calls: 0, inputTokens: 100, outputTokens: 10 });
    expect(conversation.runtime.store.load()).toMatchObject({ usage, spent });
  });

  test("SELFCOMPACT-5 if the limit of turns cuts the history, the call for a summary begins like the previous turn", async () => {
    const memory = { contextTokens: 2_000, recentTurnsLimit: 3 };
    const conversation = await SteeredConversation.create(NO_TOOLS, {}, memory);
    const { last, order } = await filled(conversation, 450);
    const prefix = order.messages.slice(0, -1);
    expect(last.messages).toHaveLength(1 + 3 * 2 + 1);
    expect(prefix).toEqual(last.messages.slice(0, prefix.length));
    expect(prefix.length).toBeGreaterThan(1 + 2);
  });

  test("SELFCOMPACT-2 WINDOW-3 a cycle keeps its history when the window of its session is forgotten", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS);
    await turnOf(conversation, 1, 20);
    await conversation.say("Second");
    const { active, record, sessions } = conversation.runtime.state;
    const [turn] = active.values();
    if (turn === undefined) throw new Error("A turn is active.");
    const window = new SessionWindow(conversation.runtime.store.events);
    const history = () => window.messagesFor(turn, chainOf(record, "tester"), () => sessions.tester ?? 0);
    const before = history();
    window.forget();
    expect(history()).toBe(before);
    expect(before).toHaveLength(2);
  });

  test("ORDER-4 a call that is reconsidered does not count against its attempts", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS);
    await conversation.say("First");
    const { state } = conversation.runtime;
    const next = reduce(beginTransition(state), [{ type: "RECONSIDER", turn: 1, messages: ["Wait."] }], 1);
    expect(next.state.active.get(1)?.call).toMatchObject({ attempt: 2, before: 1 });
  });

  test("ORDER-3 a compaction with two jobs pending: the next request lists both; notes on active turns keep its prefix equal", async () => {
    let finish = () => {};
    const done = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const job = defineTool({
      name: "job",
      description: "Takes long.",
      input: z.object({ id: z.string() }),
      effect: "once",
      execute: async () => {
        await done;
        return "done";
      },
    });
    const conversation = await SteeredConversation.create(defineLibrary("lib", { tools: [job] }), {}, MEMORY);
    for (const id of ["first", "second"]) {
      await conversation.say(`Start ${id}`);
      (await conversation.request()).call(["job", { id }]);
      await conversation.until(
        (frame) => frame.type === "tool.requested" && JSON.stringify(frame.data).includes(id),
      );
    }
    const { order } = await filled(conversation);
    // Volatile notes follow the history. The call for a summary has no notes.
    expect(JSON.stringify(order.messages)).not.toContain("Other turns");
    order.answer("They count.");
    await settled(conversation);
    const next = await turnOf(conversation, 99, 20);
    const note = String(next.messages.at(-2)?.content);
    expect(note).toContain("first");
    expect(note).toContain("second");
    expect(next.messages[1]?.content).toContain("They count.");
    // A turn later, the messages up to the note are the same bytes.
    const later = await turnOf(conversation, 100, 20);
    const history = JSON.stringify(next.messages.slice(0, -2)).slice(0, -1);
    expect(JSON.stringify(later.messages).startsWith(history)).toBe(true);
    finish();
    for (const request of [await conversation.request(), await conversation.request()]) request.answer("Ok.");
  });

  test("FITS-1 a request that is too long is repeated once, with half of the history", async () => {
    const conversation = await SteeredConversation.create(NO_TOOLS);
    for (let n = 1; n <= 8; n++) await turnOf(conversation, n, 200);
    const id = await conversation.say("Too long?");
    const whole = await conversation.request();
    whole.fail("This model's maximum context length is 1000 tokens. However, your messages have 1700.");
    const cut = await conversation.request();
    const [{ call } = { call: null }] = conversation.runtime.state.active.values();
    expect(call, "the attempt before does not count").toMatchObject({ attempt: 2, before: 1 });
    const size = ({ messages }: OpenRequest) => estimateTokens(JSON.stringify(messages));
    expect(size(cut)).toBeLessThan(size(whole) * 0.6);
    expect(cut.messages[1]?.role).toBe("user");
    expect(cut.messages.at(-1)).toEqual(whole.messages.at(-1));
    cut.fail("prompt is too long: 1200 tokens > 1000 maximum");
    await conversation.until(({ type, turnId }) => type === "turn.failed" && turnId === id);
    expect(conversation.untaken).toBe(0);
    expect(conversation.turn(id).error).toMatchObject({ message: expect.stringContaining("too long") });
    const { messages } = await turnOf(conversation, 9, 20);
    expect(messages.length).toBeGreaterThan(whole.messages.length);
  });

  test("MOVES-1 MOVES-3 twelve results of 30 KB in 60 000 tokens: every request fits, and the turn completes", async () => {
    const read = defineTool({
      name: "read",
      description: "Reads a file.",
      input: z.object({ n: z.number() }),
      effect: "pure",
      execute: ({ n }) => words(6_000, `w${n}`),
    });
    const conversation = await SteeredConversation.create(defineLibrary("lib", { tools: [read] }));
    const id = await conversation.say("Read twelve files");
    const requests: OpenRequest[] = [];
    for (let n = 1; n <= 12; n++) {
      const request = await conversation.request();
      requests.push(request);
      request.call(["read", { n }]);
    }
    const final = await conversation.request();
    requests.push(final);
    final.answer("Read.");
    await conversation.until(({ type, turnId }) => type === "turn.completed" && turnId === id);
    const isPrefixed = requests.slice(1).map(({ messages }, index) => {
      const before = requests[index]?.messages ?? [];
      return JSON.stringify(messages.slice(0, before.length)) === JSON.stringify(before);
    });
    expect(isPrefixed.filter((is) => !is).length, "steps").toBeLessThanOrEqual(3);
    for (const { messages } of requests) {
      expect(estimateTokens(JSON.stringify(messages))).toBeLessThan(61_000);
      const results = messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
      for (const result of results.slice(0, -1)) expect(/^"?\(Left out: \d+|w\d/.test(result)).toBe(true);
      if (results.length > 0) expect(results.at(-1)).not.toContain("Left out");
    }
    expect(JSON.stringify(final.messages)).toContain("Left out");
  });
});

describe("the cut", () => {
  const sizes: fc.Arbitrary<WindowSizes> = fc
    .record({
      summaries: fc.nat(200),
      at: fc.nat(30),
      tokens: fc.array(fc.nat(900), { maxLength: 20 }),
    })
    .map(({ summaries, at, tokens }) => ({
      summaries,
      compactedAt: at * 3 - 1,
      turns: tokens.map((size, index) => ({ from: index * 3, tokens: size })),
    }));

  test("CUT-1 CUT-2 SELFCOMPACT-1 of any window is at a turn after the newest compaction, and keeps its share", () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 100, max: 4_000 }), (window, budget) => {
        const cut = dueCut(window, budget);
        if (windowTokens(window) <= budget * 0.8) expect(cut).toBeNull();
        if (cut === null) return;
        const index = window.turns.findIndex(({ from }) => from === cut.cover);
        expect(index).toBeGreaterThan(0);
        expect(cut.cover).toBeGreaterThan(window.compactedAt);
        const kept = windowTokens({ ...window, summaries: 0, turns: window.turns.slice(index) });
        expect(kept <= budget * 0.4 || index === window.turns.length - 1).toBe(true);
        expect(cut.tokens).toBe(windowTokens({ ...window, turns: window.turns.slice(0, index) }));
        // A smaller cut would keep more than its share.
        const earlier = window.turns.slice(1, index).filter(({ from }) => from > window.compactedAt);
        for (const { from } of earlier) {
          const rest = window.turns.filter((turn) => turn.from >= from);
          expect(windowTokens({ ...window, summaries: 0, turns: rest })).toBeGreaterThan(budget * 0.4);
        }
      }),
    );
    const empty = { summaries: 5, compactedAt: -1, turns: [] };
    expect(cutOf(empty, { high: 1, keep: 1, least: 0 })).toBeNull();
  });

  const PROVIDERS: readonly [ProviderId, string][] = [
    ["openai", "/chat/completions"],
    ["workers-ai", "/chat/completions"],
    ["openai-responses", "/responses"],
    ["anthropic", "/messages"],
    ["gemini", ":streamGenerateContent"],
  ];

  test.each(PROVIDERS)(
    "SELFCOMPACT-5 every cut position is accepted by the validator of %s",
    (provider, path) => {
      const database = new NodeSqlDatabase();
      const store = new EventStore(database, new LongText(database));
      store.createTable();
      const events = [
        ...turnOfEvents(1, "one", [], "1"),
        ...turnOfEvents(2, "two", [["a", "b"], ["c"]], "2"),
        ...turnOfEvents(3, "three", [["d"]], "3"),
        ...turnOfEvents(4, "four", [], "4"),
      ].map((event, seq) => ({ ...event, seq }));
      store.append("tester", 0, events);
      const record = recordOf();
      const profile: ModelProfile = { provider, modelId: "m", baseUrl: "http://model/v1" };
      const adapter = adapterFor(provider);
      const window = new SessionWindow(store);
      const starts = events.filter(({ action, seq }) => action === EventAction.USER_MESSAGE && seq > 0);
      expect(starts).toHaveLength(3);
      for (const { seq: cover } of starts) {
        const turn = { agentId: "tester" };
        const history = window.messagesBefore({ cover, upTo: events.length }, turn, PLAIN_CHAIN);
        expect(history).toHaveLength(cover);
        for (const attempt of [1, 2]) {
          const context = summaryContext(record, history, turn, { attempt, targetTokens: 100 });
          const body = JSON.parse(JSON.stringify(adapter.buildRequest(profile, context)));
          expect(() => checkByRules(path, body)).not.toThrow();
        }
      }
    },
  );

  test("a plan without loaded turns starts no compaction", () => {
    const before = { touched: new Map() };
    // SAFETY: the plan reads no more of a transition where no turn has ended.
    const none = { state: { gate: "open" }, touched: new Map() };
    expect(planCompactions(before as never, none as never, {} as never)).toEqual([]);
  });
});

describe("the moves of a turn", () => {
  const moves = fc
    .array(
      fc.record({
        said: fc.nat(20),
        results: fc.array(fc.nat(300), { minLength: 1, maxLength: 4 }),
      }),
      { maxLength: 10 },
    )
    .map((rounds) =>
      rounds.map(({ said, results }, round): ContextMessage[] => [
        {
          role: "assistant",
          content: words(said),
          toolCalls: results.map((_, index) => ({ id: `${round}.${index}`, name: "read", arguments: {} })),
        },
        ...results.map((size, index): ContextMessage => {
          return { role: "tool", toolCallId: `${round}.${index}`, content: JSON.stringify(words(size)) };
        }),
      ]),
    );

  test("MOVES-2 results that exceed the room by a little are shortened, too", () => {
    const result = (id: string, size: number): ContextMessage => {
      return { role: "tool", toolCallId: id, content: JSON.stringify(words(size)) };
    };
    const toolCalls = ["a", "b", "c"].map((id) => ({ id, name: "read", arguments: {} }));
    const whole = [
      { role: "assistant" as const, content: "", toolCalls },
      result("a", 300),
      result("b", 200),
      result("c", 304),
    ];
    const sizeOf = (messages: readonly ContextMessage[]) =>
      messages.reduce((sum, message) => sum + messageTokens(message), 0);
    for (let less = 1; less <= 30; less++) {
      const room = sizeOf(whole) - less;
      expect(sizeOf(fittedMoves(whole, room)), `${less} tokens less`).toBeLessThanOrEqual(room);
    }
  });

  test("MOVES-1 MOVES-2 MOVES-3 fit their room, keep the newest round, and change to stubs only", () => {
    fc.assert(
      fc.property(moves, fc.integer({ min: 800, max: 3_000 }), (rounds, room) => {
        let before: readonly ContextMessage[] = [];
        for (let count = 1; count <= rounds.length; count++) {
          const whole = rounds.slice(0, count).flat();
          const sent = fittedMoves(whole, room);
          expect(sent.map(({ role, toolCallId, toolCalls }) => [role, toolCallId, toolCalls])).toEqual(
            whole.map(({ role, toolCallId, toolCalls }) => [role, toolCallId, toolCalls]),
          );
          const size = sent.reduce((sum, message) => sum + messageTokens(message), 0);
          const texts = whole.filter(({ role }) => role !== "tool");
          const least = texts.reduce((sum, message) => sum + messageTokens(message), 0) + whole.length * 60;
          const newest = (rounds[count - 1]?.length ?? 1) - 1;
          expect(size).toBeLessThanOrEqual(Math.max(room, least + newest * 140));
          for (const message of sent.slice(-newest)) expect(message.content).not.toContain("Left out");
          before.forEach((message, index) => {
            const same = sent[index]?.content === message.content;
            expect(same || sent[index]?.content.includes("Left out")).toBe(true);
          });
          before = sent;
        }
      }),
    );
  });
});

describe("the budget", () => {
  const chain = (persona?: number, profile?: number) => ({
    persona: {
      ...PLAIN_CHAIN.persona,
      definition: {
        identity: { systemPrompt: "Test." },
        memory: persona === undefined ? {} : { contextTokens: persona },
      },
    },
    modelProfile: {
      ...PLAIN_CHAIN.modelProfile,
      definition: {
        ...PLAIN_CHAIN.modelProfile.definition,
        ...(profile === undefined ? {} : { contextTokens: profile }),
      },
    },
  });

  test("is the smaller value of the persona's and the profile's, and 60 000 by default", () => {
    expect(contextTokens(chain())).toBe(60_000);
    expect(contextTokens(chain(100_000))).toBe(100_000);
    expect(contextTokens(chain(100_000, 8_000))).toBe(8_000);
    expect(contextTokens(chain(8_000, 100_000))).toBe(8_000);
  });

  test.each([
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 208310 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "The estimated number of input and maximum output tokens (30000) exceeded this model context window limit (24000).",
    "the request exceeds the available context size. try increasing the context size",
    "Please reduce the length of the messages or completion.",
  ])("MERR-3 recognises %s", (message) => {
    expect(exceedsContext({ category: "validation", message })).toBe(true);
    expect(exceedsContext({ category: "canceled", message })).toBe(false);
  });

  test("MERR-3 takes no other failure for one", () => {
    for (const message of ["The model is overloaded.", "max_tokens must be at least 1.", "Invalid context."])
      expect(exceedsContext({ category: "validation", message })).toBe(false);
  });
});
