/**
 * The operations that a conversation hands over to the memory of an agent after an extraction. Pure.
 *
 * LEARNED-1  The commit that ends an extraction also sends its operations to the agent, which applies them once. It sends no envelope
 *            without operations or if the persona has no memory.
 * LEARNED-2  The agent's answer is noted with the turn: the result of each operation, or the reason for a rejection. The turn stays
 *            completed.
 */
import { memoryScope } from "../../../library/memory/scope.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { operationId, turnId } from "../../../protocol/ids.ts";
import { type ExtractedMemories, MEMORY_EXTRACTED, type MemoryOperation } from "../../../protocol/memory.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import { memorySubject } from "./called-memory.ts";
import type { Learner } from "./hooks.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { markOfTurn, recalledBy } from "./marks.ts";
import type { MemoriesLearned } from "./signals.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import type { Turn } from "./turn.ts";

/** Returns the user and the sources of a turn's extraction, as a member; `{}` for an agent without memory. */
export function learnerOf(record: ConversationIdentity, turn: Turn): { learner?: Learner } {
  const scope = memoryScope(chainOf(record, turn.agentId).persona.definition);
  if (scope === undefined) return {};
  const { told, toldBefore = [], operations, createdAt } = turn;
  const used = [...toldBefore, ...(told?.used ?? []), ...operations.flatMap(recalledBy)];
  const ids = [...new Set(used.map(({ id }) => id))];
  const tainted = markOfTurn(turn).length > 0 ? true : undefined;
  return {
    learner: {
      scope,
      subject: memorySubject(record, turn),
      time: createdAt,
      used: ids,
      ...defined({ tainted }),
    },
  };
}

/** Returns the envelope of an extraction's operations; an empty list without operations (LEARNED-1). */
export function handedOver(
  { id: conversationId, tenant }: ConversationIdentity,
  of: number,
  { stem, item, agentId, learner }: { stem: string; item: number; agentId: string; learner?: Learner },
  { operations, tainted }: { operations: Json; tainted?: true },
): NewEnvelope[] {
  if (learner === undefined || !Array.isArray(operations) || operations.length === 0) return [];
  const turn = { n: of, stem };
  const { time, used, ...rest } = learner;
  const body: ExtractedMemories = {
    ...rest,
    operationId: operationId(turn, item),
    source: { conversationId, turnId: turnId(turn) },
    time: toIso(time),
    used: [...used],
    ...defined({ tainted: tainted ?? rest.tainted }),
    // SAFETY: planning has checked the operations.
    operations: operations as unknown as MemoryOperation[],
  };
  return [
    {
      operationId: operationId(turn, item),
      to: { kind: "agent", tenant, id: agentId },
      type: MEMORY_EXTRACTED,
      // SAFETY: the body is plain data.
      body: body as unknown as Json,
    },
  ];
}

/** Returns the entry of the agent's answer (LEARNED-2). */
export function learnedEntry({ of, item, answer }: Omit<MemoriesLearned, "type">): JournalEntry {
  const address = { turn: of, item };
  if ("error" in answer) {
    const { code, message } = answer.error;
    return { type: "memory_extraction.refused", ...address, data: { code, message } };
  }
  // SAFETY: outcomes are plain data.
  const outcomes = answer.outcomes as unknown as Json;
  return { type: "memory_extraction.applied", ...address, data: { outcomes } };
}
