import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { staticEmbedder } from "../../src/memory/embedders/loaded-embedder.ts";
import { StaticEmbedder } from "../../src/memory/embedders/static-embedder.ts";
import { encodeWordTable, WordTable } from "../../src/memory/embedders/word-table.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemClock } from "../../src/ports/system.ts";

const bytes = new Uint8Array(readFileSync(join(import.meta.dirname, "../../app/public/word-vectors.bin")))
  .buffer;

function built(): StaticEmbedder {
  const table = WordTable.read(bytes);
  if (table === null) throw new Error("app/public/word-vectors.bin is damaged.");
  return new StaticEmbedder(table);
}

const cosine = (a: Float32Array | null | undefined, b: Float32Array | null | undefined) =>
  a?.reduce((sum, value, index) => sum + value * (b?.[index] ?? 0), 0) ?? Number.NaN;

test("the built table has 24 000 words of 100 dimensions, and words of a kind are close", async () => {
  const embedder = built();
  expect(embedder.dimensions).toBe(100);
  const [doctor, nurse, guitar] = await embedder.embed(["a doctor", "the nurses", "guitar"]);
  expect(cosine(doctor, nurse)).toBeGreaterThan(cosine(doctor, guitar) + 0.3);
  expect(Math.hypot(...(doctor ?? []))).toBeCloseTo(1, 5);
});

test("the words of a query weigh by their rarity", async () => {
  const rarity = (word: string) => (word === "guitar" ? 9 : 0.1);
  const [guitar] = await built().embed(["guitar"]);
  const query = await built().embedQuery("doctor guitar", { rarity });
  expect(cosine(query, guitar)).toBeGreaterThan(0.95);
});

test.each(["", "the and of", "しりとり", "zxqvbn 12 34", "!?"])(
  "STATICVEC-1 %j has no vector",
  async (text) => {
    expect(await built().embed([text])).toEqual([null]);
    expect(await built().embedQuery(text, {})).toBeNull();
  },
);

test("STATICVEC-2 bytes that are no table mean no embedder; a failed load is tried again", async () => {
  const warn = vi.spyOn(console, "warn").mockReturnValue();
  const pages = ["<!doctype html><html></html>", "DWV1", "", "DWV1 and more that is no table"];
  for (const page of pages) {
    const absent = staticEmbedder(
      async () => new Uint8Array(new TextEncoder().encode(page)).buffer,
      systemClock,
    );
    expect(await absent()).toBeNull();
  }
  expect(WordTable.read(bytes.slice(0, -1))).toBeNull();
  let loads = 0;
  const embedder = staticEmbedder(async () => {
    loads += 1;
    if (loads === 1) throw new Error("The network is down.");
    return bytes;
  }, systemClock);
  expect(await embedder()).toBeNull();
  expect(warn).toHaveBeenCalledOnce();
  const [first, second] = await Promise.all([embedder(), embedder()]);
  expect(first).not.toBeNull();
  expect(second).toBe(first);
  expect(loads).toBe(2);
  warn.mockRestore();
});

test("STATICVEC-2 a file that is silent is waited for two seconds, and asked for again half a minute later", async () => {
  const warn = vi.spyOn(console, "warn").mockReturnValue();
  const clock = new VirtualClock();
  let loads = 0;
  const embedder = staticEmbedder(async () => {
    loads += 1;
    return loads === 1 ? new Promise<never>(() => undefined) : bytes;
  }, clock);
  const first = embedder();
  await clock.advance(2_000);
  expect(await first).toBeNull();
  expect(await embedder()).toBeNull();
  expect(loads).toBe(1);
  await clock.advance(30_000);
  expect(await embedder()).not.toBeNull();
  warn.mockRestore();
});

test("no damaged table throws", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (tail) => {
      const table = new Uint8Array([
        ...encodeWordTable(
          ["ab", "cd"],
          [
            [0.1, -0.1],
            [1, -1],
          ],
        ).slice(0, 12),
        ...tail,
      ]);
      expect(() => WordTable.read(table.buffer)).not.toThrow();
    }),
  );
});
