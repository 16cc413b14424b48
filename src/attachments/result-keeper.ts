/** Stores results that are too large for their turns (LARGE-2). */
import type { Clock } from "../ports/clock.ts";
import { unanswered, withDeadline } from "../ports/deadline.ts";
import { placeOf } from "../shared/error-place.ts";
import type { AttachmentStore, Owner } from "./attachment-store.ts";
import { RESULT_TYPE, type ResultReference } from "./large-result.ts";

/** A result before its storage. */
export interface UnstoredResult {
  id: string;
  name: string;
  /** Bytes of its JSON. */
  size: number;
  /** Returns its JSON. `keep` rethrows its errors. */
  read(): Uint8Array | Promise<Uint8Array>;
  /** Reports whether the call was erased or its conversation deleted. The removal may have preceded the storage of this result. */
  isDeleted(): boolean | Promise<boolean>;
}

const NO_STORE = "this deployment stores no attachments.";
const LOST = "it could not be stored.";
/** Milliseconds for storing a result. The caller of a tool waits for 30 s beyond the time of the call. */
const KEEP_MS = 15_000;

export class ResultKeeper {
  /** `store` is `null` if attachments are not stored. */
  constructor(
    readonly store: AttachmentStore | null,
    private readonly maxBytes: number,
    private readonly clock: Pick<Clock, "timer">,
  ) {}

  /** Stores a result of a conversation. Throws only as its `read` and `isDeleted` do. */
  async keep(owner: Owner, { id, name, size, read, isDeleted }: UnstoredResult): Promise<ResultReference> {
    const { store, maxBytes } = this;
    if (store === null) return { lost: NO_STORE };
    if (size > maxBytes) return { lost: `an attachment has at most ${maxBytes} bytes.` };
    const bytes = await read();
    try {
      const file = { id, mediaType: RESULT_TYPE, name, bytes };
      await withDeadline(this.clock, KEEP_MS, () => store.put(owner, file), {
        reason: unanswered("The store of attachments", KEEP_MS),
      });
    } catch (error) {
      console.error("A result was not stored:", placeOf(error));
      return { lost: LOST };
    }
    if (!(await isDeleted())) return { id };
    await store.delete(owner, id).catch((error: unknown) => console.error(placeOf(error)));
    return { lost: LOST };
  }
}
