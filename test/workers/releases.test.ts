/**
 * What released versions stored (`test/fixtures/releases`), put into real actors: they wake under today's code, their
 * turns in flight end by the wake-up job alone, and they answer at the Worker's front door.
 */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { ulid } from "ulid";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { migrate } from "../../src/d1/migrate.ts";
import type { SessionEvent, StoredSession } from "../../src/memory/session/types.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import type { ActorAddress, Envelope } from "../../src/protocol/envelope.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { MailboxPeer } from "../../src/protocol/mailbox-api.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { user } from "../support/events.ts";
import { RECORDED_ENDS } from "../support/releases/ends.ts";
import {
  decodeRecording,
  dumpStorage,
  loadStorage,
  type Recorded,
  type Recording,
} from "../support/releases/format.ts";
import { RECORDED_PROVIDER } from "../support/releases/library.ts";
import { directoryViews } from "../support/releases/views.ts";
import { openGate, runsOf } from "./provider.ts";
import { createAgent, createConversation, request, TestConversation } from "./world.ts";

type Released = Recording & { release: string };

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

const recorded = (of: Recorded) => RECORDINGS.filter((recording) => recording.of === of);

const storesOf = ({ storage }: DurableObjectState) => ({
  database: new DurableSqlDatabase(storage),
  keyValue: new DurableKeyValue(storage),
});

/** What the actor itself keeps, without what the SDK does. */
const ownEntries = (keyValue: DurableKeyValue) =>
  keyValue
    .list("", 10_000)
    .filter(([key]) => /^(?:conversation|identity|schema|dramatis:|seen:|tool:)/.test(key));

const dump = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_, state) => {
    const { database, keyValue } = storesOf(state);
    const { tables } = dumpStorage(database, keyValue);
    return { tables, entries: ownEntries(keyValue) };
  });

/** Puts a recording into an actor, in place of all it has, and takes the actor out of memory. */
async function install(stub: DurableObjectStub, { storage }: Recording): Promise<void> {
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

/** A wake-up as every release leaves it in the SDK's job queue: `window` while turns are active. */
async function arm(stub: DurableObjectStub, name: string, milliseconds: number): Promise<void> {
  await runInDurableObject(stub, async (_, { storage }) => {
    const time = Date.now() + milliseconds;
    storage.sql.exec(
      `INSERT OR REPLACE INTO cf_agents_jobs (id, capability, fn, time)
        VALUES (?, 'dramatis-wakeups', ?, ?)`,
      `dramatis:${name}`,
      name,
      time,
    );
    await storage.setAlarm(Date.now() + 10_000);
  });
}

/** Writes another version into an actor's record. */
async function setVersion(stub: DurableObjectStub, key: string, version: number): Promise<void> {
  await runInDurableObject(stub, (_, state) => {
    const { keyValue } = storesOf(state);
    keyValue.put(key, { ...keyValue.get<object>(key), schema: version });
  });
  await evictDurableObject(stub);
}

/** The conversation of a recording, asleep, its wake-up armed. */
async function revive(recording: Recording): Promise<TestConversation> {
  // SAFETY: the recording's own snapshot wrote it.
  const { conversation } = recording.views.snapshot as { conversation: { id: string } };
  const revived = new TestConversation(conversation.id);
  // The SDK makes its own tables when an actor is first spoken to.
  await request(revived.path);
  await arm(revived.stub, "window", 10_000);
  await install(revived.stub, recording);
  return revived;
}

/** Keys of the scripts of a recording's turns that were active. */
function activeTurns({ views }: Recording): { id: string; key: string }[] {
  // SAFETY: the views of a conversation were written by `conversationViews`.
  const turns = views.turns as { id: string; status: string; input: string }[];
  return turns
    .filter(({ status }) => status === "active")
    .map(({ id, input }) => ({ id, key: JSON.parse(input).key }));
}

describe.each(recorded("conversation"))("G4 conversation $name of $release on workerd", (recording) => {
  test("wakes by itself, ends its turns without a second run of a `once` tool, and goes on", async () => {
    const conversation = await revive(recording);
    const active = activeTurns(recording);
    for (const { key } of active) await openGate(key, "hold");
    expect(await conversation.wake(), "the release's own wake-up").toBe(true);
    const isInterrupted = (await conversation.journal()).some(({ type }) => type === "tool.interrupted");
    if (isInterrupted) await conversation.outwait();
    const ends = await Promise.all(active.map(({ id }) => conversation.ended(id)));
    expect(ends.map(({ status, moves }) => [status, moves.at(-1)?.reasoning])).toEqual(
      RECORDED_ENDS[recording.name],
    );
    for (const { key } of active) {
      expect((await runsOf(key)).filter(({ tool }) => tool === "charge")).toEqual([]);
    }

    const { journal, messages, frames } = recording.views as Record<string, object[]>;
    expect((await conversation.journal()).slice(0, journal?.length)).toMatchObject(journal ?? []);
    const said = await conversation.messages();
    for (const message of messages ?? []) expect(said).toContainEqual(message);
    const { turnId } = await conversation.say(
      JSON.stringify({ key: crypto.randomUUID(), replies: [[{ text: "And after that?" }]] }),
    );
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });

    const client = await conversation.connect({ from: 0 });
    await client.frame("turn.finalized", (frame: Frame) => frame.turnId === turnId);
    expect(client.frames.slice(0, frames?.length)).toMatchObject(frames ?? []);
    expect(client.state.messages.at(-1)).toMatchObject({ content: "And after that?" });
    // The recordings have large results, and open readers of all of them would wait for each other.
    client.close();
  });
});

test.each(recorded("conversation").filter(({ name }) => name === "during-model-call"))(
  "G4 UPGRADE-3 MAIL-19 a conversation of a newer version answers 503 everywhere, keeps its wake-up, and stays as it is",
  async (recording) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => log.mockRestore());
    const conversation = await revive(recording);
    await setVersion(conversation.stub, "conversation", 1_000);
    const before = await dump(conversation.stub);
    const problem = { code: "UNAVAILABLE", detail: expect.stringContaining("Deploy that release again") };
    for (const path of ["", "/messages", "/turns", "/journal", "/events"]) {
      const response = await request(`${conversation.path}${path}`);
      expect([response.status, await response.json()]).toMatchObject([503, problem]);
    }
    expect(await conversation.refused({ content: "Hello?" })).toEqual({ status: 503, code: "UNAVAILABLE" });
    const client = await conversation.connect();
    await client.frame("error", ({ data }) => data.code === "UNAVAILABLE");
    await client.whenClosed();
    for (let time = 0; time < 2; time++) expect(await conversation.wake(), "still armed").toBe(true);
    await expectTurnedAway(conversation.stub, { kind: "conversation", tenant: "test", id: conversation.id });
    expect(await dump(conversation.stub)).toEqual(before);

    await setVersion(conversation.stub, "conversation", 1);
    const [turn = { id: "", key: "" }] = activeTurns(recording);
    await openGate(turn.key, "hold");
    expect(await conversation.wake()).toBe(true);
    expect(await conversation.ended(turn.id)).toMatchObject({ status: "completed" });
  },
);

test("UPGRADE-4 another UNAVAILABLE of a conversation's start ends that start only: the next one serves requests and envelopes", async () => {
  const { stub, path, id } = await createConversation(await createAgent("test/handy"));
  await evictDurableObject(stub);
  const reading = await runInDurableObject(stub, (_, { storage }) =>
    vi.spyOn(storage.kv, "get").mockImplementationOnce(() => {
      throw new DramatisError("UNAVAILABLE", "A part of the platform is away.", { retriable: true });
    }),
  );
  expect((await request(path)).status).toBe(500);
  expect(reading).toHaveBeenCalledOnce();
  expect((await request(path)).status).toBe(200);
  const answer = await receive(stub, { kind: "conversation", tenant: "test", id }, false);
  expect(answer).toMatchObject({ error: { message: expect.stringContaining("unheard.of") } });
});

/** Sends an envelope of a type that no actor receives. */
function receive(stub: DurableObjectStub, to: ActorAddress, last: boolean) {
  // SAFETY: every actor is one; the type of its stub nests too deep for an envelope's JSON.
  const peer = stub as unknown as MailboxPeer;
  const envelope: Envelope = {
    operationId: `op_${ulid()}`,
    from: { kind: "courier", tenant: to.tenant, id: "somebody" },
    to,
    type: "unheard.of",
    body: null,
    sentAt: Date.now(),
  };
  return peer.receive(envelope, { number: last ? 10 : 1, last });
}

/** An envelope to it, the last copy too, is told to come later. */
async function expectTurnedAway(stub: DurableObjectStub, to: ActorAddress): Promise<void> {
  for (const last of [false, true]) {
    expect(await receive(stub, to, last)).toMatchObject({
      type: "busy",
      error: { code: "UNAVAILABLE" },
    });
  }
}

/** The methods of an agent that tests call as other actors do. */
interface AgentPeer {
  conversations(): Promise<{ value: { items: { id: string }[] } }>;
}

const recordedAgent = exports.Agent.getByName("test:recorded");

describe.each(recorded("agent"))("G4 agent of $release on workerd", (recording) => {
  const stub = recordedAgent;
  // SAFETY: the class is made by the application; these are methods of it.
  const agent = stub as unknown as AgentPeer;

  beforeAll(() => install(stub, recording));

  test("answers with its identity and its conversations, and has new ones", async () => {
    const { identity, conversations } = recording.views as Record<string, { items: object[] }>;
    const response = await request("/api/agents/recorded");
    expect([response.status, await response.json()]).toMatchObject([200, identity ?? {}]);
    const conversation = await createConversation("recorded");
    const listed = await agent.conversations();
    expect(listed.value.items.slice(0, -1)).toEqual(conversations?.items);
    expect(listed.value.items.at(-1)?.id).toBe(conversation.id);
  });

  test("UPGRADE-3 MAIL-19 of a newer version: 503, and untouched", async () => {
    await setVersion(stub, "identity", 1_000);
    const before = await dump(stub);
    const response = await request("/api/agents/recorded");
    expect([response.status, await response.json()]).toMatchObject([503, { code: "UNAVAILABLE" }]);
    await expectTurnedAway(stub, { kind: "agent", tenant: "test", id: "recorded" });
    expect(await dump(stub)).toEqual(before);
  });
});

describe.each(recorded("sessions"))("G4 a plain SessionAgent of $release on workerd", (recording) => {
  test("its sessions and events, long ones too, and the numbers after them", async () => {
    const stub = await getAgentByName(exports.PlainSessionAgent, `sessions of ${recording.release}`);
    await install(exports.PlainSessionAgent.getByName(`sessions of ${recording.release}`), recording);
    const { sessions, events } = recording.views as { sessions: StoredSession[]; events: SessionEvent[][] };
    expect((await stub.listSessions()).items).toEqual(sessions);
    for (const [index, { id }] of sessions.entries()) {
      expect(await stub.loadEvents(id, { limit: 1_000 })).toEqual(events[index]);
    }
    const index = events.findIndex((list) => list.length > 5);
    const id = sessions[index]?.id ?? "";
    const newest = events[index]?.at(-1);
    const again = await stub.loadEvents(id, { limit: 2 });
    await stub.appendEvents(id, [...again, { ...user("of today"), content: "new" }]);
    const [appended] = await stub.loadEvents(id, { limit: 1 });
    expect(appended?.id).toBe("of today");
    expect(appended?.seq).toBe((newest?.seq ?? 0) + 3);
  });

  test("UPGRADE-3 of a newer version: refused, and untouched", async () => {
    const name = `newer than ${recording.release}`;
    const bare = exports.PlainSessionAgent.getByName(name);
    await install(bare, recording);
    await runInDurableObject(bare, (_, state) => storesOf(state).keyValue.put("dramatis:sessions", 1_000));
    await evictDurableObject(bare);
    const before = await dump(bare);
    const stub = await getAgentByName(exports.PlainSessionAgent, name);
    const failure = await stub.listSessions().then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: "UNAVAILABLE" });
    expect(await dump(bare)).toEqual(before);
  });

  test("MAIL-19 UPGRADE-3 of a newer version: envelopes are told to come later, and it is untouched", async () => {
    const name = `test:newer-than-${recording.release}`;
    const bare = exports.PlainSessionAgent.getByName(name);
    await install(bare, recording);
    await runInDurableObject(bare, (_, state) => storesOf(state).keyValue.put("dramatis:sessions", 1_000));
    await evictDurableObject(bare);
    const before = await dump(bare);
    await expectTurnedAway(bare, { kind: "plain-session-agent", tenant: "test", id: name.slice(5) });
    expect(await dump(bare)).toEqual(before);
  });
});

test.each(recorded("directory"))(
  "G4 MIGRATE-1 directory of $release in D1: its lists, and it takes new rows",
  async (recording) => {
    // SAFETY: `test/wrangler.jsonc` binds it.
    const database = Reflect.get(env, "DB") as D1Database;
    const drops = async () => {
      const tables = await database
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
        .all<{ name: string }>();
      return tables.results.map(({ name }) => database.prepare(`DROP TABLE "${name}"`));
    };
    await database.batch([
      ...(await drops()),
      ...recording.storage.tables.flatMap(({ name, sql, rows }) => [
        database.prepare(sql),
        ...rows.map((row) =>
          database.prepare(`INSERT INTO "${name}" VALUES (${row.map(() => "?").join(", ")})`).bind(...row),
        ),
      ]),
    ]);
    // A reference of its own, as another isolate has: nothing is known of this database yet.
    const fresh = () =>
      ({
        prepare: (sql: string) => database.prepare(sql),
        batch: (all: D1PreparedStatement[]) => database.batch(all),
      }) as unknown as D1Database;
    expect(await directoryViews(fresh())).toEqual(recording.views);
    const directory = new D1Directory(fresh());
    const principal = { subject: "op", tenant: "test", roles: ["operator" as const] };
    const [first] = (await directory.conversations(principal)).items;
    if (first === undefined) throw new Error("Nothing is listed.");
    await directory.putConversation("test", { ...first, title: "Renamed" });
    expect((await directory.conversations(principal)).items[0]).toEqual({ ...first, title: "Renamed" });
    const migrations = recording.storage.tables.find(({ name }) => name === "dramatis_migrations");
    const applied = await database.prepare("SELECT * FROM dramatis_migrations").raw();
    expect(applied.slice(0, migrations?.rows.length)).toEqual(migrations?.rows);
    // The recording has no indexes, and the other files share the database.
    await database.batch(await drops());
    await migrate(fresh());
  },
);
