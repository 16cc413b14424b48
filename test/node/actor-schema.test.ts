/** Schema upgrades of actors, with steps for this test. */
import { expect, test } from "vitest";
import {
  type ActorSchema,
  type ActorStores,
  newestVersion,
  openOrRefuse,
  VersionedRecord,
} from "../../src/agents/base/storage/schema-upgrade.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";
import { Crossings, crossKeyValue, crossSql } from "../support/crossings.ts";
import { dumpStorage } from "../support/releases/format.ts";

type Thing = { name: string };

/** A second run of a step would double its mark. */
const SCHEMA: ActorSchema = {
  of: "thing",
  first: 1,
  steps: [
    {
      version: 2,
      name: "a table of marks",
      up({ database }) {
        database.run("CREATE TABLE marks (step INTEGER)");
        database.run("INSERT INTO marks VALUES (2)");
      },
    },
    {
      version: 3,
      name: "a mark and a longer name",
      up({ database, keyValue }) {
        database.run("INSERT INTO marks VALUES (3)");
        const thing = keyValue.get<Thing>("thing");
        keyValue.put("thing", { ...thing, name: `${thing?.name}!` });
      },
    },
    { version: 4, name: "a mark", up: ({ database }) => database.run("INSERT INTO marks VALUES (4)") },
  ],
};

function stores(schema?: number): { database: NodeSqlDatabase; keyValue: NodeKeyValue } {
  const database = new NodeSqlDatabase();
  const keyValue = new NodeKeyValue(database);
  keyValue.put("thing", { name: "old", ...(schema === undefined ? {} : { schema }) });
  return { database, keyValue };
}

const thingOf = (given: ActorStores) => new VersionedRecord<Thing>(SCHEMA, given, "thing");
const dump = ({ database, keyValue }: ActorStores) => dumpStorage(database, keyValue);

test("UPGRADE-1 steps run in order, each once, with the version beside the value", () => {
  const given = stores();
  expect(thingOf(given).get()).toEqual({ name: "old!" });
  expect(thingOf(given).get()).toEqual({ name: "old!" });
  expect(given.database.all("SELECT step FROM marks")).toEqual(
    [{ step: 2 }, { step: 3 }, { step: 4 }].map(bare),
  );
  expect(given.keyValue.get("thing")).toEqual({ name: "old!", schema: 4 });
  thingOf(given).put({ name: "new" });
  expect(given.keyValue.get("thing")).toEqual({ name: "new", schema: 4 });
});

test("UPGRADE-1 after a crash at any crossing of the ports, the next wake ends with the same storage as without a crash", () => {
  const golden = stores();
  thingOf(golden).get();
  const seen = new Set<string>();
  let points = 0;
  for (let point = 0, crashed = true; crashed; point++) {
    const given = stores();
    const crossings = new Crossings([point]);
    crossings.arm();
    const life = crossings.beginLife();
    const dying = {
      database: crossSql(given.database, life),
      keyValue: crossKeyValue(given.keyValue, life),
    };
    try {
      thingOf(dying).get();
    } catch (error) {
      if (!crossings.isCrash(error)) throw error;
    }
    crashed = crossings.crashed;
    const version = given.keyValue.get<{ schema?: number }>("thing")?.schema ?? 1;
    seen.add(`version ${version}`);
    const marks = version === 1 ? 0 : given.database.all("SELECT step FROM marks").length;
    expect(marks, `point ${point}: a step and its version are one`).toBe(version - 1);
    thingOf(given).get();
    expect(dump(given), `point ${point}`).toEqual(dump(golden));
    points += 1;
  }
  expect(points).toBeGreaterThan(25);
  expect([...seen]).toEqual(["version 1", "version 2", "version 3", "version 4"]);
});

test("UPGRADE-2 a current value costs only its read", () => {
  const given = stores();
  thingOf(given).get();
  const counter = new CostCounter();
  const { db, kv } = countingDatabase(given.database, given.keyValue, counter);
  thingOf({ database: db, keyValue: kv }).get();
  expect(counter.cost).toEqual({ statements: 1, rowsWritten: 0, rowsRead: 0 });
});

test("UPGRADE-3 storage of a newer version is UNAVAILABLE, with the fix, and stays unchanged", () => {
  const given = stores(5);
  const before = dump(given);
  const open = openOrRefuse(() => thingOf(given).get());
  for (let time = 0; time < 2; time++) {
    expect(open).toThrow(
      expect.objectContaining({
        code: "UNAVAILABLE",
        retriable: true,
        message: expect.stringMatching(/version 5.*up to 4.*Deploy that release again/),
      }),
    );
  }
  expect(dump(given)).toEqual(before);
});

test("UPGRADE-4 an error that is no refusal of the storage ends its opening, whatever its code", () => {
  for (const code of ["INTERNAL_ERROR", "UNAVAILABLE"] as const) {
    const opening = () =>
      openOrRefuse(() => {
        throw new DramatisError(code, "Something else.");
      });
    expect(opening).toThrow("Something else.");
  }
});

test("a schema's newest version is the version of its last step, or its first version", () => {
  expect(newestVersion(SCHEMA)).toBe(4);
  expect(newestVersion({ of: "thing", first: 1, steps: [] })).toBe(1);
});

/** Returns a row without a prototype, like SQLite's. */
function bare<Row extends object>(row: Row): Row {
  return Object.assign(Object.create(null), row);
}
