/**
 * The conversation engine: conversations and turns over any store and any providers. It owns no transport and runs
 * wherever JavaScript does.
 */

import { toIso } from "../model/call-record.ts";
import { systemClock, systemIds } from "../ports/system.ts";
import { defined } from "../shared/defined.ts";
import type { ConversationStore } from "./conversation-store.ts";
import { createHistoryBuilder, type HistoryBuilder } from "./history.ts";
import { type ConversationHooks, type OnHookError, runAfterHook } from "./hooks.ts";
import { defaultPlanner, type TurnPlanner } from "./planner.ts";
import type { NewMessage, ProviderAdapter } from "./provider-adapter.ts";
import { runTurnEvents, type TurnEvent } from "./run-turn.ts";
import { conversationNotFound, messageText } from "./stored-records.ts";
import { notBefore } from "./turn-messages.ts";
import type { EnginePorts, RunTurn } from "./turn-run.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./types.ts";

export interface ConversationEngineConfig {
  /** The agent of conversations and turns that name none. */
  defaultAgent: string;
  store: ConversationStore;
  /** Adapters by the id that a plan names. */
  providers: Readonly<Record<string, ProviderAdapter>>;
  /** The model of each provider where a turn names none; the first provider that has one is the default. */
  defaultModels?: Readonly<Record<string, string>>;
  /** All of the conversation when absent. */
  historyBuilder?: HistoryBuilder;
  /** Follows the hints `provider`, `model` and `parameters` when absent. */
  planner?: TurnPlanner;
  hooks?: ConversationHooks;
  /** Told what a hook threw after something was stored; writes it to the console when absent. */
  onHookError?: OnHookError;
  /** Time and ids; the system's when absent. */
  clock?: EnginePorts["clock"];
  ids?: EnginePorts["ids"];
}

export interface NewConversation {
  agent?: string;
  /** Whom it is with: a person, a tenant. */
  subjectId?: string;
  title?: string;
  /** They belong to the new conversation, whatever they say of theirs. */
  initialMessages?: readonly NewMessage[];
  metadata?: Record<string, unknown>;
}

export interface ConversationEngine {
  createConversation(options?: NewConversation): Promise<ConversationRecord>;
  /** `null` if there is none. */
  getConversation(id: string): Promise<ConversationRecord | null>;
  /** Throws `NOT_FOUND` for an unknown conversation. */
  appendMessages(conversationId: string, messages: readonly NewMessage[]): Promise<void>;
  /**
   * Runs a turn to its end and answers it. Throws `NOT_FOUND` for an unknown conversation; whatever else fails is stored
   * as a failed (or cancelled) turn first, and then thrown.
   */
  runTurn(options: RunTurn): Promise<ConversationTurn>;
  /**
   * The same, streamed: `{type: "chunk", chunk}` as the provider answers, `{type: "turn", turn}` at the end. Leaving the
   * loop early cancels the turn.
   */
  streamTurn(options: RunTurn): AsyncIterable<TurnEvent>;
}

/**
 * @example
 * const engine = createConversationEngine({
 *   defaultAgent: "helper",
 *   store: new InMemoryConversationStore(),
 *   providers: { openai: createProviderAdapter({ profile, gateway }) },
 *   defaultModels: { openai: "gpt-4.1-mini" },
 * });
 */
export function createConversationEngine(config: ConversationEngineConfig): ConversationEngine {
  const { store, hooks = {}, clock = systemClock, ids = systemIds } = config;
  const onHookError = config.onHookError ?? ((error) => console.error(error));
  const ports: EnginePorts = {
    ...{ store, hooks, onHookError, clock, ids },
    providers: new Map(Object.entries(config.providers)),
    defaultAgent: config.defaultAgent,
    historyBuilder: config.historyBuilder ?? createHistoryBuilder(),
    planner: config.planner ?? plannerOf(config),
  };

  async function createConversation(options: NewConversation = {}): Promise<ConversationRecord> {
    const now = toIso(clock.now());
    const { agent = config.defaultAgent, initialMessages = [], ...rest } = options;
    const conversation = { id: `conv_${ids.ulid()}`, agent, ...rest, createdAt: now, updatedAt: now };
    const messages = initialMessages.map((message) => ({
      ...completed(message, conversation.id, now),
      conversationId: conversation.id,
    }));
    // Checked first, so that no conversation is made whose messages cannot be stored.
    for (const message of messages) messageText(conversation.id, message);
    await store.createConversation(conversation);
    if (messages.length > 0) await store.appendMessages(conversation.id, messages);
    await runAfterHook("onConversationCreated", onHookError, () =>
      hooks.onConversationCreated?.(structuredClone(conversation)),
    );
    return conversation;
  }

  async function appendMessages(conversationId: string, messages: readonly NewMessage[]): Promise<void> {
    const now = clock.now();
    const [newest] = await store.getMessages(conversationId, { limit: 1, order: "desc" });
    const createdAt = notBefore(now, newest);
    const complete = messages.map((message) => completed(message, conversationId, createdAt));
    await store.appendMessages(conversationId, complete);
    const conversation = await store.getConversation(conversationId);
    if (conversation === null) throw conversationNotFound(conversationId);
    await store.updateConversation({ ...conversation, updatedAt: toIso(now) });
  }

  const completed = (
    message: NewMessage,
    conversationId: string,
    createdAt: string,
  ): ConversationMessage => ({
    ...{ id: `msg_${ids.ulid()}`, conversationId, createdAt },
    ...message,
  });

  async function runTurn(options: RunTurn): Promise<ConversationTurn> {
    const events = runTurnEvents(ports, options, { streaming: false });
    for (let next = await events.next(); ; next = await events.next()) {
      if (next.done) return next.value;
    }
  }

  async function* streamTurn(options: RunTurn): AsyncGenerator<TurnEvent> {
    const turn = yield* runTurnEvents(ports, options, { streaming: true });
    yield { type: "turn", turn };
  }

  return {
    createConversation,
    getConversation: (id) => store.getConversation(id),
    appendMessages,
    runTurn,
    streamTurn,
  };
}

function plannerOf({ providers, defaultModels = {} }: ConversationEngineConfig): TurnPlanner {
  const models = new Map(Object.entries(defaultModels));
  return defaultPlanner(
    Object.keys(providers).map((provider) => {
      const model = models.get(provider);
      return { provider, ...defined({ model }) };
    }),
  );
}
