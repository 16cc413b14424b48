/**
 * The recordings of a release: actors with history, actors in every phase of a turn, and the directory. The current
 * code writes them; equal code gives equal recordings.
 */

import { AgentStore } from "../../../src/agents/agent/store.ts";
import { openSessionTables } from "../../../src/agents/base/storage/session-tables.ts";
import type { ConversationIdentity } from "../../../src/agents/conversation/core/state.ts";
import { D1Definitions } from "../../../src/d1/d1-definitions.ts";
import { D1Directory } from "../../../src/d1/d1-directory.ts";
import { contentHash } from "../../../src/library/definitions/definition.ts";
import { Registry } from "../../../src/library/registry/registry.ts";
import { resolveChain } from "../../../src/library/registry/resolve.ts";
import { SessionStore } from "../../../src/memory/session/session-store.ts";
import type { SessionEvent } from "../../../src/memory/session/types.ts";
import type { ToolSpec } from "../../../src/model/context.ts";
import type { Content } from "../../../src/shared/content.ts";
import { VERSION } from "../../../src/shared/version.ts";
import { compaction, everyAction, numbered, agent as spoken, user } from "../events.ts";
import type { ReplyScript, Script, StepScript } from "../provider-script.ts";
import { dumpStorage, type Recording } from "./format.ts";
import { RECORDED_PERSONA, RECORDED_PROVIDER } from "./library.ts";
import { nodeD1 } from "./node-d1.ts";
import { type Life, Stage } from "./stage.ts";
import { agentViews, conversationViews, directoryViews, sessionViews } from "./views.ts";

/** User and tenant of every recording. */
export const RECORDED_USER = "ada";
const TENANT = "test";

const say = (text: string): StepScript[] => [{ text }];
const held = (text: string): StepScript[] => [{ gate: "hold" }, { text }];
const busy = { status: 503, message: "Busy." };
const thought: StepScript = {
  raw: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { reasoning_content: "Hm." } }] })}\n\n`,
};
/** A call with a large result. Two of these exceed one row. */
const big: StepScript = { call: "big", input: { size: 900_000 } };

export async function recordAll(): Promise<Recording[]> {
  return [
    await created(),
    await completed(),
    await duringModelCall(),
    await duringBackoff(),
    await duringTools(),
    await duringPureTools(),
    await severalActive(),
    await afterRecoveries(),
    await afterTooManyRecoveries(),
    await withLongRow(),
    await waitingForClient(),
    await duringToolsOfBoth(),
    await severalSnapshots(),
    agent(),
    sessions(),
    await directory(),
  ];
}

/** One recorded conversation. */
class Take {
  readonly stage: Stage;
  life: Life;
  #plays = 0;

  private constructor(readonly name: string) {
    this.stage = new Stage(undefined, seedOf(`${VERSION} ${name}`));
    this.life = this.stage.begin();
  }

  static async begin(name: string, history: SessionEvent[] = []): Promise<Take> {
    const take = new Take(name);
    const { stage, life } = take;
    const profile = { provider: "openai", modelId: "scripted", baseUrl: RECORDED_PROVIDER } as const;
    const record = {
      id: `conv_${stage.ids.ulid()}`,
      tenant: TENANT,
      title: name,
      projectId: "default",
      participants: [
        { type: "user" as const, id: RECORDED_USER },
        { type: "agent" as const, id: "recorded" },
      ],
      agents: [
        { id: "recorded", chain: await resolveChain(new Registry(stage.code), RECORDED_PERSONA, profile) },
      ],
      createdAt: stage.clock.now(),
    } satisfies ConversationIdentity;
    await life.runtime.create(record, { history });
    return take;
  }

  /** Sends a message with its own script. `as` converts the text to another form of content. */
  async send(
    replies: (key: string) => ReplyScript[],
    more: { id?: string; replyToMessageId?: string; as?: (text: string) => Content; tools?: ToolSpec[] } = {},
  ) {
    this.#plays += 1;
    const key = `${VERSION}-${this.name}-${this.#plays}`;
    const text = JSON.stringify({ key, replies: replies(key) } satisfies Script);
    const { id, replyToMessageId, as, tools } = more;
    await this.stage.clock.advance(1_000);
    return this.life.runtime.accept({
      type: "conversation.user.message",
      ...(id === undefined ? {} : { id }),
      caller: { type: "user", userId: RECORDED_USER },
      data: {
        content: as?.(text) ?? text,
        ...(replyToMessageId === undefined ? {} : { replyToMessageId }),
        ...(tools === undefined ? {} : { tools }),
      },
    });
  }

  /** Sends a message and waits for the end of its turn. */
  async play(...message: Parameters<Take["send"]>) {
    const started = await this.send(...message);
    await this.stage.until(() => !this.life.runtime.busy);
    return started;
  }

  /** Waits until the journal has this many entries of a type. */
  async reached(type: string, count = 1): Promise<void> {
    const { queries, runtime } = this.life;
    const entries = () => queries.journal(runtime.state, { limit: 200 }).items;
    await this.stage.until(() => entries().filter((entry) => entry.type === type).length >= count);
  }

  /** Kills and wakes the actor. */
  async die(): Promise<void> {
    this.life = this.stage.begin();
    await this.life.runtime.wake();
  }

  recording(): Recording {
    const { database, keyValue, clock } = this.stage;
    const views = conversationViews(this.life);
    const storage = dumpStorage(database, keyValue);
    return { name: this.name, of: "conversation", now: clock.now(), storage, views };
  }
}

/** Recordings have their own ids, so that those of all releases can coexist. */
function seedOf(name: string): number {
  return [...name].reduce((seed, character) => Math.imul(seed, 31) + (character.codePointAt(0) ?? 0), 7);
}

async function created(): Promise<Recording> {
  return (await Take.begin("created")).recording();
}

async function completed(): Promise<Recording> {
  const take = await Take.begin("completed");
  const usage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };
  const first = await take.play(() => [[thought, { text: "Hello." }, { usage }]], { id: "key one" });
  await take.play(() => [say("In parts.")], {
    replyToMessageId: first.messageId,
    as: (text) => [{ type: "text", text }],
  });
  await take.play((key) => [
    [
      { text: "Looking. " },
      { call: "look_up", input: { key, n: 1 } },
      { call: "look_up", input: { key, n: 2 } },
    ],
    [
      { call: "save", input: { key, n: 3 } },
      { call: "charge", input: { key, n: 4 } },
    ],
    [
      { call: "counter", input: {} },
      { call: "fails", input: {} },
    ],
    [
      { call: "nobody", input: {} },
      { call: "save", input: "{" },
    ],
    say("Looked, saved and charged."),
  ]);
  await take.play(() => [{ attempts: [busy, say("At the second attempt.")] }]);
  await take.play(() => [[big, big], say("That was long.")]);
  await take.play(() => [[big, big], { attempts: [busy] }]);
  await take.play(() => [{ attempts: [{ status: 400, message: "No." }] }]);
  await take.play(() => [say("Above all, this goes on.")], { id: "key two" });
  return take.recording();
}

async function duringModelCall(): Promise<Recording> {
  const take = await Take.begin("during-model-call");
  await take.play(() => [say("Before.")]);
  await take.send(() => [held("After all.")], { id: "held" });
  await take.reached("message.started", 2);
  return take.recording();
}

async function duringBackoff(): Promise<Recording> {
  const take = await Take.begin("during-backoff");
  await take.send(() => [{ attempts: [busy, say("At last.")] }]);
  await take.reached("llm.call.failed");
  return take.recording();
}

async function duringTools(): Promise<Recording> {
  const take = await Take.begin("during-tools");
  await take.send((key) => [
    [
      { text: "All at once. " },
      { call: "look_up", input: { key, n: 1, gate: "hold" } },
      { call: "save", input: { key, n: 2, gate: "hold" } },
      { call: "charge", input: { key, n: 3, gate: "hold" } },
      { call: "save", input: { key, n: 4 } },
    ],
    say("So be it."),
  ]);
  await take.reached("tool.completed");
  return take.recording();
}

async function duringPureTools(): Promise<Recording> {
  const take = await Take.begin("during-pure-tools");
  await take.send((key) => [[{ call: "look_up", input: { key, n: 1, gate: "hold" } }], say("Found.")]);
  await take.reached("tool.requested");
  return take.recording();
}

async function severalActive(): Promise<Recording> {
  const take = await Take.begin("several-active");
  await take.play(() => [say("Before them all.")]);
  await take.send(() => [held("The first.")]);
  await take.send((key) => [[{ call: "charge", input: { key, n: 1, gate: "hold" } }], say("The second.")]);
  await take.reached("tool.requested");
  await take.send(() => [{ attempts: [busy, say("The third.")] }]);
  await take.reached("llm.call.failed");
  return take.recording();
}

async function afterRecoveries(): Promise<Recording> {
  const take = await Take.begin("after-recoveries");
  await take.send((key) => [
    [{ call: "charge", input: { key, n: 1, gate: "hold" } }],
    held("In spite of everything."),
  ]);
  await take.reached("tool.requested");
  for (let death = 1; death <= 3; death++) {
    await take.die();
    await take.reached("turn.resumed", death);
    // A turn that waits for a late result is not interrupted again.
    await take.reached("message.started", 2);
  }
  return take.recording();
}

async function afterTooManyRecoveries(): Promise<Recording> {
  const take = await Take.begin("after-too-many-recoveries");
  await take.send(() => [held("Never.")]);
  await take.reached("message.started");
  for (let death = 1; death <= 10; death++) {
    const { asked } = take.stage;
    await take.die();
    // While the turn pauses, a death does not interrupt it.
    await take.stage.until(() => take.stage.asked > asked);
  }
  await take.reached("turn.resumed", 10);
  return take.recording();
}

async function withLongRow(): Promise<Recording> {
  const take = await Take.begin("with-long-row");
  await take.send(() => [[big, big], held("That was long.")]);
  await take.reached("message.started", 2);
  return take.recording();
}

/** A tool that the client runs. */
const ASK: ToolSpec = { name: "ask", description: "Asks the user.", inputSchema: { type: "object" } };

async function waitingForClient(): Promise<Recording> {
  const take = await Take.begin("waiting-for-client");
  await take.send(() => [[{ call: "ask", input: { question: "Which?" } }], say("That one.")], {
    tools: [ASK],
  });
  await take.reached("turn.waiting");
  return take.recording();
}

async function duringToolsOfBoth(): Promise<Recording> {
  const take = await Take.begin("during-tools-of-both");
  await take.play(() => [say("Before.")]);
  await take.send(
    (key) => [
      [
        { call: "ask", input: { question: "Which?" } },
        { call: "look_up", input: { key, n: 1, gate: "hold" } },
        { call: "charge", input: { key, n: 2, gate: "hold" } },
        { call: "ask", input: { question: "And which?" } },
        { call: "save", input: { key, n: 3 } },
      ],
      say("Both of them."),
    ],
    { tools: [ASK] },
  );
  await take.reached("tool.completed");
  return take.recording();
}

/** Two turns in flight that began at different times, after a history from elsewhere. */
async function severalSnapshots(): Promise<Recording> {
  const take = await Take.begin("several-snapshots", numbered([user("elsewhere"), spoken("before")]));
  await take.send(() => [held("The first.")]);
  await take.send(() => [say("In between.")]);
  await take.reached("turn.completed");
  await take.send((key) => [[{ call: "save", input: { key, n: 1, gate: "hold" } }], say("The last.")]);
  await take.reached("tool.requested");
  await take.send(() => [say("At the end.")]);
  await take.reached("turn.completed", 2);
  return take.recording();
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
    await rows.putConversation(TENANT, {
      id: `conv_${stage.ids.ulid()}`,
      title: users.length > 1 ? "Both" : null,
      agentId: "agent-1",
      projectId: "default",
      participants,
      createdAt: time(users.length),
    });
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
