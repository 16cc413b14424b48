import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { memoryEmbedders } from "../../src/agents/agent/memory-embedder.ts";
import { staticFile } from "../../src/ports/workers/static-files.ts";

const NO_MODEL = {
  embed: () => Promise.reject(new Error("The word vectors need no model.")),
};

const embedderOf = (bindings: { ASSETS?: Fetcher }) =>
  memoryEmbedders(bindings, "static", NO_MODEL, { tenant: "acme", id: "keeper" }).embedder();

test("STATICVEC-2 a Worker has the word vectors of its static files, and no embedder without them", async () => {
  const embedder = await embedderOf(env);
  const [dog, puppy, tax] = (await embedder?.embed(["a dog", "my puppy", "the taxes"])) ?? [];
  const cosine = (a: Float32Array | null | undefined, b: Float32Array | null | undefined) =>
    a?.reduce((sum, value, index) => sum + value * (b?.[index] ?? 0), 0) ?? Number.NaN;
  expect(cosine(dog, puppy)).toBeGreaterThan(0.4);
  expect(cosine(dog, tax)).toBeLessThan(0.2);
  expect(await embedderOf({})).toBeNull();
  expect(await staticFile(env.ASSETS, "absent.bin")).toBeNull();
});
