/**
 * The context of a model call: the persona's instructions, the window of the session, the user's message and the moves
 * of this turn so far. Pure.
 *
 * CONTEXT-1  The window is a tail of the turns behind the summary of a compaction, if there is one; no result stands in
 *            it without its call.
 * CONTEXT-2  A later call of a cycle has the earlier call's messages unchanged in front.
 */
import type { ModelContext, ToolSpec } from "../../../adapters/types.ts";
import type { VersionChain } from "../../../library/types.ts";
import type { EventWindow } from "../../../memory/event-store.ts";
import { eventToMessage } from "../../../memory/events.ts";
import { frameTokens } from "../../../memory/tokens.ts";
import type { ContextMessage, SessionEvent } from "../../../memory/types.ts";
import { type KnownEvents, measuring } from "../../../memory/window.ts";
import { windowMessages } from "../../../memory/working-context.ts";
import type { Turn } from "../state.ts";
import { turnEvents } from "../turn-events.ts";

/** Everything of a call but the moves. */
export function baseContext(
  chain: VersionChain,
  history: readonly ContextMessage[],
  turn: Turn,
): ModelContext {
  return {
    ...frameOf(chain, turn.tools),
    messages: [...history, ...turnMessages(turn).slice(0, 1)],
    toolChoice: turn.call?.final ? "none" : turn.replies.length === 0 ? (turn.toolChoice ?? "auto") : "auto",
  };
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

/** The messages of this turn's moves so far: replies with their calls, and the results. */
export function moveMessages(turn: Turn): ContextMessage[] {
  return turnMessages(turn).slice(1);
}

function turnMessages(turn: Turn): ContextMessage[] {
  return messagesOf(turnEvents(turn));
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
  { events, isCutOff }: EventWindow,
  options: { tokenBudget: number; known: KnownEvents },
): ContextMessage[] {
  const measure = measuring({ maxResultTokens: MAX_PAST_RESULT_TOKENS, known: options.known });
  return windowMessages(events, measure, { ...options, isCutOff });
}

function messagesOf(events: readonly SessionEvent[]): ContextMessage[] {
  return events.flatMap((event) => eventToMessage(event) ?? []);
}
