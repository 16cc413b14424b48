/** The images of simulated users, in an object store that can fail and lose objects. */
import type { ConversationMedia } from "../../src/agents/conversation/context.ts";
import { ATTACHMENT_SCHEME } from "../../src/attachments/attachment.ts";
import { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import type { MediaPart } from "../../src/shared/content.ts";
import { TENANT } from "./actor.ts";
import type { WorldClock } from "./clocks.ts";
import { Crash, type FaultPlane, InjectedError } from "./faults.ts";
import type { Caller } from "./model.ts";
import { conversationId } from "./scope.ts";

const LATENCY_MS = 5;

export class Images {
  readonly #objects = new MemoryObjectStore();
  readonly #store = new AttachmentStore(this.#objects);
  #uploaded = 0;

  constructor(
    private readonly clock: WorldClock,
    private readonly plane: FaultPlane,
  ) {}

  /** Uploads an image with bytes that begin with `text`. Returns its content part. */
  async upload(conversation: number, text: string): Promise<MediaPart> {
    this.#uploaded += 1;
    const id = `att_${String(this.#uploaded).padStart(26, "0")}`;
    await this.#store.put(ownerOf(conversation), {
      id,
      mediaType: "image/png",
      bytes: new TextEncoder().encode(text),
    });
    return { type: "image", url: `${ATTACHMENT_SCHEME}${id}` };
  }

  /** Returns the ids of a conversation's images. */
  listOf(conversation: number): Promise<string[]> {
    return this.#store.list(ownerOf(conversation));
  }

  /** Returns the store as one life of an actor sees it. */
  storeFor(caller: Caller): AttachmentStore {
    return new AttachmentStore(this.#reached(caller));
  }

  /** Returns the images of its conversation as one life of an actor sees them. */
  mediaFor(caller: Caller): ConversationMedia {
    const store = this.storeFor(caller);
    const owner = ownerOf(caller.conversation);
    return {
      head: (id) => store.head(owner, id),
      read: (info, range) => store.read(owner, info, range),
    };
  }

  #reached(caller: Caller): ObjectStore {
    return {
      put: (key, bytes, facts) => this.#objects.put(key, bytes, facts),
      delete: (key) => this.#objects.delete(key),
      list: (prefix, limit) => this.#objects.list(prefix, limit),
      head: (key) => this.#carried(caller, "object.head", key, () => this.#objects.head(key)),
      get: (key, range) => this.#carried(caller, "object.get", key, () => this.#objects.get(key, range)),
    };
  }

  async #carried<Result>(
    caller: Caller,
    port: "object.head" | "object.get",
    key: string,
    read: () => Promise<Result>,
  ): Promise<Result> {
    let wait = LATENCY_MS;
    for (const fault of this.plane.cross(caller.conversation, port)) {
      this.plane.fire(fault);
      if (fault.kind === "error") throw new InjectedError("the object store is not there");
      if (fault.kind === "delay") wait += fault.ms;
      if (fault.kind === "loss" && port === "object.head") return new Promise<never>(() => undefined);
      if (fault.kind === "loss") await this.#objects.delete(key);
      if (fault.kind === "crash") caller.die();
    }
    await this.clock.sleep(wait);
    if (!caller.alive) throw new Crash();
    return read();
  }
}

function ownerOf(conversation: number) {
  return { tenant: TENANT, conversationId: conversationId(conversation) };
}
