/**
 * Storage of every released version, with active turns, under today's code. `scripts/record-release.ts` makes the
 * recordings with the code of each release.
 */
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LeaseStore } from "../../src/agents/agent/lease-store.ts";
import { AGENT_SCHEMA, AgentStore } from "../../src/agents/agent/store.ts";
import { type ActorStores, newestVersion } from "../../src/agents/base/storage/schema-upgrade.ts";
import { openSessionTables, SESSIONS_SCHEMA } from "../../src/agents/base/storage/session-tables.ts";
import { CONVERSATION_SCHEMA } from "../../src/agents/conversation/store/conversation-tables.ts";
import { operationOf } from "../../src/agents/coordinator/core/operations.ts";
import { RunDatabase } from "../../src/agents/coordinator/store/run-database.ts";
import { TriggerStore } from "../../src/agents/trigger/store/trigger-store.ts";
import { applyFrame } from "../../src/client/reducer.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import { MIGRATIONS } from "../../src/d1/d1-tables.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import { SessionStore } from "../../src/memory/session/session-store.ts";
import { nodeD1 } from "../../src/ports/node/node-d1.ts";
import type { ActorDatabase } from "../../src/ports/sql-database.ts";
import { VERSION } from "../../src/shared/version.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";
import { Crossings, crossKeyValue, crossSql } from "../support/crossings.ts";
import { user } from "../support/events.ts";
import {
  answerRun,
  beginMemory,
  beginRun,
  beginTrigger,
  DELIVERY,
  EDITOR,
  playRun,
  WRITER,
} from "../support/releases/actor-scenes.ts";
import { RECORDED_ENDS, RECORDED_ENTRIES, RECORDED_OUTPUTS } from "../support/releases/ends.ts";
import { finish } from "../support/releases/finish.ts";
import {
  decodeRecording,
  dumpStorage,
  encodeRecording,
  type Recorded,
  type Recording,
} from "../support/releases/format.ts";
import { recordAll } from "../support/releases/record.ts";
import { connectPartner, FIXTURES, RECORDINGS, recorded, staged } from "../support/releases/recordings.ts";
import { schemaShape, schemaVersion } from "../support/releases/shape.ts";
import { type Life, Stage } from "../support/releases/stage.ts";
import { RECORDED_USER } from "../support/releases/take.ts";
import {
  agentViews,
  conversationViews,
  directoryViews,
  memoryViews,
  replayed,
  runViews,
  sessionViews,
  triggerViews,
} from "../support/releases/views.ts";

let recordings: Promise<Recording[]> | undefined;

/** Returns the recordings of today's code. */
function today(): Promise<Recording[]> {
  recordings ??= recordAll();
  return recordings;
}

const dump = ({ database, keyValue }: ActorStores) => dumpStorage(database, keyValue);
const sessionsOf = (stage: Stage) =>
  new SessionStore({ ...openSessionTables(stage), clock: stage.clock, ids: stage.ids });

/** Opens an actor's storage as its first wake does. */
function open(of: Recorded, stores: ActorStores & { database: ActorDatabase }): void {
  if (of === "conversation") new Stage().begin(stores.database, stores.keyValue).runtime.busy;
  else if (of === "run") new RunDatabase(stores.database, stores.keyValue).checkVersion();
  else if (of === "trigger") new TriggerStore(stores).checkVersion();
  else if (of !== "memory") openSessionTables(stores);
  if (of === "agent" || of === "memory") new AgentStore(stores, () => "recorded").identity();
}

const errors = vi.spyOn(console, "error");

beforeEach(() => {
  errors.mockReset();
  errors.mockImplementation(() => undefined);
});

afterEach(() => expect(errors.mock.calls, "no error was reported").toEqual([]));

test("G4 the released version is recorded", () => {
  expect(
    RECORDINGS.map(({ release }) => release),
    "Run `node scripts/record-release.ts` with the commit that raises the version.",
  ).toContain(VERSION);
});

describe.each(recorded("conversation"))("G4 conversation $name of $release", (recording) => {
  test("its views, and the replay of its journal, equal the recorded ones", () => {
    const stage = staged(recording);
    expect(conversationViews(stage.begin())).toMatchObject(recording.views);
  });

  test("its turns end, no `once` tool runs again, its clients follow, and it continues", async () => {
    const stage = staged(recording);
    // SAFETY: the recording's own client wrote it.
    let client = recording.views.client as LiveConversation;
    await connectPartner(stage, recording);
    const life = await finish(stage, recording);
    const { turns } = conversationViews(life) as {
      turns: { status: string; moves: { reasoning?: string }[] }[];
    };
    expect(typesAfter(recording, life)).toMatchObject(RECORDED_ENTRIES[recording.name] ?? {});
    const active = (recording.views.turns as { status: string }[]).flatMap(({ status }, index) =>
      status === "active" ? [index] : [],
    );
    const ends = active.map((index) => turns[index]);
    expect(ends.map((turn) => [turn?.status, turn?.moves.at(-1)?.reasoning])).toEqual(
      RECORDED_ENDS[recording.name],
    );
    expect(stage.runs.filter(({ tool }) => tool === "charge")).toEqual([]);

    for (const frame of life.queries.replay(life.runtime.state, client.seq ?? 0).frames) {
      client = applyFrame(client, frame);
    }
    // SAFETY: the views have a client.
    expect(client).toEqual(conversationViews(life).client as LiveConversation);
    const frames = recording.views.frames as object[];
    expect(withoutAsks(replayed(life).slice(0, frames.length))).toMatchObject(withoutAsks(frames));

    // The conversation of a call ends with the call.
    if (life.runtime.state.status === "completed") return;
    await say(life, stage, "And after that?");
    const { state } = life.runtime;
    expect(life.queries.turns({ order: "desc", limit: 1 }).items).toMatchObject([{ status: "completed" }]);
    expect(life.queries.messages(state, { order: "desc", limit: 1 }).items).toMatchObject([
      { content: "And after that?" },
    ]);
    const again = stage.begin();
    expect(conversationViews(again)).toEqual(conversationViews(life));
  });
});

/** Returns frames without the open requests of called agents, which a replay shows as they are now. */
function withoutAsks(frames: readonly object[]): object[] {
  return JSON.parse(JSON.stringify(frames), (key, value) => (key === "asks" ? undefined : value));
}

/** Returns the number of later entries of each type. */
function typesAfter({ views }: Recording, { runtime, queries }: Life): Record<string, number> {
  const entries = queries.journal(runtime.state, { limit: 200 }).items;
  const later = entries.slice((views.journal as unknown[]).length);
  return Object.fromEntries(
    Object.entries(Object.groupBy(later, ({ type }) => type)).map(([type, all = []]) => [type, all.length]),
  );
}

test.each(recorded("conversation").filter(({ name }) => name === "several-snapshots"))(
  "G4 WINDOW-3 a turn in flight of $release sees the turns that had completed before it, and no others",
  async (recording) => {
    const { release, name } = recording;
    const stage = staged(recording);
    stage.isOpen = true;
    const { runtime } = stage.begin();
    await runtime.wake();
    await stage.until(() => !runtime.busy);
    const given = Object.groupBy(stage.requests, (messages) => {
      const last = messages.findLast(({ role }) => role === "user");
      return String(JSON.parse(last?.content ?? "").key);
    });
    const answers = (requests: typeof stage.requests = []) =>
      requests.map((messages) =>
        messages.filter(({ role }) => role === "assistant").flatMap(({ content }) => content || []),
      );
    expect(answers(given[`${release}-${name}-1`])).toEqual([["before"]]);
    expect(answers(given[`${release}-${name}-3`])).toEqual([["before", "In between."]]);
  },
);

/** A turn with the given text as its answer. */
async function say({ runtime }: Life, stage: Stage, text: string, key?: string) {
  const content = JSON.stringify({ key: text, replies: [[{ text }]] });
  const started = await runtime.accept({
    type: "conversation.user.message",
    ...(key === undefined ? {} : { id: key }),
    caller: { type: "user", userId: RECORDED_USER },
    data: { content },
  });
  await stage.until(() => !runtime.busy);
  return started;
}

test.each(recorded("conversation").filter(({ name }) => name === "completed"))(
  "G4 an idempotency key of $release answers the turn that it started",
  async (recording) => {
    const stage = staged(recording);
    const { runtime, queries } = stage.begin();
    const [first] = queries.turns().items;
    const { input } = queries.turn(runtime.state, first?.id ?? "");
    const signal = {
      type: "conversation.user.message",
      id: "key one",
      caller: { type: "user", userId: RECORDED_USER },
    } as const;
    expect(await runtime.accept({ ...signal, data: { content: input } })).toMatchObject({
      turnId: first?.id,
      repeated: true,
    });
    await expect(runtime.accept({ ...signal, data: { content: "another" } })).rejects.toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
    });
  },
);

test.each(recorded("agent"))(
  "G4 agent $name of $release: its identity and its conversations",
  (recording) => {
    const stage = staged(recording);
    const store = new AgentStore(stage, () => "recorded");
    const { budget, ...views } = recording.views;
    expect(agentViews(store)).toEqual(views);
    if (budget !== undefined) expect(new LeaseStore(stage).view()).toEqual(budget);
    expect(sessionsOf(stage).list()).toEqual({ items: [] });
    const identity = store.identity();
    const before = store.conversations().items.length;
    store.update({ ...identity, projectIds: ["changed"] });
    store.addConversation(`conv_${stage.ids.ulid()}`, stage.clock.now());
    const again = new AgentStore(stage, () => "recorded");
    expect(again.identity()).toEqual({ ...identity, projectIds: ["changed"] });
    expect(again.conversations().items).toHaveLength(before + 1);
  },
);

test.each(recorded("sessions"))(
  "G4 sessions of $release: events, including long events, and the numbers after them",
  (recording) => {
    const stage = staged(recording);
    const store = sessionsOf(stage);
    expect(sessionViews(store)).toEqual(recording.views);
    const [session = { id: "" }] = store.list().items.filter(({ metadata }) => metadata !== null);
    const [newest] = store.load(session.id, { limit: 1 });
    store.append(session.id, [...store.load(session.id, { limit: 1_000 }), user("of today")]);
    expect(store.load(session.id, { limit: 1 })[0]?.seq, "two newer sessions were deleted").toBe(
      (newest?.seq ?? 0) + 3,
    );
    store.delete(session.id);
    expect(stage.database.all("SELECT 1 FROM cf_agents_long_text")).toEqual([]);
  },
);

test.each(recorded("directory"))("G4 directory of $release: its lists", async (recording) => {
  const stage = staged(recording);
  expect(await directoryViews(nodeD1(stage.database))).toEqual(recording.views);
});

describe.each(recorded("run"))("G4 run $name of $release", (recording) => {
  test("its views are as recorded", () => {
    expect(plain(runViews(beginRun(staged(recording))))).toEqual(recording.views);
  });

  test("it ends after its tasks, its gate, its sub-workflow, or a retry", async () => {
    const stage = staged(recording);
    stage.isOpen = true;
    const runtime = beginRun(stage);
    await runtime.wake();
    const { status } = runtime.state;
    if (status === "failed") await runtime.retry(RECORDED_USER, { seq: runtime.state.seq });
    const [below] = [...runtime.state.tokens.values()].filter(({ node }) => node === "pages");
    if (below !== undefined) {
      const operationId = operationOf(runtime.state.record, below.id);
      await runtime.end({ operationId, attempt: 1 }, { output: { texts: [] } });
    } else if (status !== "completed") {
      await playRun(stage, runtime, () => runViews(runtime).gates.length > 0);
      await answerRun(runtime);
    }
    expect(runtime.state).toMatchObject({ status: "completed" });
    expect(runtime.state.output).toEqual(RECORDED_OUTPUTS[recording.name]);
  });
});

/** Returns a value as JSON, as recordings store it. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe.each(recorded("trigger"))("G4 trigger $name of $release", (recording) => {
  const starting = (stage: Stage) => {
    const keys: string[] = [];
    const runtime = beginTrigger(stage, async ({ key }) => {
      keys.push(key);
      return { runId: `run of ${key}` };
    });
    return { runtime, keys };
  };

  test("its view is as recorded", () => {
    expect(plain(triggerViews(starting(staged(recording)).runtime))).toEqual(recording.views);
  });

  test("it starts a lost attempt again, fires at its next time, and answers a repeated delivery", async () => {
    const stage = staged(recording);
    const { runtime, keys } = starting(stage);
    const { due, ...record } = runtime.store.get();
    runtime.wake();
    await stage.clock.advance(60_000);
    runtime.reconcile();
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(runtime.store.get().due).toBeUndefined();
    if ("webhook" in record.when) {
      const { id, tenant, starts, actsAs } = record;
      const firing = { id, tenant, starts, actsAs, key: DELIVERY.id };
      expect(await runtime.deliver(DELIVERY, firing)).toEqual(record.lastStarted);
      await expect(runtime.deliver({ ...DELIVERY, hash: "other" }, firing)).rejects.toMatchObject({
        code: "IDEMPOTENCY_CONFLICT",
      });
      expect(keys).toEqual([]);
    } else expect(keys[0]).toBe(new Date(due?.scheduledAt ?? record.nextAt ?? 0).toISOString());
  });
});

test.each(recorded("memory"))(
  "G4 memory of an agent of $release: memories, logs, sources, search, erased texts and sources, and new memories",
  async (recording) => {
    const stage = staged(recording);
    const { corpus, extractions } = beginMemory(stage);
    const store = new AgentStore(stage, () => "keeper");
    const views = { ...agentViews(store), ...(await memoryViews(corpus, EDITOR)) };
    expect(plain(views)).toEqual(recording.views);
    const learn = async (conversationId: string, content: string) => {
      const body = extractedSchema.parse({
        ...{
          operationId: `op of ${conversationId}`,
          scope: "user",
          used: [],
          time: "2026-01-02T00:00:00.000Z",
        },
        ...{
          subject: { userId: RECORDED_USER, conversationId },
          source: { conversationId, turnId: "turn_9" },
        },
        operations: [{ op: "write", content }],
      });
      const prepared = await extractions.prepare(body);
      return stage.database.transaction(() => extractions.apply(body, prepared).outcomes);
    };
    expect(await learn("conv_new", "Ada has a dog.")).toMatchObject([{ status: "unchanged" }]);
    expect(await learn("conv_erased", "Ada sings.")).toMatchObject([{ status: "refused" }]);
    const [updated] = await corpus.write(WRITER, [
      { key: "tea", content: "Ada drinks tea.", subject: { userId: RECORDED_USER } },
    ]);
    expect(updated).toMatchObject({ version: 3 });
    expect((await corpus.search(EDITOR, { query: "hates" })).matches).toEqual([]);
  },
);

/** Tables by their columns, and the names of keys: an upgrade must produce the same as a new actor. */
function layout(storages: readonly Stage[]): object {
  const shape = schemaShape(storages.map(dump));
  const tables = storages.flatMap(({ database }) =>
    database.all<{ name: string; columns: string }>(
      `SELECT tables.name, group_concat(columns.name || ' ' || columns.type, ', ') AS columns
        FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' GROUP BY tables.name`,
    ),
  );
  return { keys: shape.keys, tables: Object.fromEntries(tables.map(({ name, columns }) => [name, columns])) };
}

test.each(["conversation", "agent", "memory", "run", "trigger", "sessions"] as const)(
  "G4 UPGRADE-1 an upgraded storage of every %s equals a new storage",
  async (of) => {
    const upgraded = recorded(of).map((recording) => {
      const stage = staged(recording);
      open(of, stage);
      return stage;
    });
    const fresh = (await today())
      .filter((recording) => recording.of === of)
      .map((recording) => staged(recording));
    expect(layout(upgraded)).toEqual(layout(fresh));
  },
);

const ACTORS = RECORDINGS.filter(({ of }) => of !== "directory");

test.each(ACTORS)(
  "G4 UPGRADE-1 $of $name of $release: a crash anywhere in its upgrade leaves no trace",
  (recording) => {
    const golden = staged(recording);
    open(recording.of, golden);
    const expected = dump(golden);
    for (let point = 0, crashed = true; crashed; point++) {
      const stage = staged(recording);
      const crossings = new Crossings([point]);
      crossings.arm();
      const life = crossings.beginLife();
      try {
        open(recording.of, {
          database: crossSql(stage.database, life),
          keyValue: crossKeyValue(stage.keyValue, life),
        });
      } catch (error) {
        if (!crossings.isCrash(error)) throw error;
      }
      crashed = crossings.crashed;
      open(recording.of, stage);
      expect(dump(stage), `point ${point}`).toEqual(expected);
    }
  },
);

test.each(ACTORS)(
  "UPGRADE-2 $of $name of $release: the second wake writes no row, and reads one value",
  (recording) => {
    const stage = staged(recording);
    open(recording.of, stage);
    const counter = new CostCounter();
    const { db, kv } = countingDatabase(stage.database, stage.keyValue, counter);
    const statements: string[] = [];
    const run = db.run;
    open(recording.of, {
      database: {
        ...db,
        isInTransaction: () => false,
        run: (statement, ...values) => {
          statements.push(statement);
          run(statement, ...values);
        },
      },
      keyValue: kv,
    });
    expect(statements).toEqual([]);
    expect(counter.cost.rowsWritten).toBe(0);
  },
);

describe("UPGRADE-3 storage of a newer version", () => {
  /** The recording as a version one beyond today's would have left it. */
  function newer(recording: Recording): Stage {
    const stage = staged(recording);
    if (recording.of === "conversation") open(recording.of, stage);
    const { keyValue } = stage;
    const beyond = (key: string, version: number) =>
      keyValue.put(key, { ...keyValue.get<object>(key), schema: version + 1 });
    if (recording.of === "conversation") beyond("conversation", newestVersion(CONVERSATION_SCHEMA));
    if (recording.of === "agent") beyond("identity", newestVersion(AGENT_SCHEMA));
    if (recording.of !== "conversation")
      keyValue.put("dramatis:sessions", newestVersion(SESSIONS_SCHEMA) + 1);
    return stage;
  }

  const refused = expect.objectContaining({ code: "UNAVAILABLE", retriable: true });

  test.each(recorded("conversation"))(
    "G4 conversation $name: refused at every entrance, unchanged, and complete later",
    async (recording) => {
      const stage = newer(recording);
      const before = dump(stage);
      const { runtime } = stage.begin();
      await expect(runtime.wake()).rejects.toEqual(refused);
      await expect(say({ runtime } as Life, stage, "Hello?")).rejects.toEqual(refused);
      const other = staged(recording).begin().runtime.state.record;
      for (const enter of [
        () => runtime.exists,
        () => runtime.state,
        () => runtime.reconcile(),
        () => runtime.create(other),
        () => runtime.toolState.put("key", 1),
      ]) {
        expect(enter).toThrow(refused);
      }
      expect(dump(stage)).toEqual(before);
      // The release with this version is deployed again.
      const record = stage.keyValue.get<object>("conversation");
      stage.keyValue.put("conversation", { ...record, schema: newestVersion(CONVERSATION_SCHEMA) });
      expect(conversationViews(stage.begin())).toMatchObject(recording.views);
    },
  );

  test.each(recorded("agent"))("G4 agent of $release: refused, and untouched", (recording) => {
    const stage = newer(recording);
    const before = dump(stage);
    const store = new AgentStore(stage, () => "recorded");
    for (const enter of [
      () => store.identity(),
      () => store.create(recording.views.identity as ReturnType<AgentStore["identity"]>),
      () => store.addConversation(`conv_${stage.ids.ulid()}`, 1),
      () => store.conversations(),
      () => openSessionTables(stage),
    ]) {
      expect(enter).toThrow(refused);
    }
    expect(dump(stage)).toEqual(before);
  });
});

test("SCHEMA-2 a migration of the directory only adds tables, indexes and optional columns, and fills new tables", () => {
  for (const { statements } of MIGRATIONS) {
    const isNew = (table: string) => statements.some((one) => one.startsWith(`CREATE TABLE ${table} `));
    for (const statement of statements) {
      const filled = /^INSERT INTO (\w+) /.exec(statement)?.[1];
      if (filled !== undefined) expect(isNew(filled), statement).toBe(true);
      else
        expect(statement).toMatch(
          /^CREATE (?:TABLE|INDEX) |^ALTER TABLE \w+ ADD COLUMN \w+ \w+(?:(?: NOT NULL)? DEFAULT .+)?$/,
        );
    }
  }
});

describe("the schema of today", () => {
  test("G4 recordings are reproducible", async () => {
    const made = await today();
    expect((await recordAll()).map(encodeRecording)).toEqual(made.map(encodeRecording));
    const storages = made.map((recording) => decodeRecording(encodeRecording(recording)).storage);
    expect(storages).toEqual(made.map(({ storage }) => storage));
  });

  test("SCHEMA-1 G4 a released schema does not change, and a change of today's schema has a new version", async () => {
    const groups = Map.groupBy(
      [...RECORDINGS, ...(await today()).map((recording) => ({ ...recording, release: "today's code" }))],
      (recording) => `${recording.release} ${recording.of} ${schemaVersion(recording)}`,
    );
    for (const [group, recordings] of groups) {
      const [{ of, release } = { of: "", release: "" }] = recordings;
      const version = group.slice(`${release} ${of} `.length);
      const shape = schemaShape(recordings.map(({ storage }) => storage));
      await expect(
        `${JSON.stringify(shape, null, 2)}\n`,
        `The schema of the ${of} in ${release} is not version ${version} as it is kept in test/fixtures/schemas. ` +
          "If you changed what is stored, add a step with a version of its own; see docs/migrations.md.",
      ).toMatchFileSnapshot(join(FIXTURES, `schemas/${of}-${version}.snap`));
    }
  });
});
