/** The index of an agent's memory, as its corpus uses it. */

import type { MemoryScore, RankingWeights } from "../../protocol/memory.ts";
import type { ColumnEntry } from "../ranking/columns.ts";
import type { TextDescription } from "../ranking/describe-text.ts";
import type { Visible } from "./visibility.ts";

/** A memory as an index keeps it: its text, and the facts that ranking reads. */
export interface IndexEntry extends Omit<ColumnEntry, keyof TextDescription> {
  text: string;
  /** The text is only the beginning of the memory's. The words and the vector that the index has of the whole text stay. */
  isCut?: true;
}

export interface IndexQuery {
  text: string;
  now: number;
  limit: number;
  minRelevance: number;
  weights: Partial<RankingWeights>;
  filter: {
    types?: string[];
    speaker?: string;
    session?: string;
    from?: number;
    before?: number;
    userId?: string;
    conversationId?: string;
  };
  /** The memories that the reader sees. Others influence no result. */
  visible: Visible;
  /** The only memories that may be found. */
  allowed?: ReadonlySet<number>;
}

/** `semantic` says how the search was made: with the vectors of all memories, of some, or of none. */
export interface IndexResult {
  matches: { n: number; score: MemoryScore }[];
  semantic: "all" | "some" | "none";
}

/** Finds memories. `put` and `remove` are part of the caller's transaction. */
export interface MemoryIndex<Prepared = unknown> {
  create(): void;
  /** Reads what `put` needs, before the transaction. */
  prepare(texts: readonly string[]): Promise<Prepared>;
  put(entries: readonly IndexEntry[], prepared: Prepared): void;
  remove(ns: readonly number[]): void;
  search(query: IndexQuery): Promise<IndexResult>;
  /** Forgets what is loaded. */
  unload(): void;
}
