/** What an application may do around conversations and turns. */
import type { ConversationRecord, ConversationTurn } from "./types.ts";

/** Each is awaited. The records are copies: of what a hook changes, only `beforeTurn`'s `turn.metadata` is kept. */
export interface ConversationHooks {
  /** After a conversation was stored. */
  onConversationCreated?(conversation: ConversationRecord): void | Promise<void>;
  /** Before the provider is called. What it throws fails the turn. */
  beforeTurn?(turn: ConversationTurn, context: HookContext): void | Promise<void>;
  /** After a turn that succeeded was stored. */
  afterTurnSuccess?(turn: ConversationTurn, context: HookContext): void | Promise<void>;
  /** After a turn that failed, or was cancelled, was stored. */
  afterTurnError?(turn: ConversationTurn, error: unknown, context: HookContext): void | Promise<void>;
}

export interface HookContext {
  conversation: ConversationRecord;
}

/** Told what a hook threw after something was stored, which changes nothing any more. */
export type OnHookError = (error: unknown, hook: keyof ConversationHooks) => void;

/** Runs a hook whose failure must not change what was stored. */
export async function runAfterHook(
  hook: keyof ConversationHooks,
  onHookError: OnHookError,
  body: () => void | Promise<void>,
): Promise<void> {
  try {
    await body();
  } catch (error) {
    onHookError(error, hook);
  }
}
