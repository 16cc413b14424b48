/** The limits of the real Worker for callers: requests, turns and bodies by number; pages by their origin. */
import { createExecutionContext, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import OpenAI from "openai";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { HostGuards, type Pass } from "../../src/adapters/resilience/host-guards.ts";
import { dramatis } from "../../src/dramatis.ts";
import type { DramatisEnv, DramatisOptions } from "../../src/options.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { ADMIN, type Answer, answer, createAgent, expectProblem, MEMBER, STRANGER } from "./http-client.ts";
import { testLibrary } from "./library.ts";
import { Client } from "./world.ts";

type Send = (path: string, init?: RequestInit, principal?: Principal | null) => Promise<Response>;

/** A separate application on the actors of the test Worker. */
function application(options: Partial<DramatisOptions>, bindings: object = {}): Send {
  const { handler } = dramatis({
    libraries: [testLibrary],
    authorize: async (request) => {
      const principal = request.headers.get("x-test-principal");
      if (principal === null) return Response.json({ code: "UNAUTHENTICATED" }, { status: 401 });
      // SAFETY: only these tests reach this application.
      return JSON.parse(principal) as Principal;
    },
    ...options,
  });
  return (path, init = {}, principal = ADMIN) => {
    const headers = new Headers(init.headers);
    if (principal !== null) headers.set("x-test-principal", JSON.stringify(principal));
    const request = new Request(`http://dramatis.test${path}`, { ...init, headers });
    // SAFETY: the test environment has every binding of the application.
    const bound = { ...env, ...bindings } as unknown as DramatisEnv;
    return handler.fetch(request, bound, createExecutionContext());
  };
}

function expectWait(refused: Answer, atMost: number): void {
  expectProblem(refused, 429, "RATE_LIMITED");
  const wait = Number(refused.headers.get("retry-after"));
  expect(Number.isInteger(wait) && wait >= 1 && wait <= atMost, `Retry-After: ${wait}`).toBe(true);
}

const statuses = async (count: number, once: () => Promise<Response>) => {
  const seen: number[] = [];
  for (let n = 0; n < count; n++) seen.push((await once()).status);
  return seen;
};

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("G6 LIMIT-2 requests of a principal", () => {
  test("LIMIT-3 are limited together on every route, and pass again after the wait", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const send = application({ limits: { requests: { perMinute: 60, burst: 3 } } });
    expect(await statuses(3, () => send("/api/agents"))).toEqual([200, 200, 200]);
    for (const [method, path] of [
      ["GET", "/api/agents"],
      ["POST", "/api/agents"],
      ["GET", "/api/conversations/conv_01JD0000000000000000000000/events"],
      ["DELETE", "/api/agents"],
      ["GET", "/no/such/path"],
      ["GET", "/conversations/conv_01JD0000000000000000000000"],
    ] as const) {
      expectWait(await answer(await send(path, { method })), 2);
    }
    expect((await send("/health")).status).toBe(200);
    vi.setSystemTime(Date.now() + 1100);
    expect(await statuses(2, () => send("/api/agents"))).toEqual([200, 429]);
  });

  test("OAI-10 wait for the requested time if the official OpenAI client sends them", async () => {
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
    const send = application({ limits: { requests: { perMinute: 20, burst: 1 } } });
    await send("/v1/models");
    const answers: Response[] = [];
    const refused = Promise.withResolvers<void>();
    const client = new OpenAI({
      apiKey: "unused",
      baseURL: "http://dramatis.test/v1",
      maxRetries: 1,
      fetch: async (url, init) => {
        const response = await send(new URL(new Request(url).url).pathname, init);
        answers.push(response);
        refused.resolve();
        return response;
      },
    });
    const listed = client.models.list();
    await refused.promise;
    expect(answers.map(({ status, headers }) => [status, headers.get("x-should-retry")])).toEqual([
      [429, "true"],
    ]);
    const wait = Number(answers[0]?.headers.get("retry-after")) * 1000;
    await vi.advanceTimersByTimeAsync(wait - 1);
    expect([wait > 0, answers.length]).toEqual([true, 1]);
    await vi.advanceTimersByTimeAsync(wait);
    await listed;
    expect(answers.map(({ status }) => status)).toEqual([429, 200]);
  });

  test("are counted apart from requests of other principals, also of the same name in another tenant", async () => {
    const send = application({ limits: { requests: { perMinute: 1, burst: 1 } } });
    for (const principal of [ADMIN, MEMBER, STRANGER]) {
      expect(await statuses(2, () => send("/api/agents", {}, principal))).toEqual([200, 429]);
    }
  });

  test("are counted by the platform's limiter if it is bound", async () => {
    const send = application({}, { RATE_LIMITER: env.FIVE_A_MINUTE });
    expect((await statuses(20, () => send("/api/agents"))).filter((status) => status === 200)).toHaveLength(
      5,
    );
    expectWait(await answer(await send("/api/agents")), 10);
    expect((await send("/api/agents", {}, MEMBER)).status).toBe(200);
  });

  test("are counted by the isolate if the platform's limiter does not answer", async () => {
    vi.spyOn(console, "warn").mockReturnValue();
    const limit = () => Promise.reject(new Error("The limiter is down."));
    const limits = { requests: { perMinute: 1, burst: 2 } };
    const send = application({ limits }, { RATE_LIMITER: { limit } });
    expect(await statuses(3, () => send("/api/agents"))).toEqual([200, 200, 429]);
  });

  test("are free if the limit is disabled", async () => {
    const send = application({ limits: { requests: false } }, { RATE_LIMITER: env.FIVE_A_MINUTE });
    expect(new Set(await statuses(20, () => send("/api/none")))).toEqual(new Set([404]));
  });
});

describe("G6 RUN-5 turns of a conversation", () => {
  const send = application({}, { Conversation: exports.LimitedConversation });
  let agent: string;

  beforeAll(async () => {
    agent = await createAgent();
  });

  const create = async () => {
    const body = JSON.stringify({ agentId: agent });
    const { status, body: created } = await answer(
      await send("/api/conversations", { method: "POST", body }),
    );
    expect(status).toBe(201);
    return created.id;
  };
  const say = (id: string, body: object, accept = "application/json") =>
    send(`/api/conversations/${id}/turns`, {
      method: "POST",
      headers: { accept },
      body: JSON.stringify(body),
    });

  test("in one request begin in their order, even if the media of one must be looked up", async () => {
    const id = await create();
    // SAFETY: the class that is bound offers this surface.
    const actor = exports.LimitedConversation.getByName(
      `${ADMIN.tenant}:${id}`,
    ) as unknown as ConversationApi;
    const image = { type: "image", url: "data:image/png;base64,AAAA" };
    const signals = [[image, { type: "text", text: "first" }], "second"].map((content) => ({
      type: "conversation.user.message",
      data: { content },
    }));
    const started = await actor.ingest(ADMIN, signals);
    const { body } = await answer(await send(`/api/conversations/${id}/turns`));
    const value = body.turns.map((turn) => ({ ok: true, value: { turnId: turn.id } }));
    expect(started).toMatchObject({ ok: true, value });
  });

  test("in one request are answered one by one: a refused turn stops no other, and hides no running turn", async () => {
    const id = await create();
    // SAFETY: the class that is bound offers this surface.
    const actor = exports.LimitedConversation.getByName(
      `${ADMIN.tenant}:${id}`,
    ) as unknown as ConversationApi;
    const type = "conversation.user.message";
    const signals = [
      { type, id: "first", data: { content: "first" } },
      { type, id: "first", data: { content: "another under the same key" } },
      { type: "conversation.llm.completed", data: {} },
      { type, data: { content: "an answer to nothing", replyToMessageId: "msg_0" } },
      { type, id: "last", data: { content: "last" } },
    ];
    const first = await actor.ingest(ADMIN, signals);
    const { body } = await answer(await send(`/api/conversations/${id}/turns`));
    const [one, other] = body.turns.map((turn) => ({ ok: true, value: { turnId: turn.id } }));
    const refusedAs = (code: string) => ({ ok: false, error: { code } });
    const between = [
      refusedAs("IDEMPOTENCY_CONFLICT"),
      refusedAs("INVALID_SIGNAL"),
      refusedAs("INVALID_INPUT"),
    ];
    expect(first).toMatchObject({ ok: true, value: [one, ...between, other] });
    expect(body.turns).toHaveLength(2);
    expect(await actor.ingest({ ...ADMIN, tenant: "another" }, signals)).toMatchObject({ ok: false });
    // Sent once more, the batch finds its turns.
    const again = await actor.ingest(ADMIN, signals);
    expect(again).toMatchObject({ ok: true, value: [one, ...between, other] });
  });

  test("are limited together, over HTTP, as a stream, by RPC and over a WebSocket", async () => {
    const id = await create();
    expect((await say(id, { content: "one" })).status).toBe(202);
    expect((await say(id, { content: "two" }, "text/event-stream")).status).toBe(200);
    // SAFETY: the class that is bound offers this surface.
    const actor = exports.LimitedConversation.getByName(
      `${ADMIN.tenant}:${id}`,
    ) as unknown as ConversationApi;
    expect(await actor.startTurn(ADMIN, { content: "three" })).toMatchObject({ ok: true });

    expectWait(await answer(await say(id, { content: "four" })), 11);
    expectWait(await answer(await say(id, { content: "four" }, "text/event-stream")), 11);
    const refused = { ok: false, error: { code: "RATE_LIMITED", retriable: true } };
    expect(await actor.startTurn(ADMIN, { content: "four" })).toMatchObject(refused);
    const signal = { type: "conversation.user.message", data: { content: "four" } };
    expect(await actor.ingest(ADMIN, signal)).toMatchObject({ ok: true, value: [refused] });
    const response = await send(`/conversations/${id}`, { headers: { upgrade: "websocket" } });
    if (response.webSocket === null) throw new Error(`No WebSocket: ${response.status}`);
    const client = new Client(response.webSocket);
    client.send({ type: "turn.start", id: "key", content: "four" });
    const { data } = await client.frame("error", ({ data }) => data.ref === "key");
    expect(data).toMatchObject({ code: "RATE_LIMITED", retriable: true });
    client.close();
    const { body } = await answer(await send(`/api/conversations/${id}/turns`));
    expect(body.turns).toHaveLength(3);
  });

  test("count once however often the same is sent, and not when they are refused", async () => {
    const id = await create();
    expect(await statuses(5, () => say(id, { content: "again", idempotencyKey: "k" }))).toEqual(
      Array(5).fill(202),
    );
    expect(await statuses(5, () => say(id, { content: " " }))).toEqual(Array(5).fill(422));
    expect(await statuses(3, () => say(id, { content: "new" }))).toEqual([202, 202, 429]);
    expect((await say(id, { content: "again", idempotencyKey: "k" })).status).toBe(202);
  });

  test("C23 an interceptor of the application stops a call before it is sent, and the turn says why", async () => {
    const stream = await say(await create(), { content: "This is top secret." }, "text/event-stream");
    const text = await stream.text();
    expect(text).toContain("turn.failed");
    expect(text).toContain("That stays here.");
  });

  test("of one conversation leave the others alone", async () => {
    const [first, second] = [await create(), await create()];
    expect(await statuses(4, () => say(first, { content: "x" }))).toEqual([202, 202, 202, 429]);
    expect((await say(second, { content: "x" })).status).toBe(202);
  });
});

describe("G6 RUN-9 changes of a conversation", () => {
  const send = application({}, { Conversation: exports.LimitedConversation });
  let agent: string;

  beforeAll(async () => {
    agent = await createAgent();
  });

  const create = async () => {
    const body = JSON.stringify({ agentId: agent });
    return (await answer(await send("/api/conversations", { method: "POST", body }))).body.id;
  };
  const post = (id: string, path: string, body: object = {}, principal = ADMIN) =>
    send(`/api/conversations/${id}${path}`, { method: "POST", body: JSON.stringify(body) }, principal);
  const toggles = async (id: string, count: number) => {
    const seen: number[] = [];
    for (let n = 0; n < count; n++) seen.push((await post(id, n % 2 === 0 ? "/cancel" : "/resume")).status);
    return seen;
  };
  const connect = async (id: string) => {
    const { webSocket } = await send(`/conversations/${id}`, { headers: { upgrade: "websocket" } });
    if (webSocket === null) throw new Error("No WebSocket.");
    return new Client(webSocket);
  };
  const changes = async (id: string) => {
    const { body } = await answer(await send(`/api/conversations/${id}/journal?limit=200`));
    const { entries } = body as unknown as { entries: { type: string }[] };
    return entries.filter(({ type }) => /^conversation\.(cancelled|resumed|updated)$/.test(type)).length;
  };

  test("are bounded however many sockets ask for them, and whatever else is open", async () => {
    const id = await create();
    const sockets = await Promise.all(Array.from({ length: 16 }, () => connect(id)));
    const startedAt = Date.now();
    for (let round = 0; round < 40; round++)
      for (const socket of sockets)
        socket.send({ type: round % 2 === 0 ? "conversation.cancel" : "conversation.resume" });
    for (const socket of sockets) {
      socket.send({ type: "ping" });
      await socket.frame("pong");
    }
    // Each resume counts, and lets one stop through.
    const most = 2 * (10 + (Date.now() - startedAt) / 2_000) + 1;
    const [refused] = sockets.flatMap((socket) =>
      socket.framesOf("error").filter(({ data }) => data.code === "RATE_LIMITED"),
    );
    expect(refused?.data).toMatchObject({ retriable: true, ref: expect.stringMatching(/^conversation\./) });
    expect(await changes(id)).toBeGreaterThanOrEqual(10);
    expect(await changes(id)).toBeLessThanOrEqual(most);
    for (const socket of sockets) socket.close();
  });

  test("count together over HTTP, RPC and WebSocket, orders of turns included; changes without effect are free", async () => {
    const id = await create();
    expect(await statuses(15, () => post(id, "/resume"))).toEqual(Array(15).fill(409));
    expect(await toggles(id, 15), "eight stops, which are free, and seven resumes").toEqual(
      Array(15).fill(200),
    );
    expect(await statuses(15, () => post(id, "/cancel"))).toEqual(Array(15).fill(200));
    const order = async (turns: string) => {
      const init = { method: "PATCH", body: JSON.stringify({ turns }) };
      return answer(await send(`/api/conversations/${id}`, init));
    };
    for (const turns of ["queued", "queued", "parallel", "parallel", "queued"])
      expect((await order(turns)).status).toBe(200);
    expectWait(await order("parallel"), 2);
    expectWait(await answer(await post(id, "/resume")), 2);
    // SAFETY: the class that is bound offers this surface.
    const actor = exports.LimitedConversation.getByName(
      `${ADMIN.tenant}:${id}`,
    ) as unknown as ConversationApi;
    const refused = { ok: false, error: { code: "RATE_LIMITED", retriable: true } };
    expect(await actor.resume(ADMIN, {})).toMatchObject(refused);
    expect((await order("queued")).status).toBe(200);
    expect((await post(id, "/cancel")).status).toBe(200);
    expect(await changes(id)).toBe(18);
  });

  test("RUN-9 a stop and a removal are possible after the limit of changes", async () => {
    const id = await create();
    const participant = (user: string, method: string) => {
      const path = `/api/conversations/${id}/participants`;
      return method === "POST"
        ? send(path, { method, body: JSON.stringify({ type: "user", id: user }) })
        : send(`${path}/user/${user}`, { method });
    };
    // A slow machine gets further changes while these run.
    let joined = 0;
    while (joined < 40 && (await participant(`user-${joined}`, "POST")).status === 200) joined += 1;
    expect(joined).toBeGreaterThanOrEqual(10);
    expect(joined).toBeLessThan(40);
    for (let n = 0; n < joined; n++) expect((await participant(`user-${n}`, "DELETE")).status).toBe(204);
    expect((await post(id, "/cancel")).status).toBe(200);
  });
});

describe("G6 BODY-1 bodies", () => {
  const MEBIBYTE = 1024 * 1024;

  /** A body of 100 MiB that counts the bytes read. */
  function large() {
    const piece = new Uint8Array(64 * 1024).fill(0x20);
    const read = { bytes: 0 };
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          controller.enqueue(piece);
          read.bytes += piece.byteLength;
          if (read.bytes >= 100 * MEBIBYTE) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    return { body, read };
  }

  test.each([
    ["POST", "/api/agents", 0.5],
    ["PATCH", "/api/agents/a", 0.5],
    ["POST", "/api/conversations", 2],
  ])("%s %s refuses 100 MiB once it has read as much as a body may have", async (method, path, mebibytes) => {
    const { body, read } = large();
    const request = new Request(`http://dramatis.test${path}`, {
      method,
      body,
      headers: { "x-test-principal": JSON.stringify(ADMIN) },
    });
    expectProblem(await answer(await exports.default.fetch(request)), 413, "TOO_LARGE");
    expect(read.bytes).toBeLessThanOrEqual(mebibytes * MEBIBYTE + MEBIBYTE / 4);
  });

  test("are bounded as the application says", async () => {
    const send = application({ limits: { bodyBytes: 100 } });
    const post = async (length: number) =>
      answer(await send("/api/conversations", { method: "POST", body: `"${"x".repeat(length - 2)}"` }));
    expectProblem(await post(100), 422, "INVALID_INPUT");
    expectProblem(await post(101), 413, "TOO_LARGE");
  });
});

test.each([
  [{ requests: { perMinute: 0, burst: 1 } }, "/limits/requests"],
  [{ turns: { perMinute: 10, burst: 0 } }, "/limits/turns"],
  [{ changes: { perMinute: 0, burst: 1 } }, "/limits/changes"],
  [{ bodyBytes: 0.5 }, "/limits/bodyBytes"],
])("G6 an invalid limit is refused when the application is created: %j", (limits, path) => {
  expect(() => dramatis({ libraries: [], limits })).toThrow(path);
});

describe("G6 pages of other origins", () => {
  const origins = ["https://app.example", "http://localhost:5173"];
  const open = application({ cors: { origins } });
  const closed = application({});
  const from = (origin: string, init: RequestInit = {}): RequestInit => ({
    ...init,
    headers: { ...init.headers, origin },
  });
  /** As browsers write them; the second is one of the OpenAI SDK's. */
  const HEADERS = "authorization,x-stainless-lang";
  const preflight = (send: Send, origin: string, path = "/api/agents") =>
    send(
      path,
      from(origin, {
        method: "OPTIONS",
        headers: {
          "access-control-request-method": "POST",
          "access-control-request-headers": HEADERS,
        },
      }),
      null,
    );
  const corsHeaders = ({ headers }: Response) =>
    Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-")));

  test("CORS-1 get no headers if no origin is configured", async () => {
    expect(corsHeaders(await closed("/api/agents", from("https://app.example")))).toEqual({});
    const refused = await preflight(closed, "https://app.example");
    expect(refused.status).toBe(401);
    expect(corsHeaders(refused)).toEqual({});
  });

  test("CORS-1 may read answers, errors too, if their origin is named", async () => {
    for (const origin of origins) {
      for (const [path, init, principal] of [
        ["/api/agents", {}, ADMIN],
        ["/api/agents/absent", {}, ADMIN],
        ["/api/agents", { method: "POST", body: "{" }, ADMIN],
        ["/api/agents", {}, null],
      ] as const) {
        const response = await open(path, from(origin, init), principal);
        expect(corsHeaders(response)).toEqual({
          "access-control-allow-origin": origin,
          "access-control-expose-headers":
            "Location,Mcp-Session-Id,Retry-After,X-Dramatis-Conversation,X-Dramatis-Turn,X-Should-Retry",
        });
        expect(response.headers.get("vary")).toBe("Origin");
      }
    }
    for (const origin of ["https://evil.example", "https://app.example.evil", "http://app.example", "null"]) {
      expect(corsHeaders(await open("/api/agents", from(origin)))).not.toHaveProperty(
        "access-control-allow-origin",
      );
    }
  });

  test("CORS-2 are answered before authentication, independent of the existing data", async () => {
    for (const path of ["/api/agents", "/api/no/such/path", "/docs", "/v1/chat/completions"]) {
      const response = await preflight(open, "https://app.example", path);
      expect(response.status).toBe(204);
      expect(corsHeaders(response)).toEqual({
        "access-control-allow-origin": "https://app.example",
        "access-control-allow-methods": "GET,HEAD,POST,PUT,PATCH,DELETE",
        "access-control-allow-headers": HEADERS,
        "access-control-expose-headers":
          "Location,Mcp-Session-Id,Retry-After,X-Dramatis-Conversation,X-Dramatis-Turn,X-Should-Retry",
        "access-control-max-age": "600",
      });
    }
    expect(corsHeaders(await preflight(open, "https://evil.example"))).not.toHaveProperty(
      "access-control-allow-origin",
    );
  });

  test("an OPTIONS that is no preflight is a request like any other", async () => {
    expect((await open("/api/agents", { method: "OPTIONS" }, null)).status).toBe(401);
    const response = await open("/api/agents", { method: "OPTIONS" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, POST, HEAD"]);
  });

  test("CORS-3 may connect from the server's own origin and from configured origins", async () => {
    const agent = await createAgent();
    const body = JSON.stringify({ agentId: agent });
    const created = await answer(await open("/api/conversations", { method: "POST", body }));
    const connect = async (send: Send, origin?: string) => {
      const headers = { upgrade: "websocket", ...(origin === undefined ? {} : { origin }) };
      const response = await send(`/conversations/${created.body.id}`, { headers });
      response.webSocket?.accept();
      response.webSocket?.close();
      return response.status;
    };
    for (const origin of [undefined, "http://dramatis.test", ...origins]) {
      expect(await connect(open, origin)).toBe(101);
    }
    for (const origin of ["https://evil.example", "https://dramatis.test", "null"]) {
      expect(await connect(open, origin)).toBe(403);
    }
    expect(await connect(closed, "http://dramatis.test")).toBe(101);
    expect(await connect(closed, "https://app.example")).toBe(403);
    const headers = { upgrade: "websocket", origin: "https://evil.example" };
    expectProblem(await answer(await open("/conversations/x", { headers })), 403, "FORBIDDEN");
  });

  test.each(["*", "https://app.example/", "app.example", "https://app.example/path", ""])(
    "CORS-1 %j is no origin",
    (origin) => {
      expect(() => dramatis({ libraries: [], cors: { origins: [origin] } })).toThrow("is not an origin");
    },
  );
});

describe("calls of a model's host", () => {
  const profile = { provider: "openai", modelId: "m" } as const;
  const { signal } = new AbortController();
  const newActor = () => exports.PortHost.getByName(crypto.randomUUID());

  test("LIMITER-1 LIMITER-2 actors of one isolate share the limit, and wait for each other", async () => {
    const guards = new HostGuards(systemClock, { concurrency: { concurrent: 1, queued: 5 } });
    const order: string[] = [];
    const [holder, first, second] = [newActor(), newActor(), newActor()];
    const pass = await runInDurableObject(holder, () => guards.enter(profile, { leaseMs: 60_000, signal }));
    const call = (actor: typeof holder, name: string) =>
      runInDurableObject(actor, async (_, { storage }) => {
        const own: Pass = await guards.enter(profile, { leaseMs: 60_000, signal });
        order.push(`${name} begins`);
        // After a grant, the waiting actor uses its own storage and timers.
        await storage.put("name", name);
        await systemClock.sleep(1);
        order.push(`${name} ends`);
        own.leave("alive");
        return storage.get("name");
      });
    const calls = [call(first, "first"), call(second, "second")];
    await runInDurableObject(holder, async () => {
      await systemClock.sleep(20);
      order.push("holder ends");
      pass.leave("alive");
    });
    expect(await Promise.all(calls)).toEqual(["first", "second"]);
    expect(order).toEqual(["holder ends", "first begins", "first ends", "second begins", "second ends"]);
  });
});
