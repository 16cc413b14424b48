/**
 * Readers of memories, and what each may see and change. Pure.
 *
 * MEMSEE-1  A conversation sees the memories of its persona's scope: all of the agent's, those of its user, or its own; and in every
 *           scope those without a subject.
 * MEMSEE-2  By the API authors, operators and administrators of the agent's tenant see and change all memories; a member sees,
 *           changes and deletes those whose subject is that member, and writes none. What a reader may not see is not there.
 * MEMSEE-3  Memories that a reader does not see change nothing of a search's answer: neither results, nor their order, nor their scores. A member
 *           gets no parts of scores.
 * MEMCHANGE-1  To see a memory is not to change it. A conversation changes memories of its own subject: in the scope of users those of its
 *              user, in that of conversations its own, in that of the agent all that have a subject. Those without a subject are shared
 *              by all, and read-only for conversations. Only what the agent itself wrote so is changed in the scope of the agent.
 */
import type { MemoryLogEntry, MemoryReader, MemoryScope, MemoryScore } from "../../protocol/memory.ts";
import { DramatisError } from "../../shared/errors.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
import type { CheckedChange } from "./schemas.ts";
import type { StoredMemory } from "./stored-memory.ts";

/** The memories that a reader sees. */
export type Visible =
  | "all"
  | { scope: MemoryScope; userId?: string; conversationId?: string }
  | { owner: string };

/** Returns the memories that a reader of an agent of `tenant` sees. Throws `NOT_FOUND` for a principal of another tenant. */
export function visibleTo(reader: MemoryReader, tenant: string): Visible {
  if (!("principal" in reader)) return reader.scope === "agent" ? "all" : reader;
  const { principal } = reader;
  if (principal.tenant !== tenant) throw new DramatisError("NOT_FOUND", "There is no such agent.");
  return mayChangeAll(principal) ? "all" : { owner: principal.subject };
}

/** Throws `FORBIDDEN` for a reader who may not write new memories. */
export function checkMayWrite(reader: MemoryReader): void {
  if (isMember(reader)) {
    throw new DramatisError("FORBIDDEN", "Only authors, operators and administrators may write memories.");
  }
}

/** Throws `FORBIDDEN` for a member who moves a memory in a session: that decides beside whose words searches find it. */
export function checkChange(reader: MemoryReader, { session, sequence }: CheckedChange): void {
  if (!isMember(reader) || (session === undefined && sequence === undefined)) return;
  throw new DramatisError(
    "FORBIDDEN",
    "Only authors, operators and administrators may change the session of a memory, and its place there.",
  );
}

/** Returns the score of a result as the reader sees it: a member gets no parts (MEMSEE-3). */
export function shownScore(reader: MemoryReader, score: MemoryScore): MemoryScore {
  return isMember(reader) ? { ...score, parts: {} } : score;
}

function isMember(reader: MemoryReader): boolean {
  return "principal" in reader && !mayChangeAll(reader.principal);
}

/** Reports whether a memory is among those that a reader sees. */
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
 * Reports whether a reader may change, archive and erase a memory (MEMCHANGE-1). `log` returns the memory's log; it is read only where a
 * conversation in the scope of the agent asks for a memory without a subject.
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

/** The error of a change by a reader who sees the memory and may not change it. */
export function readOnly(id: string): DramatisError {
  return new DramatisError(
    "FORBIDDEN",
    `The memory "${id}" belongs to all who talk to the agent. A conversation reads it and does not change it.`,
  );
}

/** Authors that are the agent at work. A consolidation of memories without a subject joins what others wrote. */
const AGENT_AUTHORS: ReadonlySet<string> = new Set(["tool", "extraction", "task", "run", "retention"]);

/** Returns what a statement compares with a memory's subject: a user, a conversation, and whether memories without a subject count. */
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
