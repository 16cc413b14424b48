/** The part that all stores of this package share: it checks records, keeps ids unique and pages over JSON texts. */
import type { ConversationStore, ListOptions } from "./conversation-store.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./records.ts";
import {
  completeListOptions,
  conflict,
  conversationNotFound,
  conversationText,
  messageText,
  type TimedText,
  turnNotFound,
  turnText,
} from "./stored-records.ts";

export type RecordKind = "message" | "turn";

export interface StoredRecord extends TimedText {
  id: string;
}

/** Storage of records as texts. A `RecordStore` makes all checks before it writes. */
export interface RecordTables {
  /** Runs `body` so that its writes happen together or not at all. */
  transaction<Result>(body: () => Result): Result;
  /** Returns the text of a conversation. */
  conversation(id: string): string | undefined;
  insertConversation(id: string, text: string): void;
  /** Returns `false` for an unknown conversation. */
  updateConversation(id: string, text: string): boolean;
  /** Returns the text of a record. */
  get(kind: RecordKind, conversationId: string, id: string): string | undefined;
  /** Returns `false` for an unknown conversation. */
  insert(kind: RecordKind, conversationId: string, records: readonly StoredRecord[]): boolean;
  /** Returns texts ordered as STORE-3 requires. */
  list(kind: RecordKind, conversationId: string, page: Required<ListOptions>): string[];
  /** Returns `false` for an unknown turn. */
  updateTurn(conversationId: string, turn: StoredRecord): boolean;
}

export class RecordStore implements ConversationStore {
  readonly #tables: RecordTables;

  constructor(tables: RecordTables) {
    this.#tables = tables;
  }

  async createConversation(conversation: ConversationRecord): Promise<void> {
    const { id } = conversation;
    const text = conversationText(conversation);
    this.#tables.transaction(() => {
      if (this.#tables.conversation(id) !== undefined) throw conflict("conversation", id);
      this.#tables.insertConversation(id, text);
    });
  }

  async getConversation(id: string): Promise<ConversationRecord | null> {
    return parsed(this.#tables.conversation(id));
  }

  async updateConversation(conversation: ConversationRecord): Promise<void> {
    const { id } = conversation;
    const text = conversationText(conversation);
    this.#tables.transaction(() => {
      if (!this.#tables.updateConversation(id, text)) throw conversationNotFound(id);
    });
  }

  async appendMessages(conversationId: string, messages: readonly ConversationMessage[]): Promise<void> {
    const records = messageRecords(conversationId, messages);
    this.#tables.transaction(() => this.#insert("message", conversationId, records));
  }

  async getMessages(conversationId: string, options?: ListOptions): Promise<ConversationMessage[]> {
    return this.#list("message", conversationId, options);
  }

  async createTurn(turn: ConversationTurn): Promise<void> {
    const record = { id: turn.id, ...turnText(turn) };
    this.#tables.transaction(() => this.#insert("turn", turn.conversationId, [record]));
  }

  async updateTurn(turn: ConversationTurn): Promise<void> {
    const { id, conversationId } = turn;
    const record = { id, ...turnText(turn) };
    this.#tables.transaction(() => {
      if (!this.#tables.updateTurn(conversationId, record)) throw turnNotFound(conversationId, id);
    });
  }

  async completeTurn(turn: ConversationTurn, updatedAt: string): Promise<void> {
    const { id, conversationId, outputMessages } = turn;
    const record = { id, ...turnText(turn) };
    const added = messageRecords(conversationId, outputMessages);
    this.#tables.transaction(() => {
      const conversation = parsed<ConversationRecord>(this.#tables.conversation(conversationId));
      if (conversation === null) throw conversationNotFound(conversationId);
      const text = conversationText({ ...conversation, updatedAt });
      if (this.#tables.get("turn", conversationId, id) === undefined) throw turnNotFound(conversationId, id);
      if (added.length > 0) this.#insert("message", conversationId, added);
      this.#tables.updateTurn(conversationId, record);
      this.#tables.updateConversation(conversationId, text);
    });
  }

  async getTurn(conversationId: string, turnId: string): Promise<ConversationTurn | null> {
    return parsed(this.#tables.get("turn", conversationId, turnId));
  }

  async listTurns(conversationId: string, options?: ListOptions): Promise<ConversationTurn[]> {
    return this.#list("turn", conversationId, options);
  }

  #insert(kind: RecordKind, conversationId: string, records: readonly StoredRecord[]): void {
    const ids = new Set<string>();
    for (const { id } of records) {
      const isTaken = ids.has(id) || this.#tables.get(kind, conversationId, id) !== undefined;
      if (isTaken) throw conflict(kind, id);
      ids.add(id);
    }
    if (!this.#tables.insert(kind, conversationId, records)) throw conversationNotFound(conversationId);
  }

  #list<Stored>(kind: RecordKind, conversationId: string, options?: ListOptions): Stored[] {
    const page = completeListOptions(options);
    return this.#tables.list(kind, conversationId, page).map((text) => JSON.parse(text));
  }
}

function messageRecords(conversationId: string, messages: readonly ConversationMessage[]): StoredRecord[] {
  return messages.map((message) => ({ id: message.id, ...messageText(conversationId, message) }));
}

function parsed<Stored>(text: string | undefined): Stored | null {
  return text === undefined ? null : JSON.parse(text);
}
