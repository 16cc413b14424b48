/**
 * The context of a model call: the persona's instructions, the window of the session, the user's message, and the moves
 * of the turn so far. Pure.
 *
 * CONTEXT-2  A later call of a cycle begins with the earlier call's messages, unchanged. A withdrawn answer and the
 *            problem with it follow them, and both stay.
 */

import { eventToMessage } from "../../../../memory/session/events.ts";
import { frameTokens } from "../../../../memory/session/tokens.ts";
import type { SessionEvent } from "../../../../memory/session/types.ts";
import type { ModelContext, ToolSpec } from "../../../../model/context.ts";
import type { ContextMessage } from "../../../../model/messages.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import { defined } from "../../../../shared/defined.ts";
import type { Operation } from "../operation.ts";
import { type ConversationIdentity, chainOf, operationsOf, type Reply, type Turn } from "../state.ts";
import { messageEvent, replyEvent, resultEvent } from "../turn-events.ts";

/** Tokens of instructions, tools and history. The turn itself comes on top: it is sent in any case. */
const MAX_CONTEXT_TOKENS = 60_000;

/** Returns the context without the turn's moves. */
export function baseContext(
  record: Pick<ConversationIdentity, "id" | "agents">,
  history: readonly ContextMessage[],
  turn: Turn,
): ModelContext {
  const { call, tools, output, toolChoice = "auto", replies, repairs = [] } = turn;
  const isFirstReply = replies.length + repairs.length === 0;
  return {
    ...frameOf(chainOf(record, turn.agentId), tools),
    ...defined({ output }),
    cache: { key: record.id, stableMessages: history.length },
    messages: [...history, ...messagesOf([messageEvent(turn)])],
    toolChoice: call?.final ? "none" : isFirstReply ? toolChoice : "auto",
  };
}

/** Returns the messages of the turn's moves: replies, tool results, withdrawn answers and the paused reply, in order. */
export function moveMessages(turn: Turn): ContextMessage[] {
  const messages = turn.replies.flatMap((reply, index) => [
    ...repairMessages(turn, index),
    ...messagesOfMove(reply, () => replyEvent(turn, index)),
    ...operationsOf(turn, index).flatMap((operation) =>
      messagesOfMove(operation, () => resultEvent(turn, operation)),
    ),
  ]);
  return [...messages, ...repairMessages(turn, turn.replies.length), ...pausedMessages(turn)];
}

/** The messages of replies and results, which never change: each further call of a turn repeats them. */
const messagesOfMoves = new WeakMap<Reply | Operation, ContextMessage[]>();

function messagesOfMove(move: Reply | Operation, event: () => SessionEvent): ContextMessage[] {
  const known = messagesOfMoves.get(move);
  if (known !== undefined) return known;
  const messages = messagesOf([event()]);
  messagesOfMoves.set(move, messages);
  return messages;
}

/** Returns the paused reply: the model continues the last message (PAUSE-1). */
function pausedMessages({ paused }: Turn): ContextMessage[] {
  if (paused === undefined) return [];
  return [{ role: "assistant", content: paused.text, ...defined({ native: paused.native }) }];
}

/** Returns the answers that were withdrawn after `replies` replies, each with its problem. */
function repairMessages({ repairs = [] }: Turn, replies: number): ContextMessage[] {
  return repairs
    .filter(({ after }) => after === replies)
    .flatMap(({ text, problem }): ContextMessage[] => {
      const content = `Your answer was not accepted: ${problem}. Answer again: only JSON that fits the schema, and nothing around it.`;
      const correction: ContextMessage = { role: "system", content };
      return text.trim() === "" ? [correction] : [{ role: "assistant", content: text }, correction];
    });
}

/** Tokens of the instructions and tools of chains, which never change. */
const chainTokens = new WeakMap<VersionChain, number>();

/** Returns the tokens that remain for the history beside instructions and tools. */
export function historyBudget(chain: VersionChain, brought: readonly ToolSpec[] = []): number {
  const own = chainTokens.get(chain) ?? frameTokens(frameOf(chain));
  chainTokens.set(chain, own);
  return MAX_CONTEXT_TOKENS - own - frameTokens({ tools: brought });
}

/** The part that every call sends. The agent's tools come first, so that prompts begin alike whatever a client brings. */
function frameOf(
  { persona, tools }: VersionChain,
  brought: readonly ToolSpec[] = [],
): Pick<ModelContext, "systemInstructions" | "tools"> {
  const { systemPrompt, instructions = [] } = persona.definition.identity;
  const own = tools.map(({ definition: { name, description, inputSchema } }) => ({
    name,
    description,
    inputSchema,
  }));
  return { systemInstructions: [systemPrompt, ...instructions], tools: [...own, ...brought] };
}

function messagesOf(events: readonly SessionEvent[]): ContextMessage[] {
  return events.flatMap((event) => eventToMessage(event) ?? []);
}
