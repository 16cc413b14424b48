/** Staged changes over Node's SQLite. */
import { afterEach, beforeEach, describe, vi } from "vitest";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { stagingContract } from "../support/staging-contract.ts";

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

describe("staged changes", () => {
  stagingContract(async (body) => {
    const database = new NodeSqlDatabase();
    await body({ database, keyValue: new NodeKeyValue(database) });
  });
});
