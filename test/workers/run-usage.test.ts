/** The usage of runs of workflows, on the real Worker: shown at the run, counted above it and in the conversation that calls it. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { NOTHING } from "../../src/model/spending.ts";
import { spendingView } from "../../src/protocol/budget.ts";
import type { SpendingView } from "../../src/protocol/usage-schemas.ts";
import { Play } from "./provider.ts";
import { call, ended, type Flow, journal, post } from "./run-helpers.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

afterEach(checkInvariants);

const identity = { systemPrompt: "You delegate.", modelProfileId: "test/priced" };
const text = { type: "string" };

async function add(kind: string, body: object): Promise<void> {
  const response = await request(`/api/libraries/usage/${kind}`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(response.status, await response.clone().text()).toBe(201);
}

/** A workflow of one node with the script of a model as its input. */
const one = (node: object): Flow => ({
  initialNode: "a",
  inputSchema: { type: "object", properties: { script: text }, required: ["script"] },
  nodes: [{ ref: "a", inputMapping: { script: "input.script" }, ...node }],
});

let asks: string;
let tool: Record<"ask" | "ask_above" | "ask_briefly", string>;

beforeAll(async () => {
  await add("tasks", {
    id: "ask",
    inputSchema: { type: "object", properties: { script: text }, required: ["script"] },
    steps: [
      {
        ref: "ask",
        action: { kind: "llm", template: "{{ script }}", profile: "test/priced", maxOutputTokens: 500 },
        outputMapping: { "output.text": "result.response" },
      },
    ],
  });
  asks = await post(one({ task: "usage/ask" }));
  const above = await post(one({ workflow: asks }));
  const toolOver = async (id: string, workflow: string, more: object = {}) => {
    await add("tools", { id, name: id, description: "Asks a model.", target: { workflow }, ...more });
    return `usage/${id}`;
  };
  const waits = await post({
    ...one({ task: "usage/ask" }),
    nodes: [
      { ref: "a", task: "usage/ask", inputMapping: { script: "input.script" } },
      { ref: "b", task: "flow/work_once", inputMapping: { key: "'usage'", name: "'b'", wait: "'never'" } },
    ],
    transitions: [{ from: "a", to: "b" }],
  });
  tool = {
    ask: await toolOver("ask", asks),
    ask_above: await toolOver("ask_above", above),
    ask_briefly: await toolOver("ask_briefly", waits, { timeoutMs: 2_000 }),
  };
});

const scriptOf = (...replies: string[]) => new Play({ replies: replies.map((said) => [{ text: said }]) });

async function run(workflow: string, input: object) {
  const { id } = await call("POST", "", 201, { workflow, input });
  return ended(id);
}

/** The amounts of a turn's own calls of models. */
async function ofModels(conversation: TestConversation, turnId: string) {
  const { calls = [], spent } = await conversation.turn(turnId);
  const tokens = calls
    .flatMap(({ usage, estimated }) => [usage, estimated])
    .reduce((sum, count) => sum + (count?.inputTokens ?? 0) + (count?.outputTokens ?? 0), 0);
  return { tokens, modelCalls: calls.length, spent };
}

describe("RUNUSE-1 the usage of a run", () => {
  test("is the usage of its tasks, with their price", async () => {
    const { usage, status } = await run(asks, { script: scriptOf("Yes.").content });
    expect(status).toBe("completed");
    expect(usage).toMatchObject({ modelCalls: 1, toolCalls: 0 });
    expect(usage.tokens).toBeGreaterThan(0);
    expect(usage.usd).toBeGreaterThan(0);
  });

  test("is zero without a model call", async () => {
    const plain = await post({ initialNode: "a", nodes: [{ ref: "a" }] });
    expect((await run(plain, { key: "k" })).usage).toEqual({
      tokens: 0,
      usd: 0,
      toolCalls: 0,
      modelCalls: 0,
    });
  });

  test("RUNUSE-3 includes the usage of its sub-workflows, which is theirs", async () => {
    const script = scriptOf("Yes.").content;
    const alone = await run(asks, { script });
    const above = await run(await post(one({ workflow: asks })), { script });
    expect(above.usage).toMatchObject({ modelCalls: 1, tokens: alone.usage.tokens, usd: alone.usage.usd });
  });

  test("includes the usage of its agents, with the calls of their tools", async () => {
    const agent = await createAgent({
      identity,
      tools: { toolIds: ["test/double"] },
    });
    const flow = await post(one({ agent, inputMapping: { message: "input.script" } }));
    const play = new Play({ replies: [[{ call: "double", input: { n: 1 } }], [{ text: "2" }]] });
    expect((await run(flow, { script: play.content })).usage).toMatchObject({ modelCalls: 2, toolCalls: 1 });
  });
});

describe("LEDGER-7 a hook that is a workflow", () => {
  const asking = { ref: "a", task: "usage/ask" };
  const hookOver = (properties: object, outputMapping: object, script: string) =>
    post({
      initialNode: "a",
      inputSchema: { type: "object", properties },
      nodes: [{ ...asking, inputMapping: { script: JSON.stringify(script) } }],
      outputMapping,
    });

  test.each(["contextAssembly", "memoryExtraction"] as const)(
    "charges %s with the usage of its run, once",
    async (hook) => {
      const inner = scriptOf("Yes.").content;
      const workflow =
        hook === "contextAssembly"
          ? await hookOver(
              { user_message: text },
              {
                model: '"scripted"',
                messages: '[{"role": "user", "content": input.user_message}]',
                stream: "true",
              },
              inner,
            )
          : await hookOver({}, { operations: "[]" }, inner);
      const conversation = await createConversation(
        await createAgent({ identity, memory: { [hook]: { workflow } } }),
      );
      const { turnId } = await conversation.play({ replies: [[{ text: "Done." }]] });
      expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
      const started = hook === "contextAssembly" ? "context_assembly.started" : "memory_extraction.completed";
      const entry = await vi.waitUntil(
        async () => (await conversation.journal()).find(({ type }) => type === started),
        { timeout: 20_000 },
      );
      const { usage } = await call(
        "GET",
        `/${(entry as { runId?: string }).runId ?? Object(entry.data).runId}`,
        200,
      );
      expect(usage.modelCalls).toBe(1);
      const own = await ofModels(conversation, turnId);
      expect((await conversation.view()).spent).toMatchObject({
        tokens: usage.tokens + own.tokens,
        modelCalls: 2,
      });
    },
  );
});

describe("LEDGER-7 a conversation that calls a workflow", () => {
  const agentWith = (name: keyof typeof tool) => createAgent({ identity, tools: { toolIds: [tool[name]] } });
  const runOf = async (conversation: TestConversation, turnId: string) => {
    const { moves } = await conversation.turn(turnId);
    return call("GET", `/${moves.flatMap(({ toolCall }) => toolCall?.runId ?? [])[0]}`, 200);
  };
  const added = (usage: SpendingView, tokens: number, modelCalls: number) => ({
    tokens: usage.tokens + tokens,
    modelCalls: usage.modelCalls + modelCalls,
  });

  test.each(["ask", "ask_above"] as const)("counts the usage of %s once", async (name) => {
    const conversation = await createConversation(await agentWith(name));
    const { turnId } = await conversation.play({
      replies: [[{ call: name, input: { script: scriptOf("Yes.").content } }], [{ text: "Done." }]],
    });
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
    const { usage } = await runOf(conversation, turnId);
    expect(usage.modelCalls).toBe(1);
    const own = await ofModels(conversation, turnId);
    expect(own.spent).toMatchObject(added(usage, own.tokens, own.modelCalls));
    expect(own.spent).toMatchObject((await conversation.view()).spent ?? {});
    expect(usage).not.toEqual(spendingView(NOTHING));
  });

  test("makes no model call if the run has used up the budget", async () => {
    const conversation = await createConversation(await agentWith("ask"));
    const { play, turnId } = await conversation.play(
      { replies: [[{ call: "ask", input: { script: scriptOf("Yes.").content } }], [{ text: "Done." }]] },
      { budget: { modelCalls: 2 } },
    );
    expect(await conversation.ended(turnId)).toMatchObject({
      status: "failed",
      error: { code: "BUDGET_EXCEEDED" },
    });
    expect(await play.requests()).toHaveLength(1);
    expect((await conversation.turn(turnId)).spent).toMatchObject({ modelCalls: 2 });
  });

  test("FLOWCALL-5 counts the usage of a run that was cancelled when the time of its call ended", async () => {
    const conversation = await createConversation(await agentWith("ask_briefly"));
    const { turnId } = await conversation.play({
      replies: [[{ call: "ask_briefly", input: { script: scriptOf("Yes.").content } }], [{ text: "Done." }]],
    });
    await conversation.ended(turnId);
    const { usage, status } = await runOf(conversation, turnId);
    expect({ status, usage }).toMatchObject({ status: "cancelled", usage: { modelCalls: 1 } });
    const own = await ofModels(conversation, turnId);
    expect(own.spent).toMatchObject(added(usage, own.tokens, own.modelCalls));
  });

  test("counts the usage of a run when the turn is stopped", async () => {
    const conversation = await createConversation(await agentWith("ask_briefly"));
    const inner = scriptOf("Yes.");
    const { turnId } = await conversation.play({
      replies: [[{ call: "ask_briefly", input: { script: inner.content } }], [{ text: "Done." }]],
    });
    await inner.requests(1);
    const secondNodeRuns = async () => {
      const { id } = await runOf(conversation, turnId);
      return (await journal(id)).some(({ type, node }) => type === "task.dispatched" && node === "b");
    };
    await vi.waitUntil(secondNodeRuns, { timeout: 10_000, interval: 20 });
    await conversation.stop(turnId);
    await expect.poll(async () => (await conversation.view()).spent?.modelCalls).toBe(2);
    await checkInvariants();
    expect((await conversation.view()).spent?.modelCalls).toBe(2);
  });
});
