/**
 * The recordings of a release: actors with history, actors in every phase of their work, and the directory. The current
 * code writes them; equal code gives equal recordings.
 */

import { AgentStore } from "../../../src/agents/agent/store.ts";
import { openSessionTables } from "../../../src/agents/base/storage/session-tables.ts";
import { D1Definitions } from "../../../src/d1/d1-definitions.ts";
import { D1Directory } from "../../../src/d1/d1-directory.ts";
import { contentHash } from "../../../src/library/definitions/definition.ts";
import { SessionStore } from "../../../src/memory/session/session-store.ts";
import { nodeD1 } from "../../../src/ports/node/node-d1.ts";
import { compaction, everyAction, numbered, agent as spoken, user } from "../events.ts";
import { recordMemory, recordRuns, recordTriggers } from "./actor-scenes.ts";
import { dumpStorage, type Recording } from "./format.ts";
import { RECORDED_PERSONA } from "./library.ts";
import { recordMail } from "./mail-scenes.ts";
import { Stage } from "./stage.ts";
import { TENANT } from "./take.ts";
import { recordTurns } from "./turn-scenes.ts";
import { agentViews, directoryViews, sessionViews } from "./views.ts";
import { recordWork } from "./work-scenes.ts";

export async function recordAll(): Promise<Recording[]> {
  return [
    ...(await recordTurns()),
    ...(await recordWork()),
    ...(await recordMail()),
    agent(),
    sessions(),
    await directory(),
    ...(await recordRuns()),
    ...(await recordTriggers()),
    await recordMemory(),
  ];
}

function agent(): Recording {
  const stage = new Stage();
  const { database, keyValue, clock, ids } = stage;
  sessionStore(stage);
  const store = new AgentStore({ database, keyValue }, () => "recorded");
  const time = () => new Date(clock.now()).toISOString();
  const identity = {
    id: "recorded",
    tenant: TENANT,
    persona: RECORDED_PERSONA,
    projectIds: ["default"],
    createdAt: time(),
    updatedAt: time(),
  };
  store.create(identity);
  store.update({ ...identity, projectIds: ["default", "other"] });
  for (let n = 0; n < 3; n++) store.addConversation(`conv_${ids.ulid()}`, clock.now() + n);
  const storage = dumpStorage(database, keyValue);
  return { name: "agent", of: "agent", now: clock.now(), storage, views: agentViews(store) };
}

function sessions(): Recording {
  const stage = new Stage();
  const store = sessionStore(stage);
  const busySession = store.create("recorded", { topic: "recorded", nested: { n: [1] } });
  store.append(busySession, everyAction());
  store.append(busySession, [user("long", "x".repeat(1_600_000)), spoken("longer", "y".repeat(3_100_000))]);
  store.append(busySession, [compaction("summary", 4), user("after"), user("gone"), spoken("last")]);
  store.deleteEvents(busySession, ["gone", "last"]);
  const other = store.create("recorded");
  store.append(other, numbered([user("hello"), spoken("hi")]));
  store.create("recorded");
  const storage = dumpStorage(stage.database, stage.keyValue);
  return { name: "sessions", of: "sessions", now: stage.clock.now(), storage, views: sessionViews(store) };
}

/** Sessions in their own tables, as in a plain `SessionAgent`. */
function sessionStore({ database, keyValue, clock, ids }: Stage): SessionStore {
  return new SessionStore({ ...openSessionTables({ database, keyValue }), clock, ids });
}

async function directory(): Promise<Recording> {
  const stage = new Stage();
  const database = nodeD1(stage.database);
  const rows = new D1Directory(database);
  const time = (n: number) => new Date(stage.clock.now() + n).toISOString();
  for (const n of [1, 2]) {
    const times = { createdAt: time(n), updatedAt: time(n) };
    await rows.putAgent({
      id: `agent-${n}`,
      tenant: TENANT,
      persona: RECORDED_PERSONA,
      projectIds: ["default"],
      ...times,
    });
  }
  for (const users of [["ada"], ["bob"], ["ada", "bob"]]) {
    const participants = [
      ...users.map((id) => ({ type: "user" as const, id })),
      { type: "agent" as const, id: "agent-1" },
    ];
    await rows.putConversation(
      TENANT,
      {
        id: `conv_${stage.ids.ulid()}`,
        title: users.length > 1 ? "Both" : null,
        agentId: "agent-1",
        projectId: "default",
        participants,
        createdAt: time(users.length),
      },
      1,
    );
  }
  const definitions = new D1Definitions(database, TENANT, stage.clock);
  const key = { library: "written", kind: "model-profile" as const, id: "fast" };
  for (const modelId of ["one", "two"]) {
    const definition = { provider: "openai" as const, modelId };
    const hash = await contentHash(definition);
    await definitions.add(
      { ...key, definition, hash },
      { subject: "ada", tenant: TENANT, roles: ["author"] },
    );
  }
  stage.database.run("UPDATE dramatis_migrations SET applied_at = ?", stage.clock.now());
  const storage = dumpStorage(stage.database, stage.keyValue);
  const views = await directoryViews(database);
  return { name: "directory", of: "directory", now: stage.clock.now(), storage, views };
}
