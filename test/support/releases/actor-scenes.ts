/** Scenes of a release beside conversations: runs in each phase, triggers, and an agent with memory. */

import { z } from "zod";
import { AgentStore } from "../../../src/agents/agent/store.ts";
import type { RunRecord } from "../../../src/agents/coordinator/core/record.ts";
import { RunRuntime } from "../../../src/agents/coordinator/run-runtime.ts";
import { scheduled } from "../../../src/agents/trigger/core/firing.ts";
import type { Firing, TriggerRecord } from "../../../src/agents/trigger/core/record.ts";
import { TriggerRuntime } from "../../../src/agents/trigger/runtime.ts";
import { defineLibrary } from "../../../src/library/define/define.ts";
import { defineTask } from "../../../src/library/define/define-task.ts";
import { DeployedCode } from "../../../src/library/registry/deployed-code.ts";
import { ToolError } from "../../../src/library/tools/tool-error.ts";
import { workflowSchema } from "../../../src/library/workflows/workflow-schema.ts";
import { Corpus } from "../../../src/memory/corpus/corpus.ts";
import { eraseSources } from "../../../src/memory/corpus/erasures.ts";
import { Extractions } from "../../../src/memory/corpus/extraction.ts";
import { extractedSchema } from "../../../src/memory/corpus/schemas.ts";
import type { ExtractedMemories, MemoryReader, MemoryWriter } from "../../../src/protocol/memory.ts";
import type { PinnedWorkflow } from "../../../src/protocol/pinned-workflow.ts";
import type { TriggerStarted, TriggerWhen } from "../../../src/protocol/trigger-api.ts";
import { localExecutor } from "../../../src/testing/world/local-executor.ts";
import { quietRun } from "../../../src/testing/world/no-mail.ts";
import { indexOf } from "../indexed-memories.ts";
import { dumpStorage, type Recording } from "./format.ts";
import { RECORDED_PERSONA } from "./library.ts";
import { Stage } from "./stage.ts";
import { agentViews, memoryViews, runViews, triggerViews } from "./views.ts";

const TENANT = "test";
const USER = "ada";
const ACTOR = { tenant: TENANT, id: "keeper" };
const EDITOR: MemoryReader = { principal: { subject: USER, tenant: TENANT, roles: ["author"] } };
const WRITER: MemoryWriter = { reader: EDITOR, author: { kind: "principal", subject: USER } };
const WEBHOOK_SECRET = "whsec_recorded";

/** Wakes the run in the storage of a stage. Its task `read` waits for the gate of the stage, and fails for "broken" unless it is open. */
export function beginRun(stage: Stage): RunRuntime {
  const { clock, database, ids, keyValue } = stage;
  const read = defineTask({
    id: "read",
    input: z.object({ page: z.string() }),
    effect: "idempotent",
    async execute({ page }) {
      if (page === "held") await stage.pass();
      if (page === "broken" && !stage.isOpen) throw new ToolError("The page is broken.");
      return { text: `Text of ${page}.` };
    },
  });
  const executor = localExecutor(new DeployedCode([defineLibrary("release", { tasks: [read] })]), clock);
  const context = { ...quietRun, database, keyValue, clock, ids, executor, armWakeup: async () => undefined };
  return new RunRuntime(context, () => undefined);
}

/** Maximum time of a timer that fires while time is frozen. */
const SHORT_MS = 1_000;

/** Runs until the condition holds. Throws if it never does. `isFrozen`: only short timers fire. */
export async function playRun(
  { clock }: Stage,
  runtime: RunRuntime,
  condition: () => boolean,
  isFrozen = false,
): Promise<void> {
  for (let step = 0; !condition(); step++) {
    if (step > 2_000) throw new Error("The run is stuck.");
    await new Promise((resolve) => setImmediate(resolve));
    if (step % 10 !== 9) continue;
    if (isFrozen) {
      if (clock.nextDue !== undefined && clock.nextDue <= clock.now() + SHORT_MS) await clock.runNext();
      continue;
    }
    await clock.advance(Math.min(1_000, runtime.dueIn ?? 1_000));
    runtime.reconcile();
  }
}

const READ = { library: "release", id: "read", effect: "idempotent", timeoutMs: 60_000 } as const;
const ASK: PinnedWorkflow["tasks"][string] = {
  ...{ library: "release", id: "ask", effect: "pure", timeoutMs: 86_400_000 },
  task: {
    ...{ id: "ask", version: 1, hash: "", inputSchema: { type: "object" } },
    steps: [{ ref: "ask", action: { kind: "human.input", prompt: "Well?", schema: { type: "object" } } }],
  } as NonNullable<PinnedWorkflow["tasks"][string]["task"]>,
};
const MERGE = { source: "_branch.output.text", target: "state.texts", strategy: "collect" };
const PAGES = workflowSchema.parse({
  inputSchema: { type: "object" },
  contextSchema: { type: "object", properties: { texts: {}, answer: {} } },
  initialNode: "start",
  nodes: [
    { ref: "start" },
    {
      ref: "read",
      task: "release/read",
      inputMapping: { page: "page" },
      outputMapping: { "output.text": "result.text" },
    },
    { ref: "ask", task: "release/ask", outputMapping: { "state.answer": "result" } },
  ],
  transitions: [
    {
      ref: "fan-out",
      ...{ from: "start", to: "read", siblingGroup: "pages" },
      foreach: { collection: "input.pages", itemVar: "page" },
    },
    {
      ref: "fan-in",
      ...{ from: "read", to: "ask" },
      synchronization: { siblingGroup: "pages", strategy: "all", maxFailures: 0, merge: MERGE },
    },
  ],
  outputMapping: { texts: "state.texts", answer: "state.answer" },
});
const CALLS = workflowSchema.parse({
  inputSchema: { type: "object" },
  initialNode: "pages",
  nodes: [{ ref: "pages", workflow: "release/pages", outputMapping: { "output.below": "result" } }],
  transitions: [],
  outputMapping: { below: "output.below" },
});
const pinned = (id: string, definition: PinnedWorkflow["definition"]) => ({
  ...{ library: "release", id, version: 1, hash: "", definition },
});
const PAGES_PIN: PinnedWorkflow = {
  ...pinned("pages", PAGES),
  tasks: { read: READ, ask: ASK },
  workflows: {},
};
const CALLS_PIN: PinnedWorkflow = { ...pinned("calls", CALLS), tasks: {}, workflows: { pages: PAGES_PIN } };

async function run(
  name: string,
  { pages, workflow = PAGES_PIN }: { pages: string[]; workflow?: PinnedWorkflow },
  condition: (runtime: RunRuntime) => boolean,
  answer?: (runtime: RunRuntime) => Promise<void>,
): Promise<Recording> {
  const stage = new Stage();
  const runtime = beginRun(stage);
  const { clock, database, ids, keyValue } = stage;
  const record: RunRecord = {
    ...{ id: `run_${ids.ulid()}`, tenant: TENANT, projectId: "default", stem: ids.ulid().slice(0, 19) },
    ...{ workflow, input: { pages }, startedBy: USER, request: "", createdAt: clock.now() },
  };
  await runtime.start(record);
  await playRun(stage, runtime, () => condition(runtime), true);
  await answer?.(runtime);
  const storage = dumpStorage(database, keyValue);
  return { name, of: "run", now: clock.now(), storage, views: runViews(runtime) };
}

const isAt = (node: string) => (runtime: RunRuntime) =>
  [...runtime.state.tokens.values()].some((token) => token.node === node && token.phase.kind === "working");
const hasCompleted = (runtime: RunRuntime) =>
  [...runtime.state.fanOuts.values()].some(({ finished }) => finished > 0);

/** Answers the open gate of a run. */
export async function answerRun(runtime: RunRuntime): Promise<void> {
  const [gate] = runViews(runtime).gates;
  if (gate === undefined) throw new Error("No gate is open.");
  await runtime.answer(gate.approval.operationId, { well: true }, USER);
}

export async function recordRuns(): Promise<Recording[]> {
  return [
    await run("run-during-tasks", { pages: ["one", "held"] }, hasCompleted),
    await run("run-at-gate", { pages: ["one", "two"] }, isAt("ask")),
    await run("run-with-sub-workflow", { pages: ["one"], workflow: CALLS_PIN }, isAt("pages")),
    await run("run-failed", { pages: ["one", "broken"] }, ({ state }) => state.status === "failed"),
    await run("run-completed", { pages: ["one"] }, isAt("ask"), answerRun),
  ];
}

/** Wakes the trigger in the storage of a stage. `start` answers its attempts. */
export function beginTrigger(
  { clock, database, keyValue }: Stage,
  start: (firing: Firing) => Promise<TriggerStarted>,
): TriggerRuntime {
  const ports = { armWakeup: async () => undefined, note: async () => undefined };
  return new TriggerRuntime({ clock, database, keyValue, start, ...ports });
}

/** The delivery that a recorded webhook has received. */
export const DELIVERY = { id: "delivery-1", hash: "hash-1" };

async function trigger(
  name: string,
  when: TriggerWhen,
  act: (runtime: TriggerRuntime, stage: Stage, record: TriggerRecord) => Promise<void>,
  start: (firing: Firing) => Promise<TriggerStarted> = async ({ key }) => ({ runId: `run of ${key}` }),
): Promise<Recording> {
  const stage = new Stage();
  const { clock, database, ids, keyValue } = stage;
  const runtime = beginTrigger(stage, start);
  const record: TriggerRecord = {
    ...{ id: `trig_${ids.ulid()}`, tenant: TENANT, createdBy: USER, actsAs: USER, when, enabled: true },
    ...{ starts: { workflow: "release/pages", input: { pages: ["one"] } } },
    ...{ createdAt: clock.now(), updatedAt: clock.now() },
    ...("webhook" in when && { secret: WEBHOOK_SECRET }),
  };
  await runtime.create(scheduled(record, clock.now()));
  await act(runtime, stage, record);
  const storage = dumpStorage(database, keyValue);
  return { name, of: "trigger", now: clock.now(), storage, views: triggerViews(runtime) };
}

const passMinute = async (runtime: TriggerRuntime, { clock }: Stage) => {
  await clock.advance(60_000);
  runtime.reconcile();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};

export async function recordTriggers(): Promise<Recording[]> {
  const everyMinute = { cron: "* * * * *" };
  return [
    await trigger("trigger-cron", everyMinute, passMinute),
    await trigger("trigger-due", everyMinute, passMinute, () => new Promise(() => undefined)),
    await trigger(
      "trigger-webhook",
      { webhook: true },
      async (runtime, _, { id, tenant, starts, actsAs }) => {
        await runtime.deliver(DELIVERY, { id, tenant, starts, actsAs, key: DELIVERY.id });
      },
    ),
  ];
}

/** The memory in the storage of an agent. */
export function beginMemory({ clock, database, ids, keyValue }: Stage): {
  corpus: Corpus;
  extractions: Extractions;
} {
  const index = indexOf({ database, keyValue }, () => corpus.rows, { clock });
  const corpus: Corpus = new Corpus({
    ...{ database, keyValue, clock, ids, index },
    objects: () => null,
    agent: () => ACTOR,
    noted: async () => undefined,
    committed: () => undefined,
  });
  return { corpus, extractions: new Extractions(corpus) };
}

/** The recorded memories: with a log, a subject, a long text and metadata, and from extractions. One memory and some sources are erased. */
export async function recordMemory(): Promise<Recording> {
  const stage = new Stage();
  const { clock, database, ids, keyValue } = stage;
  const store = new AgentStore({ database, keyValue }, () => ACTOR.id);
  const time = new Date(clock.now()).toISOString();
  const persona = { ...RECORDED_PERSONA, memory: { scope: "user" as const, extract: true } };
  store.create({ ...ACTOR, persona, projectIds: ["default"], createdAt: time, updatedAt: time });
  store.addConversation(`conv_${ids.ulid()}`, clock.now());
  // The salt of hashes is random otherwise.
  keyValue.put("memory:salt", "the salt of the recording");
  const { corpus, extractions } = beginMemory(stage);
  const subject = { userId: USER };
  await corpus.write(WRITER, [
    { key: "tea", content: "Ada loves tea.", subject },
    { content: "The harbour opens at six.", type: "event", time, metadata: { source: "letter" } },
    { content: "All about the harbour. ".repeat(2_000) },
    { content: "To be erased." },
  ]);
  await clock.advance(1_000);
  await corpus.write(WRITER, [{ key: "tea", content: "Ada hates tea.", subject }]);
  const { items } = await corpus.list(EDITOR);
  const erased = items.find(({ content }) => content === "To be erased.");
  await corpus.delete(WRITER, erased?.id ?? "");
  for (const [operationId, turnId, content] of [
    ["op_1", "turn_1", "Ada has a dog."],
    ["op_2", "turn_2", "Ada has a dog."],
    ["op_3", "turn_3", "Ada moved to Rome."],
  ] as const) {
    const conversationId = `conv_${operationId}`;
    const given: ExtractedMemories = {
      ...{ operationId, scope: "user", used: [], time, subject: { userId: USER, conversationId } },
      source: { conversationId, turnId, entries: [0, 1] },
      ...(operationId === "op_3" && { tainted: true as const }),
      operations: [{ op: "write", content }],
    };
    const body = extractedSchema.parse(given);
    const prepared = await extractions.prepare(body);
    database.transaction(() => extractions.apply(body, prepared));
  }
  database.transaction(() => void eraseSources(corpus, { conversationId: "conv_erased" }));
  const views = { ...agentViews(store), ...(await memoryViews(corpus, EDITOR)) };
  const storage = dumpStorage(database, keyValue);
  return { name: "memory", of: "memory", now: clock.now(), storage, views };
}

export { EDITOR, WRITER };
