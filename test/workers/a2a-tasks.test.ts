/** Lists of tasks, errors, and clients that leave: A2A 1.0 on the real Worker, over both bindings. */
import { env } from "cloudflare:workers";
import { type ListTasksRequest, TaskState } from "@a2a-js/sdk";
import { beforeAll, describe, expect, test } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import type { Principal } from "../../src/shared/principal.ts";
import {
  ADA,
  type Binding,
  clientOf,
  createAgents,
  EVE,
  fetchAs,
  MEL,
  named,
  repliesOf,
  request,
  sent,
  stateOf,
} from "./a2a-client.ts";
import { Play } from "./provider.ts";
import { rowsRead } from "./rows-read.ts";

beforeAll(() => createAgents([ADA, EVE], ["plain", "careful"]));

const query = (given: Partial<ListTasksRequest> = {}): ListTasksRequest => ({
  ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "" },
  ...{ statusTimestampAfter: undefined, ...given },
});

/** A person of its own in the tenant, so lists have no tasks of other tests. */
const person = (subject: string): Principal => ({ subject, tenant: ADA.tenant, roles: ["member"] });

async function play(
  agent: string,
  principal: Principal,
  text: string,
  contextId = "",
  binding: Binding = "REST",
) {
  const client = await clientOf(agent, principal, binding);
  const { content } = new Play({ replies: [[{ text }]] });
  return sent(client, request({ text: content }, { contextId }));
}

const asJson = { "content-type": "application/json" };
const call = (path: string, init: RequestInit = {}, principal: Principal = ADA) =>
  fetchAs(principal)(`http://dramatis.test/a2a/${path}`, init);

describe.each(["JSON-RPC", "REST"] as const)("I12 lists of tasks over %s", (binding) => {
  const bo = person(`bo-${binding}`);

  test("I12 A2A-12 A2A-10 a list has the caller's tasks, the newest change first, by context, state and time", async () => {
    const client = await clientOf("plain", bo, binding);
    const careful = await clientOf("careful", bo, binding);
    const list = async (given: Partial<ListTasksRequest> = {}) =>
      (await client.listTasks(query(given))).tasks.map(({ id }) => id);
    const one = await play("plain", bo, "One.");
    const two = await play("plain", bo, "Two.");
    const three = await play("plain", bo, "Three.", one.contextId);
    const failing = new Play({ replies: [{ status: 401, message: "No." }] });
    const failed = await sent(client, request({ text: failing.content }));
    const asking = new Play((key) => ({ replies: [[{ call: "transfer", input: { key, to: "Bob" } }]] }));
    const waiting = await sent(careful, request({ text: asking.content }));
    await expect.poll(() => list()).toEqual([failed.id, three.id, two.id, one.id]);
    expect(await list({ contextId: one.contextId })).toEqual([three.id, one.id]);
    expect(await list({ contextId: "absent" })).toEqual([]);
    expect(await list({ status: TaskState.TASK_STATE_FAILED })).toEqual([failed.id]);
    expect(await list({ status: TaskState.TASK_STATE_COMPLETED })).toEqual([three.id, two.id, one.id]);
    for (const status of [TaskState.TASK_STATE_REJECTED, TaskState.TASK_STATE_CANCELED])
      expect(await list({ status })).toEqual([]);
    expect(await list({ statusTimestampAfter: three.status?.timestamp })).toEqual([failed.id, three.id]);

    const [listed] = (await client.listTasks(query({ contextId: two.contextId }))).tasks;
    expect(listed).toMatchObject({ status: two.status, artifacts: [], history: [] });
    const whole = query({ contextId: two.contextId, includeArtifacts: true, historyLength: 5 });
    expect((await client.listTasks(whole)).tasks).toEqual([two]);

    const asked = (status: TaskState) => careful.listTasks(query({ status }));
    await expect
      .poll(async () => (await asked(TaskState.TASK_STATE_INPUT_REQUIRED)).tasks.map(({ id }) => id))
      .toEqual([waiting.id]);
    const { tasks } = await asked(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(tasks[0]?.status).toEqual(waiting.status);
    expect((await asked(TaskState.TASK_STATE_WORKING)).tasks).toEqual([]);
    await careful.cancelTask(named(waiting.id));
    await expect
      .poll(async () => (await asked(TaskState.TASK_STATE_CANCELED)).tasks.map(({ id }) => id))
      .toEqual([waiting.id]);
  });

  test("I12 A2A-12 pages have each task once, and the response has all members that A2A requires", async () => {
    const eli = person(`eli-${binding}`);
    const client = await clientOf("plain", eli, binding);
    const made: string[] = [];
    for (const text of ["a", "b", "c", "d", "e"]) made.unshift((await play("plain", eli, text)).id);
    await expect.poll(async () => (await client.listTasks(query())).tasks.length).toBe(5);
    const found: string[] = [];
    let pageToken = "";
    do {
      const page = await client.listTasks(query({ pageSize: 2, pageToken }));
      expect([page.pageSize, page.totalSize]).toEqual([2, 5]);
      found.push(...page.tasks.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(found).toEqual(made);
    await expect(client.listTasks(query({ pageToken: "forged" }))).rejects.toThrow(/cursor/);
    for (const pageSize of [0, 101])
      await expect(client.listTasks(query({ pageSize }))).rejects.toThrow(/pageSize/);
  });

  test("I12 A2A-12 A2A-7 no list has tasks of another user, tenant or agent, whatever the role", async () => {
    const ida = person(`ida-${binding}`);
    const task = await play("plain", ida, "Mine.");
    const own = await clientOf("plain", ida, binding);
    await expect.poll(async () => (await own.listTasks(query())).tasks.length).toBe(1);
    const others: [string, Principal][] = [
      ["plain", MEL],
      ["plain", { ...MEL, subject: "op", roles: ["operator"] }],
      ["plain", { ...EVE, subject: ida.subject }],
      ["careful", ida],
    ];
    for (const [agent, principal] of others) {
      const other = await clientOf(agent, principal, binding);
      for (const given of [{}, { contextId: task.contextId }]) {
        const { tasks } = await other.listTasks(query(given));
        expect(tasks.map(({ id }) => id)).not.toContain(task.id);
        expect((await other.listTasks(query({ contextId: task.contextId }))).totalSize).toBe(0);
      }
    }
    await expect((await clientOf("plain", MEL, binding)).cancelTask(named(task.id))).rejects.toThrow(
      /not found/,
    );
  });

  test("I12 A2A-12 a large page ends early, and the next page continues it", async () => {
    const zoe = person(`zoe-${binding}`);
    const client = await clientOf("plain", zoe, binding);
    const text = "x".repeat(700_000);
    for (let n = 0; n < 8; n++)
      await sent(client, request({ text: `${new Play({ replies: [[{ text: `${n}` }]] }).content}${text}` }));
    await expect.poll(async () => (await client.listTasks(query())).tasks.length).toBe(8);
    const first = await client.listTasks(query({ historyLength: 1 }));
    expect(first.tasks.length).toBeLessThan(8);
    const second = await client.listTasks(query({ historyLength: 1, pageToken: first.nextPageToken }));
    const ids = [...first.tasks, ...second.tasks].map(({ id }) => id);
    expect([ids.length, new Set(ids).size, second.nextPageToken]).toEqual([8, 8, ""]);
  }, 60_000);

  test("I12 A2A-13 the extended card is the card", async () => {
    const client = await clientOf("plain", bo, binding);
    const card = await client.getAgentCard();
    expect(card).toMatchObject({ name: "plain", capabilities: { extendedAgentCard: true } });
  });
});

describe("I12 rows of lists", () => {
  test("I12 DIR-15 a page reads about as many rows as it has, also among many tasks of others", async () => {
    const directory = new D1Directory(env.DB);
    const tenant = "a2a-rows";
    const conversation = (user: string) => `conv_${user.toUpperCase().padStart(26, "0")}`;
    const at = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
    for (const user of ["a", "b"]) {
      const id = conversation(user);
      const participants = [{ type: "user" as const, id: user }];
      const view = { id, agentId: "x", projectId: "p", title: null, participants, createdAt: at(0) };
      await directory.putConversation(tenant, view as never, 1);
      for (let from = 0; from < 300; from += 100) {
        const turns = Array.from({ length: 100 }, (_, n) => ({
          ...{
            id: `turn_${user.toUpperCase()}${String(from + n).padStart(25, "0")}`,
            conversationId: id,
            agentId: "x",
          },
          ...{
            projectId: "p",
            userId: user,
            status: "completed",
            createdAt: at(from + n),
            completedAt: at(from + n),
          },
          ...{
            correlationId: "c",
            tools: [],
            targetKinds: [],
            runIds: [],
            usage: {},
            cost: null,
            messages: [],
          },
        }));
        await directory.putTurns(
          tenant,
          { id, createdAt: Date.parse(at(0)) },
          { turns: turns as never, seq: 1, upTo: from },
        );
      }
    }
    const reader: Principal = { subject: "a", tenant, roles: [] };
    const found = await directory.tasks(reader, { agentId: "x", limit: 10 });
    expect(found.tasks.map(({ at }) => at)).toEqual(Array.from({ length: 10 }, (_, n) => at(299 - n)));
    expect(found.total).toBe(300);
    const counted = 300 * 2;
    expect(await rowsRead(() => directory.tasks(reader, { agentId: "x", limit: 10 }))).toBeLessThan(
      counted + 40,
    );
  });
});

describe("I12 errors of both bindings", () => {
  const message = (parts: unknown) => ({
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts },
  });
  const rpc = (method: string, params: unknown, headers: Record<string, string> = {}) =>
    call("plain", {
      method: "POST",
      headers: { ...asJson, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }),
    });
  const rest = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
    call(`plain/${path}`, {
      headers: { ...asJson, ...headers },
      ...(body !== undefined && {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    });

  test("I12 A2A-9 invalid parameters name their fields, in the form of each binding", async () => {
    const detail = {
      "@type": "type.googleapis.com/google.rpc.BadRequest",
      fieldViolations: [{ field: "message.parts", description: expect.stringContaining("at least 1") }],
    };
    const info = {
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: "INVALID_INPUT",
      domain: "dramatis",
    };
    expect(await (await rpc("SendMessage", message([]))).json()).toMatchObject({
      jsonrpc: "2.0",
      id: 7,
      error: { code: -32_602, data: [info, detail] },
    });
    const refused = await rest("message:send", message([]));
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 400, status: "INVALID_ARGUMENT", details: [info, detail] } },
    ]);
    expect((await rest("tasks?pageSize=many")).status).toBe(400);
    expect((await rest("tasks?status=TASK_STATE_RUNNING")).status).toBe(400);
  });

  test("I12 A2A-9 each error of A2A has its code and its status", async () => {
    const cases: [Response, Response, number, number, string][] = [
      [await rpc("GetTask", { id: "absent" }), await rest("tasks/absent"), -32_001, 404, "TASK_NOT_FOUND"],
      [
        await rpc("SendMessage", message([{ text: "Hi." }]), { "a2a-version": "0.3" }),
        await rest("message:send", message([{ text: "Hi." }]), { "a2a-version": "0.3" }),
        ...([-32_009, 400, "VERSION_NOT_SUPPORTED"] as const),
      ],
      [
        await rpc("ListTaskPushNotificationConfigs", { taskId: "absent" }),
        await rest("tasks/absent/pushNotificationConfigs/one"),
        ...([-32_001, 404, "TASK_NOT_FOUND"] as const),
      ],
    ];
    for (const [overRpc, overRest, code, status, reason] of cases) {
      const domain = "a2a-protocol.org";
      expect(overRpc.status).toBe(200);
      expect(await overRpc.json()).toMatchObject({ error: { code, data: [{ reason, domain }] } });
      expect(overRest.status).toBe(status);
      expect(await overRest.json()).toMatchObject({ error: { code: status, details: [{ domain }] } });
    }
    const patch = await rest("tasks", undefined, { "a2a-version": "1.0.1" });
    expect(patch.status).toBe(200);
  });

  test("I12 A2A-9 bodies that are no requests, unknown agents and refusals have the form of their binding", async () => {
    const broken = await call("plain", { method: "POST", headers: asJson, body: "{" });
    expect([broken.status, await broken.json()]).toMatchObject([400, { id: null, error: { code: -32_700 } }]);
    const noRequest = await call("plain", { method: "POST", headers: asJson, body: "{}" });
    expect([noRequest.status, await noRequest.json()]).toMatchObject([400, { error: { code: -32_600 } }]);
    const plain = await rest("message:send", "hello", { "content-type": "text/plain" });
    expect([plain.status, await plain.json()]).toMatchObject([
      400,
      { error: { code: 400, details: [{ reason: "CONTENT_TYPE_NOT_SUPPORTED" }] } },
    ]);
    const absent = await call("absent/message:send", {
      method: "POST",
      headers: asJson,
      body: JSON.stringify(message([{ text: "Hi." }])),
    });
    expect([absent.status, await absent.json()]).toMatchObject([
      404,
      { error: { code: 404, status: "NOT_FOUND" } },
    ]);
    expect((await rest("message:other", message([{ text: "Hi." }]))).status).toBe(404);
    expect((await call("plain/tasks/x:other", { method: "POST" })).status).toBe(404);
  });
});

describe("I12 the addresses of an agent", () => {
  test("I12 A2A-13 JSON-RPC takes the address with a slash, and its caller may store the card", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} });
    const listed = await call("plain/", { method: "POST", headers: asJson, body });
    expect(await listed.json()).toMatchObject({ id: 1, result: { pageSize: 50 } });
    const cards = await Promise.all([1, 2].map(() => call("plain/.well-known/agent-card.json")));
    const tags = cards.map(({ headers }) => headers.get("etag"));
    expect(tags).toEqual([tags[0], tags[0]]);
    expect(tags[0]).toMatch(/^"[0-9a-f]{64}"$/);
    expect(cards[0]?.headers.get("cache-control")).toBe("private, max-age=60");
  });
});

describe("I12 clients that leave", () => {
  test("I12 A2A-8 a task continues without the client of a request that waits", async () => {
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });
    const messageId = crypto.randomUUID();
    const body = JSON.stringify({
      message: { messageId, role: "ROLE_USER", parts: [{ text: play.content }] },
    });
    const waiting = await call("plain/message:send", { method: "POST", headers: asJson, body });
    await play.reached("shown");
    await waiting.body?.cancel();
    await play.open("shown");
    const client = await clientOf("plain");
    const again = await sent(client, request({ text: play.content }, { messageId }));
    expect([stateOf(again), repliesOf(again)]).toEqual([TaskState.TASK_STATE_COMPLETED, ["Half and half."]]);
    expect(await play.requests()).toHaveLength(1);
  });
});
