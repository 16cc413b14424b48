/** Application callbacks around conversations and turns. */
import type { ConversationRecord, ConversationTurn } from "./records.ts";

/**
 * The engine awaits each hook. Hooks get copies: of their changes, only `turn.metadata` in `beforeTurn` is kept.
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
  beforeTurn?(turn: ConversationTurn, context: HookContext): void | Promise<void>;
  /** Runs after a succeeded turn is stored. */
  afterTurnSuccess?(turn: ConversationTurn, context: HookContext): void | Promise<void>;
  /** Runs after a failed or cancelled turn is stored. */
  afterTurnError?(turn: ConversationTurn, error: unknown, context: HookContext): void | Promise<void>;
}

export interface HookContext {
  conversation: ConversationRecord;
}

/** Receives the error of a hook that runs after storage. Such an error has no other effect. */
export type OnHookError = (error: unknown, hook: keyof ConversationHooks) => void;

/** Runs a hook after a write. Never throws. An error of the hook or of `onHookError` does not undo the write. */
export async function runAfterHook(
  hook: keyof ConversationHooks,
  onHookError: OnHookError,
  body: () => void | Promise<void>,
): Promise<void> {
  try {
    await body();
  } catch (error) {
    try {
      onHookError(error, hook);
    } catch (second) {
      console.error(second);
    }
  }
}
