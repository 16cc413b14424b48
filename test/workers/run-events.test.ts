/** Runs that are followed as server-sent events. */
import { EventSourceParserStream } from "eventsource-parser/stream";
import { describe, expect, test } from "vitest";
import { MAX_RUN_READERS } from "../../src/agents/coordinator/inbound/run-readers.ts";
import type { RunEntryView, RunView } from "../../src/protocol/run-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { openGate, runsOf } from "./provider.ts";
import { ADA, crash, request } from "./world.ts";

const item = { type: "object", properties: { key: { type: "string" }, value: {} }, required: ["key"] };

async function call<Body>(method: string, path: string, status: number, body?: object): Promise<Body> {
  const response = await request(
    path,
    body === undefined ? { method } : { method, body: JSON.stringify(body) },
  );
  const text = await response.text();
  expect(response.status, text).toBe(status);
  // SAFETY: what the API answers; tests assert the rest.
  return JSON.parse(text) as Body;
}

/** Starts a run of one node that waits at the gate `gate`, or passes when `wait` is false. */
async function start({ wait = true, value = "small" as unknown } = {}): Promise<{ id: string; key: string }> {
  const id = `follow_${crypto.randomUUID().slice(0, 8)}`;
  const node = {
    ref: "one",
    task: "flow/work_idempotent",
    inputMapping: {
      key: "input.key",
      name: "'one'",
      value: "input.value",
      ...(wait ? { wait: "'gate'" } : {}),
    },
  };
  const flow = { id, inputSchema: item, initialNode: "one", nodes: [node], transitions: [] };
  await call("POST", "/api/libraries/follow/workflows", 201, flow);
  const key = crypto.randomUUID();
  const input = { key, value };
  const run = await call<RunView>("POST", "/api/runs", 201, { workflow: `follow/${id}`, input });
  return { id: run.id, key };
}

interface Event {
  id?: string | undefined;
  data: string;
}

/** A stream of a run's events, one by one. */
class Follower {
  readonly events: (RunEntryView & { v: number })[] = [];
  readonly ids: (string | undefined)[] = [];
  readonly #reader: ReadableStreamDefaultReader<Event>;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body
      // SAFETY: the platform takes buffer sources of all kinds here; bytes are one.
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
      .pipeThrough(new EventSourceParserStream())
      .getReader();
  }

  static async open(id: string, query = "", init: RequestInit = {}, principal = ADA): Promise<Follower> {
    const response = await request(`/api/runs/${id}/events${query}`, init, principal);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    if (response.body === null) throw new Error("The response has no body.");
    return new Follower(response.body);
  }

  async next(): Promise<(RunEntryView & { v: number }) | null> {
    const { done, value } = await this.#reader.read();
    if (done) return null;
    this.ids.push(value.id);
    // SAFETY: tests assert what they read.
    const event = JSON.parse(value.data) as RunEntryView & { v: number };
    this.events.push(event);
    return event;
  }

  async upTo(type: string): Promise<void> {
    for (let event = await this.next(); event !== null; event = await this.next())
      if (event.type === type) return;
    throw new Error(`The stream ended without ${type}.`);
  }

  async rest(): Promise<void> {
    while ((await this.next()) !== null);
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }
}

const journal = async (id: string) =>
  (await call<{ entries: RunEntryView[] }>("GET", `/api/runs/${id}/journal?limit=200`, 200)).entries;

describe("RUNSTREAM-1 a follower of a run", () => {
  test("gets the entries so far, then new entries as they are written, and the end", async () => {
    const { id, key } = await start();
    await runsOf(key, 1);
    const follower = await Follower.open(id);
    await follower.upTo("task.dispatched");
    await openGate(key, "gate");
    await follower.rest();
    const entries = await journal(id);
    expect(follower.events).toEqual(entries.map((entry) => ({ v: 1, ...entry })));
    expect(follower.ids).toEqual(entries.map(({ seq }) => String(seq)));
    expect(follower.events.at(-1)?.type).toBe("workflow.completed");
  });

  test("continues after `from`, or after `Last-Event-ID`, which has precedence; after the end the answer is 204", async () => {
    const { id, key } = await start();
    await runsOf(key, 1);
    await openGate(key, "gate");
    const all = await Follower.open(id);
    await all.rest();
    const last = all.events.length;
    const seqs = async (query: string, headers = {}) => {
      const follower = await Follower.open(id, query, { headers });
      await follower.rest();
      return follower.events.map(({ seq }) => seq);
    };
    expect(await seqs("?from=0")).toHaveLength(last);
    expect(await seqs("?from=4")).toEqual(all.events.slice(4).map(({ seq }) => seq));
    expect(await seqs("?from=1", { "last-event-id": `${last - 1}` })).toEqual([last]);
    const over = await request(`/api/runs/${id}/events`, { headers: { "last-event-id": `${last}` } });
    expect([over.status, await over.text()]).toEqual([204, ""]);
    const head = await request(`/api/runs/${id}/events?from=${last}`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    await call("GET", `/api/runs/${id}/events?from=x`, 422);
  });

  test("is refused runs of other users", async () => {
    const { id } = await start({ wait: false });
    const bob: Principal = { subject: "bob", tenant: "test", roles: ["member"] };
    for (const path of ["events", "workflow"])
      expect((await request(`/api/runs/${id}/${path}`, {}, bob)).status).toBe(404);
    expect((await request(`/api/runs/${id}/events`, { method: "HEAD" }, bob)).status).toBe(404);
    const operator: Principal = { subject: "op", tenant: "test", roles: ["operator"] };
    await (await Follower.open(id, "", {}, operator)).rest();
  });

  test("gets long entries completely, and does not delay a run that it does not read", async () => {
    const value = "é".repeat(300_000);
    const { id, key } = await start({ value });
    const slow = await Follower.open(id);
    await runsOf(key, 1);
    await openGate(key, "gate");
    const quick = await Follower.open(id);
    await quick.rest();
    expect(quick.events.at(-1)?.type).toBe("workflow.completed");
    await slow.rest();
    expect(slow.events).toEqual(quick.events);
    expect(slow.events.find(({ type }) => type === "task.completed")?.data).toMatchObject({
      output: { value },
    });
  });

  test("continues at its position after a crash of the actor", async () => {
    const { id, key } = await start();
    await runsOf(key, 1);
    const first = await Follower.open(id);
    await first.upTo("task.dispatched");
    await crash();
    await expect(first.rest()).rejects.toThrow();
    const second = await Follower.open(id, "", { headers: { "last-event-id": first.ids.at(-1) ?? "" } });
    await openGate(key, "gate");
    await second.rest();
    const seqs = [...first.events, ...second.events].map(({ seq }) => seq);
    expect(seqs).toEqual((await journal(id)).map(({ seq }) => seq));
  });
});

test("RUNSTREAM-5 the number of followers is limited, and leaving followers make room", async () => {
  const { id, key } = await start();
  await runsOf(key, 1);
  const followers: Follower[] = [];
  for (let n = 0; n < MAX_RUN_READERS; n++) followers.push(await Follower.open(id));
  expect((await request(`/api/runs/${id}/events`)).status).toBe(429);
  await followers.pop()?.leave();
  // The next write finds out that its client has left.
  const next = () => request(`/api/runs/${id}/events`);
  await expect.poll(async () => (await next()).status).toBe(200);
  for (const follower of followers) await follower.leave();
  await openGate(key, "gate");
});

test("RUNSTREAM-3 the stream of an expired principal ends with an error", async () => {
  const { id, key } = await start();
  await runsOf(key, 1);
  const follower = await Follower.open(id, "", {}, { ...ADA, expiresAt: Date.now() + 1_500 });
  await follower.rest();
  expect(follower.events.at(-1)).toMatchObject({ v: 1, type: "error", data: { code: "UNAUTHENTICATED" } });
  expect(follower.ids.at(-1), "a reconnection continues at the last entry").toBeUndefined();
  await openGate(key, "gate");
});

test("the workflow of a run never changes", async () => {
  const { id } = await start({ wait: false });
  const run = await call<RunView>("GET", `/api/runs/${id}`, 200);
  const { library, id: name, version } = run.workflow;
  const path = `/api/libraries/${library}/workflows/${name}/versions/${version}`;
  const { definition, hash } = await call<{ definition: object; hash: string }>("GET", path, 200);
  const pinned = await call<object>("GET", `/api/runs/${id}/workflow`, 200);
  expect(pinned).toEqual({ ...run.workflow, hash, definition });
});
