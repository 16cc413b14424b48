/** Memories that extractions make of others, which they do not outlast. */
import { describe, expect, test } from "vitest";
import { Extractions } from "../../src/memory/corpus/extraction.ts";
import type { MemoryOperation, MemoryWriter } from "../../src/protocol/memory.ts";
import type { MemoryOutcome } from "../../src/protocol/memory-schemas.ts";
import { ALL, HOUR, UpkeepWorld } from "../support/upkeep-world.ts";

const STATES = ["current", "ended", "archived"] as const;
const ANN: MemoryWriter = { reader: ALL, author: { kind: "principal", subject: "ann" } };
const PIN = "Ann's PIN is 4711.";
const DOOR = "Ann's PIN 4711 is also her door code.";

type Write = Extract<MemoryOperation, { op: "write" }>;

const of = (index: number) => ({ userId: "ann", conversationId: `conv_${index}` });

async function learn(
  world: UpkeepWorld,
  index: number,
  operation: Omit<Write, "op">,
): Promise<MemoryOutcome[]> {
  const write = { op: "write", ...operation } as const;
  return world.learn(`turn_${index}`, [write], { subject: of(index) });
}

/** Learns in a conversation a memory that is derived from all memories with one of these texts. */
async function derive(
  world: UpkeepWorld,
  index: number,
  { parts = ["PIN is"], ...operation }: Omit<Write, "op"> & { parts?: string[] },
): Promise<MemoryOutcome[]> {
  const operationId = `op_derived_${index}`;
  const offered = await new Extractions(world.corpus).offer(
    { scope: "user", ...of(index) },
    { operationId, query: "Ann PIN dog door" },
  );
  const used = offered.filter(({ content }) => parts.some((part) => content.includes(part)));
  const write = { op: "write", derivedFrom: used.map(({ id }) => id), ...operation } as const;
  return world.learn(`turn_${index}`, [write], { operationId, subject: of(index) });
}

async function erase(world: UpkeepWorld, index: number): Promise<void> {
  world.eraseSources({ conversationId: `conv_${index}` });
  await world.pass(HOUR);
}

async function remove(world: UpkeepWorld, part: string): Promise<void> {
  await world.corpus.delete(ANN, (await world.byText(part)).id);
  await world.pass(HOUR);
}

/** A world with a memory that a second conversation derived from a memory of the first conversation. */
async function derived(): Promise<UpkeepWorld> {
  const world = new UpkeepWorld();
  await learn(world, 1, { content: PIN });
  await derive(world, 2, { content: DOOR });
  expect(await world.texts("current")).toEqual([DOOR, PIN]);
  return world;
}

describe("EXTRACTED-5 REDERIVE-1 a memory that an extraction derived from a memory is removed", () => {
  test("with the conversation that taught the memory", async () => {
    const world = await derived();
    await erase(world, 1);
    expect(await world.texts(...STATES)).toEqual([]);
    expect(JSON.stringify(world.database.all("SELECT * FROM memory_log"))).not.toContain("4711");
  });

  test("with the memory that somebody deletes", async () => {
    const world = await derived();
    await remove(world, "PIN is");
    expect(await world.texts(...STATES)).toEqual([]);
  });

  test("also if another conversation derived it again", async () => {
    const world = await derived();
    expect(await derive(world, 3, { content: DOOR })).toMatchObject([{ status: "unchanged" }]);
    await erase(world, 1);
    expect(await world.texts(...STATES)).toEqual([]);
  });

  test.each(["conversation", "memory"])(
    "also if it changed an older memory by its key, with the %s",
    async (what) => {
      const world = new UpkeepWorld();
      await learn(world, 1, { content: PIN });
      await learn(world, 2, { key: "door", content: "Ann has a door." });
      world.now += HOUR;
      await derive(world, 2, { key: "door", content: DOOR });
      expect(await world.texts("current")).toEqual([DOOR, PIN]);
      await (what === "memory" ? remove(world, "PIN is") : erase(world, 1));
      expect(await world.texts(...STATES)).toEqual([]);
    },
  );

  test("also if it was derived from the text that it replaced", async () => {
    const world = new UpkeepWorld();
    await learn(world, 1, { key: "pin", content: PIN });
    world.now += HOUR;
    await derive(world, 2, { key: "pin", content: DOOR });
    expect(await world.texts("current")).toEqual([DOOR]);
    await erase(world, 1);
    expect(await world.texts(...STATES)).toEqual([]);
  });
});

test("EXTRACTED-5 a text is derived from older memories than the memory that it changes", async () => {
  const world = new UpkeepWorld();
  await learn(world, 2, { key: "door", content: "Ann has a door." });
  await learn(world, 1, { content: PIN });
  const refused = { status: "refused", code: "INVALID_INPUT" };
  expect(await derive(world, 2, { key: "door", content: DOOR })).toMatchObject([refused]);
  expect(await world.texts("current")).toEqual(["Ann has a door.", PIN]);
});

describe("REDERIVE-1 it stays", () => {
  test("if another conversation independently said the same", async () => {
    const world = await derived();
    await learn(world, 3, { content: DOOR });
    await erase(world, 1);
    expect(await world.texts(...STATES)).toEqual([DOOR]);
    await erase(world, 3);
    expect(await world.texts(...STATES)).toEqual([]);
  });

  test("MEMSRC-2 if a person confirmed it", async () => {
    const world = await derived();
    await world.corpus.update(ANN, (await world.byText("door")).id, { content: DOOR });
    await erase(world, 1);
    await erase(world, 2);
    expect(await world.texts(...STATES)).toEqual([DOOR]);
  });

  test("MEMSRC-2 if it is a summary with a person's text, also while some of its parts remain", async () => {
    const world = new UpkeepWorld({ consolidation: { minimum: 3 } });
    for (const [index, place] of ["Rome", "Oslo", "Bonn"].entries())
      await learn(world, index, { content: `Ann went to ${place}.`, type: "episode" });
    await world.pass(2 * HOUR);
    const { id } = await world.byText("Extract of 3");
    await world.corpus.update(ANN, id, { content: "Ann travels." });
    for (const index of [1, 0, 2]) {
      await erase(world, index);
      expect(await world.texts("current")).toEqual(["Ann travels."]);
    }
  });
});

test("REDERIVE-2 derived from two memories, it is derived again from the remaining memory", async () => {
  const world = new UpkeepWorld();
  await learn(world, 1, { content: PIN });
  await learn(world, 3, { content: "Ann has a dog." });
  await derive(world, 2, { content: "Ann's dog knows the PIN 4711.", parts: ["PIN is", "has a dog"] });
  expect(await world.texts("current")).toHaveLength(3);
  await erase(world, 1);
  const texts = await world.texts(...STATES);
  expect(texts).toHaveLength(2);
  expect(texts.join(" ")).toContain("Extract of 1");
  expect(texts.join(" ")).not.toContain("4711");
});
