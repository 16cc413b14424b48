/** The bytes that an erased memory leaves in the tables of its actor, on workerd. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryWriter } from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { storageOf } from "./everything.ts";
import { ADA, checkInvariants, createAgent } from "./world.ts";

afterEach(checkInvariants);

const WRITER: MemoryWriter = {
  reader: { principal: ADA },
  author: { kind: "principal", subject: ADA.subject },
};

test("FTS-2 MEMSTORE-4 G8 an erased or replaced text is in no table of its actor, the segments of its search index included", async () => {
  const stub = exports.Agent.getByName(`${ADA.tenant}:${await createAgent("test/handy")}`);
  // SAFETY: the class of the export has the interface.
  const api = stub as unknown as AgentApi;
  const texts = Array.from({ length: 60 }, (_, index) => ({
    content: `${index} ${index < 3 ? "qzvexample" : "quiet"}${index} in the harbour`,
  }));
  const [first, second, third] = unwrap(await api.writeMemories(WRITER, texts));
  // A segment leaves out the beginning that a word has in common with the word before it.
  expect(await storageOf(stub)).toContain("zvexampl");
  unwrap(await api.updateMemory(WRITER, third?.id ?? "", { content: "Replaced." }));
  for (const memory of [first, second, third]) unwrap(await api.deleteMemory(WRITER, memory?.id ?? ""));
  expect(await storageOf(stub)).not.toContain("zvexampl");
});

test("FTS-2 an actor cannot set `secure_delete` on the platform", async () => {
  await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) => {
    expect(() => storage.sql.exec("PRAGMA secure_delete = ON")).toThrow("not authorized");
  });
});
