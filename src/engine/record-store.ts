/** The part that the stores share: it checks records, keeps ids unique and pages over JSON texts. */
import type { ConversationStore, ListOptions } from "./conversation-store.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./records.ts";
import {
  completeListOptions,
  conversationNotFound,
  conversationText,
  messageRecord,
  type StoredRecord,
  takenId,
  turnNotFound,
  turnRecord,
} from "./stored-records.ts";

export type RecordKind = "message" | "turn";

/** A store over tables of texts, which a subclass provides. All checks precede the writes. */
export abstract class RecordStore implements ConversationStore {
  /** Runs `body` so that its writes happen together or not at all. */
  protected abstract transaction(body: () => void): void;
  protected abstract getConversationText(id: string): string | undefined;
  protected abstract insertConversation(id: string, text: string): void;
  /** Returns `false` for an unknown conversation. */
  protected abstract replaceConversation(id: string, text: string): boolean;
  protected abstract getText(kind: RecordKind, conversationId: string, id: string): string | undefined;
  /** Returns `false` for an unknown conversation. */
  protected abstract insert(kind: RecordKind, conversationId: string, records: StoredRecord[]): boolean;
  /** Returns `false` for an unknown turn. */
  protected abstract replaceTurn(conversationId: string, turn: StoredRecord): boolean;
  /** Returns texts ordered as STORE-3 requires. */
  protected abstract listTexts(
    kind: RecordKind,
    conversationId: string,
    page: Required<ListOptions>,
  ): string[];

  async createConversation(conversation: ConversationRecord): Promise<void> {
    const { id } = conversation;
    const text = conversationText(conversation);
    this.transaction(() => {
      if (this.getConversationText(id) !== undefined) throw takenId("conversation", id);
      this.insertConversation(id, text);
    });
  }

  async getConversation(id: string): Promise<ConversationRecord | null> {
    return parsed(this.getConversationText(id));
  }

  async updateConversation(conversation: ConversationRecord): Promise<void> {
    const { id } = conversation;
    const text = conversationText(conversation);
    this.transaction(() => {
      if (!this.replaceConversation(id, text)) throw conversationNotFound(id);
    });
  }

  async appendMessages(conversationId: string, messages: readonly ConversationMessage[]): Promise<void> {
    const records = messages.map((message) => messageRecord(conversationId, message));
    this.transaction(() => this.#insertNew("message", conversationId, records));
  }

  async getMessages(conversationId: string, options?: ListOptions): Promise<ConversationMessage[]> {
    return this.#list("message", conversationId, options);
  }

  async createTurn(turn: ConversationTurn): Promise<void> {
    const record = turnRecord(turn);
    this.transaction(() => this.#insertNew("turn", turn.conversationId, [record]));
  }

  async updateTurn(turn: ConversationTurn): Promise<void> {
    const { id, conversationId } = turn;
    const record = turnRecord(turn);
    this.transaction(() => {
      if (!this.replaceTurn(conversationId, record)) throw turnNotFound(conversationId, id);
    });
  }

  async completeTurn(turn: ConversationTurn, updatedAt: string): Promise<void> {
    const { id, conversationId, outputMessages } = turn;
    const record = turnRecord(turn);
    const added = outputMessages.map((message) => messageRecord(conversationId, message));
    this.transaction(() => {
      const conversation = parsed<ConversationRecord>(this.getConversationText(conversationId));
      if (conversation === null) throw conversationNotFound(conversationId);
      const text = conversationText({ ...conversation, updatedAt });
      if (this.getText("turn", conversationId, id) === undefined) throw turnNotFound(conversationId, id);
      if (added.length > 0) this.#insertNew("message", conversationId, added);
      this.replaceTurn(conversationId, record);
      this.replaceConversation(conversationId, text);
    });
  }

  async getTurn(conversationId: string, turnId: string): Promise<ConversationTurn | null> {
    return parsed(this.getText("turn", conversationId, turnId));
  }

  async listTurns(conversationId: string, options?: ListOptions): Promise<ConversationTurn[]> {
    return this.#list("turn", conversationId, options);
  }

  #insertNew(kind: RecordKind, conversationId: string, records: StoredRecord[]): void {
    const ids = new Set<string>();
    for (const { id } of records) {
      const isTaken = ids.has(id) || this.getText(kind, conversationId, id) !== undefined;
      if (isTaken) throw takenId(kind, id);
      ids.add(id);
    }
    if (!this.insert(kind, conversationId, records)) throw conversationNotFound(conversationId);
  }

  #list<Stored>(kind: RecordKind, conversationId: string, options?: ListOptions): Stored[] {
    const texts = this.listTexts(kind, conversationId, completeListOptions(options));
    return texts.map((text) => JSON.parse(text));
  }
}

function parsed<Stored>(text: string | undefined): Stored | null {
  return text === undefined ? null : JSON.parse(text);
}
