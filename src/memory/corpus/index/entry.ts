/** The facts and the vector that the index holds of a memory. */
import { hash32 } from "../../../shared/text.ts";
import { describeText, type TextDescription } from "../../ranking/describe-text.ts";
import type { IndexEntry } from "../memory-index.ts";

/** The facts that ranking needs of a memory besides its text. */
export interface Facts extends Omit<IndexEntry, "text" | "isCut">, TextDescription {
  /** A hash of the text: a vector belongs to the text if its own hash is equal. */
  hash: number;
}

/** A vector in whole numbers. */
export interface QuantizedVector {
  /** Its numbers times `scale` are those of the vector. 0: the text has no vector. */
  scale: number;
  values: Int8Array;
}

/** Returns a vector of unit length in numbers from -127 to 127. */
export function quantize(vector: Float32Array): QuantizedVector {
  let most = 0;
  for (const value of vector) most = Math.max(most, Math.abs(value));
  const values = new Int8Array(vector.length);
  if (most === 0 || !Number.isFinite(most)) return { scale: 0, values };
  for (let index = 0; index < vector.length; index++)
    values[index] = Math.round(((vector[index] ?? 0) / most) * 127);
  let squares = 0;
  for (const value of values) squares += value * value;
  return { scale: 1 / Math.sqrt(squares), values };
}

/** Returns what the index keeps of a memory. */
export function factsOf({ text, isCut: _, ...entry }: IndexEntry): Facts {
  return { ...entry, ...describeText(text), hash: hash32(text) };
}

/** Returns what the index keeps of a memory of which only the beginning is known, where it had `before`. */
export function changedFacts(entry: IndexEntry, before: Facts | undefined): Facts {
  const facts = factsOf(entry);
  if (before === undefined || entry.isCut !== true) return facts;
  const { hash, words, flags } = before;
  return { ...facts, hash, words, flags };
}
