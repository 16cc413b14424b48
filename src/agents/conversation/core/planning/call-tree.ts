/**
 * The calls of agents that a whole tree has open. Pure.
 *
 * CALLTREE-1  A conversation has a share of the calls that its tree may have open at a time. The conversation at the top has all of them.
 *             Half of a share, rounded up, is for the conversation's own calls. Each call gets an equal part of the rest, and one part is
 *             kept for later calls. A call keeps its part until it ends. So a tree never has more calls open than it may.
 */
import type { CallLimits } from "../decisions.ts";
import type { ConversationIdentity, ConversationState } from "../state.ts";
import { openCalls } from "../turn.ts";

/** Returns the maximum open calls of a conversation, and the share that it may pass to its calls. */
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
