/** The `ObjectStore` of Node, in memory. */
import type { ByteRange, ObjectFacts, ObjectHead, ObjectStore } from "../object-store.ts";

export class MemoryObjectStore implements ObjectStore {
  readonly #objects = new Map<string, { bytes: Uint8Array; version: string; facts: ObjectFacts }>();
  #puts = 0;

  async put(key: string, bytes: Uint8Array, facts: ObjectFacts): Promise<void> {
    this.#puts += 1;
    this.#objects.set(key, { bytes: bytes.slice(), version: String(this.#puts), facts: { ...facts } });
  }

  async head(key: string): Promise<ObjectHead | null> {
    const object = this.#objects.get(key);
    if (object === undefined) return null;
    const { bytes, version, facts } = object;
    return { size: bytes.byteLength, version, facts: { ...facts } };
  }

  async get(key: string, range?: ByteRange): Promise<(ObjectHead & { bytes: Uint8Array }) | null> {
    const object = this.#objects.get(key);
    if (object === undefined) return null;
    const { bytes, version, facts } = object;
    const { offset, length } = range ?? { offset: 0, length: bytes.byteLength };
    const part = bytes.slice(offset, offset + length);
    return { size: bytes.byteLength, version, facts: { ...facts }, bytes: part };
  }

  async delete(key: string): Promise<void> {
    this.#objects.delete(key);
  }

  async list(prefix: string, limit: number, after = ""): Promise<string[]> {
    const keys = [...this.#objects.keys()].filter((key) => key.startsWith(prefix) && key > after);
    return keys.sort().slice(0, limit);
  }
}
