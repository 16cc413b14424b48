/**
 * Runs a plan: conversations on the Node adapters, with users, models and tools on one virtual clock, until all are at
 * rest. Equal plans give equal histories, line by line.
 */

import { replayRecording } from "../../src/agents/conversation/core/replay/replay.ts";
import type { ConversationIdentity, ConversationState } from "../../src/agents/conversation/core/state.ts";
import { ConversationDatabase } from "../../src/agents/conversation/store/conversation-database.ts";
import { applyFrame } from "../../src/client/reducer.ts";
import { initialState, type LiveConversation, textOf } from "../../src/client/state.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { eventToMessage } from "../../src/memory/session/events.ts";
import { EventAction, isCompaction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import { messageTokens } from "../../src/memory/session/tokens.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { parseItemId } from "../../src/protocol/ids.ts";
import type { Content } from "../../src/shared/content.ts";
import { defined } from "../../src/shared/defined.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Page, PageOptions } from "../../src/shared/page.ts";
import { Actor, TENANT } from "./actor.ts";
import { APPROVAL_TIMEOUT_MS } from "./approvals.ts";
import { promptMessage } from "./check-requests.ts";
import type { Client } from "./client.ts";
import { CLIENT_TOOL_TIMEOUT_MS } from "./client-tool.ts";
import { WorldClock } from "./clocks.ts";
import { Crash, FaultPlane, InjectedError } from "./faults.ts";
import { forkActor, logOn } from "./forking.ts";
import type { ClientOutcome, History, Outcome, ReplayRecord, SessionRecord } from "./history.ts";
import { hookTask } from "./hooks.ts";
import { HttpClient } from "./http-client.ts";
import { Images } from "./images.ts";
import type { ActorSurroundings, Life, Variant } from "./life.ts";
import { Model } from "./model.ts";
import { MODELS, profileOf } from "./models.ts";
import { Moments } from "./moments.ts";
import type { ConversationPlan, Plan } from "./plan.ts";
import { plannedForks } from "./planned-forks.ts";
import { promptsOf } from "./prompts.ts";
import { rowsOf } from "./rows.ts";
import { AGENT, conversationId } from "./scope.ts";
import { seedOf } from "./seeded-history.ts";
import { SignalClient } from "./signal-client.ts";
import { SocketClient } from "./socket-client.ts";
import { StreamClient } from "./stream-client.ts";
import { EFFECTS, executorFor, LIBRARY, toolLibrary } from "./tools.ts";
import { UsageDirectory } from "./usage-directory.ts";

/** A text that no row has. */
const NOWHERE = "\u0000nowhere";
/** Maximum number of events; no run needs as many. */
const MAX_EVENTS = 60_000;
/** Maximum duration of a run, in simulated milliseconds. */
const MAX_ELAPSED = 3 * 60 * 60_000;

const PROGRAMS = { socket: SocketClient, http: HttpClient, stream: StreamClient, signals: SignalClient };

export async function runPlan(plan: Plan, variant: Variant = {}): Promise<History> {
  const clock = new WorldClock();
  const history: History = {
    plan,
    timeline: [],
    fired: [],
    sent: [],
    modelCalls: [],
    sideCalls: [],
    toolRuns: [],
    hookRuns: [],
    submissions: [],
    approvals: [],
    acts: [],
    forks: [],
    commits: [],
    dispatches: [],
    cancellations: [],
    stuck: [],
    steps: 0,
    reported: new Map(),
    connections: [],
    incidents: [],
    outcomes: [],
    elapsed: 0,
  };
  const note = (conversation: number, text: string) => {
    history.timeline.push(`${String(clock.elapsed).padStart(8)} ms  [${conversation}] ${text}`);
  };
  const plane = new FaultPlane(plan.faults, { jump: (ms) => clock.jump(ms), note });
  const restoreLog = watchLog(history);
  try {
    const { actors, clients, directory, images, logs } = await build(plan, {
      clock,
      plane,
      history,
      note,
      variant,
    });
    plane.arm();
    await untilRest(actors, clock, history);
    plane.disarm();
    const abandoned = actors.map(activeIn);
    for (const [index, actor] of actors.entries()) {
      if (abandoned[index]?.length === 0) continue;
      note(index, "somebody calls");
      await actor.call(() => undefined);
    }
    await untilRest(actors, clock, history);
    const atRest = async (index: number, actor: Actor) => {
      const own = clients.filter(({ conversation }) => conversation === index);
      const published = directory.totals(conversationId(index));
      return {
        ...(await outcomeOf(actor, own)),
        abandoned: abandoned[index] ?? [],
        published,
        listed: directory.turns(conversationId(index)),
      };
    };
    for (const [index, actor] of actors.slice(0, plan.conversations.length).entries())
      history.outcomes.push(await atRest(index, actor));
    for (const fork of history.forks) {
      const { conversation } = fork;
      const actor = actors[conversation];
      const log = logs.get(conversation);
      if (actor === undefined || log === undefined) continue;
      const rows = rowsOf(actor.database);
      if (stateIn(actor) !== null) {
        fork.outcome = await atRest(conversation, actor);
        const isLeft = (text: string) => text.includes(fork.erased?.text ?? NOWHERE);
        fork.left.push(
          ...rows.flatMap(({ table, row }) => (isLeft(row) ? [`the table ${table}`] : [])),
          ...(isLeft(directory.textOf(conversationId(conversation))) ? ["the directory"] : []),
          ...(rowsOf(log).some(({ row }) => isLeft(row)) ? ["the log of events"] : []),
        );
      } else {
        fork.left.push(...rows.map(({ table }) => `the table ${table}`));
        fork.left.push(...(await images.listOf(conversation)));
      }
    }
    history.fired = plane.fired;
    history.elapsed = clock.elapsed;
    for (const database of [...actors.map(({ database: own }) => own), directory, ...logs.values()])
      database.close();
    return history;
  } finally {
    restoreLog();
  }
}

interface Surroundings {
  clock: WorldClock;
  plane: FaultPlane;
  history: History;
  note(conversation: number, text: string): void;
  variant: Variant;
}

interface PlacedClient {
  conversation: number;
  client: number;
  program: Client;
}

async function build(plan: Plan, { clock, plane, history, note, variant }: Surroundings) {
  const moments = new Moments();
  const code = new DeployedCode([toolLibrary(plan, { clock, history, moments, note })]);
  const ids = seededIds(plan.seed, clock);
  const model = new Model(plan, clock, plane, history, moments, note);
  const images = new Images(clock, plane);
  const directory = new UsageDirectory(clock, plane);
  const actors: Actor[] = [];
  const clients: PlacedClient[] = [];
  const logs = new Map<number, NodeSqlDatabase>();
  const actorOf = (number: number): Actor => {
    const actor = actors[variant.place?.(number) ?? number];
    if (actor === undefined) throw new Error(`There is no conversation ${number}.`);
    return actor;
  };
  const surroundingsOf = (
    conversation: number,
    own: ConversationPlan,
    given: Pick<ActorSurroundings, "record" | "log">,
  ): ActorSurroundings => {
    return {
      ...given,
      conversation,
      clock,
      plane,
      ids,
      fetch: (caller) => model.fetchFor(caller),
      media: (caller) => images.mediaFor(caller),
      attachments: (caller) => images.storeFor(caller),
      directory: (caller) => directory.putFor(caller),
      fork: (caller, id) => {
        const actor = actors[Number(id.slice("conv_".length))];
        if (actor === undefined) throw new DramatisError("NOT_FOUND", "There is no such conversation.");
        return forkActor(caller, actor, { clock, plane, ...defined({ forked: variant.forked }) });
      },
      history: seedOf(own.history ?? 0, AGENT, clock.now(), ids),
      executor: (caller) =>
        executorFor(caller, {
          code,
          clock,
          plane,
          history,
          connect: async (index) => {
            const target = actors[index];
            if (target === undefined) throw new DramatisError("NOT_FOUND", "There is no such conversation.");
            return target.tools();
          },
        }),
      records: history,
      moments,
      order: own.order ?? "parallel",
      ...(own.budget === undefined ? {} : { budget: own.budget }),
      note,
      variant,
    };
  };
  for (const [conversation, own] of plan.conversations.entries()) {
    const record = await recordOf(conversation, own, code, clock.now());
    const actor = new Actor(surroundingsOf(conversation, own, { record, log: null }));
    actors.push(actor);
    own.clients.forEach((clientPlan, client) => {
      const Program = PROGRAMS[clientPlan.channel];
      const surroundings = {
        actor,
        conversation,
        client,
        plan: clientPlan,
        clock,
        plane,
        history,
        images,
        moments,
        fork: actorOf,
        note,
      };
      clients.push({ conversation, client, program: new Program(surroundings) });
    });
  }
  for (const { number, of } of plannedForks(plan)) {
    const own = plan.conversations[of];
    if (own === undefined) continue;
    const database = new NodeSqlDatabase();
    logs.set(number, database);
    actors.push(new Actor(surroundingsOf(number, own, { record: null, log: logOn(database, clock) })));
  }
  return { actors, clients, directory, images, logs };
}

async function recordOf(
  index: number,
  { maxMoves, fallbacks = 0, hooks = {}, memory, titles }: ConversationPlan,
  code: DeployedCode,
  createdAt: number,
): Promise<ConversationIdentity> {
  const toolIds = Object.keys(EFFECTS).map((name) => `${LIBRARY}/${name}`);
  const persona = {
    identity: { systemPrompt: "Simulated." },
    memory: {
      // The checks expect every turn that fits.
      recentTurnsLimit: 1_000,
      ...(memory && { contextTokens: memory.contextTokens }),
      ...(hooks.assembly && {
        contextAssembly: { task: `${LIBRARY}/${hookTask("assembly", hooks.assembly)}` },
      }),
      ...(hooks.extraction && {
        memoryExtraction: { task: `${LIBRARY}/${hookTask("extraction", hooks.extraction)}` },
      }),
    },
    tools: { toolIds, constraints: { maxMovesPerTurn: maxMoves } },
    ...(titles && { titles: { modelProfileId: `${LIBRARY}/${MODELS[1]}` } }),
  };
  const [first = "", ...others] = MODELS;
  const profile = {
    ...profileOf(first),
    ...(fallbacks === 0 ? {} : { fallbacks: others.slice(0, fallbacks).map((id) => `${LIBRARY}/${id}`) }),
  };
  return {
    id: conversationId(index),
    tenant: TENANT,
    title: null,
    projectId: "default",
    participants: [{ type: "user", id: "ada" }],
    agents: [{ id: AGENT, chain: await resolveChain(new Registry(code), persona, profile) }],
    createdAt,
  };
}

async function untilRest(actors: readonly Actor[], clock: WorldClock, history: History): Promise<void> {
  for (let events = 0; ; events++) {
    for (const actor of actors) actor.tend();
    if (!(await clock.runNext())) return;
    if (events > MAX_EVENTS || clock.elapsed > MAX_ELAPSED) {
      history.incidents.push(`The world did not reach rest within ${events} events and ${clock.elapsed} ms.`);
      return;
    }
  }
}

/** Returns the stored state; `null` for a fork that does not exist. */
function stateIn({ database, keyValue, hasJournal }: Actor): ConversationState | null {
  if (!hasJournal || keyValue.get("importing") !== undefined) return null;
  return new ConversationDatabase(database, keyValue).load();
}

function storedState(actor: Actor): ConversationState {
  const stored = stateIn(actor);
  if (stored === null) throw new Error("The conversation is gone.");
  return stored;
}

/** Prefixes of the inputs of active turns, and of the messages that wait to start theirs. */
function activeIn(actor: Actor): string[] {
  const state = stateIn(actor);
  if (state === null) return [];
  const { active, queue } = state;
  const waiting =
    queue === undefined ? [] : actor.database.all<{ body: string }>("SELECT body FROM signals ORDER BY n");
  const inputs = [
    ...[...active.values()].map(({ input }) => input),
    ...waiting.map(({ body }): Content => JSON.parse(body).data.content),
  ];
  return inputs.map((input) => textOf(input).split(" ")[0] ?? "");
}

async function outcomeOf(
  actor: Actor,
  clients: readonly PlacedClient[],
): Promise<Omit<Outcome, "abandoned" | "published" | "listed">> {
  const stored = storedState(actor);
  const { living, armed } = actor;
  const before = living === null ? {} : { memory: living.runtime.state };
  const timers = living?.clock.pending ?? 0;
  // Readers would wait for entries that the database has lost.
  if (living !== null && living.runtime.state.seq > stored.seq) actor.crash();
  return actor.call((life) => {
    const { queries, runtime } = life;
    const state = runtime.state;
    const turns = allOf((options) => queries.turns(options));
    const events = runtime.store.events.load(AGENT, { limit: 10_000, maxBytes: Number.MAX_SAFE_INTEGER });
    const numbers = Array.from({ length: state.turns }, (_, index) => index + 1);
    return {
      lives: actor.lives,
      stored,
      ...before,
      timers,
      armed,
      turns: turns.map(({ id }) => queries.turn(state, id)),
      messages: allOf((options) => queries.messages(state, options)),
      journal: allOf((options) => queries.journal(state, options)),
      journals: new Map(
        turns.map(({ id: turn }) => [
          turn,
          allOf((options) => queries.journal(state, { ...options, turn, order: "desc" })),
        ]),
      ),
      rows: runtime.store.journal.forward(1, Number.MAX_SAFE_INTEGER),
      contents: new Map(
        numbers.flatMap((n) => {
          const turn = runtime.store.turn(n);
          return turn === null ? [] : [[n, turn] as const];
        }),
      ),
      session: events.map(sessionRecord),
      notes: new Map(
        events
          .filter(({ action }) => action === EventAction.SUPERSESSION)
          .map(({ id, content }) => [id.replace("supersession_", ""), content]),
      ),
      replays: turns.map((turn) => replayOf(queries, state, turn)),
      prompts: numbers.flatMap((n) => {
        const turn = runtime.store.turn(n);
        return turn === null ? [] : promptsOf(runtime, turn);
      }),
      toolState: Object.fromEntries(runtime.toolState.list("").map(({ key, value }) => [key, value])),
      clients: clients.map((client) => clientOutcome(client, life)),
      replayed: resumed(life, { ...initialState, seq: 0 }),
      snapshot: resumed(life, initialState),
    };
  });
}

/** The limits of planning in every life. */
const LIMITS = { clientToolTimeoutMs: CLIENT_TOOL_TIMEOUT_MS, approvalTimeoutMs: APPROVAL_TIMEOUT_MS };

/** Replays a turn from its recording. */
function replayOf(
  queries: Life["queries"],
  state: ConversationState,
  { id: turnId, status }: { id: string; status: string },
): ReplayRecord {
  if (status === "active") return { turnId };
  try {
    const recording = queries.recording(state, turnId, LIMITS);
    return { turnId, recording, replay: replayRecording(recording) };
  } catch (error) {
    return { turnId, problem: describe(error) };
  }
}

function sessionRecord(event: SessionEvent): SessionRecord {
  const message = eventToMessage(event);
  const { seq } = event;
  const beginsTurn = event.action === EventAction.USER_MESSAGE;
  const turn = turnNumber(event);
  if (message === null) return { seq, tokens: 0, beginsTurn, ...defined({ turn }) };
  const { role, content, toolCalls = [] } = message;
  const names = toolCalls.map(({ name }) => name);
  return {
    seq,
    ...defined({ turn }),
    message: promptMessage(role, content, names),
    tokens: messageTokens(message),
    beginsTurn,
    ...(isCompaction(event) ? { covers: event.compactedEventCount } : {}),
  };
}

/** Returns the number of an event's turn. The note of a replacement belongs to the new turn. */
function turnNumber({ id, action, metadata }: SessionEvent): number | undefined {
  if (action !== EventAction.SUPERSESSION) return parseItemId(id.replace(/^pending_/, ""))?.n;
  const { supersedes } = metadata ?? {};
  return Array.isArray(supersedes) ? Number(supersedes[1]) : undefined;
}

function clientOutcome({ client, program }: PlacedClient, life: Life): ClientOutcome {
  const { view } = program;
  return view === null || view.seq === null ? { client } : { client, resumed: resumed(life, view) };
}

/** Returns a client's state after a connection that resumes. */
function resumed({ followers }: Life, from: LiveConversation): LiveConversation {
  const frames: Frame[] = [];
  followers.cursor({ from: from.seq ?? undefined }).catchUp((_, frame) => frames.push(frame) > 0);
  return frames.reduce(applyFrame, from);
}

function allOf<Item>(read: (options: PageOptions) => Page<Item>): Item[] {
  const items: Item[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = read({ limit: 200, ...(cursor === undefined ? {} : { cursor }) });
    items.push(...page.items);
    if (page.nextCursor === undefined) return items;
    cursor = page.nextCursor;
  }
}

/** Unplanned errors in the log and unhandled rejections are incidents. Warnings concern handled faults. */
function watchLog(history: History): () => void {
  const original = console.error;
  const { warn } = console;
  console.warn = () => undefined;
  console.error = (...values: unknown[]) => {
    if (!values.some(isPlanned)) history.incidents.push(`Logged: ${values.map(describe).join(" ")}`);
  };
  const onRejection = (error: unknown) => {
    // A rejection of a dead life is expected.
    if (!(error instanceof Crash)) history.incidents.push(`Unhandled: ${describe(error)}`);
  };
  process.on("unhandledRejection", onRejection);
  return () => {
    console.error = original;
    console.warn = warn;
    process.off("unhandledRejection", onRejection);
  };
}

function isPlanned(value: unknown): boolean {
  if (value instanceof Crash || value instanceof InjectedError) return true;
  if (value instanceof DramatisError) return value.retriable;
  return typeof value === "string" && value.startsWith("A tool failed");
}

function describe(value: unknown): string {
  return value instanceof Error ? (value.stack ?? value.message) : String(value);
}
