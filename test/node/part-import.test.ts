/** Imports in parts, over Node's SQLite. */
import { expect, test } from "vitest";
import { PartImport } from "../../src/agents/base/backup/part-import.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

const HEADER = { dramatis: "agent", version: 1, id: "a", exportedAt: "2026-01-01T00:00:00.000Z" };

function begin(
  removeOutside = async () => undefined as undefined,
  arm: () => Promise<undefined> = async () => undefined,
) {
  const database = new NodeSqlDatabase();
  const keyValue = new NodeKeyValue(database);
  const clock = new VirtualClock();
  const wakeup = { arm, disarm: () => undefined };
  const imported = new PartImport<object>("agent", {
    ...{ database, keyValue, clock, wakeup, keys: [], isTaken: () => false, removeOutside },
  });
  const take = (from: number, line: object, attempt = "one") =>
    imported.take(
      { from, lines: [JSON.stringify(line)], isLast: false, attempt },
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

test("BACKUP-2 three transfers of an id remove the data of the first once, and only the last continues", async () => {
  const removal = Promise.withResolvers<undefined>();
  const removals: number[] = [];
  const { take } = begin(() => {
    removals.push(removals.length);
    return removal.promise;
  });
  await take(1, HEADER, "one");
  const [second, third] = [take(1, HEADER, "two"), take(1, HEADER, "three")];
  const refused = expect(second).rejects.toMatchObject({ code: "CONFLICT" });
  await expect(take(2, { row: 2 }, "one")).rejects.toMatchObject({ code: "CONFLICT" });
  removal.resolve(undefined);
  await Promise.all([refused, third]);
  expect(removals).toEqual([0]);
  await take(2, { row: 2 }, "three");
});

test("BACKUP-2 a transfer that cannot be armed does not remove the transfer that replaced it", async () => {
  const first = Promise.withResolvers<undefined>();
  const armed = [first.promise];
  const { take } = begin(undefined, () => armed.shift() ?? Promise.resolve(undefined));
  const refused = expect(take(1, HEADER, "one")).rejects.toThrow("No alarm.");
  await take(1, HEADER, "two");
  first.reject(new Error("No alarm."));
  await refused;
  await take(2, { row: 2 }, "two");
});

test("BACKUP-2 a transfer that cannot be armed leaves an earlier transfer to its removal", async () => {
  const outcomes = [async () => undefined, () => Promise.reject(new Error("No alarm."))];
  let removals = 0;
  const remove = async () => {
    removals += 1;
    return undefined;
  };
  const { clock, imported, take } = begin(remove, () =>
    (outcomes.shift() ?? outcomes[0] ?? (async () => undefined))(),
  );
  await take(1, HEADER, "one");
  await expect(take(1, HEADER, "two")).rejects.toThrow("No alarm.");
  await clock.advance(3_600_000);
  imported.wake();
  await clock.advance(0);
  expect(removals).toBe(1);
});
