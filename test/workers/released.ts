/** The recordings of released versions (`test/fixtures/releases`), and the actors that wake on them. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import {
  decodeRecording,
  dumpStorage,
  loadStorage,
  type Recorded,
  type Recording,
} from "../support/releases/format.ts";
import { RECORDED_PROVIDER } from "../support/releases/library.ts";
import { request, TestConversation } from "./world.ts";

export type Released = Recording & { release: string };

const FILES = import.meta.glob<string>("../fixtures/releases/*/*.jsonl", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The recordings, with the provider of this run in the place of the recorded one. */
const RECORDINGS: Released[] = Object.entries(FILES).map(([path, text]) => ({
  release: path.split("/").at(-2) ?? "",
  ...decodeRecording(text.replaceAll(RECORDED_PROVIDER, env.PROVIDER_URL)),
}));

export const recorded = (of: Recorded) => RECORDINGS.filter((recording) => recording.of === of);

export const storesOf = ({ storage }: DurableObjectState) => ({
  database: new DurableSqlDatabase(storage),
  keyValue: new DurableKeyValue(storage),
});

/** The entries of the actor itself, without the entries of the SDK. */
const ownEntries = (keyValue: DurableKeyValue) =>
  keyValue
    .list("", 10_000)
    .filter(([key]) =>
      /^(?:conversation|identity|memory:|run$|trigger$|schema|dramatis:|seen:|tool:)/.test(key),
    );

export const dump = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_, state) => {
    const { database, keyValue } = storesOf(state);
    const { tables } = dumpStorage(database, keyValue);
    return { tables, entries: ownEntries(keyValue) };
  });

/** Puts a recording into an actor, in place of all it has, and takes the actor out of memory. */
export async function install(stub: DurableObjectStub, { storage }: Recording): Promise<void> {
  await runInDurableObject(stub, (_, state) => {
    const { database, keyValue } = storesOf(state);
    state.storage.transactionSync(() => {
      for (const [key] of ownEntries(keyValue)) keyValue.delete(key);
      for (const { name } of dumpStorage(database, keyValue).tables) database.run(`DROP TABLE "${name}"`);
      loadStorage(storage, database, keyValue);
    });
  });
  await evictDurableObject(stub);
}

/** The actor of a recorded agent. */
export function agentOf({ views }: Recording): DurableObjectStub {
  // SAFETY: the views of an agent were written by `agentViews`.
  const { id } = views.identity as { id: string };
  return exports.Agent.getByName(`test:${id}`);
}

/** The wake-up of an actor, as every release leaves it in the SDK's job queue under the id of its job. */
export async function arm(
  stub: DurableObjectStub,
  milliseconds: number,
  job = "dramatis-wakeups",
): Promise<void> {
  await runInDurableObject(stub, async (_, { storage }) => {
    const time = Date.now() + milliseconds;
    storage.sql.exec(
      `INSERT OR REPLACE INTO cf_agents_jobs (id, capability, fn, time)
        VALUES (?, ?, 'wake', ?)`,
      ...[job, job, time],
    );
    await storage.setAlarm(Date.now() + 10_000);
  });
}

/** Writes another version into an actor's record. */
export async function setVersion(stub: DurableObjectStub, key: string, version: number): Promise<void> {
  await runInDurableObject(stub, (_, state) => {
    const { keyValue } = storesOf(state);
    keyValue.put(key, { ...keyValue.get<object>(key), schema: version });
  });
  await evictDurableObject(stub);
}

/** The conversation of a recording, asleep, with its wake-up due in `dueIn` milliseconds. */
export async function revive(recording: Recording, dueIn = 10_000): Promise<TestConversation> {
  // SAFETY: the recording's own snapshot wrote it.
  const { conversation } = recording.views.snapshot as { conversation: { id: string } };
  const revived = new TestConversation(conversation.id);
  // The SDK makes its own tables when an actor is first spoken to.
  await request(revived.path);
  await arm(revived.stub, dueIn);
  await install(revived.stub, recording);
  return revived;
}

/** Keys of the scripts of a recording's turns that were active. */
export function activeTurns({ views }: Recording): { id: string; key: string }[] {
  // SAFETY: the views of a conversation were written by `conversationViews`.
  const turns = views.turns as { id: string; status: string; input: string }[];
  return turns
    .filter(({ status }) => status === "active")
    .map(({ id, input }) => ({ id, key: JSON.parse(input).key }));
}
