/** The results of tools that are too large for their turns, in the attachments of the conversation (LARGE-2, LARGE-3). */
import type { AttachmentStore, Owner } from "../../attachments/attachment-store.ts";
import { type KeptResult, type PageRequest, RESULT_TYPE } from "../../attachments/large-result.ts";
import { ToolError } from "../../library/tool-error.ts";
import { estimateTokens } from "../../memory/session/tokens.ts";
import type { Clock } from "../../ports/clock.ts";
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { Ids } from "../../ports/ids.ts";
import type { ToolInvocation } from "../../protocol/executor-api.ts";
import { defined } from "../../shared/defined.ts";
import { placeOf } from "../../shared/error-place.ts";
import type { JsonObject } from "../../shared/json.ts";
import { wholeLength } from "../../shared/text.ts";

/** Keeps large results, and reads them. */
export interface StoredResults {
  /** Stores the JSON of a call's result. Never rejects. */
  keep(call: ToolInvocation, text: string): Promise<KeptResult>;
  /** Returns a part of a result. Throws `ToolError`. */
  read(call: ToolInvocation, request: PageRequest): Promise<JsonObject>;
}

export interface StoredResultsPorts {
  /** `null` if attachments are not stored. */
  store: AttachmentStore | null;
  ids: Ids;
  maxBytes: number;
  clock: Pick<Clock, "timer">;
  /** Reports whether the conversation of a call was deleted. Its attachments may have been removed before this result was stored. */
  isDeleted(call: ToolInvocation): Promise<boolean>;
}

const NO_STORE = "this deployment stores no attachments.";
/** Milliseconds for storing a result. The caller waits for 30 s beyond the time of the call. */
const KEEP_MS = 15_000;
/** Bytes that are read for each token of a page. */
const BYTES_PER_TOKEN = 4;

export function storedResults({ store, ids, maxBytes, clock, isDeleted }: StoredResultsPorts): StoredResults {
  return {
    async keep(call, text) {
      const owner = ownerOf(call);
      if (store === null || owner === undefined) return { lost: NO_STORE };
      const bytes = new TextEncoder().encode(text);
      if (bytes.byteLength > maxBytes) return { lost: `an attachment has at most ${maxBytes} bytes.` };
      const id = `att_${ids.ulid()}`;
      const file = { id, mediaType: RESULT_TYPE, name: `${call.tool.id}.json`, bytes };
      try {
        await withDeadline(clock, KEEP_MS, () => store.put(owner, file), {
          reason: unanswered("The store of attachments", KEEP_MS),
        });
        if (!(await isDeleted(call))) return { id };
        await store.delete(owner, id);
      } catch (error) {
        console.error("A result was not stored:", placeOf(error));
      }
      return { lost: "it could not be stored." };
    },
    async read(call, { id, offset, tokens }) {
      const owner = ownerOf(call);
      const info = owner && (await store?.head(owner, id));
      if (!store || !owner || !info || info.mediaType !== RESULT_TYPE)
        throw new ToolError(`This conversation has no stored result "${id}". Give the \`id\` of a result.`, {
          code: "NOT_FOUND",
        });
      const { size } = info;
      if (offset >= size)
        throw new ToolError(`The result ends at byte ${size}. Give a smaller \`offset\`.`, {
          code: "INVALID_INPUT",
        });
      const length = Math.min(tokens * BYTES_PER_TOKEN, size - offset);
      const bytes = await store.read(owner, info, { offset, length });
      if (bytes === null) throw new ToolError("The result was deleted.", { code: "NOT_FOUND" });
      const { start, text } = pageOf(bytes, tokens);
      const end = offset + start + new TextEncoder().encode(text).byteLength;
      return {
        id,
        bytes: size,
        offset: offset + start,
        text,
        ...defined({ next: end < size ? end : undefined }),
      };
    },
  };
}

/** Returns the whole characters of a part that fit into a budget of tokens, and their offset. */
function pageOf(bytes: Uint8Array, tokens: number): { start: number; text: string } {
  const isInside = (at: number) => ((bytes[at] ?? 0) & 0xc0) === 0x80;
  let start = 0;
  while (start < 3 && isInside(start)) start += 1;
  // A character that the end cuts is left for the next part.
  let text = new TextDecoder().decode(bytes.subarray(start), { stream: true });
  for (let count = estimateTokens(text); count > tokens; count = estimateTokens(text))
    text = text.slice(0, wholeLength(text, Math.max(2, Math.floor((text.length * tokens * 0.95) / count))));
  return { start, text };
}

function ownerOf({ context: { tenant, conversationId } }: ToolInvocation): Owner | undefined {
  return conversationId === undefined ? undefined : { tenant, conversationId };
}
