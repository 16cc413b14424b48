/**
 * The calls of agents that a whole tree has open. Pure.
 *
 * CALLTREE-1  A conversation has a part of the calls that its tree may have open at a time; the one at the top has them all. Half of its
 *             part, rounded up, is for its own calls. Of the rest each call gets an equal part, and one is kept for later ones. The call
 *             keeps its part, for the calls below it, until it ends. So a tree never has more calls open than it may.
 */
import type { CallLimits } from "../decisions.ts";
import type { ConversationIdentity, ConversationState } from "../state.ts";
import { openCalls } from "../turn.ts";

/** Returns the calls that a conversation may have open itself, and those that it may pass on to be open below them. */
export function callsAllowed(
  { call }: Pick<ConversationIdentity, "call">,
  { open, tree }: Pick<CallLimits, "open" | "tree">,
): { own: number; below: number } {
  const part = Math.min(call?.calls ?? tree, tree);
  const own = Math.min(open, Math.ceil(part / 2));
  return { own, below: part - own };
}

/** Returns the part of each of several calls that begin. */
export function partOfCall({ record, active }: ConversationState, limits: CallLimits, begin: number): number {
  const passedOn = [...active.values()]
    .flatMap(openCalls)
    .reduce((sum, { status, agent }) => sum + (status === "dispatched" ? (agent?.calls ?? 0) : 0), 0);
  const left = Math.max(0, callsAllowed(record, limits).below - passedOn);
  return Math.floor(left / (begin + 1));
}
