/**
 * Mastra's memory on Node, for the case `memory-load`: `Memory` with semantic recall, as in its guide, over `LibSQLStore` and
 * `LibSQLVector` in one libSQL file. Memories are messages of one thread.
 *
 * Argument: the path of the database.
 */
import { randomUUID } from "node:crypto";
import { LibSQLStore, LibSQLVector } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { open } from "../../memory-load/node-door.ts";
import { wordVectors } from "../../memory-load/workload.ts";

const [file = ""] = process.argv.slice(2);
const vectors = wordVectors();
const zeros = new Float32Array(vectors.dimensions);

const memory = new Memory({
  storage: new LibSQLStore({ id: "storage", url: `file:${file}` }),
  vector: new LibSQLVector({ id: "vectors", url: `file:${file}.vectors` }),
  embedder: {
    specificationVersion: "v3",
    provider: "dramatis",
    modelId: vectors.id,
    maxEmbeddingsPerCall: 100,
    supportsParallelCalls: true,
    async doEmbed({ values }: { values: string[] }) {
      const embeddings = (await vectors.embed(values)).map((vector) => [...(vector ?? zeros)]);
      return { embeddings, warnings: [] };
    },
  },
  options: { lastMessages: false, semanticRecall: { topK: 10, messageRange: 0, scope: "resource" } },
});

const resourceId = "agent";
const threadId = (await memory.createThread({ resourceId, title: "memories" })).id;
let written = 0;

open({
  async write(texts) {
    const messages = texts.map((content) => {
      written += 1;
      return {
        id: randomUUID(),
        role: "user" as const,
        createdAt: new Date(Date.UTC(2026, 0, 1) + written * 60_000),
        threadId,
        resourceId,
        content: { format: 2 as const, parts: [{ type: "text" as const, text: content }], content },
      };
    });
    await memory.saveMessages({ messages });
  },
  async search(vectorSearchString) {
    const { messages } = await memory.recall({ threadId, resourceId, vectorSearchString, perPage: false });
    return messages.map(({ content }) => content.content ?? "");
  },
});
