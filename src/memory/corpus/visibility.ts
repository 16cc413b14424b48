/**
 * Readers of memories, and what each may see and change. Pure.
 *
 * MEMSEE-1  A conversation sees the memories of its persona's scope: all of the agent's, those of its user, or its own; and in every
 *           scope those without a subject.
 * MEMSEE-2  By the API authors, operators and administrators of the agent's tenant see and change all memories; a member sees,
 *           changes and deletes those whose subject is that member, and writes none. What a reader may not see is not there.
 */
import type { MemoryReader, MemoryScope } from "../../protocol/memory.ts";
import { DramatisError } from "../../shared/errors.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
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
  if ("principal" in reader && !mayChangeAll(reader.principal)) {
    throw new DramatisError("FORBIDDEN", "Only authors, operators and administrators may write memories.");
  }
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
