/** The whole texts of memories: in their rows, in a table of texts that wait for their object, or in the object store. */
import { type DramatisError, unavailable } from "../../shared/errors.ts";
import type { CorpusPorts } from "./corpus-ports.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { StoredMemory } from "./stored-memory.ts";

export class MemoryTexts {
  constructor(
    private readonly ports: Pick<CorpusPorts, "objects" | "agent">,
    private readonly memories: MemoryStore,
  ) {}

  /** Returns a text from the rows. `undefined` if only the object store has it. */
  inRows(memory: StoredMemory): string | undefined {
    if (!memory.long) return memory.content;
    return this.memories.text(memory.n)?.text;
  }

  /** Returns the whole text of a memory. Throws `UNAVAILABLE` if the object store cannot return it. */
  async of(memory: StoredMemory): Promise<string> {
    const text = this.inRows(memory);
    if (text !== undefined) return text;
    try {
      const object = memory.ref === null ? null : await this.ports.objects()?.get(memory.ref);
      if (object) return new TextDecoder().decode(object.bytes);
    } catch (cause) {
      throw textUnavailable(cause);
    }
    throw textUnavailable();
  }

  /** Returns the key of the object of a memory's text. Each text has its own key. */
  objectKey({ id, version }: Pick<StoredMemory, "id" | "version">): string {
    const { tenant, id: agentId } = this.ports.agent();
    return `${encodeURIComponent(tenant)}/${agentId}/memories/${id}/${version}`;
  }
}

function textUnavailable(cause?: unknown): DramatisError {
  return unavailable("The text of this memory cannot be read right now. Try again.", {
    retriable: true,
    cause,
  });
}
