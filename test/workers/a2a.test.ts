/** A2A 1.0 on the real Worker, held against the official client over both bindings. */
import { abortAllDurableObjects } from "cloudflare:test";
import { Role, TaskState } from "@a2a-js/sdk";
import { beforeAll, describe, expect, test } from "vitest";
import {
  ADA,
  clientOf,
  collect,
  createAgents,
  EVE,
  MEL,
  named,
  repliesOf,
  request,
  requestIdsOf,
  sent,
  stateOf,
  textsOf,
} from "./a2a-client.ts";
import { get, post } from "./http-client.ts";
import { Play } from "./provider.ts";

beforeAll(() => createAgents([ADA, EVE], ["plain", "handy", "careful", "buyer"]));

const half = () => new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });

describe.each(["JSON-RPC", "REST"] as const)("I12 the official A2A client over %s: tasks", (binding) => {
  test("I12 A2A-1 A2A-3 the card names the address, and a message has the task of a turn", async () => {
    const client = await clientOf("handy", ADA, binding);
    expect(await client.getAgentCard()).toMatchObject({
      supportedInterfaces: ["JSONRPC", "HTTP+JSON"].map((protocolBinding) => ({
        ...{ url: "http://dramatis.test/a2a/handy", protocolBinding, protocolVersion: "1.0" },
      })),
      capabilities: { streaming: true },
    });
    const play = new Play({
      replies: [[{ text: "Let me see." }, { call: "double", input: { n: 4 } }], [{ text: "Eight." }]],
    });
    const task = await sent(client, request({ text: play.content }));
    expect([stateOf(task), repliesOf(task)]).toEqual([
      TaskState.TASK_STATE_COMPLETED,
      ["Let me see.", "Eight."],
    ]);
    expect(task.history.map(({ role, parts }) => [role, textsOf(parts)])).toEqual([
      [Role.ROLE_USER, [play.content]],
    ]);
    expect(await client.getTask(named(task.id))).toEqual(task);

    const next = new Play({ replies: [[{ text: "Sixteen." }]] });
    const later = await sent(client, request({ text: next.content }, { contextId: task.contextId }));
    expect([later.contextId, repliesOf(later)]).toEqual([task.contextId, ["Sixteen."]]);
    const [call] = await next.requests(1);
    expect(JSON.stringify(call?.body.messages)).toContain("Eight.");
  });

  test("I12 A2A-6 the same message again has the same task", async () => {
    const client = await clientOf("plain", ADA, binding);
    const play = new Play({ replies: [[{ text: "Once." }]] });
    const given = request({ text: play.content });
    const task = await sent(client, given);
    expect((await sent(client, given)).id).toBe(task.id);
    expect(await play.requests()).toHaveLength(1);
    const other = request({ text: "Other." }, { messageId: given.message.messageId });
    await expect(client.sendMessage(other)).rejects.toThrow();
  });

  test("I12 A2A-4 A2A-5 a stream has the pieces of the reply, and the finished task has the same artifacts", async () => {
    const client = await clientOf("plain", ADA, binding);
    const play = new Play({ replies: [[{ text: "Good " }, { text: "day." }]] });
    const { kinds, task } = await collect(client.sendMessageStream(request({ text: play.content })));
    expect(kinds).toEqual(["task", "artifactUpdate", "statusUpdate"]);
    const finished = await client.getTask(named(task.id));
    expect([stateOf(task), repliesOf(task)]).toEqual([TaskState.TASK_STATE_COMPLETED, ["Good day."]]);
    expect([stateOf(finished), repliesOf(finished)]).toEqual([stateOf(task), repliesOf(task)]);
  });

  test("I12 A2A-8 a task continues without its client, is read again from its beginning, and can be stopped", async () => {
    const client = await clientOf("plain", ADA, binding);
    const play = half();
    const given = request({ text: play.content });
    const configuration = {
      ...{ acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true },
    };
    const task = await sent(client, { ...given, configuration } as never);
    expect(stateOf(task)).toBe(TaskState.TASK_STATE_WORKING);
    const reading = collect(client.resubscribeTask(named(task.id)));
    await play.reached("shown");
    await play.open("shown");
    const read = await reading;
    expect([stateOf(read.task), repliesOf(read.task)]).toEqual([
      TaskState.TASK_STATE_COMPLETED,
      ["Half and half."],
    ]);
    await expect(collect(client.resubscribeTask(named(task.id)))).rejects.toThrow(/over/);
    await expect(client.cancelTask(named(task.id))).rejects.toThrow(/over/);

    const stopped = half();
    const active = await sent(client, { ...request({ text: stopped.content }), configuration } as never);
    await stopped.reached("shown");
    expect(stateOf(await client.cancelTask(named(active.id)))).toBe(TaskState.TASK_STATE_CANCELED);
    expect(stateOf(await client.getTask(named(active.id)))).toBe(TaskState.TASK_STATE_CANCELED);
  });

  test("I12 A2A-2 a message is answered when its task waits for a result by a handle", async () => {
    const client = await clientOf("buyer", ADA, binding);
    const play = new Play((key) => ({
      replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]],
    }));
    const task = await sent(client, request({ text: play.content }));
    expect([stateOf(task), repliesOf(task)]).toEqual([TaskState.TASK_STATE_WORKING, []]);
    const [run] = await play.runs(1);
    const handle = String(Reflect.get(Object(run?.input), "handle"));
    expect((await post(`/api/operations/${handle}/result`, { result: "Done." }, ADA)).status).toBe(200);
    await expect
      .poll(async () => repliesOf(await client.getTask(named(task.id))), { timeout: 10_000 })
      .toEqual(["Paid."]);
  });

  test("I12 A2A-1 a failed turn is a failed task with the error", async () => {
    const client = await clientOf("plain", ADA, binding);
    const play = new Play({ replies: [{ status: 401, message: "No." }] });
    const task = await sent(client, request({ text: play.content }));
    expect(stateOf(task)).toBe(TaskState.TASK_STATE_FAILED);
    expect(textsOf(task.status?.message?.parts).join()).toContain("MODEL_FAILED");
  });
});

describe.each(["JSON-RPC", "REST"] as const)("I12 the official A2A client over %s: approvals", (binding) => {
  const paying = (key: string) => [{ text: "May I?" }, { call: "transfer", input: { key, to: "Bob" } }];

  async function asking(play: Play) {
    const client = await clientOf("careful", ADA, binding);
    const task = await sent(client, request({ text: play.content }));
    expect(stateOf(task)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    return { client, task };
  }

  test("I12 A2A-2 A2A-6 an approved call runs, also after an eviction", async () => {
    const play = new Play((key) => ({ replies: [paying(key), [{ text: "Paid." }]] }));
    const { client, task } = await asking(play);
    expect(textsOf(task.status?.message?.parts).join()).toContain("wants to call transfer with");
    expect(await play.runs()).toHaveLength(0);
    await abortAllDurableObjects();
    await expect(client.sendMessage(request({ text: "Maybe." }, { taskId: task.id }))).rejects.toThrow(
      /approve/,
    );
    const ids = { taskId: task.id, contextId: task.contextId };
    const done = await sent(client, request({ data: { approved: true } }, ids));
    expect([done.id, stateOf(done), repliesOf(done)]).toEqual([
      ...[task.id, TaskState.TASK_STATE_COMPLETED],
      ["May I?", "Paid."],
    ]);
    expect(await play.runs(1)).toHaveLength(1);
    await expect(client.sendMessage(request({ text: "approve" }, ids))).rejects.toThrow(/over/);
  });

  test("I12 A2A-4 a stream ends with the request, and the stream of the denial with the task", async () => {
    const play = new Play((key) => ({ replies: [paying(key), [{ text: "I see." }]] }));
    const client = await clientOf("careful", ADA, binding);
    const { task } = await collect(client.sendMessageStream(request({ text: play.content })));
    expect([stateOf(task), repliesOf(task)]).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, ["May I?"]]);
    const denial = request({ text: "deny" }, { taskId: task.id });
    const denied = await collect(client.sendMessageStream(denial));
    expect([stateOf(denied.task), repliesOf(denied.task)]).toEqual([
      TaskState.TASK_STATE_COMPLETED,
      ["May I?", "I see."],
    ]);
    expect(await play.runs()).toHaveLength(0);
  });

  test("I12 A2A-4 a subscription continues after a request, and ends with the task", async () => {
    const play = new Play((key) => ({ replies: [paying(key), [{ text: "Paid." }]] }));
    const { client, task } = await asking(play);
    const states: (TaskState | undefined)[] = [];
    for await (const { payload } of client.resubscribeTask(named(task.id))) {
      if (payload?.$case !== "statusUpdate") continue;
      const state = payload.value.status?.state;
      states.push(state);
      if (state === TaskState.TASK_STATE_INPUT_REQUIRED)
        await sent(client, request({ text: "approve" }, { taskId: task.id }));
    }
    expect(states).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_COMPLETED]);
  });

  test("I12 A2A-2 A2A-6 with several requests each answer has an id, and the task asks for the rest", async () => {
    const play = new Play((key) => ({
      replies: [
        [
          { call: "transfer", input: { key, to: "Bob" } },
          { call: "transfer", input: { key, to: "Eve" } },
        ],
        [{ text: "Done." }],
      ],
    }));
    const { client, task } = await asking(play);
    const [one, two] = requestIdsOf(task);
    const answer = (data: object) => request({ data }, { taskId: task.id });
    await expect(client.sendMessage(answer({ approved: true }))).rejects.toThrow(/several/);
    const rest = await sent(client, answer({ id: one, approved: false }));
    expect([stateOf(rest), requestIdsOf(rest)]).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, [two]]);
    const done = await sent(client, answer({ id: two, approved: true }));
    expect([stateOf(done), repliesOf(done)]).toEqual([TaskState.TASK_STATE_COMPLETED, ["Done."]]);
    expect((await play.runs(1)).map(({ input }) => input)).toMatchObject([{ to: "Eve" }]);
  });

  test("I12 A2A-6 the same answer again answers no later request, also after the task is over", async () => {
    const transferTo = (key: string, to: string) => [{ call: "transfer", input: { key, to } }];
    const play = new Play((key) => ({
      replies: [transferTo(key, "Bob"), transferTo(key, "Eve"), [{ text: "Done." }]],
    }));
    const { client, task } = await asking(play);
    const first = request({ text: "approve" }, { taskId: task.id });
    const asked = await sent(client, first);
    expect(stateOf(asked)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    await abortAllDurableObjects();
    const again = await sent(client, first);
    expect([again.id, stateOf(again), textsOf(again.status?.message?.parts)]).toEqual([
      ...[task.id, TaskState.TASK_STATE_INPUT_REQUIRED],
      textsOf(asked.status?.message?.parts),
    ]);
    const other = request({ text: "deny" }, { taskId: task.id, messageId: first.message.messageId });
    await expect(client.sendMessage(other)).rejects.toThrow(/approved before/);
    const last = request({ text: "deny" }, { taskId: task.id });
    const done = await sent(client, last);
    expect([stateOf(done), repliesOf(done)]).toEqual([TaskState.TASK_STATE_COMPLETED, ["Done."]]);
    for (const repeated of [first, last]) expect(await sent(client, repeated)).toEqual(done);
    expect((await play.runs(1)).map(({ input }) => input)).toMatchObject([{ to: "Bob" }]);
  });

  test("I12 A2A-7 tasks and contexts of another user, tenant or agent are not found", async () => {
    const play = new Play((key) => ({ replies: [paying(key), [{ text: "Paid." }]] }));
    const { task } = await asking(play);
    for (const other of [
      await clientOf("careful", MEL, binding),
      await clientOf("careful", EVE, binding),
      await clientOf("plain", ADA, binding),
    ]) {
      await expect(other.getTask(named(task.id))).rejects.toThrow(/not found/);
      await expect(other.cancelTask(named(task.id))).rejects.toThrow(/not found/);
      await expect(collect(other.resubscribeTask(named(task.id)))).rejects.toThrow(/not found/);
      await expect(
        other.sendMessage(request({ data: { approved: true } }, { taskId: task.id })),
      ).rejects.toThrow(/not found/);
      const contextId = task.contextId;
      await expect(other.sendMessage(request({ text: "Hello." }, { contextId }))).rejects.toThrow();
    }
    expect(await play.runs()).toHaveLength(0);
    const { body } = await get(`/api/conversations/${task.contextId}/turns`, ADA);
    expect(body.turns).toHaveLength(1);
    await expect(clientOf("absent", ADA, binding)).rejects.toThrow(/404/);
  });

  test("I12 A2A-6 a method of another version is refused with the methods of this version", async () => {
    const { body } = await post(
      "/a2a/plain",
      { jsonrpc: "2.0", id: 1, method: "message/send", params: {} },
      ADA,
    );
    expect(Reflect.get(body, "error")).toMatchObject({
      code: -32_601,
      message: expect.stringMatching(/"message\/send".*SendMessage/),
    });
  });
});
