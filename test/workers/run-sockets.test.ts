/** Runs that are followed over a WebSocket. */
import { evictDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { FLOOD } from "../../src/agents/base/sockets/admission.ts";
import { MAX_RUN_READERS } from "../../src/agents/coordinator/inbound/run-readers.ts";
import type { RunEntryView, RunView } from "../../src/protocol/run-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { openGate, runsOf } from "./provider.ts";
import { ADA, request } from "./world.ts";

const item = { type: "object", properties: { key: { type: "string" }, value: {} }, required: ["key"] };
const BOB: Principal = { subject: "bob", tenant: "test", roles: ["member"] };

async function call<Body>(method: string, path: string, status: number, body?: object): Promise<Body> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(path, init);
  const text = await response.text();
  expect(response.status, text).toBe(status);
  // SAFETY: what the API answers; tests assert the rest.
  return JSON.parse(text) as Body;
}

/** Starts a run of one node that waits at the gate `gate`. */
async function start({ value = "small" as unknown } = {}): Promise<{ id: string; key: string }> {
  const id = `socket_${crypto.randomUUID().slice(0, 8)}`;
  const inputMapping = { key: "input.key", name: "'one'", value: "input.value", wait: "'gate'" };
  const node = { ref: "one", task: "flow/work_idempotent", inputMapping };
  const flow = { id, inputSchema: item, initialNode: "one", nodes: [node], transitions: [] };
  await call("POST", "/api/libraries/sockets/workflows", 201, flow);
  const key = crypto.randomUUID();
  const run = await call<RunView>("POST", "/api/runs", 201, {
    workflow: `sockets/${id}`,
    input: { key, value },
  });
  await runsOf(key, 1);
  return { id: run.id, key };
}

type RunFrame = Omit<RunEntryView, "type" | "data"> & {
  v: number;
  type: string;
  data?: { code?: string; mark?: string };
};

class Follower {
  readonly frames: RunFrame[] = [];
  closed: number | undefined;

  constructor(readonly socket: WebSocket) {
    // SAFETY: tests assert what they read.
    socket.addEventListener("message", ({ data }) => {
      this.frames.push(JSON.parse(String(data)) as RunFrame);
    });
    socket.addEventListener("close", ({ code }) => {
      this.closed = code;
    });
    socket.accept();
  }

  static async open(id: string, query = "", principal = ADA): Promise<Follower> {
    const response = await request(
      `/api/runs/${id}/events${query}`,
      { headers: { upgrade: "websocket" } },
      principal,
    );
    expect(response.status).toBe(101);
    if (response.webSocket === null) throw new Error("No WebSocket.");
    return new Follower(response.webSocket);
  }

  send(frame: object): void {
    this.socket.send(JSON.stringify(frame));
  }

  get entries(): RunFrame[] {
    return this.frames.filter(({ seq }) => seq !== undefined);
  }

  async has(type: string): Promise<RunFrame> {
    await expect.poll(() => this.frames.map((frame) => frame.type)).toContain(type);
    return this.frames.findLast((frame) => frame.type === type) as RunFrame;
  }

  async end(code: number): Promise<void> {
    await expect.poll(() => this.closed).toBe(code);
  }
}

const journal = async (id: string) =>
  (await call<{ entries: RunEntryView[] }>("GET", `/api/runs/${id}/journal?limit=200`, 200)).entries;
const framesOf = (entries: RunEntryView[]) => entries.map((entry) => ({ v: 1, ...entry }));

describe("RUNSOCKET-1 a WebSocket that follows a run", () => {
  test("gets the entries so far, then new entries as they are written, and is closed after the end", async () => {
    const { id, key } = await start();
    const follower = await Follower.open(id);
    await follower.has("task.dispatched");
    await openGate(key, "gate");
    await follower.end(1000);
    expect(follower.frames).toEqual(framesOf(await journal(id)));
    expect(follower.frames.at(-1)?.type).toBe("workflow.completed");
  });

  test("continues after `from`, also when the run is over", async () => {
    const { id, key } = await start();
    await openGate(key, "gate");
    const all = await Follower.open(id);
    await all.end(1000);
    const last = all.frames.length;
    for (const from of [0, 3, last - 1, last]) {
      const follower = await Follower.open(id, `?from=${from}`);
      await follower.end(1000);
      expect(follower.frames, `from ${from}`).toEqual(all.frames.slice(from));
    }
    const upgrade = { headers: { upgrade: "websocket" } };
    expect((await request(`/api/runs/${id}/events?from=x`, upgrade)).status).toBe(422);
  });

  test("continues over a hibernation of the actor, without a gap and without a repetition", async () => {
    const action = { kind: "human.approve", prompt: "May I?" };
    const task = `ask_${crypto.randomUUID().slice(0, 8)}`;
    await call("POST", "/api/libraries/sockets/tasks", 201, {
      id: task,
      inputSchema: { type: "object" },
      steps: [{ ref: "ask", action }],
    });
    await call("POST", "/api/libraries/sockets/workflows", 201, {
      id: task,
      inputSchema: { type: "object" },
      initialNode: "ask",
      nodes: [{ ref: "ask", task }],
      transitions: [],
    });
    const { id } = await call<RunView>("POST", "/api/runs", 201, { workflow: `sockets/${task}` });
    const followers = [await Follower.open(id), await Follower.open(id, "?acks=1")];
    for (const follower of followers) await follower.has("gate.opened");
    // SAFETY: the configuration of the tests exports it.
    const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
    await evictDurableObject(Coordinator.getByName(`test:${id}`));
    for (const follower of followers) {
      follower.send({ type: "ping" });
      await follower.has("pong");
    }
    const { gates } = await call<RunView>("GET", `/api/runs/${id}`, 200);
    const path = `/api/runs/${id}/gates/${gates[0]?.operationId}`;
    await call("POST", path, 200, { answer: { approved: true } });
    for (const follower of followers) {
      await follower.end(1000);
      expect(follower.entries).toEqual(framesOf(await journal(id)));
    }
  });
});

test("RUNSOCKET-2 a WebSocket that acknowledges gets a window of long entries, and the rest as it reads", async () => {
  const value = "x".repeat(300_000);
  const { id, key } = await start({ value });
  const follower = await Follower.open(id, "?acks=1");
  const { data } = await follower.has("mark");
  await openGate(key, "gate");
  await expect
    .poll(async () => (await call<RunView>("GET", `/api/runs/${id}`, 200)).status, {
      message: "the run does not wait for its reader",
    })
    .toBe("completed");
  const count = follower.entries.length;
  follower.send({ type: "ack", mark: "invented" });
  follower.send({ type: "ping" });
  await follower.has("pong");
  expect(follower.entries, "a mark that was not sent has no effect").toHaveLength(count);
  expect(count).toBeLessThan((await journal(id)).length);
  const answer = ({ type, data }: RunFrame) => {
    if (type === "mark") follower.send({ type: "ack", mark: data?.mark });
  };
  // SAFETY: as above.
  follower.socket.addEventListener("message", ({ data }) => answer(JSON.parse(String(data)) as RunFrame));
  follower.send({ type: "ack", mark: data?.mark });
  await follower.end(1000);
  expect(follower.entries).toEqual(framesOf(await journal(id)));
});

test("RUNSOCKET-3 the WebSocket of an expired principal gets an error and is closed with 4401, idle or not", async () => {
  const { id, key } = await start();
  const follower = await Follower.open(id, "", { ...ADA, expiresAt: Date.now() + 1_500 });
  await follower.has("task.dispatched");
  await follower.end(4401);
  expect(follower.frames.at(-1)).toMatchObject({ v: 1, type: "error", data: { code: "UNAUTHENTICATED" } });
  const count = follower.frames.length;
  await openGate(key, "gate");
  await (await Follower.open(id)).end(1000);
  expect(follower.frames).toHaveLength(count);
});

describe("RUNSOCKET-4 messages of a client", () => {
  test("other than `ping` and `ack` get an error, and change no state", async () => {
    const { id, key } = await start();
    const follower = await Follower.open(id);
    const before = await call<RunView>("GET", `/api/runs/${id}`, 200);
    const messages = [
      "{",
      '{"type":"cf_agent_state","state":{}}',
      '{"type":"rpc","id":"1","method":"cancel","args":[]}',
      '{"type":"ping","v":2}',
      `{"type":"ack","mark":"${"x".repeat(2_000)}"}`,
    ];
    for (const message of messages) follower.socket.send(message);
    follower.socket.send(new Uint8Array([1]));
    const errors = () => follower.frames.filter(({ type }) => type === "error").map(({ data }) => data?.code);
    await expect
      .poll(errors)
      .toEqual([
        "INVALID_JSON",
        "INVALID_INPUT",
        "INVALID_INPUT",
        "INVALID_INPUT",
        "TOO_LARGE",
        "INVALID_JSON",
      ]);
    expect(await call<RunView>("GET", `/api/runs/${id}`, 200)).toEqual(before);
    await openGate(key, "gate");
    await follower.end(1000);
  });

  test("that are too many close the connection with 4429", async () => {
    const { id, key } = await start();
    const follower = await Follower.open(id);
    // More than the burst and the refill during the loop.
    for (let n = 0; n < FLOOD.frames.burst * 3; n++) follower.send({ type: "ping" });
    await follower.end(4429);
    expect(follower.frames.at(-1)).toMatchObject({ type: "error", data: { code: "RATE_LIMITED" } });
    await openGate(key, "gate");
  });
});

describe("RUNSOCKET-5 a WebSocket that may not follow", () => {
  test("RUNACCESS-1 gets no frame of another user's run, as of an unknown run", async () => {
    const { id, key } = await start();
    for (const [run, principal] of [
      [id, BOB],
      [id, { ...ADA, tenant: "other" }],
      ["run_01JD0000000000000000000000", ADA],
    ] as const) {
      const follower = await Follower.open(run, "", principal);
      await follower.end(4404);
      expect(follower.frames).toMatchObject([{ type: "error", data: { code: "NOT_FOUND" } }]);
    }
    const upgrade = { headers: { upgrade: "websocket" } };
    expect((await request("/api/runs/nonsense/events", upgrade)).status).toBe(404);
    const foreign = { headers: { upgrade: "websocket", origin: "https://elsewhere.example" } };
    expect((await request(`/api/runs/${id}/events`, foreign)).status).toBe(403);
    const operator = await Follower.open(id, "", { subject: "op", tenant: "test", roles: ["operator"] });
    await openGate(key, "gate");
    await operator.end(1000);
  });

  test("is refused if there are too many followers, until one leaves", async () => {
    const { id, key } = await start();
    const followers: Follower[] = [];
    for (let n = 0; n < MAX_RUN_READERS; n++) followers.push(await Follower.open(id));
    const late = await Follower.open(id);
    await late.end(4429);
    expect(late.frames).toMatchObject([{ type: "error", data: { code: "RATE_LIMITED", retriable: true } }]);
    followers.pop()?.socket.close(1000);
    await vi.waitFor(
      async () => {
        const next = await Follower.open(id);
        await expect.poll(() => next.frames.length).toBeGreaterThan(0);
        expect(next.frames[0]?.type).toBe("workflow.started");
        followers.push(next);
      },
      { timeout: 20_000 },
    );
    await openGate(key, "gate");
    for (const follower of followers) await follower.end(1000);
  });
});
