/**
 * What of a conversation is sent for a turn. A builder of your own may select and shape by anything; the default one
 * selects as the actors do (HISTORY-1), and knows whether it left anything out (HISTORY-2).
 *
 * HISTORY-3  System messages that lead a conversation are its instructions: they stay, whatever the limits, which hold
 *            for them and the rest together.
 */

import { type HistoryLimits, selectHistory } from "../memory/session/history.ts";
import { frameTokens, type TokenCounter } from "../memory/session/tokens.ts";
import { EventAction, type SessionEvent } from "../memory/session/types.ts";
import type { ContextMessage } from "../model/messages.ts";
import { defined } from "../shared/defined.ts";
import { fromContextMessage, toContextMessages } from "./messages.ts";
import type { ChatInputMessage } from "./provider-adapter.ts";
import type { ConversationMessage, ConversationRecord } from "./types.ts";

export interface HistoryBuilderContext {
  conversation: ConversationRecord;
  /** The conversation so far, ascending, the input of the turn included. */
  messages: readonly ConversationMessage[];
  nextTurnId: string;
  agent: string;
}

/** What a builder answers that knows whether it left anything out. */
export interface HistoryBuildResult {
  messages: ChatInputMessage[];
  truncated: boolean;
}

type Built = ChatInputMessage[] | HistoryBuildResult;

export interface HistoryBuilder {
  buildHistory(context: HistoryBuilderContext): Built | Promise<Built>;
}

export interface HistoryBuilderOptions extends HistoryLimits {
  /** Counts tokens; an estimate when absent. */
  countTokens?: TokenCounter;
}

/**
 * The default builder: all of the conversation, or what is within the limits. A call whose result is not there yet is
 * left out, and so is a result without its call: no provider takes them.
 *
 * @example createHistoryBuilder({ maxTurns: 20, tokenBudget: 16_000 })
 */
export function createHistoryBuilder(options: HistoryBuilderOptions = {}): HistoryBuilder {
  return { buildHistory: ({ messages }) => buildHistory(messages, options) };
}

/** The selection itself. Throws `INVALID_INPUT` for limits that make no sense. */
function buildHistory(
  messages: readonly ConversationMessage[],
  { countTokens, ...limits }: HistoryBuilderOptions,
): HistoryBuildResult {
  const inputs = messages.map(toInput);
  const leading = leadingInstructions(inputs);
  const front = inputs.slice(0, leading);
  const originals = new Map<ContextMessage, ChatInputMessage>();
  const contexts = inputs.slice(leading).flatMap((input) => {
    const told = toContextMessages(input);
    const [only] = told;
    if (told.length === 1 && only !== undefined) originals.set(only, input);
    return told;
  });
  const { messages: selected, truncated } = selectHistory(
    { events: contexts.map(toEvent), isCutOff: false },
    {
      ...remaining(limits, front, countTokens),
      ...defined({ countTokens }),
      eventToMessage: ({ seq }) => contexts[seq] ?? null,
    },
  );
  const rest = selected.map((context) => originals.get(context) ?? fromContextMessage(context));
  return { messages: [...front, ...rest], truncated };
}

/** How many system messages a conversation begins with. */
export function leadingInstructions(messages: readonly Pick<ConversationMessage, "role">[]): number {
  const first = messages.findIndex(({ role }) => role !== "system");
  return first === -1 ? messages.length : first;
}

/** What the limits leave beside the instructions: always room for something. */
function remaining(
  limits: HistoryLimits,
  front: readonly ChatInputMessage[],
  countTokens?: TokenCounter,
): HistoryLimits {
  const systemInstructions = front.flatMap(toContextMessages).map(({ content }) => content);
  const { maxMessages, tokenBudget } = limits;
  const left = (limit: number, taken: number) => (limit > 0 ? Math.max(1, limit - taken) : limit);
  return {
    ...limits,
    ...(maxMessages === undefined ? {} : { maxMessages: left(maxMessages, front.length) }),
    ...(tokenBudget === undefined
      ? {}
      : { tokenBudget: left(tokenBudget, frameTokens({ systemInstructions }, countTokens)) }),
  };
}

function toInput({ role, content, name, metadata }: ConversationMessage): ChatInputMessage {
  return {
    role,
    content,
    ...defined({ name, metadata }),
  };
}

/** Stands for a message where events are selected: its number leads back to it, its action says where turns begin. */
function toEvent({ role }: ContextMessage, seq: number): SessionEvent {
  const action = role === "user" ? EventAction.USER_MESSAGE : EventAction.AGENT_MESSAGE;
  return { id: String(seq), sessionId: "", seq, content: "", createdAt: 0, action };
}
