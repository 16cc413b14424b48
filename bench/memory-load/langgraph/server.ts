/** LangGraph's store on Node, as in its guide to semantic search: `InMemoryStore`, the only embedded store with vectors in its JavaScript packages. */
import type { Embeddings } from "@langchain/core/embeddings";
import { InMemoryStore } from "@langchain/langgraph";
import { open } from "../node-door.ts";
import { wordVectors } from "../workload.ts";

const embedder = wordVectors();
const zeros = new Float32Array(embedder.dimensions);
const embeddings = {
  embedDocuments: async (texts: string[]) =>
    (await embedder.embed(texts)).map((vector) => [...(vector ?? zeros)]),
  embedQuery: async (text: string) => [...((await embedder.embedQuery(text, {})) ?? zeros)],
};

const store = new InMemoryStore({
  index: {
    dims: embedder.dimensions,
    // SAFETY: the store calls only these two methods.
    embeddings: embeddings as unknown as Embeddings,
    fields: ["content"],
  },
});
const namespace = ["agent", "memories"];
let written = 0;

open({
  async write(texts) {
    await store.batch(
      texts.map((content) => {
        written += 1;
        return { namespace, key: String(written), value: { content } };
      }),
    );
  },
  async search(query) {
    const items = await store.search(namespace, { query, limit: 10 });
    return items.map(({ value }) => String(value.content));
  },
});
