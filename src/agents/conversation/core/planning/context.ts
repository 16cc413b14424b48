/**
 * The context of a model call: the persona's instructions, the window of the session, the user's message and the moves
 * of this turn so far. Pure.
 *
 * CONTEXT-1  The window is a tail of the turns behind the summary of a compaction, if there is one; no result stands in
 *            it without its call.
 * CONTEXT-2  A later call of a cycle has the earlier call's messages unchanged in front: with an answer that was
 *            withdrawn comes what was wrong with it, and both stay.
 */

import type { EventWindow } from "../../../../memory/session/event-store.ts";
import { eventToMessage } from "../../../../memory/session/events.ts";
import { selectHistory } from "../../../../memory/session/history.ts";
import { frameTokens } from "../../../../memory/session/tokens.ts";
import { EventAction, type SessionEvent } from "../../../../memory/session/types.ts";
import type { KnownEvents } from "../../../../memory/session/window.ts";
import type { ModelContext, ToolSpec } from "../../../../model/context.ts";
import type { ContextMessage } from "../../../../model/messages.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import { defined } from "../../../../shared/defined.ts";
import type { ConversationIdentity, Turn } from "../state.ts";
import { turnEvents } from "../turn-events.ts";

/** Everything of a call but the moves. */
export function baseContext(
  { id, chain }: Pick<ConversationIdentity, "id" | "chain">,
  history: readonly ContextMessage[],
  turn: Turn,
): ModelContext {
  return {
    ...frameOf(chain, turn.tools),
    ...defined({ output: turn.output }),
    cache: { key: id, stableMessages: history.length },
    messages: [...history, ...messagesOf(turnEvents(turn).slice(0, 1))],
    toolChoice: turn.call?.final ? "none" : isFirstReply(turn) ? (turn.toolChoice ?? "auto") : "auto",
  };
}

/** Whether the model has yet to answer for the first time, be it with what was withdrawn. */
function isFirstReply({ replies, repairs = [] }: Turn): boolean {
  return replies.length + repairs.length === 0;
}

/** What is sent in every call: the agent's tools first, so that a prompt begins alike whatever a client brings. */
function frameOf(
  { persona, tools }: VersionChain,
  brought: readonly ToolSpec[] = [],
): Pick<ModelContext, "systemInstructions" | "tools"> {
  const { systemPrompt, instructions = [] } = persona.definition.identity;
  return {
    systemInstructions: [systemPrompt, ...instructions],
    tools: [
      ...tools.map(({ definition: { name, description, inputSchema } }) => ({
        name,
        description,
        inputSchema,
      })),
      ...brought,
    ],
  };
}

/**
 * The messages of this turn's moves so far: replies with their calls, and the results; and where they stood, answers that
 * were withdrawn.
 */
export function moveMessages(turn: Turn): ContextMessage[] {
  const messages: ContextMessage[] = [];
  let replies = 0;
  for (const event of turnEvents(turn).slice(1)) {
    if (event.action !== EventAction.TOOL_RESULT) {
      messages.push(...repairMessages(turn, replies));
      replies += 1;
    }
    messages.push(...messagesOf([event]));
  }
  return [...messages, ...repairMessages(turn, replies)];
}

/** The answers that were withdrawn after so many replies, each with what was wrong. */
function repairMessages({ repairs = [] }: Turn, replies: number): ContextMessage[] {
  return repairs
    .filter(({ after }) => after === replies)
    .flatMap(({ text, problem }): ContextMessage[] => {
      const content = `Your answer was not accepted: ${problem}. Answer again: only JSON that fits the schema, and nothing around it.`;
      const correction: ContextMessage = { role: "system", content };
      return text.trim() === "" ? [correction] : [{ role: "assistant", content: text }, correction];
    });
}

/** Tokens of a context: instructions, tools and history, without the turn itself, which is sent in any case. */
const MAX_CONTEXT_TOKENS = 60_000;
/** Tokens of one tool result of a past turn that a model is given: by then it has drawn its conclusion. */
const MAX_PAST_RESULT_TOKENS = 2_048;

/** Tokens that the history may take beside what is sent in every call, and the tools that a client brings. */
export function historyBudget(chain: VersionChain, brought?: readonly ToolSpec[]): number {
  return MAX_CONTEXT_TOKENS - frameTokens(frameOf(chain, brought));
}

/**
 * The messages of a window of the session: the summary of what was compacted, and as many of the last turns as fit
 * (TOKEN-5 says which). Long results are shortened.
 */
export function historyMessages(
  window: EventWindow,
  options: { tokenBudget: number; maxTurns: number; known: KnownEvents },
): ContextMessage[] {
  return selectHistory(window, { ...options, maxResultTokens: MAX_PAST_RESULT_TOKENS }).messages;
}

function messagesOf(events: readonly SessionEvent[]): ContextMessage[] {
  return events.flatMap((event) => eventToMessage(event) ?? []);
}
