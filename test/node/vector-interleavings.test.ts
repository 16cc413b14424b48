/** Changes of memories, jobs, failures and restarts in any order: the store has the right vectors at the end. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
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
  | { do: "mood"; mood: LateVectors["mood"]; lateMs: number }
  | { do: "stop"; lateMs: number };

const lateMs = fc.constantFrom(SECOND, 29 * SECOND, 55 * SECOND, 85 * SECOND);
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
      mood: fc.constantFrom("well" as const, "down" as const, "slow" as const, "late" as const),
      lateMs,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const), lateMs }) },
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
        store.stopped();
        memories.restarted();
        this.#job = null;
        return;
      case "advance":
        return memories.clock.advance(given.ms);
      case "mood":
        store.mood = given.mood;
        store.lateMs = given.lateMs;
        return;
      // The actor stops during a request, if a request is due.
      case "stop":
        await this.take({ do: "mood", mood: "late", lateMs: given.lateMs });
        await this.take({ do: "pump" });
        await this.take({ do: "restart" });
        store.mood = "well";
    }
  }

  /** Lets the job run for as long as it has work. `inLives`: the actor sleeps before each job, as idle actors do. */
  async settle(inLives: boolean): Promise<void> {
    this.store.mood = "well";
    for (let round = 0; round < 100; round++) {
      if (inLives && this.#job === null) await this.take({ do: "restart" });
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
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 60, size: "max" }),
        fc.boolean(),
        (steps, inLives) => ended(new World(dimensions), steps, inLives),
      ),
      { numRuns: 60 },
    );
  },
);

/** Ends the rounds of a case, and compares. */
async function ended(world: World, steps: readonly Step[], inLives = false): Promise<void> {
  for (const one of steps) await world.take(one);
  await world.settle(inLives);
  // An abandoned request has taken effect by now.
  await world.memories.clock.advance(2 * MINUTE);
  await world.settle(inLives);
  const [expected, found] = await world.compared();
  expect(found.sort()).toEqual(expected.sort());
  expect(world.memories.index.status().vectors).toEqual({ pending: 0 });
}

const winter: Step = { do: "put", n: 1, text: "winter letter" };
const summer: Step = { do: "put", n: 1, text: "summer harbour" };
const remove: Step = { do: "remove", n: 1 };
const pump: Step = { do: "pump" };
const advance = (ms: number): Step => ({ do: "advance", ms });
const mood = (name: LateVectors["mood"]): Step => ({ do: "mood", mood: name, lateMs: 10 * SECOND });
/** The vector was sent after a failure, and is due again. */
const doubtful = [mood("down"), winter, pump, mood("well"), advance(20 * SECOND), pump, advance(MINUTE)];

describe("a request that an actor stops in takes effect later", () => {
  const cases: [what: string, before: Step[], after: Step[]][] = [
    ["MEMVECTORS-4 an upsert, and another text", [summer], [winter, pump]],
    ["MEMVECTORS-2 MEMVECTORS-7 an upsert, and the deletion of its memory", [winter], [remove]],
    ["MEMVECTORS-4 a deletion, and the memory comes again", [winter, pump, remove], [winter]],
    [
      "MEMVECTORS-4 a repeated deletion, and the memory comes again",
      [winter, pump, remove, pump, advance(MINUTE)],
      [winter],
    ],
    ["MEMVECTORS-4 a repeated upsert, and another text", doubtful, [summer]],
    ["MEMVECTORS-2 a repeated upsert, and the deletion of its memory", doubtful, [remove]],
    ["MEMVECTORS-4 an upsert, a failure, and another text", [winter], [mood("down"), summer, pump]],
    [
      "MEMVECTORS-4 an upsert, another text, and a neighbour a minute later",
      [summer],
      [winter, pump, advance(91 * SECOND), { ...winter, n: 2 }],
    ],
  ];
  test.each(cases)("%s", async (_, before, after) => {
    for (const late of [SECOND, 29 * SECOND, 55 * SECOND, 85 * SECOND])
      for (const inLives of [false, true])
        await ended(new World(100), [...before, { do: "stop", lateMs: late }, ...after], inLives);
  });
});

test("MEMVECTORS-4 an actor that sleeps between its alarms sends a vector once, and then has no alarm", async () => {
  const world = new World(100);
  const upserts = vi.spyOn(world.store, "upsert");
  await ended(world, [winter], true);
  expect(upserts).toHaveBeenCalledTimes(1);
});

test("MEMVECTORS-2 a memory that is removed and comes again during its upsert is in the store at the end", async () => {
  const steps = [mood("slow"), winter, pump, remove, winter, advance(10 * SECOND), mood("well")];
  await ended(new World(100), steps);
});

test("MEMVECTORS-1 a vector that is added during an upsert of its block follows at once", async () => {
  const world = new World(100);
  const second: Step = { ...winter, n: 2 };
  for (const one of [mood("slow"), winter, pump, second, mood("well"), advance(10 * SECOND)])
    await world.take(one);
  expect(world.store.ids()).toEqual(["1.1", "1.2"]);
});
