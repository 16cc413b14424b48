/** The facts and the vector that the index holds of a memory. */
import { hash32 } from "../../../shared/text.ts";
import { describeText, type TextDescription } from "../../ranking/describe-text.ts";
import type { IndexEntry } from "../memory-index.ts";

/** The facts of a memory that ranking needs in addition to its text. */
export interface Facts extends Omit<IndexEntry, "text" | "isCut">, TextDescription {
  /** A hash of the text. A vector with the same hash belongs to the text. */
  hash: number;
}

export interface QuantizedVector {
  /** Multiplier that restores the components. 0 means that the text has no vector. */
  scale: number;
  values: Int8Array;
}

/** Quantizes a unit vector to integers from -127 to 127. */
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

export function factsOf({ text, isCut: _, ...entry }: IndexEntry): Facts {
  return { ...entry, ...describeText(text), hash: hash32(text) };
}

/** Returns the index facts of a memory with a cut text. Keeps the text facts of `before`. */
export function changedFacts(entry: IndexEntry, before: Facts | undefined): Facts {
  const facts = factsOf(entry);
  if (before === undefined || entry.isCut !== true) return facts;
  const { hash, words, flags } = before;
  return { ...facts, hash, words, flags };
}
