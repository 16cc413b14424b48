/**
 * A store in SQLite. A conversation, a message or a turn is one row, plus one index row for a message's or turn's id.
 * Long records are stored in pieces.
 *
 * STORE-6  A database with tables of a newer release is rejected with `UNAVAILABLE`, before anything is written.
 */
import { LongText, type PackedText } from "../memory/session/long-text.ts";
import type { SqlDatabase } from "../ports/sql-database.ts";
import { unavailable } from "../shared/errors.ts";
import type { ListOptions } from "./conversation-store.ts";
import { type RecordKind, RecordStore } from "./record-store.ts";
import type { StoredRecord } from "./stored-records.ts";

/** Version of the tables below; the database stores it. */
const VERSION = 1;

const CREATE_VERSION = "CREATE TABLE IF NOT EXISTS engine_schema (version INTEGER NOT NULL)";
const CREATE_TABLES = [
  `CREATE TABLE IF NOT EXISTS engine_conversations (
    id TEXT PRIMARY KEY, written INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS engine_messages (
    conversation_id TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (conversation_id, at, n)) WITHOUT ROWID`,
  `CREATE UNIQUE INDEX IF NOT EXISTS engine_message_ids ON engine_messages (conversation_id, id)`,
  `CREATE TABLE IF NOT EXISTS engine_turns (
    conversation_id TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (conversation_id, at, n)) WITHOUT ROWID`,
  `CREATE UNIQUE INDEX IF NOT EXISTS engine_turn_ids ON engine_turns (conversation_id, id)`,
];

const INSERT_CONVERSATION = "INSERT INTO engine_conversations (id, written, body) VALUES (?, 0, ?)";
const SELECT_CONVERSATION = "SELECT body FROM engine_conversations WHERE id = ?";
const UPDATE_CONVERSATION = "UPDATE engine_conversations SET body = ? WHERE id = ?";
/** Counts all messages and turns ever inserted: the count orders records of the same time. */
const COUNT_WRITTEN = "UPDATE engine_conversations SET written = written + ? WHERE id = ? RETURNING written";

const UPDATE_TURN = "UPDATE engine_turns SET at = ?, body = ? WHERE conversation_id = ? AND id = ?";
/** Leaves the primary key unchanged, so that one row is written. */
const UPDATE_TURN_BODY = "UPDATE engine_turns SET body = ? WHERE conversation_id = ? AND id = ?";

const STATEMENTS = { message: statementsFor("engine_messages"), turn: statementsFor("engine_turns") };

function statementsFor(table: "engine_messages" | "engine_turns") {
  return {
    insert: `INSERT INTO ${table} (conversation_id, at, n, id, body) VALUES (?, ?, ?, ?, ?)`,
    get: `SELECT at, body FROM ${table} WHERE conversation_id = ? AND id = ?`,
    asc: `SELECT id, body FROM ${table} WHERE conversation_id = ? ORDER BY at, n LIMIT ?`,
    desc: `SELECT id, body FROM ${table} WHERE conversation_id = ? ORDER BY at DESC, n DESC LIMIT ?`,
  };
}

/**
 * A store in a SQLite database, for example a Durable Object's. Its tables are named `engine_…`, so the database may
 * hold others.
 *
 * @example const store = new SqliteConversationStore(new DurableSqlDatabase(ctx.storage));
 */
export class SqliteConversationStore extends RecordStore {
  readonly #database: SqlDatabase;
  readonly #texts: LongText;

  /** Creates missing tables. Throws `UNAVAILABLE` for tables of a newer release. */
  constructor(database: SqlDatabase) {
    super();
    this.#database = database;
    this.#texts = new LongText(database);
    createTables(database);
  }

  protected transaction(body: () => void): void {
    this.#database.transaction(body);
  }

  protected getConversationText(id: string): string | undefined {
    const [row] = this.#database.all<{ body: PackedText }>(SELECT_CONVERSATION, id);
    return row && this.#texts.unpack(textKey("conversation", id), row.body);
  }

  protected insertConversation(id: string, text: string): void {
    this.#database.run(INSERT_CONVERSATION, id, this.#texts.pack(textKey("conversation", id), text));
  }

  protected replaceConversation(id: string, text: string): boolean {
    const [before] = this.#database.all<{ body: PackedText }>(SELECT_CONVERSATION, id);
    if (before === undefined) return false;
    const body = this.#repack(textKey("conversation", id), before.body, text);
    this.#database.run(UPDATE_CONVERSATION, body, id);
    return true;
  }

  protected getText(kind: RecordKind, conversationId: string, id: string): string | undefined {
    const row = this.#row(kind, conversationId, id);
    return row && this.#texts.unpack(textKey(kind, conversationId, id), row.body);
  }

  protected insert(kind: RecordKind, conversationId: string, records: StoredRecord[]): boolean {
    const [counted] = this.#database.all<{ written: number }>(COUNT_WRITTEN, records.length, conversationId);
    if (counted === undefined) return false;
    let n = counted.written - records.length;
    for (const { id, at, text } of records) {
      const body = this.#texts.pack(textKey(kind, conversationId, id), text);
      this.#database.run(STATEMENTS[kind].insert, conversationId, at, n++, id, body);
    }
    return true;
  }

  protected replaceTurn(conversationId: string, { id, at, text }: StoredRecord): boolean {
    const before = this.#row("turn", conversationId, id);
    if (before === undefined) return false;
    const body = this.#repack(textKey("turn", conversationId, id), before.body, text);
    if (at === before.at) this.#database.run(UPDATE_TURN_BODY, body, conversationId, id);
    else this.#database.run(UPDATE_TURN, at, body, conversationId, id);
    return true;
  }

  protected listTexts(
    kind: RecordKind,
    conversationId: string,
    { limit, order }: Required<ListOptions>,
  ): string[] {
    const statement = STATEMENTS[kind][order];
    const rows = this.#database.all<{ id: string; body: PackedText }>(statement, conversationId, limit);
    return rows.map(({ id, body }) => this.#texts.unpack(textKey(kind, conversationId, id), body));
  }

  #row(kind: RecordKind, conversationId: string, id: string) {
    const statement = STATEMENTS[kind].get;
    return this.#database.all<{ at: number; body: PackedText }>(statement, conversationId, id)[0];
  }

  /** Packs a text that replaces another. Deletes the old pieces if the new text has no pieces. */
  #repack(key: string, before: PackedText, text: string): PackedText {
    const packed = this.#texts.pack(key, text);
    if (typeof packed === "string" && typeof before !== "string") this.#texts.discard(key);
    return packed;
  }
}

function createTables(database: SqlDatabase): void {
  database.transaction(() => {
    database.run(CREATE_VERSION);
    const [stored] = database.all<{ version: number }>("SELECT version FROM engine_schema LIMIT 1");
    if (stored !== undefined && stored.version > VERSION) {
      throw unavailable(
        `The engine's tables have schema version ${stored.version}, and this release supports versions up to ${VERSION}. Deploy the release that created them, or a later release.`,
        { retriable: true },
      );
    }
    for (const statement of CREATE_TABLES) database.run(statement);
    if (stored === undefined) database.run("INSERT INTO engine_schema (version) VALUES (?)", VERSION);
  });
}

/** Names the long text of a row. Ids may contain any character, so they are quoted. */
function textKey(kind: "conversation" | RecordKind, ...ids: string[]): string {
  return `engine:${kind}:${JSON.stringify(ids)}`;
}
