/** The contract of `VectorIndex`. */
import { expect, it } from "vitest";
import type { StoredVector, VectorIndex, VectorQuery } from "../../src/ports/vector-index.ts";

/** An index under test. `settle` resolves when queries see all changes so far. */
export interface IndexUnderTest {
  index: VectorIndex;
  settle?(): Promise<void>;
}

/** Registers the tests, for indexes of three numbers. Namespaces are unique. */
export function vectorIndexContract(indexOf: () => IndexUnderTest): void {
  const fresh = () => {
    const { index, settle = async () => undefined } = indexOf();
    const settled = {
      query: (vector: readonly number[], query: VectorQuery) => index.query(vector, query),
      async upsert(namespace: string, vectors: readonly StoredVector[]) {
        await index.upsert(namespace, vectors);
        await settle();
      },
      async delete(namespace: string, ids: readonly string[]) {
        await index.delete(namespace, ids);
        await settle();
      },
    };
    return { index: settled, namespace: crypto.randomUUID() };
  };
  const east = { id: "east", values: [1, 0, 0], metadata: { kind: "axis", rank: 1, tags: ["x", "y"] } };
  const north = { id: "north", values: [0, 1, 0], metadata: { kind: "axis", rank: 2 } };
  const between = { id: "between", values: [1, 1, 0] };

  it("VECTOR-1 F13 the nearest vectors are first, up to the limit", async () => {
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

  it("VECTOR-2 F13 an upsert replaces a complete vector", async () => {
    const { index, namespace } = fresh();
    await index.upsert(namespace, [east, north]);
    await index.upsert(namespace, [{ id: "east", values: [0, 0, 1] }]);
    const [first, ...others] = await index.query([0, 0, 1], { namespace, topK: 5 });
    expect(first).toEqual({ id: "east", score: expect.closeTo(1, 5) });
    expect(others.map(({ id }) => id)).toEqual(["north"]);
  });

  it("VECTOR-2 F13 later changes of the input do not reach the index", async () => {
    const { index, namespace } = fresh();
    const mutable = { id: "a", values: [1, 0, 0], metadata: { tags: ["x"] } };
    await index.upsert(namespace, [mutable]);
    mutable.values[0] = -1;
    mutable.metadata.tags.push("y");
    expect(await index.query([1, 0, 0], { namespace, topK: 1 })).toEqual([
      { id: "a", score: expect.closeTo(1, 5), metadata: { tags: ["x"] } },
    ]);
  });

  it("VECTOR-3 F13 namespaces are separate", async () => {
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

  it("VECTOR-6 a query for ids only returns as many as 100, of short ids, and no metadata", async () => {
    const { index, namespace } = fresh();
    const id = (n: number) => `memory ${n}`;
    const many = Array.from({ length: 120 }, (_, n) => ({ id: id(n), values: [1, n / 100, 0] }));
    await index.upsert(namespace, [...many.reverse(), { ...east, id: "e".repeat(31), values: [1, 9, 0] }]);
    const matches = await index.query([1, 0, 0], { namespace, topK: 100, idsOnly: true });
    expect(matches.map((match) => match.id)).toEqual(Array.from({ length: 100 }, (_, n) => id(n)));
    const other = fresh();
    await other.index.upsert(other.namespace, [
      { ...east, id: "e".repeat(31) },
      { ...between, id: "b".repeat(32) },
      north,
    ]);
    expect(
      await other.index.query([1, 0, 0], { namespace: other.namespace, topK: 3, idsOnly: true }),
    ).toEqual([
      { id: "e".repeat(31), score: expect.any(Number) },
      { id: "north", score: expect.any(Number) },
    ]);
  });

  it("VECTOR-7 deleted vectors are not found, vectors of other namespaces and later vectors are", async () => {
    const { index, namespace } = fresh();
    const long = "long ".repeat(20);
    await index.upsert(namespace, [east, north, { ...between, id: long }]);
    await index.upsert(`${namespace}-other`, [east]);
    await index.delete(namespace, ["east", long, "never there"]);
    const ids = async (space: string) =>
      (await index.query([1, 0, 0], { namespace: space, topK: 5 })).map(({ id }) => id);
    expect([await ids(namespace), await ids(`${namespace}-other`)]).toEqual([["north"], ["east"]]);
    await index.upsert(namespace, [east]);
    expect(await ids(namespace)).toEqual(["east", "north"]);
  });

  it("VECTOR-8 limits are refused by name; a namespace may be long", async () => {
    const { index, namespace } = fresh();
    const refused = { code: "INVALID_INPUT" };
    await expect(index.query([1, 0, 0], { namespace, topK: 21 })).rejects.toMatchObject(refused);
    await expect(index.query([1, 0, 0], { namespace, topK: 101, idsOnly: true })).rejects.toMatchObject(
      refused,
    );
    const ids = Array.from({ length: 1_001 }, (_, n) => String(n));
    await expect(index.delete(namespace, ids.slice(0, 101))).rejects.toMatchObject(refused);
    const vectors = ids.map((id) => ({ id, values: [1, 0, 0] }));
    await expect(index.upsert(namespace, vectors)).rejects.toMatchObject(refused);
    const wide = "ü".repeat(100);
    await index.upsert(wide, [east]);
    expect(await index.query([1, 0, 0], { namespace: wide, topK: 1 })).toMatchObject([{ id: "east" }]);
  });
}
