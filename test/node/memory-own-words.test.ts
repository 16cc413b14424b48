/** Texts that a person wrote or confirmed stay, whatever is erased of the extractions. */
import { describe, expect, test } from "vitest";
import type { MemoryWriter } from "../../src/protocol/memory.ts";
import { backupOf, linesOf } from "../support/agent-file.ts";
import { ALL, HOUR, UpkeepWorld } from "../support/upkeep-world.ts";

const STATES = ["current", "ended", "archived"] as const;
const ANN: MemoryWriter = { reader: ALL, author: { kind: "principal", subject: "ann" } };
const TEA = { key: "tea", content: "Ann likes tea." };
const SUBJECT = { userId: "ann" };

/** A world in which a turn of the first conversation has created a memory. */
async function worldWithMemory(operation: object = TEA): Promise<UpkeepWorld> {
  const world = new UpkeepWorld();
  await learn(world, 1, operation);
  return world;
}

async function learn(world: UpkeepWorld, index: number, operation: object = TEA): Promise<void> {
  const more = { subject: { ...SUBJECT, conversationId: `conv_${index}` } };
  await world.learn(`turn_${index}`, [{ op: "write", ...TEA, ...operation }], more);
}

async function erase(world: UpkeepWorld, index = 1): Promise<void> {
  world.eraseSources({ conversationId: `conv_${index}` });
  await world.pass(HOUR);
}

describe("MEMSRC-2 a text stays although an extraction has created it first, if", () => {
  const ways: [string, (world: UpkeepWorld) => Promise<unknown>][] = [
    ["an author writes it under its key", (world) => world.write({ ...TEA, subject: SUBJECT })],
    [
      "an author writes it with another significance",
      (world) => world.write({ ...TEA, significance: 0.9, subject: SUBJECT }),
    ],
    [
      "an author changes the memory to it",
      async (world) => world.corpus.update(ANN, (await world.byText("tea")).id, { content: TEA.content }),
    ],
    [
      "another conversation says it between, and goes, too",
      async (world) => {
        await learn(world, 2);
        await world.write({ ...TEA, subject: SUBJECT });
        await erase(world, 2);
      },
    ],
    [
      "an author writes it while it waits for another erasure",
      async (world) => {
        await learn(world, 2);
        world.eraseSources({ conversationId: "conv_2" });
        await world.write({ ...TEA, subject: SUBJECT });
        await world.pass(HOUR);
      },
    ],
    [
      "an author has written it, archived it, and it is learned again",
      async (world) => {
        await world.write({ ...TEA, subject: SUBJECT });
        await world.corpus.archive(ANN, (await world.byText("tea")).id);
        await learn(world, 2);
        await erase(world, 2);
      },
    ],
  ];

  test.each(ways)("%s", async (_, confirm) => {
    const world = await worldWithMemory();
    await confirm(world);
    await erase(world);
    expect(await world.texts(...STATES)).toEqual([TEA.content]);
    expect(await world.found("tea")).toEqual([TEA.content]);
  });

  test("and a new text of conversations only is still removed", async () => {
    const world = await worldWithMemory();
    await world.write({ ...TEA, subject: SUBJECT });
    world.now += HOUR;
    await learn(world, 2, { content: "Ann likes coffee." });
    await erase(world, 2);
    expect(await world.texts(...STATES)).toEqual([]);
  });
});

test("MEMSRC-1 a text that was archived and repeated is removed with its last source", async () => {
  const world = await worldWithMemory();
  await world.corpus.archive(ANN, (await world.byText("tea")).id);
  await learn(world, 2);
  await erase(world, 2);
  expect(await world.found("tea")).toEqual([TEA.content]);
  await erase(world, 1);
  expect(await world.texts(...STATES)).toEqual([]);
});

test("MEMSRC-2 MEMORY-3 repeating the same write leaves the log and the version unchanged", async () => {
  const world = await worldWithMemory();
  for (let round = 0; round < 3; round++)
    expect(await world.write({ ...TEA, subject: SUBJECT })).toMatchObject([{ version: 1 }]);
  const { log } = await world.corpus.why(ALL, (await world.byText("tea")).id);
  expect(log).toHaveLength(1);
});

describe("MEMSRC-2 MEMSTORE-2 a repeated write with its key of idempotency finds the memory", () => {
  const input = { ...TEA, subject: SUBJECT, idempotencyKey: "once" };

  test("after the erasure, and while it waits to be derived again", async () => {
    const world = await worldWithMemory();
    await learn(world, 2);
    const written = await world.write(input);
    world.eraseSources({ conversationId: "conv_1" });
    expect(await world.found("tea")).toEqual([]);
    expect(await world.write(input)).toEqual(written);
    await world.pass(HOUR);
    await erase(world, 2);
    expect(await world.write(input)).toMatchObject([{ id: written[0]?.id, content: TEA.content }]);
  });

  test("while more memories than one commit treats wait for the erasure", async () => {
    const world = new UpkeepWorld();
    const many = Array.from({ length: 100 }, (_, index) => ({
      op: "write" as const,
      content: `Fact ${index}.`,
    }));
    await world.learn("turn_1", many);
    await learn(world, 1);
    const written = await world.write(input);
    world.eraseSources({ conversationId: "conv_1" });
    expect(await world.write(input)).toEqual(written);
  });

  test("and it does not read later texts of conversations", async () => {
    const world = await worldWithMemory();
    await world.write(input);
    world.now += HOUR;
    await learn(world, 2, { content: "Ann likes coffee." });
    await learn(world, 3, { content: "Ann likes coffee." });
    world.eraseSources({ conversationId: "conv_2" });
    await expect(world.write(input)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});

test("MEMSRC-2 BACKUP-5 a copy keeps confirmed texts and texts of other sources, like the original", async () => {
  const source = await worldWithMemory();
  await learn(source, 2);
  await source.write({ ...TEA, subject: SUBJECT });
  for (const index of [1, 2]) await learn(source, index, { key: "dog", content: "Ann has a dog." });
  const copy = new UpkeepWorld();
  copy.now = source.now;
  const lines = await linesOf({ corpus: source.corpus, clock: source.timers });
  await backupOf({ corpus: copy.corpus, clock: copy.timers }).backup.import({ from: 1, lines, isLast: true });
  for (const world of [source, copy]) {
    await erase(world, 1);
    expect(await world.texts(...STATES)).toEqual(["Ann has a dog.", TEA.content]);
    await erase(world, 2);
    expect(await world.texts(...STATES)).toEqual([TEA.content]);
  }
});
