/**
 * The rights of a turn in the memory of its agent. Pure.
 *
 * RECALL-1  The user of a turn is the one whose message began its exchange; in a conversation that a call opened, the only one who may read it.
 *           Where it could be one of several, it is nobody, and what belongs to a user is not seen.
 * RECALL-8  A turn is tainted once it has read what nobody vouches for: results of tools that are not those of memory, attachments, the words of
 *           other agents, or tainted memories.
 */
import { builtIn } from "../../../library/built-in.ts";
import { memoryScope } from "../../../library/memory/scope.ts";
import type { MemoryReader, MemorySubject } from "../../../protocol/memory.ts";
import type { CalledMemory } from "../../../protocol/tool-memory.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { exchangeOf } from "./exchange.ts";
import type { Operation } from "./operation.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import type { Turn, UsedMemory } from "./turn.ts";

type Identity = Pick<ConversationIdentity, "id" | "agents" | "call">;
type Asked = Pick<Turn, "n" | "agentId" | "caller" | "exchange">;

/** Returns the user of a turn (RECALL-1). */
export function memoryUser({ call }: Pick<ConversationIdentity, "call">, turn: Asked): string | undefined {
  const { by } = exchangeOf(turn);
  if (by.type === "user") return by.userId;
  return call?.readers.length === 1 ? call.readers[0] : undefined;
}

/** Returns who reads the memory of the agent in a turn; `undefined` where the agent has none. */
export function memoryReader(
  record: Identity,
  turn: Asked,
): Exclude<MemoryReader, { principal: unknown }> | undefined {
  const scope = memoryScope(chainOf(record, turn.agentId).persona.definition);
  if (scope === undefined) return undefined;
  return { scope, conversationId: record.id, ...defined({ userId: memoryUser(record, turn) }) };
}

/** Returns whom what a turn teaches is about. */
export function memorySubject(record: Identity, turn: Asked): MemorySubject {
  return { conversationId: record.id, ...defined({ userId: memoryUser(record, turn) }) };
}

/** Returns the rights of a turn's calls, as a member; nothing where the agent has no memory. */
export function calledMemory(record: Identity, turn: Turn): { memory?: CalledMemory } {
  const reader = memoryReader(record, turn);
  if (reader === undefined) return {};
  const { scope, userId } = reader;
  return { memory: { scope, ...defined({ userId, tainted: isTainted(turn) ? true : undefined }) } };
}

/** Reports whether a turn has read what nobody vouches for (RECALL-8). */
export function isTainted({
  input,
  caller,
  operations,
  told,
  toldBefore = [],
}: Pick<Turn, "input" | "caller" | "operations"> & Partial<Pick<Turn, "told" | "toldBefore">>): boolean {
  if (caller.type !== "user" || typeof input !== "string") return true;
  if (told?.tainted === true || toldBefore.some(({ tainted }) => tainted)) return true;
  return operations.some(hasUntrustedResult);
}

function hasUntrustedResult({ tool, result }: Operation): boolean {
  if (result === undefined || !result.success) return false;
  if (tool?.library !== builtIn.id) return true;
  return recalledBy({ tool, result }).some(({ tainted }) => tainted === true);
}

/** Returns the memories that a call of `recall` has returned. */
export function recalledBy({ tool, result }: Pick<Operation, "tool" | "result">): UsedMemory[] {
  if (tool?.library !== builtIn.id || tool.id !== "recall" || !result?.success) return [];
  const memories: Json = isJsonObject(result.result) ? (result.result.memories ?? null) : null;
  return (Array.isArray(memories) ? memories : []).flatMap((memory) => {
    if (!isJsonObject(memory)) return [];
    const { id, version, tainted } = memory;
    if (typeof id !== "string" || typeof version !== "number") return [];
    return [{ id, version, ...(tainted === true && { tainted }) }];
  });
}
