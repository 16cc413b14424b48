import { beforeAll, describe, expect, test, vi } from "vitest";
import { parseFrame } from "../../src/protocol/frames.ts";
import type { Principal } from "../../src/shared/principal.ts";
import {
  type Answer,
  answer,
  call,
  createAgent,
  createConversation,
  expectProblem,
  get,
  MEMBER,
  persona,
  post,
  SECURITY_HEADERS,
  STRANGER,
  say,
  securityHeadersOf,
  send,
} from "./http-client.ts";

describe("authentication", () => {
  test.each([
    ["GET", "/"],
    ["GET", "/api/agents"],
    ["GET", "/api/no/such/path"],
    ["POST", "/api/conversations"],
    ["DELETE", "/api/agents"],
    ["GET", "/conversations/conv_01JD0000000000000000000000"],
    ["GET", "/agents/conversation/conv_01JD0000000000000000000000"],
    ["POST", "/health"],
  ])("AUTH-1 a stranger's %s %s is 401 whatever is there", async (method, path) => {
    const response = await answer(await send(path, { method }, null));
    expectProblem(response, 401, "UNAUTHENTICATED");
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
  });

  test.each([
    ["GET", "/api"],
    ["GET", "/api/no/such/path"],
    ["GET", "/api/agents/"],
    ["GET", "/agents/agent/assistant"],
    ["GET", "/agents/conversation/conv_01JD0000000000000000000000/sub/agent/x"],
    ["GET", "/conversations/conv_01JD0000000000000000000000/sub/agent/x"],
    ["GET", "/conversations/..%2f..%2fsub%2fagent%2fx"],
  ])("%s %s does not exist", async (method, path) => {
    expectProblem(await call(method, path), 404, "NOT_FOUND");
  });

  test.each([
    ["DELETE", "/api/agents", "GET, POST, HEAD"],
    ["PUT", "/api/agents/a", "DELETE, GET, PATCH, HEAD"],
    ["PATCH", "/api/conversations", "GET, POST, HEAD"],
    ["POST", "/api/conversations/x/messages", "GET, HEAD"],
    ["OPTIONS", "/api/conversations/x/events", "GET, HEAD"],
    ["POST", "/conversations/x", "GET, HEAD"],
    ["POST", "/health", "GET, HEAD"],
  ])("%s %s is not possible, and Allow lists the possible methods", async (method, path, allow) => {
    const response = await call(method, path);
    expectProblem(response, 405, "METHOD_NOT_ALLOWED");
    expect(response.headers.get("allow")).toBe(allow);
  });

  test("SOCKET-2 the socket paths want a WebSocket", async () => {
    const conversation = await createConversation(await createAgent());
    for (const door of ["conversations", "agents/conversation"]) {
      const response = await get(`/${door}/${conversation}`);
      expectProblem(response, 426, "UPGRADE_REQUIRED");
      expect(response.headers.get("upgrade")).toBe("websocket");
      const headers = { upgrade: "websocket" };
      const malformed = await answer(await send(`/${door}/${conversation}?from=-1`, { headers }));
      expectProblem(malformed, 422, "INVALID_INPUT", "/from");
      expectProblem(await answer(await send(`/${door}/nothing`, { headers })), 404, "NOT_FOUND");
    }
  });

  test("BEARER-3 a client of our protocol with an impossible conversation id is closed with 4404", async () => {
    const headers = { upgrade: "websocket", "sec-websocket-protocol": "dramatis.v1" };
    const { webSocket } = await send("/conversations/nothing", { headers });
    if (webSocket === null) throw new Error("The door did not open.");
    const closed = new Promise<CloseEvent>((resolve) => webSocket.addEventListener("close", resolve));
    webSocket.accept();
    expect(await closed).toMatchObject({ code: 4404, reason: "NOT_FOUND" });
  });
});

describe("agents", () => {
  test("are created, read, changed and listed", async () => {
    const created = await post("/api/agents", { id: "guide", persona, projectIds: ["a", "b"] });
    expect(created.status).toBe(201);
    expect(created.headers.get("location")).toBe("/api/agents/guide");
    const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const identity = {
      id: "guide",
      tenant: "http",
      persona,
      projectIds: ["a", "b"],
      createdAt: iso,
      updatedAt: iso,
    };
    expect(created.body).toEqual(identity);
    expect((await get("/api/agents/guide")).body).toEqual(created.body);

    const changed = await call("PATCH", "/api/agents/guide", { persona: "test/plain" });
    expect(changed.status).toBe(200);
    expect(changed.body).toEqual({ ...identity, persona: { library: "test", id: "plain" } });
    expect(changed.body.createdAt).toBe(created.body.createdAt);
    const { body } = await get("/api/agents?limit=200");
    expect(body.agents.filter(({ id }) => id === "guide")).toEqual([changed.body]);
  });

  test("A1 show the name, the description and the examples of their persona, given inline or of its latest version", async () => {
    const listed = async (id: string) =>
      (await get("/api/agents?limit=200")).body.agents.find((agent) => agent.id === id);
    const inline = { ...persona, name: "Ada", description: "Greets.", examples: ["Hello?"] };
    await post("/api/agents", { id: "shown", persona: inline });
    expect((await get("/api/agents/shown")).body).toMatchObject({ persona: inline, examples: ["Hello?"] });
    const { name, description, examples } = inline;
    expect(await listed("shown")).toMatchObject({ name, description, examples });
    for (const examples of [["One?"], ["One?", "Two?"]]) {
      const shown = { name: "Bea", description: "Shows the way.", examples };
      await post("/api/libraries/shown/personas", { id: "guide", ...persona, ...shown });
      if (examples.length === 1) await post("/api/agents", { id: "guided", persona: "shown/guide" });
      expect((await get("/api/agents/guided")).body).toMatchObject(shown);
      expect(await listed("guided")).toMatchObject(shown);
    }
    expect((await get("/api/libraries/shown/personas/guide/versions")).body).toMatchObject({
      versions: [{ version: 1 }, { version: 2 }],
    });
    for (const examples of [[], [""], Array(9).fill("Hello?")])
      expectProblem(await post("/api/agents", { persona: { ...persona, examples } }), 422, "INVALID_INPUT");
  });

  test("get a generated id if they have no id, and the project `default`", async () => {
    const { body } = await post("/api/agents", { persona });
    expect(body.id).toMatch(/^agent-[0-9a-hjkmnp-tv-z]{10}$/);
    expect(body.projectIds).toEqual(["default"]);
  });

  test("IDENT-1 keep their ids: a duplicate is a conflict, also when both arrive at once, and changes no agent", async () => {
    const both = await Promise.all([1, 2].map(() => post("/api/agents", { id: "twin", persona })));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
    const other = { identity: { systemPrompt: "Another." } };
    expectProblem(await post("/api/agents", { id: "twin", persona: other }), 409, "CONFLICT");
    expect((await get("/api/agents/twin")).body.persona).toEqual(persona);
  });

  test("belong to their tenant", async () => {
    const stranger = { ...STRANGER, tenant: crypto.randomUUID() };
    await createAgent("shared-name");
    expectProblem(await get("/api/agents/shared-name", stranger), 404, "NOT_FOUND");
    await createAgent("shared-name", stranger);
    expect((await get("/api/agents", stranger)).body.agents).toHaveLength(1);
  });

  test("are written by authors only", async () => {
    const id = await createAgent();
    expectProblem(await post("/api/agents", { persona }, MEMBER), 403, "FORBIDDEN");
    expectProblem(await call("PATCH", `/api/agents/${id}`, { persona }, MEMBER), 403, "FORBIDDEN");
    expect((await get(`/api/agents/${id}`, MEMBER)).status).toBe(200);
    await createAgent(undefined, { ...MEMBER, roles: ["author"] });
  });

  test.each([
    [{}, "/persona"],
    [{ persona: null }, "/persona"],
    [{ persona: 7 }, "/persona"],
    [{ persona: "no/such/thing" }, "/persona"],
    [{ persona: "test/absent" }, "/persona"],
    [{ persona: { library: "test", id: "plain", version: 0 } }, "/persona/version"],
    [{ persona: { identity: {} } }, "/persona/identity/systemPrompt"],
    [{ persona: { ...persona, mood: "good" } }, "/persona/mood"],
    [{ persona: { ...persona, memory: { recentTurnsLimit: 0 } } }, "/persona/memory/recentTurnsLimit"],
    [{ persona, projectIds: [] }, "/projectIds"],
    [{ persona, projectIds: "default" }, "/projectIds"],
    [{ persona, projectIds: ["a project"] }, "/projectIds/0"],
    [{ persona, id: "" }, "/id"],
    [{ persona, id: "No Spaces" }, "/id"],
    [{ persona, id: "a".repeat(65) }, "/id"],
    [{ persona, id: "a:b" }, "/id"],
    [{ persona, owner: "me" }, "/owner"],
    [[], ""],
    ["text", ""],
    [null, ""],
  ])("A3 IDENT-2 refuses %j at %s", async (body, path) => {
    expectProblem(await post("/api/agents", body), 422, "INVALID_INPUT", path);
  });

  test("a change names something", async () => {
    const id = await createAgent();
    expectProblem(await call("PATCH", `/api/agents/${id}`, {}), 422, "INVALID_INPUT");
    expectProblem(await call("PATCH", `/api/agents/${id}`, { id: "b" }), 422, "INVALID_INPUT", "/id");
    expectProblem(await call("PATCH", "/api/agents/absent", { persona }), 404, "NOT_FOUND");
    expectProblem(await get("/api/agents/Not%20An%20Id"), 404, "NOT_FOUND");
  });

  test("FIELD-2 a turn with an unknown field is answered with the fields of a turn", async () => {
    const path = `/api/conversations/${await createConversation(await createAgent())}/turns`;
    const refused = await post(path, { message: "Hi" });
    expectProblem(refused, 422, "INVALID_INPUT", "/message");
    expect(refused.body.detail).toContain("/message: Unknown field. Known fields: content, ");
  });

  test("an unknown agent is answered with ids of agents of the tenant, the most similar first", async () => {
    const admin = (): Principal => ({ ...MEMBER, tenant: crypto.randomUUID(), roles: ["admin"] });
    const [principal, other] = [admin(), admin()];
    const ids = ["assistant", ...Array.from({ length: 11 }, (_, n) => `clerk-${n}`)];
    await Promise.all(ids.map((id) => createAgent(id, principal)));
    const listed = async () => (await get("/api/agents", principal)).body.agents;
    await vi.waitFor(async () => expect(await listed()).toHaveLength(12), { timeout: 10_000 });
    const unknown = { agentId: "asistant" };
    const { detail } = (await post("/api/conversations", unknown, principal)).body;
    const clerks = ids.slice(1).toSorted().slice(0, 9).join(", ");
    expect(detail).toBe(
      `There is no agent "asistant". Did you mean "assistant"? Known agents: assistant, ${clerks}, and more.`,
    );
    for (const path of ["", "/memories", "/export", "/usage"])
      expect((await get(`/api/agents/asistant${path}`, principal)).body.detail).toBe(detail);
    const path = `/api/conversations/${await createConversation("assistant", principal)}/participants`;
    expect((await post(path, { type: "agent", id: "asistant" }, principal)).body.detail).toBe(detail);
    expect((await get("/api/agents/asistant", other)).body.detail).toBe('There is no agent "asistant".');
  });
});

describe("conversations", () => {
  let agent: string;

  beforeAll(async () => {
    agent = await createAgent();
  });

  test("are created and read", async () => {
    const created = await post("/api/conversations", {
      agentId: agent,
      title: "First",
      projectId: "default",
    });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^conv_[0-9A-HJKMNP-TV-Z]{26}$/),
      title: "First",
      status: "active",
      gate: "idle",
      turns: "parallel",
      agentId: agent,
      projectId: "default",
      participants: [
        { type: "user", id: "ada" },
        { type: "agent", id: agent },
      ],
      createdAt: expect.stringMatching(/Z$/),
    });
    expect(created.headers.get("location")).toBe(`/api/conversations/${created.body.id}`);
    expect(created.headers.get("cache-control")).toBe("no-store");
    const usage = { calls: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, cost: 0 };
    expect((await get(`/api/conversations/${created.body.id}`)).body).toEqual({
      ...created.body,
      usage,
      spent: { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 },
    });
  });

  test("may name participants: one agent, and users, each once", async () => {
    const participants = [
      { type: "user", id: "mel" },
      { type: "agent", id: agent },
      { type: "user", id: "ada" },
      { type: "user", id: "mel" },
    ];
    const { status, body } = await post("/api/conversations", { participants });
    expect(status).toBe(201);
    expect(body.participants).toEqual([
      { type: "user", id: "ada" },
      { type: "user", id: "mel" },
      { type: "agent", id: agent },
    ]);
    expect((await get(`/api/conversations/${body.id}`, MEMBER)).status).toBe(200);
  });

  test.each([
    [{}, "/agentId"],
    [{ agentId: "Nobody" }, "/agentId"],
    [{ agentId: 7 }, "/agentId"],
    [{ agentId: "a", participants: [] }, "/agentId"],
    [{ participants: [] }, "/participants"],
    [{ participants: [{ type: "user", id: "u" }] }, "/participants"],
    [{ participants: ["a", "b"].map((id) => ({ type: "agent", id })) }, "/participants"],
    [{ participants: [{ type: "robot", id: "a" }] }, "/participants/0/type"],
    [{ participants: [{ type: "user", id: "" }] }, "/participants/0/id"],
    [{ participants: [{ type: "user", id: "u", admin: true }] }, "/participants/0/admin"],
    [{ agentId: "a", title: "" }, "/title"],
    [{ agentId: "a", title: " \u200b" }, "/title"],
    [{ agentId: "a", title: "t".repeat(201) }, "/title"],
    [{ agentId: "a", id: "conv_01JD0000000000000000000000" }, "/id"],
  ])("refuses %j at %s", async (body, path) => {
    expectProblem(await post("/api/conversations", body), 422, "INVALID_INPUT", path);
  });

  test("need an agent that is there, and one of its projects", async () => {
    const { status, body } = await post("/api/conversations", { agentId: "absent" });
    expect([status, body.code]).toEqual([404, "NOT_FOUND"]);
    const projectId = "elsewhere";
    expectProblem(
      await post("/api/conversations", { agentId: agent, projectId }),
      422,
      "INVALID_INPUT",
      "/projectId",
    );
  });

  test("a browser at the address of an agent gets 404 if the Worker has static files without the console", async () => {
    const visit = (path: string, accept: string) => send(path, { headers: { accept }, redirect: "manual" });
    expect((await visit("/agents/assistant", "*/*")).status).toBe(404);
    for (const path of [
      "/agents/assistant",
      "/agents/a/b",
      "/agents/%0d%0aset-cookie:%20a=b",
      "/agents/%00",
      "/agents/%C3%A9",
    ])
      expect((await visit(path, "text/html")).status, path).toBe(404);
  });

  test("an unknown id, an unknown operation and a wrong choice get different errors", async () => {
    const { id } = (await post("/api/conversations", { agentId: agent })).body;
    const detailOf = async (answered: Promise<Answer>) => String((await answered).body.detail);
    const path = `/api/conversations/${id}`;
    expect(await detailOf(get(`${path}/turns/turn_x`))).toBe(
      'The turn "turn_x" was not found. Check the id and your access.',
    );
    expect(await detailOf(post(`${path}/stop`, {}))).toBe(
      `There is no operation \`POST ${path}/stop\`. Check the method and the path: /docs lists them.`,
    );
    expect(await detailOf(post(`${path}/participants`, { type: "agnt", id: "x" }))).toContain(
      '/type: Must be "agent" or "user"',
    );
    expect(
      await detailOf(post(`${path}/signals`, { type: "conversation.user.message", data: {} })),
    ).toContain("/data/content: Is required");
  });

  test.each([
    "conv_01JD0000000000000000000000",
    "conv_01jd0000000000000000000000",
    "conv_1",
    "assistant",
    "%00",
    "%F0%9F%A7%80",
    "..%2f",
  ])("%s is not found", async (id) => {
    for (const path of [
      "",
      "/messages",
      "/turns",
      "/turns/turn_01JD0000000000000000000000",
      "/journal",
      "/events",
    ]) {
      expectProblem(await get(`/api/conversations/${id}${path}`), 404, "NOT_FOUND");
    }
    expectProblem(await post(`/api/conversations/${id}/turns`, { content: "x" }), 404, "NOT_FOUND");
  });
});

describe("events", () => {
  let path: string;

  beforeAll(async () => {
    const conversation = await createConversation(await createAgent());
    await (await say(conversation, "Hello")).text();
    path = `/api/conversations/${conversation}/events`;
  });

  /** The first frame of a stream. */
  async function firstFrame(query: string, headers: Record<string, string> = {}) {
    const response = await send(`${path}${query}`, { headers });
    expect(response.status).toBe(200);
    if (response.body === null) throw new Error("The stream has no body.");
    let text = "";
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const data = /^data: (.*)$/m.exec(text)?.[1];
      if (text.includes("\n\n") && data !== undefined) return parseFrame(data);
    }
    throw new Error("The stream ended without a frame.");
  }

  test("begin with a snapshot, or after the number that is given; Last-Event-ID wins", async () => {
    expect(await firstFrame("")).toMatchObject({ type: "snapshot" });
    expect(await firstFrame("?from=0")).toMatchObject({ seq: expect.any(Number) });
    expect(await firstFrame("?from=2")).toMatchObject({ seq: 3 });
    expect(await firstFrame("?from=0", { "last-event-id": "2" })).toMatchObject({ seq: 3 });
  });

  test.each(["?from=-1", "?from=x", "?from=", "?from=1.5"])("refuse %s", async (query) => {
    expectProblem(await get(`${path}${query}`), 422, "INVALID_INPUT", "/from");
  });

  test("refuse an invalid Last-Event-ID", async () => {
    const response = await send(path, { headers: { "last-event-id": "x" } });
    expectProblem(await answer(response), 422, "INVALID_INPUT");
  });

  test("HEAD gets the headers and opens no stream", async () => {
    const response = await send(path, { method: "HEAD" });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(await response.text()).toBe("");
  });
});

describe("attachments", () => {
  const upload = async (query: string, type: string, body: string) => {
    const conversation = await createConversation(await createAgent());
    const path = `/api/conversations/${conversation}/attachments`;
    const init = { method: "POST", body, headers: { "content-type": type } };
    const created = await answer(await send(`${path}${query}`, init));
    expect(created.status).toBe(201);
    return `${path}/${created.body.id}`;
  };

  test("are inert in a browser, whatever they are and are called", async () => {
    const name = 'a"\r\nset-cookie: x=y;\u202e.png';
    const svg = `?name=${encodeURIComponent(name)}`;
    const path = await upload(svg, 'IMAGE/svg+xml; charset="x', "<svg onload='alert(1)'/>");
    const { headers } = await send(path);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "image/svg+xml",
      "content-disposition": "attachment; filename*=UTF-8''a%22%0D%0Aset-cookie%3A%20x%3Dy%3B%E2%80%AE.png",
      ...SECURITY_HEADERS,
    });
    const png = await send(await upload("", "image/png", "<script>"));
    expect(png.headers.get("content-disposition")).toBe("inline");
    expect(securityHeadersOf(png)).toEqual(SECURITY_HEADERS);
  });

  test("are cached only with a check of permissions for each use", async () => {
    const path = await upload("", "text/plain", "hello");
    const first = await send(path);
    expect(first.headers.get("cache-control")).toBe("private, no-cache");
    const headers = { "if-none-match": first.headers.get("etag") ?? "" };
    const again = await send(path, { headers });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect((await send(path, { headers }, STRANGER)).status).toBe(404);
    const other = path.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    const named = { "if-none-match": `"${other.split("/").at(-1)}"` };
    expect((await send(other, { headers: named })).status).toBe(404);
  });
});
