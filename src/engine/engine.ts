/** The conversation engine: conversations and turns over any store and any provider. It has no transport of its own. */
import { systemClock, systemIds } from "../ports/system.ts";
import { defined } from "../shared/defined.ts";
import { toIso } from "../shared/time.ts";
import { type ConversationHooks, type OnCallbackError, runCallback } from "./callbacks.ts";
import type { ConversationStore } from "./conversation-store.ts";
import { createHistoryBuilder, type HistoryBuilder } from "./history.ts";
import { defaultPlanner, type TurnPlanner } from "./planner.ts";
import type { NewMessage, ProviderAdapter } from "./provider-adapter.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./records.ts";
import { conversationNotFound, messageRecord } from "./stored-records.ts";
import {
  type EnginePorts,
  executeTurn,
  messageTime,
  type RunTurn,
  type TurnEvent,
} from "./turn-execution.ts";

export interface ConversationEngineConfig {
  /** Default agent of conversations. */
  defaultAgent: string;
  store: ConversationStore;
  /** Provider adapters by name, as plans refer to them. */
  providers: Readonly<Record<string, ProviderAdapter>>;
  /** Default model of each provider. The first provider with a default model is the default provider. */
  defaultModels?: Readonly<Record<string, string>>;
  /** Sends the whole conversation by default. */
  historyBuilder?: HistoryBuilder;
  /** Follows the hints `provider`, `model` and `parameters` by default. */
  planner?: TurnPlanner;
  hooks?: ConversationHooks;
  /** Receives errors of hooks that run after storage; writes them to the console by default. */
  onCallbackError?: OnCallbackError;
  /** The system's clock by default. */
  clock?: EnginePorts["clock"];
  /** Random ids by default. */
  ids?: EnginePorts["ids"];
}

export interface NewConversation {
  /** `defaultAgent` by default. */
  agent?: string;
  /** Id of the counterpart: a person, a tenant. */
  subjectId?: string;
  title?: string;
  /** First messages. The new conversation's id replaces their `conversationId`. */
  initialMessages?: readonly NewMessage[];
  metadata?: Record<string, unknown>;
}

export interface ConversationEngine {
  createConversation(options?: NewConversation): Promise<ConversationRecord>;
  /** Returns `null` for an unknown conversation. */
  getConversation(id: string): Promise<ConversationRecord | null>;
  /** Throws `NOT_FOUND` for an unknown conversation. */
  appendMessages(conversationId: string, messages: readonly NewMessage[]): Promise<void>;
  /**
   * Runs a turn and returns it. Throws `NOT_FOUND` for an unknown conversation. Any other failure is stored as a failed or
   * cancelled turn, and then thrown.
   */
  runTurn(options: RunTurn): Promise<ConversationTurn>;
  /**
   * Runs a turn and streams it: chunks as the provider sends them, then the turn. Leaving the loop cancels the turn.
   *
   * @example
   * for await (const event of engine.streamTurn({ conversationId })) {
   *   if (event.type === "turn") console.log(event.turn.status);
   *   else if (typeof event.chunk.delta === "string") process.stdout.write(event.chunk.delta);
   * }
   */
  streamTurn(options: RunTurn): AsyncIterable<TurnEvent>;
}

/**
 * Creates an engine.
 *
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
  const onCallbackError = config.onCallbackError ?? ((error) => console.error(error));
  const ports: EnginePorts = {
    ...{ store, hooks, onCallbackError, clock, ids },
    providers: new Map(Object.entries(config.providers)),
    historyBuilder: config.historyBuilder ?? createHistoryBuilder(),
    planner: config.planner ?? plannerFor(config),
  };

  const complete = (message: NewMessage, conversationId: string, createdAt: string): ConversationMessage => ({
    ...{ id: `msg_${ids.ulid()}`, conversationId, createdAt },
    ...message,
  });

  return {
    async createConversation({ agent = config.defaultAgent, initialMessages = [], ...options } = {}) {
      const now = toIso(clock.now());
      const id = `conv_${ids.ulid()}`;
      const conversation = { id, agent, ...options, createdAt: now, updatedAt: now };
      const messages = initialMessages.map((message) => ({
        ...complete(message, id, now),
        conversationId: id,
      }));
      // Check first: an invalid message must not leave an empty conversation.
      for (const message of messages) messageRecord(id, message);
      await store.createConversation(conversation);
      if (messages.length > 0) await store.appendMessages(id, messages);
      await runCallback("onConversationCreated", onCallbackError, () =>
        hooks.onConversationCreated?.(structuredClone(conversation)),
      );
      return conversation;
    },

    getConversation: (id) => store.getConversation(id),

    async appendMessages(conversationId, messages) {
      const now = clock.now();
      const [newest] = await store.getMessages(conversationId, { limit: 1, order: "desc" });
      const createdAt = messageTime(now, newest);
      const completed = messages.map((message) => complete(message, conversationId, createdAt));
      await store.appendMessages(conversationId, completed);
      const conversation = await store.getConversation(conversationId);
      if (conversation === null) throw conversationNotFound(conversationId);
      await store.updateConversation({ ...conversation, updatedAt: toIso(now) });
    },

    async runTurn(options) {
      const events = executeTurn(ports, options, { streaming: false });
      for (let next = await events.next(); ; next = await events.next()) if (next.done) return next.value;
    },

    async *streamTurn(options) {
      const turn = yield* executeTurn(ports, options, { streaming: true });
      yield { type: "turn", turn };
    },
  };
}

function plannerFor({ providers, defaultModels = {} }: ConversationEngineConfig): TurnPlanner {
  const models = new Map(Object.entries(defaultModels));
  return defaultPlanner(
    Object.keys(providers).map((provider) => ({ provider, ...defined({ model: models.get(provider) }) })),
  );
}
