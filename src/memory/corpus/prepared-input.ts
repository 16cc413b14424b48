/** The input of a write with its hashes, computed before the transaction. */
import type { MemoryWriter } from "../../protocol/memory.ts";
import type { ContentHash } from "./content-hash.ts";
import { type MemoryRequest, Requests } from "./requests.ts";
import type { CheckedInput } from "./schemas.ts";

export interface PreparedInput {
  input: CheckedInput;
  userId: string | null;
  conversationId: string | null;
  hash: string;
  request: MemoryRequest | null;
}

export async function prepareInput(
  hash: ContentHash,
  writer: MemoryWriter,
  input: CheckedInput,
): Promise<PreparedInput> {
  const subject = writer.subject ?? input.subject ?? {};
  const userId = subject.userId ?? null;
  const { idempotencyKey, ...rest } = input;
  return {
    input,
    userId,
    conversationId: subject.conversationId ?? null,
    hash: await hash.of(userId, input.content),
    request: idempotencyKey === undefined ? null : await Requests.of(hash, writer, idempotencyKey, rest),
  };
}
