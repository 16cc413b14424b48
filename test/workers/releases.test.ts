/**
 * Storage of released versions (`test/fixtures/releases`) in real actors: they wake under today's code, their active
 * turns end by the wake-up job alone, and they answer at the Worker's front door.
 */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { ulid } from "ulid";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { migrate } from "../../src/d1/migrate.ts";
import type { SessionEvent, StoredSession } from "../../src/memory/session/session-event.ts";
import type { ActorAddress, Envelope } from "../../src/protocol/envelope.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { MailboxPeer } from "../../src/protocol/mailbox-api.ts";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { user } from "../support/events.ts";
import { RECORDED_ENDS, RECORDED_ENTRIES } from "../support/releases/ends.ts";
import { directoryViews } from "../support/releases/views.ts";
import { openGate, runsOf } from "./provider.ts";
import { activeTurns, agentOf, dump, install, recorded, revive, setVersion, storesOf } from "./released.ts";
import { createAgent, createConversation, request } from "./world.ts";

/** The conversations with turns of their own only. `release-work.test.ts` wakes the others. */
const TURNS = recorded("conversation").filter(({ name }) => !(name in RECORDED_ENTRIES));

describe.each(TURNS)("G4 conversation $name of $release on workerd", (recording) => {
  test("wakes by its alarm, ends its turns without a second run of a `once` tool, and continues", async () => {
    const conversation = await revive(recording);
    const active = activeTurns(recording);
    for (const { key } of active) await openGate(key, "hold");
    expect(await conversation.wake(), "the release's own wake-up").toBe(true);
    const isInterrupted = (await conversation.journal()).some(({ type }) => type === "tool.interrupted");
    if (isInterrupted) await conversation.passLateResultTime();
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
  "G4 UPGRADE-3 MAIL-19 a conversation of a newer version answers 503 everywhere, keeps its wake-up, and stays unchanged",
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
    await expectDeferred(conversation.stub, { kind: "conversation", tenant: "test", id: conversation.id });
    expect(await dump(conversation.stub)).toEqual(before);

    await setVersion(conversation.stub, "conversation", 1);
    const [turn = { id: "", key: "" }] = activeTurns(recording);
    await openGate(turn.key, "hold");
    expect(await conversation.wake()).toBe(true);
    expect(await conversation.ended(turn.id)).toMatchObject({ status: "completed" });
  },
);

test("UPGRADE-4 an unrelated UNAVAILABLE during a conversation's start ends only that start: the next start serves requests and envelopes", async () => {
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

/** Expects that the actor defers an envelope, even its last copy. */
async function expectDeferred(stub: DurableObjectStub, to: ActorAddress): Promise<void> {
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

describe.each(recorded("agent"))("G4 agent $name of $release on workerd", (recording) => {
  const stub = agentOf(recording);
  // SAFETY: the class is made by the application; these are methods of it.
  const agent = stub as unknown as AgentPeer;
  const { id } = recording.views.identity as { id: string };

  beforeAll(() => install(stub, recording));

  test("answers with its identity and its conversations, and creates new conversations", async () => {
    const { identity, conversations } = recording.views as Record<string, { items: object[] }>;
    const response = await request(`/api/agents/${id}`);
    expect([response.status, await response.json()]).toMatchObject([200, identity ?? {}]);
    const conversation = await createConversation(id);
    const listed = await agent.conversations();
    expect(listed.value.items.slice(0, -1)).toEqual(conversations?.items);
    expect(listed.value.items.at(-1)?.id).toBe(conversation.id);
  });

  test("UPGRADE-3 MAIL-19 of a newer version: 503, and untouched", async () => {
    await setVersion(stub, "identity", 1_000);
    const before = await dump(stub);
    const response = await request(`/api/agents/${id}`);
    expect([response.status, await response.json()]).toMatchObject([503, { code: "UNAVAILABLE" }]);
    await expectDeferred(stub, { kind: "agent", tenant: "test", id });
    expect(await dump(stub)).toEqual(before);
  });
});

// SAFETY: the classes of the application are among the exports.
const { Coordinator, Trigger } = exports as unknown as Record<
  "Coordinator" | "Trigger",
  DurableObjectNamespace
>;

/** The recorded runs without work of their own: the Worker does not deploy their task. */
const IDLE_RUNS = ["run-at-gate", "run-failed", "run-completed"];

test.each(recorded("run").filter(({ name }) => IDLE_RUNS.includes(name)))(
  "G4 run $name of $release on workerd: its view, and the answer of its gate",
  async (recording) => {
    const { run } = recording.views as { run: RunView };
    const { id, status, gates } = run;
    await install(Coordinator.getByName(`test:${id}`), recording);
    const read = async () => (await request(`/api/runs/${id}`)).json<RunView>();
    expect(await read()).toEqual(run);
    for (const { operationId } of gates) {
      const body = JSON.stringify({ answer: { well: true } });
      await request(`/api/runs/${id}/gates/${operationId}`, { method: "POST", body });
    }
    expect(await read()).toMatchObject({ status: status === "waiting" ? "completed" : status });
  },
);

test.each(recorded("trigger").filter(({ name }) => name === "trigger-webhook"))(
  "G4 trigger $name of $release on workerd: its view",
  async (recording) => {
    const { trigger } = recording.views as { trigger: { id: string } };
    await install(Trigger.getByName(`test:${trigger.id}`), recording);
    expect(await (await request(`/api/triggers/${trigger.id}`)).json()).toEqual(trigger);
  },
);

test.each(recorded("memory"))(
  "G4 memory of an agent of $release on workerd: its memories",
  async (recording) => {
    const { memories } = recording.views as { memories: { memory: { id: string } }[] };
    await install(exports.Agent.getByName("test:keeper"), recording);
    const path = "/api/agents/keeper/memories";
    const listed = await (await request(path)).json<{ memories: { id: string }[] }>();
    expect(listed.memories.map(({ id }) => id)).toEqual(memories.map(({ memory }) => memory.id));
    const { matches } = await (await request(`${path}/search?q=tea`)).json<{ matches: object[] }>();
    expect(matches[0]).toMatchObject({ memory: { content: "Ada hates tea." } });
  },
);

describe.each(recorded("sessions"))("G4 a plain SessionAgent of $release on workerd", (recording) => {
  test("its sessions and events, including long events, and the numbers after them", async () => {
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

  test("MAIL-19 UPGRADE-3 of a newer version: envelopes are deferred, and its storage stays unchanged", async () => {
    const name = `test:newer-than-${recording.release}`;
    const bare = exports.PlainSessionAgent.getByName(name);
    await install(bare, recording);
    await runInDurableObject(bare, (_, state) => storesOf(state).keyValue.put("dramatis:sessions", 1_000));
    await evictDurableObject(bare);
    const before = await dump(bare);
    await expectDeferred(bare, { kind: "plain-session-agent", tenant: "test", id: name.slice(5) });
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
      ...recording.storage.tables.flatMap(({ name, sql, rows, indexes = [] }) => [
        ...[sql, ...indexes].map((statement) => database.prepare(statement)),
        ...rows.map((row) =>
          database.prepare(`INSERT INTO "${name}" VALUES (${row.map(() => "?").join(", ")})`).bind(...row),
        ),
      ]),
    ]);
    // A separate reference, as in another isolate: it has no cached knowledge of this database.
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
    await directory.putConversation("test", { ...first, title: "Renamed" }, 2);
    expect((await directory.conversations(principal)).items[0]).toEqual({ ...first, title: "Renamed" });
    const migrations = recording.storage.tables.find(({ name }) => name === "dramatis_migrations");
    const applied = await database.prepare("SELECT * FROM dramatis_migrations").raw();
    expect(applied.slice(0, migrations?.rows.length)).toEqual(migrations?.rows);
    // The other files share the database.
    await database.batch(await drops());
    await migrate(fresh());
  },
);
