/** The pure parts of the engine, which the actor uses too: correlation, call records, choice of a model, history. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { type ConfiguredProvider, chooseModel } from "../../src/engine/planner.ts";
import { profileAt } from "../../src/library/definitions/version-chain.ts";
import { selectHistory } from "../../src/memory/session/history.ts";
import { KnownEvents } from "../../src/memory/session/measure.ts";
import { EventAction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import { estimateTokens } from "../../src/memory/session/tokens.ts";
import { buildWorkingContext } from "../../src/memory/session/working-context.ts";
import { closeCallRecord, openCallRecord } from "../../src/model/call-record.ts";
import { agentContextOf, extensionsOf, runIdOf } from "../../src/model/correlation.ts";
import { agent, compaction, numbered, request, result, user } from "../support/events.ts";
import { sessionTurns } from "../support/histories.ts";

const site = {
  conversationId: "conv",
  turnId: "turn",
  agent: "helper",
  provider: "openai",
  model: "gpt-test",
};

describe("correlation", () => {
  it("C15 the run id is `conversation:turn`, and there are exactly four labels", () => {
    expect(runIdOf("conv", "turn")).toBe("conv:turn");
    expect(agentContextOf(site)).toEqual({
      agent: "helper",
      runId: "conv:turn",
      labels: { conversationId: "conv", turnId: "turn", provider: "openai", model: "gpt-test" },
    });
    expect(agentContextOf(site, { cohort: "b" }).metadata).toEqual({ cohort: "b" });
  });

  it("C17 the extensions say provider, model, kind, streaming and class", () => {
    expect(extensionsOf(site, { streaming: true })).toEqual({
      "ai.provider": "openai",
      "ai.model": "gpt-test",
      "ai.request_type": "chat",
      "ai.streaming": true,
      "request.class": "interactive",
    });
    expect(
      extensionsOf(site, { streaming: false, operation: "embedding", requestClass: "batch" }),
    ).toMatchObject({ "ai.request_type": "embedding", "ai.streaming": false, "request.class": "batch" });
  });
});

describe("call records", () => {
  const open = openCallRecord({ ...site, id: "call", parentCorrelationId: "conv:before", startedAt: 1_000 });

  it("C14 an open record has ids, correlation and its start, and no end", () => {
    expect(open).toEqual({
      id: "call",
      conversationId: "conv",
      turnId: "turn",
      provider: "openai",
      model: "gpt-test",
      operation: "chat",
      correlationId: "conv:turn",
      parentCorrelationId: "conv:before",
      startedAt: "1970-01-01T00:00:01.000Z",
    });
  });

  it("C14 CALL-1 a closed record keeps its fields, and has its end, outcome, usage and cost", () => {
    const outcome = {
      ok: true,
      errorCategory: "none",
      attempts: 1,
      startedAt: 1_000,
      finishedAt: 2_500,
    } as const;
    const usage = { inputTokens: 10, outputTokens: 2 };
    const closed = closeCallRecord(open, { outcome, usage, cost: 0.5, requestId: "req", finishedAt: 2_500 });
    expect(closed).toEqual({
      ...open,
      outcome,
      usage,
      cost: 0.5,
      requestId: "req",
      finishedAt: "1970-01-01T00:00:02.500Z",
    });
    expect(open.outcome).toBeUndefined();
  });
});

describe("the choice of a model", () => {
  const configured: ConfiguredProvider[] = [
    { provider: "bare" },
    { provider: "openai", model: "gpt-test" },
    { provider: "workers-ai", model: "llama" },
  ];

  test.each([
    [{}, { provider: "openai", model: "gpt-test" }],
    [{ provider: "workers-ai" }, { provider: "workers-ai", model: "llama" }],
    [
      { provider: "workers-ai", model: "qwen" },
      { provider: "workers-ai", model: "qwen" },
    ],
    [{ model: "llama" }, { provider: "workers-ai", model: "llama" }],
    [{ model: "gpt-other" }, { provider: "openai", model: "gpt-other" }],
    [
      { provider: "bare", model: "m" },
      { provider: "bare", model: "m" },
    ],
    [
      { parameters: { temperature: 0 } },
      { provider: "openai", model: "gpt-test", parameters: { temperature: 0 } },
    ],
    [{ provider: "elsewhere" }, { provider: "elsewhere", model: "" }],
  ])("CHOICE-1 %j", (hints, planned) => {
    expect(chooseModel(configured, hints)).toEqual(planned);
  });

  test.each([
    [configured, { provider: "bare" }, 'defaultModels["bare"]'],
    [configured, { model: 7 }, "The hint `model`"],
    [configured, { provider: "" }, "The hint `provider`"],
    [[], {}, "No provider is configured"],
  ])("CHOICE-1 an impossible choice gets an error with the fix: %#", (known, hints, message) => {
    const choose = () => chooseModel(known, hints);
    expect(choose).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
    expect(choose).toThrow(message);
  });

  it("a chain's profiles are its own, then its fallbacks", () => {
    const pinned = (modelId: string) => ({
      ...{ id: modelId, version: 1, hash: "" },
      definition: { provider: "openai" as const, modelId },
    });
    const chain = { modelProfile: pinned("own"), fallbacks: [pinned("second")] };
    expect([0, 1, 2].map((index) => profileAt(chain, index)?.modelId)).toEqual(["own", "second", undefined]);
  });
});

describe("the selection of a history", () => {
  const whole = (events: readonly SessionEvent[]) => ({ events: [...events], isCutOff: false });
  const limits = fc.record(
    {
      maxTurns: fc.integer({ min: 1, max: 4 }),
      maxMessages: fc.integer({ min: 1, max: 12 }),
      tokenBudget: fc.integer({ min: 20, max: 400 }),
    },
    { requiredKeys: [] },
  );

  it("HISTORY-1 HISTORY-2 for any limits: a tail within them, paired, with a correct report of missing messages", () => {
    fc.assert(
      fc.property(sessionTurns(6, 60), limits, (turns, given) => {
        const events = turns.flat();
        const all = buildWorkingContext(events).messages;
        const { messages, truncated } = selectHistory(whole(events), given);
        const newestUnit = 1;
        if (given.maxMessages !== undefined && messages.length > given.maxMessages) {
          expect(messages.filter(({ role }) => role !== "tool")).toHaveLength(newestUnit);
        }
        expect(messages.filter(({ role }) => role === "user").length).toBeLessThanOrEqual(
          given.maxTurns ?? turns.length,
        );
        const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id)).sort();
        const answered = messages.flatMap(({ toolCallId }) => toolCallId ?? []).sort();
        expect(answered).toEqual(calls);
        expect(messages.at(-1)?.role).toBe("assistant");
        expect(truncated).toBe(JSON.stringify(messages) !== JSON.stringify(all));
      }),
      { numRuns: 200 },
    );
  });

  it("HISTORY-4 in a growing session, stored measurements, fresh measurements and counting every text give the same selection", () => {
    const steps = fc.record({ summaryAfter: fc.nat(12), isCutOff: fc.boolean(), rereads: fc.boolean() });
    const limits = fc.record({
      maxTurns: fc.integer({ min: 1, max: 8 }),
      tokenBudget: fc.integer({ min: 20, max: 600 }),
      maxResultTokens: fc.integer({ min: 5, max: 40 }),
    });
    // A counter other than the default. The default's limit does not apply.
    const countTokens = (text: string) => estimateTokens(text);
    // Tokens are far below the limit in long texts, and close to the limit in short texts.
    const sessions = fc.oneof(sessionTurns(10, 120), sessionTurns(16, 4));
    fc.assert(
      fc.property(sessions, steps, limits, (turns, { summaryAfter, isCutOff, rereads }, given) => {
        const known = new KnownEvents();
        let events: SessionEvent[] = [];
        for (const [index, turn] of turns.entries()) {
          const summary = index === summaryAfter ? [compaction("k", events.length)] : [];
          events = [...events, ...numbered([...summary, ...turn], events.length)];
          const window = { events: rereads ? structuredClone(events) : events, isCutOff };
          const options = { ...given, tokenBudget: given.tokenBudget + 20 * (index % 3) };
          const anew = selectHistory(window, options);
          expect(selectHistory(window, { ...options, known })).toEqual(anew);
          expect(selectHistory(window, { ...options, countTokens })).toEqual(anew);
          known.keepOnly(events);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("MEASURE-1 counted events are not counted again, also when they are read again", () => {
    const known = new KnownEvents();
    let counted: string[] = [];
    const countTokens = (text: string) => {
      if (text !== "") counted.push(text);
      return text.length;
    };
    const select = (events: readonly SessionEvent[]) => {
      counted = [];
      selectHistory(whole(events), { tokenBudget: 1_000, countTokens, known });
      return counted;
    };
    const first = numbered([user("u1"), agent("a1")]);
    const grown = [...first, ...numbered([user("u2"), agent("a2")], 2)];
    expect(select(first).sort()).toEqual(["a1", "u1"]);
    expect(select(first)).toEqual([]);
    expect(select(structuredClone(first))).toEqual([]);
    expect(select(grown).sort()).toEqual(["a2", "u2"]);
    known.keepOnly([]);
    expect(select(structuredClone(first)).sort()).toEqual(["a1", "u1"]);
  });

  const events = numbered([
    user("u1"),
    request("r1", "a", "b"),
    result("ta", "a"),
    result("tb", "b"),
    agent("a1"),
    user("u2"),
    request("r2", "c"),
    result("tc", "c"),
  ]);
  const contents = (given: Parameters<typeof selectHistory>[1]) =>
    selectHistory(whole(events), given).messages.map(
      ({ content, toolCalls }) => toolCalls?.[0]?.id ?? content,
    );

  it("HISTORY-1 counts complete units, and complete turns", () => {
    expect(contents({ maxMessages: 3 })).toEqual(["u2", "c", "tc"]);
    expect(contents({ maxMessages: 1 })).toEqual(["c", "tc"]);
    expect(contents({ maxMessages: 6 })).toEqual(["a1", "u2", "c", "tc"]);
    expect(contents({ maxTurns: 1 })).toEqual(["u2", "c", "tc"]);
    expect(contents({ maxTurns: 1, maxMessages: 2 })).toEqual(["c", "tc"]);
    expect(contents({})).toHaveLength(8);
  });

  it("HISTORY-1 a summary stays in front of the last turns and the last messages", () => {
    const summarised = numbered([...events.slice(0, 5), compaction("k", 5), ...events.slice(5), user("u3")]);
    const { messages, truncated } = selectHistory(whole(summarised), { maxTurns: 1, maxMessages: 1 });
    expect(messages.map(({ content }) => content)).toEqual(["summary k", "u3"]);
    expect(truncated).toBe(true);
    expect(selectHistory(whole(summarised)).truncated).toBe(false);
  });

  it("HISTORY-2 a shortened result and a window that was cut off count as truncated", () => {
    const long = numbered([user("u"), request("r", "c"), result("t", "c", "word ".repeat(500)), agent("a")]);
    expect(selectHistory(whole(long), { maxResultTokens: 100 })).toMatchObject({ truncated: true });
    expect(selectHistory(whole(long), { maxResultTokens: 10_000 })).toMatchObject({ truncated: false });
    expect(selectHistory({ events: long, isCutOff: true }).truncated).toBe(true);
  });

  it("HISTORY-1 a complete turn is sent, whatever was cut off before it", () => {
    const selected = selectHistory({ events, isCutOff: true }, { maxTurns: 2 });
    expect(selected.messages).toHaveLength(8);
    expect(selectHistory({ events, isCutOff: true }, { maxTurns: 3 }).messages).toHaveLength(3);
  });

  test.each([
    ["maxTurns", { maxTurns: 0 }],
    ["maxMessages", { maxMessages: 1.5 }],
    ["tokenBudget", { tokenBudget: -1 }],
  ])("a limit that makes no sense is refused: %s", (name, given) => {
    const select = () => selectHistory(whole(events), given);
    expect(select).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
    expect(select).toThrow(name);
  });

  it("a custom mapping is sent, and its own text does not count as shortened", () => {
    const eventToMessage = ({ action, content }: SessionEvent) =>
      action === EventAction.USER_MESSAGE ? { role: "user" as const, content: `said ${content}` } : null;
    expect(selectHistory(whole(events), { eventToMessage })).toEqual({
      messages: ["said u1", "said u2"].map((content) => ({ role: "user", content })),
      truncated: false,
    });
  });
});
