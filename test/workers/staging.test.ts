/** Staged changes over the storage of a Durable Object. */

import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, vi } from "vitest";
import { durableStorage } from "../../src/ports/workers/durable-storage.ts";
import { stagingContract } from "../support/staging-contract.ts";

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

describe("staged changes", () => {
  stagingContract((body) =>
    runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) =>
      body(durableStorage(storage)),
    ),
  );
});
