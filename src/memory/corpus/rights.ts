/**
 * The rights of readers to change memories, and the search for a memory with the same text.
 *
 * SAMETEXT-1  If a current memory of the subject already has a text, the text is not stored again. Its sources become sources of that
 *             memory. This holds for each writer. An author's text with a different member, such as a key, a time or metadata, is another
 *             memory.
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

interface SoughtText {
  hash: string;
  subject: TextSubject;
  visible: Visible;
  /** Further members that the memory must have. */
  given: Partial<StoredMemory>;
}

export class Rights {
  constructor(private readonly memories: MemoryStore) {}

  /** Applies `mayChange`, and reads the log only if needed. */
  mayChange(reader: MemoryReader, memory: StoredMemory): boolean {
    return mayChange(reader, memory, () => this.memories.pagedLog(memory.n));
  }

  /** Returns the memory. Throws `FORBIDDEN` if the reader may only see it. */
  changeable(reader: MemoryReader, memory: StoredMemory): StoredMemory {
    if (!this.mayChange(reader, memory)) throw readOnly(memory.id);
    return memory;
  }

  /** Returns the memory with a key that the writer may change. */
  withKey(
    reader: MemoryReader,
    key: string,
    { userId, conversationId }: TextSubject,
  ): StoredMemory | undefined {
    return this.memories.byKey(key, userId, conversationId).find((memory) => this.mayChange(reader, memory));
  }

  /**
   * Returns the memory that already has a text (SAMETEXT-1). Prefers a memory of the subject that the writer may change (`isOwn`) to other
   * memories that the writer's conversation sees.
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

/** Returns the subject of a writer's text. It includes the conversation if there is no user, or if the scope is `conversation`. */
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
