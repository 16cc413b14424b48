/** Stores tool results that are too large for their turns, as attachments of the conversation (LARGE-2, LARGE-3). */
import type { Owner } from "../../attachments/attachment-store.ts";
import { type PageRequest, RESULT_TYPE, type ResultReference } from "../../attachments/large-result.ts";
import type { ResultKeeper } from "../../attachments/result-keeper.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import { estimateTokens } from "../../memory/session/tokens.ts";
import type { ToolInvocation } from "../../protocol/executor-api.ts";
import { resultAttachmentId } from "../../protocol/ids.ts";
import { defined } from "../../shared/defined.ts";
import type { JsonObject } from "../../shared/json.ts";
import { wholeLength } from "../../shared/text.ts";

export interface StoredResults {
  /** Stores the JSON of a call's result. Never rejects. */
  keep(call: ToolInvocation, text: string): Promise<ResultReference>;
  /** Returns a part of a result. Throws `ToolError`. */
  read(call: ToolInvocation, request: PageRequest): Promise<JsonObject>;
}

const BYTES_PER_TOKEN = 4;

/** `isDeleted` reports whether a call was erased or its conversation deleted. */
export function storedResults(
  keeper: ResultKeeper,
  isDeleted: (call: ToolInvocation) => Promise<boolean>,
): StoredResults {
  const { store } = keeper;
  return {
    async keep(call, text) {
      const owner = ownerOf(call);
      if (owner === undefined) return { lost: "no conversation waits for it." };
      const bytes = new TextEncoder().encode(text);
      return keeper.keep(owner, {
        ...{
          id: resultAttachmentId(call.operationId, call.attempt),
          name: `${call.tool.id}.json`,
          size: bytes.byteLength,
        },
        read: () => bytes,
        isDeleted: () => isDeleted(call),
      });
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

/** Returns the whole characters of a part that fit into a token budget, and their offset. */
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
