/** Asks the agent's actor for the relevant memories of a cycle. Never throws: a turn continues if the memory fails (RECALL-5). */
import { hasMemoryTools, type RecallLimits, recallLimits } from "../../../library/memory/scope.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import { MIN_RELEVANCE } from "../../../protocol/memory.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, unwrap } from "../../../shared/errors.ts";
import type { RuntimeContext } from "../context.ts";
import { memoryReader } from "../core/called-memory.ts";
import { failedRecall, type RecallResult, renderRecalled } from "../core/recalled.ts";
import { type ConversationIdentity, chainOf } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";

/** Time limit for the agent's answer, in milliseconds. */
export const RECALL_TIMEOUT_MS = 2_000;

/** Returns the limits of the recall for a turn's current cycle; `undefined` if the cycle needs no recall or has recalled. */
export function recallOf(record: ConversationIdentity, turn: Turn): RecallLimits | undefined {
  if (turn.recalled !== undefined || turn.request !== undefined) return undefined;
  return recallLimits(chainOf(record, turn.agentId).persona.definition);
}

/** Recalls memories for a cycle; returns `undefined` if no recall is needed. */
export async function recallMemories(
  { clock, agent }: Pick<RuntimeContext, "clock" | "agent">,
  record: ConversationIdentity,
  turn: Turn,
  signal: AbortSignal,
): Promise<RecallResult | undefined> {
  const limits = recallOf(record, turn);
  const reader = memoryReader(record, turn);
  if (limits === undefined || reader === undefined) return undefined;
  const query = plainText(turn.input);
  if (query.trim() === "") return renderRecalled([], { tokens: 0, hasTools: false });
  const { tokens, limit, minRelevance = MIN_RELEVANCE, weights } = limits;
  try {
    const search = async () => {
      const actor = await agent(record.tenant, turn.agentId);
      return unwrap(
        await actor.searchMemories(reader, { query, limit, minRelevance, ...defined({ weights }) }),
      );
    };
    const reason = unanswered("The memory of the agent", RECALL_TIMEOUT_MS);
    const { matches } = await withDeadline(clock, RECALL_TIMEOUT_MS, search, { outer: signal, reason });
    const hasTools = hasMemoryTools(chainOf(record, turn.agentId).persona.definition);
    return renderRecalled(
      matches.map(({ memory }) => memory),
      { tokens, hasTools },
    );
  } catch (error) {
    if (!signal.aborted) console.warn("A turn continues without memories:", error);
    return {
      recalled: failedRecall(error instanceof DramatisError ? error.code : "UNAVAILABLE"),
      memories: [],
    };
  }
}
