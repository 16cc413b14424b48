/**
 * Conversations in SQLite: a Durable Object's own database, or Node's. One row per conversation, message and turn, and one
 * in an index for the id of each message and turn. Long content stands in pieces.
 */
import { LongText, type PackedText } from "../memory/session/long-text.ts";
import type { SqlDatabase, SqlRow } from "../ports/sql-database.ts";
import type { ConversationStore, ListOptions } from "./conversation-store.ts";
import { openTables } from "./sqlite-tables.ts";
import {
  completeListOptions,
  conversationNotFound,
  conversationText,
  fromText,
  messageText,
  taken,
  turnNotFound,
  turnText,
} from "./stored-records.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./types.ts";

const INSERT_CONVERSATION = "INSERT INTO engine_conversations (id, written, body) VALUES (?, 0, ?)";
const SELECT_CONVERSATION = "SELECT body FROM engine_conversations WHERE id = ?";
const UPDATE_CONVERSATION = "UPDATE engine_conversations SET body = ? WHERE id = ?";
/** How many messages and turns were ever written: it orders those of the same time. */
const COUNT_WRITTEN = "UPDATE engine_conversations SET written = written + ? WHERE id = ? RETURNING written";

const INSERT_MESSAGE =
  "INSERT INTO engine_messages (conversation_id, at, n, id, body) VALUES (?, ?, ?, ?, ?)";
const MESSAGE_EXISTS = "SELECT 1 AS found FROM engine_messages WHERE conversation_id = ? AND id = ?";
const FIRST_MESSAGES =
  "SELECT id, body FROM engine_messages WHERE conversation_id = ? ORDER BY at, n LIMIT ?";
const LAST_MESSAGES =
  "SELECT id, body FROM engine_messages WHERE conversation_id = ? ORDER BY at DESC, n DESC LIMIT ?";

const INSERT_TURN = "INSERT INTO engine_turns (conversation_id, at, n, id, body) VALUES (?, ?, ?, ?, ?)";
const UPDATE_TURN = "UPDATE engine_turns SET at = ?, body = ? WHERE conversation_id = ? AND id = ?";
/** A turn that keeps its time keeps its place, and its row in the index. */
const UPDATE_TURN_BODY = "UPDATE engine_turns SET body = ? WHERE conversation_id = ? AND id = ?";
const SELECT_TURN = "SELECT id, at, body FROM engine_turns WHERE conversation_id = ? AND id = ?";
const FIRST_TURNS = "SELECT id, body FROM engine_turns WHERE conversation_id = ? ORDER BY at, n LIMIT ?";
const LAST_TURNS =
  "SELECT id, body FROM engine_turns WHERE conversation_id = ? ORDER BY at DESC, n DESC LIMIT ?";

type Row = { id: string; body: PackedText };

export class SqliteConversationStore implements ConversationStore {
  readonly #texts: LongText;

  /**
   * Makes its tables where they are not there. They are named `engine_…`, and may stand beside others. Throws `UNAVAILABLE`
   * for those of a newer release.
   *
   * @example new SqliteConversationStore(new DurableSqlDatabase(ctx.storage))
   */
  constructor(private readonly database: SqlDatabase) {
    this.#texts = new LongText(database);
    openTables(database);
  }

  async createConversation(conversation: ConversationRecord): Promise<void> {
    const { id } = conversation;
    const text = conversationText(conversation);
    this.database.transaction(() => {
      if (this.#has(SELECT_CONVERSATION, id)) throw taken("conversation", id);
      this.database.run(INSERT_CONVERSATION, id, this.#texts.pack(textKey("conversation", id), text));
    });
  }

  async getConversation(id: string): Promise<ConversationRecord | null> {
    return this.#conversation(id);
  }

  async updateConversation(conversation: ConversationRecord): Promise<void> {
    this.#updateConversation(conversation);
  }

  async appendMessages(conversationId: string, messages: readonly ConversationMessage[]): Promise<void> {
    this.#append(conversationId, messages);
  }

  async completeTurn(turn: ConversationTurn, updatedAt: string): Promise<void> {
    const { conversationId, outputMessages } = turn;
    this.database.transaction(() => {
      const conversation = this.#conversation(conversationId);
      if (conversation === null) throw conversationNotFound(conversationId);
      this.#updateTurn(turn);
      if (outputMessages.length > 0) this.#append(conversationId, outputMessages);
      this.#updateConversation({ ...conversation, updatedAt });
    });
  }

  #conversation(id: string): ConversationRecord | null {
    const [row] = this.database.all<{ body: PackedText }>(SELECT_CONVERSATION, id);
    return row === undefined ? null : fromText(this.#texts.unpack(textKey("conversation", id), row.body));
  }

  #updateConversation(conversation: ConversationRecord): void {
    const { id } = conversation;
    const text = conversationText(conversation);
    this.database.transaction(() => {
      const [before] = this.database.all<{ body: PackedText }>(SELECT_CONVERSATION, id);
      if (before === undefined) throw conversationNotFound(id);
      const packed = this.#repack(textKey("conversation", id), before.body, text);
      this.database.run(UPDATE_CONVERSATION, packed, id);
    });
  }

  #append(conversationId: string, messages: readonly ConversationMessage[]): void {
    const rows = messages.map((message) => ({ id: message.id, ...messageText(conversationId, message) }));
    this.database.transaction(() => {
      let n = this.#reserve(conversationId, rows.length);
      for (const { id, at, text } of rows) {
        if (this.#has(MESSAGE_EXISTS, conversationId, id)) throw taken("message", id);
        const packed = this.#texts.pack(textKey("message", conversationId, id), text);
        this.database.run(INSERT_MESSAGE, conversationId, at, n++, id, packed);
      }
    });
  }

  async getMessages(conversationId: string, options?: ListOptions): Promise<ConversationMessage[]> {
    const { limit, order } = completeListOptions(options);
    const rows = this.database.all<Row>(
      order === "asc" ? FIRST_MESSAGES : LAST_MESSAGES,
      conversationId,
      limit,
    );
    return rows.map((row) => this.#read("message", conversationId, row));
  }

  async createTurn(turn: ConversationTurn): Promise<void> {
    const { id, conversationId } = turn;
    const { text, at } = turnText(turn);
    this.database.transaction(() => {
      const n = this.#reserve(conversationId, 1);
      if (this.#has(SELECT_TURN, conversationId, id)) throw taken("turn", id);
      const packed = this.#texts.pack(textKey("turn", conversationId, id), text);
      this.database.run(INSERT_TURN, conversationId, at, n, id, packed);
    });
  }

  async updateTurn(turn: ConversationTurn): Promise<void> {
    this.#updateTurn(turn);
  }

  #updateTurn(turn: ConversationTurn): void {
    const { id, conversationId } = turn;
    const { text, at } = turnText(turn);
    const key = textKey("turn", conversationId, id);
    this.database.transaction(() => {
      const [before] = this.database.all<Row & { at: number }>(SELECT_TURN, conversationId, id);
      if (before === undefined) throw turnNotFound(conversationId, id);
      const body = this.#repack(key, before.body, text);
      if (at === before.at) this.database.run(UPDATE_TURN_BODY, body, conversationId, id);
      else this.database.run(UPDATE_TURN, at, body, conversationId, id);
    });
  }

  async getTurn(conversationId: string, turnId: string): Promise<ConversationTurn | null> {
    const [row] = this.database.all<Row>(SELECT_TURN, conversationId, turnId);
    return row === undefined ? null : this.#read("turn", conversationId, row);
  }

  async listTurns(conversationId: string, options?: ListOptions): Promise<ConversationTurn[]> {
    const { limit, order } = completeListOptions(options);
    const rows = this.database.all<Row>(order === "asc" ? FIRST_TURNS : LAST_TURNS, conversationId, limit);
    return rows.map((row) => this.#read("turn", conversationId, row));
  }

  /** The first of `count` numbers for new rows of a conversation. */
  #reserve(conversationId: string, count: number): number {
    const [row] = this.database.all<{ written: number }>(COUNT_WRITTEN, count, conversationId);
    if (row === undefined) throw conversationNotFound(conversationId);
    return row.written - count;
  }

  /** Text in place of what a row held; no pieces of its long form stay behind. */
  #repack(key: string, before: PackedText, text: string): PackedText {
    const packed = this.#texts.pack(key, text);
    if (typeof packed === "string" && typeof before !== "string") this.#texts.discard(key);
    return packed;
  }

  #has(statement: string, ...values: string[]): boolean {
    return this.database.all<SqlRow>(statement, ...values).length > 0;
  }

  #read<Stored extends ConversationMessage | ConversationTurn>(
    kind: "message" | "turn",
    conversationId: string,
    { id, body }: Row,
  ): Stored {
    return fromText(this.#texts.unpack(textKey(kind, conversationId, id), body));
  }
}

/** Names the long text of a row; ids may hold any character, so they are quoted. */
function textKey(kind: "conversation" | "message" | "turn", ...ids: string[]): string {
  return `engine:${kind}:${JSON.stringify(ids)}`;
}
