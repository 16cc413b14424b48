/** The `ObjectStore` of a Worker: an R2 bucket. */
import type { ObjectFacts, ObjectHead, ObjectStore } from "../object-store.ts";

export class R2ObjectStore implements ObjectStore {
  constructor(private readonly bucket: R2Bucket) {}

  async put(key: string, bytes: Uint8Array, facts: ObjectFacts): Promise<void> {
    await this.bucket.put(key, bytes, { customMetadata: { ...facts } });
  }

  async head(key: string): Promise<ObjectHead | null> {
    const object = await this.bucket.head(key);
    return object === null ? null : headOf(object);
  }

  async get(key: string): Promise<(ObjectHead & { bytes: Uint8Array }) | null> {
    const object = await this.bucket.get(key);
    return object === null ? null : { ...headOf(object), bytes: new Uint8Array(await object.arrayBuffer()) };
  }

  async delete(key: string): Promise<void> {
    await this.bucket.delete(key);
  }
}

function headOf({ size, customMetadata = {} }: R2Object): ObjectHead {
  return { size, facts: customMetadata };
}
