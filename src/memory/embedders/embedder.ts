/** Turns texts into vectors by their meaning. */

export interface Embedder {
  /** Names the model and its version. Vectors of two ids are never compared. */
  readonly id: string;
  readonly dimensions: number;
  /** A local embedder embeds within milliseconds, before a write commits. Other embedders run in a job after the write. */
  readonly isLocal: boolean;
  /** Returns unit vectors in the order of the texts. `null` for a text without a word that the model knows. */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<(Float32Array | null)[]>;
  /** Returns the vector of a query. A local embedder weights the query's words by their rarity in the agent's memories. */
  embedQuery(text: string, context: QueryContext, signal?: AbortSignal): Promise<Float32Array | null>;
}

export interface QueryContext {
  /** Returns the inverse document frequency of a lower-case word. */
  rarity?(word: string): number;
}
