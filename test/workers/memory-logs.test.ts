/** The log of the actors never contains messages, memories or erased texts, whatever fails. */
import { exports } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { vectorNamespace } from "../../src/memory/corpus/index/owned-vectors.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { expectErased, objectsOfR2, rowsOfD1 } from "./everything.ts";
import { vectors } from "./vectors.ts";
import { ADA, checkInvariants, createAgent, createConversation, request } from "./world.ts";

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: ADA.subject } };

const printed: string[] = [];

/** The texts of a printed value, of the causes of an error, and of its members. */
function textOf(value: unknown): string {
  if (!(value instanceof Error)) return typeof value === "object" ? JSON.stringify(value) : String(value);
  const { name, message, stack, cause } = value;
  return [name, message, stack, JSON.stringify({ ...value }), cause === undefined ? "" : textOf(cause)].join(
    "\n",
  );
}

beforeEach(() => {
  printed.length = 0;
  for (const method of ["log", "info", "warn", "error", "debug"] as const)
    vi.spyOn(console, method).mockImplementation((...args) => void printed.push(args.map(textOf).join(" ")));
});

afterEach(async () => {
  vi.restoreAllMocks();
  vectors.mood = "well";
  await checkInvariants();
});

test("MEMLOG-1 G8 quotes of a failing extraction are not printed, and an erased message is in no store and no log", async () => {
  const secret = `x${crypto.randomUUID().slice(0, 7)}`;
  const agent = await createAgent("learning/obedient");
  const conversation = await createConversation(agent);
  const learned = `LEARN:${JSON.stringify([{ op: "write", content: `Ada likes ${secret}.` }])}`;
  const broken = `LEARN:${secret} is no JSON`;
  for (const text of [learned, broken, broken, broken]) {
    const { turnId } = await conversation.say(text);
    await conversation.ended(turnId);
    const ends = /^memory_extraction\.(applied|refused|failed|failing)$/;
    await expect
      .poll(async () => (await conversation.journal()).filter(({ type }) => ends.test(type)), {
        timeout: 20_000,
      })
      .toContainEqual(expect.objectContaining({ turnId }));
  }
  await expect
    .poll(async () => (await conversation.journal()).map(({ type }) => type), { timeout: 20_000 })
    .toContain("memory_extraction.failing");
  expect(printed.join("\n")).toContain("A tool failed");
  expect(printed.join("\n")).not.toContain(secret);
  const messages = await conversation.messages();
  for (const { id } of messages) {
    const erase = () => request(`${conversation.path}/events/${id}`, { method: "DELETE" });
    await expect.poll(async () => (await erase()).status, { timeout: 20_000 }).toBe(204);
  }
  await expectErased(conversation.stub, secret);
  await expectErased(exports.Agent.getByName(`${ADA.tenant}:${agent}`), secret);
  await expect.poll(rowsOfD1).not.toContain(secret);
  expect(await objectsOfR2()).not.toContain(secret);
  expect(printed.join("\n")).not.toContain(secret);
});

test("MEMLOG-1 G8 an erased memory with failed copies is in no store and no log", async () => {
  const secret = `x${crypto.randomUUID().slice(0, 7)}`;
  const id = `logs-${crypto.randomUUID().slice(0, 8)}`;
  const actor = exports.VectorAgent.getByName(`${ADA.tenant}:${id}`);
  // SAFETY: the class of the export has this interface.
  const stub = actor as unknown as AgentApi;
  unwrap(await stub.create(ADA, { id, persona: { library: "test", id: "careful" } }));
  vectors.mood = "down";
  const contents = [`Ada likes ${secret}.`, `${secret} `.repeat(1_000)];
  const written = unwrap(
    await stub.writeMemories(
      WRITER,
      contents.map((content) => ({ content })),
    ),
  );
  await expect.poll(async () => unwrap(await stub.memoryStatus()).pending.error).toBe("The index is down.");
  vectors.mood = "well";
  for (const memory of written) unwrap(await stub.deleteMemory(WRITER, memory.id));
  await expectErased(actor, secret);
  await expect.poll(rowsOfD1).not.toContain(secret);
  await expect.poll(objectsOfR2).not.toContain(secret);
  const namespace = await vectorNamespace({ tenant: ADA.tenant, id });
  expect(vectors.inner.ids().get(namespace) ?? []).toEqual([]);
  expect(printed.join("\n")).not.toContain(secret);
});
