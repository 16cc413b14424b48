/** Embeds texts before the transaction that writes them. */
import { placeOf } from "../../../shared/error-place.ts";
import type { Embedder } from "../../embedders/embedder.ts";
import { type QuantizedVector, quantize } from "./entry.ts";
import type { SpaceEmbedder } from "./spaces.ts";

/** Vectors of texts, by embedder. */
export interface PreparedVectors {
  /** The embedder of new spaces, or `undefined` if it is unknown. */
  wanted: SpaceEmbedder | undefined;
  vectorOf(embedder: SpaceEmbedder, text: string): QuantizedVector | undefined;
}

/** No vectors. All are embedded later. */
export const NO_VECTORS: PreparedVectors = { wanted: undefined, vectorOf: () => undefined };

/** Embeds texts with the local embedders. `wanted` is `undefined` if the embedder did not answer. Never throws. */
export async function preparedVectors(
  wanted: Embedder | null | undefined,
  former: Embedder | null,
  texts: readonly string[],
): Promise<PreparedVectors> {
  const made = new Map<string, Map<string, QuantizedVector>>();
  for (const embedder of [wanted, former]) {
    if (!embedder?.isLocal || made.has(keyOf(embedder))) continue;
    try {
      made.set(keyOf(embedder), await vectorsOf(embedder, texts));
    } catch (error) {
      console.error("A local embedder failed:", placeOf(error));
    }
  }
  return {
    wanted: wanted && { id: wanted.id, dimensions: wanted.dimensions },
    vectorOf: (embedder, text) => (embedder === null ? undefined : made.get(keyOf(embedder))?.get(text)),
  };
}

/** Embeds texts. Rethrows errors of the embedder. */
export async function vectorsOf(
  embedder: Embedder,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<Map<string, QuantizedVector>> {
  const vectors = await embedder.embed(texts, signal);
  return new Map(
    texts.map((text, index) => [text, quantize(vectors[index] ?? new Float32Array(embedder.dimensions))]),
  );
}

function keyOf({ id, dimensions }: { id: string; dimensions: number }): string {
  return `${dimensions} ${id}`;
}
