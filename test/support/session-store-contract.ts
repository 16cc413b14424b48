/** The contract of the store of sessions, on any database. */
import { expect, it } from "vitest";
import { EventStore } from "../../src/memory/session/event-store.ts";
import { LongText } from "../../src/memory/session/long-text.ts";
import type { SessionEvent } from "../../src/memory/session/session-event.ts";
import { SessionStore } from "../../src/memory/session/session-store.ts";
import { SqlSessionTable } from "../../src/memory/session/session-table.ts";
import type { SqlDatabase } from "../../src/ports/sql-database.ts";
import { CostCounter, countingDatabase } from "./counting.ts";
import { agent, compaction, everyAction, result, user } from "./events.ts";
import type { WithPorts } from "./port-contract.ts";

const users = (count: number, from = 0) => Array.from({ length: count }, (_, i) => user(`e${from + i}`));
const MANY = { limit: 10_000, maxBytes: Number.MAX_SAFE_INTEGER };

interface Stores {
  db: SqlDatabase;
  store: SessionStore;
  counter: CostCounter;
  /** Moves the clock, by default by one millisecond. */
  later(milliseconds?: number): void;
}

/** Registers the tests. */
export function sessionStoreContract(withPorts: WithPorts): void {
  const withStores = (body: (stores: Stores) => void) =>
    withPorts((ports) => {
      const counter = new CostCounter();
      const { db } = countingDatabase(ports.db, ports.kv, counter);
      const sessions = new SqlSessionTable(db);
      const events = new EventStore(db, new LongText(db));
      sessions.createTable();
      events.createTable();
      events.indexIds();
      let now = 1_000;
      let ids = 0;
      const store = new SessionStore({
        db,
        sessions,
        events,
        clock: { now: () => now },
        ids: { ulid: () => String(++ids).padStart(8, "0") },
      });
      counter.reset();
      const later = (milliseconds = 1) => {
        now += milliseconds;
      };
      body({ db, store, counter, later });
    });

  const stored = (store: SessionStore, session: string) =>
    store.load(session, MANY).map(({ seq, id }) => [seq, id]);

  it("SESSIONS-3 a repeated event is skipped, alone or among new events", async () => {
    await withStores(({ store }) => {
      const session = store.create("a");
      store.append(session, everyAction());
      const before = store.load(session);
      store.append(session, everyAction());
      expect(store.load(session)).toEqual(before);
      const [, second, third] = everyAction();
      const mixed = [user("n1"), second, user("n2"), third, user("n3")] as SessionEvent[];
      store.append(session, mixed);
      expect(stored(store, session)).toEqual([
        ...before.map(({ seq, id }) => [seq, id]),
        [6, "n1"],
        [7, "n2"],
        [8, "n3"],
      ]);
      store.append(session, [user("n4")]);
      expect(store.load(session, { limit: 1 })).toMatchObject([{ seq: 9, id: "n4" }]);
    });
  });

  it("SESSIONS-3 the same content is recognised with its members in any order, at any time, after any number of events, and in pieces", async () => {
    await withStores(({ store }) => {
      const session = store.create("a");
      const long = "x".repeat(2_000_000);
      const first: SessionEvent[] = [
        { ...user("m"), metadata: { one: 1, two: { three: [3], four: null } } },
        { ...result("t", "c", long), metadata: { notes: long } },
        compaction("k", 1),
      ];
      store.append(session, first);
      store.append(session, users(1_500));
      store.append(session, [
        { ...first[0], timestamp: 5, metadata: { two: { four: null, three: [3] }, one: 1 } } as SessionEvent,
        ...first.slice(1),
      ]);
      expect(store.load(session, MANY)).toHaveLength(1_503);
      expect(store.load(session, { limit: 1, tail: false })).toMatchObject([
        { timestamp: 1_767_225_600_000 },
      ]);
    });
  });

  it("SESSIONS-3 a known id with different content is a CONFLICT: the batch is not stored, and no number is used", async () => {
    await withStores(({ store }) => {
      const session = store.create("a");
      store.append(session, everyAction());
      const before = store.load(session);
      const metadataOf = (event: SessionEvent) => ({ ...event, metadata: { other: true } });
      const others: SessionEvent[] = [
        user("u", "other"),
        agent("u", "hello"),
        ...everyAction().map(metadataOf),
        { ...everyAction()[3], isSuccess: true } as SessionEvent,
        { ...everyAction()[3], content: "o".repeat(2_000_000) } as SessionEvent,
      ];
      for (const other of others) {
        expect(() => store.append(session, [user("new"), other, user("new too")])).toThrow(
          expect.objectContaining({ code: "CONFLICT", message: expect.stringContaining(`"${other.id}"`) }),
        );
      }
      expect(store.load(session)).toEqual(before);
      store.append(session, [user("next")]);
      expect(store.load(session, { limit: 1 })).toMatchObject([{ seq: 6 }]);
    });
  });

  it("SESSIONS-3 ids count within a session: a batch may repeat an event, another session may have it, a deleted one may return", async () => {
    await withStores(({ store }) => {
      const [one, two] = [store.create("a"), store.create("a")];
      store.append(one, [user("x"), user("y"), user("x")]);
      expect(stored(store, one)).toEqual([
        [0, "x"],
        [1, "y"],
      ]);
      expect(() => store.append(one, [user("z"), user("z", "other")])).toThrow(
        expect.objectContaining({ code: "CONFLICT" }),
      );
      store.append(two, [user("x", "of two")]);
      store.deleteEvents(one, ["x"]);
      store.append(one, [user("x", "anew")]);
      expect(stored(store, one)).toEqual([
        [1, "y"],
        [2, "x"],
      ]);
      expect(store.load(two)).toMatchObject([{ content: "of two" }]);
    });
  });

  it("SESSIONS-3 a batch of known events and a different event is a CONFLICT", async () => {
    await withStores(({ store }) => {
      const session = store.create("a");
      store.append(session, [user("x"), user("y")]);
      for (const batch of [
        [user("x"), user("y", "other")],
        [user("x", "other"), user("y")],
      ]) {
        expect(() => store.append(session, batch)).toThrow(expect.objectContaining({ code: "CONFLICT" }));
      }
    });
  });

  it("SESSIONS-3 ten thousand events with the longest ids are sent twice, and stored once", async () => {
    await withStores(({ store }) => {
      const session = store.create("a");
      const batch = users(10_000).map((event) => ({ ...event, id: event.id.padEnd(500, "é") }));
      store.append(session, batch);
      store.append(session, batch);
      store.append(session, [user("last")]);
      expect(store.load(session, { limit: 1 })).toMatchObject([{ seq: 10_000 }]);
      store.deleteEvents(
        session,
        batch.map(({ id }) => id),
      );
      expect(stored(store, session)).toEqual([[10_000, "last"]]);
    });
  });

  it("SESSIONS-3 looking for ids costs no statement", async () => {
    await withStores(({ store, counter }) => {
      const session = store.create("a");
      counter.reset();
      store.append(session, users(1));
      expect(counter.cost.statements).toBe(2);
      counter.reset();
      store.append(session, users(300, 1));
      expect(counter.cost.statements).toBe(2);
    });
  });

  it("M7 M21 EVENTS-2 one statement deletes the pieces of deleted events, and pieces of other events stay", async () => {
    await withStores(({ db, store, counter }) => {
      const long = (name: string) => name.repeat(2_000_000);
      const both = (id: string, letter: string): SessionEvent => ({
        ...result(id, "c", long(letter)),
        metadata: { notes: long(letter) },
      });
      const [one, two] = [store.create("a"), store.create("a")];
      const events = [both("b", "x"), result("c", "c", long("y")), both("d", "z"), user("e")];
      for (const session of [one, two]) store.append(session, events);
      counter.reset();
      store.deleteEvents(one, ["b", "c", "e"]);
      expect(counter.cost.statements).toBe(2);
      expect(store.load(one, MANY)).toEqual([{ ...events[2], sessionId: one, seq: 2 }]);
      expect(store.load(two, MANY)).toEqual(events.map((event, seq) => ({ ...event, sessionId: two, seq })));
      const keys = "SELECT count(DISTINCT key) AS n FROM cf_agents_long_text";
      expect(db.all(keys)).toEqual([{ n: 2 + 5 }]);
      store.delete(one);
      expect(db.all(keys)).toEqual([{ n: 5 }]);
      store.deleteEvents(two, ["b", "c", "d"]);
      expect(db.all(keys)).toEqual([{ n: 0 }]);
    });
  });

  it("M2 a session's last update does not go back with the clock", async () => {
    await withStores(({ store, later }) => {
      const session = store.create("a");
      later(-500);
      store.append(session, users(1));
      expect(store.get(session)).toMatchObject({ created_at: 1_000, updated_at: 1_000 });
      later(501);
      store.append(session, users(1, 1));
      expect(store.get(session)).toMatchObject({ created_at: 1_000, updated_at: 1_001 });
    });
  });

  it("M2 SESSIONS-4 pages of sessions have every session once, created last first or last, also when sessions change in between", async () => {
    await withStores(({ store, later }) => {
      const ids = Array.from({ length: 1_203 }, () => store.create("a"));
      const paged = (options: { order?: "asc" | "desc"; limit?: number }) => {
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const page = store.list({ ...options, ...(cursor === undefined ? {} : { cursor }) });
          found.push(...page.items.map(({ id }) => id));
          later();
          for (const id of [ids[0], ids[600], ids.at(-1)])
            store.append(id ?? "", [user(`after ${found.length}`)]);
          cursor = page.nextCursor;
        } while (cursor !== undefined);
        return found;
      };
      expect(paged({ limit: 200 })).toEqual(ids.toReversed());
      expect(paged({ limit: 7, order: "asc" })).toEqual(ids);
      expect(store.list().items).toHaveLength(50);
      expect(store.list({ cursor: ids[9] ?? "", limit: 10 })).toEqual({
        items: ids
          .slice(0, 9)
          .toReversed()
          .map((id) => expect.objectContaining({ id })),
      });
    });
  });
}
