/** Asks for the relevant memories and the artifacts of a cycle. Never throws: a turn continues if they fail (RECALL-5, KNOWLEDGE-2). */
import { hasMemoryTools, type RecallLimits, recallLimits } from "../../../library/memory/scope.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { Persona } from "../../../protocol/definitions.ts";
import { MIN_RELEVANCE } from "../../../protocol/memory.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, unwrap } from "../../../shared/errors.ts";
import type { RuntimeContext } from "../context.ts";
import { memoryReader } from "../core/called-memory.ts";
import { failedRecall, type RecallResult, renderRecalled, withKnowledge } from "../core/recalled.ts";
import { type ConversationIdentity, chainOf } from "../core/state.ts";
import type { Recalled, Turn } from "../core/turn.ts";

/** Time limit for the agent's answer, in milliseconds. */
export const RECALL_TIMEOUT_MS = 2_000;

/** Returns the limits of the recall for a turn's current cycle; `undefined` if the cycle needs no recall or has recalled. */
export function recallOf(record: ConversationIdentity, turn: Turn): RecallLimits | undefined {
  if (turn.recalled !== undefined || turn.request !== undefined) return undefined;
  return recallLimits(chainOf(record, turn.agentId).persona.definition);
}

/**
 * Returns the knowledge to read for a turn's current cycle; `undefined` without it, or if the cycle has it. A context hook makes its own
 * index, with the actions on artifacts.
 */
export function knowledgeOf(record: ConversationIdentity, turn: Turn): Persona["knowledge"] {
  if (turn.recalled !== undefined || turn.request !== undefined) return undefined;
  const { contextAssembly, persona } = chainOf(record, turn.agentId);
  return contextAssembly === undefined ? persona.definition.knowledge : undefined;
}

type Ports = Pick<RuntimeContext, "clock" | "agent" | "knowledge">;

/** Recalls memories and reads the note about artifacts for a cycle; returns `undefined` if neither is needed. */
export async function recallFor(
  ports: Ports,
  record: ConversationIdentity,
  turn: Turn,
  signal: AbortSignal,
): Promise<RecallResult | undefined> {
  const [found, knowledge] = await Promise.all([
    recallMemories(ports, record, turn, signal),
    readKnowledge(ports, record, turn, signal),
  ]);
  return withKnowledge(found, knowledge);
}

async function readKnowledge(
  { clock, knowledge }: Ports,
  record: ConversationIdentity,
  turn: Turn,
  signal: AbortSignal,
): Promise<Pick<Recalled, "knowledge"> | undefined> {
  const wanted = knowledgeOf(record, turn);
  if (wanted === undefined || knowledge === undefined) return undefined;
  const types = wanted.artifacts === true ? undefined : wanted.artifacts;
  const { tenant, projectId: project } = record;
  try {
    const read = () => knowledge({ tenant, project }, types);
    const reason = unanswered("The index of artifacts", RECALL_TIMEOUT_MS);
    const note = await withDeadline(clock, RECALL_TIMEOUT_MS, read, { outer: signal, reason });
    return defined({ knowledge: note });
  } catch (error) {
    if (!signal.aborted) console.warn("A turn continues without the index of artifacts:", error);
    return {};
  }
}

async function recallMemories(
  { clock, agent }: Ports,
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
