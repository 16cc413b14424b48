/**
 * The rights of a turn in the memory of its agent. Pure.
 *
 * RECALL-1  The user of a turn is the author of the message that began its exchange. In a conversation that a call opened, it is the only
 *           reader. If the user is ambiguous, the turn has no user and sees no memories of users.
 */
import { memoryScope } from "../../../library/memory/scope.ts";
import type { Taint } from "../../../model/taint.ts";
import type { MemoryReader } from "../../../protocol/memory.ts";
import type { MemorySubject } from "../../../protocol/memory-schemas.ts";
import type { CalledMemory } from "../../../protocol/tool-memory.ts";
import { defined } from "../../../shared/defined.ts";
import { exchangeOf } from "./exchange.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import type { Turn } from "./turn.ts";

type Identity = Pick<ConversationIdentity, "id" | "agents" | "call">;
type Asked = Pick<Turn, "n" | "agentId" | "caller" | "exchange">;

/** Returns the user of a turn (RECALL-1). */
export function memoryUser({ call }: Pick<ConversationIdentity, "call">, turn: Asked): string | undefined {
  const { by } = exchangeOf(turn);
  if (by.type === "user") return by.userId;
  return call?.readers.length === 1 ? call.readers[0] : undefined;
}

/** Returns the reader of the agent's memory in a turn; `undefined` for an agent without memory. */
export function memoryReader(
  record: Identity,
  turn: Asked,
): Exclude<MemoryReader, { principal: unknown }> | undefined {
  const scope = memoryScope(chainOf(record, turn.agentId).persona.definition);
  if (scope === undefined) return undefined;
  return { scope, conversationId: record.id, ...defined({ userId: memoryUser(record, turn) }) };
}

export function memorySubject(record: Identity, turn: Asked): MemorySubject {
  return { conversationId: record.id, ...defined({ userId: memoryUser(record, turn) }) };
}

/** Returns the rights of a call that came from a request with `taint`, as a member. Returns `{}` if the agent has no memory. */
export function calledMemory(record: Identity, turn: Asked, taint: Taint): { memory?: CalledMemory } {
  const reader = memoryReader(record, turn);
  if (reader === undefined) return {};
  const { scope, userId } = reader;
  return { memory: { scope, ...defined({ userId, tainted: taint.length > 0 ? true : undefined }) } };
}
