/** The contract of `VectorIndex`. */
import { expect, it } from "vitest";
import type { VectorIndex } from "../../src/ports/vector-index.ts";

/** Registers the tests, for indexes of three numbers that show an upsert at once. Namespaces are unique. */
export function vectorIndexContract(indexOf: () => VectorIndex): void {
  const fresh = () => ({ index: indexOf(), namespace: crypto.randomUUID() });
  const east = { id: "east", values: [1, 0, 0], metadata: { kind: "axis", rank: 1, tags: ["x", "y"] } };
  const north = { id: "north", values: [0, 1, 0], metadata: { kind: "axis", rank: 2 } };
  const between = { id: "between", values: [1, 1, 0] };

  it("VECTOR-1 F13 the nearest come first, and not too many", async () => {
    const { index, namespace } = fresh();
    await index.upsert(namespace, [north, between, east]);
    const matches = await index.query([1, 0.1, 0], { namespace, topK: 2 });
    expect(matches).toEqual([
      { id: "east", score: expect.any(Number), metadata: east.metadata },
      { id: "between", score: expect.any(Number) },
    ]);
    expect(matches[0]?.score).toBeGreaterThan(matches[1]?.score ?? 1);
    expect(await index.query([1, 0, 0], { namespace: "nobody's", topK: 5 })).toEqual([]);
  });

  it("VECTOR-2 F13 an upsert replaces a vector as a whole", async () => {
    const { index, namespace } = fresh();
    await index.upsert(namespace, [east, north]);
    await index.upsert(namespace, [{ id: "east", values: [0, 0, 1] }]);
    const [first, ...others] = await index.query([0, 0, 1], { namespace, topK: 5 });
    expect(first).toEqual({ id: "east", score: expect.closeTo(1, 5) });
    expect(others.map(({ id }) => id)).toEqual(["north"]);
  });

  it("VECTOR-2 F13 changes to what was given do not reach the index", async () => {
    const { index, namespace } = fresh();
    const mutable = { id: "a", values: [1, 0, 0], metadata: { tags: ["x"] } };
    await index.upsert(namespace, [mutable]);
    mutable.values[0] = -1;
    mutable.metadata.tags.push("y");
    expect(await index.query([1, 0, 0], { namespace, topK: 1 })).toEqual([
      { id: "a", score: expect.closeTo(1, 5), metadata: { tags: ["x"] } },
    ]);
  });

  it("VECTOR-3 F13 namespaces share nothing", async () => {
    const { index, namespace } = fresh();
    const other = `${namespace}-other`;
    await index.upsert(namespace, [{ ...east, metadata: { of: "one" } }]);
    await index.upsert(other, [{ ...east, metadata: { of: "other" } }]);
    const found = await Promise.all(
      [namespace, other].map((space) => index.query([1, 0, 0], { namespace: space, topK: 5 })),
    );
    expect(found.map((matches) => matches.map(({ id, metadata }) => [id, metadata?.of]))).toEqual([
      [["east", "one"]],
      [["east", "other"]],
    ]);
  });

  it("VECTOR-4 F13 a filter asks for equal metadata", async () => {
    const { index, namespace } = fresh();
    await index.upsert(namespace, [east, north, between]);
    const ids = async (filter: Record<string, string | number>) =>
      (await index.query([1, 0, 0], { namespace, topK: 5, filter })).map(({ id }) => id);
    expect(await ids({ kind: "axis" })).toEqual(["east", "north"]);
    expect(await ids({ kind: "axis", rank: 2 })).toEqual(["north"]);
    expect(await ids({ kind: "other" })).toEqual([]);
  });

  it("VECTOR-5 F13 vectors of another length are refused", async () => {
    const { index, namespace } = fresh();
    const refused = { code: "INVALID_INPUT", retriable: false };
    await expect(index.query([1, 0], { namespace, topK: 1 })).rejects.toMatchObject(refused);
    await expect(index.upsert(namespace, [{ id: "a", values: [1] }])).rejects.toMatchObject(refused);
  });
}
