/** Asks the agent's actor for the memories that an extraction may change. */
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { OfferedMemory } from "../../../protocol/memory.ts";
import { plainText } from "../../../shared/content.ts";
import { unwrap } from "../../../shared/errors.ts";
import type { RuntimeContext } from "../context.ts";
import { memoryReader } from "../core/called-memory.ts";
import type { ConversationIdentity } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import { finalReply } from "../core/turn-operations.ts";

/** Time limit for the agent's answer, in milliseconds. */
const OFFER_TIMEOUT_MS = 2_000;

/**
 * Returns the memories that are relevant to a turn; `undefined` if its agent has no memory. Throws if the agent does not answer. After an
 * abort it throws the reason of `signal`.
 */
export async function offered(
  { clock, agent }: Pick<RuntimeContext, "clock" | "agent">,
  record: ConversationIdentity,
  turn: Turn,
  { operationId, signal }: { operationId: string; signal: AbortSignal },
): Promise<OfferedMemory[] | undefined> {
  const reader = memoryReader(record, turn);
  if (reader === undefined) return undefined;
  const query = [plainText(turn.input), finalReply(turn)?.text ?? ""].join("\n").trim();
  if (query === "") return [];
  const ask = async () => {
    const actor = await agent(record.tenant, turn.agentId);
    return unwrap(await actor.offerMemories(reader, { operationId, query }));
  };
  const reason = unanswered("The memory of the agent", OFFER_TIMEOUT_MS);
  return withDeadline(clock, OFFER_TIMEOUT_MS, ask, { outer: signal, reason });
}
