/** The attachments of all conversations, in an object store. */
import type { ByteRange, ObjectHead, ObjectStore } from "../ports/object-store.ts";
import { defined } from "../shared/defined.ts";
import type { AttachmentInfo } from "./attachment.ts";

export interface Owner {
  tenant: string;
  conversationId: string;
}

/** The description of a stored attachment. `version` changes if another object takes its place. */
export type StoredInfo = AttachmentInfo & { version: string };

export type Attachment = AttachmentInfo & { bytes: Uint8Array };

/** Keys of one list. */
const MAX_LISTED = 1_000;

export class AttachmentStore {
  constructor(private readonly objects: ObjectStore) {}

  async put(owner: Owner, { id, mediaType, name, bytes }: Omit<Attachment, "size">): Promise<void> {
    // Stores send facts in headers, which are limited to ASCII.
    const facts = { mediaType, ...defined({ name: name && encodeURIComponent(name) }) };
    await this.objects.put(keyOf(owner, id), bytes, facts);
  }

  /** Deletes an attachment. If it does not exist, this is a no-op. */
  async delete(owner: Owner, id: string): Promise<void> {
    await this.objects.delete(keyOf(owner, id));
  }

  async list(owner: Owner): Promise<string[]> {
    const prefix = keyOf(owner, "");
    const ids: string[] = [];
    for (let last = prefix; ; ) {
      const keys = await this.objects.list(prefix, MAX_LISTED, last);
      ids.push(...keys.map((key) => key.slice(prefix.length)));
      last = keys.at(-1) ?? last;
      if (keys.length < MAX_LISTED) return ids;
    }
  }

  async deleteAll(owner: Owner): Promise<void> {
    for (const id of await this.list(owner)) await this.delete(owner, id);
  }

  /** Returns an attachment's description; `null` if this conversation has no such attachment. */
  async head(owner: Owner, id: string): Promise<StoredInfo | null> {
    const head = await this.objects.head(keyOf(owner, id));
    return head === null ? null : { ...toInfo(id, head), version: head.version };
  }

  /** Returns bytes of the attachment that `head` described, all or a range; `null` if it is gone or another. */
  async read(owner: Owner, { id, version }: StoredInfo, range?: ByteRange): Promise<Uint8Array | null> {
    const object = await this.objects.get(keyOf(owner, id), range);
    return object?.version === version ? object.bytes : null;
  }

  /** As `head`, with the bytes. */
  async get(owner: Owner, id: string): Promise<Attachment | null> {
    const object = await this.objects.get(keyOf(owner, id));
    return object === null ? null : { ...toInfo(id, object), bytes: object.bytes };
  }
}

function keyOf({ tenant, conversationId }: Owner, id: string): string {
  return `${encodeURIComponent(tenant)}/${conversationId}/attachments/${id}`;
}

function toInfo(id: string, { size, facts }: ObjectHead): AttachmentInfo {
  const { mediaType = "application/octet-stream", name } = facts;
  return { id, mediaType, size, ...defined({ name: name && decodeURIComponent(name) }) };
}
