/**
 * Selection of the messages to send for a turn. An application may replace the builder. The default builder selects as the
 * actors do (HISTORY-1) and reports omissions (HISTORY-2).
 *
 * HISTORY-3  The leading system messages of a conversation are its instructions and are always sent. The limits cover
 *            the instructions and the other messages together.
 */
import { type HistoryLimits, selectHistory } from "../memory/session/history.ts";
import { EventAction, type SessionEvent } from "../memory/session/session-event.ts";
import { frameTokens, type TokenCounter } from "../memory/session/tokens.ts";
import type { ContextMessage } from "../model/messages.ts";
import { defined } from "../shared/defined.ts";
import { fromContextMessage, toContextMessages } from "./messages.ts";
import type { PlanTurnInput } from "./planner.ts";
import type { ChatInputMessage } from "./provider-adapter.ts";
import type { ConversationMessage } from "./records.ts";

export interface HistoryBuilderContext extends Omit<PlanTurnInput, "hints"> {
  nextTurnId: string;
}

export interface HistoryBuildResult {
  messages: ChatInputMessage[];
  /** `true` if a message was left out or shortened; recorded with the call. */
  truncated: boolean;
}

type Built = ChatInputMessage[] | HistoryBuildResult;

/**
 * Selects and shapes the messages of a turn.
 *
 * @example
 * const lastTen: HistoryBuilder = { buildHistory: ({ messages }) => messages.slice(-10) };
 */
export interface HistoryBuilder {
  buildHistory(context: HistoryBuilderContext): Built | Promise<Built>;
}

export interface HistoryBuilderOptions extends HistoryLimits {
  /** Counts tokens; an estimate by default. */
  countTokens?: TokenCounter;
}

/**
 * Creates the default builder: it sends the whole conversation, or the part within the limits. It leaves out a tool call
 * without a result and a result without a call, because providers reject them. Its `buildHistory` throws `INVALID_INPUT`
 * for an invalid limit.
 *
 * @example createHistoryBuilder({ maxTurns: 20, tokenBudget: 16_000 })
 */
export function createHistoryBuilder(options: HistoryBuilderOptions = {}): HistoryBuilder {
  return { buildHistory: ({ messages }) => selectMessages(messages, options) };
}

function selectMessages(
  messages: readonly ConversationMessage[],
  { countTokens, ...limits }: HistoryBuilderOptions,
): HistoryBuildResult {
  const inputs = messages.map(toInput);
  const leading = leadingInstructions(inputs);
  const instructions = inputs.slice(0, leading);
  const originals = new Map<ContextMessage, ChatInputMessage>();
  const contexts = inputs.slice(leading).flatMap((input) => {
    const converted = toContextMessages(input);
    const [only] = converted;
    if (converted.length === 1 && only !== undefined) originals.set(only, input);
    return converted;
  });
  const { messages: selected, truncated } = selectHistory(
    { events: contexts.map(toEvent), isCutOff: false },
    {
      ...limitsBeside(instructions, limits, countTokens),
      ...defined({ countTokens }),
      eventToMessage: ({ seq }) => contexts[seq] ?? null,
    },
  );
  const rest = selected.map((context) => originals.get(context) ?? fromContextMessage(context));
  return { messages: [...instructions, ...rest], truncated };
}

/** Counts the system messages at the beginning of a conversation. */
export function leadingInstructions(messages: readonly Pick<ConversationMessage, "role">[]): number {
  const first = messages.findIndex(({ role }) => role !== "system");
  return first === -1 ? messages.length : first;
}

/** Returns the limits for the messages after the instructions, at least 1 each. */
function limitsBeside(
  instructions: readonly ChatInputMessage[],
  limits: HistoryLimits,
  countTokens?: TokenCounter,
): HistoryLimits {
  const { maxMessages, tokenBudget } = limits;
  const systemInstructions = instructions.flatMap(toContextMessages).map(({ content }) => content);
  // A limit below 1 stays as it is, because `selectHistory` rejects it.
  const left = (limit: number, taken: number) => (limit > 0 ? Math.max(1, limit - taken) : limit);
  return {
    ...limits,
    ...defined({
      maxMessages: maxMessages && left(maxMessages, instructions.length),
      tokenBudget: tokenBudget && left(tokenBudget, frameTokens({ systemInstructions }, countTokens)),
    }),
  };
}

function toInput({ role, content, name, metadata }: ConversationMessage): ChatInputMessage {
  return { role, content, ...defined({ name, metadata }) };
}

/** Wraps a message for the selection of events: `seq` is its index, and `action` marks the start of a turn. */
function toEvent({ role }: ContextMessage, seq: number): SessionEvent {
  const action = role === "user" ? EventAction.USER_MESSAGE : EventAction.AGENT_MESSAGE;
  return { id: String(seq), sessionId: "", seq, content: "", timestamp: 0, action };
}
