/** The MCP server at `/mcp`, held against the official client, for both families of revisions. */
import { abortAllDurableObjects } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test, vi } from "vitest";
import type { Principal } from "../../src/shared/principal.ts";
import { call, get, post, send } from "./http-client.ts";
import { Play, runsOf } from "./provider.ts";
import { SECRET, sign, TokenServer } from "./token-server.ts";

const TENANT = "mcp";
const ADA: Principal = { subject: "ada", tenant: TENANT, roles: ["admin"] };
const MEL: Principal = { subject: "mel", tenant: TENANT, roles: ["member"] };
const EVE: Principal = { subject: "eve", tenant: "elsewhere", roles: ["admin"] };
const URL_OF_MCP = new URL("http://dramatis.test/mcp");

type Form = { message: string; requestedSchema: unknown };
type Answer = { action: "accept" | "decline" | "cancel"; content?: Record<string, boolean | string> };

/** Returns a client of the newest revision, or of an older revision. `person` fills its forms. */
async function connect(
  principal: Principal | null,
  era: "modern" | "legacy",
  person?: (form: Form) => Answer,
): Promise<Client> {
  const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { versionNegotiation: { mode }, capabilities: person === undefined ? {} : { elicitation: {} } },
  );
  if (person !== undefined)
    client.setRequestHandler("elicitation/create", async ({ params }) => person(params as Form));
  const transport = new StreamableHTTPClientTransport(URL_OF_MCP, {
    fetch: (input, init) => {
      const headers = new Headers(init?.headers);
      if (principal !== null) headers.set("x-test-principal", JSON.stringify(principal));
      return exports.default.fetch(new Request(input, { ...init, headers }));
    },
  });
  await client.connect(transport);
  return client;
}

/** A request of the newest revision, as bytes. */
function ask(
  principal: Principal | null,
  method: string,
  params: { name?: string; taskId?: string; [name: string]: unknown },
  { capabilities = {}, headers = {} }: { capabilities?: object; headers?: object } = {},
): Promise<Response> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const init = {
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    "mcp-name": params.name ?? params.taskId ?? "",
    ...headers,
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } });
  return send("/mcp", { method: "POST", headers: init, body }, principal);
}

const callTool = (principal: Principal | null, name: string, args: object, headers: object = {}) =>
  ask(principal, "tools/call", { name, arguments: args }, { headers });

/** The result in the last event of a stream. */
function resultIn(events: string): { structuredContent: Record<string, unknown>; isError?: boolean } {
  const [last = ""] = events.match(/(?<=^data: ).*$/gm)?.slice(-1) ?? [];
  return JSON.parse(last).result;
}

const textsOf = ({ content }: { content: unknown[] }) =>
  content.map((part) => Reflect.get(Object(part), "text"));

beforeAll(async () => {
  for (const id of ["plain", "handy", "careful"]) {
    const { status } = await post("/api/agents", { id, persona: `test/${id}` }, ADA);
    expect(status).toBe(201);
  }
  const double = {
    id: "double",
    name: "Double",
    description: "Doubles a number.",
    inputSchema: { type: "object", properties: { value: { type: "number" } }, required: ["value"] },
    initialNode: "start",
    outputMapping: { doubled: "input.value * 2.0" },
    nodes: [{ ref: "start" }],
    transitions: [],
  };
  const ask = {
    id: "ask",
    inputSchema: { type: "object" },
    steps: [{ ref: "ask", action: { kind: "human.approve", prompt: "Send it?" } }],
  };
  const gated = {
    id: "gated",
    inputSchema: { type: "object" },
    contextSchema: { type: "object", properties: { answer: {} } },
    outputMapping: { answer: "state.answer" },
    initialNode: "ask",
    nodes: [{ ref: "ask", task: "ask", outputMapping: { "state.answer": "result" } }],
    transitions: [],
  };
  const gatedTwice = {
    id: "gated-twice",
    inputSchema: { type: "object" },
    outputMapping: {},
    initialNode: "start",
    nodes: [{ ref: "start" }, { ref: "first", task: "ask" }, { ref: "second", task: "ask" }],
    transitions: [
      { ref: "to_first", from: "start", to: "first" },
      { ref: "to_second", from: "start", to: "second" },
    ],
  };
  const greet = {
    id: "greet",
    description: "Greets.",
    systemPrompt: "Be kind.",
    template: "Hello {{ name }}, {{ times | plus: 1 }} times.",
    requires: {
      type: "object",
      properties: { name: { type: "string" }, times: { type: "number" } },
      required: ["name"],
    },
  };
  const twice = {
    id: "twice",
    name: "twice",
    description: "Doubles an amount.",
    target: { task: "test/double" },
    inputSchema: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
    inputMapping: { n: "input.amount" },
  };
  const memory = { content: "Mel sits at the window.", subject: { userId: "mel" } };
  expect((await post("/api/agents/plain/memories", memory, ADA)).status).toBe(201);
  expect((await post("/api/projects", { id: "mcp-docs" }, ADA)).status).toBe(201);
  const artifact = "/api/projects/mcp-docs/artifact?path=notes/a%20b.md";
  const written = await call("PUT", artifact, { content: "# A note" }, ADA);
  expect(written.status, written.body.detail).toBe(200);
  for (const [kind, definition] of [
    ["workflows", double],
    ["tasks", ask],
    ["workflows", gated],
    ["workflows", gatedTwice],
    ["prompts", greet],
    ["tools", twice],
    ["tools", { ...twice, id: "double-again", name: "double" }],
    ["tools", { ...twice, id: "imitation", name: "ask_plain" }],
    ["tools", { ...twice, id: "search", name: "search_memory" }],
  ] as const) {
    const added = await post(`/api/libraries/mcp-flows/${kind}`, definition, ADA);
    expect(added.status, added.body.detail).toBe(201);
  }
});

describe.each(["modern", "legacy"] as const)("I10 MCP, the %s revisions", (era) => {
  test("MCP-1 MCP-2 MCP-3 an agent is a tool: its answer streams as progress, and a conversation continues", async () => {
    const client = await connect(MEL, era);
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === "ask_plain")).toMatchObject({
      inputSchema: { type: "object", required: ["message"] },
    });
    const play = new Play({ replies: [[{ text: "Forty" }, { text: "-two." }]] });
    const seen: string[] = [];
    const result = await client.callTool(
      { name: "ask_plain", arguments: { message: play.content } },
      { onprogress: ({ message = "" }) => seen.push(message) },
    );
    expect(seen.join("")).toBe("Forty-two.");
    const { conversationId } = Object(result.structuredContent);
    expect(result.structuredContent).toMatchObject({ answer: "Forty-two." });
    expect(textsOf(result)).toEqual(["Forty-two.", `Conversation: ${conversationId}`]);
    const { content: message } = new Play({ replies: [[{ text: "Yes." }]] });
    const next = await client.callTool({
      name: "ask_plain",
      arguments: { message, conversation: conversationId },
    });
    expect(next.structuredContent).toMatchObject({ answer: "Yes.", conversationId });
    const { body } = await get(`/api/conversations/${conversationId}/messages`, MEL);
    expect(body.messages.map(({ role }) => role)).toEqual(["user", "agent", "user", "agent"]);
    await client.close();
  });

  test("MCP-2 a workflow is a tool, and errors are results that say what to change", async () => {
    const client = await connect(MEL, era);
    const { tools } = await client.listTools();
    const name = "run_mcp-flows__double";
    expect(tools.find((tool) => tool.name === name)).toMatchObject({
      description: "Runs the workflow Double. Doubles a number.",
      inputSchema: { type: "object", required: ["value"] },
    });
    const doubled = await client.callTool({ name, arguments: { value: 21 } });
    expect(doubled.structuredContent).toMatchObject({ status: "completed", output: { doubled: 42 } });
    for (const call of [
      { name, arguments: { value: "many" } },
      { name: "ask_plain", arguments: { message: "" } },
      { name: "ask_plain", arguments: { message: "Hello.", conversation: "conv_absent" } },
    ])
      expect(await client.callTool(call)).toMatchObject({ isError: true });
    expect(textsOf(await client.callTool({ name: "ask_absent", arguments: { message: "Hello." } }))).toEqual([
      'NOT_FOUND: There is no agent "absent". `tools/list` has the agents.',
    ]);
    await expect(client.callTool({ name: "absent", arguments: {} })).rejects.toThrow("absent");
    await client.close();
  });

  test("MCP-12 tools that the application names are public: code and authored tools, and none that needs an approval", async () => {
    const client = await connect(MEL, era);
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["double", "charge", "twice"]));
    expect(names).not.toContain("transfer");
    expect(new Set(names).size, "a name that another tool has is not offered again").toBe(names.length);
    expect(tools.find(({ name }) => name === "ask_plain")?.description).toContain("Asks the agent");
    for (const [name, args, result] of [
      ["double", { n: 21 }, { doubled: 42 }],
      ["twice", { amount: 21 }, { doubled: 42 }],
    ] as const) {
      const { structuredContent } = await client.callTool({ name, arguments: args });
      expect(structuredContent).toMatchObject({ status: "completed", output: { result } });
    }
    expect(await client.callTool({ name: "double", arguments: { n: "many" } })).toMatchObject({
      isError: true,
    });
    await expect(client.callTool({ name: "transfer", arguments: {} })).rejects.toThrow("transfer");
    await client.close();
    const stranger = await connect(EVE, era);
    expect((await stranger.listTools()).tools.map(({ name }) => name)).not.toContain("twice");
    await stranger.close();
  });

  test("MCP-5 a cancelled call stops its turn", async () => {
    const client = await connect(MEL, era);
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "never" }]] });
    const abort = new AbortController();
    const call = client.callTool(
      { name: "ask_plain", arguments: { message: play.content } },
      { signal: abort.signal, onprogress: () => undefined },
    );
    await play.reached("never");
    abort.abort();
    await expect(call).rejects.toThrow();
    await expect
      .poll(async () => JSON.stringify((await get("/api/turns?status=stopped", MEL)).body.turns))
      .toContain(play.key);
    await client.close();
  });

  test("MCP-7 MCP-8 MCP-9 the person at the client approves and denies calls, and the turn goes on", async () => {
    const play = (reply: string) =>
      new Play((key) => ({
        replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: reply }]],
      }));
    for (const [answer, text, runs] of [
      [{ action: "accept", content: { approved: true } }, "Paid.", 1],
      [{ action: "accept", content: { approved: false, reason: "Too much." } }, "Too much, then.", 0],
      [{ action: "decline" }, "Not paid.", 0],
    ] as const) {
      const forms: string[] = [];
      const client = await connect(MEL, era, ({ message }) => {
        forms.push(message);
        return answer;
      });
      const { content: message, key } = play(text);
      const result = await client.callTool({ name: "ask_careful", arguments: { message } });
      expect(result.structuredContent).toMatchObject({ answer: text });
      expect(forms).toEqual([expect.stringContaining('wants to call transfer with {"key":')]);
      expect(await runsOf(key)).toHaveLength(runs);
      await client.close();
    }
  });

  test("MCP-7 MCP-8 a client without forms, or a person who closes the form, learns where to answer", async () => {
    const clients = [await connect(MEL, era)];
    if (era === "modern") clients.push(await connect(MEL, era, () => ({ action: "cancel" })));
    for (const client of clients) {
      const { content: message } = new Play((key) => ({
        replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "Paid." }]],
      }));
      const result = await client.callTool({ name: "ask_careful", arguments: { message } });
      expect(result.structuredContent).toMatchObject({ waiting: [expect.stringContaining("transfer")] });
      const [, path = ""] = /POST (\S+)\./.exec(textsOf(result).join(" ")) ?? [];
      expect((await post(path, { approved: false }, MEL)).status).toBe(200);
      await client.close();
    }
  });

  test("MCP-7 MCP-8 MCP-9 the person at the client answers the gate of a run", async () => {
    const client = await connect(MEL, era, ({ message }) => ({
      action: "accept",
      content: { approved: message === "Send it?" },
    }));
    const result = await client.callTool({ name: "run_mcp-flows__gated", arguments: {} });
    expect(result.structuredContent).toMatchObject({ output: { answer: { approved: true } } });
    await client.close();
  });

  test("MCP-6 memories, prompts of libraries and artifacts of projects are found, each with the rights of the principal", async () => {
    const client = await connect(MEL, era);
    const search = { name: "search_memory", arguments: { agent: "plain", query: "Where does Mel sit?" } };
    const found = await client.callTool(search);
    expect(found.structuredContent).toMatchObject({ memories: [{ content: "Mel sits at the window." }] });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("search_memory");

    const { prompts } = await client.listPrompts();
    expect(prompts.find(({ name }) => name === "mcp-flows/greet")).toMatchObject({
      description: "Greets.",
      arguments: [{ name: "name", required: true }, { name: "times" }],
    });
    const greet = (values: Record<string, string>) =>
      client.getPrompt({ name: "mcp-flows/greet", arguments: values });
    expect((await greet({ name: "Bob", times: "2" })).messages).toEqual([
      { role: "user", content: { type: "text", text: "Be kind.\n\nHello Bob, 3 times." } },
    ]);
    await expect(greet({})).rejects.toThrow("name");
    await expect(client.getPrompt({ name: "mcp-flows/absent" })).rejects.toThrow("absent");

    const { resources } = await client.listResources();
    const uri = "dramatis://artifacts/mcp-docs/notes/a%20b.md";
    expect(resources).toContainEqual(expect.objectContaining({ uri, mimeType: "text/markdown" }));
    expect((await client.listResourceTemplates()).resourceTemplates).toMatchObject([{ name: "artifact" }]);
    expect((await client.readResource({ uri })).contents).toEqual([
      { uri, mimeType: "text/markdown", text: "# A note" },
    ]);
    await expect(client.readResource({ uri: `${uri}x` })).rejects.toThrow();

    const stranger = await connect(EVE, era);
    expect(await stranger.callTool(search)).toMatchObject({ isError: true });
    expect((await stranger.listPrompts()).prompts).toEqual([]);
    expect((await stranger.listResources()).resources).toEqual([]);
    await expect(stranger.readResource({ uri })).rejects.toThrow();
    for (const each of [client, stranger]) await each.close();
  });

  test("MCP-6 a principal sees its own tenant, and other tenants find nothing", async () => {
    const client = await connect(EVE, era);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).not.toContain("ask_plain");
    const { isError } = await client.callTool({ name: "ask_plain", arguments: { message: "Let me in." } });
    expect(isError).toBe(true);
    await client.close();
  });
});

describe("I10 MCP, tasks", () => {
  const capabilities = { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } };

  async function result(
    method: string,
    params: { name?: string; taskId?: string; [name: string]: unknown },
    principal = MEL,
  ): Promise<Record<string, unknown>> {
    const text = await (await ask(principal, method, params, { capabilities })).text();
    const [json = text] = text.match(/(?<=^data: ).*$/gm)?.slice(-1) ?? [];
    const { result: found, error } = JSON.parse(json);
    return found ?? { error };
  }

  /** The task, once it has this status. */
  const reaches = (taskId: string, status: string) =>
    vi.waitUntil(
      async () => {
        const task = await result("tasks/get", { taskId });
        return task.status === status ? task : undefined;
      },
      { timeout: 20_000 },
    );

  test("MCP-11 a client with tasks gets a task for a turn, answers its questions, and reads its result", async () => {
    const play = new Play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "Paid." }]],
    }));
    const call = { name: "ask_careful", arguments: { message: play.content } };
    const created = await result("tools/call", call);
    expect(created).toMatchObject({ resultType: "task", status: "working", ttlMs: null });
    const taskId = String(created.taskId);
    const { inputRequests } = await reaches(taskId, "input_required");
    const [key = ""] = Object.keys(Object(inputRequests));
    const inputResponses = {
      [key]: { action: "accept", content: { approved: true } },
      other: { action: "accept", content: {} },
    };
    for (let time = 0; time < 2; time++)
      expect(await result("tasks/update", { taskId, inputResponses })).toMatchObject({
        resultType: "complete",
      });
    expect(await reaches(taskId, "completed")).toMatchObject({
      result: { structuredContent: { answer: "Paid." } },
    });
    expect(await result("tasks/cancel", { taskId })).toMatchObject({ resultType: "complete" });
    expect(await play.runs(1)).toHaveLength(1);
  });

  test("MCP-8 MCP-11 of several answers, a wrong one leaves the others without effect", async () => {
    const { taskId: id } = await result("tools/call", { name: "run_mcp-flows__gated-twice", arguments: {} });
    const taskId = String(id);
    const keysOf = async () =>
      Object.keys(Object((await reaches(taskId, "input_required")).inputRequests)).sort();
    await expect.poll(async () => (await keysOf()).length).toBe(2);
    const keys = await keysOf();
    const update = (...contents: object[]) => {
      const inputResponses = Object.fromEntries(
        contents.map((content, n) => [keys[n], { action: "accept", content }]),
      );
      return result("tasks/update", { taskId, inputResponses });
    };
    expect(await update({ approved: true }, { approved: "perhaps" })).toHaveProperty("error");
    expect(await keysOf()).toEqual(keys);
    expect(await update({ approved: true }, { approved: true })).not.toHaveProperty("error");
    await reaches(taskId, "completed");
  });

  test("MCP-11 a run is a task, too, and a cancelled task stops its work", async () => {
    const gated = { name: "run_mcp-flows__gated", arguments: {} };
    const { taskId: run } = await result("tools/call", gated);
    await reaches(String(run), "input_required");
    expect(await result("tasks/cancel", { taskId: String(run) })).toMatchObject({ resultType: "complete" });
    expect(await reaches(String(run), "cancelled")).not.toHaveProperty("result");
    const double = { name: "run_mcp-flows__double", arguments: { value: 21 } };
    const { taskId } = await result("tools/call", double);
    expect(await reaches(String(taskId), "completed")).toMatchObject({
      result: { structuredContent: { output: { doubled: 42 } } },
    });
  });

  test("MCP-11 MCP-6 tasks need the capability, an id, and the rights of their principal", async () => {
    const { content: message } = new Play({ replies: [[{ text: "Yes." }]] });
    const call = { name: "ask_plain", arguments: { message } };
    const taskId = String((await result("tools/call", call)).taskId);
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const refused = await ask(MEL, method, { taskId, inputResponses: {} });
      expect(await refused.json()).toMatchObject({ error: { code: -32021 } });
      for (const params of [{ taskId: "absent" }, { taskId: `${taskId}0` }])
        expect(await result(method, { ...params, inputResponses: {} })).toMatchObject({
          error: { code: -32602 },
        });
      const stranger = await result(method, { taskId, inputResponses: {} }, EVE);
      expect(stranger).toMatchObject({ error: { code: -32602 } });
    }
    const other = await ask(MEL, "tasks/get", { taskId }, { capabilities, headers: { "mcp-name": "other" } });
    expect([other.status, await other.json()]).toEqual([
      400,
      expect.objectContaining({ error: expect.objectContaining({ code: -32020 }) }),
    ]);
  });
});

describe("I10 MCP, its requests", () => {
  test("MCP-4 MCP-5 a client with a key leaves during a tool call, its actors end, and it gets one text and one effect", async () => {
    const quiet = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const play = new Play((key) => ({
      replies: [
        [{ text: "Let me pay." }, { call: "charge", input: { key, gate: "bank" } }],
        [{ text: "Forty" }, { gate: "later" }, { text: "-two." }],
      ],
    }));
    const pay = () => callTool(MEL, "ask_handy", { message: play.content }, { "idempotency-key": play.key });
    const first = await pay();
    await play.reached("bank");
    await first.body?.cancel();
    const second = pay();
    await play.open("bank");
    await play.reached("later");
    await abortAllDurableObjects();
    await play.open("later");
    const { structuredContent } = resultIn(await (await second).text());
    expect(structuredContent).toMatchObject({ answer: "Forty-two." });
    expect(resultIn(await (await pay()).text()).structuredContent).toEqual(structuredContent);
    expect(await play.runs(1)).toHaveLength(1);
    const other = callTool(MEL, "ask_handy", { message: "Other." }, { "idempotency-key": play.key });
    expect(resultIn(await (await other).text())).toMatchObject({ isError: true });
    quiet.mockRestore();
  });

  test("MCP-10 a client without a token learns who issues tokens, if there is an issuer", async () => {
    const server = new TokenServer({ AUTH_SECRET: SECRET, AUTH_ISSUER: "https://issuer.test" });
    const address = "http://dramatis.test/.well-known/oauth-protected-resource/mcp";
    for (const path of ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
      expect(await (await server.fetch(path)).json()).toEqual({
        resource: "http://dramatis.test/mcp",
        authorization_servers: ["https://issuer.test"],
        bearer_methods_supported: ["header"],
      });
    const challenge = async (token: string, path = "/mcp") => {
      const { status, headers } = await server.as(token, path, { method: "POST", body: "{}" });
      return [status, headers.get("www-authenticate")];
    };
    const names = `resource_metadata="${address}"`;
    expect(await challenge("garbage")).toEqual([401, expect.stringContaining(names)]);
    expect(await challenge("garbage", "/api/agents")).toEqual([401, expect.not.stringContaining(names)]);
    expect(await challenge(await sign({ iss: "https://issuer.test" }))).toEqual([415, null]);
    const closed = new TokenServer();
    expect((await closed.fetch("/.well-known/oauth-protected-resource")).status).toBe(404);
    expect((await closed.fetch("/mcp", { method: "POST" })).headers.get("www-authenticate")).toBe("Bearer");
  });

  test("MCP-13 a request is refused before its messages have an effect: of another media type, a batch of calls, and a long batch", async () => {
    const post = (body: unknown, type = "application/json") => {
      const headers = { "content-type": type, accept: "application/json, text/event-stream" };
      return send("/mcp", { method: "POST", headers, body: JSON.stringify(body) }, MEL);
    };
    const play = new Play({ replies: [[{ text: "Never." }]] });
    const params = { name: "ask_plain", arguments: { message: play.content } };
    const calls = [1, 2].map((id) => ({ jsonrpc: "2.0", id, method: "tools/call", params }));
    const lists = Array.from({ length: 101 }, (_, id) => ({ jsonrpc: "2.0", id, method: "tools/list" }));
    expect((await post(calls)).status).toBe(400);
    expect((await post(lists)).status).toBe(400);
    expect((await post(calls[0], "text/plain")).status).toBe(415);
    expect(await play.requests(0)).toEqual([]);
  });

  test("MCP-6 a name that no prompt can have, and an id of another tenant's agent, find nothing", async () => {
    const prompt = await ask(MEL, "prompts/get", { name: "__proto__/constructor" });
    expect(await prompt.json()).toMatchObject({ error: { code: expect.any(Number) } });
    for (const agent of ["eu:zzz", "a".repeat(300_000)]) {
      const found = await (await callTool(MEL, "search_memory", { agent, query: "Who?" })).text();
      expect(found).not.toMatch(/Known agents|INTERNAL_ERROR/);
      expect(found).toMatch(/agent/);
    }
  });

  test("AUTH-1 need a principal, JSON and a known method", async () => {
    const client = connect(null, "modern");
    expect((await callTool(null, "ask_plain", { message: "Hello." })).status).toBe(401);
    await expect(client).rejects.toThrow();
    for (const [body, status] of [
      ["{", 400],
      ["[]", 400],
      ["null", 400],
      ['{"jsonrpc":"2.0","id":1,"method":"absent"}', 406],
    ] as const)
      expect(
        (await send("/mcp", { method: "POST", body, headers: { "content-type": "application/json" } }))
          .status,
        body,
      ).toBe(status);
    for (const method of ["GET", "DELETE"]) expect((await send("/mcp", { method })).status).toBe(405);
  });
});
