/**
 * What every released version stored, turns in flight included, under today's code. The recordings are made by
 * `scripts/record-release.ts`, each by the code of its own release.
 */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AGENT_SCHEMA, AgentStore } from "../../src/agents/agent/store.ts";
import { type ActorStores, newestVersion } from "../../src/agents/base/storage/schema-upgrade.ts";
import { openSessionTables, SESSIONS_SCHEMA } from "../../src/agents/base/storage/session-tables.ts";
import { CONVERSATION_SCHEMA } from "../../src/agents/conversation/store/conversation-tables.ts";
import { applyFrame } from "../../src/client/reducer.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import { MIGRATIONS } from "../../src/d1/d1-tables.ts";
import { SessionStore } from "../../src/memory/session/session-store.ts";
import type { ActorDatabase } from "../../src/ports/sql-database.ts";
import { VERSION } from "../../src/shared/version.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";
import { Crossings, crossKeyValue, crossSql } from "../support/crossings.ts";
import { user } from "../support/events.ts";
import { RECORDED_ENDS } from "../support/releases/ends.ts";
import {
  decodeRecording,
  dumpStorage,
  encodeRecording,
  loadStorage,
  type Recorded,
  type Recording,
} from "../support/releases/format.ts";
import { nodeD1 } from "../support/releases/node-d1.ts";
import { RECORDED_USER, recordAll } from "../support/releases/record.ts";
import { schemaShape, schemaVersion } from "../support/releases/shape.ts";
import { type Life, Stage } from "../support/releases/stage.ts";
import {
  agentViews,
  conversationViews,
  directoryViews,
  replayed,
  sessionViews,
} from "../support/releases/views.ts";

const FIXTURES = join(import.meta.dirname, "../fixtures");

type Released = Recording & { release: string };

const RECORDINGS: Released[] = globSync("releases/*/*.jsonl", { cwd: FIXTURES })
  .sort()
  .map((path) => ({
    release: basename(dirname(path)),
    ...decodeRecording(readFileSync(join(FIXTURES, path), "utf8")),
  }));

const recorded = (of: Recorded) => RECORDINGS.filter((recording) => recording.of === of);

let recordings: Promise<Recording[]> | undefined;

/** Returns the recordings of today's code. */
function today(): Promise<Recording[]> {
  recordings ??= recordAll();
  return recordings;
}

/** A stage at the time of the recording, with its storage; ids go on with a seed of their own. */
function staged({ now, storage }: Recording): Stage {
  const stage = new Stage(now, 11);
  loadStorage(storage, stage.database, stage.keyValue);
  return stage;
}

const dump = ({ database, keyValue }: ActorStores) => dumpStorage(database, keyValue);
const sessionsOf = (stage: Stage) =>
  new SessionStore({ ...openSessionTables(stage), clock: stage.clock, ids: stage.ids });

/** Opens an actor's storage as its first wake does. */
function open(of: Recorded, stores: ActorStores & { database: ActorDatabase }): void {
  if (of === "conversation") new Stage().begin(stores.database, stores.keyValue).runtime.busy;
  else openSessionTables(stores);
  if (of === "agent") new AgentStore(stores, () => "recorded").identity();
}

const errors = vi.spyOn(console, "error");

beforeEach(() => {
  errors.mockReset();
  errors.mockImplementation(() => undefined);
});

afterEach(() => expect(errors.mock.calls, "nothing was reported as an error").toEqual([]));

test("G4 the released version is recorded", () => {
  expect(
    RECORDINGS.map(({ release }) => release),
    "Run `node scripts/record-release.ts` with the commit that raises the version.",
  ).toContain(VERSION);
});

describe.each(recorded("conversation"))("G4 conversation $name of $release", (recording) => {
  test("its views, and the replay of its journal, are as they were recorded", () => {
    const stage = staged(recording);
    expect(conversationViews(stage.begin())).toMatchObject(recording.views);
  });

  test("its turns end, no `once` tool runs again, its clients follow, and it goes on", async () => {
    const stage = staged(recording);
    stage.isOpen = true;
    // SAFETY: the recording's own client wrote it.
    let client = recording.views.client as LiveConversation;
    const life = stage.begin();
    await life.runtime.wake();
    const asked = clientCalls(life);
    if (asked.length > 0)
      await life.runtime.results.submit(asked.map((id) => ({ operationId: id, result: "One." })));
    await stage.until(() => !life.runtime.busy);
    const { turns } = conversationViews(life) as {
      turns: { status: string; moves: { reasoning?: string }[] }[];
    };
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
    expect(replayed(life).slice(0, (recording.views.frames as unknown[]).length)).toMatchObject(
      recording.views.frames as object[],
    );

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

/** Returns the ids of the calls that wait for the client. */
function clientCalls({ queries, runtime }: Life): string[] {
  return queries
    .snapshot(runtime.state, [])
    .operations.flatMap(({ id, client, state }) => (client && state === "running" ? [id] : []));
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

/** A turn whose answer is the given text. */
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

test.each(recorded("agent"))("G4 agent of $release: its identity and its conversations", (recording) => {
  const stage = staged(recording);
  const store = new AgentStore(stage, () => "recorded");
  expect(agentViews(store)).toEqual(recording.views);
  expect(sessionsOf(stage).list()).toEqual({ items: [] });
  const identity = store.identity();
  store.update({ ...identity, projectIds: ["changed"] });
  store.addConversation(`conv_${stage.ids.ulid()}`, stage.clock.now());
  const again = new AgentStore(stage, () => "recorded");
  expect(again.identity()).toEqual({ ...identity, projectIds: ["changed"] });
  expect(again.conversations().items).toHaveLength(4);
});

test.each(recorded("sessions"))(
  "G4 sessions of $release: events, long ones too, and the numbers after them",
  (recording) => {
    const stage = staged(recording);
    const store = sessionsOf(stage);
    expect(sessionViews(store)).toEqual(recording.views);
    const [session = { id: "" }] = store.list().items.filter(({ metadata }) => metadata !== null);
    const [newest] = store.load(session.id, { limit: 1 });
    store.append(session.id, [...store.load(session.id, { limit: 1_000 }), user("of today")]);
    expect(store.load(session.id, { limit: 1 })[0]?.seq, "two newer ones were deleted").toBe(
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

/** Tables by their columns, and the names of keys: what a step must bring to where a new actor begins. */
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

test.each(["conversation", "agent", "sessions"] as const)(
  "G4 UPGRADE-1 what steps make of the storage of every %s is what a new one has",
  async (of) => {
    const upgraded = recorded(of).map((recording) => {
      const stage = staged(recording);
      open(of, stage);
      return stage;
    });
    const fresh = (await today()).filter((recording) => recording.of === of).map(staged);
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
  "UPGRADE-2 $of $name of $release: the second wake writes nothing, and reads one value",
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
    "G4 conversation $name: refused at every entrance, untouched, and whole again later",
    async (recording) => {
      const stage = newer(recording);
      const before = dump(stage);
      const { runtime } = stage.begin();
      await expect(runtime.wake()).rejects.toEqual(refused);
      await expect(say({ runtime } as Life, stage, "Hello?")).rejects.toEqual(refused);
      const other = staged(recording).begin().runtime.state.record;
      for (const entrance of [
        () => runtime.exists,
        () => runtime.state,
        () => runtime.reconcile(),
        () => runtime.create(other),
        () => runtime.toolState.put("key", 1),
      ]) {
        expect(entrance).toThrow(refused);
      }
      expect(dump(stage)).toEqual(before);
      // The release that knows this version is deployed again.
      const record = stage.keyValue.get<object>("conversation");
      stage.keyValue.put("conversation", { ...record, schema: newestVersion(CONVERSATION_SCHEMA) });
      expect(conversationViews(stage.begin())).toMatchObject(recording.views);
    },
  );

  test.each(recorded("agent"))("G4 agent of $release: refused, and untouched", (recording) => {
    const stage = newer(recording);
    const before = dump(stage);
    const store = new AgentStore(stage, () => "recorded");
    for (const entrance of [
      () => store.identity(),
      () => store.create(recording.views.identity as ReturnType<AgentStore["identity"]>),
      () => store.addConversation(`conv_${stage.ids.ulid()}`, 1),
      () => store.conversations(),
      () => openSessionTables(stage),
    ]) {
      expect(entrance).toThrow(refused);
    }
    expect(dump(stage)).toEqual(before);
  });
});

test("SCHEMA-2 a migration of the directory adds tables, indexes and optional columns, and removes nothing", () => {
  for (const statement of MIGRATIONS.flatMap(({ statements }) => statements)) {
    expect(statement).toMatch(
      /^CREATE (?:TABLE|INDEX) |^ALTER TABLE \w+ ADD COLUMN \w+ \w+(?:(?: NOT NULL)? DEFAULT .+)?$/,
    );
  }
});

describe("the schema of today", () => {
  test("G4 recordings are made the same twice", async () => {
    const made = await today();
    expect(await recordAll()).toEqual(made);
    const storages = made.map((recording) => decodeRecording(encodeRecording(recording)).storage);
    expect(storages).toEqual(made.map(({ storage }) => storage));
  });

  test("SCHEMA-1 G4 a schema that was released does not change, and a change of today's has a version of its own", async () => {
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
