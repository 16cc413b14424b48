/** The test kit on an application of a user: conversations, tools, delegation, workflows, time, and crashes. */
import { expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
import { defineAgent } from "../../src/library/define/define-agent.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../src/library/define/define-workflow.ts";
import { step } from "../../src/library/tasks/step.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import {
  call,
  createTestApp,
  expectReplay,
  ReplayDivergence,
  type TestAppOptions,
} from "../../src/testing/index.ts";
import { jsonReply, startOpenAIServer } from "../support/openai-server.ts";

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  input: z.object({ a: z.number(), b: z.number() }),
  effect: "pure",
  execute: ({ a, b }) => a + b,
});
const guide = definePersona("guide", { identity: { systemPrompt: "Help." }, tools: { toolIds: ["add"] } });
const library = defineLibrary("my", { personas: [guide], tools: [add] });

test("H10 TESTAPP-1 a test of an agent with a tool", async () => {
  const app = createTestApp({ libraries: [library] });
  app.model.script(call("add", { a: 1, b: 2 }), "It is 3.");
  const turn = await app.send("guide", "What is 1 + 2?");
  expect(turn).toMatchObject({ status: "completed", text: "It is 3." });
  expect(turn.calls).toMatchObject([{ name: "add", input: { a: 1, b: 2 }, output: 3 }]);
  expect(app.effects).toMatchObject([{ tool: "add", effect: "pure", output: 3, attempt: 1, agent: "guide" }]);
});

test("H10 TESTAPP-3 agents work on files of projects and on artifacts, which survive a crash", async () => {
  const developer = definePersona("developer", {
    identity: { systemPrompt: "Work on code." },
    tools: {
      toolIds: ["repo_edit", "shell_exec", "repo_commit", "artifact_write"].map((name) => `dramatis/${name}`),
    },
    knowledge: { artifacts: true },
  });
  const app = createTestApp({
    libraries: [defineLibrary("code", { personas: [developer] })],
    projects: [
      { id: "default", repositories: [{ id: "app", files: { "src/sum.ts": "a - b\n", ".env": "KEY=1\n" } }] },
    ],
  });
  app.model.script(
    call("repo_edit", { path: "src/sum.ts", before: "a - b", after: "a + b" }),
    call("shell_exec", { command: "cat src/sum.ts; ls -a" }),
    call("artifact_write", { path: "decisions/sum.md", content: "# Add\n" }),
    "Done.",
  );
  const turn = await app.send("developer", "Fix it.");
  expect(turn.calls.map(({ output }) => output)).toMatchObject([
    { path: "src/sum.ts", line: 1 },
    { stdout: "a + b\n.\n..\nsrc\n", exitCode: 0 },
    { path: "decisions/sum.md" },
  ]);
  expect(await app.file(turn, "src/sum.ts")).toBe("a + b\n");
  expect(await app.file(turn, "missing.ts")).toBeNull();
  app.crash();
  app.model.script(call("repo_commit", { message: "Add" }), "Committed.");
  const next = await app.send("developer", "Commit.");
  expect(next.calls).toMatchObject([
    { output: { repo: "app", changes: [{ path: "src/sum.ts", change: "modified" }] } },
  ]);
  expect(JSON.stringify(app.model.requests.at(-1))).toContain("decisions/sum.md");
  await expect(app.file(turn, "src/sum.ts", "web")).rejects.toMatchObject({ code: "INVALID_INPUT" });
});

test("H10 SCRIPT-1 steps may be functions of the request, an agent may have its own script, and a failed request continues the script", async () => {
  const app = createTestApp({
    libraries: [library],
    agents: [
      { id: "one", persona: "my/guide" },
      { id: "two", persona: "my/guide" },
    ],
  });
  app.model.of("two").reply("I am two.");
  app.model.script({ error: "overloaded" }, ({ agent, messages, tools }) => {
    return `${agent}: ${messages.at(-1)?.content} with ${tools.join()}`;
  });
  app.model.answer(() => "Always.");
  expect((await app.send("one", "Hi")).text).toBe("one: Hi with add");
  expect((await app.send("two", "Hi")).text).toBe("I am two.");
  const again = await app.send("one", "Again");
  expect(again.text).toBe("Always.");
  expect(app.model.requests.at(-1)?.messages.map(({ content }) => content)).toContain("one: Hi with add");
});

test("H10 SCRIPT-2 a request without a step names the missing step", async () => {
  const app = createTestApp({ libraries: [library] });
  await expect(app.send("guide", "Hi")).rejects.toThrow(/no reply for request 1, of the agent "guide"/);
  await expect(app.send("guied", "Hi")).rejects.toThrow(/no agent "guied"/);
});

test("H10 TESTAPP-2 a deferred call waits, and the clock moves only on request", async () => {
  let handle = "";
  const order = defineTool({
    name: "order",
    description: "Orders.",
    input: z.object({}),
    effect: "once",
    execute: async (_input, { defer }) => {
      const deferred = await defer({ expiresInMs: 3_600_000 });
      handle = deferred.handle;
      return deferred;
    },
  });
  const buyer = definePersona("buyer", { identity: { systemPrompt: "Buy." }, tools: { toolIds: ["order"] } });
  const app = createTestApp({ libraries: [defineLibrary("shop", { personas: [buyer], tools: [order] })] });
  app.model.answer(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === "tool" ? `Result: ${last.content}` : call("order");
  });
  const began = app.clock.now();
  const waiting = await app.send("buyer", "Order it");
  expect(waiting.status).toBe("waiting");
  expect(app.clock.now() - began).toBeLessThan(1_000);
  app.crash();
  await app.complete(handle, { result: "sent" });
  expect((await app.settle(waiting)).text).toContain("sent");

  const late = await app.send("buyer", "Another");
  expect(late.status).toBe("waiting");
  await app.clock.advance("1h30m");
  expect((await app.settle(late)).calls).toMatchObject([{ error: { code: "TIMEOUT" } }]);
});

test("H10 a call waits for a person, who approves or denies it", async () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    input: z.object({ amount: z.number() }),
    effect: "once",
    approval: "always",
    execute: ({ amount }) => `paid ${amount}`,
  });
  const clerk = definePersona("clerk", { identity: { systemPrompt: "Pay." }, tools: { toolIds: ["pay"] } });
  const app = createTestApp({ libraries: [defineLibrary("bank", { personas: [clerk], tools: [pay] })] });
  app.model.script(call("pay", { amount: 5 }), "Done.", call("pay", { amount: 6 }), "Not done.");
  const asked = await app.send("clerk", "Pay 5");
  const [waiting] = app.approvals();
  expect(waiting).toMatchObject({ kind: "tool", name: "pay", input: { amount: 5 } });
  if (waiting !== undefined) await app.approve(waiting);
  expect(await app.settle(asked)).toMatchObject({ status: "completed", text: "Done." });
  const denied = await app.send("clerk", "Pay 6");
  for (const one of app.approvals()) await app.deny(one, "Too much.");
  expect((await app.settle(denied)).calls).toMatchObject([{ error: { code: "APPROVAL_DENIED" } }]);
  expect(app.effects).toHaveLength(1);
});

test("H10 TESTWORLD-1 an agent delegates to another agent, and actors crash between", async () => {
  const ask = defineTool({ name: "ask", description: "Asks.", target: { agent: "expert" } });
  const lead = definePersona("lead", { identity: { systemPrompt: "Lead." }, tools: { toolIds: ["ask"] } });
  const expert = definePersona("expert", { identity: { systemPrompt: "Know." } });
  const app = createTestApp({
    libraries: [defineLibrary("team", { personas: [lead, expert], tools: [ask] })],
  });
  app.model.of("lead").script(call("ask", { message: "Why?" }), "Because.");
  app.model.of("expert").answer(() => {
    if (app.model.requests.length === 2) app.crash();
    return "It must.";
  });
  const turn = await app.send("lead", "Explain.");
  expect(turn).toMatchObject({ text: "Because.", calls: [{ name: "ask" }] });
  expect(JSON.stringify(turn.calls)).toContain("It must.");
});

test("H10 a workflow runs its tasks and waits for people", async () => {
  const double = defineTask({
    id: "double",
    input: z.object({ n: z.number() }),
    output: z.object({ n: z.number() }),
    effect: "pure",
    execute: ({ n }) => ({ n: 2 * n }),
  });
  const flow = defineWorkflow("twice", {
    context: z.object({ n: z.number() }),
    input: z.object({ n: z.number() }),
    initialNode: "first",
    nodes: [
      node("first", {
        task: double,
        inputMapping: { n: "input.n" },
        outputMapping: { "state.n": "result.n" },
      }),
      node("second", {
        task: double,
        inputMapping: { n: "state.n" },
        outputMapping: { "state.n": "result.n" },
      }),
    ],
    transitions: [transition({ from: "first", to: "second" })],
    outputMapping: { n: "state.n" },
  });
  const app = createTestApp({ libraries: [defineLibrary("math", { workflows: [flow] })] });
  const run = await app.run("math/twice", { n: 3 });
  expect(run).toMatchObject({ status: "completed", output: { n: 12 } });
  expect(app.effects.map(({ tool }) => tool)).toEqual(["double", "double"]);
});

test("H10 TESTWORLD-2 a tool that never ends takes its time limit on the virtual clock", async () => {
  const hang = defineTool({
    name: "hang",
    description: "Hangs.",
    input: z.object({}),
    effect: "once",
    timeoutMs: 20_000,
    execute: () => new Promise<null>(() => undefined),
  });
  const fail = defineTool({
    name: "fail",
    description: "Fails.",
    input: z.object({}),
    effect: "pure",
    execute: () => {
      throw new ToolError("No.");
    },
  });
  const one = definePersona("one", {
    identity: { systemPrompt: "Go." },
    tools: { toolIds: ["hang", "fail"] },
  });
  const app = createTestApp({ libraries: [defineLibrary("slow", { personas: [one], tools: [hang, fail] })] });
  app.model.script(
    {
      calls: [
        { name: "hang", input: {} },
        { name: "fail", input: {} },
      ],
    },
    "Over.",
  );
  const began = app.clock.now();
  const turn = await app.send("one", "Go");
  expect(turn.calls).toMatchObject([{ error: { code: "TIMEOUT" } }, { error: { message: "No." } }]);
  expect(app.clock.now() - began).toBeGreaterThan(20_000);
});

/** A bank that a task charges over HTTP. */
const bank = "bank.example";
const charging = defineTask({
  id: "charging",
  input: z.object({ order: z.string() }),
  steps: [
    step("post", {
      action: { kind: "http.request", hosts: [bank], effect: "once" },
      inputMapping: { method: "'POST'", url: `'https://${bank}/charges'`, body: "{'order': input.order}" },
    }),
  ],
});
const payer = definePersona("payer", { identity: { systemPrompt: "Pay." }, tools: { toolIds: ["charge"] } });
const paying = defineLibrary("pay", {
  personas: [payer],
  tools: [defineTool({ name: "charge", description: "Charges.", target: { task: charging } })],
  workflows: [
    defineWorkflow("flow", {
      input: z.object({ order: z.string() }),
      context: z.object({}),
      initialNode: "charge",
      nodes: [node("charge", { task: charging, inputMapping: { order: "input.order" } })],
    }),
  ],
});

test("H10 TESTHTTP-1 TESTHTTP-2 a script answers the requests of actions, and each is an effect", async () => {
  const asked: unknown[] = [];
  const app = createTestApp({
    libraries: [paying],
    async http(request) {
      if (request.method === "POST") {
        asked.push(await request.json());
        return Response.redirect(`https://${bank}/charges/1`, 303);
      }
      return Response.json({ id: 1 });
    },
  });
  app.model.script(call("charge", { order: "42" }), "Paid.");
  const turn = await app.send("payer", "I take it.");
  expect(turn.calls).toMatchObject([{ output: { status: 200, body: { id: 1 } } }]);
  expect(asked).toEqual([{ order: "42" }]);
  const input = { method: "POST", url: `https://${bank}/charges`, body: '{"order":"42"}' };
  expect(app.effects).toMatchObject([
    { tool: "http.request", effect: "once", input, attempt: 1, agent: "payer" },
  ]);
  expect(app.history.join("\n")).toContain("http.request(");
});

test("H10 TESTHTTP-1 a request without a scripted answer reaches no server and fails the test", async () => {
  await using server = await startOpenAIServer({ script: () => jsonReply({}) });
  const { host, origin } = new URL(server.baseUrl);
  const fetching = defineTask({
    id: "fetching",
    input: z.object({}),
    steps: [
      step("get", {
        action: { kind: "http.request", hosts: [host] },
        inputMapping: { url: `'${origin}/price'` },
      }),
    ],
  });
  const tool = defineTool({ name: "price", description: "Asks.", target: { task: fetching } });
  const clerk = definePersona("clerk", { identity: { systemPrompt: "Ask." }, tools: { toolIds: ["price"] } });
  const app = createTestApp({
    libraries: [defineLibrary("shop", { personas: [clerk], tools: [tool] }), paying],
  });
  app.model.script(call("price"), "Done.");
  const missing = (method: string, url: string) => ({
    code: "INVALID_INPUT",
    message: expect.stringMatching(`${method} ${url}.* option \`http\``),
  });
  await expect(app.send("clerk", "Go")).rejects.toMatchObject(missing("GET", `${origin}/price`));
  await expect(app.run("pay/flow", { order: "1" })).rejects.toMatchObject(
    missing("POST", `https://${bank}/charges`),
  );
  expect(server.requests).toEqual([]);
});

test("H10 TESTHTTP-1 an answer that fails is a lost answer", async () => {
  const app = createTestApp({ libraries: [paying], http: () => Promise.reject(new Error("Lost.")) });
  app.model.script(call("charge", { order: "42" }), "Not paid.");
  const turn = await app.send("payer", "I take it.");
  expect(turn).toMatchObject({
    text: "Not paid.",
    calls: [{ error: { message: expect.stringContaining(`"${bank}" did not answer`) } }],
  });
  expect(app.effects).toMatchObject([{ tool: "http.request", error: "Lost." }]);
});

test("H10 a recorded turn is a fixture, and a changed decision throws the first difference", async () => {
  const app = createTestApp({ libraries: [library] });
  app.model.script(call("add", { a: 1, b: 2 }), "It is 3.");
  const turn = await app.send("guide", "What is 1 + 2?");
  const fixture = JSON.stringify(app.recording(turn));
  expectReplay(fixture);
  const changed = JSON.parse(fixture);
  const row = changed.rows.at(-1);
  row.entries.at(-1).data = { changed: true };
  expect(() => expectReplay(changed)).toThrow(ReplayDivergence);
  expect(() => expectReplay(changed)).toThrow(
    /diverges from its recording at entry \d+\.\s+recorded: .*changed/,
  );
  expect(() => expectReplay("{")).toThrow(/not JSON/);
});

test("H10 a malformed recording is INVALID_INPUT", async () => {
  const app = createTestApp({ libraries: [library] });
  app.model.script("Hello.");
  const recording = app.recording(await app.send("guide", "Hi"));
  const changes: ((changed: typeof recording) => void)[] = [
    ({ record }) => void Object.assign(record.agents[0] ?? {}, { chain: {} }),
    ({ turn }) => void Object.assign(turn, { input: null }),
    ({ turn }) => void Object.assign(turn, { caller: {} }),
    ({ rows }) => void rows.splice(0),
  ];
  for (const change of changes) {
    const changed = structuredClone(recording);
    change(changed);
    expect(() => expectReplay(changed)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
  }
  expect(() => expectReplay(null)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
});

test("H10 SCRIPT-3 a scripted call of an unknown tool, or with a wrong input, fails the test unless it is intended", async () => {
  const unknown = createTestApp({ libraries: [library] });
  unknown.model.script(call("ad", { a: 1, b: 2 }), "Done.");
  await expect(unknown.send("guide", "Hi")).rejects.toThrow(
    'The script calls "ad", but "guide" has no such tool. It has: add.',
  );
  const wrong = createTestApp({ libraries: [library] });
  wrong.model.script(call("add", { a: 1 }), "Done.");
  await expect(wrong.send("guide", "Hi")).rejects.toThrow(/"add" with an input that does not fit/);
  const intended = createTestApp({ libraries: [library] });
  intended.model.script({ ...call("ad"), unchecked: true }, "Sorry.");
  expect(await intended.send("guide", "Hi")).toMatchObject({ text: "Sorry.", calls: [{ name: "ad" }] });
  expect(intended.history.join("\n")).toContain("guide gets: ad({})");
});

test("H10 TESTAPP-2 the history shows hours since the begin, also after a day", async () => {
  const app = createTestApp({ libraries: [library] });
  app.model.script("One", "Two");
  await app.send("guide", "First");
  await app.clock.advance("25h");
  await app.send("guide", "Second");
  expect(app.history.find((line) => line.endsWith("Second"))).toMatch(/^25:00:00/);
  expect(app.history.at(-1)).toContain("guide gets: Two");
});

const shopper = (tools: string[]) => defineAgent({ id: "shopper", instructions: "Shop.", tools });
const find = defineTool({
  name: "find",
  description: "Finds an article.",
  input: z.object({ name: z.string() }),
  effect: "pure",
  execute: ({ name }) => ({ name, price: 7 }),
});

test("TESTSERVER-1 TESTSERVER-3 tools in code stand for the tools of an MCP server", async () => {
  for (const reference of ["mcp:shop/*", "mcp:shop/find"]) {
    const app = createTestApp({ agents: [shopper([reference])], mcpTools: { shop: [find] } });
    app.model.script(call("mcp__shop__find", { name: "tea" }), "It costs 7.");
    const turn = await app.send("shopper", "What does tea cost?");
    expect(turn).toMatchObject({ text: "It costs 7.", calls: [{ output: { name: "tea", price: 7 } }] });
    expect(app.effects).toMatchObject([{ tool: "mcp:shop/find", effect: "pure", attempt: 1 }]);
  }
  const send = (options: Partial<TestAppOptions>, tool = "mcp:shop/find") =>
    createTestApp({ agents: [shopper([tool])], ...options }).send("shopper", "Hello");
  await expect(send({})).rejects.toThrow(
    'A test app connects to no MCP server. Give doubles of the tools of "shop" in the option `mcpTools`',
  );
  await expect(send({ mcpTools: { shop: [find] } }, "mcp:shop/buy")).rejects.toThrow(
    'The option `mcpTools` has no double of the tool "buy" of "shop". It has: find.',
  );
});

test("TESTSERVER-2 TESTSERVER-3 a function answers for the agents of other servers", async () => {
  const ask = defineTool({
    name: "ask_remote",
    description: "Asks the shop.",
    effect: "once",
    target: { a2a: "https://shop.example.com/a2a/clerk/" },
  });
  const agents = [defineAgent({ id: "shopper", instructions: "Shop.", tools: [ask] })];
  const app = createTestApp({ agents, remoteAgents: ({ url, text }) => `${new URL(url).host} got: ${text}` });
  app.model.script(call("ask_remote", { message: "Tea?" }), "Asked.");
  const turn = await app.send("shopper", "Ask for tea.");
  expect(turn.calls).toMatchObject([{ output: "shop.example.com got: Tea?" }]);
  expect(app.effects).toMatchObject([{ tool: "app/ask_remote", effect: "once", attempt: 1 }]);

  const silent = createTestApp({ agents });
  silent.model.script(call("ask_remote", { message: "Tea?" }), "It failed.");
  await expect(silent.send("shopper", "Ask for tea.")).rejects.toThrow(
    'No answer is scripted for the message of "app/ask_remote" to the agent at https://shop.example.com/a2a/clerk/',
  );
});

test("an option that a test app does not have is refused", () => {
  const options = { agents: [shopper([])], mcpServers: { shop: { url: "https://shop.example.com/mcp" } } };
  expect(() => createTestApp(options)).toThrow(
    'A test app has no option "mcpServers". The options are: mcpTools, ',
  );
});

test("a gate that waits has its question", async () => {
  const input = z.object({ order: z.string() });
  const action = { kind: "human.approve" as const, prompt: "Refund {{ order }}?" };
  const ask = defineTask({ id: "ask", input, steps: [step("ask", { action })] });
  const refund = defineWorkflow("refund", {
    ...{ input, context: z.object({}), initialNode: "ask", nodes: [node("ask", { task: ask })] },
  });
  const app = createTestApp({ workflows: [refund] });
  await app.run("app/refund", { order: "A-7" });
  expect(app.approvals()).toMatchObject([{ kind: "gate", prompt: "Refund A-7?" }]);
});
