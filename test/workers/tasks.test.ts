/** Tasks of steps as data: by API and in code, their versions, pins in conversations, and records. */
import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTask } from "../../src/library/define/define-task.ts";
import { contentHash } from "../../src/library/definitions/definition.ts";
import { step } from "../../src/library/tasks/step.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { type Answer, expectProblem, get, post } from "./http-client.ts";
import { Play, ServedDocument } from "./provider.ts";
import { ADA, crash, createAgent, createConversation, type TestConversation } from "./world.ts";

/** The tenant that `world.ts` lives in. */
const AUTHOR: Principal = { subject: "ann", tenant: "test", roles: ["author"] };

let libraries = 0;
/** Returns the id of a library of a test's own. */
const newLibrary = () => `tasks-${++libraries}`;

async function add(path: string, body: object): Promise<Answer> {
  const answer = await post(`/api/libraries/${path}`, body, AUTHOR);
  expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status);
  return answer;
}

const object = (properties: Record<string, object>, required: string[] = []) => ({
  type: "object",
  properties,
  required,
});
const text = { type: "string" };

/** Adds a tool over a task, and a persona with it. Returns a conversation of an agent with the persona. */
async function conversationWith(library: string, task: string, more: object = {}): Promise<TestConversation> {
  await add(`${library}/tools`, {
    id: `use_${task}`,
    name: `use_${task}`,
    description: "Runs the task.",
    target: { task },
    ...more,
  });
  await add(`${library}/personas`, {
    id: "guide",
    identity: { systemPrompt: "Work.", modelProfileId: "test/scripted" },
    tools: { toolIds: [`use_${task}`] },
  });
  return createConversation(await createAgent(`${library}/guide`));
}

/** Calls a tool once in a turn. Returns its result, and the call as a reader sees it. */
async function callOnce(conversation: TestConversation, call: string, input: object) {
  const { turnId } = await conversation.play({ replies: [[{ call, input }], [{ text: "Done." }]] });
  const turn = await conversation.ended(turnId);
  const [move] = turn.moves;
  return { turnId, turn, call: move?.toolCall, result: move?.toolResult };
}

describe("a task by API", () => {
  test("TASKDEF-2 HASH-1 STEP-8 F12 as JSON has the hash of the same task in TypeScript, and is one version", async () => {
    const library = newLibrary();
    const greet = defineTask({
      id: "greet",
      description: "Greets.",
      input: z.object({ name: z.string(), loud: z.boolean().default(false) }),
      output: z.object({ text: z.string() }),
      timeoutMs: 5_000,
      retry: { maxAttempts: 2, backoff: "linear", initialDelayMs: 10 },
      steps: [
        step("words", {
          action: { kind: "update_context", values: { text: "'Hello, ' + input.name" } },
          outputMapping: { "state.text": "result.text" },
        }),
        step("loud", {
          action: { kind: "update_context", values: { text: "state.text.upper()" } },
          condition: { if: "input.loud" },
          outputMapping: { "state.text": "result.text" },
        }),
        step("end", {
          action: { kind: "update_context", values: { done: "true" } },
          outputMapping: { "output.text": "state.text" },
        }),
      ],
    });
    const steps = greet.definition.steps?.map((one, ordinal) => ({ ordinal, ...one })).reverse();
    const { inputSchema, outputSchema, description, retry } = greet.definition;
    const posted = { id: "greet", description, inputSchema, outputSchema, retry, timeoutMs: 5_000, steps };
    const first = await add(`${library}/tasks`, posted);
    expect(first.body).toMatchObject({ version: 1, hash: await contentHash(greet.definition) });
    const again = await add(`${library}/tasks`, { ...greet.definition, id: "greet" });
    expect([again.status, again.body.version]).toEqual([200, 1]);
    const read = await get(`/api/libraries/${library}/tasks/greet/versions/1`, AUTHOR);
    expect(read.body.definition).toEqual(greet.definition);
    const conversation = await conversationWith(library, "greet");
    const { result } = await callOnce(conversation, "use_greet", { name: "Ann", loud: true });
    expect(result).toEqual({ success: true, result: { text: "HELLO, ANN" } });
    const quiet = await callOnce(conversation, "use_greet", { name: "Ann" });
    expect(quiet.result).toEqual({ success: true, result: { text: "Hello, Ann" } });
  });

  test("F12 PIN-1 a conversation keeps its pinned task, action and prompt, after a crash too; a new conversation gets the new versions", async () => {
    const library = newLibrary();
    const say = (word: string) => ({
      id: "say",
      kind: "context.transform",
      values: { said: `'${word} ' + input.name` },
    });
    const task = (loud: boolean) => ({
      id: "talk",
      inputSchema: object({ name: text }, ["name"]),
      steps: [
        { ref: "say", action: "say", outputMapping: { "state.said": "result.said" } },
        {
          ref: "end",
          action: { kind: "update_context", values: { text: loud ? "state.said.upper()" : "state.said" } },
        },
      ],
    });
    await add(`${library}/actions`, say("Hello"));
    await add(`${library}/tasks`, task(false));
    const before = await conversationWith(library, "talk");
    expect((await add(`${library}/actions`, say("Bye"))).body.version).toBe(2);
    expect((await add(`${library}/tasks`, task(true))).body.version).toBe(2);
    await crash();
    const old = await callOnce(before, "use_talk", { name: "Ann" });
    expect(old.result).toMatchObject({ result: { text: "Hello Ann" } });
    expect(old.call?.task?.task).toEqual({ library, id: "talk", version: 1 });
    const after = await createConversation(await createAgent(`${library}/guide`));
    const now = await callOnce(after, "use_talk", { name: "Ann" });
    expect(now.result).toMatchObject({ result: { text: "BYE ANN" } });
    await add(`${library}/tools`, {
      id: "use_talk",
      name: "use_talk",
      description: "Runs the task.",
      target: { task: "talk@1" },
    });
    const pinned = await createConversation(await createAgent(`${library}/guide`));
    expect((await callOnce(pinned, "use_talk", { name: "Ann" })).result).toMatchObject({
      result: { text: "Bye Ann" },
    });
  });

  test("PIN-3 AUTHOR-5 STEP-1 STEP-8 ACTION-3 is refused with the places of its problems, and is not stored", async () => {
    const library = newLibrary();
    const inputSchema = object({});
    const problem = async (steps: object[], more: object = {}) => {
      const answer = await post(
        `/api/libraries/${library}/tasks`,
        { id: "t", inputSchema, steps, ...more },
        AUTHOR,
      );
      expectProblem(answer, 422, "INVALID_INPUT");
      return JSON.stringify(answer.body.errors);
    };
    const action = { kind: "update_context", values: {} };
    expect(await problem([{ ref: "a", action: "none" }])).toContain("/steps/0/action");
    expect(await problem([{ ref: "a", action: { kind: "llm", prompt: "none" } }])).toContain(
      "/steps/0/action/prompt",
    );
    expect(await problem([{ ref: "a", action: { kind: "llm", template: "x", profile: "none" } }])).toContain(
      "/steps/0/action/profile",
    );
    expect(
      await problem([{ ref: "a", action: { kind: "code", inputSchema, effect: "pure", timeoutMs: 1 } }]),
    ).toContain("Functions are actions of deployed libraries");
    expect(await problem([{ ref: "a", action: { kind: "mcp.invoke" } }])).toContain(
      "`mcp:SERVER/TOOL` in a persona",
    );
    expect(
      await problem([{ ref: "a", action: { kind: "http.request", hosts: ["evil.example"] } }]),
    ).toContain('may not reach \\"evil.example\\"');
    expect(await problem([{ ref: "a", ordinal: 1, action }])).toContain("/steps/0/ordinal");
    expect(
      await problem([
        { ref: "a", action },
        { ref: "a", action },
      ]),
    ).toContain("/steps/1/ref");
    expect(await problem([{ ref: "a", action, inputMapping: { x: "1 +" } }])).toContain(
      "/steps/0/inputMapping/x",
    );
    expect(await problem([{ ref: "a", action: "test/charge" }], { retry: { maxAttempts: 2 } })).toContain(
      'with the `once` action of step \\"a\\"',
    );
    expect(await problem([{ ref: "a", action }], { inputSchema: { type: "array" } })).toContain(
      "/inputSchema/type",
    );
    expect((await get(`/api/libraries/${library}`, AUTHOR)).status).toBe(404);
  });

  test("HOSTS-3 reaches a host that the deployer lists, and no other host", async () => {
    const library = newLibrary();
    const prices = new ServedDocument();
    await prices.set({ price: 7 });
    const task = (hosts: string[]) => ({
      id: "price",
      inputSchema: object({ url: text }, ["url"]),
      steps: [{ ref: "get", action: { kind: "http.request", hosts, effect: "pure" } }],
    });
    await add(`${library}/tasks`, task([new URL(env.PROVIDER_CONTROL_URL).host]));
    const conversation = await conversationWith(library, "price");
    const { result } = await callOnce(conversation, "use_price", { url: prices.url });
    expect(result).toMatchObject({ success: true, result: { status: 200, body: { price: 7 } } });
    const other = await callOnce(conversation, "use_price", { url: "http://169.254.169.254/" });
    expect(other.result).toMatchObject({ success: false, error: { code: "PERMISSION_DENIED" } });
  });

  test("HTTP-6 does not reach a public name with a private address", async () => {
    const library = newLibrary();
    await add(`${library}/tasks`, {
      id: "price",
      inputSchema: object({ url: text }, ["url"]),
      steps: [
        { ref: "get", action: { kind: "http.request", hosts: ["inside.example.org"], effect: "pure" } },
      ],
    });
    const conversation = await conversationWith(library, "price");
    const { result } = await callOnce(conversation, "use_price", { url: "https://inside.example.org/" });
    expect(result).toMatchObject({
      success: false,
      error: { code: "PERMISSION_DENIED", message: expect.stringContaining("10.0.0.7") },
    });
  });
});

describe("a task that a tool calls", () => {
  test("TASKLOG-2 TASKLOG-1 shows its steps under the call, and its events and measurements are in the journal", async () => {
    const library = newLibrary();
    await add(`${library}/tasks`, {
      id: "bill",
      inputSchema: object({ order: text }, ["order"]),
      steps: [
        { ref: "skipped", action: { kind: "update_context", values: {} }, condition: { if: "false" } },
        {
          ref: "tell",
          action: { kind: "emit_event", name: "order.billed" },
          inputMapping: { order: "input.order" },
          outputMapping: { "state.told": "result" },
        },
        {
          ref: "measure",
          action: { kind: "metric.record", name: "orders.total", unit: "EUR" },
          inputMapping: { value: "12.5", attributes: "{'shop': 'one'}" },
          outputMapping: { "state.measured": "result" },
        },
        { ref: "end", action: { kind: "update_context", values: { ok: "true" } } },
      ],
    });
    const conversation = await conversationWith(library, "bill");
    const { call, turnId } = await callOnce(conversation, "use_bill", { order: "o1" });
    expect(call?.task).toMatchObject({
      task: { library, id: "bill", version: 1 },
      steps: [
        { ref: "skipped", status: "skipped" },
        { ref: "tell", status: "completed" },
        { ref: "measure", status: "completed" },
        { ref: "end", status: "completed" },
      ],
    });
    expect(call?.task).not.toHaveProperty("events");
    const entries = (await conversation.journal()).filter(({ type }) => type.startsWith("task."));
    expect(entries.map(({ type, data }) => [type, data])).toEqual([
      ["task.dispatched", { task: `${library}/bill@1`, steps: 4 }],
      ["task.event", { name: "order.billed", payload: { order: "o1" } }],
      ["task.metric", { name: "orders.total", value: 12.5, unit: "EUR", attributes: { shop: "one" } }],
      ["task.completed", expect.objectContaining({ task: `${library}/bill@1`, steps: 4 })],
    ]);
    expect(new Set(entries.map((entry) => entry.turnId))).toEqual(new Set([turnId]));
    const client = await conversation.connect();
    await client.until(({ turns }) => turns.length > 0);
    const [operation] = client.state.turns.flatMap(({ items }) =>
      items.flatMap((item) => (item.type === "tool" ? [item.operation] : [])),
    );
    expect(operation?.task?.steps.map(({ ref }) => ref)).toEqual(["skipped", "tell", "measure", "end"]);
    client.close();
  });

  test("F10 TOOLRETRY-1 TOOLRETRY-2 fails with `retry`, and is tried again from its first step with a fresh state", async () => {
    const library = newLibrary();
    const shop = new ServedDocument();
    await shop.set(null);
    await add(`${library}/tasks`, {
      id: "ask",
      inputSchema: object({ url: text }, ["url"]),
      retry: { maxAttempts: 3, backoff: "none", initialDelayMs: 300 },
      steps: [
        {
          ref: "count",
          action: { kind: "update_context", values: { n: "has(state.n) ? state.n + 1 : 1" } },
          outputMapping: { "state.n": "result.n" },
        },
        {
          ref: "get",
          action: { kind: "http.request", hosts: [new URL(env.PROVIDER_CONTROL_URL).host], effect: "pure" },
          inputMapping: { url: "input.url" },
          outputMapping: { "output.body": "result.body", "output.n": "state.n" },
        },
      ],
    });
    const conversation = await conversationWith(library, "ask");
    const { turnId } = await conversation.play({
      replies: [[{ call: "use_ask", input: { url: shop.url } }], [{ text: "Done." }]],
    });
    const client = await conversation.connect();
    await client.until(({ turns }) => turns.some(({ retries }) => retries.length > 0));
    await shop.set("open");
    const { moves } = await conversation.ended(turnId);
    client.close();
    expect(moves[0]?.toolResult).toEqual({ success: true, result: { body: "open", n: 1 } });
    const failed = (await conversation.journal()).filter(({ type }) => type === "task.failed");
    expect(failed.length).toBeGreaterThan(0);
    expect(failed[0]?.data).toMatchObject({ failedStep: "get", steps: 2 });
  });

  test("A36 AUTHOR-5 a posted task makes the requests of a persona, and its version stays", async () => {
    const library = newLibrary();
    const brief = (temperature: number) => ({
      id: "brief",
      inputSchema: object({ user_message: text }, ["user_message"]),
      steps: [
        {
          ref: "write",
          action: { kind: "update_context", values: { role: "'user'", content: "input.user_message" } },
          outputMapping: {
            "output.model": "'scripted'",
            "output.stream": "true",
            "output.temperature": String(temperature),
            "output.messages": "[result]",
          },
        },
      ],
    });
    await add(`${library}/tasks`, brief(0.25));
    await add(`${library}/personas`, {
      id: "guide",
      identity: { systemPrompt: "Work.", modelProfileId: "test/scripted" },
      memory: { contextAssembly: { task: "brief" } },
    });
    const conversation = await createConversation(await createAgent(`${library}/guide`));
    await add(`${library}/tasks`, brief(0.75));
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Done." }]] });
    await conversation.ended(turnId);
    const [request] = await play.requests(1);
    expect(request?.body).toEqual({
      model: "scripted",
      stream: true,
      temperature: 0.25,
      messages: [{ role: "user", content: play.content }],
    });
  });

  test("LEDGER-5 LEDGER-6 BUDGET-8 SPANS-3 H4 asks a model by a prompt of the library; its usage counts in the turn and its budget", async () => {
    const library = newLibrary();
    await add(`${library}/prompts`, {
      id: "sum_up",
      systemPrompt: "You are short.",
      template: "{{ script }}",
      requires: object({ script: text }, ["script"]),
      produces: object({ words: { type: "number" } }, ["words"]),
    });
    await add(`${library}/tasks`, {
      id: "ask",
      inputSchema: object({ script: text }, ["script"]),
      steps: [
        {
          ref: "ask",
          action: { kind: "llm", prompt: "sum_up", profile: "test/priced", maxOutputTokens: 500 },
          outputMapping: { "output.words": "result.response.words" },
        },
      ],
    });
    const conversation = await conversationWith(library, "ask");
    const inner = new Play({ replies: [[{ text: '{"words": 3}' }]] });
    const {
      turnId: asked,
      result,
      call,
      turn,
    } = await callOnce(conversation, "use_ask", { script: inner.content });
    expect(result).toEqual({ success: true, result: { words: 3 } });
    const [request] = await inner.requests(1);
    expect(request?.body).toMatchObject({
      messages: [{ role: "system", content: "You are short." }, { role: "user" }],
    });
    const { models } = call?.task ?? {};
    expect(models).toMatchObject({ calls: 1, costUsd: expect.any(Number) });
    const used = (models?.inputTokens ?? 0) + (models?.outputTokens ?? 0);
    expect(used).toBeGreaterThan(0);
    const ofTurn = turn.spent ?? { tokens: 0, modelCalls: 0 };
    expect(ofTurn.modelCalls).toBe(3);
    const counts = turn.calls?.flatMap(({ usage, estimated }) => [usage, estimated]) ?? [];
    const own = counts.reduce(
      (sum, count) => sum + (count?.inputTokens ?? 0) + (count?.outputTokens ?? 0),
      0,
    );
    expect(ofTurn.tokens).toBe(own + used);
    const counted = turn.calls?.reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0), 0) ?? 0;
    expect((await get(conversation.path, ADA)).body).toMatchObject({
      usage: { calls: 3, inputTokens: counted + (models?.inputTokens ?? 0) },
    });
    const trace = await get(`${conversation.path}/turns/${asked}/trace`, ADA);
    expect(trace.body).toMatchObject({
      spans: expect.arrayContaining([
        expect.objectContaining({
          name: "execute_tool use_ask",
          attributes: expect.objectContaining({
            "dramatis.task.model_calls": 1,
            "dramatis.task.input_tokens": models?.inputTokens,
            "dramatis.task.output_tokens": models?.outputTokens,
          }),
        }),
      ]),
    });
    await add(`${library}/tasks`, {
      id: "long",
      inputSchema: object({ script: text }, ["script"]),
      steps: [
        {
          ref: "ask",
          action: { kind: "llm", prompt: "sum_up", profile: "test/priced", maxOutputTokens: 50_000 },
        },
      ],
    });
    const other = await conversationWith(library, "long");
    const { play, turnId } = await other.play(
      { replies: [[{ call: "use_long", input: { script: inner.content } }], [{ text: "Done." }]] },
      { budget: { tokens: 20_000 } },
    );
    const { moves } = await other.ended(turnId);
    expect(moves[0]?.toolResult).toMatchObject({ success: false, error: { code: "BUDGET_EXCEEDED" } });
    expect(await inner.requests()).toHaveLength(1);
    expect(await play.requests()).toHaveLength(2);
  });

  describe("that asks models", () => {
    const asking = (more: object = {}, step: object = {}) => ({
      id: "ask",
      inputSchema: object({ script: text }, ["script"]),
      steps: [
        {
          ref: "ask",
          action: {
            kind: "llm",
            template: "{{ script }}",
            profile: "test/priced",
            outputSchema: object({ words: { type: "number" } }, ["words"]),
            maxOutputTokens: 500,
          },
          ...step,
        },
      ],
      ...more,
    });

    test("LEDGER-5 H4 is charged as reserved if the turn is stopped, once", async () => {
      const library = newLibrary();
      await add(`${library}/tasks`, asking());
      const conversation = await conversationWith(library, "ask");
      const inner = new Play({ replies: [[{ gate: "held" }, { text: '{"words": 3}' }]] });
      const { turnId } = await conversation.play({
        replies: [[{ call: "use_ask", input: { script: inner.content } }], [{ text: "Done." }]],
      });
      await inner.reached("held");
      await conversation.stop(turnId);
      const { spent, error } = await conversation.ended(turnId);
      await inner.open("held");
      expect(error?.code).toBe("CANCELLED");
      expect(spent?.modelCalls).toBe(2);
      // The answer, and the 4 000 tokens that texts may have beyond their source.
      expect(spent?.tokens).toBeGreaterThan(4_500);
      expect(spent?.tokens).toBeLessThan(9_000);
      const { turnId: next } = await conversation.play({ replies: [[{ text: "Done." }]] });
      const { spent: later } = await conversation.ended(next);
      expect(later?.modelCalls).toBe(1);
    });

    test("LEDGER-5 TASKLOG-2 HOOK-2 counts in the turn and is in the journal if it is a hook", async () => {
      const library = newLibrary();
      await add(`${library}/tasks`, {
        id: "brief",
        inputSchema: object({ user_message: text }, ["user_message"]),
        steps: [
          {
            ref: "ask",
            action: {
              kind: "llm",
              template: "{{ user_message }}",
              profile: "test/priced",
              maxOutputTokens: 500,
            },
            outputMapping: { "state.facts": "result.response" },
          },
          {
            ref: "write",
            action: { kind: "update_context", values: { role: "'user'", content: "input.user_message" } },
            outputMapping: { "output.model": "'m'", "output.stream": "true", "output.messages": "[result]" },
          },
        ],
      });
      await add(`${library}/personas`, {
        id: "guide",
        identity: { systemPrompt: "Work.", modelProfileId: "test/scripted" },
        memory: { contextAssembly: { task: "brief" } },
      });
      const conversation = await createConversation(await createAgent(`${library}/guide`));
      const { play, turnId } = await conversation.play({ replies: [[{ text: "Done." }]] });
      const { spent } = await conversation.ended(turnId);
      expect(await play.requests(2)).toHaveLength(2);
      expect(spent?.modelCalls).toBe(2);
      expect(spent?.usd).toBeGreaterThan(0);
      const entries = (await conversation.journal()).filter(({ type }) => type.startsWith("task."));
      expect(entries.map(({ type }) => type)).toContain("task.completed");
    });

    test("BUDGET-8 H4 gets no further attempt that the budget has no room for", async () => {
      const library = newLibrary();
      const retry = { maxAttempts: 5, initialDelayMs: 1 };
      await add(`${library}/tasks`, asking({ retry }, { onFailure: "retry" }));
      const conversation = await conversationWith(library, "ask");
      const usage = { prompt_tokens: 8_500, completion_tokens: 500, total_tokens: 9_000 };
      const inner = new Play({ replies: [[{ text: "no data" }, { usage }]] });
      const { turnId } = await conversation.play(
        { replies: [[{ call: "use_ask", input: { script: inner.content } }], [{ text: "Done." }]] },
        { budget: { tokens: 20_000 } },
      );
      const { moves } = await conversation.ended(turnId);
      expect(moves[0]?.toolResult).toMatchObject({ success: false });
      expect(await inner.requests()).toHaveLength(2);
    });
  });

  test("VECTOR-1 MOCK-1 F10 mocks and indexes: missing bindings of a deployment are named", async () => {
    const library = newLibrary();
    await add(`${library}/tasks`, {
      id: "stand_in",
      inputSchema: object({}),
      steps: [
        {
          ref: "mock",
          action: {
            kind: "mock.return",
            schema: object({ n: { type: "integer", minimum: 3, maximum: 3 } }, ["n"]),
          },
          outputMapping: { "output.n": "result.n" },
        },
        {
          ref: "embed",
          action: { kind: "llm.embed" },
          inputMapping: { texts: "['red apples', 'red apples']" },
          outputMapping: {
            "output.same": "result.vectors[0] == result.vectors[1]",
            "output.dimensions": "result.dimensions",
          },
        },
        {
          ref: "look",
          action: { kind: "vector", index: "none", operation: "query" },
          inputMapping: { vector: "[1, 2]" },
          onFailure: "continue",
        },
        {
          ref: "end",
          action: { kind: "update_context", values: { message: "state._errors[0].message" } },
          outputMapping: { "output.message": "result.message" },
        },
      ],
    });
    const conversation = await conversationWith(library, "stand_in");
    const { result } = await callOnce(conversation, "use_stand_in", {});
    expect(result).toEqual({
      success: true,
      result: {
        n: 3,
        same: true,
        dimensions: 256,
        message: 'Step "look": Unknown index "none". This deployment has no indexes.',
      },
    });
  });

  test("F13 numbers of posted expressions are JSON numbers, and missing values are null", async () => {
    const library = newLibrary();
    await add(`${library}/tasks`, {
      id: "count",
      inputSchema: object({ items: { type: "array" }, count: {}, nothing: {} }),
      steps: [
        {
          ref: "count",
          action: {
            kind: "update_context",
            values: {
              next: "input.count + 1",
              doubled: "input.items.map(i, i * 2)",
              size: "size(input.items)",
              exact: "10 / 4 == 2.5",
              missing: "input.nothing.at.all == null",
              there: "has(input.items)",
              absent: "has(input.nothing)",
            },
          },
          condition: { if: "!has(input.nothing)" },
          inputMapping: {},
          onFailure: "continue",
        },
        {
          ref: "again",
          action: {
            kind: "update_context",
            values: {
              doubled: "input.items.map(i, i * 2)",
              size: "size(input.items)",
              exact: "10 / 4 == 2.5",
              missing: "input.nothing.at.all == null",
              there: "has(input.items)",
              absent: "has(input.nothing)",
              failed: "state._errors[0].code",
            },
          },
          outputMapping: { "output.all": "result", "output.next": "size(state._errors) + 1" },
        },
        { ref: "never", action: { kind: "update_context", values: {} }, condition: { if: "input.nothing" } },
      ],
    });
    const conversation = await conversationWith(library, "count");
    const { result, call } = await callOnce(conversation, "use_count", { items: [1, 2.5] });
    expect(result).toMatchObject({ success: false, error: { code: "INVALID_INPUT" } });
    expect(result?.error?.message).toBe('Step "never": Its condition is a null. It must be true or false.');
    expect(call?.task?.steps.map(({ ref, status, error }) => [ref, status, error?.code])).toEqual([
      ["count", "failed", "INVALID_INPUT"],
      ["again", "completed", undefined],
      ["never", "failed", "INVALID_INPUT"],
    ]);
    await add(`${library}/tasks`, {
      id: "sum",
      inputSchema: object({ items: { type: "array" }, count: { type: "number" }, nothing: {} }),
      steps: [
        {
          ref: "sum",
          action: {
            kind: "update_context",
            values: {
              next: "input.count + 1",
              doubled: "input.items.map(i, i * 2)",
              size: "size(input.items)",
              exact: "10 / 4 == 2.5",
              missing: "input.nothing.at.all == null",
              there: "has(input.items)",
              absent: "has(input.nothing)",
            },
          },
        },
      ],
    });
    const summed = await callOnce(await conversationWith(library, "sum"), "use_sum", {
      items: [1, 2.5],
      count: 2,
    });
    expect(summed.result).toEqual({
      success: true,
      result: { next: 3, doubled: [2, 5], size: 2, exact: true, missing: true, there: true, absent: false },
    });
  });

  test("A37 F12 one library runs against two providers, and a task keeps the prompt that it pinned", async () => {
    const library = newLibrary();
    const prompt = (more: string) => ({ id: "echo", template: `{{ script }}${more}` });
    await add(`${library}/prompts`, prompt(""));
    await add(`${library}/model-profiles`, { id: "offline", provider: "offline", modelId: "offline-1" });
    await add(`${library}/tasks`, {
      id: "say",
      inputSchema: object({ script: text }, ["script"]),
      steps: [{ ref: "say", action: { kind: "llm", prompt: "echo" } }],
    });
    const scripted = await conversationWith(library, "say");
    await add(`${library}/personas`, {
      id: "guide",
      identity: { systemPrompt: "Work.", modelProfileId: "offline" },
      tools: { toolIds: ["use_say"] },
    });
    const offline = await createConversation(await createAgent(`${library}/guide`));
    await add(`${library}/prompts`, prompt(" Added later."));
    const inner = new Play({ replies: [[{ text: "Scripted." }]] });
    const first = await callOnce(scripted, "use_say", { script: inner.content });
    expect(first.result).toEqual({ success: true, result: { response: "Scripted." } });
    const [request] = await inner.requests(1);
    expect(JSON.stringify(request?.body)).not.toContain("Added later.");
    const { turnId } = await offline.say('!tool use_say {"script": "2 + 3"}');
    const { moves } = await offline.ended(turnId);
    expect(moves[0]?.toolResult).toMatchObject({ success: true, result: { response: expect.any(String) } });
    expect(moves[0]?.toolCall?.task?.models?.calls).toBe(1);
  });

  test("B8 a turn names its messages, and each of its operations names its tool and task", async () => {
    const library = newLibrary();
    await add(`${library}/tasks`, {
      id: "say",
      inputSchema: object({}),
      steps: [{ ref: "say", action: { kind: "update_context", values: { said: "'yes'" } } }],
    });
    const conversation = await conversationWith(library, "say");
    const { turn, call } = await callOnce(conversation, "use_say", {});
    const messages = await conversation.messages();
    expect([turn.userMessageId, ...turn.agentMessageIds]).toEqual(messages.map(({ id }) => id));
    expect(call).toMatchObject({
      operationId: expect.stringMatching(/^op_/),
      toolId: `${library}/use_say`,
      task: { task: { library, id: "say", version: 1 } },
    });
  });

  test("REG-8 APPROVE-2 a hook cannot run a task that a person must approve", async () => {
    const answer = await post(
      "/api/agents",
      {
        persona: { identity: { systemPrompt: "x" }, memory: { memoryExtraction: { task: "test/transfer" } } },
      },
      { ...AUTHOR, roles: ["admin"] },
    );
    expect(answer.status, JSON.stringify(answer.body)).toBe(422);
    expect(JSON.stringify(answer.body)).toContain("needs a person's approval");
  });
});
