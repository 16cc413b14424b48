/** The mailbox on workerd: real actors that crash, refuse and are unreachable, and dead letters over HTTP. */
import {
  abortAllDurableObjects,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { ulid } from "ulid";
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from "vitest";
import { z } from "zod";
import { durableActors } from "../../src/agents/base/lookup/durable-actors.ts";
import { entrypointOf, namespaceOf } from "../../src/agents/base/lookup/exported-classes.ts";
import { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import { MAX_ATTEMPTS } from "../../src/agents/base/mailbox/mailbox-limits.ts";
import type { OutboxEntry } from "../../src/agents/base/mailbox/outbox-entry.ts";
import type { MailboxPorts } from "../../src/agents/base/mailbox/ports.ts";
import { systemClock } from "../../src/ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import type { MailboxActor } from "../../src/protocol/actor-lookup.ts";
import { deadLetter as letterView } from "../../src/protocol/conversation-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { CostCounter } from "../support/counting.ts";
import { countingStorage } from "../support/counting-storage.ts";
import { type Answer, call, createAgent, createConversation, expectProblem, get } from "./http-client.ts";
import type { Courier, Trap } from "./worker.ts";

const TENANT = "mail";
const OPERATOR: Principal = { subject: "op", tenant: TENANT, roles: ["operator"] };
const MEMBER: Principal = { subject: "mel", tenant: TENANT, roles: ["member"] };
const STRANGER: Principal = { subject: "op", tenant: "elsewhere", roles: ["operator"] };
const ACTOR_ADMIN: Principal = { subject: "ada", tenant: TENANT, roles: ["admin"] };

let errors: MockInstance<typeof console.error>;

const logged = () => errors.mock.calls.flat().join();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
  errors = vi.spyOn(console, "error").mockReturnValue();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const newOperation = () => `op_${ulid()}`;

/** A courier. Each call gets a new stub, because a crash of the actor breaks its stubs. */
class TestCourier {
  readonly id = crypto.randomUUID();

  async actor() {
    return getAgentByName<Cloudflare.Env, Courier>(exports.Courier, `${TENANT}:${this.id}`);
  }

  /** Returns the interface that other actors' mailboxes use. */
  async peer(): Promise<MailboxActor> {
    // SAFETY: a courier has a mailbox; the type of its stub nests too deep for an envelope's JSON.
    return (await this.actor()) as unknown as MailboxActor;
  }

  async set(what: "trap" | "mood", value: Trap | string): Promise<void> {
    await (await this.actor()).set(what, value);
  }

  async record(list: Parameters<Courier["record"]>[0]): Promise<unknown[]> {
    return (await this.actor()).record(list);
  }

  async send(to: TestCourier, operationId: string, note: string, rollBack = false): Promise<void> {
    await (await this.actor()).dispatch(to.id, operationId, note, rollBack);
  }

  /** Returns the outbox, read from storage. */
  async outbox(): Promise<Omit<OutboxEntry, "envelope">[]> {
    return runInDurableObject(await this.actor(), (_, { storage }) =>
      [...storage.kv.list<Omit<OutboxEntry, "envelope">>({ prefix: "mailbox:out:" })].map(
        ([, entry]) => entry,
      ),
    );
  }

  /** Waits until no attempt is under way. */
  async rested(): Promise<void> {
    await expect.poll(async () => (await this.outbox()).every(({ dueAt }) => dueAt !== null)).toBe(true);
  }

  async empty(): Promise<void> {
    await expect.poll(() => this.outbox()).toEqual([]);
  }

  /** Moves the clock and fires the actor's alarm. */
  async wake(milliseconds = 16 * 60_000): Promise<boolean> {
    vi.setSystemTime(Date.now() + milliseconds);
    return runDurableObjectAlarm(await this.actor());
  }

  /** Fires the alarm of each attempt until the outbox is empty. */
  async exhaust(): Promise<void> {
    for (let attempt = 0; attempt <= MAX_ATTEMPTS; attempt++) {
      await this.rested();
      if ((await this.outbox()).length === 0) return;
      await this.wake();
    }
    throw new Error("The attempts do not end.");
  }
}

const pair = (): [TestCourier, TestCourier] => [new TestCourier(), new TestCourier()];
const crash = () => abortAllDurableObjects();

/** Creates a dead letter that its receiver refused. */
async function deadLetter(): Promise<{ id: string; sender: TestCourier; receiver: TestCourier }> {
  const [sender, receiver] = pair();
  const id = newOperation();
  await receiver.set("mood", "refuse");
  await sender.send(receiver, id, "unwanted");
  await sender.empty();
  await expect.poll(async () => (await listed()).includes(id)).toBe(true);
  return { id, sender, receiver };
}

const letterList = z.strictObject({
  deadLetters: z.array(letterView),
  nextCursor: z.exactOptional(z.string()),
});
const letters = ({ body }: Answer) => letterList.parse(body);

async function listed(principal = OPERATOR): Promise<string[]> {
  const answer = await get("/api/dead-letters?limit=200", principal);
  expect(answer.status).toBe(200);
  return letters(answer).deadLetters.map(({ id }) => id);
}

const redeliver = (id: string, principal = OPERATOR) =>
  call("POST", `/api/dead-letters/${id}/redeliver`, undefined, principal);

describe("delivery", () => {
  test("MAIL-10 MAIL-11 an envelope arrives once, its outcome is reported, and effects follow the commit", async () => {
    const [sender, receiver] = pair();
    const operationId = newOperation();
    await sender.send(receiver, operationId, "hello");
    await sender.empty();
    expect(await receiver.record("acts")).toEqual(["hello"]);
    expect(await receiver.record("effects")).toEqual(["hello"]);
    expect(await sender.record("told")).toEqual([
      { operationId, status: "delivered", result: { done: "hello" }, late: false },
    ]);
    expect(await sender.wake(), "the wake-up of the commit fires").toBe(true);
    expect(await sender.wake(), "and was the last").toBe(false);
  });

  test("MAIL-10 a rollback sends no envelope and leaves no wake-up", async () => {
    const [sender, receiver] = pair();
    await expect(sender.send(receiver, newOperation(), "never", true)).rejects.toThrow("rolled back");
    expect(await sender.record("dispatched")).toEqual([]);
    expect(await sender.outbox()).toEqual([]);
    expect(await sender.wake()).toBe(false);
    expect(await receiver.record("attempts")).toEqual([]);
  });

  test("MAIL-10 after a crash right after the commit, the alarm delivers", async () => {
    const [sender, receiver] = pair();
    await receiver.set("trap", "hang");
    await sender.send(receiver, newOperation(), "survives");
    await expect.poll(() => receiver.record("attempts")).toEqual([1]);
    await crash();
    expect(await sender.record("told")).toEqual([]);
    expect(await sender.wake(6_000)).toBe(true);
    await sender.empty();
    expect(await receiver.record("attempts")).toEqual([1, 2]);
    expect(await receiver.record("acts")).toEqual(["survives"]);
    expect(await sender.record("told")).toMatchObject([{ status: "delivered" }]);
  });

  test("WAKE-1 if the wake-up of an envelope cannot be written, the envelope is not sent, and its decision is rolled back", async () => {
    const [sender, receiver] = pair();
    await sender.send(receiver, newOperation(), "first");
    await sender.empty();
    await sender.wake();
    await runInDurableObject(await sender.actor(), (_, { storage }) => {
      storage.sql.exec(`CREATE TRIGGER full BEFORE INSERT ON cf_agents_jobs
        BEGIN SELECT raise(ABORT, 'full'); END`);
    });
    await expect(sender.send(receiver, newOperation(), "second")).rejects.toThrow("could not be written");
    expect(await sender.record("dispatched")).toEqual(["first"]);
    expect(await sender.outbox()).toEqual([]);
    expect(await receiver.record("acts")).toEqual(["first"]);
  });

  test("MAIL-10 sending moves a later wake-up forward", async () => {
    const [sender, receiver] = pair();
    const armed = async () =>
      runInDurableObject(await sender.actor(), (_, { storage }) => {
        const { time } = storage.sql
          .exec<{ time: number }>("SELECT time FROM cf_agents_jobs WHERE id = 'dramatis-wakeups'")
          .one();
        return time - Date.now();
      });
    await receiver.set("mood", "busy");
    await sender.send(receiver, newOperation(), "later");
    await sender.rested();
    await sender.wake(6_000);
    expect(await armed()).toBeGreaterThan(6_000);
    await sender.send(new TestCourier(), newOperation(), "now");
    expect(await armed()).toBeLessThanOrEqual(5_000);
  });

  test("MAIL-5 an evicted sender continues", async () => {
    const [sender, receiver] = pair();
    await receiver.set("trap", "throw");
    await sender.send(receiver, newOperation(), "patient");
    await sender.rested();
    expect(await sender.outbox()).toMatchObject([{ attempt: 1, unanswered: true }]);
    await evictDurableObject(await sender.actor());
    await sender.wake();
    await sender.empty();
    expect(await receiver.record("attempts")).toEqual([1, 2]);
  });

  test.each(["crash before", "crash after"] as const)(
    "MAIL-6 MAIL-14 a receiver with a %s its commit acts once, and the outcome is delivered",
    async (trap) => {
      const [sender, receiver] = pair();
      await receiver.set("trap", trap);
      await sender.send(receiver, newOperation(), trap);
      await sender.rested();
      expect(await receiver.record("acts")).toEqual(trap === "crash after" ? [trap] : []);
      await sender.wake();
      await sender.empty();
      expect(await receiver.record("acts")).toEqual([trap]);
      expect(await receiver.record("attempts")).toEqual([1, 2]);
      expect(await sender.record("told")).toMatchObject([{ status: "delivered", result: { done: trap } }]);
    },
  );

  test("MAIL-6 a repeated delivery gets the same answer and acts once", async () => {
    const [sender, receiver] = pair();
    const envelope = {
      operationId: newOperation(),
      from: { kind: "courier", tenant: TENANT, id: sender.id },
      to: { kind: "courier", tenant: TENANT, id: receiver.id },
      type: "work",
      body: { note: "again" },
      sentAt: Date.now(),
    };
    const answers: unknown[] = [];
    for (const number of [1, 1, 2]) {
      answers.push(await (await receiver.peer()).receive(envelope, { number, last: false }));
    }
    expect(answers).toEqual(Array.from({ length: 3 }, () => ({ type: "done", result: { done: "again" } })));
    expect(await receiver.record("acts")).toEqual(["again"]);
  });

  test("MAIL-2 MAIL-15 both sides refuse envelopes for other actors or tenants, without a record", async () => {
    const [sender, receiver] = pair();
    const to = { kind: "courier", tenant: TENANT, id: receiver.id };
    const good = {
      operationId: newOperation(),
      from: { ...to, id: sender.id },
      to,
      type: "work",
      body: { note: "x" },
      sentAt: Date.now(),
    };
    const bad: [string, object][] = [
      ["INVALID_INPUT", { ...good, from: { ...good.from, tenant: "elsewhere" } }],
      ["NOT_FOUND", { ...good, to: { ...to, id: sender.id } }],
      ["NOT_FOUND", { ...good, to: { ...to, kind: "agent" } }],
      ["INVALID_INPUT", { ...good, body: { note: 1 } }],
      ["INVALID_INPUT", { ...good, body: { note: new Date() } }],
      ["INVALID_INPUT", { ...good, operationId: "op_1" }],
      ["INVALID_INPUT", { ...good, operationId: "op_01BX5ZZKBKACTAV9WEVGEMMVRZ" }],
    ];
    const peer = await receiver.peer();
    for (const [code, envelope] of bad) {
      const answer = await peer.receive(envelope as never, { number: 1, last: false });
      expect(answer, JSON.stringify(envelope)).toMatchObject({
        type: "refused",
        error: { code },
        recorded: false,
      });
    }
    expect(await receiver.record("acts")).toEqual([]);
    const tables = await runInDurableObject(await receiver.actor(), (_, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master WHERE name LIKE 'mailbox%'").toArray(),
    );
    expect(tables).toEqual([]);
    const foreign = runInDurableObject(await sender.actor(), (courier) =>
      // SAFETY: this runs inside the actor and reads its own mailbox.
      (Reflect.get(courier, "mailbox") as Mailbox).send({
        operationId: newOperation(),
        to: { ...to, tenant: "elsewhere" },
        type: "work",
        body: null,
      }),
    );
    await expect(foreign).rejects.toMatchObject({ code: "INVALID_INPUT" });
    expect(await sender.outbox()).toEqual([]);
  });
});

describe("G28 the address of an envelope", () => {
  test.each(["executor", "default", "nobody", "__proto__", "to-string"])(
    "EXPORT-2 of the kind %s is refused: it is no actor",
    async (kind) => {
      const address = { kind, tenant: TENANT, id: "x" };
      await expect(durableActors(env).mailbox(address)).rejects.toMatchObject({ code: "NOT_FOUND" });
    },
  );

  test("EXPORT-1 a member that every object inherits is no class", () => {
    for (const name of ["toString", "constructor", "__proto__"]) {
      expect(() => entrypointOf({}, name)).toThrow(/does not export a class named/);
      expect(() => namespaceOf({}, name, "NOT_FOUND")).toThrow(/does not export a class named/);
    }
  });

  test("EXPORT-1 is a declared binding if it exists", async () => {
    const bound = await durableActors({ Courier: exports.Orders }).mailbox({
      kind: "courier",
      tenant: TENANT,
      id: "x",
    });
    expect(Reflect.get(bound, "id")).toMatchObject({ name: `${TENANT}:x` });
    expect(String(Reflect.get(bound, "id"))).toBe(String(exports.Orders.idFromName(`${TENANT}:x`)));
  });
});

describe("the example of docs/delivery.md", () => {
  test("an order is accepted, and its outcome reported; an empty one is refused", async () => {
    const log = vi.spyOn(console, "log").mockReturnValue();
    const orders = await getAgentByName(exports.Orders, "acme:web");
    const outcome = () => runInDurableObject(orders, (_, { storage }) => storage.kv.get("outcome"));
    await orders.place("tea");
    await expect.poll(outcome).toEqual({ status: "delivered", result: { taken: "tea" }, late: false });
    expect(log).toHaveBeenCalledWith("taken:", "tea");
    await orders.place("");
    await expect.poll(outcome).toMatchObject({ status: "failed", error: { code: "CONFLICT" } });
  });
});

describe("outcomes", () => {
  test("MAIL-4 refused permanently: failed at once, and the handler's changes are rolled back", async () => {
    const { id, sender, receiver } = await deadLetter();
    expect(await receiver.record("acts")).toEqual([]);
    expect(await receiver.record("effects")).toEqual([]);
    const told = { operationId: id, status: "failed", late: false, error: { code: "CONFLICT" } };
    expect(await sender.record("told")).toMatchObject([told]);
  });

  test("MAIL-4 an unreachable receiver: unknown after the last attempt, and a dead letter", async () => {
    const [sender, receiver] = pair();
    const id = newOperation();
    await receiver.set("trap", "down");
    await sender.send(receiver, id, "lost");
    await sender.exhaust();
    expect(await receiver.record("attempts")).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await sender.record("told")).toMatchObject([
      { status: "unknown", error: { code: "UNAVAILABLE" } },
    ]);
    await expect.poll(async () => (await listed()).includes(id)).toBe(true);
  });

  test("MAIL-4 MAIL-13 a busy receiver: retried after the requested wait, and failed after the last attempt", async () => {
    const [sender, receiver] = pair();
    await receiver.set("mood", "busy");
    await sender.send(receiver, newOperation(), "queued");
    await sender.rested();
    const [entry] = await sender.outbox();
    expect(entry).toMatchObject({ attempt: 1, unanswered: false });
    expect((entry?.dueAt ?? 0) - Date.now()).toBeGreaterThan(19_000);
    await sender.exhaust();
    expect(await receiver.record("attempts")).toHaveLength(MAX_ATTEMPTS);
    expect(await receiver.record("acts")).toEqual([]);
    expect(await sender.record("told")).toMatchObject([
      { status: "failed", error: { code: "QUEUE_OVERFLOW" } },
    ]);
  });

  test("MAIL-16 a redelivery acts once, and its outcome is reported as a late one", async () => {
    const { id, sender, receiver } = await deadLetter();
    await receiver.set("mood", "good");
    const answer = await redeliver(id);
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({ id });
    await sender.empty();
    expect(await receiver.record("acts")).toEqual(["unwanted"]);
    expect(await sender.record("told")).toMatchObject([
      { status: "failed", late: false },
      { status: "delivered", late: true },
    ]);
    await expect.poll(async () => (await listed()).includes(id)).toBe(false);
    expectProblem(await redeliver(id), 404, "NOT_FOUND");
  });

  test("MAIL-16 redelivering an operation that was acted upon without an answer has no second effect", async () => {
    const [sender, receiver] = pair();
    const id = newOperation();
    await receiver.set("trap", "crash after");
    await sender.send(receiver, id, "once");
    await sender.rested();
    await receiver.set("trap", "down");
    await sender.exhaust();
    expect(await sender.record("told")).toMatchObject([{ status: "unknown" }]);
    await receiver.set("trap", "none");
    await expect.poll(async () => (await redeliver(id)).status).toBe(202);
    await sender.empty();
    expect(await sender.record("told")).toMatchObject([
      { status: "unknown" },
      { status: "delivered", late: true },
    ]);
    expect(await receiver.record("acts")).toEqual(["once"]);
  });
});

describe("dead letters over HTTP", () => {
  test("only operators of the tenant see them, without secrets", async () => {
    const { id, sender, receiver } = await deadLetter();
    const answer = await get("/api/dead-letters?limit=200", OPERATOR);
    expect(letters(answer).deadLetters.find((letter) => letter.id === id)).toEqual({
      id,
      status: "failed",
      type: "work",
      from: { kind: "courier", tenant: TENANT, id: sender.id },
      to: { kind: "courier", tenant: TENANT, id: receiver.id },
      error: { code: "CONFLICT", message: "Not with me.", retriable: false },
      attempts: 1,
      body: { note: "unwanted" },
      sentAt: expect.any(String),
      diedAt: expect.any(String),
    });
    expect(await listed(ACTOR_ADMIN)).toContain(id);
    expectProblem(await get("/api/dead-letters", MEMBER), 403, "FORBIDDEN");
    expectProblem(await redeliver(id, MEMBER), 403, "FORBIDDEN");
    expect(await listed(STRANGER)).toEqual([]);
    expectProblem(await redeliver(id, STRANGER), 404, "NOT_FOUND");
    expectProblem(await redeliver("op_nonsense"), 404, "NOT_FOUND");
    expectProblem(await get("/api/dead-letters?cursor=x", OPERATOR), 422, "INVALID_INPUT", "/cursor");
    expectProblem(await call("DELETE", "/api/dead-letters", undefined, OPERATOR), 405, "METHOD_NOT_ALLOWED");
    const actor = await sender.peer();
    expect(await actor.deadLetters(OPERATOR)).toMatchObject({ ok: true, value: { items: [{ id }] } });
    expect(await actor.deadLetters(MEMBER)).toMatchObject({ ok: false, error: { code: "FORBIDDEN" } });
    expect(await actor.deadLetters(STRANGER)).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
    expect(await actor.redeliver(MEMBER, id)).toMatchObject({ ok: false, error: { code: "FORBIDDEN" } });
    expect(await actor.redeliver(STRANGER, id)).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
  });

  test("pages have every letter once, by the age of its operation", async () => {
    const expected = [(await deadLetter()).id, (await deadLetter()).id, (await deadLetter()).id];
    const found: string[] = [];
    for (let cursor = ""; cursor !== "end"; ) {
      const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const { deadLetters, nextCursor } = letters(await get(`/api/dead-letters?limit=2${query}`, OPERATOR));
      found.push(...deadLetters.map(({ id }) => id));
      cursor = nextCursor ?? "end";
    }
    expect(found).toEqual(found.toSorted());
    expect(found.filter((id) => expected.includes(id))).toEqual(expected.toSorted());
    const descending = letters(await get("/api/dead-letters?limit=200&order=desc", OPERATOR)).deadLetters;
    expect(descending.map(({ id }) => id)).toEqual(found.toReversed());
  });

  test("DEAD-4 writing a letter deletes rows that their actors no longer keep", async () => {
    const { id } = await deadLetter();
    expect(await listed()).toContain(id);
    vi.setSystemTime(Date.now() + 34 * 86_400_000);
    const second = await deadLetter();
    expect(await listed()).toContain(id);
    vi.setSystemTime(Date.now() + 2 * 86_400_000);
    await deadLetter();
    expect(await listed()).not.toContain(id);
    expect(await listed()).toContain(second.id);
  });

  test("DEAD-2 a directory that was down gets a letter when it is back", async () => {
    await deadLetter();
    await env.DB.exec("ALTER TABLE dead_letters RENAME TO away");
    const [sender, receiver] = pair();
    const id = newOperation();
    await receiver.set("mood", "refuse");
    await sender.send(receiver, id, "unseen");
    await sender.empty();
    await expect.poll(logged).toContain("directory");
    expectProblem(await get("/api/dead-letters", OPERATOR), 503, "UNAVAILABLE");
    await env.DB.exec("ALTER TABLE away RENAME TO dead_letters");
    expect(await listed()).not.toContain(id);
    await crash();
    await sender.wake();
    await expect.poll(async () => (await listed()).includes(id)).toBe(true);
  });
});

describe("conversation.opened", () => {
  const indexed = async (agentId: string): Promise<string[]> => {
    const agent = await exports.Agent.getByName(`${TENANT}:${agentId}`);
    // SAFETY: the class behind the binding is the application's own.
    const { conversations } = agent as unknown as {
      conversations(): Promise<{ value: { items: { id: string }[] } }>;
    };
    return (await conversations()).value.items.map(({ id }) => id);
  };

  test("a new conversation is in its agent's index", async () => {
    const agentId = await createAgent(undefined, ACTOR_ADMIN);
    const id = await createConversation(agentId, ACTOR_ADMIN);
    await expect.poll(() => indexed(agentId)).toEqual([id]);
  });

  test("MAIL-10 also if the agent's actor fails at first", async () => {
    const agentId = await createAgent(undefined, ACTOR_ADMIN);
    const agent = exports.Agent.getByName(`${TENANT}:${agentId}`);
    const rename = (from: string, to: string) =>
      runInDurableObject(agent, (_, { storage }) =>
        storage.sql.exec(`ALTER TABLE ${from} RENAME TO ${to}`).toArray(),
      );
    await rename("conversations", "away");
    const id = await createConversation(agentId, ACTOR_ADMIN);
    await expect.poll(logged).toContain("no such table");
    await rename("away", "conversations");
    expect(await indexed(agentId)).toEqual([]);
    vi.setSystemTime(Date.now() + 60_000);
    const conversation = exports.Conversation.getByName(`${TENANT}:${id}`);
    await expect.poll(() => runDurableObjectAlarm(conversation)).toBe(true);
    await expect.poll(() => indexed(agentId)).toEqual([id]);
  });

  test("an agent that does not exist refuses it, and every agent refuses it from other actors", async () => {
    const agentId = await createAgent(undefined, ACTOR_ADMIN);
    const attempt = { number: 1, last: false };
    const envelope = (kind: string, to: string) => ({
      operationId: newOperation(),
      from: { kind, tenant: TENANT, id: `conv_${ulid()}` },
      to: { kind: "agent", tenant: TENANT, id: to },
      type: "conversation.opened",
      body: {},
      sentAt: Date.now(),
    });
    const ask = async (to: string, kind: string) => {
      const stub = await exports.Agent.getByName(`${TENANT}:${to}`);
      // SAFETY: as above.
      return (stub as unknown as { receive(...args: unknown[]): Promise<object> }).receive(
        envelope(kind, to),
        attempt,
      );
    };
    expect(await ask("nobody", "conversation")).toMatchObject({
      type: "refused",
      error: { code: "NOT_FOUND" },
    });
    expect(await ask(agentId, "courier")).toMatchObject({
      type: "refused",
      error: { code: "INVALID_INPUT" },
    });
    expect(await indexed(agentId)).toEqual([]);
  });
});

describe("the cost of an envelope", () => {
  test("MAIL-9 two rows at the sender, one at the receiver", async () => {
    await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), async (_, { storage }) => {
      const [sending, receiving] = [new CostCounter(), new CostCounter()];
      const address = (id: string) => ({ kind: "courier", tenant: TENANT, id });
      const mailbox = (id: string, counter: CostCounter, deliver: MailboxPorts["deliver"]) => {
        const counted = countingStorage(storage, counter);
        return new Mailbox({
          database: new DurableSqlDatabase(counted),
          keyValue: new DurableKeyValue(counted),
          clock: systemClock,
          checkStorage: () => undefined,
          whenArmed: () => Promise.resolve(),
          self: () => address(id),
          deliver,
          arm: () => Promise.resolve(),
          directory: () => null,
        });
      };
      const receiver = mailbox("receiver", receiving, () => Promise.reject(new Error("sends nothing")));
      let arrived = () => {};
      const sender = mailbox("sender", sending, (envelope, attempt) => receiver.receive(envelope, attempt));
      receiver.receives("work", z.null(), () => null);
      sender.outcomes("work", () => arrived());
      const send = async () => {
        const told = new Promise<void>((resolve) => {
          arrived = resolve;
        });
        sending.reset();
        receiving.reset();
        await sender.send({ operationId: newOperation(), to: address("receiver"), type: "work", body: null });
        await told;
        return [sending.cost, receiving.cost];
      };
      const [firstSent, firstReceived] = await send();
      expect(firstSent).toMatchObject({ statements: 6, rowsWritten: 2 });
      expect(firstReceived, "with the inbox's table").toMatchObject({ statements: 5, rowsWritten: 3 });
      const [sent, received] = await send();
      expect(sent).toMatchObject({ statements: 3, rowsWritten: 2 });
      expect(received).toMatchObject({ statements: 2, rowsWritten: 1 });
    });
  });
});
