/**
 * Signs and checks the handles of deferred operations.
 *
 * HANDLE-1  A conversation accepts only the exact text of its own handles. Any other value gets `NOT_FOUND`.
 * HANDLE-2  The key belongs to one conversation and stays in its storage. Entries, frames, prompts and logs contain no key and no handle,
 *           unless a tool publishes it.
 * HANDLE-3  A handle of a conversation that does not exist leaves no storage behind.
 */
import type { KeyValue } from "../../../ports/key-value.ts";
import { unknownHandle } from "../../../protocol/complete-operation.ts";
import {
  claimText,
  fromBase64Url,
  type HandleClaim,
  readHandle,
  toBase64Url,
} from "../../../protocol/operation-handle.ts";

/** Outside of the tools' own state (`tool:`), so no tool can read it. */
const KEY = "handles:key";
const KEY_BYTES = 32;
const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

export class Handles {
  constructor(private readonly keyValue: KeyValue) {}

  /** Returns the handle of a claim. Creates the key on first use. */
  async give(claim: HandleClaim): Promise<string> {
    const text = claimText(claim);
    const bytes = this.#keyBytes() ?? this.#makeKey();
    const signature = await crypto.subtle.sign("HMAC", await imported(bytes), encoded(text));
    return `${text}.${toBase64Url(new Uint8Array(signature))}`;
  }

  /** Returns the claim of a handle of this conversation. Throws `NOT_FOUND` for any other value. */
  async check(
    handle: unknown,
    { tenant, id }: Readonly<{ tenant: string; id: string }>,
  ): Promise<HandleClaim> {
    const read = readHandle(handle);
    const bytes = this.#keyBytes();
    if (read === null || bytes === undefined) throw unknownHandle();
    const signature = fromBase64Url(read.signature);
    const isOwn = read.claim.tenant === tenant && read.claim.conversationId === id;
    // `verify` compares in constant time. The last character has unused bits, so another text could mean the same bytes.
    const isSigned = await crypto.subtle.verify("HMAC", await imported(bytes), signature, encoded(read.text));
    if (isOwn && isSigned && toBase64Url(signature) === read.signature) return read.claim;
    throw unknownHandle();
  }

  #keyBytes(): Uint8Array<ArrayBuffer> | undefined {
    return this.keyValue.get<Uint8Array<ArrayBuffer>>(KEY);
  }

  #makeKey(): Uint8Array<ArrayBuffer> {
    const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    this.keyValue.put(KEY, bytes);
    return bytes;
  }
}

function imported(bytes: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", bytes, HMAC, false, ["sign", "verify"]);
}

function encoded(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(new TextEncoder().encode(text));
}
