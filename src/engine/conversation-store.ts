/**
 * The storage port of the engine. `test/support/conversation-store-contract.ts` tests an implementation.
 *
 * STORE-1  A read returns a record equal to the written record. Records are copied, so later changes to an argument or a result do not
 *          reach the store.
 * STORE-2  A write is atomic.
 * STORE-3  Messages are ordered by `createdAt`, turns by `startedAt`, ascending by default. Equal times keep the order of writing. A limit
 *          takes the first records of the requested order.
 * STORE-4  Conversation ids are unique in the store. Message and turn ids are unique in their conversation. A duplicate is rejected with
 *          `CONFLICT`, a missing record with `NOT_FOUND`.
 * STORE-5  Values that JSON cannot represent are rejected with `INVALID_INPUT`. Keys with the value `undefined` are dropped.
 */
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./records.ts";

export interface ListOptions {
  /** Maximum number of records; unlimited by default. */
  limit?: number;
  /** `asc` by default. */
  order?: "asc" | "desc";
}

export interface ConversationStore {
  createConversation(conversation: ConversationRecord): Promise<void>;
  /** Returns `null` for an unknown conversation. */
  getConversation(id: string): Promise<ConversationRecord | null>;
  updateConversation(conversation: ConversationRecord): Promise<void>;

  appendMessages(conversationId: string, messages: readonly ConversationMessage[]): Promise<void>;
  /** Returns an empty list for an unknown conversation. */
  getMessages(conversationId: string, options?: ListOptions): Promise<ConversationMessage[]>;

  createTurn(turn: ConversationTurn): Promise<void>;
  updateTurn(turn: ConversationTurn): Promise<void>;
  /**
   * Appends the turn's output messages, updates the turn and sets `updatedAt` of its conversation in one write (STORE-2).
   * Without this method the engine makes three writes: a crash between them leaves the turn `running`.
   */
  completeTurn?(turn: ConversationTurn, updatedAt: string): Promise<void>;
  /** Returns `null` for an unknown turn. */
  getTurn(conversationId: string, turnId: string): Promise<ConversationTurn | null>;
  /** Returns an empty list for an unknown conversation. */
  listTurns(conversationId: string, options?: ListOptions): Promise<ConversationTurn[]>;
}
