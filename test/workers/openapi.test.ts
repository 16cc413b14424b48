/** The API description against the API's behaviour: the served document validates every answer here. */

import { env, exports } from "cloudflare:workers";
import { type Schema, Validator } from "@cfworker/json-schema";
import { getAgentByName } from "agents";
import { ulid } from "ulid";
import { beforeAll, describe, expect, test } from "vitest";
import { OPERATIONS } from "../../src/http/operations.ts";
import type { McpServerView } from "../../src/protocol/mcp-servers.ts";
import { PROJECTIONS } from "../../src/protocol/projection-schemas.ts";
import type { WorkspaceApi } from "../../src/protocol/workspace.ts";
import { AUTHOR, seededRepository } from "../support/seeded-repository.ts";
import { ADMIN, get, MEMBER, SECURITY_HEADERS, securityHeadersOf, send } from "./http-client.ts";
import { Play } from "./provider.ts";
import type { Courier } from "./worker.ts";

interface ServedResponse {
  description: string;
  content?: Record<string, { schema: Schema }>;
  headers?: Record<string, unknown>;
}
interface Served {
  openapi: string;
  paths: Record<string, Record<string, { responses: Record<string, ServedResponse> }>>;
  components: { schemas: Record<string, Schema> };
}

let document: Served;
/** Operation and status of every answer that fitted. */
const seen = new Set<string>();

beforeAll(async () => {
  const response = await send("/openapi.json");
  expect(response.status).toBe(200);
  document = await response.json<Served>();
});

/** Writes a file in the workspace of a conversation. */
async function writeFile(conversation: string): Promise<void> {
  // SAFETY: the test's Worker exports the class.
  const { Workspace } = exports as unknown as Record<string, DurableObjectNamespace>;
  const workspace = Workspace?.getByName(`http:conv-${conversation}`) as unknown as WorkspaceApi;
  const call = {
    kind: "repo.write",
    input: { path: "b", content: "b" },
    key: "op_1",
    author: AUTHOR,
  } as const;
  const written = await workspace.perform({ project: "default" }, call);
  expect(written).toMatchObject({ ok: true });
}

function errorsOf(value: unknown, schema: Schema) {
  const whole = { ...schema, components: document.components };
  return new Validator(whole, "2020-12", false).validate(value).errors;
}

/** Makes a request, and validates the answer with the document. */
async function ask(id: string, path: string, init: RequestInit = {}, principal = ADMIN): Promise<unknown> {
  const operation = OPERATIONS.find((candidate) => candidate.id === id);
  if (operation === undefined) throw new Error(`There is no operation ${id}.`);
  const method = operation.method;
  const template = operation.path.replace(/:([A-Za-z]+)/g, "{$1}");
  const response = await send(path, { ...init, method: method.toUpperCase() }, principal);
  const described = document.paths[template]?.[method]?.responses[response.status];
  const where = `${id} ${response.status}`;
  if (described === undefined) throw new Error(`${where} is not documented: ${await response.text()}`);
  seen.add(where);
  if (response.status !== 101) expect(securityHeadersOf(response), where).toEqual(SECURITY_HEADERS);
  for (const header of Object.keys(described.headers ?? {}))
    expect(response.headers.has(header), where).toBe(true);
  response.webSocket?.accept();
  response.webSocket?.close();
  const content = described.content ?? {};
  if (Object.keys(content).length === 0) return null;
  if ("application/octet-stream" in content) {
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(0);
    return null;
  }
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  const media = content[type];
  if (media === undefined) throw new Error(`${where} is not documented as ${type}.`);
  if (type === "text/event-stream") {
    const frames = await framesOf(
      response,
      ["followConversation", "resumeChat"].includes(id) ? 1 : Number.POSITIVE_INFINITY,
    );
    expect(frames.length).toBeGreaterThan(0);
    for (const frame of frames) expect(errorsOf(frame, media.schema), where).toEqual([]);
    return frames;
  }
  const body: unknown = await response.json();
  expect(errorsOf(body, media.schema), `${where}: ${JSON.stringify(body)}`).toEqual([]);
  return body;
}

/** The first frames of a stream. */
async function framesOf(response: Response, count: number): Promise<unknown[]> {
  const frames: unknown[] = [];
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data !== undefined && data !== "[DONE]") frames.push(JSON.parse(data));
    }
    if (frames.length >= count) break;
  }
  return frames;
}

/** The id of an operation that no conversation has. */
const NOTHING = "op_01JD0000000000000000000000";
const body = (value: unknown): RequestInit => ({ body: JSON.stringify(value) });
const idOf = (value: unknown) => String(Reflect.get(Object(value), "id"));

/** The HMAC-SHA-256 of a text, in hexadecimal digits. */
async function hmac(secret: string, text: string): Promise<string> {
  const bytes = (value: string) => Uint8Array.from(new TextEncoder().encode(value));
  const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(text)));
  return [...signature].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

describe("API-1 answers fit the document", () => {
  let agent: string;
  let conversation: string;

  test("of agents", async () => {
    agent = idOf(await ask("createAgent", "/api/agents", body({ id: "described", persona: "test/handy" })));
    const inline = { name: "Inline", identity: { systemPrompt: "Hi.", instructions: ["Be brief."] } };
    const other = idOf(await ask("createAgent", "/api/agents", body({ persona: inline, projectIds: ["p"] })));
    await ask("getAgent", `/api/agents/${agent}`);
    await ask("getAgentUsage", `/api/agents/${agent}/usage`);
    await ask(
      "changeAgent",
      `/api/agents/${other}`,
      body({ persona: { library: "test", id: "plain", version: 1 } }),
    );
    await ask("listAgents", "/api/agents?limit=1");
    await ask("listAgents", "/api/agents?limit=200");
  });

  test("of memories", async () => {
    const base = `/api/agents/${agent}/memories`;
    const input = { content: "Ann likes tea.", key: "tea", speaker: "Ann", metadata: { a: [1] } };
    const place = `${base}/${idOf(await ask("writeMemories", base, body(input)))}`;
    await ask(
      "writeMemories",
      base,
      body({ memories: [{ content: "One." }, { content: "x".repeat(5_000) }] }),
    );
    await ask("writeMemories", base, body({ content: "Mine." }), MEMBER);
    await ask("writeMemories", base, body({}));
    await ask("listMemories", `${base}?limit=1&state=current&state=archived`);
    await ask("listMemories", `${base}?state=x`);
    await ask("searchMemories", `${base}/search?q=tea`);
    await ask("searchMemories", `${base}/search`);
    await ask("searchMemoriesByBody", `${base}/search`, body({ query: "tea", weights: { recency: 1 } }));
    await ask("searchMemoriesOfAgents", `/api/memories/search?agents=${agent},absent&q=tea`);
    await ask("searchMemoriesOfAgents", `/api/memories/search?agents=${agent}&q=tea`, {}, MEMBER);
    await ask("changeMemory", place, body({ content: "Ann likes coffee.", validTo: "2030-01-01T00:00:00Z" }));
    expect(await ask("changeMemory", place, body({ content: "x", ifVersion: 9 }))).toMatchObject({
      status: 409,
    });
    await ask("getMemory", place);
    await ask("getMemory", place, {}, MEMBER);
    await ask("archiveMemory", `${place}/archive`);
    await ask("whyMemory", `${place}/why`);
    await ask("getMemoryStatus", `/api/agents/${agent}/memory`);
    await ask("getMemoryStatus", `/api/agents/${agent}/memory`, {}, MEMBER);
    await ask("deleteMemory", place);
    await ask("deleteMemory", place);
  });

  test("of conversations, with turns that called tools, failed and are active", async () => {
    conversation = idOf(
      await ask("createConversation", "/api/conversations", body({ agentId: agent, title: "T" })),
    );
    const base = `/api/conversations/${conversation}`;
    const stream = async (play: Play) =>
      ask("startTurn", `${base}/turns`, {
        ...body({ content: play.content, idempotencyKey: play.key }),
        headers: { accept: "text/event-stream" },
      });
    await stream(
      new Play((key) => ({
        replies: [
          [{ text: "Let me see. " }, { call: "double", input: { n: 21 } }],
          [
            { call: "fails", input: { key, retriable: false } },
            { call: "nothing", input: {} },
          ],
          [{ text: "42" }, { usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } }],
        ],
      })),
    );
    await stream(new Play({ replies: [{ status: 401, message: "No." }] }));
    const waiting = new Play({ replies: [[{ gate: "go" }, { text: "Done." }]] });
    await ask("startTurn", `${base}/turns`, body({ content: waiting.content }));
    await waiting.reached("go");
    const tools = [{ name: "ask", description: "Asks.", inputSchema: { type: "object" } }];
    const calls = new Play({ replies: [[{ call: "ask", input: {} }], [{ text: "Done." }]] });
    const asked = await ask("startTurn", `${base}/turns`, body({ content: calls.content, tools }));
    const turnPath = `${base}/turns/${String(Reflect.get(Object(asked), "turnId"))}`;
    const operations = async () => JSON.stringify(await ask("getTurn", turnPath)).match(/op_\w{26}/)?.[0];
    await expect.poll(operations).toBeDefined();
    await ask("submitToolResult", `${base}/operations/${await operations()}/result`, body({ result: 1 }));
    await expect
      .poll(async () => Reflect.get(Object(await ask("getTurn", turnPath)), "status"))
      .toBe("completed");
    await ask("getConversation", base);
    const { body: listed } = await get(`${base}/turns`);
    expect(listed.turns.map((turn) => Reflect.get(turn, "status"))).toEqual([
      "completed",
      "failed",
      "active",
      "completed",
    ]);
    for (const { id } of listed.turns) {
      await ask("getTurn", `${base}/turns/${id}`);
      await ask("getTurnPrompt", `${base}/turns/${id}/prompt`);
      await ask("getRecording", `${base}/turns/${id}/recording`);
      await ask("replayTurn", `${base}/turns/${id}/replay`, { method: "POST" });
      await ask("getTrace", `${base}/turns/${id}/trace`);
    }
    await ask("listTurns", `${base}/turns`);
    await ask("listMessages", `${base}/messages`);
    const [ended] = listed.turns;
    const forked = idOf(await ask("forkConversation", `${base}/fork`, body({ turnId: ended?.id })));
    await ask("getConversation", `/api/conversations/${forked}`);
    const file = { body: "A file.", headers: { "content-type": "text/plain" } };
    const attachment = idOf(await ask("uploadAttachment", `${base}/attachments?name=a.txt`, file));
    await ask("getAttachment", `${base}/attachments/${attachment}`);
    const known = { headers: { "if-none-match": `"${attachment}"` } };
    await ask("getAttachment", `${base}/attachments/${attachment}`, known);
    await ask("uploadAttachment", `${base}/attachments`, { ...file, body: "" });
    await ask("getAttachment", `${base}/attachments/att_absent`);
    await seededRepository("http", "default", { "README.md": "A file.\n" });
    await ask("getWorkspace", `${base}/workspace`);
    await ask("listWorkspaceFiles", `${base}/workspace/files`);
    await ask("readWorkspaceFile", `${base}/workspace/file?path=README.md`);
    await ask("readWorkspaceFile", `${base}/workspace/file?path=absent`);
    await ask("diffWorkspace", `${base}/workspace/diff?against=base`);
    await ask("listWorkspaceCommits", `${base}/workspace/commits`);
    await ask("commitWorkspace", `${base}/workspace/commit`, body({ message: "Nothing yet" }));
    await ask("mergeWorkspace", `${base}/workspace/merge`, body({}));
    await writeFile(base.slice("/api/conversations/".length));
    await ask("commitWorkspace", `${base}/workspace/commit`, body({ message: "Add b" }));
    await ask("mergeWorkspace", `${base}/workspace/merge`, body({ strategy: "rebase" }));
    await ask("listJournal", `${base}/journal?limit=200`);
    await ask("listJournal", `${base}/journal?limit=2&order=desc`);
    for (const name of [...PROJECTIONS, "absent"])
      await ask("getProjection", `${base}/projections/${name}?limit=200`);
    for (const direction of ["backward", "forward", "sideways"])
      await ask("getCauses", `${base}/journal/3/causes?direction=${direction}`);
    await ask("getCauses", `${base}/journal/999999/causes`);
    await ask("listIncidents", `${base}/incidents?limit=200`);
    await ask("listIncidents", `${base}/incidents?limit=0`);
    await ask("listConversations", "/api/conversations");
    await ask("followConversation", `${base}/events`);
    await ask("followConversation", `${base}/events?from=0`);
    await ask("connect", `/conversations/${conversation}`, { headers: { upgrade: "websocket" } });
    await ask("connectSdk", `/agents/conversation/${conversation}`, { headers: { upgrade: "websocket" } });
    await ask("resumeChat", `${base}/chat`);
    await waiting.open("go");
    const chat = { id: "a key", role: "user", parts: [{ type: "text", text: calls.content }] };
    await ask("chat", `${base}/chat`, body({ messages: [chat], trigger: "submit-message" }));
    const quiet = idOf(await ask("createConversation", "/api/conversations", body({ agentId: agent })));
    await ask("resumeChat", `/api/conversations/${quiet}/chat`);
    await expect
      .poll(async () => JSON.stringify((await get(`${base}/turns`)).body.turns))
      .not.toContain('"active"');
    const last = `${base}/turns/${listed.turns.at(-1)?.id}`;
    const again = await ask("regenerateTurn", `${last}/regenerate`, body({}));
    const newest = () => `${base}/turns/${String(Reflect.get(Object(again), "turnId"))}`;
    await expect
      .poll(async () => Reflect.get(Object(await ask("getTurn", newest())), "status"))
      .not.toBe("active");
    await ask("editTurn", `${newest()}/edit`, body({ content: calls.content }));
  });

  test("of the OpenAI protocols, complete and streamed", async () => {
    await ask("openAiListModels", "/v1/models");
    await ask("openAiGetModel", `/v1/models/${agent}`);
    const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
    const { content } = new Play({ replies: [[{ text: "Good day." }, { usage }]] });
    for (const stream of [false, true]) {
      const messages = [{ role: "user", content }];
      await ask("openAiChatCompletion", "/v1/chat/completions", body({ model: agent, messages, stream }));
      await ask("openAiCreateResponse", "/v1/responses", body({ model: agent, input: content, stream }));
    }
    const response = await ask(
      "openAiCreateResponse",
      "/v1/responses",
      body({ model: agent, input: content }),
    );
    await ask("openAiGetResponse", `/v1/responses/${idOf(response)}`);
    await ask("openAiGetResponse", `/v1/responses/${idOf(response)}?stream=true`);
    await ask("openAiGetResponse", "/v1/responses/absent");
    await ask("openAiCreateResponse", "/v1/responses", body({ model: "absent", input: content }));
    await ask("openAiChatCompletion", "/v1/chat/completions", body({ model: agent, messages: [], n: 2 }));
  });

  test("of AG-UI", async () => {
    const { content } = new Play({ replies: [[{ text: "Good day." }]] });
    const thread = { threadId: "t", runId: "r" };
    await ask("runAgent", `/agui/${agent}`, body({ ...thread, messages: [{ role: "user", content }] }));
    await ask("runAgent", `/agui/${agent}`, body({ ...thread, messages: [] }));
    await ask("runAgent", "/agui/absent", body({ ...thread, messages: [] }));
    await ask("runAgent", `/agui/${agent}`, body({ messages: [] }));
    await ask(
      "runAgent",
      `/agui/${agent}`,
      body({ ...thread, messages: [{ role: "user", content: "Other." }] }),
    );
  });

  test("of A2A", async () => {
    const { content: text } = new Play({ replies: [[{ text: "Good day." }]] });
    const rpc = { jsonrpc: "2.0", id: 1 };
    await ask("getAgentCard", `/a2a/${agent}/.well-known/agent-card.json`);
    await ask("getAgentCard", "/a2a/absent/.well-known/agent-card.json");
    const params = { message: { messageId: "m", role: "ROLE_USER", parts: [{ text }] } };
    for (const method of ["SendMessage", "SendStreamingMessage", "Other"])
      await ask("callA2a", `/a2a/${agent}`, body({ ...rpc, method, params }));
    await ask("callA2a", "/a2a/absent", body({ ...rpc, method: "SendMessage", params }));
    await ask("callA2a", `/a2a/${agent}`, body({ ...rpc, params }));
    const rest = `/a2a/${agent}`;
    const sent = await ask("sendA2aMessage", `${rest}/message:send`, body(params));
    const id = String(Reflect.get(Object(Reflect.get(Object(sent), "task")), "id"));
    await ask("sendA2aMessage", `${rest}/message:stream`, body(params));
    await ask("sendA2aMessage", `${rest}/message:send`, body({ message: {} }));
    await ask("sendA2aMessage", "/a2a/absent/message:send", body(params));
    await ask("listA2aTasks", `${rest}/tasks?pageSize=5&includeArtifacts=true`);
    await ask("listA2aTasks", `${rest}/tasks?pageSize=500`);
    await ask("getA2aTask", `${rest}/tasks/${id}`);
    await ask("getA2aTask", `${rest}/tasks/absent`);
    await ask("changeA2aTask", `${rest}/tasks/${id}:cancel`);
    const gated = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }]] });
    const message = { messageId: "n", role: "ROLE_USER", parts: [{ text: gated.content }] };
    const configuration = { returnImmediately: true };
    const began = await ask("sendA2aMessage", `${rest}/message:send`, body({ message, configuration }));
    const active = String(Reflect.get(Object(Reflect.get(Object(began), "task")), "id"));
    await ask("changeA2aTask", `${rest}/tasks/${active}:cancel`);
    await ask("changeA2aTask", `${rest}/tasks/absent:subscribe`);
    const configs = `${rest}/tasks/${id}/pushNotificationConfigs`;
    const config = { id: "one", url: `${env.WEBHOOK_URL}/hooks/openapi`, token: "t" };
    await ask("createA2aPushConfig", configs, body(config));
    await ask("createA2aPushConfig", configs, body({ url: "https://example.com/" }));
    await ask("listA2aPushConfigs", configs);
    await ask("getA2aPushConfig", `${configs}/one`);
    await ask("deleteA2aPushConfig", `${configs}/one`);
    await ask("getA2aPushConfig", `${configs}/one`);
    await ask("getA2aExtendedCard", `${rest}/extendedAgentCard`);
    await ask("getA2aExtendedCard", "/a2a/absent/extendedAgentCard");
  });

  test("of stops, by HTTP and by the OpenAI protocol", async () => {
    const id = idOf(await ask("createConversation", "/api/conversations", body({ agentId: agent })));
    const base = `/api/conversations/${id}`;
    const order = (turns: string) => ({ method: "PATCH", body: JSON.stringify({ turns }) });
    await ask("updateConversation", base, order("random"));
    await ask("updateConversation", base, order("queued"));
    for (const [put, remove, name] of [
      ["pinConversation", "unpinConversation", "pin"],
      ["archiveConversation", "unarchiveConversation", "archive"],
    ] as const) {
      await ask(put, `${base}/${name}`, { method: "PUT" });
      await ask("listConversations", "/api/conversations?archived=true&sort=activity");
      await ask(remove, `${base}/${name}`, { method: "DELETE" });
      await ask(put, `/api/conversations/conv_absent/${name}`, { method: "PUT" });
    }
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "never" }]] });
    const started = await ask("startTurn", `${base}/turns`, body({ content: play.content }));
    await play.reached("never");
    const turn = `${base}/turns/${String(Reflect.get(Object(started), "turnId"))}`;
    await ask("cancelTurn", `${turn}/cancel`, body({ reason: "Enough." }));
    await ask("getTurn", turn);
    await ask("cancelConversation", `${base}/cancel`);
    const response = await ask(
      "openAiCreateResponse",
      "/v1/responses",
      body({ conversation: id, input: "Hi." }),
    );
    await ask("openAiCancelResponse", `/v1/responses/${idOf(response)}/cancel`);
    await ask("listMessages", `${base}/messages`);
    await ask("listJournal", `${base}/journal`);
    await ask("followConversation", `${base}/events`);
    await ask("resumeConversation", `${base}/resume`);
    await ask("resumeConversation", `${base}/resume`);
    const signal = {
      type: "conversation.user.message",
      data: { content: "Hi." },
      meta: { correlation_id: "c" },
    };
    await ask("sendSignals", `${base}/signals`, body(signal));
    await ask("sendSignals", `${base}/signals`, body({ ...signal, type: "conversation.cmd.drain" }));
    const stop = { id: "stop", type: "conversation.cancel", data: { reason: "Enough." } };
    await ask("sendSignals", `${base}/signals`, body([signal, stop, { type: "conversation.llm.completed" }]));
    await ask("updateConversation", base, {
      method: "PATCH",
      body: JSON.stringify({ orchestration: false }),
    });
    await ask("addParticipant", `${base}/participants`, body({ type: "user", id: "ben" }));
    await ask("addParticipant", `${base}/participants`, body({ type: "agent", id: "absent" }));
    await ask("removeParticipant", `${base}/participants/user/ben`, { method: "DELETE" });
    await ask("removeParticipant", `${base}/participants/agent/${agent}`, { method: "DELETE" });
    await ask("completeConversation", `${base}/complete`, body({ reason: "Done." }));
    await ask("startTurn", `${base}/turns`, body({ content: "One more." }));
    await ask("resumeConversation", `${base}/resume`);
    await ask("listJournal", `${base}/journal`);
  });

  test("of exports, imports, erasures and deletions", async () => {
    const remove = { method: "DELETE" };
    const id = idOf(await ask("createAgent", "/api/agents", body({ persona: "test/plain" })));
    const told = idOf(await ask("createConversation", "/api/conversations", body({ agentId: id })));
    const base = `/api/conversations/${told}`;
    const play = new Play({ replies: [[{ text: "Yes." }]] });
    const started = await ask("startTurn", `${base}/turns`, body({ content: play.content }));
    await play.closes(1);
    const message = String(Reflect.get(Object(started), "messageId"));
    await expect.poll(async () => (await send(`${base}/events/${message}`, remove)).status).toBe(204);
    await ask("eraseEntry", `${base}/events/${message}`, remove);
    await ask("eraseEntry", `${base}/events/msg_absent`, remove);
    await ask("exportConversation", `${base}/export`);
    await ask("exportAgent", `/api/agents/${id}/export`);
    await ask("exportAgent", `/api/agents/${id}/export`, {}, MEMBER);
    const file = async (path: string) => ({ body: await (await send(path)).text() });
    await ask("importConversation", "/api/conversations/import", await file(`${base}/export`));
    await ask("importConversation", "/api/conversations/import", { body: "{" });
    await ask("importConversation", "/api/conversations/import", { body: "{}" }, MEMBER);
    await ask("importAgent", "/api/agents/import", await file(`/api/agents/${id}/export`));
    await ask("importAgent", `/api/agents/import?id=${id}`, await file(`/api/agents/${id}/export`));
    await ask("deleteConversation", base, remove);
    await ask("deleteConversation", base, remove);
    await ask("deleteAgent", `/api/agents/${id}`, remove, MEMBER);
    await ask("deleteAgent", `/api/agents/${id}`, remove);
    await ask("deleteAgent", `/api/agents/${id}`, remove);
  });

  test("of deferred operations", async () => {
    const buyer = idOf(await ask("createAgent", "/api/agents", body({ persona: "test/buyer" })));
    const id = idOf(await ask("createConversation", "/api/conversations", body({ agentId: buyer })));
    const play = new Play((key) => ({ replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]] }));
    await ask("startTurn", `/api/conversations/${id}/turns`, body({ content: play.content }));
    const [run] = await play.runs(1);
    const place = `/api/operations/${Reflect.get(Object(run?.input), "handle")}/result`;
    await ask("completeOperation", place, body({ result: { paid: true } }));
    expect(await ask("completeOperation", place, body({ result: 2 }))).toMatchObject({ status: 409 });
    expect(await ask("completeOperation", place, body({}))).toMatchObject({ status: 422 });
    expect(await ask("completeOperation", "/api/operations/x/result", body({}))).toMatchObject({
      status: 404,
    });
  });

  test("of triggers", async () => {
    const flow = {
      id: "triggered",
      inputSchema: { type: "object" },
      initialNode: "one",
      nodes: [{ ref: "one" }],
    };
    await ask("createWorkflow", "/api/libraries/described/workflows", body(flow));
    const starts = { workflow: "described/triggered" };
    const create = (when: object) => ask("createTrigger", "/api/triggers", body({ when, starts }));
    const timed = idOf(await create({ cron: "0 6 * * *", timeZone: "Europe/Berlin" }));
    await ask("getTrigger", `/api/triggers/${timed}`);
    await ask("changeTrigger", `/api/triggers/${timed}`, body({ enabled: false }));
    await ask("listTriggers", "/api/triggers?limit=1");
    expect(await ask("rotateTriggerSecret", `/api/triggers/${timed}/rotate`)).toMatchObject({ status: 409 });
    await ask("deleteTrigger", `/api/triggers/${timed}`);
    expect(await ask("getTrigger", `/api/triggers/${timed}`)).toMatchObject({ status: 404 });
    const hook = idOf(await create({ webhook: true }));
    const rotated = await ask("rotateTriggerSecret", `/api/triggers/${hook}/rotate`);
    const [text, time, id] = ['{"order":17}', Math.floor(Date.now() / 1_000), "first"];
    const headers = {
      "dramatis-delivery": id,
      "dramatis-signature": `t=${time},v1=${await hmac(String(Reflect.get(Object(rotated), "secret")), `${time}.${id}.${text}`)}`,
    };
    const deliver = (sent: string) =>
      ask("deliverToTrigger", `/api/hooks/http/${hook}`, { body: sent, headers });
    await deliver(text);
    await ask("getTrigger", `/api/triggers/${hook}`);
    expect(await deliver("{}")).toMatchObject({ status: 404 });
  });

  test("of channels", async () => {
    const [text, time] = ['{"type":"url_verification","challenge":"echo"}', Math.floor(Date.now() / 1_000)];
    const headers = {
      "x-slack-request-timestamp": `${time}`,
      "x-slack-signature": `v0=${await hmac("the signing secret of the tests", `v0:${time}:${text}`)}`,
    };
    await ask("deliverToChannel", "/api/channels/slack", { body: text, headers });
  });

  test("of approvals", async () => {
    const careful = idOf(await ask("createAgent", "/api/agents", body({ persona: "test/careful" })));
    const id = idOf(await ask("createConversation", "/api/conversations", body({ agentId: careful })));
    const base = `/api/conversations/${id}`;
    const play = new Play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "No." }]],
    }));
    const started = await ask("startTurn", `${base}/turns`, body({ content: play.content }));
    const turn = `${base}/turns/${String(Reflect.get(Object(started), "turnId"))}`;
    const waiting = async () => JSON.stringify(await ask("getTurn", turn)).match(/op_\w{26}/)?.[0];
    await expect.poll(waiting).toBeDefined();
    const place = `${base}/operations/${await waiting()}/approval`;
    await ask("resolveApproval", place, body({ approved: false, reason: "Not him." }));
    expect(await ask("resolveApproval", place, body({ approved: true }))).toMatchObject({ status: 409 });
    await expect
      .poll(async () => Reflect.get(Object(await ask("getTurn", turn)), "status"))
      .toBe("completed");
    const listed = async () =>
      JSON.stringify(await ask("listAllTurns", `/api/turns?conversation=${id}&status=completed`));
    await expect.poll(listed).toContain("test/transfer");
    const events = `/api/events?conversation=${id}`;
    await expect
      .poll(async () => JSON.stringify(await ask("listEvents", events)))
      .toContain("turn.completed");
    await ask("listEvents", events, {}, MEMBER);
    await ask("searchMessages", "/api/search?q=him&limit=1");
    await ask("searchMessages", "/api/search?q=");
  });

  test("of libraries", async () => {
    const bodies = {
      Persona: ["personas", { id: "p", identity: { systemPrompt: "Hi." } }],
      Tool: ["tools", { id: "t", name: "t", description: "Doubles.", target: { task: "test/double" } }],
      ModelProfile: [
        "model-profiles",
        { id: "m", provider: "google", modelId: "m", costPer1kInput: 1, fallbacks: ["test/scripted"] },
      ],
      Action: ["actions", { id: "a", kind: "update_context", values: { n: "1" } }],
      Prompt: ["prompts", { id: "w", template: "Hi {{ name }}." }],
      Task: [
        "tasks",
        {
          id: "k",
          inputSchema: { type: "object" },
          steps: [
            { ref: "one", action: "a" },
            { ref: "two", action: { kind: "llm", prompt: "w", profile: "m" } },
          ],
        },
      ],
      Workflow: [
        "workflows",
        { id: "f", inputSchema: { type: "object" }, initialNode: "n", nodes: [{ ref: "n", task: "k" }] },
      ],
      Skill: ["skills", { id: "s", files: { "SKILL.md": "---\nname: s\ndescription: Sums.\n---\nSum.\n" } }],
    } as const;
    for (const [name, [kind, definition]] of Object.entries(bodies)) {
      for (const library of ["described", "test"]) {
        const base = `/api/libraries/${library}/${kind}`;
        for (let time = 0; time < 2; time++) await ask(`create${name}`, base, body(definition));
        await ask(`list${name}s`, base);
        const [first] = Object.values((await get(base)).body).flat() as { id: string }[];
        const path = `${base}/${first?.id}`;
        await ask(`get${name}`, path);
        await ask(`list${name}Versions`, `${path}/versions`);
        await ask(`get${name}Version`, `${path}/versions/1`);
      }
      const absent = "/api/libraries/absent";
      await ask(`create${name}`, `${absent}/${kind}`, body({}));
      await ask(`create${name}`, `${absent}/${kind}`, { body: " ".repeat(600_000) });
      await ask(`create${name}`, `${absent}/${kind}`, body({}), MEMBER);
      await ask(`create${name}`, `/api/libraries/A/${kind}`, body({}));
      await ask(`get${name}Version`, `${absent}/${kind}/x/versions/1`);
      await ask(`list${name}s`, `${absent}/${kind}`);
    }
    await ask("listLibraries", "/api/libraries");
    await ask("listLibraries", "/api/libraries?limit=x");
    await ask("getLibrary", "/api/libraries/described");
    await ask("getLibrary", "/api/libraries/test");
    await ask("getLibrary", "/api/libraries/absent");
  });

  test("of MCP servers", async () => {
    const { servers } = (await ask("listMcpServers", "/api/mcp-servers")) as { servers: McpServerView[] };
    const hash = servers.find(({ id }) => id === "steady")?.tools[0]?.accepted?.hash;
    const path = "/api/mcp-servers/steady/consent";
    await ask("acceptMcpTools", path, body({ tools: [{ id: "echo", hash }] }));
    await ask("acceptMcpTools", path, body({ tools: [{ id: "echo", hash: "other" }] }));
    await ask("acceptMcpTools", path, body({ tools: [{ id: "none", hash: "other" }] }));
    await ask("acceptMcpTools", path, body({ tools: [] }));
    await ask("acceptMcpTools", path, body({ tools: [{ id: "echo", hash: "other" }] }), MEMBER);
    await ask("listMcpServers", "/api/mcp-servers", {}, MEMBER);
  });

  test("of projects", async () => {
    const put = (value: object) => ({ body: JSON.stringify(value) });
    const path = "/api/projects/described";
    const project = { id: "described", name: "Described", repositories: [{ id: "web" }] };
    await ask("createProject", "/api/projects", body(project));
    await ask("createProject", "/api/projects", body(project));
    await ask("createProject", "/api/projects", body({ id: "a b" }));
    for (const repository of [{ id: "artifacts" }, { id: "web", defaultBranch: "ma in" }]) {
      const response = await send("/api/projects", {
        ...{ method: "POST", body: JSON.stringify({ id: "unmade", repositories: [repository] }) },
      });
      expect(response.status).toBe(422);
    }
    await ask("createProject", "/api/projects", body({ id: "mine" }), MEMBER);
    await ask("listProjects", "/api/projects?limit=1");
    await ask("listProjects", "/api/projects?limit=x");
    await ask("getProject", path);
    await ask("getProject", "/api/projects/absent");
    await ask("changeProject", path, put({ limits: { maxConcurrentRuns: 2 }, budget: { tokens: 5 } }));
    await ask("changeProject", path, put({ allowedModelProviders: ["nobody"] }));
    await ask("changeProject", path, put({ name: "Described again" }), MEMBER);
    const secret = `${path}/secrets/stock`;
    await ask("putProjectSecret", secret, put({ value: "a-secret", hosts: ["api.example.com"] }));
    await ask("putProjectSecret", secret, put({ value: "a-secret", hosts: ["*"] }));
    for (const principal of [MEMBER, ADMIN]) {
      await ask("listProjectSecrets", `${path}/secrets`, {}, principal);
      await ask("deleteProjectSecret", secret, {}, principal);
    }
    await ask("deleteProjectSecret", secret);
    await ask("getProject", path);
    await ask("createRepository", `${path}/repos`, body({ id: "further" }));
    await ask("createRepository", `${path}/repos`, body({ id: "artifacts" }));
    const web = `${path}/repos/web`;
    await ask("exportRepository", `${web}/bundle`);
    await ask("writeFiles", `${web}/files`, put({ files: { "a.txt": "a" } }));
    await ask("writeFiles", `${web}/files`, put({ files: { "../a.txt": "a" } }));
    await ask("exportRepository", `${web}/bundle`);
    await ask("exportRepository", `${web}/bundle`, {}, MEMBER);
    for (const principal of [MEMBER, ADMIN]) {
      const remote = `${env.GIT_URL}/described`;
      await ask("pushRepository", `${web}/push`, body({ url: remote }), principal);
      await ask("fetchRepository", `${web}/fetch`, body({ url: remote }), principal);
    }
    await ask("pushRepository", `${web}/push`, body({ url: "nowhere" }));
    await ask("fetchRepository", `${web}/fetch`, body({ url: `${env.GIT_URL}/absent` }));
    await ask("listBranches", `${web}/branches`);
    await ask("listBranches", `${web}/branches`, {}, MEMBER);
    const git = "/git/described/web";
    await ask("readGitReferences", `${git}/info/refs?service=git-upload-pack`);
    await ask("readGitReferences", "/git/described/absent/info/refs");
    await ask("readGitReferences", `${git}/info/refs?service=git-receive-pack`);
    await ask("readGitHead", `${git}/HEAD`);
    await ask("listGitPacks", `${git}/objects/info/packs`);
    const packs = await (await send(`${git}/objects/info/packs`)).text();
    const [pack = ""] = /pack-\w+/.exec(packs) ?? [];
    await ask("readGitPack", `${git}/objects/pack/${pack}.idx`);
    await ask("readGitPack", `${git}/objects/pack/${pack}.exe`);
    await ask("readGitPack", `${git}/objects/pack/${pack}.pack`, {}, MEMBER);
    const bundle = await (await send(`${web}/bundle`)).arrayBuffer();
    await ask("importRepository", `${path}/repos/further/bundle`, { body: bundle });
    await ask("importRepository", `${path}/repos/further/bundle`, { body: "no bundle" });
    await ask("importRepository", `${path}/repos/artifacts/bundle`, { body: bundle }, MEMBER);
    const artifact = `${path}/artifact?path=a.md`;
    await ask("writeArtifact", artifact, put({ content: "# A\n" }));
    await ask("writeArtifact", artifact, put({ content: 1 }));
    await ask("writeArtifact", artifact, put({ content: "# B\n", type: "absent" }));
    await ask("writeArtifact", artifact, put({ content: "# B\n" }), MEMBER);
    await ask("listArtifacts", `${path}/artifacts?limit=1`);
    await ask("listArtifacts", `${path}/artifacts?q=a`);
    await ask("listArtifacts", `${path}/artifacts?folder=a`);
    await ask("readArtifact", artifact);
    await ask("readArtifact", `${path}/artifact?path=b.md`);
    await ask("deleteArtifact", artifact, {}, MEMBER);
    await ask("deleteArtifact", artifact);
    for (const principal of [MEMBER, ADMIN]) await ask("deleteRepository", web, {}, principal);
    for (const repo of ["web", "artifacts"]) await ask("deleteRepository", `${path}/repos/${repo}`);
    for (const principal of [MEMBER, ADMIN]) await ask("deleteProject", path, {}, principal);
    await ask("deleteProject", path);
  });

  test("of dead letters", async () => {
    const { tenant } = ADMIN;
    const receiver = await getAgentByName<Cloudflare.Env, Courier>(exports.Courier, `${tenant}:refuses`);
    await receiver.set("mood", "refuse");
    const sender = await getAgentByName<Cloudflare.Env, Courier>(exports.Courier, `${tenant}:sends`);
    const id = `op_${ulid()}`;
    await sender.dispatch("refuses", id, "unwanted");
    const listed = async () => JSON.stringify(await ask("listDeadLetters", "/api/dead-letters"));
    await expect.poll(listed).toContain(id);
    await ask("redeliver", `/api/dead-letters/${id}/redeliver`);
    await ask("listDeadLetters", "/api/dead-letters", {}, MEMBER);
  });

  test("of runs", async () => {
    const task = { task: "flow/work_once", inputMapping: { key: "input.key", name: "'one'" } };
    const inputSchema = { type: "object", properties: { key: { type: "string" } }, required: ["key"] };
    const flow = { inputSchema, initialNode: "one", transitions: [] };
    const waiting = { ...task, inputMapping: { ...task.inputMapping, wait: "'gate'" } };
    const fails = { ...task, inputMapping: { ...task.inputMapping, fails: "true" } };
    for (const [id, node] of Object.entries({ quick: task, waiting, fails }))
      await ask(
        "createWorkflow",
        "/api/libraries/run/workflows",
        body({ ...flow, id, nodes: [{ ref: "one", ...node }] }),
      );
    const key = crypto.randomUUID();
    const start = async (workflow: string) =>
      idOf(await ask("startRun", "/api/runs", body({ workflow, input: { key } })));
    const [quick, stopped] = [await start("run/quick"), await start("run/waiting")];
    const path = `/api/runs/${quick}`;
    const entries = await ask("followRun", `${path}/events`);
    await ask("followRun", `${path}/events?from=${Object(entries).length}`);
    await ask("followRun", `${path}/events`, { headers: { upgrade: "websocket" } });
    for (const id of [quick, stopped]) await ask("getRun", `/api/runs/${id}`);
    const steps = [{ ref: "ask", action: { kind: "human.approve", prompt: "May it go on?" } }];
    const own = { inputSchema: { type: "object" } };
    await ask("createTask", "/api/libraries/run/tasks", body({ ...own, id: "ask", steps }));
    const nodes = [{ ref: "one", task: "run/ask" }];
    await ask(
      "createWorkflow",
      "/api/libraries/run/workflows",
      body({ ...flow, ...own, id: "gated", nodes }),
    );
    const gated = `/api/runs/${await start("run/gated")}`;
    // SAFETY: the document describes it.
    const { gates } = (await ask("getRun", gated)) as { gates: { operationId: string }[] };
    await ask("answerGate", `${gated}/gates/${gates[0]?.operationId}`, body({ answer: { approved: true } }));
    await ask("cancelRun", `/api/runs/${stopped}/cancel`, body({ reason: "Enough." }));
    await ask("getRun", `/api/runs/${stopped}`);
    const failed = `/api/runs/${await start("run/fails")}`;
    await ask("followRun", `${failed}/events`);
    await ask("getRun", failed);
    await ask("retryRun", `${failed}/retry`, body({ repeatOnce: true }));
    await ask("followRun", `${failed}/events`);
    await ask("listRunEntries", `${path}/journal`);
    await ask("getRunWorkflow", `${path}/workflow`);
    await ask("getRunTrace", `${path}/trace`);
    await ask("getRunWorkspace", `${path}/workspace`);
    await ask("listRunWorkspaceFiles", `${path}/workspace/files`);
    await ask("readRunWorkspaceFile", `${path}/workspace/file?path=README.md`);
    await ask("readRunWorkspaceFile", `${path}/workspace/file?path=absent`);
    await ask("diffRunWorkspace", `${path}/workspace/diff?against=base`);
    await ask("listRunWorkspaceCommits", `${path}/workspace/commits`);
    await ask("deleteRunWorkspace", `${path}/workspace`);
    await ask("listApprovals", "/api/approvals");
    const listed = async () => JSON.stringify(await ask("listRuns", "/api/runs?order=desc"));
    await expect.poll(listed).toContain('"status":"cancelled"');
  });

  test("of the runtime", async () => {
    await ask("getHealth", "/health");
    await ask("getMe", "/api/me");
    await ask("getListsDatabase", "/api/lists/database");
    await ask("moveLists", "/api/lists/database", {
      method: "PUT",
      body: JSON.stringify({ database: "DB" }),
    });
    await ask("getDescription", "/openapi.json");
  });

  test.each<[id: string, path: string, status: number, init?: RequestInit, principal?: typeof ADMIN]>([
    ["createAgent", "/api/agents", 400, { body: "{" }],
    ["createAgent", "/api/agents", 422, body({ persona: 1, x: 2 })],
    ["createAgent", "/api/agents", 409, body({ id: "taken", persona: "test/plain" })],
    ["createAgent", "/api/agents", 403, body({ persona: "test/plain" }), MEMBER],
    ["createAgent", "/api/agents", 413, { body: " ".repeat(600_000) }],
    ["listAgents", "/api/agents?limit=x", 422],
    ["getAgent", "/api/agents/absent", 404],
    ["createConversation", "/api/conversations", 404, body({ agentId: "absent" })],
    ["startTurn", "/turns", 422, body({ content: "" })],
    ["startTurn", "/turns", 409, body({ content: "b", idempotencyKey: "same" })],
    ["submitToolResult", `/operations/${NOTHING}/result`, 404, body({ result: 1 })],
    ["submitToolResult", `/operations/${NOTHING}/result`, 422, body({})],
    ["resolveApproval", `/operations/${NOTHING}/approval`, 404, body({ approved: true })],
    ["resolveApproval", `/operations/${NOTHING}/approval`, 422, body({ approved: true, input: {} })],
    ["followConversation", "/events?from=x", 422],
    ["redeliver", "/api/dead-letters/op_absent/redeliver", 404],
  ])("that are errors: %s %s %i", async (id, path, status, init, principal) => {
    const base = `/api/conversations/${conversation}`;
    if (status === 409) {
      await send("/api/agents", { method: "POST", ...body({ id: "taken", persona: "test/plain" }) });
      await send(`${base}/turns`, { method: "POST", ...body({ content: "a", idempotencyKey: "same" }) });
    }
    const place = path.startsWith("/api") ? path : `${base}${path}`;
    expect(await ask(id, place, init, principal)).toMatchObject({ status });
  });

  test("that are errors of a WebSocket's request", async () => {
    const upgrade = { headers: { upgrade: "websocket" } };
    const place = `/conversations/${conversation}`;
    expect(await ask("connect", place)).toMatchObject({ status: 426 });
    expect(await ask("connect", `${place}?from=x`, upgrade)).toMatchObject({ status: 422 });
  });

  test("SHEAD-1 each success that is documented has been seen, with the headers that protect a browser", () => {
    const documented = OPERATIONS.flatMap(({ id, answers }) =>
      answers.map(({ status }) => `${id} ${status}`),
    );
    const unseen = documented.filter((answer) => !seen.has(answer));
    expect(unseen, "Call these operations in this file.").toEqual([]);
  });
});

test("SHEAD-1 so have refusals, and answers to unknown operations", async () => {
  const answers = await Promise.all([
    send("/no/such/path"),
    send("/api/agents", { method: "DELETE" }),
    send("/api/agents", { method: "OPTIONS" }),
    send("/api/agents", { method: "HEAD" }),
    send("/api/agents", {}, null),
    send("/v1/models", {}, null),
    send("/health", { method: "HEAD" }, null),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([404, 405, 405, 200, 401, 401, 200]);
  for (const answer of answers) expect(securityHeadersOf(answer), answer.url).toEqual(SECURITY_HEADERS);
});

describe("the description's own route", () => {
  test("AUTH-1 is for authenticated callers", async () => {
    expect((await send("/openapi.json", {}, null)).status).toBe(401);
    expect((await send("/openapi.json", { method: "HEAD" })).status).toBe(200);
    const refused = await send("/openapi.json", { method: "POST" });
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});
