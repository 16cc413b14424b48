/** The log of a tenant on SQLite: publications, reads, searches, and the plans of its statements. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { EventsTarget, type LoggedActor } from "../../src/agents/base/copies/events-target.ts";
import type { EventLogWriter } from "../../src/agents/base/lookup/event-logs.ts";
import { LogFollowers } from "../../src/agents/event-log/log-followers.ts";
import { LogReader, MAX_READ } from "../../src/agents/event-log/log-reader.ts";
import { LATE_MS, LogStore, MAX_BATCH_TEXTS } from "../../src/agents/event-log/log-store.ts";
import {
  ASCENDING,
  BATCHES_OF,
  BEGIN_OF,
  DESCENDING,
  LABELLED_ASCENDING,
  LABELLED_DESCENDING,
  MATCHES,
  NEWEST,
  NEWEST_OF,
  READ_BATCH,
  READ_TEXTS,
  RECEIVED_FROM,
} from "../../src/agents/event-log/log-tables.ts";
import { queryOf, snippetOf } from "../../src/agents/event-log/words.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type {
  EventFilter,
  Publication,
  PublishedEntry,
  SearchRequest,
} from "../../src/protocol/event-log.ts";

const NOON = Date.parse("2026-05-01T12:00:00Z");
const ALL = { limit: 200, order: "asc" } as const;

function world() {
  const database = new NodeSqlDatabase();
  const clock = { now: NOON };
  const armed = { count: 0 };
  const store = new LogStore(
    { database, keyValue: new NodeKeyValue(database) },
    () => clock.now,
    () => {
      armed.count += 1;
    },
  );
  const reader = new LogReader(database, store);
  const publish = (conversation: string, from: number, entries: PublishedEntry[], readers = ["ada"]) =>
    store.publish(publication(conversation, from, entries, readers));
  const search = (q: string, request: Partial<SearchRequest> = {}, reads?: string) =>
    reader.search({ q, ...request }, reads);
  return { database, clock, armed, store, reader, publish, search };
}

/** Returns the statements of an action, and the rows that they return. */
function costOf(database: NodeSqlDatabase, act: () => void): { statements: number; rows: number } {
  const cost = { statements: 0, rows: 0 };
  const run = vi.spyOn(database, "run");
  const all = vi.spyOn(database, "all");
  act();
  cost.statements = run.mock.calls.length + all.mock.calls.length;
  for (const { value } of all.mock.results) cost.rows += value.length;
  vi.restoreAllMocks();
  return cost;
}

function publication(
  conversationId: string,
  from: number,
  entries: PublishedEntry[],
  readers = ["ada"],
): Publication {
  return { conversationId, projectId: "default", readers, newest: from + entries.length - 1, from, entries };
}

function entry(type: PublishedEntry["type"], more: Partial<PublishedEntry> = {}): PublishedEntry {
  return { type, at: NOON, ...more };
}

/** An entry with a message. */
function said(text: string, more: Partial<PublishedEntry> = {}): PublishedEntry {
  const { at = NOON, agentId = "guide" } = more;
  const ids = { turnId: "turn_1", messageId: `msg_${text.slice(0, 8)}`, agentId, userId: "ada" };
  return entry("turn.started", { at, agentId, ...more, texts: [{ ...ids, role: "user", at, text }] });
}

describe("A70 EVLOG-1 publications", () => {
  test("A70 EVLOG-1 in any order, repeated and late, leave each entry once and in order", () => {
    const slices = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 });
    const puts = fc.array(fc.record({ conversation: fc.constantFrom("a", "b"), slice: fc.nat(4) }), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(slices, puts, (sizes, sent) => {
        const { reader, store } = world();
        const begins = sizes.map((_, n) => sizes.slice(0, n).reduce((sum, size) => sum + size, 1));
        const put = (conversation: string, n: number) => {
          const from = begins[n] ?? 1;
          const entries = Array.from({ length: sizes[n] ?? 0 }, (_, index) =>
            entry("tool.completed", { data: from + index }),
          );
          return store.publish(publication(conversation, from, entries));
        };
        for (const { conversation, slice } of sent) if (slice < sizes.length) put(conversation, slice);
        for (const conversation of ["a", "b"]) for (const n of sizes.keys()) put(conversation, n);
        const { items } = reader.events({}, ALL);
        const seqs = items.map(({ seq }) => seq);
        expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
        const total = sizes.reduce((sum, size) => sum + size, 0);
        for (const conversation of ["a", "b"]) {
          const own = reader.events({ conversation }, ALL).items;
          const numbers = Array.from({ length: total }, (_, index) => index + 1);
          expect(own.map(({ entry: n }) => n)).toEqual(numbers);
          expect(own.map(({ data }) => data)).toEqual(numbers);
          expect(store.published(conversation)).toBe(total);
        }
      }),
    );
  });

  test("A70 EVLOG-1 RUNLOG-1 of runs and conversations are in one order, and filters tell them apart", () => {
    const { publish, store, reader } = world();
    const runId = "run_01JD0000000000000000000000";
    const links = { correlationId: "corr-1", parentRunId: "run_01JD0000000000000000000001" };
    publish("a", 1, [entry("turn.started", { correlationId: "corr-1" }), entry("tool.failed")]);
    const entries = [
      entry("workflow.started", links),
      entry("token.created", { ...links, token: 0, node: "start" }),
      entry("workflow.failed", links),
    ];
    const publishRun = () =>
      store.publish({ runId, projectId: "default", readers: [], newest: 3, from: 1, entries });
    expect([publishRun(), publishRun(), store.published(runId)]).toEqual([3, 3, 3]);
    const find = (filter: EventFilter) => reader.events(filter, ALL).items.map(({ type }) => type);
    const ofRun = entries.map(({ type }) => type);
    expect(find({ run: runId })).toEqual(ofRun);
    expect(find({ correlation: "corr-1" })).toEqual(["turn.started", ...ofRun]);
    expect(find({ conversation: runId })).toEqual([]);
    expect(find({ run: "a" })).toEqual([]);
    expect(find({ types: ["workflow.failed"] })).toEqual(["workflow.failed"]);
    expect(find({ types: ["workflow.started"] })).toEqual(["workflow.started"]);
    expect(reader.events({ types: ["token.created"] }, ALL).items).toEqual([
      {
        ...{ seq: 4, runId, parentRunId: links.parentRunId, projectId: "default", entry: 2 },
        ...{ type: "token.created", time: new Date(NOON).toISOString(), token: 0, node: "start" },
        correlationId: "corr-1",
      },
    ]);
  });

  test("A70 EVLOG-1 numbers are not used again after the newest conversation was removed", () => {
    const { publish, store, reader } = world();
    publish("a", 1, [entry("turn.started"), entry("turn.completed")]);
    publish("b", 1, [entry("turn.started"), entry("turn.completed")]);
    expect(store.empty("b")).toBe(false);
    publish("c", 1, [entry("turn.started")]);
    expect(reader.events({}, ALL).items.map(({ seq, conversationId }) => [seq, conversationId])).toEqual([
      [1, "a"],
      [2, "a"],
      [5, "c"],
    ]);
  });

  test("A70 EVLOG-1 a late replacement does not restore erased data", () => {
    const { publish, store, reader, search } = world();
    publish("a", 1, [said("The word is secret", { data: "secret" })]);
    const before = publication("a", 1, [said("The word is secret", { data: "secret" })]);
    store.replace({ ...publication("a", 1, [entry("turn.started", { data: "[erased]" })]), newest: 9 });
    store.replace({ ...before, newest: 8 });
    expect(store.publish(before)).toBe(1);
    expect(reader.events({}, ALL).items.map(({ data }) => data)).toEqual(["[erased]"]);
    expect(search("secret").items).toEqual([]);
  });
});

describe("A70 reads of events", () => {
  const TYPES = ["turn.started", "tool.completed", "tool.failed", "message.completed"] as const;
  const filters = fc.record<EventFilter>(
    {
      types: fc.uniqueArray(fc.constantFrom(...TYPES), { minLength: 1 }),
      conversation: fc.constantFrom("a", "b"),
      agent: fc.constantFrom("guide", "clerk"),
      correlation: fc.constantFrom("x", "y"),
      since: fc.integer({ min: -3, max: 3 }).map((hours) => NOON + hours * LATE_MS),
      until: fc.integer({ min: -3, max: 3 }).map((hours) => NOON + hours * LATE_MS),
      after: fc.nat(20),
    },
    { requiredKeys: [] },
  );
  const batches = fc.array(
    fc.record({
      conversation: fc.constantFrom("a", "b"),
      late: fc.constantFrom(0, 0, 2, 4),
      entries: fc.array(
        fc.record({
          type: fc.constantFrom(...TYPES),
          agentId: fc.constantFrom("guide", "clerk"),
          correlationId: fc.constantFrom("x", "y"),
        }),
        { minLength: 1, maxLength: 4 },
      ),
    }),
    { maxLength: 12 },
  );

  test("A70 EVLOG-6 EVLOG-7 with any filter return the events that it selects, in both orders and in pages", () => {
    fc.assert(
      fc.property(batches, filters, fc.integer({ min: 1, max: 5 }), (given, filter, limit) => {
        const { publish, reader, clock, store } = world();
        const all: { seq: number; at: number; conversation: string; entry: PublishedEntry }[] = [];
        for (const [n, { conversation, late, entries }] of given.entries()) {
          clock.now = NOON + (n - 6) * 1_800_000;
          const at = clock.now - late * LATE_MS;
          const timed = entries.map((one) => ({ ...one, at }));
          publish(conversation, store.published(conversation) + 1, timed);
          for (const one of timed) all.push({ seq: all.length + 1, at, conversation, entry: one });
        }
        const { types, since = -Infinity, until = Infinity, after = 0 } = filter;
        const expected = all
          .filter(
            ({ seq, at, conversation, entry: { type, agentId, correlationId } }) =>
              (types === undefined || types.some((one) => one === type)) &&
              (filter.conversation ?? conversation) === conversation &&
              (filter.agent ?? agentId) === agentId &&
              (filter.correlation ?? correlationId) === correlationId &&
              at >= since &&
              at < until &&
              seq > after,
          )
          .map(({ seq }) => seq);
        for (const order of ["asc", "desc"] as const) {
          const found: number[] = [];
          for (let cursor: string | undefined; ; ) {
            const page = reader.events(filter, { limit, order, cursor });
            found.push(...page.items.map(({ seq }) => seq));
            cursor = page.nextCursor;
            if (cursor === undefined) break;
            expect(page.items).toHaveLength(limit);
          }
          expect(found).toEqual(order === "asc" ? expected : expected.toReversed());
        }
      }),
    );
  });

  test("A70 EVLOG-5 look at a bounded number of batches, and continue after their cursor", () => {
    const { publish, reader } = world();
    for (let n = 1; n <= MAX_READ + 100; n++) publish("a", n, [entry("turn.started", { agentId: "guide" })]);
    publish("a", MAX_READ + 101, [entry("turn.started", { agentId: "guide", correlationId: "x" })]);
    const filter = { agent: "guide", types: ["message.user" as const, "turn.started" as const], since: 0 };
    const rare = { ...filter, types: ["message.user" as const] };
    const first = reader.events(rare, ALL);
    expect(first.items).toEqual([]);
    expect(Number(first.nextCursor)).toBeGreaterThanOrEqual(MAX_READ);
    expect(reader.events(rare, { ...ALL, cursor: first.nextCursor })).toEqual({ items: [] });
    expect(reader.events(filter, { ...ALL, limit: 3 }).items).toHaveLength(3);
  });

  test("A70 EVLOG-6 each statement reads an index or the key of its table", () => {
    const { publish, database } = world();
    publish("a", 1, [said("Hello")]);
    const plan = (statement: string, ...values: (string | number)[]) =>
      database
        .all<{ detail: string }>(`EXPLAIN QUERY PLAN ${statement}`, ...values)
        .map(({ detail }) => detail)
        .filter((detail) => !/^(?:SEARCH|SCALAR SUBQUERY|CORRELATED SCALAR SUBQUERY)/.test(detail));
    for (const statement of [ASCENDING, DESCENDING]) expect(plan(statement, 1, 9, 64)).toEqual([]);
    for (const statement of [LABELLED_ASCENDING, LABELLED_DESCENDING])
      expect(plan(statement, "c:a", 1, 9, 64)).toEqual([]);
    expect(plan(NEWEST_OF, "c:a")).toEqual([]);
    expect(plan(BATCHES_OF, "c:a", 0, 64)).toEqual([]);
    for (const statement of [BEGIN_OF, READ_BATCH, READ_TEXTS, RECEIVED_FROM])
      expect(plan(statement, 1)).toEqual([]);
    expect(plan(MATCHES, '"hello"', 1, 99, 64)).toEqual([
      expect.stringMatching(/^SCAN message_words VIRTUAL TABLE INDEX \d+:M/),
    ]);
    // The end of the table.
    expect(plan(NEWEST)).toEqual(["SCAN batches"]);
  });
});

describe("A70 a search of messages", () => {
  test("A70 SEARCH-1 SEARCH-2 finds all words of a query in any case, with and without accents, in Chinese, and pictographs", () => {
    const { publish, search } = world();
    publish("a", 1, [
      said("Crème brûlée for two"),
      said("我想取消订单"),
      said("Thanks 🎉, refunds are done"),
    ]);
    const found = (q: string) => search(q).items.map(({ snippet, marks }) => [snippet, marks]);
    expect(found("CREME brulee")).toEqual([
      [
        "Crème brûlée for two",
        [
          [0, 5],
          [6, 12],
        ],
      ],
    ]);
    expect(found("creme refund")).toEqual([]);
    expect(found("取消")).toEqual([["我想取消订单", [[2, 4]]]]);
    expect(found("🎉 refund")).toEqual([
      [
        "Thanks 🎉, refunds are done",
        [
          [7, 9],
          [11, 18],
        ],
      ],
    ]);
    expect(found("!? -- *")).toEqual([]);
  });

  test("A70 SEARCH-1 no query is an error of the index", () => {
    const { publish, search } = world();
    publish("a", 1, [said('one AND "two" NOT three* (four) NEAR col:five ^six')]);
    const hostile = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.string({
        unit: fc.constantFrom('"', "*", "(", ")", "^", ":", "-", "+", " ", "AND", "NOT", "NEAR", "a"),
        maxLength: 30,
      }),
      fc.constantFrom("\0", "\ud800", '""', '"', "words:", "'; DROP TABLE batches; --", "𞤀x", "\ue000late"),
    );
    fc.assert(
      fc.property(hostile, (q) => {
        expect(Array.isArray(search(q).items)).toBe(true);
        expect(search(q, {}, "eve").items).toEqual([]);
      }),
      { numRuns: 400 },
    );
    for (const q of ["AND two", "three*", '"four"', "NEAR(five six)", "NOT one"])
      expect(search(q).items, q).toHaveLength(1);
  });

  test("A70 SEARCH-3 a text cannot claim another reader", () => {
    const { publish, search } = world();
    publish("a", 1, [said("reader \ue000r657665q r657665q eve")]);
    expect(search("reader", {}, "eve").items).toEqual([]);
    expect(search("reader", {}, "ada").items).toHaveLength(1);
  });

  test("A70 EVLOG-4 finds messages of the people who may read a conversation now", () => {
    const { publish, search, reader, store, armed } = world();
    publish("a", 1, [said("The parcel is lost")]);
    expect(armed.count).toBe(0);
    publish("a", 2, [entry("participant.joined")], ["ada", "ben"]);
    expect(armed.count).toBe(1);
    expect(store.indexReaders()).toBe(false);
    expect(search("parcel", {}, "ben").items).toHaveLength(1);
    publish("a", 3, [entry("participant.left")], ["ben"]);
    expect(search("parcel", {}, "ada").items, "before the index has the change").toEqual([]);
    expect(store.indexReaders()).toBe(false);
    expect(search("parcel", {}, "ada").items).toEqual([]);
    expect(search("parcel", {}, "ben").items).toHaveLength(1);
    publish("a", 3, [entry("participant.left")], ["ada"]);
    expect(search("parcel", {}, "ada").items, "a late publication").toEqual([]);
    expect(search("parcel").items).toHaveLength(1);
    expect(reader.events({}, ALL).items.map(({ type }) => type)).toEqual([
      ...["turn.started", "participant.joined", "participant.left"],
    ]);
  });

  test("A70 EVLOG-4 a change of readers costs the same after any history, and reaches earlier messages in slices", () => {
    const costs = [200, 400].map((turns) => {
      const { publish, search, store, database } = world();
      for (let n = 1; n <= turns; n++) publish("a", n, [said(`The parcel ${n} is lost`)]);
      publish("b", 1, [said("The parcel is here")]);
      const cost = costOf(database, () =>
        publish("a", turns + 1, [entry("participant.joined")], ["ada", "ben"]),
      );
      publish("b", 2, [entry("participant.joined")], ["ada", "ben"]);
      expect(search("parcel", {}, "ben").items).toEqual([]);
      const steps: number[] = [];
      for (let isMore = true; isMore; )
        steps.push(
          costOf(database, () => {
            isMore = store.indexReaders();
          }).statements,
        );
      expect(steps.length).toBeGreaterThan(turns / 100);
      expect(Math.max(...steps)).toBeLessThan(500);
      expect(search("parcel", { limit: 200 }, "ben").items.length).toBe(200);
      expect(search("here", {}, "ben").items).toHaveLength(1);
      return cost;
    });
    expect(costs[1]).toEqual(costs[0]);
  });

  test("A70 EVLOG-1 a first publication that rolls back is repeated", () => {
    const { publish, database } = world();
    const run = database.run.bind(database);
    let fails = true;
    vi.spyOn(database, "run").mockImplementation((statement, ...values) => {
      if (fails && statement.startsWith("INSERT INTO batches")) throw new Error("The disk is full.");
      run(statement, ...values);
    });
    expect(() => publish("a", 1, [said("Hello")])).toThrow("The disk is full.");
    fails = false;
    expect(publish("a", 1, [said("Hello")])).toBe(1);
    vi.restoreAllMocks();
  });

  test("A70 EVLOG-4 each publication arms the wake-up while a message waits for its new readers", () => {
    const { publish, store, armed } = world();
    publish("a", 1, [said("Hello")]);
    for (let time = 1; time <= 2; time++) {
      publish("a", 2, [entry("participant.joined")], ["ada", "ben"]);
      expect(armed.count).toBe(time);
    }
    expect(store.indexReaders()).toBe(false);
    publish("a", 3, [entry("turn.failed")], ["ada", "ben"]);
    expect(armed.count).toBe(2);
  });

  test("A70 EVLOG-4 many readers with long names do not make the rows of messages larger", () => {
    const { publish, search, store, database } = world();
    const crowd = Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(200, "\u8a9e"));
    const texts = Array.from(
      { length: MAX_BATCH_TEXTS },
      (_, n) => said(`The parcel ${n}`).texts ?? [],
    ).flat();
    publish("a", 1, [entry("turn.started", { texts })]);
    publish("a", 2, [entry("participant.joined")], crowd);
    const run = vi.spyOn(database, "run");
    expect(store.indexReaders()).toBe(false);
    const sizes = run.mock.calls.flatMap(([statement, ...values]) =>
      statement.startsWith("UPDATE batches") ? [JSON.stringify(values).length] : [],
    );
    vi.restoreAllMocks();
    expect(Math.max(...sizes)).toBeLessThan(100_000);
    expect(search("parcel", { limit: 200 }, crowd[7]).items).toHaveLength(MAX_BATCH_TEXTS);
  });

  test("A70 EVLOG-1 a publication from before a replacement changes nothing", () => {
    const { store, publish, search } = world();
    publish("a", 1, [said("The parcel is lost")]);
    const late = publication("a", 2, [said("The secret parcel")]);
    store.replace({ ...publication("a", 1, [said("")]), newest: 5 });
    expect(store.publish(late)).toBe(1);
    expect(search("secret").items).toEqual([]);
    expect(store.publish({ ...publication("a", 2, [said("The open parcel")]), newest: 5 })).toBe(2);
    expect(search("open").items).toHaveLength(1);
  });

  test("A70 EVLOG-7 an entry of a far future does not make later batches late", () => {
    const { publish, reader, clock } = world();
    publish("future", 1, [entry("turn.failed", { at: 8.64e15 })]);
    for (let n = 1; n <= 3; n++) {
      clock.now = NOON + n * 60_000;
      publish("now", n, [entry("turn.failed", { at: clock.now })]);
    }
    const found = reader.events({ conversation: "now", until: NOON + 150_000 }, ALL);
    expect(found.items).toHaveLength(2);
    expect(JSON.stringify(reader.events({ conversation: "now" }, ALL))).not.toContain("late");
  });

  test("A70 EVLOG-5 a search reads each batch of adjacent messages once", () => {
    const { publish, search, database } = world();
    const texts = Array.from(
      { length: MAX_BATCH_TEXTS },
      (_, n) => said(`The parcel ${n}`).texts ?? [],
    ).flat();
    for (let n = 1; n <= 10; n++) publish("a", n, [entry("turn.started", { texts })]);
    const { statements } = costOf(database, () => search("parcel", { until: NOON - 1 }));
    expect(statements).toBeLessThan(40);
  });

  test("A70 EVLOG-3 an erasure reads as many rows as the conversation has, not the square", () => {
    const costs = [200, 400].map((turns) => {
      const { publish, store, database } = world();
      for (let n = 1; n <= turns; n++) publish("a", n, [said(`The parcel ${n} is lost`)]);
      return costOf(database, () => {
        for (let from = 1; from <= turns; from += 16) {
          const entries = Array.from({ length: Math.min(16, turns - from + 1) }, (_, index) =>
            said(from + index === 7 ? "" : `The parcel ${from + index} is lost`),
          );
          store.replace({ ...publication("a", from, entries), newest: turns + 1 });
        }
      });
    });
    const [few, many] = costs;
    expect((many?.rows ?? 0) / (few?.rows ?? 1)).toBeLessThan(2.5);
    // Equal messages are not written again.
    expect(many?.statements).toBeLessThan(500);
  });

  test("A70 EVLOG-5 EVLOG-7 filters by agent, person and time, newest first, in pages", () => {
    const { publish, search, clock } = world();
    for (let n = 1; n <= 150; n++) {
      clock.now = NOON + n * 60_000;
      const at = n === 100 ? NOON - 5 * LATE_MS : clock.now;
      publish(`c${n}`, 1, [said(`Order ${n} is ready`, { at, agentId: n % 2 === 0 ? "guide" : "clerk" })]);
    }
    const of = (request: Partial<SearchRequest>) => {
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = search("order ready", {
          limit: 40,
          ...request,
          ...(cursor === undefined ? {} : { cursor }),
        });
        found.push(...page.items.map(({ conversationId }) => conversationId));
        if (page.nextCursor === undefined) return found;
        cursor = page.nextCursor;
      }
    };
    const numbers = Array.from({ length: 150 }, (_, index) => 150 - index);
    expect(of({})).toEqual(numbers.map((n) => `c${n}`));
    expect(of({ agent: "guide" })).toEqual(numbers.filter((n) => n % 2 === 0).map((n) => `c${n}`));
    expect(of({ user: "ben" })).toEqual([]);
    const until = NOON + 10 * 60_000;
    expect(of({ until })).toEqual(["c100", ...numbers.filter((n) => n < 10).map((n) => `c${n}`)]);
    expect(of({ since: NOON, until })).toEqual(numbers.filter((n) => n < 10).map((n) => `c${n}`));
  });

  test("A70 EVLOG-3 removed, replaced and erased words leave the segments of the index", () => {
    const { publish, store, database } = world();
    const segments = () => {
      const rows = database.all<{ block: Uint8Array }>("SELECT block FROM message_words_data");
      return rows.map(({ block }) => new TextDecoder("latin1").decode(block)).join();
    };
    publish("a", 1, [said("kaleidoscope one"), said("zeppelin two")]);
    publish("b", 1, [said("marzipan three")]);
    expect(segments()).toMatch(/kaleidoscop/);
    store.replace({ ...publication("a", 1, [entry("turn.started"), said("zeppelin two")]), newest: 9 });
    expect(segments()).not.toMatch(/kaleidoscop/);
    expect(segments()).toMatch(/marzipan/);
    store.empty("b");
    expect(segments()).not.toMatch(/marzipan/);
    expect(segments()).toMatch(/zeppelin/);
    const left = database.all<{ n: number }>("SELECT count(*) AS n FROM labels WHERE label = 'c:b'");
    expect(left.map(({ n }) => n)).toEqual([0]);
  });

  test("A70 SEARCH-2 a snippet is a part of the text, with the places of the found words", () => {
    const words = fc.array(fc.constantFrom("refund", "order", "très", "订单", "🎉", "…", "x".repeat(90)), {
      maxLength: 120,
    });
    fc.assert(
      fc.property(words, (parts) => {
        const text = parts.join(" ");
        const { snippet, marks } = snippetOf(text, queryOf("refund 订单", {}).found);
        const inner = snippet.slice(snippet.startsWith("…") && !text.startsWith(snippet.slice(0, 3)) ? 1 : 0);
        expect(text).toContain(inner.replace(/…$/, "").replace(/^…/, ""));
        for (const [begin, end] of marks) expect(["refund", "订单"]).toContain(snippet.slice(begin, end));
        if (parts.some((part) => part === "refund" || part === "订单"))
          expect(marks.length).toBeGreaterThan(0);
      }),
    );
  });
});

test("E23 LOGFOLLOW-2 a follower that finds no event reads on in steps, without a new publication", async () => {
  const { publish, reader, store } = world();
  const clock = new VirtualClock();
  for (let n = 1; n <= MAX_READ + 50; n++) publish("a", n, [entry("turn.started", { agentId: "guide" })]);
  publish("a", MAX_READ + 51, [entry("message.user", { agentId: "guide" })]);
  const followers = new LogFollowers(clock, reader, () => store.last);
  const operator = { subject: "olga", tenant: "t", roles: ["operator" as const] };
  const stream = followers.open(operator, { types: ["message.user"] }).getReader();
  const first = stream.read();
  await clock.advance(1_000);
  expect(new TextDecoder().decode((await first).value)).toContain(`id: ${MAX_READ + 51}\n`);
  await stream.cancel();
});

type NoteRow = { seq: number; at: number; entries: string[] };

/** Returns an actor with a journal of notes. The note "erased" is an erasure. */
function actorOf(rows: NoteRow[], log: EventLogWriter, published: () => PublishedEntry): LoggedActor<string> {
  const forward = (from: number, limit: number) => rows.slice(from - 1, from - 1 + limit);
  return {
    runtime: () => ({ exists: true, dueIn: null, store: { journal: { forward } } }),
    events: () => log,
    address: () => ({ tenant: "acme", id: "a" }),
    head: () => ({ conversationId: "a", projectId: "default", readers: ["ada"], newest: rows.length }),
    entries: () => published,
    isErasure: (note) => note === "erased",
  };
}

test.each([true, false])(
  "A70 LOGGED-2 a first publication that arrives late brings no erased text back; the log exists: %s",
  async (exists) => {
    const { store, publish, search } = world();
    if (exists) publish("other", 1, [entry("turn.started")]);
    const rows = Array.from({ length: 40 }, (_, n) => ({ seq: n + 1, at: NOON, entries: ["said"] }));
    const late: Publication[] = [];
    let isErased = false;
    const log: EventLogWriter = {
      published: async (_tenant, id) => store.published(id),
      async publish(_tenant, given) {
        if (!isErased) {
          late.push(given);
          throw new Error("no answer");
        }
        for (const given of late.splice(0)) store.publish(given);
        return store.publish(given);
      },
      replace: async (_tenant, given) => store.replace(given),
      empty: async () => false,
    };
    const target = new EventsTarget(
      actorOf(rows, log, () => said(isErased ? "Hello" : "The zanzibar secret")),
    );
    await expect(target.put(log, rows, 0)).rejects.toThrow("no answer");
    isErased = true;
    rows.push({ seq: 41, at: NOON, entries: ["erased"] });
    expect(await target.put(log, rows, 0)).toBe(41);
    expect(search("zanzibar").items).toEqual([]);
    expect(search("hello").items.length).toBeGreaterThan(0);
  },
);

test("A70 LOGGED-2 an erasure in a long conversation is published while the conversation goes on", async () => {
  const { store } = world();
  const rows = Array.from({ length: 192 }, (_, n) => ({ seq: n + 1, at: NOON, entries: ["note"] }));
  const commit = (note: string) => rows.push({ seq: rows.length + 1, at: NOON, entries: [note] });
  const log: EventLogWriter = {
    published: async (_tenant, id) => store.published(id),
    publish: async (_tenant, given) => store.publish(given),
    async replace(_tenant, given) {
      commit("note");
      store.replace(given);
    },
    empty: async () => false,
  };
  const target = new EventsTarget(actorOf(rows, log, () => entry("turn.started")));
  let upTo = 0;
  const put = async () => {
    upTo = await target.put(log, rows.slice(upTo, upTo + 64), upTo);
  };
  while (upTo < 192) await put();
  commit("erased");
  await put();
  expect(upTo).toBe(193);
});
