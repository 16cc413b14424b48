/** Tools with the target `{a2a}`, with agents of the official SDK on loopback. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll, describe, expect, test } from "vitest";
import type { A2aFaults, SeenA2a } from "../support/a2a-script.ts";
import type { StepScript } from "../support/provider-script.ts";
import { postTool } from "./authoring.ts";
import { post } from "./http-client.ts";
import {
  ADA,
  checkInvariants,
  crash,
  createConversation,
  request,
  skipInvariants,
  type TestConversation,
} from "./world.ts";

afterAll(checkInvariants);

let count = 0;

/** An agent on loopback, with its tool. */
class Remote {
  readonly name = `agent-${++count}-${crypto.randomUUID().slice(0, 8)}`;
  readonly url = `${env.A2A_URL}/${this.name}`;

  async set(faults: A2aFaults): Promise<void> {
    await this.#control("", { method: "POST", body: JSON.stringify(faults) });
  }

  /** Completes the waiting tasks. */
  async finish(): Promise<void> {
    await this.#control("/finish", { method: "POST" });
  }

  /** The requests of a method, once there are `least`. */
  async seen(method: string, least = 0): Promise<SeenA2a[]> {
    return (await this.#control(`/seen?of=${method}&count=${least}`)).json();
  }

  /** Returns the messages of the executed tasks. */
  async runs(): Promise<string[]> {
    return (await this.#control("/runs")).json();
  }

  /** A conversation with an agent that has the tool `ask`. */
  async conversation(tool: object = {}, projectId?: string): Promise<TestConversation> {
    const reference = await postTool(
      `remote-${crypto.randomUUID().slice(0, 8)}`,
      "ask",
      { a2a: this.url },
      tool,
    );
    return createConversation(await agentWith(reference, projectId));
  }

  async #control(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(`${env.A2A_URL}/control/${this.name}${path}`, init);
    expect(response.ok).toBe(true);
    return response;
  }
}

async function agentWith(tool: string, projectId?: string): Promise<string> {
  const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
  const agent = await post(
    "/api/agents",
    { ...(projectId && { projectIds: [projectId] }), persona: { identity, tools: { toolIds: [tool] } } },
    ADA,
  );
  expect(agent.status, JSON.stringify(agent.body)).toBe(201);
  return agent.body.id;
}

const ask = (message: string, more: object = {}): StepScript => ({
  call: "ask",
  input: { message, ...more },
});

/** Plays a turn with calls, one reply for each. Returns its results. */
async function play(conversation: TestConversation, ...calls: StepScript[]) {
  const replies: StepScript[][] = [...calls.map((call) => [call]), [{ text: "Done." }]];
  const { turnId } = await conversation.play({ replies });
  return ended(conversation, turnId);
}

async function ended(conversation: TestConversation, turnId: string) {
  const { moves } = await conversation.ended(turnId);
  return moves.flatMap(({ toolResult }) => toolResult ?? []);
}

/** Returns the kinds of the entries that a conversation keeps of remote agents. */
function kept({ stub }: TestConversation): Promise<string[]> {
  return runInDurableObject(stub, (_, { storage }) =>
    [...storage.kv.list({ prefix: "a2a." })].map(([key]) => key.split(".")[1] ?? ""),
  );
}

async function failed(conversation: TestConversation, ...calls: StepScript[]) {
  const results = await play(conversation, ...calls);
  return results.at(-1)?.error ?? { code: "none", message: JSON.stringify(results) };
}

describe("I12 an agent of another server answers a tool", () => {
  test("A2ACALL-6 A2ATOOL-1 texts are a text, other content is parts, and files are names", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const results = await play(conversation, ask("say hello"), ask("parts"), ask("status fine"));
    expect(results.map(({ result, error }) => result ?? error)).toEqual([
      "hello",
      [{ text: "A dot." }, { data: { dots: 1 } }, { file: "dot.png", mediaType: "image/png" }],
      "fine",
    ]);
    const [sent] = await remote.seen("SendMessage", 1);
    expect(sent?.params.message?.messageId).toMatch(/^op_/);
    expect(sent?.headers["a2a-version"]).toBe("1.0");
  });

  test("A2ACALL-5 the second call of a conversation continues the context of the first", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    await play(conversation, ask("say one"));
    await play(conversation, ask("say two"));
    await play(await remote.conversation(), ask("say three"));
    const messages = (await remote.seen("SendMessage", 3)).map(({ params }) => params.message);
    expect(messages[0]?.contextId).toBeUndefined();
    expect(messages[1]?.contextId).toMatch(/./);
    expect(messages[2]?.contextId, "another conversation").toBeUndefined();
  });

  test("A2ACALL-7 A2ACALL-5 a question is a result, and a call with its task_id answers it", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const [asked] = await play(conversation, ask("ask Which colour?"));
    expect(asked?.result).toMatchObject({ status: "input_required", question: "Which colour?" });
    const task_id = String(Reflect.get(Object(asked?.result), "task_id"));
    const [answered] = await play(conversation, ask("say blue", { task_id }));
    expect(answered?.result).toBe("blue");
    expect(await kept(conversation), "A2ATASK-4").toEqual(["context"]);
    const [, second] = await remote.seen("SendMessage", 2);
    expect(second?.params.message).toMatchObject({ taskId: task_id });
    const stranger = await remote.conversation();
    expect(
      await failed(stranger, ask("say red", { task_id })),
      "a task of another conversation",
    ).toMatchObject({
      code: "INVALID_INPUT",
    });
    expect(await remote.runs()).toEqual(["ask Which colour?", "say blue"]);
  });

  test("A2ACALL-12 a person approves an answer to a request for approval of a Dramatis server, and sees the request", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const [asked] = await play(conversation, ask("confirm Refund 5?"));
    expect(asked?.result).toMatchObject({
      status: "input_required",
      hint: expect.stringContaining("person"),
    });
    const task_id = String(Reflect.get(Object(asked?.result), "task_id"));
    const answer = async (body: object) => {
      const client = await conversation.connect();
      const { turnId } = await conversation.play({
        replies: [[ask("approve", { task_id })], [{ text: "Done." }]],
      });
      const { operationId = "", data } = await client.frame("approval.requested");
      expect(data).toMatchObject({
        input: { message: "approve", task_id },
        elicitation: { message: expect.stringContaining("Refund 5?"), round: 1 },
      });
      await crash();
      const path = `${conversation.path}/operations/${operationId}/approval`;
      const answered = await request(path, { method: "POST", body: JSON.stringify(body) });
      expect(answered.status, await answered.text()).toBe(200);
      return ended(conversation, turnId);
    };
    const [denied] = await answer({ approved: false });
    expect(denied?.error?.code).toBe("APPROVAL_DENIED");
    expect(await remote.runs()).toEqual(["confirm Refund 5?"]);
    const [approved] = await answer({ approved: true, values: {}, round: 1 });
    expect(approved?.result).toMatch(/^approve .*op_Refund 5\?$/);
    expect(await remote.runs()).toEqual(["confirm Refund 5?", approved?.result]);
    const [long] = await play(conversation, ask(`confirm ${"x".repeat(9_000)}`));
    const other = String(Reflect.get(Object(long?.result), "task_id"));
    const refused = await failed(conversation, ask("approve", { task_id: other }));
    expect(refused.message).toContain("too long to show to a person");
  });

  test("A2ACALL-12 an approval counts for the request that the person saw, also if the task asks another by then", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const [asked] = await play(conversation, ask("confirm Refund 5?|Refund 500?"));
    const task_id = String(Reflect.get(Object(asked?.result), "task_id"));
    const call = ask("approve", { task_id });
    const { turnId } = await conversation.play({ replies: [[call, call], [{ text: "Done." }]] });
    const waiting = async () =>
      (await conversation.turn(turnId)).moves.flatMap(({ toolCall, toolResult }) =>
        toolCall !== undefined && toolResult === undefined && toolCall.approval?.outcome === undefined
          ? [{ id: toolCall.operationId, ...toolCall.approval?.elicitation }]
          : [],
      );
    await expect.poll(async () => (await waiting()).map(({ round }) => round)).toEqual([1, 1]);
    const [first, second] = await waiting();
    expect([first?.message, second?.message]).toEqual(Array(2).fill(expect.stringContaining("Refund 5?")));
    const answer = async (id: string | undefined, body: object) => {
      const path = `${conversation.path}/operations/${id}/approval`;
      const answered = await request(path, { method: "POST", body: JSON.stringify(body) });
      expect(answered.status, await answered.text()).toBe(200);
    };
    await answer(first?.id, { approved: true, values: {}, round: 1 });
    await expect.poll(() => remote.runs()).toHaveLength(2);
    await answer(second?.id, { approved: true, values: {}, round: 1 });
    // The task waits for the second request. No person has approved it.
    const message = expect.stringContaining("Refund 500?");
    await expect.poll(waiting).toEqual([expect.objectContaining({ id: second?.id, round: 2, message })]);
    expect((await remote.runs()).slice(1)).toEqual([expect.stringMatching(/op_Refund 5\?$/)]);
    await answer(second?.id, { approved: false });
    const results = (await ended(conversation, turnId)).map(({ result, error }) => result ?? error);
    expect(results).toMatchObject([{ status: "input_required" }, { code: "APPROVAL_DENIED" }]);
  });

  test("A2ACALL-9 a stop before an approved answer has arrived cancels the task, and never sends the answer", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const [asked] = await play(conversation, ask("confirm Refund 5?"));
    const task_id = String(Reflect.get(Object(asked?.result), "task_id"));
    const client = await conversation.connect();
    const { turnId } = await conversation.play({
      replies: [[ask("approve", { task_id })], [{ text: "Done." }]],
    });
    const { operationId = "" } = await client.frame("approval.requested");
    await remote.set({ statusOf: { SendMessage: 503 } });
    const path = `${conversation.path}/operations/${operationId}/approval`;
    const body = JSON.stringify({ approved: true, values: {}, round: 1 });
    expect((await request(path, { method: "POST", body })).status).toBe(200);
    await remote.seen("SendMessage", 2);
    await conversation.stop(turnId);
    const [cancelled] = await remote.seen("CancelTask", 1);
    expect(cancelled?.params.id).toBe(task_id);
    await remote.set({});
    await expect.poll(() => kept(conversation)).not.toContain("call");
    expect(await remote.runs()).toEqual(["confirm Refund 5?"]);
  });

  test("A2ACALL-8 tasks that fail or are declined are errors with their texts", async () => {
    const conversation = await new Remote().conversation();
    const results = await play(conversation, ask("fail No paper."), ask("decline Not my job."));
    expect(results.map(({ error }) => [error?.code, error?.message])).toEqual([
      ["EXECUTION_FAILED", "The task of the remote agent failed: No paper."],
      ["AGENT_DECLINED", "The remote agent declined: Not my job."],
    ]);
  });

  test("RECALL-8 the result is tainted as the words of another agent", async () => {
    const conversation = await new Remote().conversation({ effect: "once" }, "policed");
    const { turnId } = await conversation.play({ replies: [[ask("say hello")], [ask("say again")]] });
    const asked = async () =>
      (await conversation.journalOf(turnId)).find(({ type }) => type === "policy.asked");
    await expect
      .poll(async () => (await asked())?.data)
      .toEqual({ rule: "ask-tainted", taint: ["colleague"] });
    await conversation.stop(turnId);
  });
});

describe("I12 nothing happens twice", () => {
  test("A2ACALL-4 a lost answer is repeated with the same message id", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    await remote.set({ lose: { method: "SendMessage", times: 2 } });
    const [result] = await play(conversation, ask("say hello"));
    expect(result).toMatchObject({ success: true, result: "hello" });
    const ids = (await remote.seen("SendMessage", 3)).map(({ params }) => params.message?.messageId);
    expect(new Set(ids).size).toBe(1);
    expect(await remote.runs()).toEqual(["say hello"]);
  });

  test("A2ATOOL-2 a tool that is `once` does not repeat a lost message", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation({ effect: "once" });
    await remote.set({ lose: { method: "SendMessage", times: 1 }, forgetful: true });
    expect((await failed(conversation, ask("say hello"))).message).toContain("may have arrived");
    expect(await remote.runs()).toEqual(["say hello"]);
  });

  test("A2ATASK-1 A2ACALL-10 a long task outlives attempts, lost answers and crashes, and is sent once", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation({ effect: "once" });
    await remote.set({ forgetful: true });
    const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    const types = async () => (await conversation.journalOf(turnId)).map(({ type }) => type);
    await expect.poll(types, { timeout: 30_000 }).toContain("tool.continued");
    await crash();
    const before = (await remote.seen("GetTask")).length;
    await remote.set({ forgetful: true, lose: { method: "GetTask", times: 1 } });
    await remote.seen("GetTask", before + 2);
    await crash();
    await remote.finish();
    const [result] = await ended(conversation, turnId);
    expect(result).toMatchObject({ success: true, result: "report" });
    expect(await remote.runs()).toEqual(["wait report"]);
    expect(await remote.seen("SendMessage")).toHaveLength(1);
  });

  test("RECOVER-4 A2ATASK-3 a crash under the first attempt of a `once` call continues it, and a stop cancels the task", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation({ effect: "once" });
    await remote.set({ forgetful: true });
    const types = async (turnId: string) => (await conversation.journalOf(turnId)).map(({ type }) => type);
    const begun = async () => {
      const before = (await remote.seen("GetTask")).length;
      const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
      await remote.seen("GetTask", before + 1);
      await crash();
      await expect.poll(() => types(turnId), { timeout: 30_000 }).toContain("tool.continued");
      return turnId;
    };
    const first = await begun();
    await remote.finish();
    expect(await ended(conversation, first)).toMatchObject([{ success: true, result: "report" }]);
    expect(await types(first)).not.toContain("tool.interrupted");
    await conversation.stop(await begun());
    await remote.seen("CancelTask", 1);
    expect(await remote.runs()).toEqual(["wait report", "wait report"]);
  });

  test("A2ACALL-4 a crash while the first attempt waits does not send a second message", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    await remote.set({ forgetful: true });
    const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    await remote.seen("GetTask", 1);
    await crash();
    await remote.finish();
    const [result] = await ended(conversation, turnId);
    expect(result).toMatchObject({ success: true, result: "report" });
    expect(await remote.runs()).toEqual(["wait report"]);
  });

  test.each(["at once", "between two attempts"])(
    "A2ATASK-2 A2ACALL-9 a stopped turn cancels the task, %s",
    async (when) => {
      const remote = new Remote();
      const conversation = await remote.conversation();
      const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
      await remote.seen("GetTask", 1);
      if (when !== "at once") {
        const types = async () => (await conversation.journalOf(turnId)).map(({ type }) => type);
        await expect.poll(types, { timeout: 30_000 }).toContain("tool.continued");
      }
      const [task] = await remote.seen("GetTask", 1);
      await conversation.stop(turnId);
      const [cancelled] = await remote.seen("CancelTask", 1);
      expect(cancelled?.params.id).toBe(task?.params.id);
    },
  );

  test("A2ATASK-2 A2ACALL-9 a stopped turn cancels a task, also if the answer that named it was lost", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    await remote.set({ lose: { method: "SendMessage", times: 2 } });
    const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    await remote.seen("SendMessage", 1);
    await conversation.stop(turnId);
    await remote.seen("CancelTask", 1);
    await expect.poll(() => kept(conversation), { message: "A2ATASK-4" }).toEqual([]);
    expect(await remote.runs()).toEqual(["wait report"]);
    const ids = (await remote.seen("SendMessage", 3)).map(({ params }) => params.message?.messageId);
    expect(new Set(ids).size).toBe(1);
  });

  test("A2ACALL-4 A2ACALL-9 a card with a fragment in its address neither repeats the message nor loses the task", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation({ effect: "once" });
    await remote.set({ forgetful: true, endpoint: `${remote.url}#a` });
    const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    const types = async () => (await conversation.journalOf(turnId)).map(({ type }) => type);
    await expect.poll(types, { timeout: 30_000 }).toContain("tool.continued");
    const before = (await remote.seen("GetTask")).length;
    await remote.seen("GetTask", before + 1);
    await conversation.stop(turnId);
    await remote.seen("CancelTask", 1);
    expect(await remote.runs()).toEqual(["wait report"]);
  });

  test("A2ACALL-11 A2ATASK-4 a task that its server has lost ends the call at once", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    const types = async () => (await conversation.journalOf(turnId)).map(({ type }) => type);
    await expect.poll(types, { timeout: 30_000 }).toContain("tool.continued");
    await remote.set({ lostTasks: true });
    const [result] = await ended(conversation, turnId);
    expect(result?.error?.message).toContain("refused GetTask");
    expect(await kept(conversation)).toEqual(["context"]);
  });

  test("A2ATASK-5 a deleted conversation cancels the task, also if the other server is down at first", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    const types = async () => (await conversation.journalOf(turnId)).map(({ type }) => type);
    await expect.poll(types, { timeout: 30_000 }).toContain("tool.continued");
    await remote.set({ status: 503 });
    skipInvariants(conversation);
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await remote.seen("CancelTask", 1);
    await remote.set({});
    const requests = await remote.seen("CancelTask", 2);
    expect(new Set(requests.map(({ params }) => params.id)).size).toBe(1);
  });

  test.each(["once", "idempotent"])(
    "A2ATASK-6 A2ATASK-4 a turn that stops while the message of a tool that is `%s` is under way cancels the task, and keeps no call",
    async (effect) => {
      const remote = new Remote();
      const conversation = await remote.conversation({ effect });
      await remote.set({ slow: { method: "SendMessage", ms: 2_000 } });
      const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
      await remote.seen("SendMessage", 1);
      await conversation.stop(turnId);
      await remote.seen("CancelTask", 1);
      // The attempt has ended when its context is stored.
      await expect.poll(() => kept(conversation), { timeout: 30_000 }).toEqual(["context"]);
      expect(await remote.runs()).toEqual(["wait report"]);
    },
  );

  test("A2ATASK-6 a stop while the message of a `once` tool is under way cancels the task after the other server is up again", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation({ effect: "once" });
    await remote.set({ slow: { method: "SendMessage", ms: 2_000 } });
    const { turnId } = await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    await remote.seen("SendMessage", 1);
    await remote.set({ status: 503 });
    await conversation.stop(turnId);
    await remote.seen("CancelTask", 1);
    await remote.set({});
    await remote.seen("CancelTask", 2);
    await expect.poll(() => kept(conversation), { timeout: 30_000 }).toEqual(["context"]);
  });

  test("A2ACALL-9 a conversation that is deleted while its message is under way cancels the task, also if the other server is down at first", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    await remote.set({ slow: { method: "SendMessage", ms: 2_000 } });
    await conversation.play({ replies: [[ask("wait report")], [{ text: "Done." }]] });
    await remote.seen("SendMessage", 1);
    skipInvariants(conversation);
    await remote.set({ status: 503 });
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await remote.seen("CancelTask", 1);
    await remote.set({});
    const requests = await remote.seen("CancelTask", 2);
    expect(new Set(requests.map(({ params }) => params.id)).size).toBe(1);
  });

  test("A2ATASK-1 A2ATASK-2 the time limit of the tool ends the call, and cancels the task", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation({ timeoutMs: 1_000 });
    const error = await failed(conversation, ask("wait report"));
    expect(error).toMatchObject({ code: "TIMEOUT", message: expect.stringContaining("within 1000 ms") });
    await remote.seen("CancelTask", 1);
  });
});

describe("I12 hostile servers", () => {
  test("A2ACALL-1 redirects are not followed", async () => {
    const [remote, inner] = [new Remote(), new Remote()];
    const conversation = await remote.conversation();
    await remote.set({ redirect: `${inner.url}/.well-known/agent-card.json` });
    expect(await failed(conversation, ask("say hello"))).toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringContaining("redirects are not followed"),
    });
    expect(await inner.seen("card")).toEqual([]);
  });

  test.each([
    "http://169.254.169.254/latest",
    "http://127.0.0.1:1/x",
    "https://elsewhere.example.com/",
    "ftp://x",
  ])("A2ACALL-1 a card must not lead to %s", async (endpoint) => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    await remote.set({ endpoint });
    expect(await failed(conversation, ask("say hello"))).toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringContaining("must not lead to"),
    });
    const journal = await conversation.journal();
    expect(journal.find(({ type }) => type === "policy.denied")?.data).toEqual({ rule: "network" });
  });

  test("A2ACALL-2 an answer without an end, or that is too large, is an error", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    const error = await failed(conversation, ask(`big ${11 * 1024 * 1024}`));
    expect(error.message).toContain("more than 10485760 bytes");
    await remote.set({ flood: true });
    expect((await failed(conversation, ask("say hello"))).message).toContain("more than 10485760 bytes");
  });

  test("LARGE-1 a large answer is stored, and the model gets a view of it", async () => {
    const conversation = await new Remote().conversation();
    const [result] = await play(conversation, ask(`big ${2 * 1024 * 1024}`));
    expect(result?.success).toBe(true);
    expect(JSON.stringify(result?.result).length).toBeLessThan(100_000);
  });

  test("I12 a server of another version, without an agent or without an answer is an error that says so", async () => {
    const remote = new Remote();
    const conversation = await remote.conversation();
    await remote.set({ version: "0.3.0" });
    expect((await failed(conversation, ask("say hello"))).message).toContain("It has: JSONRPC 0.3.0.");
    await remote.set({ status: 404 });
    expect(await failed(conversation, ask("say hello"))).toMatchObject({ code: "NOT_FOUND" });
    await remote.set({ status: 401 });
    expect(await failed(conversation, ask("say hello"))).toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringContaining("Add a secret for this host"),
    });
    await remote.set({ status: 503 });
    const error = await failed(conversation, ask("say hello"));
    expect([error.message, await remote.runs()]).toEqual([expect.stringContaining("503"), []]);
  });

  test("I12 AUTHOR-5 a posted tool reaches only hosts of the deployer's list", async () => {
    const body = {
      id: "ask",
      name: "ask",
      description: "Asks.",
      target: { a2a: "https://unlisted.example.com/a2a/x" },
    };
    const refused = await post("/api/libraries/remote-refused/tools", body, ADA);
    expect([refused.status, refused.body.detail]).toEqual([
      422,
      expect.stringContaining("DRAMATIS_HTTP_HOSTS"),
    ]);
    const plain = { ...body, target: { a2a: "http://unlisted.example.com/x" } };
    expect((await post("/api/libraries/remote-refused/tools", plain, ADA)).status).toBe(422);
    const pure = { ...body, target: { a2a: `${env.A2A_URL}/x` }, effect: "pure" };
    expect((await post("/api/libraries/remote-refused/tools", pure, ADA)).status).toBe(422);
  });

  test("A2ACALL-3 requests carry the secret of the project, and no result has it", async () => {
    const remote = new Remote();
    const secret = `secret-${crypto.randomUUID()}`;
    const host = new URL(env.A2A_URL).host;
    const project = `remote-${crypto.randomUUID().slice(0, 8)}`;
    expect((await post("/api/projects", { id: project }, ADA)).status).toBe(201);
    const put = await request(`/api/projects/${project}/secrets/remote`, {
      method: "PUT",
      body: JSON.stringify({ value: secret, hosts: [host], header: "x-remote", prefix: "Key " }),
    });
    expect(put.status, await put.clone().text()).toBeLessThan(300);
    const conversation = await remote.conversation({}, project);
    const [result] = await play(conversation, ask(`say ${secret}`));
    expect(JSON.stringify(result)).not.toContain(secret);
    const [sent] = await remote.seen("SendMessage", 1);
    expect(sent?.headers["x-remote"]).toBe(`Key ${secret}`);
  });
});
