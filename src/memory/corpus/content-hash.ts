/** Salted hashes of texts, per agent. They find equal facts of a user, and recognise erased texts. */
import type { KeyValue } from "../../ports/key-value.ts";
import { foldText } from "../../shared/folding.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { isLong } from "./stored-memory.ts";

const SALT_KEY = "memory:salt";
const HASH_LENGTH = 32;
const END_MARKS = ".!。";

export class ContentHash {
  constructor(private readonly keyValue: KeyValue) {}

  /**
   * Returns the hash of a text of a user. For a short text, it ignores case, Unicode form, spaces and a final dot. For a long text, it
   * ignores only Unicode form: its row keeps an excerpt, so the hash alone decides equality (MEMORY-3).
   */
  async of(userId: string | null | undefined, text: string): Promise<string> {
    const form = isLong(text) ? text : normalised(text);
    const digest = await sha256Hex(`${this.#salt()}\n${JSON.stringify(userId ?? null)}\n${form}`);
    return digest.slice(0, HASH_LENGTH);
  }

  async exact(text: string): Promise<string> {
    return (await sha256Hex(`${this.#salt()}\n\n${text}`)).slice(0, HASH_LENGTH);
  }

  /** `undefined` before the first hash. */
  get salt(): string | undefined {
    return this.keyValue.get<string>(SALT_KEY);
  }

  /** Adopts the salt of an export, so its hashes stay valid. Call it before the first hash. */
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

/** Folds case, joins spaces, and removes the final mark. */
function normalised(text: string): string {
  const spaced = foldText(text).replace(/\s+/gu, " ").trim();
  let end = spaced.length;
  // A regular expression that ends with `$` would rescan at each dot.
  while (end > 0 && END_MARKS.includes(spaced.charAt(end - 1))) end -= 1;
  return spaced.slice(0, end);
}
