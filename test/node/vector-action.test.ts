/** The action `vector`, and the contract of its indexes. */
import { describe, expect, test } from "vitest";
import { runVector, type VectorIndexes } from "../../src/agents/executor/actions/vector.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { VectorIndex } from "../../src/ports/vector-index.ts";
import { VectorizeVectorIndex } from "../../src/ports/workers/vectorize-index.ts";
import type { VectorAction } from "../../src/protocol/task-definition.ts";
import type { Json } from "../../src/shared/json.ts";
import { MemoryVectorIndex } from "../support/memory-vector-index.ts";
import { vectorIndexContract } from "../support/vector-index-contract.ts";
import { VectorizeDouble } from "../support/vectorize-double.ts";

describe("an index in memory", () => vectorIndexContract(() => ({ index: new MemoryVectorIndex(3) })));
describe("an index in memory that shows changes ten seconds later", () =>
  vectorIndexContract(() => {
    const clock = new VirtualClock();
    const index = new MemoryVectorIndex(3, { clock, milliseconds: 10_000 });
    return { index, settle: () => clock.advance(10_000) };
  }));
describe("an index of Vectorize", () =>
  vectorIndexContract(() => {
    const clock = new VirtualClock();
    const index = new VectorizeVectorIndex(new VectorizeDouble(3, { clock, milliseconds: 10_000 }));
    return { index, settle: () => clock.advance(10_000) };
  }));

const run = (
  indexes: VectorIndexes,
  changes: { tenant?: string; clock?: VirtualClock; signal?: AbortSignal } = {},
) => ({
  indexes,
  tenant: "acme",
  clock: new VirtualClock(),
  signal: new AbortController().signal,
  ...changes,
});
const action = (operation: VectorAction["operation"], index = "docs"): VectorAction => ({
  kind: "vector",
  index,
  operation,
});

describe("VECTORACT-1 F13 an action reaches the vectors of its tenant", () => {
  test("added vectors are found", async () => {
    const indexes = new Map([["docs", new MemoryVectorIndex(2)]]);
    const vectors = [
      { id: "a", values: [1, 0], metadata: { lang: "en" } },
      { id: "b", values: [0, 1], metadata: { lang: "de" } },
    ];
    expect(await runVector(action("upsert"), { vectors }, run(indexes))).toEqual({ count: 2 });
    expect(await runVector(action("query"), { vector: [1, 0], topK: 1 }, run(indexes))).toEqual({
      matches: [{ id: "a", score: 1, metadata: { lang: "en" } }],
    });
    expect(
      await runVector(action("query"), { vector: [1, 0], filter: { lang: "de" } }, run(indexes)),
    ).toEqual({
      matches: [{ id: "b", score: 0, metadata: { lang: "de" } }],
    });
    const others = run(indexes, { tenant: "umbrella" });
    expect(await runVector(action("query"), { vector: [1, 0] }, others)).toEqual({ matches: [] });
  });

  test("an unknown index is an error that names the others", async () => {
    const indexes = new Map([
      ["docs", new MemoryVectorIndex(2)],
      ["faq", new MemoryVectorIndex(2)],
    ]);
    await expect(runVector(action("query", "none"), { vector: [1, 0] }, run(indexes))).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: 'Unknown index "none". Known indexes: "docs", "faq".',
    });
    await expect(runVector(action("query"), { vector: [1] }, run(new Map()))).rejects.toThrow(
      "This deployment has no indexes.",
    );
  });
});

describe("VECTORACT-2 F13 input is checked first", () => {
  test.each<[string, VectorAction["operation"], Json, RegExp]>([
    ["no vector", "query", {}, /\/vector/],
    ["too many matches", "query", { vector: [1], topK: 21 }, /\/topK/],
    ["a filter by a list", "query", { vector: [1], filter: { a: ["b"] } }, /\/filter\/a/],
    ["a filter with an operator", "query", { vector: [1], filter: { a: { $ne: "b" } } }, /\/filter\/a/],
    ["a filter of the adapter's own member", "query", { vector: [1], filter: { _id: "x" } }, /\/filter\/_id/],
    ["no vectors", "upsert", { vectors: [] }, /\/vectors/],
    [
      "an id twice",
      "upsert",
      {
        vectors: [
          { id: "a", values: [1] },
          { id: "a", values: [2] },
        ],
      },
      /"a" occurs twice/,
    ],
    [
      "nested metadata",
      "upsert",
      { vectors: [{ id: "a", values: [1], metadata: { b: { c: 1 } } }] },
      /\/metadata\/b/,
    ],
    [
      "much metadata",
      "upsert",
      { vectors: [{ id: "a", values: [1], metadata: { b: "x".repeat(11_000) } }] },
      /bytes as JSON/,
    ],
    ["a vector that is too long", "query", { vector: Array.from({ length: 1_537 }, () => 0) }, /\/vector/],
    ["a text", "query", "near", /Must be/],
  ])("%s", async (_, operation, input, message) => {
    const index: VectorIndex = {
      query: () => Promise.reject(new Error("asked")),
      upsert: () => Promise.reject(new Error("asked")),
      delete: () => Promise.reject(new Error("asked")),
    };
    await expect(runVector(action(operation), input, run(new Map([["docs", index]])))).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(message),
    });
  });

  test("an index that refuses, fails or does not answer is an error", async () => {
    const vector = [1, 0];
    const docs = (query: VectorIndex["query"]) =>
      new Map([["docs", { query, upsert: async () => undefined, delete: async () => undefined }]]);
    await expect(
      runVector(action("query"), { vector }, run(new Map([["docs", new MemoryVectorIndex(3)]]))),
    ).rejects.toMatchObject({
      code: "INVALID_INPUT",
      retriable: false,
      message: "The index has vectors with 3 dimensions. This vector has 2.",
    });
    const binding = {
      query: () => Promise.reject(new Error("internal error")),
      upsert: () => Promise.reject(new Error("down")),
      deleteByIds: () => Promise.reject(new Error("down")),
    };
    const failing = new Map([["docs", new VectorizeVectorIndex(binding)]]);
    await expect(runVector(action("query"), { vector }, run(failing))).rejects.toMatchObject({
      code: "EXECUTION_FAILED",
      retriable: true,
      message: "The index failed: internal error",
    });
    const clock = new VirtualClock();
    const silent = runVector(
      action("query"),
      { vector },
      run(
        docs(() => new Promise(() => {})),
        { clock },
      ),
    );
    const refused = expect(silent).rejects.toMatchObject({
      retriable: true,
      message: expect.stringContaining("did not answer"),
    });
    await clock.runNext();
    await refused;
    const controller = new AbortController();
    const waiting = runVector(
      action("query"),
      { vector },
      run(
        docs(() => new Promise(() => {})),
        { signal: controller.signal },
      ),
    );
    controller.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
  });
});
