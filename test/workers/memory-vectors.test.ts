/**
 * Agents in a deployment with a store of vectors (`memory.vectors`): writes, queries, deletions, and failures of the
 * store.
 */
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { vectorNamespace } from "../../src/memory/corpus/index/owned-vectors.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { vectors } from "./vectors.ts";
import { ADA, crash } from "./world.ts";

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: ADA.subject } };
const MINUTE = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.spyOn(console, "error").mockReturnValue(undefined);
});

afterEach(() => {
  vectors.mood = "well";
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function newAgent() {
  const id = `vectors-${crypto.randomUUID().slice(0, 8)}`;
  // After a crash a new stub is needed.
  const actor = () => exports.VectorAgent.getByName(`${ADA.tenant}:${id}`);
  // SAFETY: the class of the export has this interface.
  const api = () => actor() as unknown as AgentApi;
  unwrap(await api().create(ADA, { id, persona: { library: "test", id: "careful" } }));
  const namespace = await vectorNamespace({ tenant: ADA.tenant, id });
  return {
    get stub() {
      return api();
    },
    evict: () => evictDurableObject(actor()),
    write: async (...contents: string[]) =>
      unwrap(
        await api().writeMemories(
          WRITER,
          contents.map((content) => ({ content })),
        ),
      ),
    search: async (query: string) => unwrap(await api().searchMemories(READER, { query })),
    pending: async () => unwrap(await api().memoryStatus()).pending,
    /** The vectors that the store has of the agent. */
    ids: () => vectors.inner.ids().get(namespace) ?? [],
    /** Advances the time until a request has taken effect and the actor wakes. */
    async later() {
      vi.setSystemTime(Date.now() + MINUTE);
      await runDurableObjectAlarm(actor());
    },
  };
}

/** Waits for a state that wake-ups bring about, a minute of the clock after another. */
async function later(agent: Awaited<ReturnType<typeof newAgent>>, check: () => unknown) {
  await expect
    .poll(async () => {
      await agent.later();
      return check();
    })
    .toBe(true);
}

const isSettled = (agent: Awaited<ReturnType<typeof newAgent>>) => async () => {
  const { vectors: left, error, records } = await agent.pending();
  return left === 0 && error === undefined && records === 0;
};

describe("the store of vectors of a deployment", () => {
  test("MEMVECTORS-1 MEMVECTORS-2 MEMVECTORS-6 gets the vectors of writes, serves searches, and deletes erased vectors", async () => {
    const agent = await newAgent();
    const topics = ["harbour", "orchard", "library", "tower", "market", "bridge"];
    for (let batch = 0; batch < 11; batch++)
      await agent.write(
        ...Array.from(
          { length: 100 },
          (_, n) => `The ${topics[n % 6]} number${batch * 100 + n} opens early.`,
        ),
      );
    const [zebra] = await agent.write("A zebra sleeps in the attic.");
    const id = zebra?.id ?? "";
    await later(agent, isSettled(agent));
    expect(agent.ids()).toHaveLength(1_101);

    const { queries } = vectors;
    expect((await agent.search("zebra attic")).matches[0]?.memory.id).toBe(id);
    expect(vectors.queries).toBe(queries + 1);
    await agent.evict();
    expect((await agent.search("an animal sleeps upstairs")).matches[0]?.memory.id).toBe(id);
    expect(vectors.queries).toBe(queries + 2);

    const upserts = vectors.upserts.length;
    unwrap(await agent.stub.updateMemory(WRITER, id, { content: "A penguin swims in the cellar." }));
    expect((await agent.search("penguin cellar")).matches[0]?.memory.id).toBe(id);
    await later(agent, isSettled(agent));
    const changed = vectors.upserts.slice(upserts).flat();
    expect(changed).toHaveLength(1);
    expect(agent.ids()).toHaveLength(1_101);

    const deletions = vectors.deletions.length;
    unwrap(await agent.stub.deleteMemory(WRITER, id));
    await later(agent, isSettled(agent));
    expect(agent.ids()).toHaveLength(1_100);
    expect(vectors.deletions.slice(deletions)).toEqual([changed, changed]);
    const { matches } = await agent.search("penguin cellar");
    expect(matches.map(({ memory }) => memory.id)).not.toContain(id);

    unwrap(await agent.stub.remove(ADA));
    await later(agent, () => agent.ids().length === 0);
  }, 180_000);

  test("MEMVECTORS-3 is down: writes are acknowledged and found, the state shows it, and the vectors follow", async () => {
    const agent = await newAgent();
    vectors.mood = "down";
    const [memory] = await agent.write("The ferry leaves at nine.");
    expect((await agent.search("ferry")).matches[0]?.memory.id).toBe(memory?.id);
    await expect
      .poll(() => agent.pending())
      .toMatchObject({ vectors: 1, error: "The index is down.", since: expect.any(String) });
    unwrap(await agent.stub.updateMemory(WRITER, memory?.id ?? "", { content: "The ferry leaves at ten." }));
    expect(agent.ids()).toEqual([]);
    vectors.mood = "well";
    await later(agent, isSettled(agent));
    expect(agent.ids()).toHaveLength(1);
  });

  test("MEMVECTORS-3 MEMVECTORS-4 is silent: an unanswered write is repeated, and a late write of an erased memory leaves no vector", async () => {
    const agent = await newAgent();
    vectors.mood = "late";
    const sent = vectors.upserts.length;
    const [kept, erased] = await agent.write("The ferry leaves at nine.", "The tower is closed.");
    await expect.poll(() => vectors.upserts.length).toBe(sent + 1);
    expect((await agent.search("ferry")).matches[0]?.memory.id).toBe(kept?.id);
    unwrap(await agent.stub.deleteMemory(WRITER, erased?.id ?? ""));
    expect(unwrap(await agent.stub.listMemories(READER)).items.map(({ id }) => id)).toEqual([kept?.id]);
    expect((await agent.pending()).vectors).toBeGreaterThan(0);
    vectors.mood = "well";
    await crash();
    vectors.comeLate();
    expect(agent.ids()).toHaveLength(2);
    await later(agent, isSettled(agent));
    expect(agent.ids()).toHaveLength(1);
  });
});
