/** The `ObjectStore` of Node, in memory. */
import type { ObjectFacts, ObjectHead, ObjectStore } from "../object-store.ts";

export class MemoryObjectStore implements ObjectStore {
  readonly #objects = new Map<string, { bytes: Uint8Array; facts: ObjectFacts }>();

  async put(key: string, bytes: Uint8Array, facts: ObjectFacts): Promise<void> {
    this.#objects.set(key, { bytes: bytes.slice(), facts: { ...facts } });
  }

  async head(key: string): Promise<ObjectHead | null> {
    const object = this.#objects.get(key);
    return object === undefined ? null : { size: object.bytes.byteLength, facts: { ...object.facts } };
  }

  async get(key: string): Promise<(ObjectHead & { bytes: Uint8Array }) | null> {
    const object = this.#objects.get(key);
    if (object === undefined) return null;
    const { bytes, facts } = object;
    return { size: bytes.byteLength, facts: { ...facts }, bytes: bytes.slice() };
  }

  async delete(key: string): Promise<void> {
    this.#objects.delete(key);
  }
}
