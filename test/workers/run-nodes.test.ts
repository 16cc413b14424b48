/** Nodes of runs that wait for others, on the real Worker: sub-workflows, people, and agents. */
import { describe, expect, test, vi } from "vitest";
import type { RunView } from "../../src/protocol/coordinator-api.ts";
import { Play, runsOf } from "./provider.ts";
import { call, ended, type Flow, journal, post, start, task } from "./run-helpers.ts";
import { crash, createAgent, request } from "./world.ts";

/** Waits until a run is as `isSo` says. */
const until = (id: string, isSo: (run: RunView) => boolean): Promise<RunView> =>
  vi.waitUntil(
    async () => {
      const run = await call("GET", `/${id}`, 200);
      return isSo(run) ? run : undefined;
    },
    { timeout: 20_000, interval: 20 },
  );

const isWaiting = ({ status }: RunView) => status === "waiting";

describe("F9 a node with a sub-workflow", () => {
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

  test("fails with it, and a stop goes down to what works, also after a crash", async () => {
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

  test("waits, refuses what does not fit, takes the first answer, and shows the question", async () => {
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

  test("an approval is a verdict, and nothing but an answer moves it", async () => {
    const { id } = await start(await flow({ kind: "human.approve", prompt: "Send it?" }));
    const { gates } = await until(id, isWaiting);
    const path = `/${id}/gates/${gates[0]?.operationId}`;
    expect((await request(`/api/runs${path}`)).status).toBe(405);
    await call("POST", path, 422, { answer: {} });
    await call("POST", path, 200, { answer: { approved: false, comment: "Not yet." } });
    expect(await ended(id)).toMatchObject({ output: { answer: { approved: false, comment: "Not yet." } } });
  });

  test("ends with TIMEOUT when its time is over", async () => {
    const { id } = await start(await flow({ kind: "human.input", prompt: "Quick!", timeoutMs: 1_000 }));
    const { gates } = await until(id, isWaiting);
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "TIMEOUT" } });
    await call("POST", `/${id}/gates/${gates[0]?.operationId}`, 409, { answer: {} });
  });

  test("tools and hooks ask nobody so", async () => {
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

describe("A51 A28 a node with an agent", () => {
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

  test("an agent that does not exist fails the node", async () => {
    const { id } = await start(asking("nobody-there"), { items: ["Hello"] });
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "NOT_FOUND" } });
  });
});
