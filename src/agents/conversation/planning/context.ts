/**
 * The context of a model call: the persona's instructions, the window of the session, the user's message and the moves
 * of this turn so far. Pure.
 *
 * CONTEXT-1  The window is a tail of whole turns, so no result stands in it without its call.
 * CONTEXT-2  A later call of a cycle has the earlier call's messages unchanged in front.
 */
import type { ModelContext } from "../../../adapters/types.ts";
import type { VersionChain } from "../../../library/types.ts";
import { eventToMessage } from "../../../memory/events.ts";
import { type ContextMessage, EventAction, type SessionEvent } from "../../../memory/types.ts";
import type { Turn } from "../state.ts";
import { turnEvents } from "../turn-events.ts";

/** Everything of a call but the moves. */
export function baseContext(
  chain: VersionChain,
  history: readonly ContextMessage[],
  turn: Turn,
): ModelContext {
  const { systemPrompt, instructions = [] } = chain.persona.definition.identity;
  return {
    systemInstructions: [systemPrompt, ...instructions],
    messages: [...history, ...turnMessages(turn).slice(0, 1)],
    tools: chain.tools.map(({ definition: { name, description, inputSchema } }) => ({
      name,
      description,
      inputSchema,
    })),
    toolChoice: turn.call?.final ? "none" : "auto",
  };
}

/** The messages of this turn's moves so far: replies with their calls, and the results. */
export function moveMessages(turn: Turn): ContextMessage[] {
  return turnMessages(turn).slice(1);
}

function turnMessages(turn: Turn): ContextMessage[] {
  return messagesOf(turnEvents(turn));
}

/** Characters of history that a model is given; the newest turn is given in any case. */
const MAX_HISTORY_LENGTH = 1024 * 1024;
/** Characters of one tool result of a past turn that a model is given: by then it has drawn its conclusion. */
const MAX_PAST_RESULT_LENGTH = 8 * 1024;

/**
 * The messages of a window of the session: as many of its last turns as fit. A turn that the window cut into is left
 * out, and long results are shortened.
 */
export function historyMessages(window: readonly SessionEvent[]): ContextMessage[] {
  const turns: ContextMessage[][] = [];
  for (const event of window) {
    if (event.action === EventAction.USER_MESSAGE) turns.push([]);
    turns.at(-1)?.push(...messagesOf([event]).map(shortened));
  }
  let length = 0;
  const first = turns.findLastIndex((turn, index) => {
    length += turn.reduce((sum, message) => sum + messageLength(message), 0);
    return length > MAX_HISTORY_LENGTH && index < turns.length - 1;
  });
  return turns.slice(first + 1).flat();
}

function shortened(message: ContextMessage): ContextMessage {
  const { content } = message;
  if (message.role !== "tool" || content.length <= MAX_PAST_RESULT_LENGTH) return message;
  const beginning = content.slice(0, MAX_PAST_RESULT_LENGTH).toWellFormed();
  return { ...message, content: `${beginning}… (shortened: ${content.length} characters)` };
}

function messageLength({ content, toolCalls }: ContextMessage): number {
  return content.length + (toolCalls === undefined ? 0 : JSON.stringify(toolCalls).length);
}

function messagesOf(events: readonly SessionEvent[]): ContextMessage[] {
  return events.flatMap((event) => eventToMessage(event) ?? []);
}
