/** Triggers on the real Worker: times, cron, crashes, webhooks, and permissions. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { TriggerRecord } from "../../src/agents/trigger/core/record.ts";
import { D1Triggers } from "../../src/d1/triggers.ts";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import type { TriggerWithSecret } from "../../src/protocol/trigger-api.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { runsOf } from "./provider.ts";
import { rowsRead } from "./rows-read.ts";
import { ADA, crash, createAgent, createConversation, request } from "./world.ts";

const AUTHOR: Principal = { subject: "ann", tenant: "test", roles: ["author"] };
const MEMBER: Principal = { subject: "mia", tenant: "test", roles: ["member"] };
const FAR = { at: "2099-01-01T00:00:00Z" };
const HOUR = 3_600_000;

/** A workflow with a single node that reports its key and its body. */
const FLOW = {
  id: "triggered",
  inputSchema: {
    type: "object",
    properties: { key: { type: "string" }, body: {} },
    required: ["key"],
    additionalProperties: false,
  },
  initialNode: "one",
  nodes: [
    {
      ref: "one",
      task: "flow/work_once",
      inputMapping: { key: "input.key", name: "'one'", value: "has(input.body) ? input.body : null" },
    },
  ],
  transitions: [],
};

beforeAll(async () => {
  const init = { method: "POST", body: JSON.stringify(FLOW) };
  expect((await request("/api/libraries/triggered/workflows", init)).status).toBe(201);
});

/** Posts the workflow with another input; returns its reference. */
async function postFlow(input: object): Promise<string> {
  const id = `flow_${crypto.randomUUID().slice(0, 8)}`;
  const body = JSON.stringify({ ...FLOW, inputSchema: { ...FLOW.inputSchema, ...input }, id });
  expect((await request("/api/libraries/triggered/workflows", { method: "POST", body })).status).toBe(201);
  return `triggered/${id}`;
}

const flow = (key: string) => ({ workflow: "triggered/triggered", input: { key } });

/** Sends a request about triggers; fails the test unless the status is the expected one. */
async function call<Body = TriggerWithSecret>(
  method: string,
  path: string,
  status: number,
  body?: object,
  principal: Principal = ADA,
): Promise<Body> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(`/api/triggers${path}`, init, principal);
  const text = await response.text();
  expect(response.status, text).toBe(status);
  // SAFETY: what the API answers; tests assert the rest.
  return (text === "" ? {} : JSON.parse(text)) as Body;
}

const create = (when: object, starts: object, principal?: Principal) =>
  call("POST", "", 201, { when, starts }, principal);

function stubOf(id: string): DurableObjectStub {
  // SAFETY: the classes of the application are among the exports.
  const { Trigger } = exports as unknown as { Trigger: DurableObjectNamespace };
  return Trigger.getByName(`test:${id}`);
}

/** Sets the time of all actors, and lets the alarm of a trigger's actor fire. Its job may be some milliseconds after the time of the trigger. */
async function wakeAt(id: string, time: number): Promise<void> {
  vi.useFakeTimers({ toFake: ["Date"], now: time });
  onTestFinished(() => void vi.useRealTimers());
  await runDurableObjectAlarm(stubOf(id));
}

/** Reads a trigger until it is as it must be. */
function until(id: string, condition: (trigger: TriggerWithSecret) => unknown): Promise<TriggerWithSecret> {
  return vi.waitUntil(
    async () => {
      const trigger = await call("GET", `/${id}`, 200);
      return condition(trigger) ? trigger : undefined;
    },
    { timeout: 10_000, interval: 20 },
  );
}

async function runIn(trigger: { lastStarted?: object }): Promise<RunView> {
  const { runId } = (trigger.lastStarted ?? {}) as { runId?: string };
  const response = await request(`/api/runs/${runId}`);
  expect(response.status).toBe(200);
  return response.json<RunView>();
}

describe("G13 a trigger at a time", () => {
  test("starts one run, as the subject that created it", async () => {
    const key = crypto.randomUUID();
    const at = Date.now() + HOUR;
    const { id, nextAt } = await create({ at: new Date(at).toISOString() }, flow(key), AUTHOR);
    expect(nextAt).toBe(new Date(at).toISOString());
    await wakeAt(id, at - 60_000);
    expect(await call("GET", `/${id}`, 200)).not.toHaveProperty("lastFiredAt");
    await wakeAt(id, at + 1_000);
    const fired = await until(id, ({ lastStarted }) => lastStarted);
    expect(fired).not.toHaveProperty("nextAt");
    expect(await runIn(fired)).toMatchObject({ startedBy: "ann", input: { key } });
    await runsOf(key, 1);
    await wakeAt(id, at + HOUR);
    expect(await runsOf(key)).toHaveLength(1);
  });

  test("starts a turn of a conversation", async () => {
    const conversation = await createConversation(
      await createAgent({ identity: { systemPrompt: "Be brief." } }),
    );
    const at = Date.now() + HOUR;
    const starts = { conversationId: conversation.id, content: "!say Good morning." };
    const { id } = await create({ at: new Date(at).toISOString() }, starts);
    await wakeAt(id, at + 1_000);
    const { lastStarted } = await until(id, (trigger) => trigger.lastStarted);
    const { turnId } = lastStarted as { turnId: string };
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Good morning." });
    expect(await conversation.messages()).toMatchObject([{ content: "!say Good morning." }, {}]);
  });
});

describe("G13 a trigger by cron", () => {
  test("names times of its zone, fires at each, and after an outage once", async () => {
    const key = crypto.randomUUID();
    const zoned = await create({ cron: "30 6 * * *", timeZone: "Asia/Kolkata" }, flow(key));
    expect(zoned.nextAt).toMatch(/T01:00:00\.000Z$/);
    const { id, nextAt = "" } = await create({ cron: "*/30 * * * *" }, flow(key));
    const first = Date.parse(nextAt);
    await wakeAt(id, first + 1_000);
    const fired = await until(id, ({ lastStarted }) => lastStarted);
    expect(fired.nextAt).toBe(new Date(first + HOUR / 2).toISOString());
    await wakeAt(id, first + 12 * HOUR + 1_000);
    const again = await until(id, ({ lastFiredAt }) => lastFiredAt !== fired.lastFiredAt);
    expect(again.nextAt).toBe(new Date(first + 12.5 * HOUR).toISOString());
    await runsOf(key, 2);
    await wakeAt(id, first + 12 * HOUR + 600_000);
    expect(await runsOf(key)).toHaveLength(2);
  });

  test("A72 a crash after the time was noted, and one after the run was started: one run", async () => {
    const key = crypto.randomUUID();
    const { id, nextAt = "" } = await create({ cron: "*/5 * * * *" }, flow(key));
    const at = Date.parse(nextAt);
    await wakeAt(id, at + 1_000);
    await crash();
    await wakeAt(id, at + 61_000);
    const { lastStarted } = await until(id, (trigger) => trigger.lastStarted);
    await runsOf(key, 1);
    // The state after the actor died before it could store the started run.
    await runInDurableObject(stubOf(id), (_, { storage }) => {
      // SAFETY: only the trigger's store writes this value.
      const record = storage.kv.get("trigger") as TriggerRecord;
      const { starts, actsAs } = record;
      const due = { scheduledAt: at, since: at, starts, actsAs, attempts: 1, retryAt: 0 };
      storage.kv.put("trigger", { ...record, due });
    });
    await crash();
    await wakeAt(id, at + 122_000);
    expect((await until(id, ({ due }) => due === undefined)).lastStarted).toEqual(lastStarted);
    expect(await runsOf(key)).toHaveLength(1);
  });

  test("FIRE-5 does not fire while it is disabled, and continues with the next time", async () => {
    const key = crypto.randomUUID();
    const { id, nextAt = "" } = await create({ cron: "0 * * * *" }, flow(key));
    const at = Date.parse(nextAt);
    expect(await call("PATCH", `/${id}`, 200, { enabled: false })).not.toHaveProperty("nextAt");
    await wakeAt(id, at + 2 * HOUR + 1);
    expect(await call("GET", `/${id}`, 200)).not.toHaveProperty("lastFiredAt");
    const enabled = await call("PATCH", `/${id}`, 200, { enabled: true });
    expect(enabled.nextAt).toBe(new Date(at + 3 * HOUR).toISOString());
    await call("DELETE", `/${id}`, 204);
    await call("GET", `/${id}`, 404);
  });
});

/** A delivery. `changes` replace parts of the sender's request. */
async function deliver(
  { webhookPath = "", secret = "" }: Pick<TriggerWithSecret, "webhookPath" | "secret">,
  body: string,
  changes: { id?: string; time?: number; path?: string; signed?: string; header?: string } = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const { id = crypto.randomUUID(), time = Math.floor(Date.now() / 1_000) } = changes;
  const text = new TextEncoder().encode(changes.signed ?? `${time}.${id}.${body}`);
  const key = await crypto.subtle.importKey(
    "raw",
    new TextEncoder().encode(secret === "" ? "none" : secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const signature = [...new Uint8Array(await crypto.subtle.sign("HMAC", key, text))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
  const response = await exports.default.fetch(
    new Request(`http://dramatis.test${changes.path ?? webhookPath}`, {
      method: "POST",
      body,
      headers: {
        "dramatis-delivery": id,
        "dramatis-signature": changes.header ?? `t=${time},v1=${signature}`,
        // The test's `authorize` throws at this.
        "x-test-principal": "nobody",
      },
    }),
  );
  return { status: response.status, body: await response.json() };
}

const WEBHOOK = { webhook: true };

describe("G13 WEBHOOK-1 WEBHOOK-4 a webhook", () => {
  test("starts a run with the body beside the trigger's input", async () => {
    const key = crypto.randomUUID();
    const trigger = await create(WEBHOOK, flow(key));
    expect(trigger).toMatchObject({
      secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
      webhookPath: `/api/hooks/test/${trigger.id}`,
    });
    const answer = await deliver(trigger, JSON.stringify({ order: 17 }));
    expect(answer).toEqual({ status: 202, body: { runId: expect.stringMatching(/^run_/) } });
    expect((await runsOf(key, 1))[0]).toMatchObject({ input: { order: 17 } });
    expect(await call("GET", `/${trigger.id}`, 200)).toMatchObject({ lastStarted: answer.body });
    expect((await deliver(trigger, "")).status).toBe(202);
    expect((await runsOf(key, 2)).map(({ input }) => input)).toContain(null);
  });

  test("starts a turn with the body after the trigger's content", async () => {
    const conversation = await createConversation(
      await createAgent({ identity: { systemPrompt: "Be brief." } }),
    );
    const trigger = await create(WEBHOOK, { conversationId: conversation.id, content: "An order:" });
    const { body } = await deliver(trigger, '{"order":17}');
    await conversation.ended(body.turnId as string);
    const other = await create(WEBHOOK, { conversationId: conversation.id });
    await conversation.ended((await deliver(other, '"!say Hello."')).body.turnId as string);
    expect((await conversation.messages()).filter(({ role }) => role === "user")).toMatchObject([
      { content: 'An order:\n\n{\n  "order": 17\n}' },
      { content: "!say Hello." },
    ]);
    expect(await deliver(other, "")).toMatchObject({ status: 422, body: { code: "INVALID_INPUT" } });
  });

  test("RECALL-8 contains untrusted text: a memory from it is tainted, and a memory from a trigger's own content is not", async () => {
    const memory = { scope: "user" as const, extract: true };
    const agent = await createAgent({ identity: { systemPrompt: "Be brief." }, memory });
    const conversation = await createConversation(agent);
    const own = { conversationId: conversation.id, content: "Remember that my dog is called Rex." };
    const triggers = [await create(WEBHOOK, own), await create(WEBHOOK, { conversationId: conversation.id })];
    for (const [index, body] of ["", '"Remember that my cat is called Miso."'].entries()) {
      const trigger = triggers[index];
      if (trigger === undefined) throw new Error("A trigger is missing.");
      await conversation.ended((await deliver(trigger, body)).body.turnId as string);
    }
    const response = await request(`/api/agents/${agent}/memories`, {}, ADA);
    const { memories } = (await response.json()) as { memories: { content: string; tainted?: true }[] };
    const isTainted = (name: string) => memories.find(({ content }) => content.includes(name))?.tainted;
    expect([isTainted("Miso"), isTainted("Rex")]).toEqual([true, undefined]);
  });

  test("WEBHOOK-3 a repeated delivery starts no run; another delivery of the same body starts a run; a refused delivery can be repeated", async () => {
    const key = crypto.randomUUID();
    const trigger = await create(WEBHOOK, flow(key));
    const first = await deliver(trigger, '{"n":1}', { id: "one" });
    expect(await deliver(trigger, '{"n":1}', { id: "one" })).toEqual(first);
    await crash();
    expect(await deliver(trigger, '{"n":1}', { id: "one" })).toEqual(first);
    expect(await deliver(trigger, '{"n":2}', { id: "one" })).toMatchObject({
      status: 409,
      body: { code: "IDEMPOTENCY_CONFLICT" },
    });
    expect((await deliver(trigger, '{"n":1}', { id: "two" })).body).not.toEqual(first.body);
    await runsOf(key, 2);
    const strict = await postFlow({ properties: { key: { type: "string" }, body: { type: "string" } } });
    await call("PATCH", `/${trigger.id}`, 200, { starts: { workflow: strict, input: { key } } });
    expect(await deliver(trigger, "{}", { id: "three" })).toMatchObject({ status: 422 });
    expect(await call("GET", `/${trigger.id}`, 200)).toMatchObject({ lastError: { code: "INVALID_INPUT" } });
    await call("PATCH", `/${trigger.id}`, 200, { starts: flow(key) });
    expect(await deliver(trigger, "{}", { id: "three" })).toMatchObject({ status: 202 });
    // The trigger has changed since the first delivery. The stored answer of that delivery stays.
    expect(await deliver(trigger, '{"n":1}', { id: "one" })).toEqual(first);
    expect(await runsOf(key, 3)).toHaveLength(3);
  });

  test("WEBHOOKSIGN-1 every other request gets the same answer, and starts no run", async () => {
    const key = crypto.randomUUID();
    const trigger = await create(WEBHOOK, flow(key));
    const other = await create(WEBHOOK, flow(key));
    const timed = await create(FAR, flow(key));
    const now = Math.floor(Date.now() / 1_000);
    const refusals = [
      await deliver({ ...trigger, secret: "whsec_wrong" }, "{}"),
      await deliver({ ...trigger, secret: other.secret ?? "" }, "{}"),
      await deliver(trigger, "{}", { time: now - 301 }),
      await deliver(trigger, "{}", { time: now + 310 }),
      await deliver(trigger, "{}", { id: "a", signed: `${now}.b.{}`, time: now }),
      await deliver(trigger, "{}", { signed: `${now}.{}`, time: now }),
      await deliver(trigger, '{"a":1}', { id: "a", signed: `${now}.a.{}`, time: now }),
      await deliver(trigger, "{}", { header: "t=1" }),
      await deliver(trigger, "{}", { id: "a.b" }),
      await deliver(trigger, "{}", { path: `/api/hooks/elsewhere/${trigger.id}` }),
      await deliver(trigger, "{}", { path: "/api/hooks/test/trig_01JD0000000000000000000000" }),
      await deliver(trigger, "{}", { path: "/api/hooks/test/nothing" }),
      await deliver(trigger, "{}", { path: `/api/hooks/test/${timed.id}` }),
      await deliver(trigger, "no JSON", { header: `t=${now},v1=${"0".repeat(64)}` }),
    ];
    const [first] = refusals;
    expect(first).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    for (const refusal of refusals) expect(refusal).toEqual(first);
    expect(await runsOf(key)).toEqual([]);
    expect(await deliver(trigger, "no JSON")).toMatchObject({ status: 400, body: { code: "INVALID_JSON" } });
    expect(await deliver(trigger, `"${"x".repeat(256 * 1024)}"`)).toMatchObject({ status: 413 });
    await call("PATCH", `/${trigger.id}`, 200, { enabled: false });
    expect(await deliver(trigger, "{}")).toMatchObject({ status: 409, body: { code: "CONFLICT" } });
  });

  test("WEBHOOK-1 a request to an unknown trigger leaves no storage", async () => {
    const id = "trig_01JD0000000000000000000009";
    const marked = () => runInDurableObject(stubOf(id), (_, { storage }) => storage.kv.get("marker"));
    await runInDurableObject(stubOf(id), (_, { storage }) => storage.kv.put("marker", true));
    expect(await marked()).toBe(true);
    const header = `t=${Math.floor(Date.now() / 1_000)},v1=${"0".repeat(64)}`;
    const nobody = { secret: "none", webhookPath: `/api/hooks/test/${id}` };
    expect((await deliver(nobody, "{}", { header })).status).toBe(404);
    await expect.poll(() => marked()).toBeUndefined();
  });

  test("WEBHOOK-2 the secret is shown once; a new secret invalidates the old secret", async () => {
    const trigger = await create(WEBHOOK, flow("k"));
    const { secret = "" } = trigger;
    const old = { ...trigger };
    for (const answer of [
      await call("GET", `/${trigger.id}`, 200),
      await call("PATCH", `/${trigger.id}`, 200, { enabled: true }),
    ])
      expect(JSON.stringify(answer)).not.toContain(secret);
    const rotated = await call("POST", `/${trigger.id}/rotate`, 200);
    expect(rotated.secret).not.toBe(secret);
    expect((await deliver(old, "{}")).status).toBe(404);
    expect((await deliver(rotated, "{}")).status).toBe(202);
    const { id } = await create(FAR, flow("k"));
    await call("POST", `/${id}/rotate`, 409);
  });
});

describe("G13 TRIGGER-1 TRIGGER-2 TRIGGER-3 TRIGGER-4 the door of triggers", () => {
  test("members create no triggers, and triggers of other users are not found", async () => {
    await call("POST", "", 403, { when: FAR, starts: flow("k") }, MEMBER);
    const { id } = await create(FAR, flow("k"), AUTHOR);
    const others: Principal[] = [
      MEMBER,
      { subject: "abe", tenant: "test", roles: ["author"] },
      { subject: "ann", tenant: "elsewhere", roles: ["admin"] },
    ];
    for (const principal of others) {
      await call("GET", `/${id}`, 404, undefined, principal);
      await call("PATCH", `/${id}`, 404, { enabled: false }, principal);
      await call("POST", `/${id}/rotate`, 404, undefined, principal);
      await call("DELETE", `/${id}`, 404, undefined, principal);
    }
    const operator: Principal = { subject: "op", tenant: "test", roles: ["operator"] };
    await call("GET", `/${id}`, 200, undefined, operator);
    await call("PATCH", `/${id}`, 403, { enabled: false }, operator);
    await call("GET", "/nothing", 404);
    const left: Principal = { ...AUTHOR, roles: [] };
    await call("PATCH", `/${id}`, 403, { starts: flow("other") }, left);
    await call("PATCH", `/${id}`, 200, { enabled: false }, left);
    await call("DELETE", `/${id}`, 204, undefined, left);
  });

  test("a user who changes a trigger takes it over, unless the user only disables it", async () => {
    const { id } = await create(FAR, flow("k"), AUTHOR);
    expect(await call("PATCH", `/${id}`, 200, { enabled: false })).toMatchObject({ actsAs: "ann" });
    expect(await call("PATCH", `/${id}`, 200, { enabled: true })).toMatchObject({
      actsAs: "ada",
      createdBy: "ann",
    });
    await call("GET", `/${id}`, 404, undefined, AUTHOR);
    const trigger = await create(WEBHOOK, flow("k"), AUTHOR);
    expect(await call("POST", `/${trigger.id}/rotate`, 200)).toMatchObject({ actsAs: "ada" });
  });

  test("TRIGGER-4 WEBHOOK-5 a webhook with an input that no body can complete is refused, and a webhook that needs a body is accepted", async () => {
    const workflow = await postFlow({ required: ["key", "body"] });
    for (const input of [{}, { key: 1 }, { key: "own", more: 1 }]) {
      const refused = await call<{ errors: object[] }>("POST", "", 422, {
        when: WEBHOOK,
        starts: { workflow, input },
      });
      expect(refused).toMatchObject({
        code: "INVALID_INPUT",
        errors: [{ path: expect.stringMatching(/^\/starts\/input/) }],
      });
    }
    await create(WEBHOOK, { workflow, input: { key: "own" } });
    await call("POST", "", 422, { when: FAR, starts: { workflow, input: { key: "own" } } });
  });

  test("TRIGGER-4 of two changes at once, one is refused", async () => {
    let deep = "triggered/triggered";
    for (let level = 0; level < 7; level++) {
      const id = `deep_${level}_${crypto.randomUUID().slice(0, 8)}`;
      const inner = { ref: "one", workflow: deep, inputMapping: { key: "input.key" } };
      const body = JSON.stringify({ ...FLOW, id, nodes: [inner] });
      expect((await request("/api/libraries/triggered/workflows", { method: "POST", body })).status).toBe(
        201,
      );
      deep = `triggered/${id}`;
    }
    const { id } = await create(FAR, { workflow: deep, input: { key: "own" } }, AUTHOR);
    const patch = (body: object, principal: Principal) =>
      request(`/api/triggers/${id}`, { method: "PATCH", body: JSON.stringify(body) }, principal);
    const answers = await Promise.all([
      patch({ when: { at: "2099-02-10T00:00:00Z" } }, ADA),
      patch({ starts: flow("other") }, AUTHOR),
    ]);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(1);
    expect(await call("GET", `/${id}`, 200)).not.toMatchObject({
      actsAs: "ada",
      starts: { input: { key: "other" } },
    });
  });

  test("TRIGGER-4 a new secret is given only to a subject that may start the trigger's target", async () => {
    const agentId = await createAgent({ identity: { systemPrompt: "Be brief." } });
    const body = JSON.stringify({ agentId });
    const created = await request("/api/conversations", { method: "POST", body }, AUTHOR);
    const { id: conversationId } = await created.json<{ id: string }>();
    const { id } = await create(WEBHOOK, { conversationId, content: "Hello." }, AUTHOR);
    const admin: Principal = { subject: "root", tenant: "test", roles: ["admin"] };
    await call("PATCH", `/${id}`, 404, { enabled: true }, admin);
    await call("POST", `/${id}/rotate`, 404, undefined, admin);
  });

  test("TRIGGERS-1 lists have the triggers that act as the caller, and all for operators", async () => {
    const reader: Principal = { subject: "lea", tenant: "listed", roles: ["author"] };
    const other: Principal = { ...reader, subject: "leo" };
    const admin: Principal = { subject: "root", tenant: "listed", roles: ["admin"] };
    const init = { method: "POST", body: JSON.stringify(FLOW) };
    expect((await request("/api/libraries/triggered/workflows", init, admin)).status).toBe(201);
    const made: string[] = [];
    for (const principal of [reader, other, reader]) made.push((await create(FAR, flow("k"), principal)).id);
    const list = async (principal: Principal, query = "") =>
      call<{ triggers: { id: string }[]; nextCursor?: string }>("GET", query, 200, undefined, principal);
    const idsOf = async (principal: Principal, query?: string) =>
      (await list(principal, query)).triggers.map(({ id }) => id);
    expect(await idsOf(reader)).toEqual([made[0], made[2]]);
    expect(await idsOf(admin, "?order=desc")).toEqual(made.toReversed());
    const { triggers, nextCursor } = await list(admin, "?limit=2");
    expect(triggers.map(({ id }) => id)).toEqual(made.slice(0, 2));
    expect(triggers[0]).toMatchObject({ starts: { workflow: "triggered/triggered" }, actsAs: "lea" });
    expect(JSON.stringify(triggers)).not.toContain("input");
    expect(await idsOf(admin, `?cursor=${nextCursor}`)).toEqual(made.slice(2));
    await call("PATCH", `/${made[0]}`, 200, { starts: flow("k") }, admin);
    await call("DELETE", `/${made[2]}`, 204, undefined, admin);
    expect(await idsOf(reader)).toEqual([]);
    expect(await idsOf(admin)).toEqual(made.slice(0, 2));
    await call("GET", "?cursor=x", 422);
  });

  test("TRIGGERS-2 a page of one subject reads only its own rows", async () => {
    const triggers = new D1Triggers(env.DB);
    const tenant = `read-${crypto.randomUUID()}`;
    const [time, starts] = ["2026-01-01T00:00:00.000Z", { workflow: { library: "l", id: "w" } }];
    for (let n = 0; n < 200; n++)
      await triggers.put(tenant, {
        ...{
          id: `trig_${String(n).padStart(26, "0")}`,
          actsAs: n % 10 === 0 ? "lea" : "leo",
          createdBy: "root",
        },
        ...{ enabled: true, when: { at: time }, starts, createdAt: time, updatedAt: time },
      });
    for (const order of ["asc", "desc"] as const)
      for (const [subject, roles] of [
        ["lea", []],
        ["root", ["admin"]],
      ] as const) {
        const page = () => triggers.list({ tenant, subject, roles: [...roles] }, { limit: 10, order });
        expect((await page()).items).toHaveLength(10);
        expect(await rowsRead(page)).toBeLessThanOrEqual(2 * 11);
      }
  });

  test("FIRE-7 it speaks only if its subject is a participant, whatever the subject's roles", async () => {
    const conversation = await createConversation(
      await createAgent({ identity: { systemPrompt: "Be brief." } }),
    );
    const starts = { conversationId: conversation.id, content: "!say Hi." };
    const admin: Principal = { subject: "root", tenant: "test", roles: ["admin"] };
    await call("POST", "", 404, { when: FAR, starts }, admin);
    const { id } = await create(WEBHOOK, starts);
    await call("PATCH", `/${id}`, 404, { enabled: true }, admin);
  });

  test("UPGRADE-3 UPGRADE-4 a trigger and a run of a newer version answer 503, and serve again", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => log.mockRestore());
    const { id } = await create(FAR, flow("k"));
    const body = JSON.stringify(flow(crypto.randomUUID()));
    const { id: runId } = await (await request("/api/runs", { method: "POST", body })).json<RunView>();
    // SAFETY: the classes of the application are among the exports.
    const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
    for (const [stub, key, path] of [
      [stubOf(id), "trigger", `/api/triggers/${id}`],
      [Coordinator.getByName(`test:${runId}`), "run", `/api/runs/${runId}`],
    ] as const)
      for (const [schema, status] of [
        [1_000, 503],
        [1, 200],
      ]) {
        await runInDurableObject(stub, (_, { storage }) => {
          storage.kv.put(key, { ...storage.kv.get<object>(key), schema });
        });
        await evictDurableObject(stub);
        expect((await request(path)).status).toBe(status);
      }
  });

  test("invalid triggers are refused with the fix", async () => {
    const issues = async (body: object, status = 422) => {
      const { errors, code } = await call<{ code: string; errors?: { path: string }[] }>(
        "POST",
        "",
        status,
        body,
      );
      return errors?.[0]?.path ?? code;
    };
    const starts = flow("k");
    expect(await issues({ when: { cron: "61 * * * *" }, starts })).toBe("/when/cron");
    expect(await issues({ when: { cron: "* * * * *", timeZone: "Mars/Base" }, starts })).toBe(
      "/when/timeZone",
    );
    expect(await issues({ when: { at: "2020-01-01T00:00:00Z" }, starts })).toBe("/when/at");
    expect(await issues({ when: { at: "tomorrow" }, starts })).toBe("/when/at");
    expect(await issues({ when: {}, starts })).toBe("/when");
    expect(await issues({ when: FAR, starts: { workflow: "triggered/unknown" } }, 404)).toBe("NOT_FOUND");
    expect(await issues({ when: FAR, starts: { workflow: "triggered/triggered" } })).toBe(
      "/starts/input/key",
    );
    const conversationId = "conv_01JD0000000000000000000000";
    expect(await issues({ when: FAR, starts: { conversationId } })).toBe("/starts/content");
    expect(await issues({ when: FAR, starts: { conversationId, content: "Hi." } }, 404)).toBe("NOT_FOUND");
    const { id } = await create(FAR, starts);
    await call("PATCH", `/${id}`, 422, { when: WEBHOOK });
    await call("PATCH", `/${id}`, 422, {});
  });
});
