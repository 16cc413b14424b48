/** Hashes of texts, by which equal facts of one user are found, and erased ones are known again. They are salted by agent. */
import type { KeyValue } from "../../ports/key-value.ts";
import { foldText } from "../../shared/folding.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { isLong } from "./stored-memory.ts";

const SALT_KEY = "memory:salt";
/** 16 bytes as hex digits. */
const HASH_LENGTH = 32;
const END_MARKS = ".!。";

export class ContentHash {
  constructor(private readonly keyValue: KeyValue) {}

  /**
   * Returns the hash of a text of a user. Case, the form of Unicode, spaces and a final dot do not count. In a long text they do count: its row keeps
   * only an excerpt, so the hash alone decides whether another text is the same (MEMORY-3).
   */
  async of(userId: string | null | undefined, text: string): Promise<string> {
    const form = isLong(text) ? text : normalised(text);
    const digest = await sha256Hex(`${this.#salt()}\n${JSON.stringify(userId ?? null)}\n${form}`);
    return digest.slice(0, HASH_LENGTH);
  }

  /** Returns the hash of a text as it is. */
  async exact(text: string): Promise<string> {
    return (await sha256Hex(`${this.#salt()}\n\n${text}`)).slice(0, HASH_LENGTH);
  }

  /** The salt of the hashes; `undefined` before the first one. */
  get salt(): string | undefined {
    return this.keyValue.get<string>(SALT_KEY);
  }

  /** Takes over the salt of an export, so that its hashes hold. Call it before the first hash. */
  adopt(salt: string): void {
    this.keyValue.put(SALT_KEY, salt);
  }

  #salt(): string {
    const stored = this.salt;
    if (stored !== undefined) return stored;
    const salt = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join("-");
    this.adopt(salt);
    return salt;
  }
}

/** Folds a text, joins its spaces, and removes the mark at its end. */
function normalised(text: string): string {
  const spaced = foldText(text).replace(/\s+/gu, " ").trim();
  let end = spaced.length;
  // A pattern that ends at the end would begin anew at each dot.
  while (end > 0 && END_MARKS.includes(spaced.charAt(end - 1))) end -= 1;
  return spaced.slice(0, end);
}
