/** The embedder that a Worker has without a configuration: word vectors from its static files. */
import type { Embedder } from "../../memory/embedders/embedder.ts";
import { staticEmbedder, WORD_TABLE_FILE } from "../../memory/embedders/static-embedder.ts";
import { staticFile } from "../../ports/workers/static-files.ts";

/** All actors of an isolate share the table. */
let shared: (() => Promise<Embedder | null>) | undefined;

/** Returns the embedder on the binding of static files; `null` without the binding or the file. */
export function memoryEmbedder({ ASSETS }: { ASSETS?: Fetcher }): Promise<Embedder | null> {
  if (ASSETS === undefined) return Promise.resolve(null);
  shared ??= staticEmbedder(() => staticFile(ASSETS, WORD_TABLE_FILE));
  return shared();
}
