/** Attempts of calls of remote agents, in Node, with agents of the official SDK on loopback. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RemoteAgents } from "../../src/a2a/remote-agents.ts";
import { Continued } from "../../src/library/tools/continued.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { ToolInvocation, ToolState } from "../../src/protocol/executor-api.ts";
import { remoteCallKey } from "../../src/protocol/remote-call.ts";
import { memoryToolState } from "../../src/testing/world/local-executor.ts";
import type { A2aFaults, SeenA2a } from "../support/a2a-script.ts";
import { startA2aServer } from "../support/a2a-server.ts";

const OPERATION = "op_1";
/** A clock with pauses that are four times shorter. */
const HURRIED: Pick<Clock, "now" | "timer"> = {
  now: () => systemClock.now(),
  timer: (milliseconds, callback) => systemClock.timer(milliseconds / 4, callback),
};
let server: Awaited<ReturnType<typeof startA2aServer>>;
let count = 0;

beforeAll(async () => {
  server = await startA2aServer();
});

afterAll(() => server.close());

/** An agent on loopback, and a conversation that calls it. */
class Remote {
  readonly name = `agent-${++count}`;
  readonly url = `${server.url}/${this.name}`;
  readonly state = memoryToolState();
  isListed = true;
  readonly agents = new RemoteAgents({
    clock: HURRIED,
    code: { definition: async () => undefined },
    mayReach: () => this.isListed,
    credentials: async () => [],
  });

  async set(faults: A2aFaults): Promise<void> {
    await fetch(`${server.url}/control/${this.name}`, { method: "POST", body: JSON.stringify(faults) });
  }

  async finish(): Promise<void> {
    await fetch(`${server.url}/control/${this.name}/finish`, { method: "POST" });
  }

  async seen(method: string, least = 0): Promise<SeenA2a[]> {
    return (await fetch(`${server.url}/control/${this.name}/seen?of=${method}&count=${least}`)).json();
  }

  attempt(message: string, { following = false, state = this.state as ToolState } = {}): Promise<unknown> {
    const invocation: ToolInvocation = {
      ...{ operationId: OPERATION, attempt: 1, toolCallId: "call_1", timeoutMs: 60_000 },
      ...{ input: { message }, remote: { url: this.url, ...(following && { following }) } },
      tool: { library: "test", id: "ask", version: 1 },
      context: { tenant: "acme", projectId: "p", agentId: "a", conversationId: "c", turnId: "t" } as never,
    };
    return this.agents.call(invocation, this.url, { state, signal: new AbortController().signal });
  }

  /** Begins a task, and loses the attempt. */
  async begin(message: string): Promise<void> {
    const key = remoteCallKey(OPERATION);
    const put: ToolState["put"] = async (at, value) => {
      await this.state.put(at, value);
      if (at === key && Object(value).taskId !== undefined) throw new Error("The attempt is lost.");
    };
    await expect(this.attempt(message, { state: { ...this.state, put } })).rejects.toThrow("is lost");
  }
}

test("A2ACALL-4 the call is stored before its message is sent", async () => {
  const remote = new Remote();
  const put: ToolState["put"] = () => Promise.reject(new Error("The storage is full."));
  await expect(remote.attempt("say hello", { state: { ...remote.state, put } })).rejects.toThrow(
    "storage is full",
  );
  expect(await remote.seen("card")).toHaveLength(1);
  expect(await remote.seen("SendMessage")).toEqual([]);
});

test("A2ATASK-3 an attempt that follows sends no message, and asks for the stored task", async () => {
  const remote = new Remote();
  await expect(remote.attempt("wait report", { following: true })).rejects.toThrow("Outcome unknown");
  expect(await remote.seen("SendMessage")).toEqual([]);
  await remote.begin("wait report");
  expect(await remote.attempt("wait report", { following: true })).toBeInstanceOf(Continued);
  await remote.finish();
  expect(await remote.attempt("wait report", { following: true })).toBe("report");
  expect(await remote.seen("SendMessage")).toHaveLength(1);
});

test.each([
  ["status 404", { status: 404 }],
  ["status 503", { status: 503 }],
  ["HTML", { html: true }],
  ["the error of a server", { refusal: "Busy.", code: -32_000 }],
] as const)("A2ACALL-11 %s while the client follows a task is not the end of the call", async (_, faults) => {
  const remote = new Remote();
  await remote.begin("wait report");
  await remote.set(faults);
  expect(await remote.attempt("wait report")).toBeInstanceOf(Continued);
  await remote.set({});
  await remote.finish();
  expect(await remote.attempt("wait report")).toBe("report");
  expect(await remote.seen("CancelTask")).toEqual([]);
});

describe("requests for a task that are not permitted", () => {
  const denials = [
    ["status 401", { status: 401 }, "did not accept the credentials (401)"],
    ["status 403", { status: 403 }, "did not accept the credentials (403)"],
    ["a redirect", { redirect: "https://elsewhere.example.com/" }, "redirects are not followed"],
  ] as const;

  test.each(denials)("A2ACALL-11 %s ends the call if it stays", async (_, faults, message) => {
    const remote = new Remote();
    await remote.begin("wait report");
    await remote.set(faults);
    await expect(remote.attempt("wait report")).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringContaining(message),
    });
  });

  test("A2ACALL-11 status 401 for a moment is not the end of the call", async () => {
    const remote = new Remote();
    await remote.begin("wait report");
    await remote.finish();
    await remote.set({ status: 401 });
    const attempt = remote.attempt("wait report");
    await remote.seen("GetTask", 2);
    await remote.set({});
    expect(await attempt).toBe("report");
  });

  test("A2ACALL-1 A2ACALL-11 an address that the deployer no longer lists ends the call", async () => {
    const remote = new Remote();
    await remote.begin("wait report");
    remote.isListed = false;
    await expect(remote.attempt("wait report")).rejects.toMatchObject({ rule: "network" });
    expect(await remote.seen("GetTask")).toEqual([]);
  });
});

test("A2ACALL-11 a refusal, and an answer that is too large, end the call and cancel the task", async () => {
  const remote = new Remote();
  await remote.begin("wait report");
  await remote.set({ flood: true });
  await expect(remote.attempt("wait report")).rejects.toThrow("more than 10485760 bytes");
  expect(await remote.seen("CancelTask")).toHaveLength(1);
  await remote.set({});
  const key = remoteCallKey(OPERATION);
  await remote.state.put(key, { ...Object(await remote.state.get(key)), taskId: "unknown" });
  await expect(remote.attempt("wait report")).rejects.toThrow("refused GetTask");
  expect((await remote.seen("CancelTask")).map(({ params }) => params.id)).toContain("unknown");
});
