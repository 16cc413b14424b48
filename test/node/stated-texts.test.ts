/** Memories from an erased conversation. */
import { describe, expect, test } from "vitest";
import { Extractions } from "../../src/memory/corpus/extraction.ts";
import type { MemoryOperation } from "../../src/protocol/memory.ts";
import { ALL, HOUR, UpkeepWorld } from "../support/upkeep-world.ts";

const SECRET = "Ann's PIN is 4711.";
const STATES = ["current", "ended", "archived"] as const;

/** Lets another conversation of the user change a memory that it was offered. */
async function changeBy(world: UpkeepWorld, conversationId: string, operation: MemoryOperation) {
  const operationId = `op_${conversationId}`;
  const reader = { scope: "user", userId: "ann", conversationId } as const;
  await new Extractions(world.corpus).offer(reader, { operationId, query: "PIN" });
  const subject = { userId: "ann", conversationId };
  expect(await world.learn("turn_9", [operation], { operationId, subject })).toMatchObject([
    { status: "applied" },
  ]);
}

describe("REDERIVE-1 the text of an erased conversation is removed, even if another conversation has changed the memory", () => {
  const past = { validFrom: "2020-01-01T00:00:00.000Z", validTo: "2021-01-01T00:00:00.000Z" };
  const changes: [what: string, change: object][] = [
    ["the significance", { significance: 0.9 }],
    ["the end", { validTo: "2025-12-31T00:00:00.000Z" }],
    ["the text of an earlier time", { content: "Ann had no PIN.", ...past }],
    ["the state, by an archive", { op: "archive" }],
  ];

  test.each(changes)("%s", async (_, change) => {
    const world = new UpkeepWorld();
    await world.learn("turn_1", [{ op: "write", content: SECRET, validFrom: "2025-06-01T00:00:00.000Z" }]);
    const { id } = await world.byText("PIN");
    await changeBy(world, "conv_2", { op: "update", memoryId: id, ...change });
    world.eraseSources({ conversationId: "conv_1" });
    await world.pass(HOUR);
    expect(await world.texts(...STATES)).toEqual([]);
    for (const table of ["memories", "memory_log", "memory_texts"])
      expect(JSON.stringify(world.database.all(`SELECT * FROM ${table}`))).not.toContain("PIN");
  });

  test("but stays if the other conversation has repeated it, in any way", async () => {
    const again: MemoryOperation[] = [
      { op: "write", content: SECRET },
      { op: "update", memoryId: "", content: SECRET },
      { op: "update", memoryId: "", content: SECRET, significance: 0.9 },
    ];
    for (const operation of again) {
      const world = new UpkeepWorld();
      await world.learn("turn_1", [{ op: "write", content: SECRET }]);
      const { id } = await world.byText("PIN");
      await changeBy(world, "conv_2", { op: "update", memoryId: id, significance: 0.8 });
      const operationId = "op_conv_3";
      const reader = { scope: "user", userId: "ann" } as const;
      await new Extractions(world.corpus).offer(reader, { operationId, query: "PIN" });
      const said = "memoryId" in operation ? { ...operation, memoryId: id } : operation;
      const subject = { userId: "ann", conversationId: "conv_3" };
      await world.learn("turn_10", [said], { operationId, subject });
      world.eraseSources({ conversationId: "conv_1" });
      await world.pass(HOUR);
      expect(await world.texts(...STATES)).toEqual([SECRET]);
      const { sources } = await world.corpus.why(ALL, id);
      expect(sources.map(({ conversationId }) => conversationId).sort()).toEqual(["conv_2", "conv_3"]);
      world.eraseSources({ conversationId: "conv_3" });
      await world.pass(HOUR);
      expect(await world.texts(...STATES)).toEqual([]);
    }
  });

  test("the source of an older text is not a source of the newest text", async () => {
    const world = new UpkeepWorld();
    await world.learn("turn_1", [{ op: "write", content: "Ann has a PIN." }]);
    const { id } = await world.byText("PIN");
    world.now += HOUR;
    await changeBy(world, "conv_2", { op: "update", memoryId: id, content: SECRET });
    world.eraseSources({ conversationId: "conv_2" });
    await world.pass(HOUR);
    expect(await world.texts(...STATES)).toEqual([]);
  });
});
