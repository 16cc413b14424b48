/** The storage of turns on Node's SQLite. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type NewTexts,
  packMembers,
  unpackMembers,
} from "../../src/agents/conversation/store/turn-members.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { jsonValues } from "../support/json-values.ts";
import { turnStoreContract } from "../support/turn-store-contract.ts";

describe("turns on node:sqlite", () => {
  turnStoreContract(async (body) => {
    const db = new NodeSqlDatabase();
    try {
      await body({ db, kv: new NodeKeyValue(db) });
    } finally {
      db.close();
    }
  }, 30);
});

test("MEMBER-1 MEMBER-2 any object is restored from its packed form, and stored texts are not written again", () => {
  const text = fc.string({ unit: "binary", maxLength: 30 });
  const value = fc.oneof(text, fc.integer(), jsonValues({ maxDepth: 2 }));
  const object = fc.record(
    {
      input: value,
      text: value,
      native: value,
      error: value,
      result: fc.record({ result: value, error: value }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(object, fc.nat(40), (given, limit) => {
      // As JSON has it: -0 becomes 0.
      const owner: object = JSON.parse(JSON.stringify(given));
      const texts: NewTexts = new Map();
      const { packed, stored } = packMembers(owner, { id: "x", limit, before: undefined }, texts);
      const back = unpackMembers(JSON.parse(JSON.stringify(packed)), "x", texts);
      expect(back.owner).toEqual(owner);
      expect(back.stored).toEqual(stored);
      expect([...texts.keys()]).toEqual([...stored.keys()].map((member) => `x:${member}`));
      const again: NewTexts = new Map();
      expect(packMembers(owner, { id: "x", limit, before: stored }, again)).toEqual({ packed, stored });
      expect(again.size).toBe(0);
    }),
    { numRuns: 100 },
  );
});
