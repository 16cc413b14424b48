/** One correlation id and one trace on the real Worker: from a message, a request or a trigger to runs, sub-runs, agents, tools and tasks. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import type { SpanView, TraceView } from "../../src/protocol/trace.ts";
import { signedBytes } from "../../src/protocol/webhook.ts";
import type { SpanRecord } from "../support/provider-script.ts";
import { postTool } from "./authoring.ts";
import { Play, spansOf } from "./provider.ts";
import { call, ended, type Flow, journal, post } from "./run-helpers.ts";
import { checkInvariants, createAgent, createConversation, request } from "./world.ts";

const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
const TEXT = { type: "object", properties: { message: { type: "string" } }, required: ["message"] };
const ANYTHING = { type: "object", properties: { told: {}, said: {} } };
const CALLER = "00f067aa0ba902b7";

let worker: string;
let boss: string;
let inner: string;

/** A task that returns its trail, then an agent. */
const asking = (more: object = {}): Flow => ({
  inputSchema: TEXT,
  contextSchema: ANYTHING,
  initialNode: "tell",
  nodes: [
    { ref: "tell", task: "flow/trail", inputMapping: {}, outputMapping: { "state.told": "result" } },
    {
      ref: "ask",
      agent: worker,
      inputMapping: { message: "input.message" },
      outputMapping: { "state.said": "result.text" },
      ...more,
    },
  ],
  transitions: [{ from: "tell", to: "ask" }],
  outputMapping: { told: "state.told", said: "state.said" },
});

beforeAll(async () => {
  worker = await createAgent({ identity, tools: { toolIds: ["test/correlation"] } });
  inner = await post(asking());
  const outer = await post({
    inputSchema: TEXT,
    contextSchema: ANYTHING,
    initialNode: "below",
    nodes: [
      {
        ref: "below",
        workflow: inner,
        inputMapping: { message: "input.message" },
        outputMapping: { "state.told": "result" },
      },
    ],
    outputMapping: { told: "state.told" },
  });
  const inviting = await post(asking({ mode: "loop_in" }));
  boss = await createAgent({
    identity,
    tools: {
      toolIds: [
        await postTool("trails", "work", { workflow: outer }),
        await postTool("trails", "invite", { workflow: inviting }),
      ],
    },
  });
});

afterEach(checkInvariants);

function newTrace() {
  const traceId = `7e57${crypto.randomUUID().replaceAll("-", "").slice(4)}`;
  return { traceId, traceparent: `00-${traceId}-${CALLER}-01` };
}

/** Starts a run below a span of the caller's. */
async function startRun(body: object): Promise<{ id: string; traceId: string }> {
  const { traceId, traceparent } = newTrace();
  const init = { method: "POST", headers: { traceparent }, body: JSON.stringify(body) };
  const response = await request("/api/runs", init);
  expect(response.status, await response.clone().text()).toBe(201);
  return { id: (await response.json<RunView>()).id, traceId };
}

/** Returns the names of a span and of the spans above it, from the top. */
function pathTo(spans: readonly SpanView[], { name, parentSpanId }: SpanView): string[] {
  const parent = spans.find(({ spanId }) => spanId === parentSpanId);
  return parent === undefined ? [name] : [...pathTo(spans, parent), name];
}

function named(spans: readonly SpanView[], name: string): SpanView {
  const [found, ...others] = spans.filter((span) => span.name === name);
  if (found === undefined || others.length > 0)
    throw new Error(
      `${others.length + (found ? 1 : 0)} spans "${name}" of: ${spans.map((one) => one.name).join(", ")}`,
    );
  return found;
}

const correlationsOf = (spans: readonly SpanView[]) => [
  ...new Set(spans.map(({ attributes }) => attributes["dramatis.correlation.id"])),
];
const idsOf = (spans: readonly Pick<SpanRecord, "spanId">[]) => spans.map(({ spanId }) => spanId).toSorted();

async function read<Body>(path: string): Promise<Body> {
  const response = await request(path);
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json<Body>();
}

/** The script of the worker: it calls the tool that returns its trail. */
const working = () => new Play({ replies: [[{ call: "correlation", input: {} }], [{ text: "Done." }]] });

interface ShownTrail {
  correlationId: string;
  traceparent: string;
}

/** Returns the conversation that a node of a run has opened. */
async function conversationOf(runId: string): Promise<string> {
  const dispatched = (await journal(runId)).find(
    ({ type, node }) => type === "task.dispatched" && node === "ask",
  );
  // SAFETY: the entry of a node with an agent names the conversation.
  return (dispatched?.data as { conversationId?: string } | undefined)?.conversationId ?? "";
}

async function toolResultIn(conversationId: string): Promise<{ correlationId: string; told: ShownTrail }> {
  const { turns } = await read<{ turns: { id: string }[] }>(`/api/conversations/${conversationId}/turns`);
  const turn = await read<{ correlationId: string; moves: { toolResult?: { result: ShownTrail } }[] }>(
    `/api/conversations/${conversationId}/turns/${turns[0]?.id}`,
  );
  const told = turn.moves.flatMap(({ toolResult }) => toolResult?.result ?? [])[0];
  if (told === undefined) throw new Error(`The worker called no tool: ${JSON.stringify(turn.moves)}`);
  return { correlationId: turn.correlationId, told };
}

test("I4 TRAIL-1 RUNTRACE-1 RUNSPAN-1 RUNSPAN-2 RUNSPAN-3 from a message over a run, a sub-run and an agent to its tool", async () => {
  const { traceId, traceparent } = newTrace();
  const conversation = await createConversation(boss);
  const bottom = working();
  const play = new Play({
    replies: [[{ call: "work", input: { message: bottom.content } }], [{ text: "All done." }]],
  });
  const sent = await request(`${conversation.path}/turns`, {
    method: "POST",
    headers: { "content-type": "application/json", traceparent },
    body: JSON.stringify({ content: play.content }),
  });
  expect(sent.status).toBe(202);
  const { turnId } = await sent.json<{ turnId: string }>();
  const turn = await conversation.ended(turnId);
  expect(turn).toMatchObject({ status: "completed", answer: "All done." });
  const { correlationId } = turn;
  const runId = turn.moves.flatMap(({ toolCall }) => toolCall?.runId ?? [])[0] ?? "";

  const outer = await call("GET", `/${runId}`, 200);
  expect(outer.correlationId).toBe(correlationId);
  const trace = await read<TraceView>(`${conversation.path}/turns/${turnId}/trace`);
  expect(trace).toMatchObject({ traceId, partial: false });
  expect(correlationsOf(trace.spans)).toEqual([correlationId]);
  const runs = [...new Set(trace.spans.flatMap(({ attributes }) => attributes["dramatis.run.id"] ?? []))];
  expect(runs).toHaveLength(2);
  const below = String(runs.find((id) => id !== runId));
  expect((await call("GET", `/${below}`, 200)).correlationId).toBe(correlationId);

  // The task and the tool of the agent have the same id and trace, each with the place of its own span.
  const { told } = (await call("GET", `/${below}`, 200)).output as unknown as { told: ShownTrail };
  const task = named(trace.spans, "execute_task tell");
  expect(told).toEqual({ correlationId, traceparent: `00-${traceId}-${task.spanId}-01` });
  const agent = await toolResultIn(await conversationOf(below));
  const tool = named(trace.spans, "execute_tool correlation");
  expect(agent).toEqual({
    correlationId,
    told: { correlationId, traceparent: `00-${traceId}-${tool.spanId}-01` },
  });

  const workflows = (await Promise.all([runId, below].map((id) => call("GET", `/${id}`, 200)))).map(
    ({ workflow: { library, id } }) => `invoke_workflow ${library}/${id}`,
  );
  expect(pathTo(trace.spans, tool)).toEqual([
    `invoke_agent ${boss}`,
    "execute_tool work",
    workflows[0],
    workflows[1],
    workflows[1],
    `invoke_agent ${worker}`,
    `invoke_agent ${worker}`,
    "execute_tool correlation",
  ]);
  expect(pathTo(trace.spans, task).slice(-3)).toEqual([workflows[1], workflows[1], "execute_task tell"]);
  expect(new Set(idsOf(trace.spans)).size).toBe(trace.spans.length);
  expect(trace.spans.filter(({ parentSpanId }) => parentSpanId === CALLER)).toHaveLength(1);
  // The collector got the same spans.
  const collected = await spansOf(traceId, trace.spans.length);
  expect(idsOf(collected)).toEqual(idsOf(trace.spans));
  for (const text of [bottom.key, play.key, "Done.", "All done."])
    expect(JSON.stringify([trace.spans, collected])).not.toContain(text);
});

test("I4 TRAIL-1 TRACES-3 TRACEREAD-3 an agent that a run invites has the node as its parent, also in the trace of the run", async () => {
  const conversation = await createConversation(boss);
  const { turnId } = await conversation.play({
    replies: [[{ call: "invite", input: { message: working().content } }], [{ text: "All done." }]],
  });
  const { correlationId, moves } = await conversation.ended(turnId);
  const trace = await read<TraceView>(`${conversation.path}/turns/${turnId}/trace`);
  expect(trace.partial).toBe(false);
  expect(new Set(idsOf(trace.spans)).size).toBe(trace.spans.length);
  expect(correlationsOf(trace.spans)).toEqual([correlationId]);
  const path = pathTo(trace.spans, named(trace.spans, "execute_tool correlation"));
  expect(path.slice(-3)).toEqual([
    `invoke_agent ${worker}`,
    `invoke_agent ${worker}`,
    "execute_tool correlation",
  ]);
  expect(path[0]).toBe(`invoke_agent ${boss}`);

  // The run and all work below it, without the turn that called its tool.
  const runId = moves.flatMap(({ toolCall }) => toolCall?.runId ?? [])[0];
  const ofRun = await read<TraceView>(`/api/runs/${runId}/trace`);
  expect(ofRun.partial).toBe(false);
  const [first = ""] = pathTo(ofRun.spans, named(ofRun.spans, "execute_tool correlation"));
  expect(first).toMatch(/^invoke_workflow /);
  const isAbove = ({ attributes, name }: SpanView) =>
    attributes["dramatis.turn.id"] === turnId || name === `invoke_agent ${boss}`;
  expect(idsOf(ofRun.spans)).toEqual(idsOf(trace.spans.filter((span) => !isAbove(span))));
});

test("I4 TRAIL-1 RUNTRACE-1 a run by API takes a header and an id, and an attempt that is repeated keeps both", async () => {
  const workflow = await post({
    inputSchema: TEXT,
    contextSchema: ANYTHING,
    initialNode: "tell",
    nodes: [
      {
        ref: "tell",
        task: "flow/trail",
        inputMapping: { flaky: "2" },
        outputMapping: { "state.told": "result" },
      },
    ],
    outputMapping: { told: "state.told" },
  });
  const { id, traceId } = await startRun({ workflow, input: { message: "" }, correlationId: "order-4711" });
  const run = await ended(id);
  expect(run).toMatchObject({ status: "completed", correlationId: "order-4711" });
  const trace = await read<TraceView>(`/api/runs/${id}/trace`);
  const task = named(trace.spans, "execute_task tell");
  expect(task.attributes["dramatis.attempts"]).toBe(3);
  expect(run.output).toEqual({
    told: { correlationId: "order-4711", traceparent: `00-${traceId}-${task.spanId}-01` },
  });
  expect(trace).toMatchObject({ traceId, partial: false });
  expect(trace.spans).toHaveLength(2);
  expect(trace.spans.filter(({ parentSpanId }) => parentSpanId === CALLER)).toHaveLength(1);
  expect(idsOf(await spansOf(traceId, 2))).toEqual(idsOf(trace.spans));
  const stranger = { subject: "bob", tenant: "test", roles: [] };
  expect((await request(`/api/runs/${id}/trace`, {}, stranger)).status).toBe(404);
});

test("I4 RUNTRACE-2 RUNSPAN-1 a run without an id has its own; a cancelled run and its work have spans", async () => {
  const key = crypto.randomUUID();
  const workflow = await post({
    initialNode: "start",
    nodes: [
      {
        ref: "start",
        task: "flow/work_idempotent",
        inputMapping: { key: "input.key", name: "'one'", wait: "'gate'" },
      },
    ],
  });
  const { id } = await startRun({ workflow, input: { key } });
  expect((await call("GET", `/${id}`, 200)).correlationId).toBe(id);
  await call("POST", `/${id}/cancel`, 200, {});
  const trace = await read<TraceView>(`/api/runs/${id}/trace`);
  expect(trace.partial).toBe(false);
  expect(trace.spans.map(({ name, error }) => [name.split(" ")[0], error]).toSorted()).toEqual([
    ["execute_task", "CANCELLED"],
    ["invoke_workflow", "CANCELLED"],
  ]);
  expect(correlationsOf(trace.spans)).toEqual([id]);
  expect(idsOf(await spansOf(trace.traceId, 2))).toEqual(idsOf(trace.spans));
});

test("I4 RUNSPAN-2 a failed run that is retried has a span for each end, and nodes have one for each retry", async () => {
  const nodes = [
    { ref: "fine", task: "flow/echo", inputMapping: { value: "1" } },
    {
      ref: "breaks",
      task: "flow/work_idempotent",
      inputMapping: { key: "input.key", name: "'breaks'", fails: "true" },
    },
  ];
  const workflow = await post({ initialNode: "fine", nodes, transitions: [{ from: "fine", to: "breaks" }] });
  const { id } = await startRun({ workflow, input: { key: crypto.randomUUID() } });
  expect(await ended(id)).toMatchObject({ status: "failed" });
  await call("POST", `/${id}/retry`, 200, {});
  expect(await ended(id)).toMatchObject({ status: "failed" });
  const { traceId, spans, partial } = await read<TraceView>(`/api/runs/${id}/trace`);
  expect(partial).toBe(false);
  expect(spans.map(({ name }) => name.split(" ")[0]).toSorted()).toEqual([
    "execute_task",
    "execute_task",
    "execute_task",
    "invoke_workflow",
    "invoke_workflow",
  ]);
  expect(spans.filter(({ parentSpanId }) => parentSpanId === CALLER)).toHaveLength(1);
  expect(new Set(idsOf(spans)).size).toBe(5);
  expect(idsOf(await spansOf(traceId, 5))).toEqual(idsOf(spans));
});

test("I4 TRAIL-1 RUNSPAN-2 the parts of a wide fan-out are below the node that starts them", async () => {
  const workflow = await post({
    inputSchema: { type: "object", properties: {} },
    contextSchema: { type: "object", properties: { all: { type: "array", items: {} } } },
    nodes: [
      { ref: "start" },
      {
        ref: "tell",
        task: "flow/trail",
        inputMapping: {},
        outputMapping: { "output.value": "result.correlationId" },
      },
      { ref: "end" },
    ],
    transitions: [
      { from: "start", to: "tell", siblingGroup: "all", spawnCount: 300 },
      {
        from: "tell",
        to: "end",
        synchronization: {
          siblingGroup: "all",
          strategy: "all",
          merge: { source: "_branch.output.value", target: "state.all", strategy: "collect" },
        },
      },
    ],
    outputMapping: { all: "state.all" },
  });
  const { id } = await call("POST", "", 201, { workflow, correlationId: "wide-1" });
  const { output } = await ended(id);
  expect(new Set((output as { all: string[] }).all)).toEqual(new Set(["wide-1"]));
  const { spans, partial } = await read<TraceView>(`/api/runs/${id}/trace`);
  expect(partial).toBe(false);
  const tasks = spans.filter(({ name }) => name === "execute_task tell");
  expect(tasks).toHaveLength(300);
  expect(correlationsOf(spans)).toEqual(["wide-1"]);
  const [flow = ""] = spans.map(({ name }) => name);
  for (const task of tasks)
    expect(pathTo(spans, task)).toEqual([flow, "run_part start", flow, "execute_task tell"]);
});

/** Delivers an empty body to the webhook of a trigger, below a span of the caller's. */
async function deliver(starts: object) {
  const { traceId, traceparent } = newTrace();
  const created = await request("/api/triggers", {
    method: "POST",
    body: JSON.stringify({ when: { webhook: true }, starts }),
  });
  expect(created.status, await created.clone().text()).toBe(201);
  const {
    id,
    webhookPath: hook,
    secret,
  } = await created.json<{ id: string; webhookPath: string; secret: string }>();
  const [delivery, time] = [crypto.randomUUID(), Math.floor(Date.now() / 1_000)];
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), hmac, false, ["sign"]);
  const signed = signedBytes({ id: delivery, time, body: new Uint8Array() });
  const signature = [...new Uint8Array(await crypto.subtle.sign("HMAC", key, signed))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
  const response = await request(hook, {
    method: "POST",
    headers: {
      ...{ traceparent, "dramatis-delivery": delivery },
      "dramatis-signature": `t=${time},v1=${signature}`,
    },
  });
  expect(response.status, await response.clone().text()).toBe(202);
  const started = await response.json<{ runId: string; turnId: string }>();
  return { ...started, traceId, correlationId: `${id}:${delivery}` };
}

test("I4 TRAIL-1 from a delivery to a webhook over a run to an agent and its tool", async () => {
  const input = { message: working().content };
  const { runId, traceId, correlationId } = await deliver({ workflow: inner, input });
  const run = await ended(runId);
  const trace = await read<TraceView>(`/api/runs/${runId}/trace`);
  expect(trace).toMatchObject({ traceId, partial: false });
  expect(correlationsOf(trace.spans)).toEqual([correlationId]);
  expect(trace.spans.filter(({ parentSpanId }) => parentSpanId === CALLER)).toHaveLength(1);
  const place = (name: string) => `00-${traceId}-${named(trace.spans, name).spanId}-01`;
  expect(run).toMatchObject({
    status: "completed",
    correlationId,
    output: { told: { correlationId, traceparent: place("execute_task tell") } },
  });
  expect(await toolResultIn(await conversationOf(runId))).toEqual({
    correlationId,
    told: { correlationId, traceparent: place("execute_tool correlation") },
  });
});

test("I4 TRAIL-1 from a delivery to a webhook over a turn and its run to an agent and its tool", async () => {
  const conversation = await createConversation(boss);
  const { content } = new Play({
    replies: [[{ call: "work", input: { message: working().content } }], [{ text: "All done." }]],
  });
  const { turnId, traceId } = await deliver({ conversationId: conversation.id, content });
  const { status, correlationId } = await conversation.ended(turnId);
  expect(status).toBe("completed");
  const trace = await read<TraceView>(`${conversation.path}/turns/${turnId}/trace`);
  expect(trace).toMatchObject({ traceId, partial: false });
  expect(correlationsOf(trace.spans)).toEqual([correlationId]);
  const path = pathTo(trace.spans, named(trace.spans, "execute_tool correlation"));
  expect([path[0], path.length]).toEqual([`invoke_agent ${boss}`, 8]);
});

test("I4 TRAIL-1 from a trigger over a run to an agent and its tool", async () => {
  const at = Date.now() + 3_600_000;
  const starts = { workflow: inner, input: { message: working().content } };
  const created = await request("/api/triggers", {
    method: "POST",
    body: JSON.stringify({ when: { at: new Date(at).toISOString() }, starts }),
  });
  expect(created.status).toBe(201);
  const { id } = await created.json<{ id: string }>();
  // SAFETY: the classes of the application are among the exports.
  const { Trigger } = exports as unknown as { Trigger: DurableObjectNamespace };
  vi.useFakeTimers({ toFake: ["Date"], now: at + 1_000 });
  onTestFinished(() => void vi.useRealTimers());
  await runDurableObjectAlarm(Trigger.getByName(`test:${id}`));
  const { runId } = await vi.waitUntil(
    async () => (await read<{ lastStarted?: { runId: string } }>(`/api/triggers/${id}`)).lastStarted,
    { timeout: 10_000, interval: 20 },
  );
  vi.useRealTimers();
  const run = await ended(runId);
  expect(run.status).toBe("completed");
  expect(run.correlationId).toMatch(new RegExp(`^${id}:`));
  const { traceId, spans, partial } = await read<TraceView>(`/api/runs/${runId}/trace`);
  expect(partial).toBe(false);
  expect(correlationsOf(spans)).toEqual([run.correlationId]);
  const tool = named(spans, "execute_tool correlation");
  const agent = await toolResultIn(await conversationOf(runId));
  expect(agent.told).toEqual({
    correlationId: run.correlationId,
    traceparent: `00-${traceId}-${tool.spanId}-01`,
  });
  expect(pathTo(spans, tool).map((name) => name.split(" ")[0])).toEqual([
    "invoke_workflow",
    "invoke_agent",
    "invoke_agent",
    "execute_tool",
  ]);
});
