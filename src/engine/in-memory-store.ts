import type { ListOptions } from "./conversation-store.ts";
import { type RecordKind, RecordStore, type RecordTables, type StoredRecord } from "./record-store.ts";

interface StoredConversation {
  text: string;
  message: Map<string, StoredRecord>;
  turn: Map<string, StoredRecord>;
}

/**
 * A store in memory, for tests and short-lived processes. Its conversations end with the process.
 *
 * @example const store = new InMemoryConversationStore();
 */
export class InMemoryConversationStore extends RecordStore {
  constructor() {
    super(new MemoryTables());
  }
}

class MemoryTables implements RecordTables {
  readonly #conversations = new Map<string, StoredConversation>();

  transaction<Result>(body: () => Result): Result {
    return body();
  }

  conversation(id: string): string | undefined {
    return this.#conversations.get(id)?.text;
  }

  insertConversation(id: string, text: string): void {
    this.#conversations.set(id, { text, message: new Map(), turn: new Map() });
  }

  updateConversation(id: string, text: string): boolean {
    const conversation = this.#conversations.get(id);
    if (conversation !== undefined) conversation.text = text;
    return conversation !== undefined;
  }

  get(kind: RecordKind, conversationId: string, id: string): string | undefined {
    return this.#conversations.get(conversationId)?.[kind].get(id)?.text;
  }

  insert(kind: RecordKind, conversationId: string, records: readonly StoredRecord[]): boolean {
    const stored = this.#conversations.get(conversationId)?.[kind];
    for (const record of records) stored?.set(record.id, record);
    return stored !== undefined;
  }

  /** Sorting is stable and a `Map` keeps insertion order, so equal times keep the order of writing. */
  list(kind: RecordKind, conversationId: string, { limit, order }: Required<ListOptions>): string[] {
    const stored = this.#conversations.get(conversationId)?.[kind].values() ?? [];
    const ascending = [...stored].sort((one, other) => one.at - other.at);
    const ordered = order === "asc" ? ascending : ascending.reverse();
    return ordered.slice(0, limit).map(({ text }) => text);
  }

  updateTurn(conversationId: string, turn: StoredRecord): boolean {
    const isStored = this.get("turn", conversationId, turn.id) !== undefined;
    return isStored && this.insert("turn", conversationId, [turn]);
  }
}
