import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { memoryEmbedders } from "../../src/agents/agent/memory-embedder.ts";
import { staticFile } from "../../src/ports/workers/static-files.ts";

test("STATICVEC-2 a Worker has the word vectors of its static files, and no embedder without them", async () => {
  const embedders = (bindings: { ASSETS?: Fetcher }) =>
    memoryEmbedders(
      bindings,
      "static",
      { embed: () => Promise.reject(new Error("No model.")) },
      { tenant: "t", id: "a" },
    );
  const embedder = await embedders(env).embedder();
  const [dog, puppy, tax] = (await embedder?.embed(["a dog", "my puppy", "the taxes"])) ?? [];
  const cosine = (a: Float32Array | null | undefined, b: Float32Array | null | undefined) =>
    a?.reduce((sum, value, index) => sum + value * (b?.[index] ?? 0), 0) ?? Number.NaN;
  expect(cosine(dog, puppy)).toBeGreaterThan(0.4);
  expect(cosine(dog, tax)).toBeLessThan(0.2);
  expect(await embedders(env).formerEmbedder(embedder?.id ?? "")).toBe(embedder);
  expect(await embedders(env).formerEmbedder("another")).toBeNull();
  expect(await embedders({}).embedder()).toBeNull();
  expect(await staticFile(env.ASSETS, "absent.bin")).toBeNull();
});
