/** Numbers for names, so a column of numbers can represent texts. */
import { isFunctionWord } from "./function-words.ts";
import { wordsOf } from "./words.ts";

/** Stands for a missing name. */
export const NO_NAME = -1;

export class Names {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];

  /** Returns the number of a name, and adds a new name. Returns `NO_NAME` if absent. */
  add(name: string | undefined): number {
    if (name === undefined) return NO_NAME;
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#numbers.set(name, this.#names.length);
    this.#names.push(name);
    return this.#names.length - 1;
  }

  /** Returns the number of a name, or `NO_NAME` if it is unknown. */
  numberOf(name: string): number {
    return this.#numbers.get(name) ?? NO_NAME;
  }

  nameOf(number: number): string | undefined {
    return this.#names[number];
  }

  get size(): number {
    return this.#names.length;
  }
}

/** Names that are found by their words. */
export class SpokenNames extends Names {
  readonly #byWord = new Map<string, Set<number>>();

  override add(name: string | undefined): number {
    const before = this.size;
    const number = super.add(name);
    if (name !== undefined && this.size > before) {
      for (const word of wordsOf(name)) this.#addWord(word, number);
    }
    return number;
  }

  withWord(word: string): ReadonlySet<number> | undefined {
    return this.#byWord.get(word);
  }

  #addWord(word: string, number: number): void {
    // Skip single letters, numbers and words such as "of".
    if (isFunctionWord(word) || !/^\p{L}{2}/u.test(word)) return;
    const numbers = this.#byWord.get(word) ?? new Set();
    this.#byWord.set(word, numbers.add(number));
  }
}
