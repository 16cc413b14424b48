/** What readers may change of the memories that are stored. */
import type { MemoryReader } from "../../protocol/memory.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { StoredMemory } from "./stored-memory.ts";
import { mayChange, readOnly } from "./visibility.ts";

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

  /**
   * Returns the memory that a text under a key belongs to: one of the user (`null`: of none) that the writer may change. With a `conversationId`
   * it is of that conversation, with `null` of none, and with `undefined` of any.
   */
  withKey(
    reader: MemoryReader,
    key: string,
    { userId, conversationId }: { userId: string | null; conversationId: string | null | undefined },
  ): StoredMemory | undefined {
    return this.memories.byKey(key, userId, conversationId).find((memory) => this.mayChange(reader, memory));
  }
}
