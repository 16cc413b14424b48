/** Nodes of runs that wait for others, on the real Worker: sub-workflows, people, and agents. */
import { exports } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import { calledRunId } from "../../src/protocol/ids.ts";
import type { MailboxPeer } from "../../src/protocol/mailbox-api.ts";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import { Play, runsOf } from "./provider.ts";
import { call, ended, type Flow, journal, post, start, task } from "./run-helpers.ts";
import { crash, createAgent, request } from "./world.ts";

/** Waits until a run satisfies `isSo`. */
const until = (id: string, isSo: (run: RunView) => boolean): Promise<RunView> =>
  vi.waitUntil(
    async () => {
      const run = await call("GET", `/${id}`, 200);
      return isSo(run) ? run : undefined;
    },
    { timeout: 20_000, interval: 20 },
  );

const isWaiting = ({ status }: RunView) => status === "waiting";

describe("F9 SUBRUN-1 SUBRUN-2 SUBRUN-3 a node with a sub-workflow", () => {
  const echo = (mapping: object = {}): Flow => ({
    initialNode: "work",
    contextSchema: { type: "object", properties: { got: {} } },
    nodes: [
      task(
        "work",
        "once",
        { outputMapping: { "state.got": "result.value" } },
        { value: "input.items", ...mapping },
      ),
    ],
    outputMapping: { got: "state.got" },
  });
  const around = (workflow: string): Flow => ({
    initialNode: "inner",
    contextSchema: { type: "object", properties: { got: {} } },
    nodes: [
      {
        ref: "inner",
        workflow,
        inputMapping: { key: "input.key", items: "input.items" },
        outputMapping: { "state.got": "result.got" },
      },
    ],
    outputMapping: { got: "state.got" },
  });

  test("gets its output, ten levels deep", async () => {
    let workflow = await post(echo());
    for (let level = 0; level < 8; level++) workflow = await post(around(workflow));
    const { id } = await start(around(workflow), { items: [1, 2] });
    expect(await ended(id)).toMatchObject({ status: "completed", output: { got: [1, 2] } });
  });

  test("fails with it, and a stop reaches the working nodes below, also after a crash", async () => {
    const failing = await start(around(await post(echo({ fails: "true" }))));
    expect(await ended(failing.id)).toMatchObject({ status: "failed", error: { code: "EXECUTION_FAILED" } });
    const { id, key } = await start(around(await post(echo({ wait: "'gate'" }))));
    await runsOf(key, 1);
    const [active] = (await until(id, isWaiting)).active;
    expect(active).toMatchObject({ node: "inner", status: "waiting_for_subworkflow", attempt: 1 });
    await crash();
    await call("POST", `/${id}/cancel`, 200, { reason: "Enough." });
    const child = await ended(String(active?.runId));
    expect(child).toMatchObject({ status: "cancelled", error: { message: "Enough." }, startedBy: "ada" });
    expect(await journal(id)).toContainEqual(
      expect.objectContaining({ type: "token.cancelled", node: "inner" }),
    );
  });

  /** Starts a run that waits for a sub-workflow. Returns its actor, and the address of the work that waits. */
  async function waitingRun() {
    const { id, key } = await start(around(await post(echo({ wait: "'gate'" }))));
    await runsOf(key, 1);
    const waiting = await until(id, isWaiting);
    // The id of the run of a first attempt has the characters of its operation.
    const operationId = String(waiting.active[0]?.runId).replace("run_", "op_");
    // SAFETY: the tests also call the methods with malformed input. The classes of the application are among the exports.
    const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace<never> };
    const actor = Coordinator.getByName(`test:${id}`) as unknown as Record<string, (end: object) => unknown>;
    return { id, waiting, actor, address: { operationId, attempt: 1 } };
  }

  test("ends by RPC; a malformed end is INVALID_INPUT and changes nothing", async () => {
    const { id, waiting, actor, address } = await waitingRun();
    const result = { tool_call_id: "", success: "yes" };
    const error = { code: "UNKNOWN", message: "Broken." };
    for (const [method, end] of [
      ["handleTaskResult", { result }],
      ["handleTaskError", { error }],
      ["handleSubworkflowResult", {}],
      ["handleSubworkflowResult", { output: 1, error }],
      ["handleSubworkflowError", { error: "Broken." }],
      ["handleAgentResult", { text: 1 }],
      ["handleAgentError", { error }],
      ["handleTaskError", { error: { ...error, retriable: false, foreign: 1 } }],
      ["handleSubworkflowResult", { output: 1, foreign: 1 }],
      ["handleSubworkflowResult", { output: 1, spent: {} }],
      ["handleSubworkflowError", { error, foreign: 1 }],
      ["handleAgentResult", { text: "Done.", foreign: 1 }],
    ] as const) {
      expect(await actor[method]?.({ ...address, ...end }), method).toMatchObject({
        error: { code: "INVALID_INPUT", retriable: false },
      });
      expect(await call("GET", `/${id}`, 200)).toEqual(waiting);
    }
    expect(await actor.handleSubworkflowResult?.({ ...address, output: { got: "by RPC" } })).toEqual({
      ok: true,
      value: null,
    });
    expect(await ended(id)).toMatchObject({ status: "completed", output: { got: "by RPC" } });
  });

  test("fails by RPC with the code and the message of the error, without its foreign members", async () => {
    const error = { code: "EXECUTION_FAILED", message: "Broken." };
    const foreign = { retriable: true, foreign: "foreign" };
    for (const [method, given] of [
      ["handleSubworkflowError", { ...error, ...foreign }],
      ["handleAgentError", { ...error, ...foreign, errors: [{ path: "/a", message: "foreign" }] }],
    ] as const) {
      const { id, actor, address } = await waitingRun();
      expect(await actor[method]?.({ ...address, error: given }), method).toEqual({ ok: true, value: null });
      expect(await ended(id)).toMatchObject({ status: "failed", error });
      expect(JSON.stringify([await call("GET", `/${id}`, 200), await journal(id)])).not.toContain("foreign");
    }
  });
});

describe("SUBRUN-4 RUNCALL-1 envelopes that no run above has sent", () => {
  const operationId = newOperationId();
  const address = (id: string) => ({ kind: "coordinator", tenant: "test", id });
  const child = calledRunId(operationId, 1);
  const receive = (type: string, to: string, from = "run_01JD0000000000000000000000", more: object = {}) => {
    // SAFETY: the classes of the application are among the exports.
    const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace<never> };
    const stub = Coordinator.getByName(`test:${to}`) as unknown as MailboxPeer;
    const envelope = {
      ...{
        operationId: newOperationId(),
        from: address(from),
        to: address(to),
        type,
        sentAt: Date.now(),
      },
      body: { operationId, attempt: 1, ...more },
    };
    return stub.receive(envelope, { number: 1, last: true });
  };

  test("start and cancel only the run of their operation", async () => {
    const { id } = await start({ initialNode: "one", nodes: [{ ref: "one" }] });
    for (const [type, more] of [
      ["run.start", {}],
      ["run.cancel", { reason: "No." }],
      ["run.ended", { outcome: { output: 1 } }],
    ] as const)
      expect(await receive(type, id, undefined, more), type).toMatchObject({ type: "refused" });
    expect(await ended(id)).toMatchObject({ status: "completed" });
  });

  test("a start that arrives after its cancellation is ignored", async () => {
    expect(await receive("run.cancel", child, undefined, { reason: "Too late." })).toMatchObject({
      type: "done",
    });
    await receive("run.start", child);
    await call("GET", `/${child}`, 404);
  });
});

describe("F11 RUNGATE-1 RUNGATE-2 a node that asks a person", () => {
  const library = async (action: object) => {
    const id = `ask_${crypto.randomUUID().slice(0, 8)}`;
    const inputSchema = { type: "object", properties: { order: { type: "string" } } };
    const body = { id, inputSchema, steps: [{ ref: "ask", action }] };
    const response = await request("/api/libraries/flows/tasks", {
      method: "POST",
      body: JSON.stringify(body),
    });
    expect(response.status, await response.clone().text()).toBe(201);
    return `flows/${id}`;
  };
  const flow = async (action: object): Promise<Flow> => ({
    initialNode: "ask",
    contextSchema: { type: "object", properties: { answer: {} } },
    nodes: [
      {
        ref: "ask",
        task: await library(action),
        inputMapping: { order: "'A1'" },
        outputMapping: { "state.answer": "result" },
      },
    ],
    outputMapping: { answer: "state.answer" },
  });

  test("waits, refuses invalid answers, takes the first valid answer, and shows the question", async () => {
    const schema = { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] };
    const { id } = await start(
      await flow({ kind: "human.input", prompt: "How much for {{ order }}?", schema }),
    );
    const { gates, active } = await until(id, isWaiting);
    expect(gates).toEqual([
      expect.objectContaining({
        node: "ask",
        kind: "human.input",
        prompt: "How much for A1?",
        input: { order: "A1" },
        schema,
      }),
    ]);
    expect(active).toMatchObject([{ status: "awaiting_human_input" }]);
    const path = `/${id}/gates/${gates[0]?.operationId}`;
    expect(await call<object>("POST", path, 422, { answer: { amount: "many" } })).toMatchObject({
      errors: [{ path: "/answer/amount" }],
    });
    expect((await call("GET", `/${id}`, 200)).status).toBe("waiting");
    await crash();
    await call("POST", path, 200, { answer: { amount: 5 } });
    expect(await ended(id)).toMatchObject({ status: "completed", output: { answer: { amount: 5 } } });
    await call("POST", path, 200, { answer: { amount: 5 } });
    await call("POST", path, 409, { answer: { amount: 6 } });
    await call("POST", path, 404, { answer: { amount: 5 } }, { subject: "bob", tenant: "test", roles: [] });
    expect(await journal(id)).toContainEqual(
      expect.objectContaining({ type: "gate.answered", data: { by: "ada", answer: { amount: 5 } } }),
    );
  });

  test("an approval is a verdict, and only an answer decides it", async () => {
    const { id } = await start(await flow({ kind: "human.approve", prompt: "Send it?" }));
    const { gates } = await until(id, isWaiting);
    const path = `/${id}/gates/${gates[0]?.operationId}`;
    expect((await request(`/api/runs${path}`)).status).toBe(405);
    await call("POST", path, 422, { answer: {} });
    await call("POST", path, 200, { answer: { approved: false, comment: "Not yet." } });
    expect(await ended(id)).toMatchObject({ output: { answer: { approved: false, comment: "Not yet." } } });
  });

  test("a review accepts changes with a schema that refers to its own parts", async () => {
    const schema = {
      type: "object",
      properties: { name: { $ref: "#/$defs/name" }, inner: { $ref: "#" } },
      $defs: { name: { type: "string" } },
    };
    const { id } = await start(await flow({ kind: "human.review", prompt: "Is it right?", schema }));
    const { gates } = await until(id, isWaiting);
    const path = `/${id}/gates/${gates[0]?.operationId}`;
    expect(
      await call<object>("POST", path, 422, { answer: { approved: true, changes: { inner: { name: 1 } } } }),
    ).toMatchObject({ errors: [{ path: "/answer/changes/inner/name" }] });
    await call("POST", path, 200, { answer: { approved: true, changes: { inner: { name: "A" } } } });
    expect(await ended(id)).toMatchObject({ output: { answer: { changes: { inner: { name: "A" } } } } });
  });

  test("ends with TIMEOUT when its time is over", async () => {
    const { id } = await start(await flow({ kind: "human.input", prompt: "Quick!", timeoutMs: 1_000 }));
    const { gates } = await until(id, isWaiting);
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "TIMEOUT" } });
    await call("POST", `/${id}/gates/${gates[0]?.operationId}`, 409, { answer: {} });
  });

  test("STEP-9 tools and hooks cannot ask a person this way, and a question is the only step of its task", async () => {
    const target = await library({ kind: "human.input", prompt: "What?" });
    const body = { id: "asks", name: "asks", description: "Asks.", target: { task: target } };
    const response = await request("/api/libraries/flows/tools", {
      method: "POST",
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(422);
    expect(await response.text()).toContain("asks a person");
    const steps = [1, 2].map((n) => ({ ref: `s${n}`, action: { kind: "human.input", prompt: "What?" } }));
    const two = { id: "two", inputSchema: { type: "object" }, steps };
    const refused = await request("/api/libraries/flows/tasks", {
      method: "POST",
      body: JSON.stringify(two),
    });
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain("only step");
  });
});

describe("A51 A28 AGENTNODE-1 AGENTNODE-2 a node with an agent", () => {
  const asking = (agent: string): Flow => ({
    initialNode: "ask",
    contextSchema: { type: "object", properties: { said: { type: "string" } } },
    nodes: [
      {
        ref: "ask",
        agent,
        inputMapping: { message: "input.items[0]" },
        outputMapping: { "state.said": "result.text" },
      },
    ],
    outputMapping: { said: "state.said" },
  });

  test("waits for its answer, which is the result; the agent is called by the run", async () => {
    const agent = await createAgent({
      identity: { systemPrompt: "You check.", modelProfileId: "test/scripted" },
    });
    const play = new Play({ replies: [[{ text: "It is right." }]] });
    const { id } = await start(asking(agent), { items: [play.content] });
    const run = await ended(id);
    expect(run).toMatchObject({ status: "completed", output: { said: "It is right." } });
  });

  test("AGENTNODE-5 an answer that its envelope shortens arrives completely, and so does the beginning of an answer above 1 MiB", async () => {
    const agent = await createAgent({
      identity: { systemPrompt: "You write.", modelProfileId: "test/scripted" },
    });
    const answerOf = async (times: number) => {
      const play = new Play({ replies: [[{ text: "Zoë 🦊 ", times }]] });
      const { output, status } = await ended((await start(asking(agent), { items: [play.content] })).id);
      expect(status).toBe("completed");
      return String(output?.said);
    };
    expect(await answerOf(40_000)).toBe("Zoë 🦊 ".repeat(40_000));
    const long = await answerOf(120_000);
    expect(long.length).toBeLessThanOrEqual(128 * 1024);
    expect(long.startsWith("Zoë 🦊 Zoë")).toBe(true);
  });

  test("RUNOUTBOX-1 more agents are called than the outbox of the run has room for, and all answer", async () => {
    const agent = await createAgent({
      identity: { systemPrompt: "You check.", modelProfileId: "test/scripted" },
    });
    const play = new Play({ replies: [[{ text: "It is right." }]] });
    const workflow = await post({
      inputSchema: { type: "object", properties: { message: { type: "string" } } },
      contextSchema: { type: "object", properties: { joined: {} } },
      nodes: [
        task("start", "pure", {}, { key: "'many'" }),
        { ref: "ask", agent },
        { ref: "end", outputMapping: { "state.joined": "fanIn" } },
      ],
      transitions: [
        { from: "start", to: "ask", siblingGroup: "all", spawnCount: 100 },
        { from: "ask", to: "end", synchronization: { siblingGroup: "all", strategy: "all" } },
      ],
      outputMapping: { joined: "state.joined" },
    });
    // 100 envelopes of 100 kB are more than 8 MiB.
    const input = { message: play.content + " ".repeat(100_000) };
    const { id } = await call("POST", "", 201, { workflow, input });
    expect(await ended(id, 60_000)).toMatchObject({
      status: "completed",
      output: { joined: { total: 100, completed: 100, failed: [] } },
    });
  }, 90_000);

  test("an agent that does not exist fails the node", async () => {
    const { id } = await start(asking("nobody-there"), { items: ["Hello"] });
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "NOT_FOUND" } });
  });
});

describe("F6 RUNTIME-1 the time limit of a run", () => {
  const limited = (onTimeout: string): Flow => ({
    initialNode: "one",
    nodes: [task("one", "once", {}, { wait: "'gate'" })],
    timeoutMs: 1_000,
    onTimeout,
  });

  test.each([
    ["fail", "timed_out"],
    ["cancel_all", "cancelled"],
  ])("with %s it ends as %s", async (onTimeout, status) => {
    const { id } = await start(limited(onTimeout));
    expect(await ended(id)).toMatchObject({ status, error: { code: "TIMEOUT" }, active: [] });
  });

  test("with human_gate a person is asked, and extends its time or ends it", async () => {
    const { id, key } = await start(limited("human_gate"));
    const asked = ({ gates }: RunView) => gates.length > 0;
    const [gate] = (await until(id, asked)).gates;
    expect(gate).toMatchObject({ kind: "human.approve", input: {} });
    const path = `/${id}/gates/${gate?.operationId}`;
    const more = await call("POST", path, 200, { answer: { approved: true } });
    expect(more).toMatchObject({ status: "running", gates: [] });
    await call("POST", path, 200, { answer: { approved: true } });
    const [again] = (await until(id, asked)).gates;
    await call("POST", path, 200, { answer: { approved: true } });
    expect((await call("GET", `/${id}`, 200)).gates, "an old answer counts once").toEqual([again]);
    await call("POST", path, 409, { answer: { approved: false } });
    await call("POST", `/${id}/gates/${again?.operationId}`, 200, { answer: { approved: false } });
    expect(await ended(id)).toMatchObject({ status: "timed_out" });
    expect(await runsOf(key)).toHaveLength(1);
  });

  test("A51 AGENTNODE-3 a node cannot invite its agent without a conversation, and a request cannot name one", async () => {
    const flow = { initialNode: "ask", nodes: [{ ref: "ask", agent: "clerk", mode: "loop_in" }] };
    const { id } = await start(flow);
    expect(await ended(id)).toMatchObject({
      status: "failed",
      error: { code: "INVALID_INPUT", message: expect.stringContaining('use the mode "delegate"') },
    });
    const origin = { conversationId: `conv_${"0".repeat(26)}`, turnId: "turn_1", agentId: "clerk" };
    const body = { workflow: await post(flow), input: { key: "k" }, origin };
    const refused = await call<{ code: string; detail: string }>("POST", "", 422, body);
    expect(refused).toMatchObject({ code: "INVALID_INPUT", detail: expect.stringContaining("origin") });
  });
});
