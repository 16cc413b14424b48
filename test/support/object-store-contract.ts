/** The contract of `ObjectStore`. */
import { expect, it } from "vitest";
import type { ObjectStore } from "../../src/ports/object-store.ts";

/** Registers the tests. Keys are unique, so the store need not be empty. */
export function objectStoreContract(storeOf: () => ObjectStore): void {
  const key = (name: string) => `contract/${crypto.randomUUID()}/${name}`;
  const bytes = new Uint8Array([0, 255, 1, 2]);
  const version = expect.any(String);
  const facts = { mediaType: "image/png", name: "caf%C3%A9.png" };

  it("OBJECT-1 an object is read as it was put", async () => {
    const [store, at] = [storeOf(), key("a")];
    await store.put(at, bytes, facts);
    expect(await store.get(at)).toEqual({ size: 4, version, facts, bytes });
    expect(await store.head(at)).toEqual({ size: 4, version, facts });
  });

  it("OBJECT-1 a later change of the buffers does not change the object", async () => {
    const [store, at, mutable] = [storeOf(), key("a"), bytes.slice()];
    await store.put(at, mutable, facts);
    mutable.fill(9);
    (await store.get(at))?.bytes.fill(8);
    expect((await store.get(at))?.bytes).toEqual(bytes);
  });

  it("OBJECT-1 a put replaces the object, also with an empty object", async () => {
    const [store, at] = [storeOf(), key("a")];
    await store.put(at, bytes, facts);
    await store.put(at, new Uint8Array(), {});
    expect(await store.get(at)).toEqual({
      size: 0,
      version,
      facts: {},
      bytes: new Uint8Array(),
    });
  });

  it("OBJECT-2 a missing object is null, and deleting it is not an error", async () => {
    const [store, at] = [storeOf(), key("a")];
    expect([await store.get(at), await store.head(at)]).toEqual([null, null]);
    await store.delete(at);
    await store.put(at, bytes, facts);
    await store.delete(at);
    expect([await store.get(at), await store.head(at)]).toEqual([null, null]);
  });

  it("OBJECT-3 a range is that part of the object, up to its end, and every put changes the version", async () => {
    const [store, at] = [storeOf(), key("a")];
    await store.put(at, bytes, facts);
    const head = await store.head(at);
    expect(await store.get(at, { offset: 1, length: 2 })).toEqual({ ...head, bytes: bytes.slice(1, 3) });
    expect(await store.get(at, { offset: 2, length: 9 })).toEqual({ ...head, bytes: bytes.slice(2) });
    await store.put(at, bytes, facts);
    expect((await store.get(at, { offset: 0, length: 1 }))?.version).not.toBe(head?.version);
  });

  it("OBJECT-4 lists the keys under a prefix, ascending, and no others", async () => {
    const [store, at] = [storeOf(), key("list")];
    for (const name of ["/b", "/a", "/c", "s/a"]) await store.put(`${at}${name}`, bytes, facts);
    const listed = async (...range: [limit: number, after?: string]) =>
      (await store.list(`${at}/`, ...range)).map((found) => found.slice(at.length));
    expect(await listed(10)).toEqual(["/a", "/b", "/c"]);
    expect(await listed(2)).toEqual(["/a", "/b"]);
    expect(await listed(2, `${at}/b`)).toEqual(["/c"]);
    await store.delete(`${at}/b`);
    expect(await listed(10)).toEqual(["/a", "/c"]);
  });
}
