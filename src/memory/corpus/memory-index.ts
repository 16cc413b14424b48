/** The port of an agent's memory index. */
import type { RankingWeights } from "../../protocol/memory-requests.ts";
import type { MemoryScore } from "../../protocol/memory-schemas.ts";
import type { ColumnEntry } from "../ranking/columns.ts";
import type { TextDescription } from "../ranking/describe-text.ts";
import type { Visible } from "./visibility.ts";

/** A memory in an index: its text, and the facts for ranking. */
export interface IndexEntry extends Omit<ColumnEntry, keyof TextDescription> {
  text: string;
  /** `text` is only the beginning of the memory's text. The index keeps the words and the vector of the whole text. */
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
  /** The memories that the reader sees. Other memories do not affect the result. */
  visible: Visible;
  /** If set, only these memories may be found. */
  allowed?: ReadonlySet<number>;
}

/** `semantic` says whether the search used the vectors of all memories, of some, or not at all. */
export interface IndexResult {
  matches: { n: number; score: MemoryScore }[];
  semantic: "all" | "some" | "none";
}

/** Finds memories. `put` and `remove` run in the caller's transaction. */
export interface MemoryIndex<Prepared = unknown> {
  create(): void;
  /** Reads the input of `put` before the transaction. */
  prepare(texts: readonly string[]): Promise<Prepared>;
  put(entries: readonly IndexEntry[], prepared: Prepared): void;
  remove(ns: readonly number[]): void;
  search(query: IndexQuery): Promise<IndexResult>;
  unload(): void;
}
