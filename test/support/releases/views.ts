/** The views of a recorded actor's readers, which must not change with the code. */
import type { AgentStore } from "../../../src/agents/agent/store.ts";
import type { Mailbox } from "../../../src/agents/base/mailbox/mailbox.ts";
import { primaryAgent } from "../../../src/agents/conversation/core/state.ts";
import type { ConversationQueries } from "../../../src/agents/conversation/reads/queries.ts";
import type { ConversationRuntime } from "../../../src/agents/conversation/runtime.ts";
import { runView, waitingGates } from "../../../src/agents/coordinator/reads/run-views.ts";
import type { RunRuntime } from "../../../src/agents/coordinator/run-runtime.ts";
import { triggerView } from "../../../src/agents/trigger/inbound/requests.ts";
import type { TriggerRuntime } from "../../../src/agents/trigger/runtime.ts";
import { applyFrame } from "../../../src/client/reducer.ts";
import { initialState } from "../../../src/client/state.ts";
import { D1Definitions } from "../../../src/d1/d1-definitions.ts";
import { D1Directory } from "../../../src/d1/d1-directory.ts";
import type { Corpus } from "../../../src/memory/corpus/corpus.ts";
import type { SessionStore } from "../../../src/memory/session/session-store.ts";
import { buildWorkingContext } from "../../../src/memory/session/working-context.ts";
import type { Frame } from "../../../src/protocol/frames.ts";
import type { MemoryReader } from "../../../src/protocol/memory.ts";
import type { RunEntry } from "../../../src/protocol/workflow-run.ts";
import type { Page, PageOptions } from "../../../src/shared/page.ts";

/** A living actor. */
interface Awake {
  mailbox?: Pick<Mailbox, "deadLetters">;
  runtime: ConversationRuntime;
  queries: ConversationQueries;
}

export function conversationViews({ mailbox, runtime, queries }: Awake): Record<string, unknown> {
  const { state } = runtime;
  const frames = replayed({ runtime, queries });
  const deadLetters = mailbox?.deadLetters({ limit: 200 }).items ?? [];
  return {
    ...(deadLetters.length > 0 && { deadLetters }),
    messages: all((options) => queries.messages(state, options)),
    turns: queries.turns({ limit: 200 }).items.map(({ id }) => queries.turn(state, id)),
    journal: all((options) => queries.journal(state, options)),
    snapshot: queries.snapshot(state, [], 4 * 1024 * 1024),
    events: runtime.store.events.load(primaryAgent(state.record).id, { limit: 10_000, maxBytes: 2 ** 30 }),
    toolState: runtime.toolState.list(""),
    frames,
    client: frames.reduce(applyFrame, initialState),
  };
}

/** All frames, as a new reader gets them. */
export function replayed({ runtime, queries }: Awake): Frame[] {
  const frames: Frame[] = [];
  for (let after = 0, done = false; !done; ) {
    const slice = queries.replay(runtime.state, after);
    frames.push(...slice.frames);
    after = slice.upTo;
    done = slice.done;
  }
  return frames;
}

export function agentViews(store: AgentStore): Record<string, unknown> {
  return { identity: store.identity(), conversations: store.conversations() };
}

export function runViews(runtime: RunRuntime) {
  const { endedAt, state, store } = runtime;
  const entries: RunEntry[] = [];
  for (let row = store.journal.holding(1); row !== undefined; row = store.journal.holding(entries.length + 1))
    entries.push(...row.entries);
  return { run: runView({ state, endedAt }), gates: waitingGates(state), entries };
}

export function triggerViews({ dueIn, store }: TriggerRuntime): Record<string, unknown> {
  return { trigger: triggerView(store.get()), dueIn };
}

export async function memoryViews(corpus: Corpus, reader: MemoryReader): Promise<Record<string, unknown>> {
  const { items } = await corpus.list(reader);
  return {
    memories: await Promise.all(items.map(({ id }) => corpus.why(reader, id))),
    found: await corpus.search(reader, { query: "tea dog harbour Rome" }),
    status: corpus.status(),
  };
}

export function sessionViews(store: SessionStore): Record<string, unknown> {
  const sessions = store.list().items;
  const load = (id: string) => store.load(id, { limit: 1_000, maxBytes: 2 ** 30 });
  return {
    sessions,
    events: sessions.map(({ id }) => load(id)),
    contexts: sessions.map(({ id }) => buildWorkingContext(load(id)).messages),
  };
}

export async function directoryViews(database: D1Database): Promise<Record<string, unknown>> {
  const directory = new D1Directory(database);
  const principal = (subject: string, role: "operator" | "member") => ({
    subject,
    tenant: "test",
    roles: [role],
  });
  return {
    agents: await directory.agents("test"),
    conversations: await directory.conversations(principal("op", "operator")),
    "conversations of ada": await directory.conversations(principal("ada", "member")),
    definitions: await definitionViews(new D1Definitions(database, "test")),
  };
}

async function definitionViews(store: D1Definitions): Promise<Record<string, unknown>> {
  return {
    library: await store.library("written"),
    latest: await store.list("model-profile", "written"),
    versions: await store.versions("model-profile", { library: "written", id: "fast" }),
  };
}

function all<Item>(read: (options: PageOptions) => Page<Item>): Item[] {
  const items: Item[] = [];
  for (let options: PageOptions | null = {}; options !== null; ) {
    const page: Page<Item> = read(options);
    items.push(...page.items);
    options = page.nextCursor === undefined ? null : { cursor: page.nextCursor };
  }
  return items;
}
