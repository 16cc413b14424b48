/**
 * Executes one turn: history, plan, hook, call, messages, record, in this order, and stores each step.
 *
 * ENGINE-4  A started turn ends as `succeeded`, `failed` or `cancelled`, with an end time. Every call record in it is closed with an
 *           outcome.
 * ENGINE-5  A turn's output messages are exactly its messages in the conversation. They are empty if its call failed.
 * ENGINE-6  A turn is cancelled when its signal aborts or its reader stops, even if the provider ignores the signal.
 */
import { closeCallRecord, openCallRecord, type ProviderCallRecord } from "../model/call-record.ts";
import { agentContextOf, extensionsOf, type RequestClass, runIdOf } from "../model/correlation.ts";
import type { TokenUsage } from "../model/usage.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { defined } from "../shared/defined.ts";
import { invalid } from "../shared/errors.ts";
import { toIso } from "../shared/time.ts";
import { adapterOf, buildHistory, type CallPlanPorts, planCall } from "./call-plan.ts";
import {
  type CallbackContext,
  type ConversationHooks,
  type OnCallbackError,
  runCallback,
} from "./callbacks.ts";
import { type ChunkEvent, chat, streams } from "./chat-call.ts";
import type { ConversationStore } from "./conversation-store.ts";
import { defaultOutcome, ProviderCallError, turnError } from "./failures.ts";
import { leadingInstructions } from "./history.ts";
import type { PlannedTurn } from "./planner.ts";
import type { CallFacts, ProviderCallOptions, ProviderChatResult } from "./provider-adapter.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./records.ts";
import { conversationNotFound, turnRecord } from "./stored-records.ts";

export interface EnginePorts extends CallPlanPorts {
  store: ConversationStore;
  hooks: ConversationHooks;
  onCallbackError: OnCallbackError;
  clock: Pick<Clock, "now">;
  ids: Ids;
}

export interface RunTurn {
  conversationId: string;
  /** Agent that answers; the conversation's agent by default. */
  agent?: string;
  /** Reason of the turn: `user_message`, `tool_result`, `system_trigger` … */
  triggerType?: string;
  /** Wishes for the planner. */
  hints?: Record<string, unknown>;
  /** Cancels the turn. */
  signal?: AbortSignal;
  /** Run id of the delegating caller. Default: from the previous turn. */
  parentCorrelationId?: string;
  /** `interactive` by default. */
  requestClass?: RequestClass;
  metadata?: Record<string, unknown>;
}

/** An event of a streamed turn: chunks first, then the turn. */
export type TurnEvent = ChunkEvent | { type: "turn"; turn: ConversationTurn };

interface Failure {
  error: unknown;
  isCancelled: boolean;
}

/** Executes a turn: yields chunks if `streaming`, returns the succeeded turn, throws the cause of a failed one. */
export async function* executeTurn(
  ports: EnginePorts,
  options: RunTurn,
  { streaming }: { streaming: boolean },
): AsyncGenerator<ChunkEvent, ConversationTurn> {
  const execution = await TurnExecution.start(ports, options);
  const left = new AbortController();
  const signal = options.signal === undefined ? left.signal : AbortSignal.any([options.signal, left.signal]);
  let isOver = false;
  try {
    signal.throwIfAborted();
    const turn = await execution.succeed(yield* execution.call({ streaming, signal }));
    isOver = true;
    return turn;
  } catch (error) {
    isOver = true;
    await execution.fail({ error, isCancelled: signal.aborted });
    throw signal.aborted ? signal.reason : error;
  } finally {
    // The reader of a generator can stop at a `yield`, which skips the `catch`.
    if (!isOver) {
      left.abort(new DOMException("The turn was cancelled.", "AbortError"));
      await execution.fail({ error: left.signal.reason, isCancelled: true });
    }
  }
}

/** Returns the time of a new message: now, but never before the newest message, so the order stays. */
export function messageTime(now: number, newest: ConversationMessage | undefined): string {
  return toIso(newest === undefined ? now : Math.max(now, Date.parse(newest.createdAt)));
}

class TurnExecution {
  #provider: string | undefined;
  #open: { record: ProviderCallRecord; startedAt: number } | undefined;

  private constructor(
    private readonly ports: EnginePorts,
    private readonly options: RunTurn,
    private readonly conversation: ConversationRecord,
    private readonly messages: readonly ConversationMessage[],
    private readonly parentCorrelationId: string | undefined,
    private turn: ConversationTurn,
  ) {}

  /** Stores a running turn. Throws `NOT_FOUND` for an unknown conversation, before anything is stored. */
  static async start(ports: EnginePorts, options: RunTurn): Promise<TurnExecution> {
    const { store, clock, ids } = ports;
    const { conversationId, triggerType, metadata } = options;
    const conversation = await store.getConversation(conversationId);
    if (conversation === null) throw conversationNotFound(conversationId);
    const messages = await store.getMessages(conversationId);
    const [previous] = await store.listTurns(conversationId, { limit: 1, order: "desc" });
    const turn: ConversationTurn = {
      id: `turn_${ids.ulid()}`,
      conversationId,
      agent: options.agent ?? conversation.agent,
      inputMessages: inputOf(messages),
      outputMessages: [],
      providerCalls: [],
      status: "running",
      startedAt: toIso(clock.now()),
      ...defined({ triggerType, metadata }),
    };
    await store.createTurn(turn);
    const previousRunId = previous && runIdOf(conversationId, previous.id);
    const parentCorrelationId = options.parentCorrelationId ?? previousRunId;
    return new TurnExecution(ports, options, conversation, messages, parentCorrelationId, turn);
  }

  /** Plans the call, stores its record and makes it. */
  async *call(how: {
    streaming: boolean;
    signal: AbortSignal;
  }): AsyncGenerator<ChunkEvent, ProviderChatResult> {
    const { conversation, turn } = this;
    const { hints } = this.options;
    const input = { conversation, messages: this.messages, agent: turn.agent, ...defined({ hints }) };
    const { messages, truncated } = await buildHistory(this.ports, input, turn.id);
    const plan = await planCall(this.ports, input);
    this.#provider = plan.provider;
    const adapter = adapterOf(this.ports, plan);
    await this.#beforeTurn();
    how.signal.throwIfAborted();
    const options = this.#callOptions(plan, how.signal, how.streaming && streams(adapter));
    await this.#openCall(plan, options, { messages: messages.length, ...defined({ truncated }) });
    const request = { messages, model: plan.model, ...defined({ parameters: plan.parameters }) };
    return yield* chat(adapter, request, options, how.streaming);
  }

  /** Appends the messages, closes the call record and stores the turn. */
  async succeed({ messages, usage, call }: ProviderChatResult): Promise<ConversationTurn> {
    const { store, clock, ids, hooks } = this.ports;
    if (!Array.isArray(messages)) throw invalid("The adapter's answer has no list of `messages`.");
    const { conversationId } = this.turn;
    const createdAt = messageTime(clock.now(), this.messages.at(-1));
    const outputMessages = messages.map((message) => ({
      ...{ id: `msg_${ids.ulid()}`, createdAt },
      ...message,
      conversationId,
    }));
    this.#closeCall({ ...call, ...defined({ usage }) });
    const finishedAt = toIso(clock.now());
    const turn: ConversationTurn = { ...this.turn, outputMessages, status: "succeeded", finishedAt };
    if (store.completeTurn === undefined) await this.#completeStepwise(turn, finishedAt);
    else await store.completeTurn(turn, finishedAt);
    await runCallback("afterTurnSuccess", this.ports.onCallbackError, () =>
      hooks.afterTurnSuccess?.(structuredClone(turn), this.#callbackContext()),
    );
    return turn;
  }

  /** Stores the failure. Throws only if that fails. */
  async fail(failure: Failure): Promise<void> {
    const { store, clock, hooks, onCallbackError } = this.ports;
    const { error, isCancelled } = failure;
    try {
      this.#closeCall(error instanceof ProviderCallError ? error.call : {}, failure);
    } catch {
      // The adapter's facts cannot be stored. Close the record without them.
      this.#closeCall({}, failure);
    }
    this.turn = {
      ...this.turn,
      status: isCancelled ? "cancelled" : "failed",
      finishedAt: toIso(clock.now()),
      error: turnError(error, { ...defined({ provider: this.#provider }), isCancelled }),
    };
    try {
      await store.updateTurn(this.turn);
    } catch (storeError) {
      const message = `The turn ${this.turn.id} failed, and storing the failure failed too.`;
      throw new AggregateError([error, storeError], message);
    }
    await runCallback("afterTurnError", onCallbackError, () =>
      hooks.afterTurnError?.(structuredClone(this.turn), error, this.#callbackContext()),
    );
  }

  async #beforeTurn(): Promise<void> {
    const { hooks } = this.ports;
    if (hooks.beforeTurn === undefined) return;
    const copy = structuredClone(this.turn);
    await hooks.beforeTurn(copy, this.#callbackContext());
    if (copy.metadata !== undefined) this.#adopt({ ...this.turn, metadata: copy.metadata });
  }

  #callOptions(
    { provider, model }: PlannedTurn,
    signal: AbortSignal,
    streaming: boolean,
  ): ProviderCallOptions {
    const { id: turnId, conversationId, agent, metadata } = this.turn;
    const { parentCorrelationId } = this;
    const { requestClass } = this.options;
    const site = { conversationId, turnId, agent, provider, model };
    return {
      ...{ conversationId, turnId, agent, signal },
      correlationId: runIdOf(conversationId, turnId),
      buildAgentContext: () => agentContextOf(site, metadata),
      extensions: extensionsOf(site, { streaming, ...defined({ requestClass }) }),
      ...defined({ parentCorrelationId, metadata }),
    };
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

  #closeCall(facts: CallFacts & { usage?: TokenUsage }, failure?: Failure): void {
    if (this.#open === undefined) return;
    const { record, startedAt } = this.#open;
    const finishedAt = this.ports.clock.now();
    const outcome = facts.outcome ?? defaultOutcome({ startedAt, finishedAt }, failure);
    const closed = closeCallRecord(record, { ...facts, outcome, finishedAt });
    this.#adopt({ ...this.turn, providerCalls: [closed] });
    this.#open = undefined;
  }

  /** Adopts values from a hook or an adapter. Throws if they cannot be stored, as the turn could then not even fail. */
  #adopt(turn: ConversationTurn): void {
    turnRecord(turn);
    this.turn = turn;
  }

  async #completeStepwise(turn: ConversationTurn, updatedAt: string): Promise<void> {
    const { store } = this.ports;
    const { conversationId, outputMessages } = turn;
    if (outputMessages.length > 0) await store.appendMessages(conversationId, outputMessages);
    this.turn = { ...this.turn, outputMessages };
    // Reload: the conversation may have changed during the call.
    const current = (await store.getConversation(conversationId)) ?? this.conversation;
    await store.updateConversation({ ...current, updatedAt });
    await store.updateTurn(turn);
  }

  #callbackContext(): CallbackContext {
    return { conversation: structuredClone(this.conversation) };
  }
}

/** Returns the messages that a turn answers: all after the last assistant message, without the leading instructions. */
function inputOf(messages: readonly ConversationMessage[]): ConversationMessage[] {
  const answered = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  return messages.slice(Math.max(answered, leadingInstructions(messages)));
}
