/** Application callbacks around conversations and turns. */
import type { ConversationRecord, ConversationTurn } from "./records.ts";

/**
 * The engine awaits each callback. Callbacks get copies: of their changes, only `turn.metadata` in `beforeTurn` is kept.
 *
 * @example
 * const hooks: ConversationHooks = {
 *   beforeTurn: (turn) => { turn.metadata = { ...turn.metadata, cohort: "b" }; },
 *   afterTurnError: (turn, error) => report(turn.id, error),
 * };
 */
export interface ConversationHooks {
  /** Runs after a conversation is stored. */
  onConversationCreated?(conversation: ConversationRecord): void | Promise<void>;
  /** Runs before the provider is called. An error fails the turn. */
  beforeTurn?(turn: ConversationTurn, context: CallbackContext): void | Promise<void>;
  /** Runs after a succeeded turn is stored. */
  afterTurnSuccess?(turn: ConversationTurn, context: CallbackContext): void | Promise<void>;
  /** Runs after a failed or cancelled turn is stored. */
  afterTurnError?(turn: ConversationTurn, error: unknown, context: CallbackContext): void | Promise<void>;
}

export interface CallbackContext {
  conversation: ConversationRecord;
}

/** Receives the error of a callback that runs after storage. Such an error has no other effect. */
export type OnCallbackError = (error: unknown, callback: keyof ConversationHooks) => void;

/** Runs a callback after a write. Never throws. An error of the callback or of `onCallbackError` does not undo the write. */
export async function runCallback(
  callback: keyof ConversationHooks,
  onCallbackError: OnCallbackError,
  body: () => void | Promise<void>,
): Promise<void> {
  try {
    await body();
  } catch (error) {
    try {
      onCallbackError(error, callback);
    } catch (second) {
      console.error(second);
    }
  }
}
