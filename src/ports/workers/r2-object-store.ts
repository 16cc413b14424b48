/** The `ObjectStore` of a Worker: an R2 bucket. */
import { defined } from "../../shared/defined.ts";
import type { ByteRange, ObjectFacts, ObjectHead, ObjectStore } from "../object-store.ts";

export class R2ObjectStore implements ObjectStore {
  constructor(private readonly bucket: R2Bucket) {}

  async put(key: string, bytes: Uint8Array, facts: ObjectFacts): Promise<void> {
    await this.bucket.put(key, bytes, { customMetadata: { ...facts } });
  }

  async head(key: string): Promise<ObjectHead | null> {
    const object = await this.bucket.head(key);
    return object === null ? null : headOf(object);
  }

  async get(key: string, range?: ByteRange): Promise<(ObjectHead & { bytes: Uint8Array }) | null> {
    const object = await this.bucket.get(key, defined({ range }));
    return object === null ? null : { ...headOf(object), bytes: new Uint8Array(await object.arrayBuffer()) };
  }

  async delete(key: string): Promise<void> {
    await this.bucket.delete(key);
  }

  async list(prefix: string, limit: number, after?: string): Promise<string[]> {
    const { objects } = await this.bucket.list({ prefix, limit, ...defined({ startAfter: after }) });
    return objects.map(({ key }) => key);
  }
}

function headOf({ size, version, customMetadata = {} }: R2Object): ObjectHead {
  return { size, version, facts: customMetadata };
}
