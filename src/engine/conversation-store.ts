/**
 * Where the engine keeps conversations. `test/support/conversation-store-contract.ts` says what every store must do.
 *
 * STORE-1  What was written comes back equal, and is a copy: changing what was given or what was read changes nothing.
 * STORE-2  A write happens as a whole or not at all.
 * STORE-3  Messages come in the order of their `createdAt`, turns in that of their `startedAt`, ascending unless asked
 *          otherwise; what has the same time comes as it was written. A limit takes the first of the order asked for.
 * STORE-4  Ids are unique: of conversations in the store, of messages and turns in their conversation. One that is taken
 *          is refused with `CONFLICT`, one that must be there and is not with `NOT_FOUND`.
 * STORE-5  What JSON cannot say is refused with `INVALID_INPUT`; keys that are `undefined` are absent.
 */
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./types.ts";

export interface ListOptions {
  /** How many at most; all when absent. */
  limit?: number;
  /** `asc` when absent. */
  order?: "asc" | "desc";
}

export interface ConversationStore {
  createConversation(conversation: ConversationRecord): Promise<void>;
  /** `null` if there is none. */
  getConversation(id: string): Promise<ConversationRecord | null>;
  updateConversation(conversation: ConversationRecord): Promise<void>;

  appendMessages(conversationId: string, messages: readonly ConversationMessage[]): Promise<void>;
  /** None if there is no such conversation. */
  getMessages(conversationId: string, options?: ListOptions): Promise<ConversationMessage[]>;

  createTurn(turn: ConversationTurn): Promise<void>;
  updateTurn(turn: ConversationTurn): Promise<void>;
  /** `null` if there is none. */
  getTurn(conversationId: string, turnId: string): Promise<ConversationTurn | null>;
  /** None if there is no such conversation. */
  listTurns(conversationId: string, options?: ListOptions): Promise<ConversationTurn[]>;
}
