/**
 * Hooks that run workflows, on the real Worker: each attempt of a hook starts a run, and the run's output is the hook's
 * result.
 */
import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { newConversationId } from "../../src/agents/base/lookup/conversation-id.ts";
import { durableActor } from "../../src/agents/base/lookup/durable-actors.ts";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import { HookRuns } from "../../src/agents/conversation/effects/hook-runs.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import type { CoordinatorApi } from "../../src/protocol/coordinator-api.ts";
import { calledRunId } from "../../src/protocol/ids.ts";
import type { TraceView } from "../../src/protocol/trace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { expectProblem, post as postTo } from "./http-client.ts";
import { Play } from "./provider.ts";
import { call, ended, post } from "./run-helpers.ts";
import {
  ADA,
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

afterEach(checkInvariants);

const script = (text = "Yes.") => ({ replies: [[{ text }]] });
const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };

/** A conversation of an agent with a persona of the hooks' library, and its first turn. */
async function begin(persona: string) {
  const conversation = await createConversation(await createAgent(`hookflows/${persona}`));
  return { conversation, ...(await conversation.play(script())) };
}

/** The entries of a conversation's hooks. */
async function entriesOf(conversation: TestConversation, kind: string): Promise<JournalEntryView[]> {
  return (await conversation.journal()).filter(({ type }) => type.startsWith(`${kind}.`));
}

function runIds(entries: readonly JournalEntryView[]): string[] {
  return entries.flatMap(({ data }) => {
    const { runId } = (data ?? {}) as { runId?: string };
    return runId ?? [];
  });
}

const finalized = (conversation: TestConversation) =>
  vi.waitUntil(async () => (await conversation.journal()).find(({ type }) => type === "turn.finalized"), {
    timeout: 20_000,
    interval: 20,
  });

/** Kills one actor; the others live on. */
async function kill(stub: DurableObjectStub): Promise<void> {
  await runInDurableObject(stub, (_actor, state) => state.abort("The test ends this life.")).catch(
    () => undefined,
  );
}

async function traceOf({ path }: TestConversation, turnId: string, principal = ADA): Promise<TraceView> {
  const response = await request(`${path}/turns/${turnId}/trace`, {}, principal);
  expect(response.status).toBe(200);
  return response.json<TraceView>();
}

/** The ids of the runs that a trace has spans of. */
const runsIn = (spans: TraceView["spans"]) =>
  [...new Set(spans.flatMap(({ attributes }) => attributes["dramatis.run.id"] ?? []))].toSorted();

function runActor(id: string): DurableObjectStub {
  // SAFETY: the classes of the application are among the exports.
  const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
  return Coordinator.getByName(`${ADA.tenant}:${id}`);
}

describe("scenario 09: a context hook that is a workflow", () => {
  test("A36 FLOWCALL-2 its output is the provider's request, and the journal names its run", async () => {
    const { conversation, play, turnId } = await begin("assembly_works");
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Yes." });
    const [asked, ...others] = await play.requests(1);
    expect(others).toEqual([]);
    expect(asked?.body).toEqual({
      model: "scripted",
      stream: true,
      seed: 7,
      messages: [{ role: "user", content: play.content }],
    });
    const entries = await entriesOf(conversation, "context_assembly");
    expect(entries.map(({ type }) => type)).toEqual([
      "context_assembly.started",
      "context_assembly.completed",
    ]);
    const [id = "", again] = runIds(entries);
    expect(again).toBe(id);
    expect(await call("GET", `/${id}`, 200)).toMatchObject({
      status: "completed",
      startedBy: "ada",
      workflow: { library: "hookflows", id: "assembly_works" },
      input: { turn_id: turnId, recent_turns: [] },
    });
    await call("GET", `/${id}`, 404, undefined, { subject: "bob", tenant: "test", roles: [] });
    const turn = await conversation.turn(turnId);
    expect(turn.contextAssemblyRunId).toBe(id);
  });

  test("HOOKIN-1 a closed input schema takes each member that the hook gives, also memories", async () => {
    const agent = await createAgent("hookflows/closed");
    expect(
      (await postTo(`/api/agents/${agent}/memories`, { content: "The bike is blue." }, ADA)).status,
    ).toBe(201);
    const conversation = await createConversation(agent);
    const { turnId } = await conversation.play({ ...script(), says: "Which colour is the bike?" });
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Yes." });
    const [id] = runIds(await entriesOf(conversation, "context_assembly"));
    expect(await call("GET", `/${id}`, 200)).toMatchObject({
      input: { memories: [{ content: "The bike is blue." }] },
    });
  });

  test.each<[string, (id: string, conversation: TestConversation) => Promise<void>]>([
    ["of the conversation", (_, conversation) => kill(conversation.stub)],
    ["of the run", (id) => kill(runActor(id))],
    ["of all actors", () => crash()],
  ])(
    "HOOK-5 FLOWCALL-1 a crash %s in the middle leaves one run, and the turn completes",
    async (_, crashes) => {
      const { conversation, play, turnId } = await begin("assembly_waits");
      await play.reached("prepare");
      const [id = ""] = runIds(await entriesOf(conversation, "context_assembly"));
      await crashes(id, conversation);
      await conversation.view();
      await play.open("prepare");
      expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Yes." });
      expect(await play.runs()).toHaveLength(1);
      const entries = await entriesOf(conversation, "context_assembly");
      expect(new Set(runIds(entries))).toEqual(new Set([id]));
      expect(await call("GET", `/${id}`, 200)).toMatchObject({ status: "completed", tokens: 1 });
      expect(await play.requests()).toHaveLength(1);
    },
  );

  test("HOOK-6 FLOWCALL-3 a stop of the turn cancels the run", async () => {
    const { conversation, play, turnId } = await begin("assembly_waits");
    await play.reached("prepare");
    const [id = ""] = runIds(await entriesOf(conversation, "context_assembly"));
    expect((await conversation.stop(turnId))[0]).toBe(200);
    expect(await ended(id)).toMatchObject({ status: "cancelled" });
    expect(await conversation.turn(turnId)).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
    expect(await play.requests()).toEqual([]);
  });
});

test("HOOKRUN-1 a start that is repeated with another input finds the run", async () => {
  const play = new Play(script());
  const operation = newOperationId();
  const runs = new HookRuns({
    waitUntil: () => undefined,
    clock: systemClock,
    run: (tenant, id) => durableActor<CoordinatorApi>(env, { kind: "coordinator", tenant, id }),
  });
  const caller = { agentId: "agent", conversationId: newConversationId(), turnId: "turn_1" };
  const id = calledRunId(operation, 1);
  const actor = await durableActor<CoordinatorApi>(env, { kind: "coordinator", tenant: ADA.tenant, id });
  const start = async (more: object) => {
    const stop = new AbortController();
    const called = {
      ...{ workflow: "hookflows/assembly_works", startedBy: "ada", path: [], projectId: "default" },
      origin: { ...caller, operationId: operation, attempt: 1 },
      input: { user_message: play.content, ...more },
    };
    const input = { tenant: ADA.tenant, called, timeoutMs: 30_000, given: {} };
    const started = runs.start(input, stop.signal);
    const view = await vi.waitFor(async () => unwrap(await actor.finished(ADA, 1_000)), { timeout: 20_000 });
    runs.end(operation);
    stop.abort();
    expect(await started).toBeUndefined();
    return view;
  };
  const first = await start({ summary: "Before." });
  expect(first).toMatchObject({ status: "completed", output: { seed: 7 } });
  expect(await start({ summary: "After." })).toEqual(first);
  expect(await play.runs()).toHaveLength(1);
});

test("scenario 10: A39 A40 a workflow extracts, and its operations are in the journal", async () => {
  const { conversation, play, turnId } = await begin("extraction_works");
  await conversation.ended(turnId);
  expect(await finalized(conversation)).toMatchObject({ data: { memoryExtractionStatus: "completed" } });
  await expect.poll(() => entriesOf(conversation, "memory_extraction"), { timeout: 20_000 }).toHaveLength(3);
  const entries = await entriesOf(conversation, "memory_extraction");
  expect(entries.map(({ type }) => type)).toEqual([
    "memory_extraction.started",
    "memory_extraction.completed",
    "memory_extraction.applied",
  ]);
  expect(entries[1]?.data).toMatchObject({ operations: [{ op: "write", content: "Yes." }] });
  const [id = "", again] = runIds(entries);
  expect(again).toBe(id);
  expect(await call("GET", `/${id}`, 200)).toMatchObject({ status: "completed", startedBy: "ada" });
  expect((await conversation.turn(turnId)).memoryExtractionRunId).toBe(id);
  expect(await play.runs()).toHaveLength(1);
});

test("scenario 10: HOOK-5 a crash in the middle of an extraction leaves one run, and its operations count once", async () => {
  const { conversation, play, turnId } = await begin("extraction_waits");
  await conversation.ended(turnId);
  await play.reached("note");
  await crash();
  await conversation.view();
  await play.open("note");
  expect(await finalized(conversation)).toMatchObject({ data: { memoryExtractionStatus: "completed" } });
  expect(await play.runs()).toHaveLength(1);
  const entries = await entriesOf(conversation, "memory_extraction");
  expect(new Set(runIds(entries)).size).toBe(1);
  expect(entries.filter(({ type }) => type === "memory_extraction.completed")).toHaveLength(1);
});

test("scenario 10: HOOK-6 a stop of the conversation cancels the run of its extraction", async () => {
  const { conversation, play, turnId } = await begin("extraction_waits");
  await conversation.ended(turnId);
  await play.reached("note");
  const [id = ""] = runIds(await entriesOf(conversation, "memory_extraction"));
  expect((await conversation.gate("cancel"))[0]).toBe(200);
  expect(await ended(id)).toMatchObject({ status: "cancelled" });
  expect(await conversation.turn(turnId)).toMatchObject({
    status: "completed",
    issues: { memoryExtractionFailed: true },
  });
});

test("scenario 13: A38 HOOK-3 TRACEREAD-4 if the runs of a context hook fail, its turn fails without a model call", async () => {
  const { conversation, play, turnId } = await begin("assembly_fails");
  expect(await conversation.ended(turnId)).toMatchObject({
    status: "failed",
    error: { code: "CONTEXT_ASSEMBLY_FAILED", message: expect.stringContaining('"prepare" fails.') },
    calls: [],
  });
  expect(await play.requests()).toEqual([]);
  const [started, ...failures] = await entriesOf(conversation, "context_assembly");
  expect(failures.map(({ data }) => data)).toMatchObject([
    { attempt: 1, final: false },
    { attempt: 2, final: false },
    { attempt: 3, final: true },
  ]);
  // Each attempt has a separate run.
  const ids = runIds(failures);
  expect(new Set(ids).size).toBe(3);
  expect(started && runIds([started])).toEqual(ids.slice(0, 1));
  for (const id of ids) expect(await call("GET", `/${id}`, 200)).toMatchObject({ status: "failed" });
  expect((await conversation.turn(turnId)).contextAssemblyRunId).toBe(ids[2]);
  const { spans, partial } = await traceOf(conversation, turnId);
  expect([runsIn(spans), partial]).toEqual([ids.toSorted(), false]);

  // Bob may read the conversation, and not the runs of Ada.
  const bob = { subject: "bob", tenant: "test", roles: [] };
  const body = JSON.stringify({ type: "user", id: "bob" });
  const added = await request(`${conversation.path}/participants`, { method: "POST", body });
  expect(added.ok, await added.clone().text()).toBe(true);
  const seen = await traceOf(conversation, turnId, bob);
  expect([runsIn(seen.spans), seen.partial]).toEqual([[], true]);
});

test("HOOK-3 TRACEREAD-1 a turn names the source run of its memories, and its trace has the runs of all attempts", async () => {
  const { conversation, turnId } = await begin("extraction_recovers");
  await conversation.ended(turnId);
  expect(await finalized(conversation)).toMatchObject({ data: { memoryExtractionStatus: "completed" } });
  const entries = await entriesOf(conversation, "memory_extraction");
  const completed = entries.filter(({ type }) => type === "memory_extraction.completed");
  const ids = [...new Set(runIds(entries))];
  expect(ids).toHaveLength(2);
  expect(runIds(completed)).toEqual(ids.slice(1));
  expect((await conversation.turn(turnId)).memoryExtractionRunId).toBe(ids[1]);
  expect(await call("GET", `/${ids[1]}`, 200)).toMatchObject({ status: "completed" });
  const { spans, partial } = await traceOf(conversation, turnId);
  expect([runsIn(spans), partial]).toEqual([ids.toSorted(), false]);
});

test("scenario 14: A40 HOOK-4 if the runs of an extraction fail, its turn stays completed", async () => {
  const { conversation, play, turnId } = await begin("extraction_fails");
  await conversation.ended(turnId);
  expect(await finalized(conversation)).toMatchObject({ data: { memoryExtractionStatus: "failed" } });
  expect(await conversation.turn(turnId)).toMatchObject({
    status: "completed",
    answer: "Yes.",
    issues: { memoryExtractionFailed: true },
  });
  expect(await play.runs()).toHaveLength(3);
  const entries = await entriesOf(conversation, "memory_extraction");
  expect((await conversation.turn(turnId)).memoryExtractionRunId).toBe(runIds(entries).at(-1));
  expect(entries.at(-1)).toMatchObject({
    type: "memory_extraction.failed",
    data: { attempt: 3, final: true, code: "EXECUTION_FAILED" },
  });
});

/** A workflow over the input of a hook, and more fields. */
const flow = (more: object) => ({
  inputSchema: {
    type: "object",
    properties: { user_message: { type: "string" } },
    required: ["user_message"],
  },
  contextSchema: { type: "object", properties: { got: {} } },
  initialNode: "only",
  nodes: [{ ref: "only", outputMapping: { "state.got": "input.user_message" } }],
  outputMapping: {
    model: "'scripted'",
    stream: "true",
    messages: "[{'role': 'user', 'content': state.got}]",
  },
  ...more,
});

const persona = (id: string, memory: object) =>
  postTo("/api/libraries/flows/personas", { id, identity, memory }, ADA);

test("HOOKPIN-1 a conversation keeps the workflow and all that it runs; later versions reach later conversations", async () => {
  const steps = (seed: number) => ({
    id: "seeds",
    inputSchema: { type: "object", properties: {} },
    steps: [{ ref: "seed", action: { kind: "update_context", values: { seed: String(seed) } } }],
  });
  const postTask = async (seed: number) =>
    expect((await postTo("/api/libraries/flows/tasks", steps(seed), ADA)).status).toBe(201);
  await postTask(1);
  const fields = flow({
    nodes: [{ ref: "only", task: "flows/seeds", inputMapping: {}, outputMapping: { "state.got": "result" } }],
  });
  const outputMapping = {
    ...{ model: "'scripted'", stream: "true", seed: "state.got.seed" },
    messages: "[{'role': 'user', 'content': input.user_message}]",
  };
  const workflow = await post({ ...fields, outputMapping });
  expect((await persona("keeps", { contextAssembly: { workflow } })).status).toBe(201);
  const agent = await createAgent("flows/keeps");
  const seedOf = async (conversation: TestConversation) => {
    const { play, turnId } = await conversation.play(script());
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
    return (await play.requests(1))[0]?.body;
  };
  const conversation = await createConversation(agent);
  expect(await seedOf(conversation)).toMatchObject({ seed: 1 });
  await postTask(2);
  expect(await seedOf(conversation)).toMatchObject({ seed: 1 });
  expect(await seedOf(await createConversation(agent))).toMatchObject({ seed: 2 });
});

test("RUNACCESS-3 a hook workflow that asks its own agent fails the turn", async () => {
  const id = `asks-${crypto.randomUUID().slice(0, 8)}`;
  const workflow = await post(
    flow({
      nodes: [
        {
          ref: "only",
          agent: id,
          inputMapping: { message: "input.user_message" },
          outputMapping: { "state.got": "result.text" },
        },
      ],
    }),
  );
  const made = await request("/api/agents", {
    method: "POST",
    body: JSON.stringify({ id, persona: { identity, memory: { contextAssembly: { workflow } } } }),
  });
  expect(made.status, await made.clone().text()).toBe(201);
  const conversation = await createConversation(id);
  const { turnId } = await conversation.play(script());
  expect(await conversation.ended(turnId)).toMatchObject({
    status: "failed",
    error: { code: "CONTEXT_ASSEMBLY_FAILED", message: expect.stringContaining("waits for the run") },
  });
});

describe("HOOKFORM-2 HOOKFIT-1 HOOKFIT-2 a persona is refused", () => {
  const input = { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] };
  test.each<[string, string, () => Promise<object>, RegExp]>([
    [
      "HOOKFORM-2 with a task and a workflow",
      "/memory/contextAssembly",
      async () => ({ contextAssembly: { task: "test/assemble", workflow: "hookflows/assembly_works" } }),
      /Remove one/,
    ],
    [
      "HOOKFORM-2 without both",
      "/memory/contextAssembly",
      async () => ({ contextAssembly: {} }),
      /Must be \{task\}.*or \{workflow\}/,
    ],
    [
      "HOOKFORM-1 with both forms of a hook",
      "/memory/memoryExtractionWorkflowId",
      async () => ({
        memoryExtraction: { task: "test/remember" },
        memoryExtractionWorkflowId: "hookflows/extraction_works",
      }),
      /is also given as/,
    ],
    [
      "with a workflow that does not exist",
      "/memory/contextAssembly/workflow",
      async () => ({ contextAssembly: { workflow: "hookflows/nothing" } }),
      /nothing/,
    ],
    [
      "with a task instead of a workflow",
      "/memory/contextAssembly/workflow",
      async () => ({ contextAssemblyWorkflowId: "test/assemble" }),
      /It is a task: name it in `task`/,
    ],
    [
      "with a workflow instead of a task",
      "/memory/contextAssembly/task",
      async () => ({ contextAssembly: { task: "hookflows/assembly_works" } }),
      /It is a workflow: name it in `workflow`/,
    ],
    [
      "HOOKFIT-1 with a workflow that needs other input",
      "/memory/contextAssembly/workflow",
      async () => ({
        contextAssembly: {
          workflow: await post(
            flow({ inputSchema: input, nodes: [{ ref: "only" }], outputMapping: { model: "'m'" } }),
          ),
        },
      }),
      /topic.*, which is required/,
    ],
    [
      "HOOKFIT-2 with a workflow that returns no operations",
      "/memory/memoryExtraction/workflow",
      async () => ({ memoryExtraction: { workflow: "hookflows/assembly_works" } }),
      /`operations`/,
    ],
  ])("%s", async (_, path, memory, message) => {
    const answer = await persona("refused", await memory());
    expectProblem(answer, 422, "INVALID_INPUT", path);
    expect(JSON.stringify(answer.body)).toMatch(message);
  });

  test("REG-8 at the start of an agent, with a workflow that asks a person", async () => {
    const asks = {
      ...{ id: "asks_in_hook", inputSchema: { type: "object", properties: {} } },
      steps: [{ ref: "ask", action: { kind: "human.approve", prompt: "Really?" } }],
    };
    expect((await postTo("/api/libraries/flows/tasks", asks, ADA)).status).toBe(201);
    const nodes = [
      { ref: "only", task: "flows/asks_in_hook", inputMapping: {}, outputMapping: { "state.got": "result" } },
    ];
    const workflow = await post(flow({ nodes }));
    expect((await persona("asking", { contextAssembly: { workflow } })).status).toBe(201);
    const response = await request("/api/agents", {
      method: "POST",
      body: JSON.stringify({ persona: "flows/asking" }),
    });
    expect(response.status).toBe(422);
    expect(await response.text()).toContain("asks a person");
  });
});
