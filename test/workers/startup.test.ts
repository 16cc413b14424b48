/** The start of an application: the agents that its code declares, and its answers until it is ready. */
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { dramatis } from "../../src/dramatis.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import type { DramatisEnv, DramatisOptions } from "../../src/options.ts";
import { DramatisError, dramatisError } from "../../src/shared/errors.ts";
import type { FirstAgent } from "../../src/startup.ts";
import { answer, call, createConversation, get, persona, post, send } from "./http-client.ts";
import { testLibrary } from "./library.ts";
import { Play } from "./provider.ts";

const LOCAL = { subject: "ada", tenant: "local", roles: ["admin"] };

test("GET /health needs no token and returns the version", async () => {
  const { status, body } = await answer(await send("/health", {}, null));
  expect(status).toBe(200);
  const version = expect.stringMatching(/^\d+\.\d+\.\d+/);
  expect(body).toEqual({ status: "ok", version, missing: [], model: "offline" });
  expect((await send("/health", { method: "HEAD" }, null)).status).toBe(200);
});

/** A new isolate of an application with these options, in the environment of the tests. */
function deploy(options: Partial<DramatisOptions>, change: object = {}) {
  const app = dramatis({ libraries: [testLibrary], authorize: async () => LOCAL, ...options });
  return async (path: string, init: RequestInit = {}) => {
    const context = createExecutionContext();
    // SAFETY: the test environment has every binding of the application; some are changed.
    const environment = { ...env, ...change } as unknown as DramatisEnv;
    const request = new Request(`http://dramatis.test${path}`, init);
    const response = await app.handler.fetch(request, environment, context);
    await waitOnExecutionContext(context);
    return { status: response.status, body: await response.text() };
  };
}

/** Runs an application that declares an agent with this persona. */
async function declare(id: string, declared: FirstAgent["persona"]) {
  expect(await deploy({ agents: [{ id, persona: declared }] })("/health")).toMatchObject({ status: 200 });
}

const scripted = (systemPrompt: string) => ({ identity: { systemPrompt, modelProfileId: "test/scripted" } });

/** Returns the instructions that the model of a conversation gets. */
async function instructions(conversation: string): Promise<string> {
  const play = new Play({ replies: [[{ text: "Yes." }]] });
  const body = JSON.stringify({ content: play.content });
  const headers = { accept: "text/event-stream" };
  await (
    await send(`/api/conversations/${conversation}/turns`, { method: "POST", headers, body }, LOCAL)
  ).text();
  return JSON.stringify(await play.requests(1));
}

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue());
afterEach(() => void vi.restoreAllMocks());

describe("an agent that code declares", () => {
  test("IDENT-3 has the new persona after a deploy; a conversation keeps the persona that it began with", async () => {
    await declare("declared-one", scripted("The first."));
    const before = await createConversation("declared-one", LOCAL);
    await declare("declared-one", scripted("The second."));
    expect((await get("/api/agents/declared-one", LOCAL)).body).toMatchObject({
      persona: scripted("The second."),
    });
    const after = await createConversation("declared-one", LOCAL);
    expect(await instructions(before)).toContain("The first.");
    expect(await instructions(after)).toContain("The second.");
  });

  test("IDENT-3 keeps a change over HTTP until its declaration changes", async () => {
    const read = async () => (await get("/api/agents/declared-two", LOCAL)).body;
    await declare("declared-two", "test/plain");
    await call("PATCH", "/api/agents/declared-two", { persona, projectIds: ["other"] }, LOCAL);
    await declare("declared-two", { library: "test", id: "plain" });
    expect(await read()).toMatchObject({ persona, projectIds: ["other"] });
    await declare("declared-two", "test/handy");
    expect(await read()).toMatchObject({
      persona: { library: "test", id: "handy" },
      projectIds: ["default"],
    });
    const { agents } = (await get("/api/agents?limit=200", LOCAL)).body;
    expect(agents.find(({ id }) => id === "declared-two")).toEqual(await read());
  });

  test("IDENT-3 gets the persona in the code if it was created over HTTP, and keeps its conversations", async () => {
    await post("/api/agents", { id: "declared-three", persona }, LOCAL);
    const { createdAt } = (await get("/api/agents/declared-three", LOCAL)).body;
    await declare("declared-three", "test/plain");
    const { body } = await get("/api/agents/declared-three", LOCAL);
    expect(body).toMatchObject({ persona: { library: "test", id: "plain" }, createdAt });
    expect((await post("/api/agents", { id: "declared-three", persona }, LOCAL)).status).toBe(409);
  });

  test("GET /health names a missing persona, and the existing personas", async () => {
    // The agent's actor has the library `test`.
    const { status, body } = await deploy({
      libraries: [],
      agents: [{ id: "first-guide", persona: "test/handi", tenant: "misspelt" }],
    })("/health");
    expect(status).toBe(503);
    expect(JSON.parse(body).detail).toContain('Library "test" has no persona "handi". It has: handy, ');
    expect(JSON.parse(body).detail).toContain('"first-guide"');
  });

  test("IDENT-4 keeps the order of the code in the list; without its persona it is marked, and no error offers it", async () => {
    const plain = defineLibrary("test", {
      personas: [definePersona("plain", { identity: { systemPrompt: "Plain." } })],
    });
    await deploy({ agents: [{ id: "order-old", persona: "test/handy" }] })("/health");
    const later = deploy({
      libraries: [plain],
      agents: [
        { id: "order-second", persona: "test/plain" },
        { id: "order-first", persona: "test/plain" },
      ],
    });
    const { agents } = JSON.parse((await later("/api/agents?limit=200")).body);
    const shown = (id: string) => {
      const { codePosition, personaMissing } = agents.find((agent: { id: string }) => agent.id === id);
      return { codePosition, personaMissing };
    };
    expect(shown("order-second")).toEqual({ codePosition: 0 });
    expect(shown("order-first")).toEqual({ codePosition: 1 });
    expect(shown("order-old")).toEqual({ personaMissing: true });
    expect(JSON.parse((await later("/api/agents/order-old")).body)).toMatchObject({ personaMissing: true });

    await env.DB.prepare("UPDATE agents SET persona = ? WHERE id = 'order-old'")
      .bind(JSON.stringify({ library: "test", id: "gone" }))
      .run();
    const { detail } = (await post("/api/conversations", { agentId: "order-olf" }, LOCAL)).body;
    expect(detail).toContain("order-first");
    expect(detail).not.toContain("order-old");
  });

  test.each([
    [
      "a persona that its library does not have",
      [{ id: "a", persona: "test/handi" }],
      'Agent "a": library "test" has no persona "handi". It has: handy, ',
    ],
    ["no reference", [{ id: "a", persona: "test/" }], "reference"],
    ["an invalid id", [{ id: "A", persona: "test/plain" }], "lower-case letters"],
    [
      "one id twice",
      [
        { id: "a", persona: "test/plain" },
        { id: "a", persona },
      ],
      'Agent "a": `agents` declares this id twice',
    ],
  ])("with %s is refused when the Worker starts", (_, agents, message) => {
    expect(() => dramatis({ libraries: [testLibrary], agents })).toThrow(message);
  });
});

test("G28 needs no bindings of its classes", async () => {
  expect(await deploy({ libraries: [] })("/health")).toMatchObject({ status: 200 });
});

test.each<[string, object, string[]]>([
  ["nothing", { DRAMATIS_LOCAL: "1" }, []],
  ["authentication", {}, ["AUTH_SECRET"]],
  ["no bindings with tokens", { AUTH_SECRET: "a secret of more than thirty-two bytes" }, []],
  ["D1", { DB: undefined, DRAMATIS_LOCAL: "1" }, ["DB"]],
  ["all", { DB: undefined, BUCKET: undefined, DRAMATIS_LOCAL: "0" }, ["DB", "BUCKET", "AUTH_SECRET"]],
])("GET /health is 200 and lists missing bindings, without secrets: %s", async (_, change, names) => {
  const app = dramatis({ libraries: [] });
  const environment = { ...env, ...change } as unknown as DramatisEnv;
  const request = new Request("http://localhost/health");
  const response = await app.handler.fetch(request, environment, createExecutionContext());
  const body = await response.json<{ missing: { name: string; message: string }[] }>();
  expect(response.status).toBe(200);
  expect(body.missing.map(({ name }) => name)).toEqual(names);
  for (const { message } of body.missing) expect(message).toMatch(/\b(?:Add|Set) /);
  expect(JSON.stringify(body)).not.toContain("thirty-two");
});

test("an error that crosses an RPC keeps its code and its options, and loses its class", async () => {
  // SAFETY: the batch is malformed. The Executor of the application is among the exports.
  const { Executor } = exports as unknown as { Executor: { run(calls: object[], caller: object): unknown } };
  const error = await Promise.resolve(Executor.run([{}], {})).catch((thrown: unknown) => thrown);
  expect(error).not.toBeInstanceOf(DramatisError);
  const errors = expect.arrayContaining([{ path: "/0/operationId", message: "Is required." }]);
  expect(dramatisError(error)?.toData()).toMatchObject({ code: "INVALID_INPUT", retriable: false, errors });
});

describe("READY-1 a runtime that is not ready", () => {
  const silent = { run: () => Promise.reject(new Error("not connected")) };
  const agents = [{ id: "ready-guide", persona: "test/plain" }];

  test.each<[string, Partial<DramatisOptions>, object, string]>([
    ["an Executor that does not answer", { agents }, { Executor: silent }, "`Executor` must have this class"],
    [
      "an Executor with an unusable setting of its own",
      { agents },
      { Executor: exports.MisconfiguredExecutor },
      'Did you mean \\"openai\\"? Providers are ',
    ],
    ["a library that is not deployed", { agents: [{ id: "ready-lost", persona: "tset/plain" }] }, {}, "tset"],
    ["an unusable DRAMATIS_MODEL", {}, { DRAMATIS_MODEL: "sk-proj-1" }, "DRAMATIS_MODEL must be"],
    ["a key instead of a provider", {}, { DRAMATIS_MODEL: "sk-proj-1/x" }, "DRAMATIS_MODEL must be"],
    [
      "a host with a password",
      {},
      { DRAMATIS_MODEL_HOSTS: "https://one.example, https://u:sk-proj-1@one.example" },
      "Entry 2 of DRAMATIS_MODEL_HOSTS is not a host",
    ],
    [
      "a key instead of its name",
      {},
      { DRAMATIS_MODEL_SECRETS: "sk-proj-1" },
      "Entry 1 of DRAMATIS_MODEL_SECRETS cannot contain a key",
    ],
  ])("answers 503 with the reason, and without the value: %s", async (_, options, change, reason) => {
    const request = deploy(options, change);
    const init = { method: "POST", body: JSON.stringify({ agentId: "ready-guide" }) };
    for (const [path, sent] of [["/health"], ["/api/conversations", init], ["/v1/models"]] as const) {
      const { status, body } = await request(path, sent);
      expect(status, path).toBe(503);
      expect(body).toContain("The runtime is not ready.");
      expect(body).toContain(reason);
      expect(body).not.toContain("not connected");
      expect(body).not.toContain("sk-proj-1");
    }
  });
});

test("an option that `dramatis()` does not have is refused when the Worker starts", () => {
  const refused = (options: object) => () => dramatis(options);
  expect(refused({ agent: [] })).toThrow('`dramatis()` has no option "agent". Did you mean "agents"?');
  expect(refused({ zebra: 1 })).toThrow(/^`dramatis\(\)` has no option "zebra"\. The options are: /);
});
