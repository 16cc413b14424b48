/** Push notifications of A2A on the real Worker: a server takes the notices. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { TaskState } from "@a2a-js/sdk";
import { beforeAll, describe, expect, test } from "vitest";
import type { Principal } from "../../src/shared/principal.ts";
import type { WebhookAnswer, WebhookRecord } from "../support/webhook-server.ts";
import { ADA, clientOf, createAgents, EVE, MEL, repliesOf, request, sent, stateOf } from "./a2a-client.ts";
import { get, post, send } from "./http-client.ts";
import { Play } from "./provider.ts";

beforeAll(() => createAgents([ADA, EVE], ["plain", "careful"]));

/** A webhook at the server of the tests. */
class Sink {
  readonly key = crypto.randomUUID();
  readonly url = `${env.WEBHOOK_URL}/hooks/${this.key}`;

  async #control(method: string, body?: unknown): Promise<WebhookRecord[]> {
    const init = { method, ...(body !== undefined && { body: JSON.stringify(body) }) };
    return (await fetch(`${env.WEBHOOK_URL}/control/${this.key}`, init)).json();
  }

  answerWith(...answers: WebhookAnswer[]) {
    return this.#control("POST", answers);
  }

  release() {
    return this.#control("DELETE");
  }

  records() {
    return this.#control("GET");
  }

  /** Returns the states of the notices so far. */
  async states(): Promise<string[]> {
    const states = (await this.records()).map(
      ({ body }) => JSON.stringify(body).match(/TASK_STATE_\w+/)?.[0] ?? "",
    );
    return states.map((state) => state.slice("TASK_STATE_".length));
  }
}

const SECRETS = { token: "the-token-of-the-client", credentials: "the-credentials-of-the-client" };

const configOf = (sink: Pick<Sink, "url">, id = "one") => ({
  ...{ tenant: "", id, taskId: "", url: sink.url, token: SECRETS.token },
  authentication: { scheme: "Bearer", credentials: SECRETS.credentials },
});

const configuration = (sink: Sink, returnImmediately = false) => ({
  ...{ acceptedOutputModes: [], returnImmediately, historyLength: undefined },
  taskPushNotificationConfig: configOf(sink),
});

const withConfig = (text: string, sink: Sink, isAsync = false) =>
  ({ ...request({ text }), configuration: configuration(sink, isAsync) }) as unknown as ReturnType<
    typeof request
  >;

const gated = () => new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });

describe.each(["JSON-RPC", "REST"] as const)("I12 push notifications over %s", (binding) => {
  test("I12 PUSHED-3 A2A-15 a webhook gets the last status with the secrets of its client, and nothing returns them", async () => {
    const client = await clientOf("plain", ADA, binding);
    expect(await client.getAgentCard()).toMatchObject({ capabilities: { pushNotifications: true } });
    const [sink, play] = [new Sink(), gated()];
    const task = await sent(client, withConfig(play.content, sink, true));
    const named = { tenant: "", taskId: task.id, id: "one" };
    const shown = {
      id: "one",
      taskId: task.id,
      url: sink.url,
      token: "",
      authentication: { scheme: "Bearer", credentials: "" },
    };
    expect(await client.getTaskPushNotificationConfig(named)).toMatchObject(shown);
    await play.reached("shown");
    await play.open("shown");
    await expect.poll(() => sink.states()).toEqual(["COMPLETED"]);
    const [record] = await sink.records();
    expect(record?.headers).toMatchObject({
      authorization: `Bearer ${SECRETS.credentials}`,
      "x-a2a-notification-token": SECRETS.token,
      "content-type": "application/a2a+json",
    });
    const finished = await client.getTask({ tenant: "", id: task.id, historyLength: undefined } as never);
    expect(record?.body).toEqual({
      statusUpdate: {
        taskId: task.id,
        contextId: task.contextId,
        status: { state: "TASK_STATE_COMPLETED", timestamp: finished.status?.timestamp },
      },
    });
    const { configs } = await client.listTaskPushNotificationConfig({
      tenant: "",
      taskId: task.id,
      pageSize: 0,
      pageToken: "",
    });
    expect(configs).toMatchObject([shown]);
    const paths = ["", "/journal", "/messages", "/turns", "/export"].map(
      (path) => `/api/conversations/${task.contextId}${path}`,
    );
    for (const path of [...paths, "/api/dead-letters", "/api/events"]) {
      const { body } = await get(path, ADA).catch(() => ({ body: "" }));
      for (const secret of Object.values(SECRETS)) expect(JSON.stringify(body), path).not.toContain(secret);
    }
  });

  test("I12 A2A-15 others do not see, create or delete a configuration", async () => {
    const client = await clientOf("plain", ADA, binding);
    const [sink, play] = [new Sink(), gated()];
    const task = await sent(client, withConfig(play.content, sink, true));
    const named = { tenant: "", taskId: task.id, id: "one" };
    const operator: Principal = { ...MEL, subject: "op", roles: ["operator"] };
    for (const principal of [MEL, EVE, operator]) {
      const other = await clientOf("plain", principal, binding);
      await expect(other.getTaskPushNotificationConfig(named)).rejects.toThrow(/not found/);
      const create = other.createTaskPushNotificationConfig({
        ...configOf(new Sink(), "two"),
        taskId: task.id,
      });
      await expect(create).rejects.toThrow(/not found/);
      await other.deleteTaskPushNotificationConfig(named).catch(() => undefined);
    }
    expect(await client.getTaskPushNotificationConfig(named)).toMatchObject({ id: "one" });
    await client.deleteTaskPushNotificationConfig(named);
    await client.deleteTaskPushNotificationConfig(named);
    await expect(client.getTaskPushNotificationConfig(named)).rejects.toThrow(/not found/);
    const last = new Sink();
    await client.createTaskPushNotificationConfig({ ...configOf(last, "last"), taskId: task.id });
    await play.open("shown");
    await expect.poll(() => last.states()).toEqual(["COMPLETED"]);
    expect(await sink.states()).toEqual([]);
  });
});

describe("I12 delivery of notices", () => {
  test("I12 PUSHED-1 a webhook gets a request for approval, and the end after the answer", async () => {
    const client = await clientOf("careful");
    const sink = new Sink();
    const play = new Play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "Paid." }]],
    }));
    const task = await sent(client, withConfig(play.content, sink));
    expect(stateOf(task)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    await expect.poll(() => sink.states()).toEqual(["INPUT_REQUIRED"]);
    const done = await sent(client, request({ text: "approve" }, { taskId: task.id }));
    expect(repliesOf(done)).toEqual(["Paid."]);
    await expect.poll(async () => (await sink.states()).at(-1)).toBe("COMPLETED");
  });

  test("I12 PUSHED-1 a crash in the middle of a notice loses no last status", async () => {
    const client = await clientOf("plain");
    const [sink, play] = [new Sink(), new Play({ replies: [[{ text: "Done." }]] })];
    await sink.answerWith({ status: 204, held: true });
    await sent(client, withConfig(play.content, sink));
    await expect.poll(() => sink.states()).toEqual(["COMPLETED"]);
    await abortAllDurableObjects();
    await sink.release();
    await expect.poll(() => sink.states(), { timeout: 30_000 }).toEqual(["COMPLETED", "COMPLETED"]);
  });

  test("I12 PUSHED-2 A2A-14 failures are repeated, and a redirect is never followed", async () => {
    const client = await clientOf("plain");
    const [sink, inside, play] = [new Sink(), new Sink(), new Play({ replies: [[{ text: "Done." }]] })];
    await sink.answerWith({ status: 503 }, { status: 307, location: inside.url });
    await sent(client, withConfig(play.content, sink));
    await expect
      .poll(() => sink.states(), { timeout: 30_000 })
      .toEqual(["COMPLETED", "COMPLETED", "COMPLETED"]);
    expect(await inside.states()).toEqual([]);
  });

  test("I12 PUSHED-2 a task that is over tells its status once", async () => {
    const client = await clientOf("plain");
    const [sink, play] = [new Sink(), new Play({ replies: [[{ text: "Done." }]] })];
    const task = await sent(client, request({ text: play.content }));
    await client.createTaskPushNotificationConfig({ ...configOf(sink, "late"), taskId: task.id });
    await expect.poll(() => sink.states()).toEqual(["COMPLETED"]);
    const next = new Play({ replies: [[{ text: "More." }]] });
    await sent(client, request({ text: next.content }, { contextId: task.contextId }));
    expect(await sink.states()).toEqual(["COMPLETED"]);
  });
});

describe("I12 the rights of webhooks", () => {
  test("I12 PUSHED-4 a person who left the conversation gets no notice", async () => {
    const client = await clientOf("plain");
    const [own, left, play] = [new Sink(), new Sink(), gated()];
    const task = await sent(client, withConfig(play.content, own, true));
    const participants = `/api/conversations/${task.contextId}/participants`;
    expect((await post(participants, { type: "user", id: MEL.subject }, ADA)).status).toBeLessThan(300);
    const mel = await clientOf("plain", MEL);
    await mel.createTaskPushNotificationConfig({ ...configOf(left, "mel"), taskId: task.id });
    expect(
      (await send(`${participants}/user/${MEL.subject}`, { method: "DELETE" }, ADA)).status,
    ).toBeLessThan(300);
    await play.open("shown");
    await expect.poll(() => own.states()).toEqual(["COMPLETED"]);
    expect(await left.states()).toEqual([]);
  });

  test("I12 A2A-15 a task has at most five configurations", async () => {
    const client = await clientOf("plain");
    const play = gated();
    const task = await sent(client, withConfig(play.content, new Sink(), true));
    const create = (id: string) =>
      client.createTaskPushNotificationConfig({ ...configOf(new Sink(), id), taskId: task.id });
    for (const id of ["a", "b", "c", "d", "a"]) await create(id);
    await expect(create("e")).rejects.toThrow(/at most 5/);
    await play.open("shown");
  });
});

describe("I12 hostile webhooks", () => {
  const port = new URL(env.WEBHOOK_URL).port;
  test.each([
    ["a private address", "http://10.0.0.1/"],
    ["another port of the same host", "http://127.0.0.1:1/"],
    ["localhost", `http://localhost:${port}/`],
    ["a decimal address", "http://2130706433/"],
    ["an octal address", "http://0177.0.0.1/"],
    ["a hexadecimal address", "http://0x7f.1/"],
    ["IPv6", `http://[::1]:${port}/`],
    ["IPv4 in IPv6", `http://[::ffff:127.0.0.1]:${port}/`],
    ["link-local metadata", "http://169.254.169.254/latest"],
    ["an unlisted host", "https://example.com/"],
    ["plain HTTP to a public host", "http://inside.example.org/"],
    ["a user name", `http://ada:secret@127.0.0.1:${port}/`],
    ["another scheme", "file:///etc/passwd"],
  ])("I12 A2A-14 %s is refused, and starts no task", async (_, url) => {
    const client = await clientOf("plain");
    const play = new Play({ replies: [[{ text: "Done." }]] });
    const sink = { url, key: "" } as unknown as Sink;
    await expect(client.sendMessage(withConfig(play.content, sink))).rejects.toThrow(
      /host|scheme|HTTP|name|URL/,
    );
    expect(await play.requests()).toHaveLength(0);
  });

  test("I12 A2A-14 a header that HTTP cannot carry is refused", async () => {
    const client = await clientOf("plain");
    const play = new Play({ replies: [[{ text: "Done." }]] });
    const task = await sent(client, request({ text: play.content }));
    const config = { ...configOf(new Sink()), taskId: task.id, token: "a\r\nhost: b" };
    await expect(client.createTaskPushNotificationConfig(config)).rejects.toThrow(/printable/);
  });

  test("I12 A2A-14 a name with a private address gets no notice", async () => {
    const client = await clientOf("plain");
    const play = new Play({ replies: [[{ text: "Done." }]] });
    const task = await sent(
      client,
      withConfig(play.content, { url: "https://inside.example.org/hook" } as Sink),
    );
    const letters = async () => JSON.stringify((await get("/api/dead-letters", ADA)).body);
    await expect.poll(letters).toContain("private address");
    expect(stateOf(task)).toBe(TaskState.TASK_STATE_COMPLETED);
    for (const secret of [...Object.values(SECRETS), "inside.example.org/hook"])
      expect(await letters()).not.toContain(secret);
  });
});
