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

/** The messages of a window of the session. A turn that the window cut into is left out. */
export function historyMessages(window: readonly SessionEvent[]): ContextMessage[] {
  const start = window.findIndex((event) => event.action === EventAction.USER_MESSAGE);
  return start === -1 ? [] : messagesOf(window.slice(start));
}

function messagesOf(events: readonly SessionEvent[]): ContextMessage[] {
  return events.flatMap((event) => eventToMessage(event) ?? []);
}
