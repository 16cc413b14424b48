/**
 * Which memories a reader may see and change. Pure.
 *
 * MEMSEE-1  A conversation sees the memories in its persona's scope: all memories of the agent, of its user, or of the conversation. In
 *           every scope it sees memories without a subject.
 * MEMSEE-2  Over the API, authors, operators and administrators of the agent's tenant see and change all memories. A member sees, changes
 *           and deletes memories with that member as the subject, and cannot write memories. A memory that a reader may not see is answered
 *           as not found.
 * MEMSEE-3  Memories that a reader does not see never affect the results of a search, their order, or their scores. A member receives no
 *           parts of scores.
 * MEMCHANGE-1  Reading a memory does not imply the right to change it. A conversation changes memories of its own subject. In the scope
 *              `user` these are memories of its user. In the scope `conversation` these are its own memories. In the scope `agent` these
 *              are all memories with a subject. Memories without a subject are shared and read-only for conversations. In the scope
 *              `agent`, a conversation may change a memory without a subject if only the agent wrote it.
 */
import type { MemoryReader, MemoryScope } from "../../protocol/memory.ts";
import type { MemoryLogEntry, MemoryScore } from "../../protocol/memory-schemas.ts";
import { type DramatisError, forbidden, notFound } from "../../shared/errors.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
import type { CheckedChange } from "./schemas.ts";
import type { StoredMemory } from "./stored-memory.ts";

export type Visible =
  | "all"
  | { scope: MemoryScope; userId?: string; conversationId?: string }
  | { owner: string };

/** Returns the memories that a reader of an agent of `tenant` sees. Throws `NOT_FOUND` for a principal of another tenant. */
export function visibleTo(reader: MemoryReader, tenant: string): Visible {
  if (!("principal" in reader)) return reader.scope === "agent" ? "all" : reader;
  const { principal } = reader;
  if (principal.tenant !== tenant) throw notFound("Agent not found.");
  return mayChangeAll(principal) ? "all" : { owner: principal.subject };
}

/** Throws `FORBIDDEN` if the reader may not write new memories. */
export function checkMayWrite(reader: MemoryReader): void {
  if (isMember(reader)) throw forbidden("Only authors, operators and administrators may write memories.");
}

/** Throws `FORBIDDEN` if a member moves a memory within a session, because the place affects which words find the memory. */
export function checkChange(reader: MemoryReader, { session, sequence }: CheckedChange): void {
  if (!isMember(reader) || (session === undefined && sequence === undefined)) return;
  throw forbidden(
    "Only authors, operators and administrators may change `session` and `sequence` of a memory.",
  );
}

/** Returns the score of a result without its parts if the reader is a member (MEMSEE-3). */
export function shownScore(reader: MemoryReader, score: MemoryScore): MemoryScore {
  return isMember(reader) ? { ...score, parts: {} } : score;
}

function isMember(reader: MemoryReader): boolean {
  return "principal" in reader && !mayChangeAll(reader.principal);
}

export function sees(visible: Visible, memory: Pick<StoredMemory, "userId" | "conversationId">): boolean {
  if (visible === "all") return true;
  const { userId, conversationId } = memory;
  if ("owner" in visible) return userId === visible.owner;
  if (userId === null && conversationId === null) return true;
  if (visible.scope === "user") return userId !== null && userId === visible.userId;
  if (visible.scope === "conversation")
    return conversationId !== null && conversationId === visible.conversationId;
  return true;
}

/**
 * Reports whether a reader may change, archive and erase a memory (MEMCHANGE-1). `log` is called only if a conversation in the scope
 * `agent` asks about a memory without a subject.
 */
export function mayChange(
  reader: MemoryReader,
  { userId, conversationId }: Pick<StoredMemory, "userId" | "conversationId">,
  log: () => Iterable<MemoryLogEntry>,
): boolean {
  if ("principal" in reader) return mayChangeAll(reader.principal) || userId === reader.principal.subject;
  const isShared = userId === null && conversationId === null;
  if (reader.scope === "agent") return !isShared || isOfAgent(log());
  if (isShared) return false;
  const isOwn = conversationId !== null && conversationId === reader.conversationId;
  if (reader.scope === "conversation") return isOwn;
  return reader.userId === undefined ? userId === null && isOwn : userId === reader.userId;
}

function isOfAgent(log: Iterable<MemoryLogEntry>): boolean {
  for (const { by } of log) if (!AGENT_AUTHORS.has(by.kind)) return false;
  return true;
}

/** The error if a reader may see a memory but not change it. */
export function readOnly(id: string): DramatisError {
  return forbidden(
    `The memory "${id}" is shared by all conversations of the agent. It is read-only for a conversation.`,
  );
}

/** Authors that count as the running agent. A consolidation of shared memories may contain texts of others. */
const AGENT_AUTHORS: ReadonlySet<string> = new Set(["tool", "extraction", "task", "run", "retention"]);

/**
 * Returns the values that a statement compares with a memory's subject: a user, a conversation, and whether memories without a subject
 * count.
 */
export function subjectOfVisible(visible: Visible): {
  all: 0 | 1;
  userId: string | null;
  conversationId: string | null;
  unowned: 0 | 1;
} {
  if (visible === "all") return { all: 1, userId: null, conversationId: null, unowned: 1 };
  if ("owner" in visible) return { all: 0, userId: visible.owner, conversationId: null, unowned: 0 };
  const { scope, userId, conversationId } = visible;
  return {
    all: scope === "agent" ? 1 : 0,
    userId: scope === "user" ? (userId ?? null) : null,
    conversationId: scope === "conversation" ? (conversationId ?? null) : null,
    unowned: 1,
  };
}

function mayChangeAll(principal: Principal): boolean {
  return mayAuthor(principal) || mayReadAll(principal);
}
