/**
 * The log of an agent's memory: stores, models and tasks fail with errors that quote their input. The input is neither
 * printed nor stored.
 */
import { inspect } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { AgentMemory } from "../../src/agents/agent/memory.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { IndexPool } from "../../src/memory/corpus/index/pool.ts";
import { ModelEmbedder } from "../../src/memory/embedders/model-embedder.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemIds } from "../../src/ports/system.ts";
import { LateVectors } from "../support/late-vectors.ts";
import { EDITOR, WRITER } from "../support/memory-world.ts";
import { DAY, HOUR, UpkeepWorld } from "../support/upkeep-world.ts";

const SECRET = "marmalade-7e57";
const LONG = `Where is the ${SECRET}? `.repeat(400);

const printed: string[] = [];

beforeEach(() => {
  printed.length = 0;
  for (const method of ["log", "info", "warn", "error", "debug"] as const)
    vi.spyOn(console, method).mockImplementation((...args) => {
      printed.push(args.map((one) => inspect(one, { depth: 10, showHidden: true })).join(" "));
    });
});

afterEach(() => void vi.restoreAllMocks());

/** An error that quotes all its input, also in its cause. */
function quoting(...given: unknown[]): Error {
  const text = inspect(given, { depth: 10, maxStringLength: null, maxArrayLength: null });
  return Object.assign(new Error(`Cannot take ${text}`, { cause: new Error(text) }), { given });
}

test("MEMLOG-1 MODELVEC-3 after its erasure, a memory is not printed, and not stored, even if embedder, vectors, records and objects fail with its text", async () => {
  const database = new NodeSqlDatabase();
  const clock = new VirtualClock();
  const isDown = { now: true };
  const objects = new MemoryObjectStore();
  const embedder = new ModelEmbedder(
    { profile: { provider: "openai", modelId: "small" }, dimensions: 100 },
    {
      embed: async ({ texts }) =>
        isDown.now
          ? {
              ok: false,
              error: {
                category: "validation",
                message: `The input is refused: ${texts.join(" ")}`,
                retriable: false,
                provider: "openai",
                status: 400,
              },
            }
          : {
              ok: true,
              embeddings: { vectors: texts.map(() => Array.from({ length: 100 }, () => 1)), model: "small" },
            },
    },
    { tenant: "acme", projectId: "", agentId: "keeper", conversationId: "", turnId: "" },
  );
  const vectors = new LateVectors(100, clock);
  vectors.mood = "down";
  const memory = new AgentMemory({
    database,
    keyValue: new NodeKeyValue(database),
    clock,
    ids: systemIds,
    search: { pool: new IndexPool(), embedder: async () => embedder, vectors: () => vectors },
    stores: {
      objects: () => ({
        head: (key) => objects.head(key),
        list: (...page) => objects.list(...page),
        get: (...one) => objects.get(...one),
        delete: (key) => objects.delete(key),
        put: async (key, bytes, facts) => {
          if (isDown.now) throw quoting(key, new TextDecoder().decode(bytes));
          await objects.put(key, bytes, facts);
        },
      }),
      records: () => ({
        write: async (_, records, gone) => {
          if (isDown.now) throw quoting(records, gone);
        },
      }),
    },
    wakeup: { arm: async () => undefined, disarm: () => undefined },
    upkeep: {
      upkeep: () => Promise.reject(quoting(SECRET)),
      run: () => Promise.reject(quoting(SECRET)),
      newOperationId: () => `op_${systemIds.ulid()}`,
      wakeup: { arm: async () => undefined, disarm: () => undefined },
    },
    agent: () => ({ id: "keeper", tenant: "acme" }),
  });
  const stored = () =>
    database
      .all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .map(({ name }) => database.all(`SELECT * FROM "${name}"`))
      .map((rows) => inspect(rows, { depth: 10, maxStringLength: null, maxArrayLength: null }))
      .join("\n");
  const written = await memory.corpus.write(WRITER, [
    { content: `The ${SECRET} is sweet.` },
    { content: LONG },
  ]);
  expect(stored()).toContain(SECRET);
  await memory.corpus.search(EDITOR, { query: `Where is the ${SECRET}?` });
  memory.upkeep.wake();
  await memory.upkeep.settle();
  for (let round = 0; round < 5; round++) {
    memory.publish();
    await clock.advance(20_000);
    memory.wake();
    await clock.advance(0);
  }
  const { pending } = await memory.status();
  expect(pending).toMatchObject({ records: 2, error: expect.any(String) });
  expect(inspect(pending)).not.toContain(SECRET);
  for (const { id } of written) await memory.corpus.delete(WRITER, id);
  memory.publish();
  await clock.advance(20_000);
  expect(stored()).not.toContain(SECRET);
  expect(printed.length).toBeGreaterThan(1);
  expect(printed.join("\n")).not.toContain(SECRET);
});

test("MEMLOG-1 a consolidation task that fails with the texts of memories prints none of them", async () => {
  const failing = defineTask({
    id: "join",
    input: z.looseObject({ memories: z.array(z.json()) }),
    effect: "pure",
    execute: ({ memories }) => {
      throw quoting(memories);
    },
  });
  const by = { task: "failing/join" };
  const settings = { consolidation: { everyHours: 1, minimum: 3, by } };
  const world = new UpkeepWorld(settings, [defineLibrary("failing", { tasks: [failing] })]);
  await world.write(...[1, 2, 3].map((n) => ({ content: `The ${SECRET} number ${n}.`, type: "episode" })));
  for (let round = 0; round < 5; round++) await world.pass(round === 0 ? DAY : HOUR);
  expect(printed.join("\n")).toContain("A consolidation of memories failed");
  expect(printed.join("\n")).toContain("A tool failed");
  expect(printed.join("\n")).not.toContain(SECRET);
});
