import { describe, expect, test, vi } from "vitest";
import { LATE_MS } from "../../src/memory/corpus/copies.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { Crossings } from "../support/crossings.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const LONG = "All that was said about the harbour. ".repeat(120);

/** Reads every memory, and checks that each copy is the memory's. */
async function checkCopies(world: MemoryWorld) {
  const { items } = await world.corpus.list(EDITOR, { limit: 200, state: ["current", "ended", "archived"] });
  const memories = await Promise.all(items.map(({ id }) => world.corpus.read(EDITOR, id)));
  const refs = new Set<string>();
  expect([...world.records.rows.keys()].sort()).toEqual(memories.map(({ id }) => id).sort());
  for (const memory of memories) {
    const record = world.records.rows.get(memory.id);
    expect(record).toMatchObject({ version: memory.version, state: memory.state, tenant: "acme" });
    if (record?.ref) {
      refs.add(record.ref);
      expect(record.content).toBe("");
      const object = await world.objects.get(record.ref);
      expect(new TextDecoder().decode(object?.bytes)).toBe(memory.content);
    } else {
      expect(record?.content).toBe(memory.content);
    }
  }
  expect([...world.keys].sort(), "MEMCOPY-3 no object is left behind").toEqual([...refs].sort());
  expect(world.rows("memory_texts")).toEqual([]);
  expect(world.rows("memory_pending")).toEqual([]);
  return memories.map(({ content, state, version }) => ({ content: content.slice(0, 20), state, version }));
}

/** The life of some memories. A step that was interrupted is repeated as a client would. */
const STEPS: ((world: MemoryWorld) => Promise<unknown>)[] = [
  ({ corpus }) =>
    corpus.write(WRITER, [
      { content: "one", idempotencyKey: "1" },
      { content: LONG, idempotencyKey: "2" },
      { content: "three", key: "third", idempotencyKey: "3" },
    ]),
  copy,
  (world) => update(world, 0, `${LONG}1`, 1),
  (world) => update(world, 1, "two", 1),
  copy,
  (world) => update(world, 0, `${LONG}2`, 2),
  (world) => update(world, 0, `${LONG}3`, 3),
  async ({ corpus }) => corpus.archive(WRITER, await idAt(corpus, 1)),
  copy,
  async ({ corpus }) => {
    const { items } = await corpus.list(EDITOR, { state: ["current", "archived"], limit: 50 });
    const third = items.find(({ key }) => key === "third");
    if (third !== undefined) await corpus.delete(WRITER, third.id);
  },
  ({ corpus }) => corpus.write(WRITER, [{ content: `${LONG}4`, idempotencyKey: "4" }]),
];

/** Copies once. After a crash, deletions may have to be repeated later. */
async function copy({ copies }: MemoryWorld) {
  try {
    await copies.bringUpToDate();
  } catch (error) {
    if (!(error instanceof DramatisError && error.message.includes("The deletion is repeated"))) throw error;
  }
}

async function idAt(corpus: MemoryWorld["corpus"], index: number): Promise<string> {
  const { items } = await corpus.list(EDITOR, { state: ["current", "archived"] });
  return items[index]?.id ?? "";
}

async function update({ corpus }: MemoryWorld, index: number, content: string, ifVersion: number) {
  const id = await idAt(corpus, index);
  try {
    await corpus.update(WRITER, id, { content, ifVersion });
  } catch (error) {
    // The change was made before the crash.
    if (!(error instanceof DramatisError) || error.code !== "CONFLICT") throw error;
  }
}

async function play(crossings: Crossings) {
  const world = new MemoryWorld(crossings);
  crossings.arm();
  for (const step of STEPS) {
    for (;;) {
      try {
        await step(world);
        if (!crossings.crashed) break;
      } catch (error) {
        if (!crossings.crashed) throw error;
      }
      world.wake();
    }
  }
  crossings.disarm();
  await world.repair();
  return { world, end: await checkCopies(world) };
}

describe("MEMCOPY-1 MEMCOPY-2 MEMCOPY-3 a crash at every boundary", async () => {
  const whole = new Crossings();
  const golden = await play(whole);

  test("the life of some memories without a crash", () => {
    expect(golden.end).toEqual([
      { content: LONG.slice(0, 20), state: "current", version: 4 },
      { content: "two", state: "archived", version: 3 },
      { content: LONG.slice(0, 20), state: "current", version: 1 },
    ]);
    expect(whole.count).toBeGreaterThan(200);
  });

  test("ends as without it, with every copy up to date", async () => {
    for (let point = 0; point < whole.count; point++) {
      const { world, end } = await play(new Crossings([point]));
      expect(end, `a crash at point ${point}, ${whole.names[point >> 1]}`).toEqual(golden.end);
      expect(world.lives).toBe(2);
    }
  }, 120_000);
});

describe("MEMCOPY-1 stores that fail", () => {
  test.each(["objects", "records"] as const)(
    "the %s are down: no data is lost, and the status shows it",
    async (store) => {
      const world = new MemoryWorld();
      world.moods[store] = "down";
      const [short, long] = await world.corpus.write(WRITER, [{ content: "short" }, { content: LONG }]);
      await expect(world.copies.bringUpToDate()).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(await world.corpus.read(EDITOR, long?.id ?? "")).toMatchObject({ content: LONG });
      expect(world.copies.isBehind()).toBe(true);
      expect(world.copies.failure()).toEqual({ error: `The ${store} are down.`, since: world.clock.now() });
      if (store === "objects") expect([...world.records.rows.keys()]).toEqual([short?.id]);
      world.moods[store] = "well";
      await world.repair();
      expect(world.copies.failure()).toEqual({});
      await checkCopies(world);
    },
  );

  test("MEMCOPY-3 a change within a transaction that rolls back is not copied to a store", async () => {
    const world = new MemoryWorld();
    await world.corpus.write(WRITER, [{ content: "one" }]);
    const copied: Promise<void>[] = [];
    world.committed = () => void copied.push(world.copies.bringUpToDate());
    const prepared = await world.corpus.ports.index.prepare([LONG]);
    const cause = world.corpus.causeOf(WRITER);
    const changed: Promise<unknown>[] = [];
    const attempt = (isLost: boolean) =>
      world.corpus.ports.database.transaction(() => {
        const subject = { userId: null, conversationId: null, hash: "" };
        changed.push(
          world.corpus.change(() => world.corpus.applyWrite(subject, { content: LONG }, cause, prepared)),
        );
        if (isLost) throw new Error("The outer transaction fails.");
      });
    expect(() => attempt(true)).toThrow("The outer transaction fails.");
    await Promise.all(changed);
    await Promise.all(copied);
    expect([...world.keys]).toEqual([]);
    attempt(false);
    await Promise.all(changed);
    await Promise.all(copied);
    expect([...world.keys]).toHaveLength(1);
    await checkCopies(world);
  });

  test("a long text cannot be read while its store is down, which is no error of the reader", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: LONG }]);
    await world.repair();
    world.moods.objects = "down";
    await expect(world.corpus.read(EDITOR, memory?.id ?? "")).rejects.toMatchObject({
      code: "UNAVAILABLE",
      options: { retriable: true },
    });
    expect((await world.corpus.list(EDITOR)).items).toMatchObject([{ id: memory?.id, truncated: true }]);
  });
});

describe("MEMCOPY-4 requests that take effect after their time", () => {
  test.each(["objects", "records"] as const)(
    "%s that reappear after an erasure are deleted again",
    async (store) => {
      const world = new MemoryWorld();
      world.moods[store] = "late";
      const [memory] = await world.corpus.write(WRITER, [{ content: LONG }]);
      await world.copies.bringUpToDate().catch(() => undefined);
      await world.corpus.delete(WRITER, memory?.id ?? "");
      world.moods[store] = "well";
      await world.copies.bringUpToDate().catch(() => undefined);
      await world.settle();
      const stored = store === "objects" ? world.keys : world.records.rows;
      expect(stored.size, "the late request takes effect").toBe(1);
      await world.clock.advance(LATE_MS);
      await world.repair();
      expect(await checkCopies(world)).toEqual([]);
    },
  );
});

describe("MEMCOPY-6 a life that ends during a request", () => {
  const stores = ["objects", "records"] as const;

  /** Plays a life that sends a copy that takes effect only at `settle`, and ends at a crossing of this round of copies. */
  async function endedAt(store: (typeof stores)[number], point: number) {
    const crossings = new Crossings([point]);
    const world = new MemoryWorld(crossings);
    const [memory] = await world.corpus.write(WRITER, [{ content: LONG }]);
    world.moods[store] = "late";
    crossings.arm();
    await world.copies.bringUpToDate().catch(() => undefined);
    crossings.disarm();
    const isOver = !crossings.crashed;
    world.wake();
    world.moods[store] = "well";
    return { world, id: memory?.id ?? "", isOver };
  }

  test.each(stores)(
    "the %s of an erased memory are deleted again, wherever the life ended",
    async (store) => {
      let sent = 0;
      for (let point = 0; ; point++) {
        const { world, id, isOver } = await endedAt(store, point);
        sent += world.isLate ? 1 : 0;
        await world.corpus.delete(WRITER, id);
        await world.copies.bringUpToDate().catch(() => undefined);
        await world.settle();
        await world.repair();
        expect(await checkCopies(world), `the end at point ${point}`).toEqual([]);
        if (isOver) break;
      }
      expect(sent, "lives that ended after the request").toBeGreaterThan(1);
    },
  );

  test.each(stores)("the %s too if the next life copied the memory before it was erased", async (store) => {
    for (let point = 0; ; point++) {
      const { world, id, isOver } = await endedAt(store, point);
      await world.copies.bringUpToDate();
      expect(world.copies.isBehind()).toBe(false);
      await world.corpus.delete(WRITER, id);
      await world.copies.bringUpToDate().catch(() => undefined);
      await world.settle();
      await world.repair();
      expect(await checkCopies(world), `the end at point ${point}`).toEqual([]);
      if (isOver) break;
    }
  });

  test("deletions are certain after a minute, however many lives follow, and other copies do not wait", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: LONG }]);
    world.wake();
    await world.corpus.delete(WRITER, memory?.id ?? "");
    await world.corpus.write(WRITER, [{ content: "another" }]);
    const began = world.clock.now();
    while (world.copies.isBehind()) {
      await world.copies.bringUpToDate().catch(() => undefined);
      expect(world.records.rows.size).toBe(1);
      expect(world.rows("memory_pending").length).toBeLessThanOrEqual(1);
      await world.clock.advance(10_000);
      world.wake();
    }
    expect(world.clock.now() - began).toBe(LATE_MS + 10_000);
    await checkCopies(world);
  });

  test("a life without open work deletes once", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: LONG }]);
    await world.copies.bringUpToDate();
    world.wake();
    await world.corpus.delete(WRITER, memory?.id ?? "");
    await world.copies.bringUpToDate();
    expect(await checkCopies(world)).toEqual([]);
  });

  test("a record is not written again while an object of its memory must be deleted again", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: LONG }]);
    world.wake();
    await world.corpus.update(WRITER, memory?.id ?? "", { content: "short" });
    const writes = vi.spyOn(world.records, "write");
    await world.repair();
    expect(writes).toHaveBeenCalledTimes(1);
    expect(await checkCopies(world)).toMatchObject([{ content: "short", version: 2 }]);
  });
});

describe("texts that are with the object store", () => {
  const TAIL = `${LONG}A zebra stood at the end.`;
  const found = async (world: MemoryWorld) => {
    const { matches } = await world.corpus.search(EDITOR, { query: "zebra" });
    return matches.map(({ memory, score }) => [memory.significance, score.terms]);
  };

  test("MEMBATCH-3 a change without a new text leaves the complete text in searches", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: TAIL, significance: 0.5 }]);
    const id = memory?.id ?? "";
    await world.repair();
    expect(await found(world)).toEqual([[0.5, ["zebra"]]]);
    await world.corpus.update(WRITER, id, { significance: 1 });
    expect(await found(world)).toEqual([[1, ["zebra"]]]);
    world.wake();
    await world.corpus.update(WRITER, id, { speaker: "Ada", content: TAIL });
    expect(await found(world)).toEqual([[1, ["zebra"]]]);
    await world.corpus.update(WRITER, id, { content: "short" });
    expect(await found(world)).toEqual([]);
  });
});

describe("MEMPRUNE-1 records that are kept for a week", () => {
  const DAY = 86_400_000;

  test("a key of idempotency counts for seven days, and is deleted by the copies' job, some at a time", async () => {
    const world = new MemoryWorld();
    const write = (keys: string[], content = "one") =>
      world.corpus.write(
        WRITER,
        keys.map((key) => ({ content, idempotencyKey: key })),
      );
    for (let batch = 0; batch < 6; batch++)
      await write(Array.from({ length: 100 }, (_, n) => `old ${batch} ${n}`));
    await write(["first"]);
    await world.clock.advance(7 * DAY);
    await expect(write(["first"], "two")).rejects.toMatchObject({ code: "IDEMPOTENCY_CONFLICT" });
    await world.repair();
    expect(world.rows("memory_requests")).toHaveLength(601);
    await world.clock.advance(DAY);
    expect(await write(["first"], "two")).toMatchObject([{ content: "two" }]);
    await world.copies.bringUpToDate();
    expect(world.rows("memory_requests")).toHaveLength(102);
    await world.copies.bringUpToDate();
    expect(world.rows("memory_requests")).toHaveLength(1);
  });

  test("an offer is deleted after a week, too", async () => {
    const world = new MemoryWorld();
    await world.corpus.write(WRITER, [{ content: "one" }]);
    await world.extractions.offer(EDITOR, { operationId: "op_1", query: "one" });
    await world.repair();
    expect(world.rows("memory_offers")).toHaveLength(1);
    await world.clock.advance(8 * DAY);
    await world.copies.bringUpToDate();
    expect(world.rows("memory_offers")).toEqual([]);
  });
});

describe("MEMCOPY-5 a text in the actor that waits for its object is the memory's text", () => {
  test("a short text that replaces an archived text stays, and no reference to the old text remains", async () => {
    const world = new MemoryWorld();
    const write = (content: string) => world.corpus.write(WRITER, [{ content, key: "home" }]);
    const [memory] = await write("Ada lives in Rome.");
    await world.repair();
    await world.corpus.archive(WRITER, memory?.id ?? "");
    await write("Ada lives in Oslo.");
    await world.repair();
    expect(await world.corpus.read(EDITOR, memory?.id ?? "")).toMatchObject({
      content: "Ada lives in Oslo.",
    });
    expect(await checkCopies(world)).toMatchObject([{ content: "Ada lives in Oslo.", state: "current" }]);
  });

  test("a long text that differs only in case replaces the text in the store, and the same text is a no-op", async () => {
    const world = new MemoryWorld();
    const write = (content: string) => world.corpus.write(WRITER, [{ content, key: "notes" }]);
    const [memory] = await write(`${LONG} the end`);
    await world.repair();
    expect(await write(`${LONG} the end`)).toMatchObject([{ version: 1 }]);
    expect(await write(`${LONG} The End`)).toMatchObject([{ version: 2 }]);
    await world.repair();
    expect(await world.corpus.read(EDITOR, memory?.id ?? "")).toMatchObject({ content: `${LONG} The End` });
  });

  test.each([400, 1500])(
    "MEMORY-3 an archived text of %d characters that is written again is there, in its newest case",
    async (length) => {
      const world = new MemoryWorld();
      const write = (content: string) => world.corpus.write(WRITER, [{ content, key: "notes" }]);
      const text = "harbour ".repeat(length / 8);
      const [memory] = await write(`${text}end`);
      for (const next of [`${text}End`, `${text}End`]) {
        await world.corpus.archive(WRITER, memory?.id ?? "");
        await world.repair();
        expect(await write(next)).toMatchObject([{ state: "current" }]);
        await world.repair();
        const read = await world.corpus.read(EDITOR, memory?.id ?? "");
        expect(read).toMatchObject({ content: next, state: "current" });
      }
    },
  );

  test.each(["short", LONG])("a pending put is ignored if the text was replaced: %.5s", async (next) => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: "Ada lives in Rome.", key: "home" }]);
    await world.repair();
    await world.corpus.archive(WRITER, memory?.id ?? "");
    const put = world.objects.put.bind(world.objects);
    world.objects.put = async (...given) => {
      world.objects.put = put;
      await world.corpus.write(WRITER, [{ content: next, key: "home" }]);
      return put(...given);
    };
    await world.repair();
    expect(await world.corpus.read(EDITOR, memory?.id ?? "")).toMatchObject({ content: next });
    await checkCopies(world);
  });

  test("a memory that is archived twice before its first put has ended leaves no object behind", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: "Ada lives in Rome." }]);
    const id = memory?.id ?? "";
    world.moods.objects = "late";
    await world.corpus.archive(WRITER, id);
    await world.copies.bringUpToDate().catch(() => undefined);
    world.moods.objects = "well";
    const stored = world.corpus.findById(id);
    // As a summary that is given up does.
    if (stored !== undefined) world.corpus.rows.memories.put({ ...stored, state: "current" });
    await world.corpus.archive(WRITER, id);
    await world.settle();
    await world.repair();
    await checkCopies(world);
  });
});
