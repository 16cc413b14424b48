/** The contract of the stores of sessions and events, on any database. */
import { expect, it } from "vitest";
import { EventStore, type LoadWindowOptions } from "../../src/memory/session/event-store.ts";
import { LongText, MAX_TEXT_BYTES, packedBytes } from "../../src/memory/session/long-text.ts";
import { EventAction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import type { SqlDatabase } from "../../src/ports/sql-database.ts";
import { utf8Length } from "../../src/shared/utf8.ts";
import { CostCounter, countingDatabase } from "./counting.ts";
import { agent, compaction, everyAction, result, user } from "./events.ts";
import type { WithPorts } from "./port-contract.ts";

const MEGABYTE = 1_000_000;

interface Stores {
  db: SqlDatabase;
  events: EventStore;
  longText: LongText;
  counter: CostCounter;
}

const users = (count: number, from = 0) => Array.from({ length: count }, (_, i) => user(`e${from + i}`));
const ids = (events: readonly SessionEvent[]) => events.map(({ id }) => id);
const seqs = (events: readonly SessionEvent[]) => events.map(({ seq }) => seq);

/** Registers the tests. */
export function eventStoreContract(withPorts: WithPorts): void {
  const withStores = (body: (stores: Stores) => void) =>
    withPorts((ports) => {
      const counter = new CostCounter();
      const { db } = countingDatabase(ports.db, ports.kv, counter);
      const longText = new LongText(db);
      const events = new EventStore(db, longText);
      events.createTable();
      events.createTable();
      events.indexIds();
      events.indexIds();
      counter.reset();
      body({ db, events, longText, counter });
    });

  it("M8 M9 M10 events are read as appended, with their assigned numbers and session", async () => {
    await withStores(({ events }) => {
      const given = everyAction().map((event) => ({ ...event, sessionId: "elsewhere", seq: 99 }));
      events.append("mine", 5, given);
      expect(events.load("mine")).toEqual(
        given.map((event, index) => ({ ...event, sessionId: "mine", seq: 5 + index })),
      );
      expect(events.load("elsewhere")).toEqual([]);
    });
  });

  it("EVENTS-1 a batch is one statement, an empty batch needs no statement, and a duplicate number rejects the whole batch", async () => {
    await withStores(({ events, counter }) => {
      events.append("s", 0, users(300));
      events.append("s", 300, []);
      expect(counter.cost.statements).toBe(1);
      expect(() => events.append("s", 298, users(5, 298))).toThrow("UNIQUE");
      expect(seqs(events.load("s", { limit: 1 }))).toEqual([299]);
    });
  });

  it("EVENTS-1 a batch above the limit of a value takes several statements, and is still atomic", async () => {
    await withStores(({ events, counter }) => {
      const bulky = (count: number) =>
        users(count).map((event) => ({ ...event, content: "x".repeat(300_000) }));
      events.append("s", 0, bulky(20));
      expect(counter.cost.statements).toBe(4);
      expect(events.load("s")).toHaveLength(20);
      expect(() => events.append("s", 1, bulky(20))).toThrow("UNIQUE");
      const mixed = [
        ...bulky(8),
        result("long", "c", "y".repeat(2 * MEGABYTE)),
        { ...user("bad"), content: "\ud800" },
      ];
      expect(() => events.append("s", 20, mixed)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
      expect(seqs(events.load("s", { limit: 1 }))).toEqual([19]);
    });
  });

  it("M6 loads the last 50 ascending by default, or the first, or the events before a number", async () => {
    await withStores(({ events }) => {
      events.append("s", 0, users(120));
      events.append("other", 0, users(3));
      const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
      expect(seqs(events.load("s"))).toEqual(range(70, 120));
      expect(seqs(events.load("s", { limit: 3 }))).toEqual([117, 118, 119]);
      expect(seqs(events.load("s", { limit: 3, tail: false }))).toEqual([0, 1, 2]);
      expect(seqs(events.load("s", { tail: false }))).toEqual(range(0, 50));
      expect(seqs(events.load("s", { limit: 2, before: 10 }))).toEqual([8, 9]);
      expect(seqs(events.load("s", { limit: 20, before: 10, tail: false }))).toEqual(range(0, 10));
      expect(events.load("s", { limit: 0 })).toEqual([]);
      expect(events.load("nobody")).toEqual([]);
    });
  });

  it("M6 loads by time, inclusive, and by actions", async () => {
    await withStores(({ events }) => {
      const timed = users(10).map((event, i) => ({
        ...(i % 3 === 0 ? agent(event.id) : event),
        timestamp: 1000 + i,
      }));
      events.append("s", 0, timed);
      expect(seqs(events.load("s", { since: 1007 }))).toEqual([7, 8, 9]);
      expect(seqs(events.load("s", { actions: [EventAction.AGENT_MESSAGE] }))).toEqual([0, 3, 6, 9]);
      expect(
        seqs(events.load("s", { actions: [EventAction.AGENT_MESSAGE], since: 1002, limit: 1, tail: false })),
      ).toEqual([3]);
      expect(
        seqs(events.load("s", { actions: [EventAction.AGENT_MESSAGE, EventAction.USER_MESSAGE] })),
      ).toHaveLength(10);
      expect(events.load("s", { actions: [] })).toEqual([]);
      expect(events.load("s", { actions: [EventAction.COMPACTION] })).toEqual([]);
    });
  });

  it("M7 deletes the named events of the session only, however many are named", async () => {
    await withStores(({ events }) => {
      events.append("s", 0, users(2500));
      events.append("t", 0, users(5));
      events.delete("s", [...ids(users(2400)), "never there"]);
      expect(events.load("s", { limit: 1000 })).toHaveLength(100);
      expect(events.load("t")).toHaveLength(5);
      events.delete("s", []);
      events.delete("t", ["e1", "e3"]);
      expect(ids(events.load("t"))).toEqual(["e0", "e2", "e4"]);
    });
  });

  it("M3 deletes all events of one session, and keeps sessions with a name that begins with its name", async () => {
    await withStores(({ events }) => {
      for (const session of ["a", "a:", "a:0", "1:a"]) {
        events.append(session, 0, [result("t", "c", session.repeat(2 * MEGABYTE)), user("u")]);
      }
      events.deleteSession("a");
      expect(events.load("a")).toEqual([]);
      for (const session of ["a:", "a:0", "1:a"]) {
        expect(events.load(session, { maxBytes: 32 * MEGABYTE })).toMatchObject([
          { content: session.repeat(2 * MEGABYTE) },
          { content: "u" },
        ]);
      }
    });
  });

  it("M21 EVENTS-2 long content and long metadata are read exactly as written, and deleted completely", async () => {
    await withStores(({ db, events }) => {
      const mixed = `${"ä😀\0x".repeat(400_000)}`;
      const long: SessionEvent[] = [
        result("t1", "c1", mixed),
        { ...user("u1", "short"), metadata: { notes: mixed } },
        { ...user("u2", "é".repeat(700_000)), metadata: { notes: "n".repeat(700_000) } },
        { ...user("u3", "\0".repeat(1_400_000)) },
        user("u4"),
      ];
      events.append("s", 0, long);
      const stored = events.load("s", { maxBytes: Number.MAX_SAFE_INTEGER });
      expect(
        stored
          .map(({ content, metadata }) => ({ content, metadata }))
          .every(({ content, metadata }, i) => {
            return (
              content === long[i]?.content && JSON.stringify(metadata) === JSON.stringify(long[i]?.metadata)
            );
          }),
      ).toBe(true);
      const rowSizes =
        "SELECT max(octet_length(content) + octet_length(metadata)) AS bytes FROM cf_agents_events";
      expect(db.all<{ bytes: number }>(rowSizes)[0]?.bytes).toBeLessThan(2 * MEGABYTE);
      const pieces = "SELECT count(*) AS n, max(octet_length(text)) AS bytes FROM cf_agents_long_text";
      const [found] = db.all<{ n: number; bytes: number }>(pieces);
      expect(found?.n).toBeGreaterThan(4);
      expect(found?.bytes).toBeLessThan(2 * MEGABYTE);
      events.delete("s", ["t1", "u2"]);
      expect(ids(events.load("s"))).toEqual(["u1", "u3", "u4"]);
      events.deleteSession("s");
      expect(db.all(pieces)).toEqual([{ n: 0, bytes: null }]);
    });
  });

  it("M21 EVENTS-2 stores text at the limit, and refuses text above it", async () => {
    await withStores(({ events }) => {
      events.append("s", 0, [user("most", "x".repeat(MAX_TEXT_BYTES))]);
      expect(events.load("s")[0]?.content.length).toBe(MAX_TEXT_BYTES);
      const tooMuch = [user("fine"), user("more", "x".repeat(MAX_TEXT_BYTES + 1))];
      expect(() => events.append("s", 1, tooMuch)).toThrow(expect.objectContaining({ code: "TOO_LARGE" }));
      expect(events.load("s", { maxBytes: Number.MAX_SAFE_INTEGER })).toHaveLength(1);
    });
  });

  it("M21 EVENTS-3 a window is bounded by bytes, counts long text in full, and holds at least one event", async () => {
    await withStores(({ events, counter }) => {
      const megabytes = users(20).map((event) => ({ ...event, content: "x".repeat(MEGABYTE) }));
      events.append("s", 0, megabytes);
      events.append("s", 20, [result("t", "c", "y".repeat(3 * MEGABYTE))]);
      expect(seqs(events.load("s"))).toEqual([15, 16, 17, 18, 19, 20]);
      expect(seqs(events.load("s", { tail: false }))).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      counter.reset();
      expect(seqs(events.load("s", { before: 20, maxBytes: 2 * MEGABYTE }))).toEqual([18, 19]);
      expect(counter.cost.statements).toBe(1);
      expect(events.load("s", { maxBytes: 1 })).toMatchObject([
        { seq: 20, content: "y".repeat(3 * MEGABYTE) },
      ]);
    });
  });

  it("M22 EVENTS-4 a window finds the newest compaction at any distance, reads no covered event, and needs one statement", async () => {
    await withStores(({ events, counter }) => {
      const window = (options?: LoadWindowOptions) => {
        counter.reset();
        const { events: found, isCutOff } = events.loadWindow("s", options);
        expect(counter.cost.statements).toBe(1);
        return [seqs(found), isCutOff];
      };
      events.append("s", 0, users(10));
      expect(window()).toEqual([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], false]);
      expect(window({ limit: 3 })).toEqual([[7, 8, 9], true]);
      expect(window({ userMessages: 2, before: 5 })).toEqual([[3, 4], true]);
      events.append("s", 10, [compaction("k1", 4)]);
      events.append("other", 0, [compaction("elsewhere", 0)]);
      expect(window()).toEqual([[4, 5, 6, 7, 8, 9, 10], false]);
      events.append("s", 11, users(20, 11));
      expect(window({ limit: 2 })).toEqual([[10, 29, 30], true]);
      expect(window({ userMessages: 1 })).toEqual([[10, 30], true]);
      expect(window({ limit: 0 })[0]).toEqual([10]);
      expect(window({ maxBytes: 1 })).toEqual([[10, 30], true]);
      expect(window({ before: 10 })).toEqual([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], false]);
      expect(window({ userMessages: 27 })).toEqual([seqs(events.load("s", { from: 4 })), false]);
      events.append("s", 31, [compaction("k2", 31), ...users(2, 32)]);
      expect(window()).toEqual([[31, 32, 33], false]);
      events.delete("s", ["k2"]);
      expect(window({ limit: 1 })).toEqual([[10, 33], true]);
      expect(seqs(events.load("s", { from: 30, limit: 2, tail: false }))).toEqual([30, 32]);
    });
  });

  it("EVENTS-5 LONG-4 events refer to stored texts of any length, among others and with long metadata", async () => {
    await withStores(({ db, events, longText, counter }) => {
      const texts = new Map([
        ["op_1:result", "é".repeat(3_000)],
        ["op_2:result", "👋x".repeat(600_000)],
        ["op_3:result", "short"],
      ]);
      longText.write(texts);
      const contents = new Map(
        [...texts].map(([key, text]) => [key.slice(0, 4), { key, bytes: utf8Length(text) }]),
      );
      const given: SessionEvent[] = [
        user("u"),
        result("op_1", "c1", texts.get("op_1:result")),
        { ...result("op_2", "c2", texts.get("op_2:result")), metadata: { notes: "n".repeat(2 * MEGABYTE) } },
        result("op_3", "c3", texts.get("op_3:result")),
        agent("a"),
      ];
      events.append("s", 0, given, contents);
      const whole = given.map((event, seq) => ({ ...event, seq }));
      expect(events.load("s", { maxBytes: 32 * MEGABYTE })).toEqual(whole);
      expect(events.loadWindow("s", { maxBytes: 32 * MEGABYTE })).toEqual({ events: whole, isCutOff: false });
      counter.reset();
      expect(seqs(events.load("s", { limit: 2, maxBytes: 10 }))).toEqual([4]);
      expect(seqs(events.load("s", { limit: 2 }))).toEqual([3, 4]);
      expect(counter.cost.statements).toBe(3);
      // A content counts with its size, although it is not in the row.
      expect(seqs(events.load("s", { before: 2, maxBytes: 5_999 }))).toEqual([1]);
      events.delete("s", ["op_2", "u"]);
      const left = "SELECT DISTINCT key FROM cf_agents_long_text ORDER BY key";
      expect(db.all(left)).toEqual([{ key: "op_1:result" }, { key: "op_3:result" }]);
      events.deleteSession("s");
      expect(db.all(left)).toEqual([]);
    });
  });

  it("LONG-1 LONG-2 short text is stored in place at no cost; long text is joined from its pieces", async () => {
    await withStores(({ longText, counter }) => {
      const short = "é".repeat(750_000);
      expect(longText.pack("k", short)).toBe(short);
      expect(longText.unpack("k", short)).toBe(short);
      expect(counter.cost.statements).toBe(0);
      const long = `${short}!`;
      const packed = longText.pack("k", long);
      expect(packed).toBeInstanceOf(Uint8Array);
      expect(packedBytes(packed)).toBe(1_500_001);
      expect(longText.unpack("k", packed)).toBe(long);
      expect(longText.unpack("k", longText.pack("k", "other".repeat(MEGABYTE)))).toBe(
        "other".repeat(MEGABYTE),
      );
      expect(longText.unpack("k", longText.pack("k", "12345", 4))).toBe("12345");
    });
  });

  it("LONG-1 reports missing pieces, and discards by key and by prefix", async () => {
    await withStores(({ db, longText }) => {
      longText.discard("never packed");
      const long = "x".repeat(2 * MEGABYTE);
      const keys = ["turn:1", "turn:10", "turn:\u{10ffff}", "other"];
      const packed = keys.map((key) => [key, longText.pack(key, long)] as const);
      longText.discard("turn:1");
      longText.discardAll("nothing");
      expect(db.all("SELECT DISTINCT key FROM cf_agents_long_text ORDER BY key")).toHaveLength(3);
      longText.discardAll("turn:");
      expect(db.all("SELECT DISTINCT key FROM cf_agents_long_text")).toEqual([{ key: "other" }]);
      const outcome =
        ([key, value]: (typeof packed)[number]) =>
        () =>
          longText.unpack(key, value);
      for (const gone of packed.slice(0, 3)) expect(outcome(gone)).toThrow("are missing");
    });
  });

  it("EVENTS-2 text that cannot be stored is refused at any place", async () => {
    await withStores(({ events }) => {
      const lone = "\udfff";
      const bad = [user("e", lone), user(lone), user("e", `${"x".repeat(2 * MEGABYTE)}${lone}`)];
      for (const event of bad) {
        expect(() => events.append("s", 0, [user("ok"), event])).toThrow(
          expect.objectContaining({ code: "INVALID_INPUT" }),
        );
      }
      expect(events.load("s")).toEqual([]);
      const escaped = { ...user("e"), metadata: { text: lone } };
      events.append("s", 0, [escaped]);
      expect(events.load("s")).toMatchObject([{ metadata: { text: lone } }]);
    });
  });
}
