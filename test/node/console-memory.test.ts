/** The console's pure parts for memory: addresses, texts, scores, and the form of a memory. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { erasableOf } from "../../app/src/erasable.ts";
import { problemText, wordsOf } from "../../app/src/format.ts";
import { isoOf, localInput } from "../../app/src/memory/local-time.ts";
import {
  choiceOf,
  filterOf,
  isLimited,
  NO_CHOICE,
  searchOf,
  statesOf,
  trimmedChoice,
} from "../../app/src/memory/memory-choice.ts";
import {
  changeOf,
  draftOf,
  EMPTY_DRAFT,
  errorsOf,
  inputOf,
  type MemoryDraft,
  rebased,
} from "../../app/src/memory/memory-draft.ts";
import {
  changeText,
  countText,
  embedderText,
  pendingText,
  searchNotice,
  subjectText,
  validityText,
} from "../../app/src/memory/memory-texts.ts";
import { partsOf, relevanceNote, relevanceText, scoreText } from "../../app/src/memory/score-parts.ts";
import { hasMemories, turnMemories } from "../../app/src/memory/turn-memories.ts";
import { agentPath, conversationPath, memoryPath, routeOf } from "../../app/src/route.ts";
import { DramatisClientError, type JournalEntryView, type TurnState } from "../../src/client/index.ts";
import type { Memory, MemoryAuthor } from "../../src/protocol/memory-schemas.ts";

const memory: Memory = {
  id: "mem_1",
  agentId: "guide",
  content: "Ann prefers window seats.",
  type: "preference",
  significance: 0.5,
  metadata: {},
  subject: { userId: "ann" },
  state: "current",
  validFrom: "2026-03-01T10:00:00.250Z",
  version: 3,
  createdAt: "2026-03-01T10:00:00.250Z",
  updatedAt: "2026-03-01T10:00:00.250Z",
};

const now = new Date("2026-03-02T12:00:00Z");

it("MEMVIEW-3 a result below the floor of recall is marked as not recalled by conversations", () => {
  expect(relevanceNote(0.4)).toBe("40 % relevant");
  expect(relevanceNote(0.31)).toBe("31 % relevant. Conversations do not recall it: the minimum is 40 %");
});

it("a problem is shown once if the error repeats its message", () => {
  const errors = [{ path: "/content", message: "It is too long." }];
  const error = (detail: string) =>
    new DramatisClientError({ code: "TOO_LARGE", status: 413, detail, errors });
  expect(problemText(error("/content: It is too long."))).toBe("/content: It is too long.");
  expect(problemText(error("Wrong."))).toBe("Wrong.\n/content: It is too long.");
});

describe("addresses of memory", () => {
  it("MEMVIEW-4 keep any choice", () => {
    const text = fc.string({ unit: "grapheme" }).map((each) => each.trim());
    const state = fc.constantFrom("current", "ended", "archived", "all");
    fc.assert(
      fc.property(fc.record({ query: text, type: text, userId: text, state }), text, (choice, agentId) => {
        fc.pre(agentId !== "");
        const route = routeOf(memoryPath(agentId, undefined, searchOf(choice)));
        expect(route).toMatchObject({ page: "memory", agentId });
        expect(choiceOf("search" in route ? (route.search ?? "") : "")).toEqual(choice);
      }),
    );
    expect(searchOf(NO_CHOICE)).toBe("");
    expect(choiceOf("?state=lost&other=1&type=%20a ")).toEqual({ ...NO_CHOICE, type: "a" });
  });

  const id = fc.string({ minLength: 1, unit: "grapheme" });

  it("name the agent, its memory and one memory, whatever their ids", () => {
    fc.assert(
      fc.property(id, id, (agentId, memoryId) => {
        expect(routeOf(agentPath(agentId))).toEqual({ page: "agent", id: agentId });
        expect(routeOf(memoryPath(agentId))).toEqual({ page: "memory", agentId });
        expect(routeOf(memoryPath(agentId, memoryId))).toEqual({ page: "memory", agentId, memoryId });
        expect(routeOf(conversationPath(agentId, memoryId))).toEqual({
          page: "conversation",
          id: agentId,
          turnId: memoryId,
        });
      }),
    );
  });

  it.each([
    ["/a", { page: "agents" }],
    ["/agents", { page: "agents" }],
    ["/a/", { page: "agents" }],
    ["/memories", { page: "memories" }],
    ["/a/guide/memory/", { page: "memory", agentId: "guide" }],
    ["/a/guide/other", { page: "missing", path: "/a/guide/other" }],
    ["/a/guide/memory/one/two", { page: "missing", path: "/a/guide/memory/one/two" }],
    ["/memories/one", { page: "missing", path: "/memories/one" }],
    ["/c/one#%E0%A4%A", { page: "conversation", id: "one" }],
  ])("%s", (path, route) => {
    expect(routeOf(path)).toEqual(route);
  });
});

describe("a choice of memories", () => {
  it("limits the memories to its texts; an empty choice has no limits", () => {
    expect(isLimited(NO_CHOICE)).toBe(false);
    expect(filterOf(NO_CHOICE)).toEqual({});
    expect(statesOf(NO_CHOICE)).toEqual(["current"]);
    const choice = trimmedChoice({ query: " seats ", type: " fact", userId: "ann ", state: "all" });
    expect(isLimited(choice)).toBe(true);
    expect(choice.query).toBe("seats");
    expect(filterOf(choice)).toEqual({ type: "fact", subject: { userId: "ann" } });
    expect(statesOf(choice)).toEqual(["current", "ended", "archived"]);
  });
});

describe("a score", () => {
  it("MEMVIEW-1 has a row for each part that contributed, the largest first, on one scale", () => {
    const rows = partsOf({
      parts: { lexical: 0.2, semantic: 0.8, recency: 0, time: -0.4, significance: 0.1 },
    });
    expect(rows.map(({ label, width }) => [label, width])).toEqual([
      ["Meaning", 1],
      ["Words in common", 0.25],
      ["Importance", 0.125],
      ["Matching time", 0.5],
    ]);
    expect(partsOf({ parts: {} })).toEqual([]);
    const value = fc.double({ min: -10, max: 10, noNaN: true });
    fc.assert(
      fc.property(fc.record({ lexical: value, semantic: value, speaker: value }), (parts) => {
        const shown = partsOf({ parts });
        expect(shown.map((part) => part.value)).toEqual(
          Object.values(parts)
            .filter((part) => part !== 0)
            .sort((a, b) => b - a),
        );
        for (const { width } of shown) expect(width).toBeGreaterThanOrEqual(0);
        if (shown.length > 0) expect(Math.max(...shown.map(({ width }) => width))).toBe(1);
      }),
    );
  });

  it.each([
    [0.004, "0.00"],
    [1.5, "1.50"],
  ])("%d as text", (value, text) => {
    expect(scoreText(value, "en-US")).toBe(text);
  });

  it.each([
    [0.824, "82 %"],
    [1.2, "100 %"],
  ])("relevance %d as text", (value, text) => {
    expect(relevanceText(value)).toBe(text);
  });
});

describe("texts of memory", () => {
  it.each<[MemoryAuthor, string]>([
    [{ kind: "principal", subject: "ada" }, "Changed by ada"],
    [{ kind: "tool", conversationId: "c", turnId: "t" }, "Changed by the agent, in a conversation"],
    [{ kind: "task", conversationId: "c", turnId: "t" }, "Changed by a task, in a conversation"],
    [{ kind: "extraction", conversationId: "c", turnId: "t" }, "Changed from a conversation"],
    [{ kind: "run", runId: "r" }, "Changed by a run"],
    [{ kind: "consolidation" }, "Changed by consolidation"],
    [{ kind: "retention" }, "Changed by retention"],
    [{ kind: "import" }, "Changed by an import"],
  ])("the author %j", (by, text) => {
    expect(changeText({ change: "updated", by })).toBe(text);
  });

  it("the subject is the user, or else the conversation", () => {
    expect(subjectText({ userId: "ann", conversationId: "c" })).toBe("About ann");
    expect(subjectText({ conversationId: "c" })).toBe("About one conversation");
    expect(subjectText({})).toBeUndefined();
  });

  it("the validity", () => {
    const validFrom = "2026-02-01T10:00:00Z";
    expect(validityText({ validFrom }, now, "en-US")).toMatch(/^from Feb 1, /);
    expect(validityText({ validFrom, validTo: "2026-02-03T10:00:00Z" }, now, "en-US")).toMatch(
      /^from Feb 1, .* until Feb 3, /,
    );
  });

  it("the state of the stores, and why they lack something", () => {
    expect(countText({ memories: 1, archived: 0 })).toBe("1 memory");
    expect(countText({ memories: 1_204, archived: 12 }, "en-US")).toBe("1,204 memories, 12 archived");
    expect(embedderText(null)).toContain("words only");
    expect(embedderText({ id: "static-1", dimensions: 256 })).toBe(
      "Searches compare words, and meanings with the model static-1",
    );
    expect(pendingText({ records: 0, embeddings: 0 }, now)).toBeUndefined();
    const pending = { records: 2, embeddings: 1, error: "D1 is silent.", since: "2026-03-02T10:00:00Z" };
    expect(pendingText(pending, now, "en-US")).toMatch(
      /^2 changes are not copied to the stores yet, 1 memory has no vector yet, since .*\. Last error: D1 is silent\. No memory is lost/,
    );
  });

  it("a notice only about searches that did not compare all by meaning", () => {
    expect(searchNotice("all")).toBeUndefined();
    expect(searchNotice("some")).not.toBe(searchNotice("none"));
  });
});

describe("the form of a memory", () => {
  it("shows times to the second in the reader's zone", () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date("1980-01-01"), max: new Date("2100-01-01"), noInvalidDate: true }),
        (at) => {
          at.setMilliseconds(0);
          const back = isoOf(localInput(at.toISOString())) ?? "";
          // An hour that occurs twice has one name.
          expect([0, 3_600_000]).toContain(Math.abs(Date.parse(back) - at.getTime()));
        },
      ),
    );
    expect(isoOf("")).toBeUndefined();
    expect(isoOf("soon")).toBeUndefined();
  });

  it("MEMVIEW-2 has no change without input", () => {
    const text = fc.string({ minLength: 1 });
    const stored = fc.record({
      content: text,
      type: text,
      significance: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(stored, (fields) => {
        const one = { ...memory, ...fields };
        expect(changeOf(one, draftOf(one))).toBeUndefined();
      }),
    );
  });

  it("MEMVIEW-2 has the reader's input, and the version that the reader saw", () => {
    const draft = draftOf(memory);
    expect(changeOf(memory, { ...draft, content: "Ann prefers aisle seats." })).toEqual({
      content: "Ann prefers aisle seats.",
      ifVersion: 3,
    });
    const validTo = localInput("2026-04-01T10:00:00Z");
    expect(changeOf(memory, { ...draft, significance: "0,9", type: " habit ", validTo })).toEqual({
      type: "habit",
      significance: 0.9,
      validTo: "2026-04-01T10:00:00.000Z",
      ifVersion: 3,
    });
    const ended = { ...memory, validTo: "2026-04-01T10:00:00Z" };
    expect(changeOf(ended, { ...draftOf(ended), validTo: "" })).toEqual({ validTo: null, ifVersion: 3 });
  });

  it("says which texts are wrong", () => {
    expect(errorsOf(EMPTY_DRAFT, { isNew: true })).toEqual({ content: "Enter what to remember." });
    const blank = { ...draftOf(memory), content: " \n", type: " ", significance: "", validFrom: "" };
    expect(Object.keys(errorsOf(blank, { isNew: false }))).toEqual([
      ...["content", "type", "significance", "validFrom"],
    ]);
    const draft: MemoryDraft = {
      ...EMPTY_DRAFT,
      content: "Ann prefers window seats.",
      significance: "2",
      validFrom: "2026-03-02T10:00",
      validTo: "2026-03-01T10:00",
    };
    expect(Object.keys(errorsOf(draft, { isNew: true }))).toEqual(["significance", "validTo"]);
    expect(errorsOf({ ...draft, significance: " ", validTo: "" }, { isNew: true })).toEqual({});
  });

  it("makes a memory of the texts that are there", () => {
    expect(inputOf({ ...EMPTY_DRAFT, content: " Kept as it is. " })).toEqual({ content: " Kept as it is. " });
    expect(
      inputOf({
        content: "Ann prefers window seats.",
        type: "preference",
        significance: "1",
        validFrom: localInput("2026-03-01T10:00:00Z"),
        validTo: "",
        userId: " ann ",
        key: "seat",
      }),
    ).toEqual({
      content: "Ann prefers window seats.",
      type: "preference",
      significance: 1,
      validFrom: "2026-03-01T10:00:00.000Z",
      subject: { userId: "ann" },
      key: "seat",
    });
  });

  it("keeps the reader's input over a newer version, and takes the rest from it", () => {
    const newer = { ...memory, content: "Ann prefers any seat.", type: "habit", version: 4 };
    const typed = { ...draftOf(memory), content: "Ann prefers aisle seats." };
    const draft = rebased(typed, memory, newer);
    expect(draft).toMatchObject({ content: "Ann prefers aisle seats.", type: "habit" });
    expect(changeOf(newer, draft)).toEqual({ content: "Ann prefers aisle seats.", ifVersion: 4 });
  });
});

describe("erasable content", () => {
  const message = { turnId: "t", createdAt: "2026-03-01T10:00:00Z" };
  const turn: TurnState = {
    id: "t",
    status: "completed",
    agentId: "guide",
    createdAt: "2026-03-01T10:00:00Z",
    completedAt: "2026-03-01T10:00:01Z",
    retries: [],
    retrying: false,
    items: [
      {
        type: "message",
        id: "m1",
        message: { ...message, id: "m1", role: "user", content: "Where is\nthe station?" },
      },
      {
        type: "tool",
        id: "o1",
        operation: {
          id: "o1",
          turnId: "t",
          name: "map",
          input: { place: "station" },
          state: "completed",
          result: 1,
        },
      },
      { type: "thought", id: "x", text: "I look." },
      { type: "message", id: "m2", message: { ...message, id: "m2", role: "agent", content: "[erased]" } },
    ],
  };

  it("the messages and the calls of a finished turn that are not yet erased", () => {
    expect(erasableOf(turn, wordsOf)).toEqual([
      { id: "m1", name: "You", preview: "Where is the station?", isErased: false },
      { id: "o1", name: "map", preview: "station", isErased: false },
      { id: "m2", name: "Guide", preview: "[erased]", isErased: true },
    ]);
    expect(erasableOf({ ...turn, status: "active" }, wordsOf)).toEqual([]);
  });
});

describe("the memories of a turn", () => {
  const entry = (type: string, data?: JournalEntryView["data"]): JournalEntryView => ({
    ...{ seq: 1, type, time: "2026-01-01T00:00:00.000Z", turnId: "turn_1" },
    ...(data === undefined ? {} : { data }),
  });
  const turn = { agentId: "guide" };

  it("are the recalled memories, each once, and the outcomes of all learned memories", () => {
    const memories = [
      { id: "mem_1", version: 1 },
      { id: "mem_1", version: 2 },
      { id: "mem_2", version: 1 },
    ];
    const outcomes = [
      { status: "applied", memoryId: "mem_3", version: 1 },
      { status: "unchanged", memoryId: "mem_1" },
      { status: "refused", code: "CONFLICT", message: "It was erased." },
      { status: "of another release" },
    ];
    const shown = turnMemories({ ...turn, memories }, [entry("memory_extraction.applied", { outcomes })]);
    expect(shown).toEqual({
      ...{ agentId: "guide", recalled: ["mem_1", "mem_2"], error: undefined },
      learned: [
        { status: "applied", memoryId: "mem_3" },
        { status: "unchanged", memoryId: "mem_1" },
        { status: "refused", message: "It was erased." },
      ],
    });
    expect(hasMemories(shown)).toBe(true);
  });

  it("a memory that did not answer, and a refused extraction, are shown too", () => {
    const refused = entry("memory_extraction.refused", { code: "NOT_FOUND", message: "The agent is gone." });
    const shown = turnMemories({ ...turn, memoryError: "UNAVAILABLE" }, [refused]);
    expect(shown).toMatchObject({
      error: "UNAVAILABLE",
      learned: [{ status: "refused", message: "The agent is gone." }],
    });
    expect(
      hasMemories(turnMemories(turn, [entry("turn.completed"), entry("memory_extraction.applied")])),
    ).toBe(false);
  });
});
