/** The embedders of a Worker for memories: word vectors from its static files, or a model. */
import type { Embedder } from "../../memory/embedders/embedder.ts";
import { staticEmbedder } from "../../memory/embedders/loaded-embedder.ts";
import { type EmbeddingModel, ModelEmbedder } from "../../memory/embedders/model-embedder.ts";
import { WORD_TABLE_FILE } from "../../memory/embedders/word-table.ts";
import type { EmbeddingGateway } from "../../model/embedding.ts";
import { systemClock } from "../../ports/system.ts";
import { staticFile } from "../../ports/workers/static-files.ts";

/** `static`: word vectors in the Worker. `none`: searches use words only. Otherwise a model. */
export type MemoryEmbedding = "static" | "none" | EmbeddingModel;

export interface MemoryEmbedders {
  /** Returns the embedder of new vectors, or `null`. */
  embedder(): Promise<Embedder | null>;
  /** Returns the embedder of an older index, by its id, or `null` if it no longer exists. */
  formerEmbedder(id: string): Promise<Embedder | null>;
}

/** Shared by all actors of an isolate. */
let shared: (() => Promise<Embedder | null>) | undefined;

/** Returns the word vectors from the static files. `null` without the binding or the file. */
function wordVectors(assets: Fetcher | undefined): Promise<Embedder | null> {
  if (assets === undefined) return Promise.resolve(null);
  shared ??= staticEmbedder(() => staticFile(assets, WORD_TABLE_FILE), systemClock);
  return shared();
}

export function memoryEmbedders(
  { ASSETS }: { ASSETS?: Fetcher },
  embedding: MemoryEmbedding,
  gateway: EmbeddingGateway,
  { tenant, id: agentId }: { tenant: string; id: string },
): MemoryEmbedders {
  const embedder = async () => {
    if (embedding === "none") return null;
    if (embedding === "static") return wordVectors(ASSETS);
    const context = { tenant, projectId: "", agentId, conversationId: "", turnId: "" };
    return new ModelEmbedder(embedding, gateway, context);
  };
  return {
    embedder,
    async formerEmbedder(id) {
      const words = await wordVectors(ASSETS);
      return words?.id === id ? words : null;
    },
  };
}
