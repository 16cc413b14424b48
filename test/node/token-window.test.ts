/** Budgets of tokens: counting, fitting, shortening results, and moving a window. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventAction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import { shortenedContent } from "../../src/memory/session/shorten.ts";
import {
  estimateTokens,
  fitsTokens,
  frameTokens,
  messageTokens,
  mostTokens,
  type TokenCounter,
} from "../../src/memory/session/tokens.ts";
import { type BuildContextOptions, buildWorkingContext } from "../../src/memory/session/working-context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import { agent, compaction, numbered, request, result, user } from "../support/events.ts";
import { history, sessionTurns, tools, turnOfEvents } from "../support/histories.ts";
import { jsonTexts } from "../support/json-values.ts";

/** An exact counter: its sums are easy to check. */
const characters: TokenCounter = (text) => text.length;
const quarters: TokenCounter = (text) => Math.ceil(text.length / 4);

const tokensOf = (messages: readonly ContextMessage[], count = characters) =>
  messages.reduce((sum, message) => sum + messageTokens(message, count), 0);

const build = (events: readonly SessionEvent[], tokenBudget: number, options: BuildContextOptions = {}) =>
  buildWorkingContext(events, { tokenBudget, countTokens: characters, ...options }).messages;

const isPrefix = (one: readonly ContextMessage[], other: readonly ContextMessage[]) =>
  one.every((message, index) => JSON.stringify(message) === JSON.stringify(other[index]));

/** Number of contexts that are not the beginning of the next context. */
function stepsOf(contexts: readonly (readonly ContextMessage[])[]): number {
  return contexts.filter((context, index) => index > 0 && !isPrefix(contexts[index - 1] ?? [], context))
    .length;
}

describe("counting", () => {
  it("TOKEN-1 all that is sent counts: contents, names, ids, arguments, instructions, tools", () => {
    fc.assert(
      fc.property(history, tools, (messages, specs) => {
        const sent = messages.map(({ content, name = "", toolCallId = "", toolCalls = [] }) =>
          [
            content,
            name,
            toolCallId,
            ...toolCalls.flatMap((c) => [c.id, c.name, JSON.stringify(c.arguments)]),
          ].join(""),
        );
        expect(tokensOf(messages)).toBeGreaterThanOrEqual(sent.join("").length + 4 * messages.length);
        const facts = { systemInstructions: ["Be brief."], tools: specs };
        const schemas = specs.map((tool) => tool.name + tool.description + JSON.stringify(tool.inputSchema));
        expect(frameTokens(facts, characters)).toBeGreaterThan(9 + schemas.join("").length);
      }),
    );
  });

  it("TOKEN-1 a call with large arguments is not counted as an empty message, and metadata is not counted", () => {
    const toolCalls = [{ id: "c", name: "write", arguments: { text: "some words ".repeat(1000) } }];
    expect(messageTokens({ role: "assistant", content: "", toolCalls })).toBeGreaterThan(1800);
    const spoken = { role: "user", content: "hello" } as const;
    expect(messageTokens({ ...spoken, metadata: { usage: { n: "x".repeat(999) } } })).toBe(
      messageTokens(spoken),
    );
  });

  it("TOKEN-1 native parts count beside text and calls, and media at a flat estimate", () => {
    const spoken = { role: "assistant", content: "hello" } as const;
    const value = { thinking: "x".repeat(500) };
    const native = {
      provider: "p",
      modelId: "m",
      parts: [
        { type: "block" as const, value },
        { type: "text" as const, length: 5 },
      ],
    };
    expect(messageTokens({ ...spoken, native }, characters) - messageTokens(spoken, characters)).toBe(
      JSON.stringify(value).length,
    );
    const parts = [
      { type: "text" as const, text: "hello" },
      { type: "image" as const, source: { url: "https://example.com/a.png" } },
      { type: "file" as const, source: { url: "https://example.com/a.pdf" } },
    ];
    expect(messageTokens({ ...spoken, parts }) - messageTokens(spoken)).toBe(5_600);
  });

  it.each([
    ["Chinese", "\u6587"],
    ["words", "word"],
    ["control characters", "\u0001"],
  ])("TOKEN-2 a text of %s counts, even if every sample shows only white space", (_, word) => {
    const length = 32 * 1024 * 8;
    const text = [...Array(8).keys()]
      .map((sample) => Math.floor((sample * (length - 4_096)) / 7))
      .reduce(
        (whole, at) => whole.slice(0, at) + " ".repeat(4_096) + whole.slice(at + 4_096),
        word.repeat(length / word.length),
      );
    expect(text).toHaveLength(length);
    expect(estimateTokens(text)).toBeGreaterThan(length / 16);
  });

  it("TOKEN-2 a long text is estimated from samples: close to a complete count, and fast", () => {
    const paragraph = (n: number) =>
      `Paragraph ${n}: the quick brown fox jumps over ${n * 7} lazy dogs, again and again.\n`;
    const parts = Array.from({ length: 2_000 }, (_, n) => paragraph(n));
    const whole = parts.reduce((sum, part) => sum + estimateTokens(part), 0);
    expect(Math.abs(estimateTokens(parts.join("")) / whole - 1)).toBeLessThan(0.05);
    expect(estimateTokens(paragraph(1).repeat(400_000))).toBeGreaterThan(4_000_000);
  });

  it("TOKEN-2 a counted text has the same estimate, even after the cache is full", () => {
    const texts = Array.from({ length: 400 }, (_, n) => `${n % 7} words and ${n} numbers. `.repeat(300 + n));
    const first = texts.map(estimateTokens);
    expect(new Set(first).size).toBeGreaterThan(200);
    expect(texts.map((text) => estimateTokens(` ${text}`.slice(1)))).toEqual(first);
    expect(texts.toReversed().map(estimateTokens)).toEqual(first.toReversed());
  });

  it("TOKEN-6 no text is estimated above its limit: each character, and texts of any characters", () => {
    const over: string[] = [];
    for (let unit = 0; unit <= 0xffff; unit++) {
      const one = String.fromCharCode(unit);
      for (const text of [one, one + one, `${one}a`, `a${one}`])
        if (estimateTokens(text) > mostTokens(text)) over.push(text);
    }
    expect(over).toEqual([]);
    // Symbols are the densest: two tokens of one character.
    const piece = fc.oneof(
      fc.string({ unit: "binary", maxLength: 30 }),
      fc.string({ unit: "grapheme", maxLength: 30 }),
      fc.string({ unit: "grapheme-ascii", maxLength: 30 }),
      fc.constantFrom(
        "☀",
        "☀1",
        "\n",
        "\n\n ",
        "，",
        "漢",
        "가",
        "é",
        "ß",
        "ไ",
        "7",
        "a1B2c3D4e5F6g7H8",
        '{"a":[]}',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), fc.constantFrom(1, 3_000), (pieces, times) => {
        const text = pieces.join("").repeat(times).slice(0, 100_000);
        expect(estimateTokens(text)).toBeLessThanOrEqual(mostTokens(text));
      }),
    );
  });

  it("TOKEN-6 the limit decides only about estimates: a custom counter is called", () => {
    expect(fitsTokens("word", 4, () => 5)).toBe(false);
    expect(fitsTokens("word", 4, estimateTokens)).toBe(true);
    expect(fitsTokens("word word word", 3, estimateTokens)).toBe(true);
    expect(fitsTokens("word word word", 2, estimateTokens)).toBe(false);
  });

  it("keys and encoded bytes are not priced like words", () => {
    const key = "a1B2c3D4".repeat(8);
    expect(estimateTokens(key)).toBeGreaterThanOrEqual(key.length / 2);
  });
});

describe("shortening results", () => {
  const json = jsonTexts({ maxDepth: 4 });

  it("SHORT-1 SHORT-2 JSON stays JSON of its kind and reports omissions; a text that fits is unchanged", () => {
    fc.assert(
      fc.property(
        fc.array(json, { maxLength: 12 }),
        fc.integer({ min: 40, max: 400 }),
        fc.boolean(),
        (texts, max, asList) => {
          const values = texts.map((text): unknown => JSON.parse(text));
          const content = JSON.stringify(
            asList ? values : Object.fromEntries(values.map((value, n) => [`m${n}`, value])),
          );
          const short = shortenedContent(content, max, quarters);
          if (quarters(content) <= max) expect(short).toBe(content);
          const value: unknown = JSON.parse(short);
          expect(Array.isArray(value)).toBe(asList);
          expect(short.length).toBeLessThanOrEqual(content.length);
          if (short !== content) expect(short).toContain("shortened");
        },
      ),
    );
  });

  it("SHORT-1 an object keeps every member's beginning, an array its first items, a string its quotes", () => {
    const value = { status: "ok", body: "x".repeat(5_000), count: 3 };
    expect(JSON.parse(shortenedContent(JSON.stringify(value), 100, quarters))).toEqual({
      status: "ok",
      body: expect.stringMatching(/^x{100,}… \(shortened: 5000 characters\)$/),
      count: 3,
    });
    const items = JSON.parse(
      shortenedContent(JSON.stringify(Array.from({ length: 900 }, (_, n) => n)), 50, quarters),
    );
    expect(items.slice(0, 3)).toEqual([0, 1, 2]);
    expect(items.at(-1)).toMatch(/^… \(shortened: \d+ of 900 items left out\)$/);
    expect(JSON.parse(shortenedContent(JSON.stringify("y".repeat(900)), 50, quarters))).toMatch(
      /^y+… \(shortened/,
    );
  });

  it("SHORT-1 text stays text, and JSON that is too deep or too long to parse becomes a string", () => {
    expect(shortenedContent("z".repeat(9_000), 50, quarters)).toMatch(
      /^z{100,}… \(shortened: 9000 characters\)$/,
    );
    for (const content of [`${"[".repeat(500)}${"]".repeat(500)}`, JSON.stringify(["w".repeat(3_000_000)])]) {
      const value: unknown = JSON.parse(shortenedContent(content, 50, quarters));
      expect(value).toMatch(new RegExp(`\\(shortened: ${content.length} characters\\)$`));
    }
  });

  it("SHORT-2 white space counts: a megabyte of it is shortened even without tokens", () => {
    expect(shortenedContent(" ".repeat(1_000_000), 50, () => 0).length).toBeLessThan(1_000);
  });
});

describe("a window within a budget", () => {
  const sessions = sessionTurns(30, 60);

  it("TOKEN-3 M20 the selection fits, unless the newest unit alone does not; every request and result is paired", () => {
    fc.assert(
      fc.property(sessions, fc.integer({ min: 20, max: 3_000 }), (turns, budget) => {
        const messages = build(turns.flat(), budget);
        const newest = turns.at(-1)?.map(({ content }) => content) ?? [];
        expect(messages.at(-1)?.content).toBe(newest.at(-1));
        if (tokensOf(messages) > budget) {
          expect(messages.map(({ content }) => content)).toEqual([newest[0], newest.at(-1)]);
        }
        const calls = messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id));
        const answers = messages.flatMap(({ role, toolCallId }) => (role === "tool" ? [toolCallId] : []));
        expect(answers).toEqual(calls);
      }),
    );
  });

  it("TOKEN-3 instructions and tools take their part of the budget", () => {
    const turns = Array.from({ length: 20 }, (_, n) => turnOfEvents(n, "q".repeat(40), [], "a".repeat(40)));
    const events = numbered(turns.flat());
    const facts = {
      systemInstructions: ["Be kind.".repeat(20)],
      tools: [{ name: "search", description: "d".repeat(100), inputSchema: { type: "object" } }],
    };
    const withFacts = build(events, 900, facts);
    expect(tokensOf(withFacts) + frameTokens(facts, characters)).toBeLessThanOrEqual(900);
    expect(withFacts.length).toBeLessThan(build(events, 900).length);
  });

  it("TOKEN-4 a window begins with a user's message and holds complete turns", () => {
    fc.assert(
      fc.property(sessions, fc.integer({ min: 800, max: 4_000 }), (turns, budget) => {
        fc.pre(turns.every((turn) => tokensOf(build(turn, 1e9)) <= budget));
        const contents = build(turns.flat(), budget, { maxResultTokens: 1e9 }).map(({ content }) => content);
        const starts = turns.map((_, index) =>
          turns
            .slice(index)
            .flat()
            .map(({ content }) => content),
        );
        expect(starts).toContainEqual(contents);
      }),
    );
  });

  it("TOKEN-4 a newest turn beyond the budget is cut between its moves, and its user's message stays", () => {
    const rounds = Array.from({ length: 40 }, (_, n) => [`result ${n}`, "x".repeat(50)]);
    const events = numbered([
      ...turnOfEvents(0, "before", [], "said"),
      ...turnOfEvents(1, "the task", rounds, "done"),
    ]);
    const messages = build(events, 1_500);
    expect(messages[0]).toMatchObject({ role: "user", content: "the task" });
    expect(messages[1]?.toolCalls).toHaveLength(2);
    expect(messages.at(-1)?.content).toBe("done");
    expect(tokensOf(messages)).toBeLessThanOrEqual(1_500);
    expect(tokensOf(messages)).toBeGreaterThan(700);
  });

  it("TOKEN-3 a huge result does not push the rest out: it is shortened to its share, in place", () => {
    const huge = turnOfEvents(1, "find", [[JSON.stringify({ rows: "r".repeat(100_000) })]], "found");
    const messages = build(numbered([...turnOfEvents(0, "before", [], "said"), ...huge]), 4_000);
    expect(messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(Object.keys(JSON.parse(messages[4]?.content ?? ""))).toEqual(["rows"]);
    expect(tokensOf(messages)).toBeLessThanOrEqual(4_000);
  });

  it("TOKEN-5 while all fits, each context extends the previous context", () => {
    fc.assert(
      fc.property(sessions, (turns) => {
        const contexts = turns.map((_, index) => build(turns.slice(0, index + 1).flat(), 1e6));
        expect(stepsOf(contexts)).toBe(0);
        expect(contexts.at(-1)).toHaveLength(turns.flat().length);
      }),
    );
  });

  it("TOKEN-5 beyond that the window moves in few steps, and keeps half of the budget in use", () => {
    const turnsOf = fc.array(fc.tuple(fc.nat(40), fc.nat(3)), { minLength: 150, maxLength: 150 });
    fc.assert(
      fc.property(turnsOf, (sizes) => {
        const budget = 2_000;
        const contexts: ContextMessage[][] = [];
        const events: SessionEvent[] = [];
        for (const [n, [length, rounds]] of sizes.entries()) {
          const results = Array.from({ length: rounds }, () => ["r".repeat(length)]);
          events.push(
            ...numbered(turnOfEvents(n, "q".repeat(length), results, "a".repeat(length)), events.length),
          );
          contexts.push([...build(events, budget)]);
        }
        const largest = 4 * 8 + 5 * 40 + 3 * 60;
        for (const context of contexts.slice(60))
          expect(tokensOf(context)).toBeGreaterThan(budget / 2 - largest);
        expect(stepsOf(contexts)).toBeLessThanOrEqual(150 / 3);
      }),
      { numRuns: 20 },
    );
  });

  it("TOKEN-5 with fifty turns in the budget, fifteen of sixteen contexts extend the previous context", () => {
    const steps = (isCutOff: boolean) => {
      const contexts: ContextMessage[][] = [];
      for (let n = 1; n <= 600; n++) {
        const first = isCutOff ? Math.max(0, n - 80) : 0;
        const events = Array.from({ length: n - first }, (_, turn) =>
          numbered(turnOfEvents(turn + first, "q".repeat(46), [], "a".repeat(46)), (turn + first) * 2),
        );
        contexts.push([...build(events.flat(), 5_000, { isCutOff: first > 0 })]);
      }
      return { steps: stepsOf(contexts), last: contexts.at(-1) };
    };
    const whole = steps(false);
    expect(whole.steps).toBeLessThanOrEqual(600 / 16);
    // Whatever was read before the window, the window is the same.
    expect(steps(true)).toEqual(whole);
  });

  it("TOKEN-5 a read that was cut off gives no turn that may be a part of one", () => {
    const turns = [0, 1, 2].map((n) => turnOfEvents(n, `q${n}`, [["r"]], `a${n}`));
    const events = numbered(turns.flat()).slice(2);
    expect(build(events, 1e6, { isCutOff: true })[0]?.content).toBe("q1");
    expect(build(events.slice(0, 2), 1e6, { isCutOff: true }).map(({ content }) => content)).toEqual(["a0"]);
  });

  it("M22 a summary is in front once and counts, however small the rest of the window is", () => {
    const turns = Array.from({ length: 30 }, (_, n) => turnOfEvents(n, "q".repeat(30), [], "a".repeat(30)));
    const events = numbered([...turns.slice(0, 5).flat(), compaction("k", 8), ...turns.slice(5).flat()]);
    const messages = build(events, 600);
    expect(messages[0]).toMatchObject({ role: "system", content: "summary k" });
    expect(messages.filter(({ role }) => role === "system")).toHaveLength(1);
    expect(messages[1]?.role).toBe("user");
    expect(tokensOf(messages)).toBeLessThanOrEqual(600);
  });

  it("a budget must be valid, and without it everything is sent unchanged", () => {
    const events = numbered([
      user("q"),
      request("r", "c"),
      result("t", "c", "x".repeat(100_000)),
      agent("a"),
    ]);
    for (const budget of [0, -1, Number.NaN]) {
      expect(() => build(events, budget)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
    }
    expect(buildWorkingContext(events).messages[2]?.content).toHaveLength(100_000);
    expect(events.map(({ action }) => action)).toContain(EventAction.TOOL_RESULT);
  });
});
