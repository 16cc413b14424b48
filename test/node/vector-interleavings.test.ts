/** Changes of memories, jobs, failures and restarts in any order: the store has the right vectors at the end. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { IndexedMemories, someMemory } from "../support/indexed-memories.ts";
import { LateVectors } from "../support/late-vectors.ts";
import { WordEmbedder, wordVector } from "../support/test-embedders.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

type Step =
  | { do: "put"; n: number; text: string }
  | { do: "remove"; n: number }
  | { do: "pump" | "restart" }
  | { do: "advance"; ms: number }
  | { do: "mood"; mood: LateVectors["mood"]; lateMs: number };

/** Numbers of few memories, so that steps remove and add the same memories again. Some numbers begin or end a row of the index. */
const number = fc.constantFrom(1, 2, 63, 64, 127, 128, 200);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("put" as const),
      n: number,
      text: fc.constantFrom("winter letter", "summer harbour", "…"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("remove" as const), n: number }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("pump" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      ms: fc.constantFrom(SECOND, 15 * SECOND, 30 * SECOND, MINUTE - 1, MINUTE, 2 * MINUTE),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("mood" as const),
      mood: fc.constantFrom("well" as const, "down" as const, "late" as const),
      lateMs: fc.constantFrom(SECOND, 29 * SECOND, 55 * SECOND, 85 * SECOND),
    }),
  },
);

/** An agent's index with a store, and a job that runs at most once at a time. */
class World {
  readonly memories: IndexedMemories;
  readonly store: LateVectors;
  #job: Promise<void> | null = null;

  constructor(private readonly dimensions: number) {
    this.memories = new IndexedMemories(new WordEmbedder(dimensions, true), {
      vectors: { index: () => this.store, namespace: async () => "keeper" },
    });
    this.store = new LateVectors(dimensions, this.memories.clock);
  }

  async take(given: Step): Promise<void> {
    const { memories, store } = this;
    switch (given.do) {
      case "put":
        return memories.put(someMemory(given.n, { text: given.text }));
      case "remove":
        return memories.remove(given.n);
      case "pump":
        this.#job ??= memories.pumpAll().finally(() => {
          this.#job = null;
        });
        return memories.clock.advance(0);
      case "restart":
        memories.restarted();
        this.#job = null;
        return;
      case "advance":
        return memories.clock.advance(given.ms);
      case "mood":
        store.mood = given.mood;
        store.lateMs = given.lateMs;
    }
  }

  /** Lets the job run for as long as it has work. */
  async settle(): Promise<void> {
    this.store.mood = "well";
    for (let round = 0; round < 100; round++) {
      await this.take({ do: "pump" });
      await this.memories.clock.advance(this.#job === null ? (this.memories.index.waitMs ?? 0) : SECOND);
      if (this.#job === null && this.memories.index.waitMs === undefined) return;
    }
    throw new Error("The store stays behind.");
  }

  /** The ids and the texts that the store must have, and the ids that it has with a vector of their text. */
  async compared(): Promise<[expected: string[], found: string[]]> {
    const expected: string[] = [];
    const found: string[] = [];
    for (const { n, text } of this.memories.entries.values()) {
      const vector = wordVector(text, this.dimensions);
      if (vector === null) continue;
      expected.push(`1.${n} ${text}`);
      const matches = await this.store.inner.query([...vector], { namespace: "keeper", topK: 20 });
      if (matches.some(({ id, score }) => id === `1.${n}` && score > 0.99)) found.push(`1.${n} ${text}`);
    }
    const extra = this.store.ids().filter((id) => !expected.some((one) => one.startsWith(`${id} `)));
    return [expected, [...found, ...extra]];
  }
}

test.each([100, 300])(
  "MEMVECTORS-1 MEMVECTORS-2 MEMVECTORS-4 a vector number that is removed and added again is in the store at the end, with %i dimensions",
  async (dimensions) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: "max" }), async (steps) => {
        const world = new World(dimensions);
        for (const one of steps) await world.take(one);
        await world.settle();
        // An abandoned request has taken effect by now.
        await world.memories.clock.advance(2 * MINUTE);
        await world.settle();
        const [expected, found] = await world.compared();
        expect(found.sort()).toEqual(expected.sort());
        expect(world.memories.index.status().vectors).toEqual({ pending: 0 });
      }),
      { numRuns: 60 },
    );
  },
);

test("MEMVECTORS-4 a request of an actor that stopped takes effect after the next request, and the newest vector is in the store", async () => {
  for (const lateMs of [SECOND, 29 * SECOND, 55 * SECOND, 85 * SECOND]) {
    const world = new World(100);
    const steps: Step[] = [
      { do: "mood", mood: "late", lateMs },
      { do: "put", n: 1, text: "summer harbour" },
      { do: "pump" },
      { do: "mood", mood: "well", lateMs },
      { do: "restart" },
      { do: "put", n: 1, text: "winter letter" },
      { do: "pump" },
    ];
    for (const one of steps) await world.take(one);
    await world.settle();
    await world.memories.clock.advance(2 * MINUTE);
    await world.settle();
    expect(await world.compared()).toEqual([["1.1 winter letter"], ["1.1 winter letter"]]);
  }
});

test("MEMVECTORS-2 MEMVECTORS-7 a request of an actor that stopped takes effect after the deletion of its memory, and the store is empty", async () => {
  for (const lateMs of [SECOND, 29 * SECOND, 55 * SECOND, 85 * SECOND]) {
    const world = new World(100);
    const steps: Step[] = [
      { do: "mood", mood: "late", lateMs },
      { do: "put", n: 1, text: "winter letter" },
      { do: "pump" },
      { do: "restart" },
      { do: "remove", n: 1 },
    ];
    for (const one of steps) await world.take(one);
    await world.settle();
    await world.memories.clock.advance(2 * MINUTE);
    await world.settle();
    expect(await world.compared()).toEqual([[], []]);
  }
});
