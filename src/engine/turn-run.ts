/**
 * One turn: history, plan, hook, call, messages, record, in this order, and what is stored of it.
 *
 * ENGINE-4  A turn that was begun ends: `succeeded`, `failed` or `cancelled`, with the time of its end, and every call
 *           record in it is closed with an outcome.
 * ENGINE-5  A turn's output messages are exactly those of it that are in the conversation: none where its call failed.
 */

import type { ProviderCallRecord } from "../model/call-record.ts";
import { closeCallRecord, openCallRecord, toIso } from "../model/call-record.ts";
import { type RequestClass, runIdOf } from "../model/correlation.ts";
import type { TokenUsage } from "../model/usage.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError } from "../shared/errors.ts";
import { callOptions } from "./call-options.ts";
import { adapterOf, builtHistory, type CallPlanPorts, plannedCall, requestOf } from "./call-plan.ts";
import { type ChunkEvent, chat, streams } from "./chat-call.ts";
import type { ConversationStore } from "./conversation-store.ts";
import { failedOutcome, ProviderCallError, turnError } from "./failures.ts";
import { type ConversationHooks, type OnHookError, runAfterHook } from "./hooks.ts";
import type { PlannedTurn } from "./planner.ts";
import type { CallFacts, ProviderCallOptions, ProviderChatResult } from "./provider-adapter.ts";
import { conversationNotFound, turnText } from "./stored-records.ts";
import { inputOf, notBefore } from "./turn-messages.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./types.ts";

export interface EnginePorts extends CallPlanPorts {
  defaultAgent: string;
  store: ConversationStore;
  hooks: ConversationHooks;
  onHookError: OnHookError;
  clock: Pick<Clock, "now">;
  ids: Ids;
}

export interface RunTurn {
  conversationId: string;
  /** Who answers; the conversation's agent when absent. */
  agent?: string;
  /** Why: `user_message`, `tool_result`, `system_trigger` … */
  triggerType?: string;
  /** For the planner. */
  hints?: Record<string, unknown>;
  /** Cancels the turn. */
  signal?: AbortSignal;
  /** The run id of whoever delegates; that of the turn before when absent. */
  parentCorrelationId?: string;
  /** `interactive` when absent. */
  requestClass?: RequestClass;
  metadata?: Record<string, unknown>;
}

/** A turn on its way: what is stored of it, and what is known beside. */
export class TurnRun {
  /** The provider that was planned, once one was. */
  #provider: string | undefined;
  /** The call in progress. */
  #open: { record: ProviderCallRecord; startedAt: number } | undefined;

  private constructor(
    private readonly ports: EnginePorts,
    private readonly options: RunTurn,
    private readonly conversation: ConversationRecord,
    private readonly messages: readonly ConversationMessage[],
    private readonly parentCorrelationId: string | undefined,
    private turn: ConversationTurn,
  ) {}

  /** Stores a running turn. Throws `NOT_FOUND` for an unknown conversation, and stores nothing then. */
  static async begin(ports: EnginePorts, options: RunTurn): Promise<TurnRun> {
    const { store, clock, ids } = ports;
    const { conversationId, triggerType, metadata } = options;
    const conversation = await store.getConversation(conversationId);
    if (conversation === null) throw conversationNotFound(conversationId);
    const messages = await store.getMessages(conversationId);
    const [before] = await store.listTurns(conversationId, { limit: 1, order: "desc" });
    const turn: ConversationTurn = {
      id: `turn_${ids.ulid()}`,
      conversationId,
      agent: options.agent ?? conversation.agent,
      inputMessages: inputOf(messages),
      outputMessages: [],
      providerCalls: [],
      status: "running",
      ...defined({ triggerType }),
      startedAt: toIso(clock.now()),
      ...defined({ metadata }),
    };
    await store.createTurn(turn);
    const parent = before === undefined ? undefined : runIdOf(conversationId, before.id);
    const parentCorrelationId = options.parentCorrelationId ?? parent;
    return new TurnRun(ports, options, conversation, messages, parentCorrelationId, turn);
  }

  /** Plans the call, records it and makes it. */
  async *call(how: {
    streaming: boolean;
    signal: AbortSignal;
  }): AsyncGenerator<ChunkEvent, ProviderChatResult> {
    const { hints } = this.options;
    const input = {
      ...{ conversation: this.conversation, messages: this.messages },
      ...{ turnId: this.turn.id, agent: this.turn.agent },
      ...defined({ hints }),
    };
    const { messages, truncated } = await builtHistory(this.ports, input);
    const plan = await plannedCall(this.ports, input);
    this.#provider = plan.provider;
    const adapter = adapterOf(this.ports, plan);
    await this.#beforeTurn();
    how.signal.throwIfAborted();
    const streaming = how.streaming && streams(adapter);
    const { requestClass } = this.options;
    const options = callOptions(this.turn, plan, {
      ...{ streaming, signal: how.signal },
      ...defined({ parentCorrelationId: this.parentCorrelationId, requestClass }),
    });
    const facts = truncated === undefined ? {} : { truncated };
    await this.#openCall(plan, options, { messages: messages.length, ...facts });
    return yield* chat(adapter, requestOf(plan, messages), options, how.streaming);
  }

  /** Appends the messages, closes the record, stores the turn. */
  async succeed({ messages, usage, call }: ProviderChatResult): Promise<ConversationTurn> {
    const { store, clock, hooks, onHookError } = this.ports;
    if (!Array.isArray(messages)) {
      throw new DramatisError("INVALID_INPUT", "The adapter's answer has no list of `messages`.");
    }
    const createdAt = notBefore(clock.now(), this.messages.at(-1));
    const output = messages.map((message) => ({
      ...{ id: `msg_${this.ports.ids.ulid()}`, createdAt },
      ...message,
      conversationId: this.turn.conversationId,
    }));
    this.#closeCall({ ...call, ...defined({ usage }) });
    const finishedAt = toIso(clock.now());
    const turn: ConversationTurn = {
      ...this.turn,
      outputMessages: output,
      status: "succeeded",
      finishedAt,
    };
    if (store.completeTurn === undefined) await this.#completeStepwise(turn, finishedAt);
    else await store.completeTurn(turn, finishedAt);
    await runAfterHook("afterTurnSuccess", onHookError, () =>
      hooks.afterTurnSuccess?.(structuredClone(turn), this.#hookContext()),
    );
    return turn;
  }

  /** Stores why there is no answer. Throws only if that cannot be stored. */
  async fail(error: unknown, isCancelled: boolean): Promise<void> {
    const { store, clock, hooks, onHookError } = this.ports;
    const known = error instanceof ProviderCallError ? error.call : {};
    try {
      this.#closeCall(known, { error, isCancelled });
    } catch {
      // What the adapter told cannot be stored; that the call has failed can.
      this.#closeCall({}, { error, isCancelled });
    }
    const provider = this.#provider === undefined ? {} : { provider: this.#provider };
    this.turn = {
      ...this.turn,
      status: isCancelled ? "cancelled" : "failed",
      finishedAt: toIso(clock.now()),
      error: turnError(error, { ...provider, isCancelled }),
    };
    try {
      await store.updateTurn(this.turn);
    } catch (notStored) {
      const message = `The turn ${this.turn.id} failed, and that could not be stored.`;
      throw new AggregateError([error, notStored], message);
    }
    await runAfterHook("afterTurnError", onHookError, () =>
      hooks.afterTurnError?.(structuredClone(this.turn), error, this.#hookContext()),
    );
  }

  async #beforeTurn(): Promise<void> {
    const { beforeTurn } = this.ports.hooks;
    if (beforeTurn === undefined) return;
    const copy = structuredClone(this.turn);
    await beforeTurn.call(this.ports.hooks, copy, this.#hookContext());
    if (copy.metadata !== undefined) this.#adopt({ ...this.turn, metadata: copy.metadata });
  }

  async #openCall(
    { provider, model }: PlannedTurn,
    { conversationId, turnId, agent, parentCorrelationId, extensions }: ProviderCallOptions,
    facts: Record<string, unknown>,
  ): Promise<void> {
    const startedAt = this.ports.clock.now();
    const record = openCallRecord({
      id: `call_${this.ports.ids.ulid()}`,
      ...{ conversationId, turnId, agent, provider, model, startedAt },
      ...defined({ parentCorrelationId }),
      requestMetadata: { ...extensions, ...facts },
    });
    this.#open = { record, startedAt };
    this.turn = { ...this.turn, providerCalls: [record] };
    await this.ports.store.updateTurn(this.turn);
  }

  #closeCall(
    known: CallFacts & { usage?: TokenUsage },
    failed?: { error: unknown; isCancelled: boolean },
  ): void {
    if (this.#open === undefined) return;
    const { record, startedAt } = this.#open;
    const finishedAt = this.ports.clock.now();
    const outcome = known.outcome ?? failedOutcome({ startedAt, finishedAt }, failed);
    const closed = closeCallRecord(record, { ...known, outcome, finishedAt });
    this.#adopt({ ...this.turn, providerCalls: [closed] });
    this.#open = undefined;
  }

  /** Takes over what others gave, once it is known that it can be stored: else the turn could not even fail. */
  #adopt(turn: ConversationTurn): void {
    turnText(turn);
    this.turn = turn;
  }

  async #completeStepwise(turn: ConversationTurn, updatedAt: string): Promise<void> {
    const { store } = this.ports;
    const { conversationId, outputMessages } = turn;
    if (outputMessages.length > 0) await store.appendMessages(conversationId, outputMessages);
    this.turn = { ...this.turn, outputMessages };
    // Read again: someone may have changed it since.
    const current = (await store.getConversation(conversationId)) ?? this.conversation;
    await store.updateConversation({ ...current, updatedAt });
    await store.updateTurn(turn);
  }

  #hookContext(): { conversation: ConversationRecord } {
    return { conversation: structuredClone(this.conversation) };
  }
}
