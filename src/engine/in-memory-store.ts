import type { ListOptions } from "./conversation-store.ts";
import { type RecordKind, RecordStore } from "./record-store.ts";
import type { StoredRecord } from "./stored-records.ts";

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
  readonly #conversations = new Map<string, StoredConversation>();

  protected transaction(body: () => void): void {
    body();
  }

  protected getConversationText(id: string): string | undefined {
    return this.#conversations.get(id)?.text;
  }

  protected insertConversation(id: string, text: string): void {
    this.#conversations.set(id, { text, message: new Map(), turn: new Map() });
  }

  protected replaceConversation(id: string, text: string): boolean {
    const conversation = this.#conversations.get(id);
    if (conversation !== undefined) conversation.text = text;
    return conversation !== undefined;
  }

  protected getText(kind: RecordKind, conversationId: string, id: string): string | undefined {
    return this.#conversations.get(conversationId)?.[kind].get(id)?.text;
  }

  protected insert(kind: RecordKind, conversationId: string, records: StoredRecord[]): boolean {
    const stored = this.#conversations.get(conversationId)?.[kind];
    for (const record of records) stored?.set(record.id, record);
    return stored !== undefined;
  }

  protected replaceTurn(conversationId: string, turn: StoredRecord): boolean {
    const isStored = this.getText("turn", conversationId, turn.id) !== undefined;
    return isStored && this.insert("turn", conversationId, [turn]);
  }

  /** Sorting is stable and a `Map` keeps insertion order, so equal times keep the order of writing. */
  protected listTexts(
    kind: RecordKind,
    conversationId: string,
    { limit, order }: Required<ListOptions>,
  ): string[] {
    const stored = this.#conversations.get(conversationId)?.[kind].values() ?? [];
    const ascending = [...stored].sort((one, other) => one.at - other.at);
    const ordered = order === "asc" ? ascending : ascending.reverse();
    return ordered.slice(0, limit).map(({ text }) => text);
  }
}
