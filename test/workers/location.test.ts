/**
 * Where actors live, on the real Worker. This workerd has no jurisdictions, so no test here can see data stay in one. A
 * namespace that records its requests is behind the real look-up. The whole application runs over the plain namespaces
 * while a spy counts its questions to the platform.
 */
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  type MockInstance,
  test,
  vi,
} from "vitest";
import { newConversationId } from "../../src/agents/base/lookup/conversation-id.ts";
import { durableActor, durableActors } from "../../src/agents/base/lookup/durable-actors.ts";
import { actorIn, checkPlace } from "../../src/agents/base/lookup/placement.ts";
import { completeOperation } from "../../src/agents/conversation/results/complete-operation.ts";
import { dramatis } from "../../src/dramatis.ts";
import type { LocationPolicy } from "../../src/protocol/location-policy.ts";
import { JURISDICTIONS, jurisdictionOf, LOCATION_HINTS, locationOf } from "../../src/shared/location.ts";
import { ADMIN, call, expectProblem, get, post } from "./http-client.ts";
import { testLibrary } from "./library.ts";
import { Play } from "./provider.ts";
import { checkInvariants, crash, createConversation, request, TestConversation } from "./world.ts";

const ULID = "01JD0000000000000000000000";
const NOT_IMPLEMENTED = "Jurisdiction restrictions are not implemented in workerd.";

/** A look-up as the platform gets it. */
interface Asked {
  jurisdiction?: string;
  name: string;
  options?: unknown;
}

/** A namespace like the platform's: ids of two jurisdictions differ. It has no actors, and records its requests. */
class RecordingNamespace {
  constructor(
    readonly asked: Asked[] = [],
    private readonly place?: string,
    private readonly refusal?: Error,
  ) {}

  get [Symbol.toStringTag]() {
    return "DurableObjectNamespace";
  }

  jurisdiction(name: string) {
    if (this.refusal !== undefined) throw this.refusal;
    return new RecordingNamespace(this.asked, name);
  }

  getByName(name: string, options?: unknown) {
    this.asked.push({
      name,
      ...(this.place === undefined ? {} : { jurisdiction: this.place }),
      ...(options === undefined ? {} : { options }),
    });
    return {};
  }
}

describe("G14 PLACE-1 a look-up asks", () => {
  const agents = new RecordingNamespace();
  const conversations = new RecordingNamespace();
  const counters = new RecordingNamespace();
  const env = { Agent: agents, Conversation: conversations, Counter: counters };

  beforeEach(() => {
    for (const { asked } of [agents, conversations, counters]) asked.length = 0;
  });

  test.each([undefined, ...JURISDICTIONS])(
    "for the jurisdiction of the id, at every entrance (%s)",
    async (place) => {
      const end = place === undefined ? "" : `_${place}`;
      const [agent, conversation] = [`guide${end}`, `conv_${ULID}${end}`];
      const actors = durableActors(env);
      await actors.agent("acme", agent);
      await actors.mailbox({ kind: "agent", tenant: "acme", id: agent });
      await durableActor(env, { kind: "agent", tenant: "acme", id: agent });
      await actors.conversation("acme", conversation);
      await actors.mailbox({ kind: "conversation", tenant: "acme", id: conversation });
      const there = place === undefined ? {} : { jurisdiction: place };
      expect(agents.asked).toEqual(Array(3).fill({ name: `acme:${agent}`, ...there }));
      expect(conversations.asked).toEqual(Array(2).fill({ name: `acme:${conversation}`, ...there }));
    },
  );

  test("for the region of a hint, with or without a jurisdiction", async () => {
    const actors = durableActors(env);
    for (const hint of LOCATION_HINTS) {
      await actors.agent("acme", "guide_us", hint);
      await actors.conversation("acme", `conv_${ULID}`, hint);
    }
    expect(agents.asked).toEqual(
      LOCATION_HINTS.map((locationHint) => ({
        name: "acme:guide_us",
        jurisdiction: "us",
        options: { locationHint },
      })),
    );
    expect(conversations.asked).toEqual(
      LOCATION_HINTS.map((locationHint) => ({ name: `acme:conv_${ULID}`, options: { locationHint } })),
    );
  });

  test("for no jurisdiction if the kind of actor is an application's own", async () => {
    await durableActor(env, { kind: "counter", tenant: "acme", id: "total_eu" });
    expect(counters.asked).toEqual([{ name: "acme:total_eu" }]);
  });
});

test("PLACE-4 an id with a colon names no actor: it could be an actor of another tenant", () => {
  const address = { kind: "agent", tenant: "acme", id: "eu:guide" };
  expect(() => actorIn(exports.Agent, address)).toThrow(expect.objectContaining({ code: "NOT_FOUND" }));
});

describe("G14 PLACE-2 a platform", () => {
  const address = { kind: "agent", tenant: "acme", id: "guide_eu" };

  test("without jurisdictions has the actor in the plain namespace", () => {
    const namespace = new RecordingNamespace([], undefined, new Error(NOT_IMPLEMENTED));
    actorIn(namespace, address, "weur");
    expect(namespace.asked).toEqual([{ name: "acme:guide_eu", options: { locationHint: "weur" } }]);
  });

  test("that refuses a jurisdiction with another error gets no further request", () => {
    const namespace = new RecordingNamespace([], undefined, new TypeError("No such jurisdiction."));
    expect(() => actorIn(namespace, address)).toThrow("No such jurisdiction.");
    expect(namespace.asked).toEqual([]);
  });

  test("is, here, workerd without jurisdictions", () => {
    expect(() => exports.Agent.jurisdiction("eu")).toThrow(NOT_IMPLEMENTED);
  });
});

describe("G14 PLACE-3 an actor is created", () => {
  const platform = new RecordingNamespace();
  const local = new RecordingNamespace([], undefined, new Error(NOT_IMPLEMENTED));
  const at = (id: string, actual?: string, namespace = platform, kind = "agent") =>
    checkPlace(namespace, { kind, tenant: "acme", id }, actual);

  test("in the jurisdiction of its id only", () => {
    at("guide");
    at("guide_eu", "eu");
    at("guide_eu", undefined, local);
    at("total_eu", undefined, platform, "counter");
    for (const [id, actual] of [
      ["guide_eu", undefined],
      ["guide_eu", "us"],
      ["guide", "eu"],
    ] as const) {
      expect(() => at(id, actual)).toThrow(
        expect.objectContaining({
          code: "INVALID_INPUT",
          message: expect.stringContaining(`locationOf("${id}")`),
        }),
      );
      if (actual !== undefined) expect(() => at(id, actual, local)).toThrow(/locationOf/);
    }
  });
});

const TENANT = { ...ADMIN, tenant: "located" };

/** The requested locations by names of actors, while `body` runs. */
async function hintsDuring(body: () => Promise<unknown>): Promise<Record<string, unknown>> {
  const get = vi.spyOn(ownerOf(exports.Agent, "getByName"), "getByName");
  try {
    await body();
    return Object.fromEntries(
      get.mock.calls.map(([name, options]) => [name, options?.locationHint]).toReversed(),
    );
  } finally {
    get.mockRestore();
  }
}

describe("G14 over HTTP", () => {
  test("a hint reaches the platform at the first contact with the actor", async () => {
    const tenant = { ...TENANT, tenant: "hinted" };
    let id = "";
    const hints = await hintsDuring(async () => {
      await post("/api/agents", { id: "hinted", persona: "test/plain", locationHint: "sam" }, tenant);
      const talk = { agentId: "hinted", locationHint: "me" };
      ({ id } = (await post("/api/conversations", talk, tenant)).body);
    });
    expect(hints).toMatchObject({ "hinted:hinted": "sam", [`hinted:${id}`]: "me" });
  });

  test("an agent and a conversation live in the requested place, and show it", async () => {
    const body = { id: "clerk_eu", persona: "test/plain", jurisdiction: "eu", locationHint: "weur" };
    const created = await post("/api/agents", body, TENANT);
    expect(created).toMatchObject({
      status: 201,
      body: { id: "clerk_eu", jurisdiction: "eu", locationHint: "weur" },
    });
    expect(created.headers.get("location")).toBe("/api/agents/clerk_eu");
    expect((await get("/api/agents/clerk_eu", TENANT)).body).toMatchObject({
      jurisdiction: "eu",
      locationHint: "weur",
    });
    const changed = await call("PATCH", "/api/agents/clerk_eu", { projectIds: ["default", "more"] }, TENANT);
    expect(changed.body).toMatchObject({ jurisdiction: "eu", locationHint: "weur" });

    for (const [more, jurisdiction] of [
      [{}, "eu"],
      [{ jurisdiction: "us", locationHint: "enam" }, "us"],
    ] as const) {
      const { status, body } = await post("/api/conversations", { agentId: "clerk_eu", ...more }, TENANT);
      expect([status, body]).toMatchObject([201, { jurisdiction, ...more }]);
      expect(body.id).toMatch(new RegExp(`^conv_[0-9A-Z]{26}_${jurisdiction}$`));
      expect((await get(`/api/conversations/${body.id}`, TENANT)).body).toMatchObject({
        jurisdiction,
        ...more,
      });
    }
    await vi.waitFor(
      async () => {
        const { conversations } = (await get("/api/conversations?limit=200", TENANT)).body;
        expect(conversations).toMatchObject([{ jurisdiction: "eu" }, { jurisdiction: "us" }]);
        expect((await get("/api/agents", TENANT)).body.agents).toMatchObject([
          { id: "clerk_eu", jurisdiction: "eu" },
        ]);
      },
      { timeout: 20_000 },
    );
  });

  test("a generated id ends with its jurisdiction; without a jurisdiction, ids and views do not mention any", async () => {
    const { body } = await post(
      "/api/agents",
      { persona: "test/plain", jurisdiction: "fedramp-high" },
      TENANT,
    );
    expect(body.id).toMatch(/^agent-[0-9a-z]{10}_fedramp-high$/);
    const plain = (await post("/api/agents", { persona: "test/plain" }, TENANT)).body;
    expect(plain.id).toMatch(/^agent-[0-9a-z]{10}$/);
    const talk = (await post("/api/conversations", { agentId: plain.id }, TENANT)).body;
    expect(talk.id).toMatch(/^conv_[0-9A-Z]{26}$/);
    for (const view of [plain, talk]) {
      expect(Object.keys(view).filter((name) => /jurisdiction|location/i.test(name))).toEqual([]);
    }
  });

  test("an unknown jurisdiction or hint is refused with the list of known values", async () => {
    for (const [path, rest] of [
      ["/api/agents", { persona: "test/plain" }],
      ["/api/conversations", { agentId: "clerk_eu" }],
    ] as const) {
      for (const [field, value, known] of [
        ["jurisdiction", "mars", JURISDICTIONS],
        ["locationHint", "moon", LOCATION_HINTS],
      ] as const) {
        const answer = await post(path, { ...rest, [field]: value }, TENANT);
        expectProblem(answer, 422, "INVALID_INPUT", `/${field}`);
        for (const name of known) expect(JSON.stringify(answer.body)).toContain(name);
      }
    }
    const chosen = await post("/api/agents", { id: "clerk_mars", persona: "test/plain" }, TENANT);
    expectProblem(chosen, 422, "INVALID_INPUT", "/id");
    expect(JSON.stringify(chosen.body)).toContain("fedramp-high");
  });

  test("LOCATION-4 a chosen id is never changed: an id that names another jurisdiction is refused", async () => {
    for (const id of ["porter", "porter_us"]) {
      const answer = await post("/api/agents", { id, persona: "test/plain", jurisdiction: "eu" }, TENANT);
      expectProblem(answer, 422, "INVALID_INPUT", "/id");
      expect(JSON.stringify(answer.body)).toContain("porter_eu");
    }
    expect((await post("/api/agents", { id: "porter_eu", persona: "test/plain" }, TENANT)).status).toBe(201);
    expectProblem(
      await post("/api/agents", { id: "porter_eu", persona: "test/plain" }, TENANT),
      409,
      "CONFLICT",
    );
    expectProblem(await get("/api/agents/porter", TENANT), 404, "NOT_FOUND");
  });
});

describe("G14 LOCATION-3 an application decides the location of its tenants", () => {
  const policies: Record<string, LocationPolicy> = {
    home: { jurisdiction: "eu", locationHint: "weur" },
    // SAFETY: what an application without types might return.
    mistaken: { jurisdiction: "europe" } as unknown as LocationPolicy,
  };
  const app = dramatis({
    libraries: [testLibrary],
    authorize: async (request) => ({
      subject: "ada",
      tenant: request.headers.get("x-tenant") ?? "",
      roles: ["admin"],
    }),
    location: (tenant) => policies[tenant] ?? {},
    agents: [{ id: "declared_eu", persona: "test/plain", tenant: "home", locationHint: "eeur" }],
  });
  const send = async (tenant: string, path: string, body: object) => {
    const headers = { "x-tenant": tenant };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await app.handler.fetch(new Request(`http://located.test${path}`, init), {});
    // SAFETY: the assertions say which members there are.
    return [response.status, (await response.json()) as { id: string; errors?: { path: string }[] }] as const;
  };
  const persona = "test/plain";

  test("the hints of declarations and of policies reach the platform", async () => {
    let ids: string[] = [];
    const hints = await hintsDuring(async () => {
      const [, { id: agentId }] = await send("home", "/api/agents", { persona });
      const [, { id }] = await send("home", "/api/conversations", { agentId });
      const chat = { model: agentId, messages: [{ role: "user", content: "Hello." }] };
      await send("home", "/v1/chat/completions", chat);
      ids = [agentId, id];
    });
    expect(hints).toMatchObject({ "home:declared_eu": "eeur" });
    for (const id of ids) expect(hints).toMatchObject({ [`home:${id}`]: "weur" });
    const conversations = Object.entries(hints).filter(([name]) => name.startsWith("home:conv_"));
    expect(conversations.map(([, hint]) => hint)).toEqual(["weur", "weur"]);
  });

  test("by default in its tenant's jurisdiction and region, unless the request or the agent says otherwise", async () => {
    const [status, made] = await send("home", "/api/agents", { persona });
    expect([status, made]).toMatchObject([201, { jurisdiction: "eu", locationHint: "weur" }]);
    expect(made.id).toMatch(/_eu$/);
    expect(await send("home", "/api/agents", { id: "guide", persona })).toMatchObject([
      422,
      { errors: [{ path: "/id" }] },
    ]);
    expect((await send("home", "/api/agents", { id: "guide_us", persona }))[0]).toBe(201);
    expect((await send("home", "/api/conversations", { agentId: "guide_us" }))[1]).toMatchObject({
      jurisdiction: "us",
      locationHint: "weur",
    });
    expect((await send("home", "/api/conversations", { agentId: made.id, jurisdiction: "us" }))[0]).toBe(201);
  });

  test("an unusable policy is an error of the application, not of the caller", async () => {
    expect((await send("mistaken", "/api/agents", { persona }))[0]).toBe(503);
  });
});

describe("G14 LOCATION-3 if the application is strict", () => {
  const strict = { ...ADMIN, tenant: "strict" };
  const apart = { ...ADMIN, tenant: "apart" };
  const persona = { identity: { systemPrompt: "You are a test.", modelProfileId: "test/scripted" } };

  test("new objects stay in their tenant's jurisdiction", async () => {
    expectProblem(await post("/api/agents", { id: "new_us", persona }, strict), 422, "INVALID_INPUT", "/id");
    const { body } = await post("/api/agents", { persona }, strict);
    expect(body).toMatchObject({ jurisdiction: "eu", locationHint: "weur" });
    const talk = { agentId: body.id };
    const refused = await post("/api/conversations", { ...talk, jurisdiction: "us" }, strict);
    expectProblem(refused, 422, "INVALID_INPUT", "/jurisdiction");
    expect((await post("/api/conversations", talk, strict)).body).toMatchObject({ jurisdiction: "eu" });

    const plain = await getAgentByName(exports.Agent, "strict:plain");
    const outside = { ok: false, error: { code: "INVALID_INPUT", errors: [{ path: "/id" }] } };
    for (const isDeclaration of [false, true])
      expect(await plain.create(strict, { id: "plain", persona }, { isDeclaration })).toMatchObject(outside);
    const id = newConversationId("us");
    const conversation = await getAgentByName(exports.Conversation, `strict:${id}`);
    expect(await conversation.create(strict, { id, agentId: body.id })).toMatchObject({
      ok: false,
      error: { code: "INVALID_INPUT", errors: [{ path: "/jurisdiction" }] },
    });
  });

  test("no agent of another jurisdiction takes part, even by a call", async () => {
    const ask = { id: "ask", name: "ask", description: "Asks.", target: { agent: "far_us" } };
    expect((await post("/api/libraries/apart/tools", ask, apart)).status).toBe(201);
    const near = { ...persona, tools: { toolIds: ["apart/ask"] } };
    for (const agent of [
      { id: "far_us", persona },
      { id: "near_eu", persona: near },
    ])
      expect((await post("/api/agents", agent, apart)).status).toBe(201);
    const elsewhere = await post("/api/conversations", { agentId: "near_eu", jurisdiction: "us" }, apart);
    expectProblem(elsewhere, 422, "INVALID_INPUT", "/agentId");

    const { body } = await post("/api/conversations", { agentId: "near_eu" }, apart);
    const path = `/api/conversations/${body.id}`;
    const joins = await post(`${path}/participants`, { type: "agent", id: "far_us" }, apart);
    expectProblem(joins, 403, "FORBIDDEN");
    expect(joins.body.detail).toContain('"far_us" is in the jurisdiction "us"');

    const play = new Play({
      replies: [[{ call: "ask", input: { message: "Hello?" } }], [{ text: "They may not." }]],
    });
    const { turnId } = (await post(`${path}/turns`, { content: play.content }, apart)).body;
    await expect
      .poll(async () => (await get(`${path}/turns/${turnId}`, apart)).body)
      .toMatchObject({
        status: "completed",
        answer: "They may not.",
        moves: [{ toolResult: { success: false, error: { code: "PERMISSION_DENIED" } } }, {}],
      });
  });
});

describe("G14 a complete conversation in a jurisdiction", () => {
  afterEach(checkInvariants);

  /** Calls of a method of the platform's namespaces, which it still runs. */
  const prototype = ownerOf(exports.Conversation, "jurisdiction");
  const jurisdictions = vi.spyOn(prototype, "jurisdiction");
  let names: MockInstance<DurableObjectNamespace["getByName"]>;
  afterAll(() => vi.restoreAllMocks());

  const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };

  beforeAll(async () => {
    // An earlier test restores a spy of its own on this method.
    names = vi.spyOn(prototype, "getByName");
    const made = await Promise.all(
      [
        ["/api/agents", { id: "helper_eu", persona: { identity } }],
        ["/api/agents", { id: "outsider", persona: { identity } }],
        [
          "/api/libraries/abroad/tools",
          { id: "ask", name: "ask", description: "Asks.", target: { agent: "helper_eu" } },
        ],
      ].map(([path, body]) => request(String(path), { method: "POST", body: JSON.stringify(body) })),
    );
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201]);
    const toolIds = ["test/counter", "test/pay", "abroad/ask"];
    const body = JSON.stringify({ id: "manager_eu", persona: { identity, tools: { toolIds } } });
    const response = await request("/api/agents", { method: "POST", body });
    expect(response.status, await response.clone().text()).toBe(201);
  });

  test("every look-up of it, of its agents and of called agents requests the jurisdiction", async () => {
    jurisdictions.mockClear();
    names.mockClear();
    const conversation = await createConversation("manager_eu");
    expect(jurisdictionOf(conversation.id)).toBe("eu");
    const child = new Play({ replies: [[{ text: "Forty-two." }]] });
    const { play, turnId } = await conversation.play((key: string) => ({
      replies: [
        [{ call: "counter", input: {} }],
        [{ call: "ask", input: { message: child.content } }],
        [{ call: "pay", input: { key } }],
        [{ text: "Done." }],
      ],
    }));
    const [run = expect.fail("no run")] = await play.runs(1);
    await expect.poll(async () => (await conversation.turn(turnId)).phase).toBe("waiting");
    await crash();
    // SAFETY: the tool reports its handle.
    const { handle } = run.input as { handle: string };
    await completeOperation(handle, { result: { paid: true } });
    const turn = await conversation.ended(turnId);
    expect(turn).toMatchObject({ status: "completed", answer: "Done." });

    const called = turn.moves.flatMap(({ toolCall }) => toolCall?.agent?.conversationId ?? []);
    expect(called.map(jurisdictionOf)).toEqual(["eu"]);
    const room = new TestConversation(called[0] ?? "");
    expect((await room.messages()).map(({ content }) => content)).toEqual([child.content, "Forty-two."]);
    const client = await conversation.connect();
    await client.until(({ conversation: shown }) => shown?.jurisdiction === "eu");
    const index = await (await getAgentByName(exports.Agent, "test:manager_eu", {})).conversations();
    expect(index).toMatchObject({ ok: true, value: { items: [{ id: conversation.id }] } });

    // Conversations of earlier tests may still look up their own actors. Those look-ups name other ids.
    const ids = [conversation.id, String(called[0]), "manager_eu", "helper_eu"];
    const looked = names.mock.calls.filter(([name]) => ids.some((id) => String(name).includes(id)));
    expect(looked.length).toBeGreaterThan(10);
    const inEurope = jurisdictions.mock.calls.flat().filter((jurisdiction) => jurisdiction === "eu");
    expect(inEurope.length).toBeGreaterThanOrEqual(looked.length);
  });

  test("an agent of elsewhere may join, and a message finds it and the others by their ids", async () => {
    const conversation = await createConversation("manager_eu");
    const path = `${conversation.path}/participants`;
    for (const id of ["helper_eu", "outsider"]) {
      const init = { method: "POST", body: JSON.stringify({ type: "agent", id }) };
      expect((await request(path, init)).status).toBe(200);
    }
    const ask = async (content: string) => {
      const init = { method: "POST", body: JSON.stringify({ content }) };
      const { turnId } = await (await request(`${conversation.path}/turns`, init)).json<{ turnId: string }>();
      return (await conversation.ended(turnId)).agentId;
    };
    const script = new Play({ replies: [[{ text: "Yes." }]] });
    const second = new Play({ replies: [[{ text: "Yes." }]] });
    expect(await ask(script.content.replace('{"key"', '{"to":"@helper_eu","key"'))).toBe("helper_eu");
    expect(await ask(second.content.replace('{"key"', '{"to":"@outsider","key"'))).toBe("outsider");
  });

  test("clients of the OpenAI protocols continue in it", async () => {
    const respond = async (body: object) => {
      const response = await request("/v1/responses", {
        method: "POST",
        body: JSON.stringify({ model: "helper_eu", ...body }),
      });
      expect(response.status, await response.clone().text()).toBe(200);
      return {
        ...(await response.json<{ id: string }>()),
        conversation: response.headers.get("x-dramatis-conversation"),
      };
    };
    const first = await respond({ input: new Play({ replies: [[{ text: "One." }]] }).content });
    expect(first.conversation).toMatch(/_eu$/);
    const second = await respond({
      input: new Play({ replies: [[{ text: "Two." }]] }).content,
      previous_response_id: first.id,
    });
    expect(second.conversation).toBe(first.conversation);
  });
});

test("G14 by RPC: `locationOf` returns the options of `getAgentByName`, and the hint is stored", async () => {
  const id = "teller_eu";
  const actor = await getAgentByName(exports.Agent, `located:${id}`, {
    ...locationOf("teller"),
    locationHint: "weur",
  });
  const made = await actor.create(TENANT, { id, persona: "test/plain", locationHint: "weur" });
  expect(made).toMatchObject({ ok: true, value: { id, jurisdiction: "eu", locationHint: "weur" } });
  expect(
    await actor.create(TENANT, { id, persona: "test/plain", locationHint: "moon" as "weur" }),
  ).toMatchObject({
    ok: false,
    error: { code: "INVALID_INPUT" },
  });
});

/** Returns the object in the chain of prototypes that has a method. */
function ownerOf(value: object, method: string): DurableObjectNamespace {
  for (let owner = value; owner !== null; owner = Object.getPrototypeOf(owner)) {
    // SAFETY: the namespaces of the platform have these methods.
    if (Object.hasOwn(owner, method)) return owner as DurableObjectNamespace;
  }
  return expect.fail(`no ${method}`);
}
