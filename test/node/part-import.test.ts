/** Imports in parts, over Node's SQLite. */
import { expect, test } from "vitest";
import { PartImport } from "../../src/agents/base/backup/part-import.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const HEADER = { dramatis: "agent", version: 1, id: "a", exportedAt: "2026-01-01T00:00:00.000Z" };

function begin() {
  const database = new NodeSqlDatabase();
  const keyValue = new NodeKeyValue(database);
  const clock = new VirtualClock();
  const wakeup = { arm: async () => undefined, disarm: () => undefined };
  const imported = new PartImport<object>("agent", {
    ...{ database, keyValue, clock, wakeup, keys: [], isTaken: () => false },
  });
  const take = (from: number, line: object) =>
    imported.take(
      { from, lines: [JSON.stringify(line)], isLast: false },
      async () => () => undefined,
      () => null,
    );
  return { clock, imported, take };
}

test("BACKUP-15 an import that gets a part each minute is not stalled, also after an hour", async () => {
  const { clock, imported, take } = begin();
  await take(1, HEADER);
  for (let line = 2; line < 70; line++) {
    await clock.advance(60_000);
    expect(imported.wake()).toBe(3_540_000);
    await take(line, { row: line });
  }
});

test("BACKUP-15 an import without a part for an hour is removed", async () => {
  const { clock, imported, take } = begin();
  await take(1, HEADER);
  await clock.advance(3_600_000);
  imported.wake();
  await clock.advance(0);
  await expect(take(2, { row: 2 })).rejects.toMatchObject({ code: "CONFLICT" });
});
