/** Tools that run workflows, on the real Worker: each call starts a run, and its output is the result. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import type { Envelope } from "../../src/protocol/envelope.ts";
import { calledRunId } from "../../src/protocol/ids.ts";
import type { MailboxPeer } from "../../src/protocol/mailbox-api.ts";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import type { WorkflowResultApi } from "../../src/protocol/workflow-call.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { openGate, Play, runsOf } from "./provider.ts";
import { call, ended, type Flow, post, task } from "./run-helpers.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });

/** A workflow of one task with this `mapping`. */
const work = (effect: string, mapping: object = {}): Flow => ({
  initialNode: "work",
  contextSchema: { type: "object", properties: { got: {} } },
  nodes: [
    task(
      "work",
      effect,
      { outputMapping: { "state.got": "result.value" } },
      { value: "input.items", ...mapping },
    ),
  ],
  outputMapping: { got: "state.got" },
});

/** Posts a tool over a workflow; returns its reference. */
async function flowTool(id: string, target: object, more: object = {}): Promise<string> {
  const body = { id, name: id, description: "Runs a workflow.", ...target, ...more };
  const response = await request("/api/libraries/flows/tools", {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(response.status, await response.clone().text()).toBe(201);
  return `flows/${id}`;
}

/** Posts a task that asks a person; returns its reference. */
async function question(): Promise<string> {
  const id = `asks_${crypto.randomUUID().slice(0, 8)}`;
  const inputSchema = { type: "object", properties: {} };
  const steps = [{ ref: "ask", action: { kind: "human.approve", prompt: "Send it?" } }];
  const response = await request("/api/libraries/flows/tasks", {
    method: "POST",
    body: JSON.stringify({ id, inputSchema, steps }),
  });
  expect(response.status, await response.clone().text()).toBe(201);
  return `flows/${id}`;
}

let agent: string;

beforeAll(async () => {
  const gate: Flow = {
    initialNode: "ask",
    contextSchema: { type: "object", properties: { answer: {} } },
    nodes: [
      { ref: "ask", task: await question(), inputMapping: {}, outputMapping: { "state.answer": "result" } },
    ],
    outputMapping: { answer: "state.answer" },
  };
  const tools = [
    await flowTool("echo", { target: { workflow: await post(work("pure")) } }),
    await flowTool("later", { workflowId: await post(work("pure", { wait: "'gate'" })) }, { async: true }),
    await flowTool("fails", {
      targetType: "workflow",
      targetId: await post(work("once", { fails: "true" })),
    }),
    await flowTool("wide", {
      target: {
        workflow: await post({
          ...work("pure"),
          outputMapping: Object.fromEntries([..."abcdefgh"].map((name) => [name, "state.got"])),
        }),
      },
    }),
    await flowTool("asks", { target: { workflow: await post(gate) } }),
    await flowTool("waits", { target: { workflow: await post(work("once", { wait: "'gate'" })) } }),
    await flowTool(
      "briefly",
      { target: { workflow: await post(work("once", { wait: "'gate'" })) } },
      { timeoutMs: 300 },
    ),
  ];
  agent = await createAgent({ identity: identity("You run workflows."), tools: { toolIds: tools } });
});

afterEach(checkInvariants);

/** The results that the model of a request got. */
function resultsIn(asked: Awaited<ReturnType<Play["requests"]>>[number] | undefined): unknown[] {
  return (
    asked?.body.messages.flatMap(({ role, content }) =>
      role === "tool" ? [JSON.parse(content ?? "null")] : [],
    ) ?? []
  );
}

async function runIds(conversation: TestConversation, turnId: string): Promise<string[]> {
  const { moves } = await conversation.turn(turnId);
  return moves.flatMap(({ toolCall }) => toolCall?.runId ?? []);
}

/** Waits until the run of a turn's only call satisfies `isSo`. */
const runOf = (
  conversation: TestConversation,
  turnId: string,
  isSo: (run: RunView) => boolean,
): Promise<RunView> =>
  vi.waitUntil(
    async () => {
      const [id] = await runIds(conversation, turnId);
      if (id === undefined) return undefined;
      const response = await request(`/api/runs/${id}`);
      if (!response.ok) return undefined;
      const run = await response.json<RunView>();
      return isSo(run) ? run : undefined;
    },
    { timeout: 20_000, interval: 20 },
  );

describe("FLOWCALL-1 FLOWCALL-2 a tool over a workflow", () => {
  test("gives the output of its run, which belongs to the user of the turn", async () => {
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "echo", input: { key, items: [1, "two"] } }], [{ text: "Done." }]],
    }));
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Done." });
    const [first, second] = await play.requests();
    expect(first?.body.tools?.map(({ function: { name } }) => name)).toContain("echo");
    expect(resultsIn(second)).toEqual([{ got: [1, "two"] }]);
    const [id = ""] = await runIds(conversation, turnId);
    expect(await call("GET", `/${id}`, 200)).toMatchObject({
      status: "completed",
      startedBy: "ada",
      tokens: 1,
    });
    const stranger: Principal = { subject: "bob", tenant: "test", roles: [] };
    await call("GET", `/${id}`, 404, undefined, stranger);
  });

  test("runs in the background with `async: true`", async () => {
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [{ call: "later", input: { key, items: [5] } }],
        [{ text: "It runs." }],
        [{ text: "It has run." }],
      ],
    }));
    await play.runs(1);
    await play.requests(2);
    await play.open("gate");
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "It has run." });
    expect(JSON.stringify((await play.requests())[2]?.body.messages)).toContain("got");
  });

  test("fails with the error of its run, and with input that the workflow does not take", async () => {
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [
          { call: "fails", input: { key } },
          { call: "echo", input: { key: 5 } },
        ],
        [{ text: "It failed." }],
      ],
    }));
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
    const results = JSON.stringify(resultsIn((await play.requests())[1]));
    expect(results).toMatch(/EXECUTION_FAILED.*is failed.*work.* fails\./);
    expect(results).toContain("INVALID_INPUT");
    // The call that was refused has no run.
    expect(await runIds(conversation, turnId)).toHaveLength(1);
  });

  test("I3 HELD-1 waits while a person answers a gate of its run, also across a reset of all actors", async () => {
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "asks", input: { key } }], [{ text: "Sent." }]],
    }));
    const { id, gates } = await runOf(conversation, turnId, ({ status }) => status === "waiting");
    await vi.waitUntil(async () => (await conversation.view()).status === "waiting", { timeout: 20_000 });
    await crash();
    await conversation.view();
    await call("POST", `/${id}/gates/${gates[0]?.operationId}`, 200, { answer: { approved: true } });
    expect(await conversation.ended(turnId)).toMatchObject({ answer: "Sent." });
    expect(resultsIn((await play.requests())[1])).toEqual([{ answer: { approved: true } }]);
  });
});

describe("FLOWCALL-3 the run of a call that is over", () => {
  test("is cancelled when the turn is stopped", async () => {
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "waits", input: { key } }], [{ text: "Never." }]],
    }));
    await play.runs(1);
    const [id = ""] = await runIds(conversation, turnId);
    expect((await conversation.stop(turnId))[0]).toBe(200);
    expect(await ended(id)).toMatchObject({ status: "cancelled" });
  });

  test("is cancelled when the time of the call is over", async () => {
    const conversation = await createConversation(agent);
    const { turnId } = await conversation.play((key) => ({
      replies: [[{ call: "briefly", input: { key } }], [{ text: "Too slow." }]],
    }));
    expect(await conversation.ended(turnId)).toMatchObject({ answer: "Too slow." });
    const [id = ""] = await runIds(conversation, turnId);
    expect(await ended(id)).toMatchObject({ status: "cancelled" });
  });
});

describe("FLOWCALL-7 LARGE-4 an output that is too large is stored completely, and the model gets a view", () => {
  const view = z.object({
    stored_result: z.object({ id: z.string(), bytes: z.number() }),
    note: z.string(),
    head: z.string(),
  });

  test.each([
    ["an output that fits into no envelope", ["é".repeat(60_000)]],
    ["an output with more values than a turn takes", Array.from({ length: 8_000 }, () => 7)],
  ])("%s", async (_, items) => {
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "wide", input: { key, items } }], [{ text: "Much." }]],
    }));
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Much." });
    const [, asked] = await play.requests();
    const { stored_result: stored, note, head } = view.parse(resultsIn(asked)[0]);
    expect(asked?.body.tools?.map(({ function: { name } }) => name)).toContain("read_tool_result");
    const [runId] = await runIds(conversation, turnId);
    const { output } = await call("GET", `/${runId}`, 200);
    const text = JSON.stringify(output);
    expect(stored.bytes).toBe(new TextEncoder().encode(text).byteLength);
    expect(text.startsWith(head)).toBe(true);
    expect(note).toContain("The tool ran.");
    const whole = await request(`${conversation.path}/attachments/${stored.id}`);
    expect(await whole.json()).toEqual(output);

    const [id, bytes, offset] = [stored.id, stored.bytes, stored.bytes - 7];
    const reading = await conversation.play({
      replies: [[{ call: "read_tool_result", input: { id, offset } }], [{ text: "That is the end." }]],
    });
    await conversation.ended(reading.turnId);
    const last = resultsIn((await reading.play.requests())[1]).at(-1);
    expect(last).toMatchObject({ id, bytes, text: expect.stringMatching(/[é7]"?\]\}$/) });
  });
});

describe("ends of runs by RPC", () => {
  const api = (conversation: TestConversation) =>
    // SAFETY: the namespace's stub has the actor's methods, which its type does not name here.
    conversation.stub as unknown as WorkflowResultApi & MailboxPeer;
  const done = { ok: true, value: null };
  const error = { code: "NOT_FOUND", message: "No such order.", retriable: false } as const;
  const resultsOf = async (conversation: TestConversation, turnId: string) =>
    (await conversation.turn(turnId)).moves.flatMap(({ toolResult }) => toolResult ?? []);

  /** A turn that waits for so many runs, with the operations of its calls. */
  async function waiting(calls: number) {
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        Array.from({ length: calls }, () => ({ call: "waits", input: { key } })),
        [{ text: "Enough." }],
      ],
    }));
    await play.runs(calls);
    const { moves } = await conversation.turn(turnId);
    const operations = moves.flatMap(({ toolCall }) => toolCall?.operationId ?? []);
    return { conversation, play, turnId, operations };
  }

  test("A73 a result and a failure count once, and only for the present attempt; LARGE-4 a large result is a view", async () => {
    const { conversation, play, turnId, operations } = await waiting(3);
    const [first = "", second = "", third = ""] = operations;
    const actor = api(conversation);
    const answer = { operationId: first, attempt: 1, output: { got: "by RPC" } };
    expect(await actor.handleWorkflowResult({ ...answer, attempt: 2, output: "No." })).toEqual(done);
    expect(await actor.handleWorkflowResult(answer)).toEqual(done);
    expect(await actor.handleWorkflowResult({ ...answer, output: "Another." })).toEqual(done);
    expect(await actor.handleWorkflowError({ operationId: first, attempt: 1, error })).toEqual(done);
    for (let time = 0; time < 2; time++)
      expect(await actor.handleWorkflowError({ operationId: second, attempt: 1, error })).toEqual(done);
    const large = { operationId: third, attempt: 1, output: { text: "x".repeat(1_200_000) } };
    expect(await actor.handleWorkflowResult(large)).toEqual(done);
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Enough." });
    expect(await resultsOf(conversation, turnId)).toEqual([
      { success: true, result: answer.output },
      { success: false, error },
      { success: true, result: expect.objectContaining({ stored_result: expect.anything() }) },
    ]);
    // The runs end later, without effect.
    await play.open("gate");
    for (const id of await runIds(conversation, turnId))
      expect(await ended(id)).toMatchObject({ status: "completed" });
    expect(await resultsOf(conversation, turnId)).toHaveLength(3);
    expect(await play.requests()).toHaveLength(2);
  });

  test("an unknown operation, or an operation of another conversation, is NOT_FOUND; a bad body is INVALID_INPUT", async () => {
    const { conversation, turnId, operations } = await waiting(1);
    const [operationId = ""] = operations;
    const other = await createConversation(agent);
    const attempts = [
      [conversation, newOperationId(), "NOT_FOUND"],
      [other, operationId, "NOT_FOUND"],
      [conversation, "no operation", "INVALID_INPUT"],
    ] as const;
    for (const [to, id, code] of attempts) {
      const address = { operationId: id, attempt: 1 };
      expect(await api(to).handleWorkflowResult({ ...address, output: 1 })).toMatchObject({
        error: { code },
      });
      expect(await api(to).handleWorkflowError({ ...address, error })).toMatchObject({ error: { code } });
    }
    const extra = { operationId, attempt: 1, output: 1, approved: true };
    expect(await api(conversation).handleWorkflowResult(extra)).toMatchObject({
      error: { code: "INVALID_INPUT" },
    });
    expect(await resultsOf(conversation, turnId)).toEqual([]);
    await conversation.stop(turnId);
  });

  test("FLOWCALL-6 the end of another run is refused", async () => {
    const { conversation, turnId, operations } = await waiting(1);
    const [operationId = ""] = operations;
    const stranger = calledRunId(newOperationId(), 1);
    const envelope: Envelope = {
      operationId: newOperationId(),
      from: { kind: "coordinator", tenant: "test", id: stranger },
      to: { kind: "conversation", tenant: "test", id: conversation.id },
      type: "run.ended",
      body: { operationId, attempt: 1, outcome: { output: "Forged." } },
      sentAt: Date.now(),
    };
    expect(await api(conversation).receive(envelope, { number: 1, last: false })).toMatchObject({
      type: "refused",
      error: { code: "FORBIDDEN" },
    });
    expect(await resultsOf(conversation, turnId)).toEqual([]);
    await conversation.stop(turnId);
  });

  test("after a stop of the turn, an end is ignored", async () => {
    const { conversation, play, turnId, operations } = await waiting(1);
    const [operationId = ""] = operations;
    await conversation.stop(turnId);
    const before = await conversation.journal();
    const actor = api(conversation);
    expect(await actor.handleWorkflowResult({ operationId, attempt: 1, output: "Late." })).toEqual(done);
    expect(await actor.handleWorkflowError({ operationId, attempt: 1, error })).toEqual(done);
    expect(await conversation.journal()).toEqual(before);
    expect(await play.requests()).toHaveLength(1);
  });
});

test("FLOWCALL-1 FLOWCALL-4 a crash of all actors leaves one run, and the turn completes", async () => {
  const conversation = await createConversation(agent);
  const { play, turnId } = await conversation.play((key) => ({
    replies: [[{ call: "waits", input: { key, items: [7] } }], [{ text: "After all." }]],
  }));
  const [before] = await play.runs(1);
  await crash();
  await conversation.view();
  await openGate(play.key, "gate");
  expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "After all." });
  expect(resultsIn((await play.requests(2)).at(-1))).toEqual([{ got: [7] }]);
  expect(await runsOf(play.key)).toEqual([before]);
});

test("REG-9 a conversation keeps the version of the workflow that it was created with", async () => {
  const first = await post(work("pure"));
  const [, id] = first.split("/");
  const keeper = await createAgent({
    identity: identity("You keep versions."),
    tools: { toolIds: [await flowTool("kept", { target: { workflow: first } })] },
  });
  const conversation = await createConversation(keeper);
  await conversation.view();
  const changed = { ...work("pure"), id, outputMapping: { new: "state.got" } };
  const body = {
    ...changed,
    inputSchema: { type: "object", properties: { key: { type: "string" }, items: {} } },
  };
  const response = await request("/api/libraries/flows/workflows", {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(response.status, await response.clone().text()).toBe(201);
  const script = (key: string) => ({
    replies: [[{ call: "kept", input: { key, items: [1] } }], [{ text: "Done." }]],
  });
  const { play, turnId } = await conversation.play(script);
  await conversation.ended(turnId);
  expect(resultsIn((await play.requests())[1])).toEqual([{ got: [1] }]);
  const later = await createConversation(keeper);
  const again = await later.play(script);
  await later.ended(again.turnId);
  expect(resultsIn((await again.play.requests())[1])).toEqual([{ new: [1] }]);
});

describe("RUNACCESS-3 agents and runs that start each other", () => {
  test("a workflow is refused that asks an agent which waits for it, directly or not; the answer of another is the result", async () => {
    const asks = async (who: string, name: string) =>
      flowTool(name, {
        target: {
          workflow: await post({
            initialNode: "ask",
            contextSchema: { type: "object", properties: { said: {} } },
            nodes: [
              {
                ref: "ask",
                agent: who,
                inputMapping: { message: "input.key" },
                outputMapping: { "state.said": "result.text" },
              },
            ],
            outputMapping: { said: "state.said" },
          }),
        },
      });
    const id = `asker-${crypto.randomUUID().slice(0, 8)}`;
    const helper = await createAgent({
      identity: identity("You help."),
      tools: { toolIds: [await asks(id, "to_asker")] },
    });
    const toolIds = [await asks(helper, "to_helper"), await asks(id, "to_self")];
    const made = await request("/api/agents", {
      method: "POST",
      body: JSON.stringify({ id, persona: { identity: identity("You ask."), tools: { toolIds } } }),
    });
    expect(made.status, await made.clone().text()).toBe(201);
    const child = new Play({
      replies: [[{ call: "to_asker", input: { key: "Help!" } }], [{ text: "Forty-two." }]],
    });
    const conversation = await createConversation(id);
    const { play, turnId } = await conversation.play({
      replies: [
        [
          { call: "to_helper", input: { key: child.content } },
          { call: "to_self", input: { key: child.content } },
        ],
        [{ text: "Done." }],
      ],
    });
    await conversation.ended(turnId);
    const [answer, refusal] = resultsIn((await play.requests())[1]);
    expect(answer).toEqual({ said: "Forty-two." });
    const [below] = resultsIn((await child.requests())[1]);
    for (const refused of [refusal, below])
      expect(JSON.stringify(refused)).toMatch(/PERMISSION_DENIED.*waits for the run/);
  });
});
