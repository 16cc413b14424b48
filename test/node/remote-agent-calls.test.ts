/** The client of A2A in Node, with agents of the official SDK on loopback. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openKey } from "../../src/a2a/open-tasks.ts";
import { RemoteAgents } from "../../src/a2a/remote-agents.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { ToolInvocation } from "../../src/protocol/executor-api.ts";
import { remoteCallKey } from "../../src/protocol/remote-call.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { memoryToolState } from "../../src/testing/world/local-executor.ts";
import type { A2aFaults, SeenA2a } from "../support/a2a-script.ts";
import { startA2aServer } from "../support/a2a-server.ts";

const SECRET = "key-of-the-project-4711";
const TOOL = { library: "test", id: "ask" };
let server: Awaited<ReturnType<typeof startA2aServer>>;
beforeAll(async () => {
  server = await startA2aServer();
});
afterAll(() => server.close());

let count = 0;

/** An agent on loopback, and the client of a conversation. */
class Remote {
  readonly name = `agent-${++count}`;
  readonly url = `${server.url}/${this.name}`;
  readonly state = memoryToolState();
  readonly agents = new RemoteAgents({
    clock: systemClock,
    code: { definition: async () => undefined },
    mayReach: () => true,
    credentials: async () => [{ header: "x-key", value: `Key ${SECRET}`, secret: SECRET }],
  });

  async set(faults: A2aFaults): Promise<void> {
    await fetch(`${server.url}/control/${this.name}`, { method: "POST", body: JSON.stringify(faults) });
  }

  async seen(method: string): Promise<SeenA2a[]> {
    return (await fetch(`${server.url}/control/${this.name}/seen?of=${method}&count=0`)).json();
  }

  get tool() {
    return { tool: TOOL, url: this.url };
  }

  /** Sends a message to a task, as another client. */
  async move(taskId: string, text: string): Promise<void> {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", taskId, parts: [{ text }] };
    const body = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } };
    await fetch(this.url, { method: "POST", body: JSON.stringify(body) });
  }

  async runs(): Promise<string[]> {
    return (await fetch(`${server.url}/control/${this.name}/runs`)).json();
  }

  call(operationId: string, input: JsonObject, answer?: ToolInvocation["answer"]): Promise<unknown> {
    const invocation: ToolInvocation = {
      ...{ operationId, attempt: 1, toolCallId: "call_1", input, timeoutMs: 60_000 },
      tool: { ...TOOL, version: 1 },
      ...(answer && { answer }),
      context: { tenant: "acme", projectId: "p", agentId: "a", conversationId: "c", turnId: "t" } as never,
    };
    return this.agents.call(invocation, this.url, {
      state: this.state,
      signal: new AbortController().signal,
    });
  }

  /** Returns the error of a call. */
  async failed(operationId: string, input: JsonObject): Promise<ToolError> {
    const error = await this.call(operationId, input).catch((thrown: unknown) => thrown);
    return error instanceof ToolError ? error : expect.fail(`no ToolError: ${String(error)}`);
  }
}

describe("the address in a card", () => {
  test("A2ACALL-4 a call that cannot be stored is not sent", async () => {
    const remote = new Remote();
    await remote.set({ endpoint: `${remote.url}?${"x".repeat(2_000)}` });
    expect((await remote.failed("op_1", { message: "say hello" })).message).toContain(
      "at most 2,000 characters",
    );
    expect(await remote.seen("SendMessage")).toEqual([]);
  });

  test("A2ACALL-4 a stored call that cannot be read is an error, not a new call", async () => {
    const remote = new Remote();
    await remote.state.put(remoteCallKey("op_1"), { endpoint: `${remote.url}#a`, begunAt: 1 });
    expect((await remote.failed("op_1", { message: "say hello" })).message).toContain("was not sent again");
    expect(await remote.seen("SendMessage")).toEqual([]);
  });
});

describe("a question", () => {
  test("A2ACALL-12 a message that approves asks first what the task waits for now", async () => {
    const remote = new Remote();
    const asked = await remote.call("op_1", { message: "ask Which colour?" });
    const task_id = String(Reflect.get(Object(asked), "task_id"));
    // Another client moves the task on, to a request for approval.
    await remote.move(task_id, "confirm Refund 5?");
    const answer = (message: string) => remote.call(`op_${message}`, { message, task_id });
    expect(await answer("approve")).toMatchObject({
      elicited: { message: expect.stringMatching(/Refund 5\?[\s\S]*The model answers "approve"/) },
    });
    await expect(answer("Yes, please.")).rejects.toMatchObject({ code: "INVALID_INPUT" });
    // The task has another request, and then a question.
    await remote.move(task_id, "confirm Refund 500?");
    expect(await answer("approve")).toMatchObject({
      elicited: { message: expect.stringContaining("Refund 500?") },
    });
    await remote.move(task_id, "ask Which colour?");
    expect(await answer("say blue")).toBe("blue");
    expect(await remote.seen("SendMessage")).toHaveLength(5);
    await remote.state.put(await openKey(remote.tool, task_id), { contextId: "" });
    await expect(answer("deny"), "the task is over").rejects.toMatchObject({ code: "INVALID_INPUT" });
    await remote.set({ status: 503 });
    await expect(answer("deny")).rejects.toMatchObject({ retriable: true });
  });

  test("A2ACALL-12 a repeated attempt does not approve a request that the task has by now", async () => {
    const remote = new Remote();
    const asked = await remote.call("op_1", { message: "ask Which colour?" });
    const task_id = String(Reflect.get(Object(asked), "task_id"));
    const input = { message: "approve", task_id };
    await remote.set({ statusOf: { SendMessage: 503 } });
    await expect(remote.call("op_2", input)).rejects.toMatchObject({ retriable: true });
    await remote.set({});
    await remote.move(task_id, "confirm Refund 5?");
    await expect(remote.call("op_2", input)).rejects.toThrow("now waits for an approval");
    expect(await remote.runs()).toEqual(["ask Which colour?", "confirm Refund 5?"]);
  });

  test("A2ACALL-12 an approved answer arrives once, also if its first attempt fails", async () => {
    const remote = new Remote();
    const asked = await remote.call("op_1", { message: "confirm Refund 5?" });
    const input = { message: "approve", task_id: String(Reflect.get(Object(asked), "task_id")) };
    const { elicited } = Object(await remote.call("op_2", input));
    const approval = { responses: {}, state: elicited.state };
    await remote.set({ statusOf: { SendMessage: 503 } });
    await expect(remote.call("op_2", input, approval)).rejects.toMatchObject({ retriable: true });
    await remote.set({});
    expect(await remote.call("op_2", input, approval)).toMatch(/^approve .*Refund 5\?$/);
    expect(await remote.runs()).toEqual(["confirm Refund 5?", expect.stringMatching(/^approve /)]);
  });

  test("A2ACALL-12 a repeated attempt returns the result of a message that has ended its task", async () => {
    const remote = new Remote();
    const asked = await remote.call("op_1", { message: "ask Which colour?" });
    const input = { message: "approve", task_id: String(Reflect.get(Object(asked), "task_id")) };
    await remote.set({ lose: { method: "SendMessage", times: 10 } });
    await expect(remote.call("op_2", input)).rejects.toMatchObject({ retriable: true });
    await remote.set({});
    const result = await remote.call("op_2", input);
    expect(result).toBe("approve");
    expect(await remote.runs()).toEqual(["ask Which colour?", "approve"]);
  });

  test("A2ACALL-5 a question is answered once, and its answer survives a repeated attempt", async () => {
    const remote = new Remote();
    const asked = await remote.call("op_1", { message: "ask Which colour?" });
    const task_id = String(Reflect.get(Object(asked), "task_id"));
    const answer = { message: "say blue", task_id };
    expect(await remote.call("op_2", answer)).toBe("blue");
    expect(await remote.call("op_2", answer), "an attempt after a lost result").toBe("blue");
    expect(await remote.state.list("a2a.open.")).toEqual([]);
    expect(await remote.failed("op_3", answer)).toMatchObject({ code: "INVALID_INPUT" });
    expect(await remote.seen("SendMessage")).toHaveLength(2);
  });
});

describe("an attempt that ends after it has stored the task", () => {
  const crashing = (remote: Remote) => {
    const { put } = remote.state;
    remote.state.put = async (key, value) => {
      await put.call(remote.state, key, value);
      if (!key.startsWith("a2a.call.") || Object(value).taskId === undefined) return;
      remote.state.put = put;
      throw new Error("The attempt is lost.");
    };
  };

  test("A2ACALL-5 the next call continues its context", async () => {
    const remote = new Remote();
    crashing(remote);
    await expect(remote.call("op_1", { message: "say blue" })).rejects.toThrow("is lost");
    expect(await remote.call("op_1", { message: "say blue" })).toBe("blue");
    expect(await remote.call("op_2", { message: "say red" })).toBe("red");
    const messages = (await remote.seen("SendMessage")).map(({ params }) => params.message);
    expect(messages.map((message) => message?.contextId)).toEqual([undefined, expect.stringMatching(/./)]);
  });

  test("A2ACALL-5 its question is answered", async () => {
    const remote = new Remote();
    const asked = await remote.call("op_1", { message: "ask Which colour?" });
    const answer = { message: "say blue", task_id: String(Reflect.get(Object(asked), "task_id")) };
    crashing(remote);
    await expect(remote.call("op_2", answer)).rejects.toThrow("is lost");
    expect(await remote.call("op_2", answer)).toBe("blue");
    expect(await remote.failed("op_3", answer)).toMatchObject({ code: "INVALID_INPUT" });
  });
});

test("A2ACALL-4 the task is stored before the context, so that a crash does not lose it", async () => {
  const remote = new Remote();
  const puts: string[] = [];
  const { put } = remote.state;
  remote.state.put = async (key, value) => {
    puts.push(key.split(".")[1] ?? "");
    await put.call(remote.state, key, value);
  };
  expect(await remote.call("op_1", { message: "say hello" })).toBe("hello");
  expect(puts).toEqual(["call", "call", "context"]);
});

describe("secrets of the project", () => {
  test.each([
    ["version", { version: SECRET }],
    ["address", { endpoint: `https://${SECRET}.example.com/` }],
    ["id of a task", { taskId: `task-${SECRET}` }],
  ])("A2ACALL-3 an error does not quote a secret from the %s that the agent gives", async (_, faults) => {
    const remote = new Remote();
    await remote.set(faults);
    const { message } = await remote.failed("op_1", { message: "ask Which colour?" });
    expect(message).not.toContain(SECRET);
    expect(message.length).toBeGreaterThan(20);
  });

  test("A2ACALL-3 an error that is cut has no beginning of a secret", async () => {
    const remote = new Remote();
    for (const before of [1_990, 1_995]) {
      await remote.set({ refusal: "x".repeat(before) + SECRET });
      const { message } = await remote.failed("op_1", { message: "say hello" });
      expect(message).toContain("x".repeat(before));
      expect(message).not.toContain(SECRET.slice(0, 4));
    }
  });

  test("A2ACALL-1 A2ACALL-3 an error does not quote the address of another host", async () => {
    const remote = new Remote();
    await remote.set({ endpoint: "https://elsewhere.example.com/" });
    const error = await remote.failed("op_1", { message: "say hello" });
    expect(error).toMatchObject({ code: "PERMISSION_DENIED", rule: "network" });
    expect(error.message).not.toContain("elsewhere");
  });
});
