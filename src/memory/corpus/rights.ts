/**
 * The rights of readers to change memories, and the memory to which a text belongs.
 *
 * SAMETEXT-1  A text that a current memory of the subject has is not stored again, whoever writes it: its sources become sources of that memory. An author's
 *             text that brings a member of its own, such as a key, a time or metadata, is another memory.
 */
import type { MemoryReader } from "../../protocol/memory.ts";
import { canonicalJson } from "../../shared/json.ts";
import type { MemoryStore } from "./memory-store.ts";
import { isFound, type StoredMemory } from "./stored-memory.ts";
import { mayChange, readOnly, sees, type Visible } from "./visibility.ts";

/** The subject of a text. `null` means no user, or no conversation. `undefined` means any conversation. */
export interface TextSubject {
  userId: string | null;
  conversationId: string | null | undefined;
}

/** A text as `withText` looks for it. */
interface SoughtText {
  hash: string;
  subject: TextSubject;
  visible: Visible;
  /** Members that the memory must have, too. */
  given: Partial<StoredMemory>;
}

export class Rights {
  constructor(private readonly memories: MemoryStore) {}

  /** As the rule of this name, with the log read where it decides. */
  mayChange(reader: MemoryReader, memory: StoredMemory): boolean {
    return mayChange(reader, memory, () => this.memories.pagedLog(memory.n));
  }

  /** Returns the memory. Throws `FORBIDDEN` if the reader may only see it. */
  changeable(reader: MemoryReader, memory: StoredMemory): StoredMemory {
    if (!this.mayChange(reader, memory)) throw readOnly(memory.id);
    return memory;
  }

  /** Returns the memory that a text under a key belongs to, if the writer may change it. */
  withKey(
    reader: MemoryReader,
    key: string,
    { userId, conversationId }: TextSubject,
  ): StoredMemory | undefined {
    return this.memories.byKey(key, userId, conversationId).find((memory) => this.mayChange(reader, memory));
  }

  /**
   * Returns the memory that has a text already (SAMETEXT-1): a memory of the subject that the writer may change (`isOwn`), or else a memory that the
   * writer's conversation sees.
   */
  withText(
    reader: MemoryReader,
    { hash, subject, visible, given }: SoughtText,
  ): { memory: StoredMemory; isOwn: boolean } | undefined {
    const equals = this.memories.byHash(hash).filter((memory) => isFound(memory) && hasAll(memory, given));
    const { userId, conversationId } = subject;
    const isSubject = (memory: StoredMemory) =>
      memory.userId === userId && (conversationId === undefined || memory.conversationId === conversationId);
    const own = equals.find((memory) => isSubject(memory) && this.mayChange(reader, memory));
    if (own !== undefined) return { memory: own, isOwn: true };
    const seen = "principal" in reader ? undefined : equals.find((memory) => sees(visible, memory));
    return seen && { memory: seen, isOwn: false };
  }
}

/** Returns the subject of a text of a writer. The text of a conversation that has no user, or keeps its memories apart, is about that conversation. */
export function textSubject(
  reader: MemoryReader,
  { userId, conversationId }: { userId: string | null; conversationId: string | null },
): TextSubject {
  const isApart =
    "principal" in reader
      ? conversationId !== null || userId === null
      : reader.scope === "conversation" || (reader.scope === "user" && userId === null);
  return { userId, conversationId: isApart ? conversationId : undefined };
}

function hasAll(memory: StoredMemory, given: Partial<StoredMemory>): boolean {
  return canonicalJson({ ...memory, ...given }) === canonicalJson({ ...memory });
}
