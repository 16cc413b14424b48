/** Conversations in memory, for tests and short-lived processes. Nothing survives the process. */
import type { ConversationStore, ListOptions } from "./conversation-store.ts";
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

/** A record as it is kept: its JSON text, so that no caller holds a part of the store. */
interface Kept {
  text: string;
  /** Milliseconds since the epoch. */
  at: number;
}

interface KeptConversation {
  text: string;
  messages: Map<string, Kept>;
  turns: Map<string, Kept>;
}

export class InMemoryConversationStore implements ConversationStore {
  readonly #conversations = new Map<string, KeptConversation>();

  async createConversation(conversation: ConversationRecord): Promise<void> {
    const text = conversationText(conversation);
    if (this.#conversations.has(conversation.id)) throw taken("conversation", conversation.id);
    this.#conversations.set(conversation.id, { text, messages: new Map(), turns: new Map() });
  }

  async getConversation(id: string): Promise<ConversationRecord | null> {
    const kept = this.#conversations.get(id);
    return kept === undefined ? null : fromText(kept.text);
  }

  async updateConversation(conversation: ConversationRecord): Promise<void> {
    const text = conversationText(conversation);
    this.#existing(conversation.id).text = text;
  }

  async appendMessages(conversationId: string, messages: readonly ConversationMessage[]): Promise<void> {
    const { messages: kept } = this.#existing(conversationId);
    const added = new Map<string, Kept>();
    for (const message of messages) {
      const one = messageText(conversationId, message);
      if (kept.has(message.id) || added.has(message.id)) throw taken("message", message.id);
      added.set(message.id, one);
    }
    for (const [id, message] of added) kept.set(id, message);
  }

  async getMessages(conversationId: string, options?: ListOptions): Promise<ConversationMessage[]> {
    return listed(this.#conversations.get(conversationId)?.messages, options);
  }

  async createTurn(turn: ConversationTurn): Promise<void> {
    const kept = turnText(turn);
    const { turns } = this.#existing(turn.conversationId);
    if (turns.has(turn.id)) throw taken("turn", turn.id);
    turns.set(turn.id, kept);
  }

  async updateTurn(turn: ConversationTurn): Promise<void> {
    const kept = turnText(turn);
    const turns = this.#conversations.get(turn.conversationId)?.turns;
    if (turns === undefined || !turns.has(turn.id)) throw turnNotFound(turn.conversationId, turn.id);
    turns.set(turn.id, kept);
  }

  async getTurn(conversationId: string, turnId: string): Promise<ConversationTurn | null> {
    const kept = this.#conversations.get(conversationId)?.turns.get(turnId);
    return kept === undefined ? null : fromText(kept.text);
  }

  async listTurns(conversationId: string, options?: ListOptions): Promise<ConversationTurn[]> {
    return listed(this.#conversations.get(conversationId)?.turns, options);
  }

  #existing(conversationId: string): KeptConversation {
    const kept = this.#conversations.get(conversationId);
    if (kept === undefined) throw conversationNotFound(conversationId);
    return kept;
  }
}

/** By time; what has the same time stands as it was written, since sorting is stable and a `Map` keeps its order. */
function listed<Stored extends ConversationMessage | ConversationTurn>(
  kept: ReadonlyMap<string, Kept> | undefined,
  options?: ListOptions,
): Stored[] {
  const { limit, order } = completeListOptions(options);
  const ascending = [...(kept?.values() ?? [])].sort((one, other) => one.at - other.at);
  const ordered = order === "asc" ? ascending : ascending.reverse();
  return ordered.slice(0, limit).map(({ text }) => fromText(text));
}
