/**
 * The recording of an actor of a release: its storage and the views of its readers, as lines of JSON. Values are
 * recorded as stored; a long run of one character is shortened.
 */
import type { KeyValue } from "../../../src/ports/key-value.ts";
import type { SqlDatabase, SqlValue } from "../../../src/ports/sql-database.ts";
import { defined } from "../../../src/shared/defined.ts";
import type { Json } from "../../../src/shared/json.ts";

/** A table with all rows, in the order of its columns. */
export interface StoredTable {
  name: string;
  /** Its CREATE statement. */
  sql: string;
  rows: SqlValue[][];
  /** The statements that create its indexes. */
  indexes?: string[];
  /** Of a full-text table: its columns with the row id, and its options. */
  virtual?: { columns: string[]; options: SqlValue[][] };
}

export interface StoredStorage {
  tables: StoredTable[];
  keyValue: [key: string, value: unknown][];
}

/** Store of the recording. */
export type Recorded = "conversation" | "agent" | "memory" | "run" | "trigger" | "sessions" | "directory";

export interface Recording {
  name: string;
  of: Recorded;
  /** Virtual time of the recording, in milliseconds since the epoch. */
  now: number;
  /** The handles that its tools gave away. */
  handles?: string[];
  storage: StoredStorage;
  /** Views that the code of the release read, by name. */
  views: Record<string, unknown>;
}

export function encodeRecording({ name, of, now, handles, storage, views }: Recording): string {
  const lines: unknown[] = [{ name, of, now, ...(handles && { handles }) }];
  for (const { name, sql, rows, indexes, virtual } of storage.tables) {
    lines.push({ table: name, sql, ...defined({ indexes, virtual }) });
    for (const row of rows) lines.push({ row: row.map(packValue) });
  }
  for (const [key, value] of storage.keyValue) lines.push({ key, value: packDeep(value) });
  for (const [view, value] of Object.entries(views)) lines.push({ view, value: packDeep(value) });
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

type Head = Pick<Recording, "name" | "of" | "now" | "handles">;

type Line =
  | Head
  | ({ table: string } & Pick<StoredTable, "sql" | "indexes" | "virtual">)
  | { row: Json[] }
  | { key: string; value: Json }
  | { view: string; value: Json };

export function decodeRecording(text: string): Recording {
  // SAFETY: `encodeRecording` wrote these files.
  const lines = text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Line]));
  const storage: StoredStorage = { tables: [], keyValue: [] };
  const views: Recording["views"] = {};
  let head: Head | undefined;
  for (const line of lines) {
    if ("of" in line) head = line;
    else if ("table" in line) {
      const { table: name, sql, indexes, virtual } = line;
      storage.tables.push({ name, sql, rows: [], ...defined({ indexes, virtual }) });
    } else if ("row" in line) storage.tables.at(-1)?.rows.push(line.row.map(unpackValue));
    else if ("key" in line) storage.keyValue.push([line.key, unpackKeyed(line.value)]);
    else views[line.view] = unpackDeep(line.value);
  }
  if (head === undefined) throw new Error("This is not a recording.");
  return { ...head, storage, views };
}

/** Pattern of tables that are not the actor's own: SQLite's, the platform's, the adapter's and the SDK's. */
const FOREIGN = /^(?:sqlite_|_cf_|_node_|cf_(?!agents_(?:sessions|events|long_text)$))/;

const INDEXES =
  "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL ORDER BY name";

/** Reads the whole storage of an actor. */
export function dumpStorage(database: SqlDatabase, keyValue: KeyValue): StoredStorage {
  const masters = database.all<{ name: string; sql: string }>(
    "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL ORDER BY name",
  );
  const texts = masters.filter(({ sql }) => sql.startsWith("CREATE VIRTUAL")).map(({ name }) => name);
  const isShadow = (name: string) => texts.some((text) => name.startsWith(`${text}_`));
  const tables = masters
    .filter(({ name }) => !FOREIGN.test(name) && !isShadow(name))
    .map(({ name, sql }): StoredTable => {
      const isVirtual = texts.includes(name);
      const found = database.all(`SELECT ${isVirtual ? "rowid, " : ""}* FROM "${name}"`);
      const rows = found.map((row) => Object.values(row));
      const indexes = database.all<{ sql: string }>(INDEXES, name).map((index) => index.sql);
      if (!isVirtual) return { name, sql, rows, ...(indexes.length > 0 && { indexes }) };
      const options = database.all(`SELECT k, v FROM "${name}_config" WHERE k <> 'version' ORDER BY k`);
      const virtual = {
        columns: Object.keys(found[0] ?? {}),
        options: options.map((row) => Object.values(row)),
      };
      return { name, sql, rows, virtual };
    });
  return { tables, keyValue: keyValue.list("", 100_000) };
}

/** Writes a recording into empty storage. */
export function loadStorage(
  { tables, keyValue }: StoredStorage,
  database: SqlDatabase,
  store: KeyValue,
): void {
  for (const { name, sql, rows, indexes = [], virtual } of tables) {
    for (const statement of [sql, ...indexes]) database.run(statement);
    // A number binds as a real number, which FTS5 refuses as an option.
    for (const option of virtual?.options ?? [])
      database.run(`INSERT INTO "${name}" ("${name}", rank) VALUES (?, CAST(? AS INTEGER))`, ...option);
    const columns = virtual === undefined ? "" : ` (${virtual.columns.join(", ")})`;
    for (const row of rows) {
      database.run(`INSERT INTO "${name}"${columns} VALUES (${row.map(() => "?").join(", ")})`, ...row);
    }
  }
  for (const [key, value] of keyValue) store.put(key, value);
}

/** A run of one character that is long enough to shorten. */
const RUN = /([a-z])\1{4095,}/g;

type PackedText = string | { text: (string | [character: string, times: number])[] };

function packText(text: string): PackedText {
  const parts: (string | [string, number])[] = [];
  let end = 0;
  for (const { 0: run, 1: character = "", index } of text.matchAll(RUN)) {
    if (index > end) parts.push(text.slice(end, index));
    parts.push([character, run.length]);
    end = index + run.length;
  }
  if (parts.length === 0) return text;
  return { text: end === text.length ? parts : [...parts, text.slice(end)] };
}

function packValue(value: SqlValue): Json {
  if (value instanceof Uint8Array) return { bytes: [...value] };
  return typeof value === "string" ? packText(value) : value;
}

function unpackValue(packed: Json): SqlValue {
  if (typeof packed !== "object" || packed === null) return typeof packed === "boolean" ? null : packed;
  if ("bytes" in packed && Array.isArray(packed.bytes)) return Uint8Array.from(packed.bytes.map(Number));
  return String(unpackDeep(packed));
}

/** Returns JSON with long texts shortened. Absent and undefined members are equal. */
function packDeep(value: unknown): Json {
  if (value instanceof Uint8Array) return packValue(value);
  return JSON.parse(JSON.stringify(value), (_, member) =>
    typeof member === "string" ? packText(member) : member,
  );
}

/** A value under a key is JSON or bytes. */
function unpackKeyed(packed: Json): unknown {
  const isBytes = typeof packed === "object" && packed !== null && Object.keys(packed).join() === "bytes";
  return isBytes ? unpackValue(packed) : unpackDeep(packed);
}

function unpackDeep(packed: Json): Json {
  return JSON.parse(JSON.stringify(packed), (_, member) => {
    const parts: unknown =
      typeof member === "object" && member !== null ? Reflect.get(member, "text") : undefined;
    if (!Array.isArray(parts)) return member;
    return parts
      .map((part) => (Array.isArray(part) ? String(part[0]).repeat(Number(part[1])) : part))
      .join("");
  });
}
