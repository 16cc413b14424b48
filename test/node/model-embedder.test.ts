/** The embedder of memories that asks a model, by the real gateway. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEmbeddingGateway } from "../../src/adapters/gateway/embeddings.ts";
import { type ModelProfile, secretsOf, trustedHosts } from "../../src/adapters/index.ts";
import { MAX_TEXT_LENGTH, ModelEmbedder } from "../../src/memory/embedders/model-embedder.ts";
import { clock, KEY } from "../support/gateway-calls.ts";
import { IndexedMemories, someMemory } from "../support/indexed-memories.ts";
import { jsonReply, type OpenAIServer, startOpenAIServer } from "../support/openai-server.ts";

const CONTEXT = { tenant: "t", projectId: "p", agentId: "a", conversationId: "", turnId: "" };

let server: OpenAIServer;
beforeAll(async () => {
  server = await startOpenAIServer();
});
afterAll(() => server.close());

function embedder(dimensions: number, modelId = "embed-test"): ModelEmbedder {
  const profile: ModelProfile = { provider: "openai", modelId, baseUrl: server.baseUrl };
  const env = { OPENAI_API_KEY: KEY };
  const gateway = createEmbeddingGateway({
    secret: secretsOf(env),
    fetch: (input, init) => fetch(input, init),
    clock,
    trustedHosts: trustedHosts({ env, profiles: [profile] }),
  });
  return new ModelEmbedder({ profile, dimensions }, gateway, CONTEXT);
}

const answer = (...vectors: number[][]) =>
  jsonReply({ data: vectors.map((embedding, index) => ({ index, embedding })), model: "embed-test" });

test("MODELVEC-1 vectors have length 1, and a zero vector is null", async () => {
  server.reply(answer([3, 4], [0, 0]));
  const [first, second] = await embedder(2).embed(["a", "b"]);
  expect([...(first ?? [])].map((value) => Math.round(value * 100))).toEqual([60, 80]);
  expect(second).toBeNull();
});

test("MODELVEC-1 a wrong number of dimensions fails, with the received number", async () => {
  server.reply(answer([1, 2, 3]));
  await expect(embedder(2).embed(["a"])).rejects.toThrow(
    "returned vectors with 3 dimensions, but 2 were declared",
  );
  expect(() => embedder(3_072)).toThrow("Give 1 to 1536");
});

test("MODELVEC-2 long texts are cut, and each model has a separate name", async () => {
  server.reply(answer([1, 0]));
  const before = server.requests.length;
  await embedder(2).embedQuery("x".repeat(MAX_TEXT_LENGTH + 5), {});
  expect(server.requests[before]?.body).toMatchObject({ input: ["x".repeat(MAX_TEXT_LENGTH)] });
  expect(embedder(2).id).toBe(embedder(2).id);
  expect(new Set([embedder(2).id, embedder(3).id, embedder(2, "other").id]).size).toBe(3);
});

test("MODELVEC-1 memories are found by meaning when the model has embedded them", async () => {
  const memories = new IndexedMemories(embedder(2), { clock });
  await memories.put(someMemory(1, { text: "a cat" }), someMemory(2, { text: "an invoice" }));
  server.reply(answer([1, 0], [0, 1]));
  expect(await memories.index.pump()).toBe(0);
  server.reply(answer([0, 1]));
  const { semantic, matches } = await memories.search("bill");
  expect([semantic, matches[0]?.n]).toEqual(["all", 2]);
});
