/** Seeds a conversation turn by turn with the actor's own reducer and store. */
import type { AgentDecision } from "../../../src/agents/conversation/core/decisions.ts";
import { reduce } from "../../../src/agents/conversation/core/reducer.ts";
import { type ConversationIdentity, primaryAgent } from "../../../src/agents/conversation/core/state.ts";
import { beginTransition } from "../../../src/agents/conversation/core/transition.ts";
import { ConversationDatabase } from "../../../src/agents/conversation/store/conversation-database.ts";
import { systemIds } from "../../../src/ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../../src/ports/workers/durable-storage.ts";
import { stemOf } from "../../../src/protocol/ids.ts";
import { seededMessage } from "../workload.ts";

/**
 * Creates the conversation in empty storage, before its actor has loaded it. As in the actor, each turn has two commits: when it
 * is accepted, and when it completes. Returns the number of stored messages.
 */
export function seedConversation(
  storage: DurableObjectStorage,
  record: ConversationIdentity,
  messages: number,
): number {
  const database = new DurableSqlDatabase(storage);
  const store = new ConversationDatabase(database, new DurableKeyValue(storage));
  database.transaction(() => {
    let state = store.create(record);
    for (let n = 1; n <= messages / 2; n += 1) {
      const clientId = `seed-${n}`;
      for (const decisions of [accepted(record, n, clientId), completed(n)]) {
        const transition = reduce(beginTransition(state), decisions, record.createdAt);
        ({ state } = store.commit(transition, record.createdAt));
      }
    }
  });
  return 2 * (store.load()?.turns ?? 0);
}

function accepted(record: ConversationIdentity, turn: number, clientId: string): AgentDecision[] {
  const caller = { type: "user", userId: userOf(record) } as const;
  const input = seededMessage(2 * turn - 2).text;
  const stem = stemOf(systemIds.ulid());
  return [
    { type: "START_TURN", turn, stem, agentId: primaryAgent(record).id, caller, clientId, input },
    { type: "CALL_LLM", turn, final: false },
  ];
}

function completed(turn: number): AgentDecision[] {
  const { text } = seededMessage(2 * turn - 1);
  return [
    { type: "APPEND_MESSAGE", turn, reply: { text, toolCalls: [], finishReason: "stop" } },
    { type: "COMPLETE_TURN", turn },
  ];
}

function userOf({ participants }: ConversationIdentity): string {
  return participants[0]?.id ?? "";
}
