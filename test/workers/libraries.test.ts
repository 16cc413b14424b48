/** Libraries: definitions by API and by code, their versions, and their use in conversations. */
import { env, exports } from "cloudflare:workers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { OFFLINE_PROFILE } from "../../src/adapters/default-profile.ts";
import { D1Definitions } from "../../src/d1/d1-definitions.ts";
import { MAX_VERSIONS } from "../../src/d1/definition-statements.ts";
import { migrate } from "../../src/d1/migrate.ts";
import { checkedPersona } from "../../src/library/authoring/authoring.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../src/library/define/define.ts";
import { contentHash } from "../../src/library/definitions/definition.ts";
import { CODE_TENANT } from "../../src/library/registry/definition-source.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { Persona, ToolDefinition, ToolEffect } from "../../src/protocol/definitions.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { ADMIN, type Answer, expectProblem, get, MEMBER, post, send } from "./http-client.ts";
import { testLibrary } from "./library.ts";
import { ServedDocument } from "./provider.ts";
import { createAgent, createConversation, request, TestConversation } from "./world.ts";

/** The tenant that `world.ts` lives in. */
const AUTHOR: Principal = { subject: "ann", tenant: "test", roles: ["author"] };
const inTenant = (tenant: string, roles: Principal["roles"] = ["author"], subject = "ann"): Principal => ({
  subject,
  tenant,
  roles,
});

const guide = (systemPrompt: string, more: object = {}) => ({
  id: "guide",
  identity: { systemPrompt, modelProfileId: "test/scripted" },
  ...more,
});
const scripted = (modelId: string): ModelProfile => ({
  provider: "openai",
  modelId,
  baseUrl: env.PROVIDER_URL,
});

/** Adds a version; the answer is checked to be one. */
async function add(path: string, body: object, principal = AUTHOR): Promise<Answer> {
  const answer = await post(`/api/libraries/${path}`, body, principal);
  expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status);
  return answer;
}

/** The provider's request for the next turn of a conversation. */
async function nextRequest(conversation: TestConversation) {
  const { play, turnId } = await conversation.play({ replies: [[{ text: "Yes." }]] });
  await conversation.ended(turnId);
  const [first] = await play.requests(1);
  if (first === undefined) throw new Error("The provider was not asked.");
  const { model, messages } = first.body;
  return { model, system: messages[0]?.content };
}

describe("versions", () => {
  test("F12 new content is the next version, and equal content has the version it had, whatever its order", async () => {
    const path = "/api/libraries/shop/personas";
    const first = await add("shop/personas", guide("One."));
    expect(first).toMatchObject({
      status: 201,
      body: {
        library: "shop",
        id: "guide",
        version: 1,
        owner: "ann",
        hash: expect.stringMatching(/^\w{64}$/),
      },
    });
    expect(first.headers.get("location")).toBe(`${path}/guide/versions/1`);
    const second = await add("shop/personas", guide("Two.", { description: "Newer." }));
    expect(second).toMatchObject({ status: 201, body: { version: 2 } });
    const { id, ...rest } = guide("Two.", { description: "Newer." });
    const reordered = Object.fromEntries(Object.entries({ id, ...rest }).reverse());
    expect(await add("shop/personas", reordered)).toMatchObject({ status: 200, body: second.body });
    // Writing a default out is no change, a description is one.
    const complete = guide("One.", {
      memory: { recentTurnsLimit: 20 },
      tools: { constraints: { maxMovesPerTurn: 16 } },
    });
    expect(await add("shop/personas", complete)).toMatchObject({ status: 200, body: first.body });
    expect((await add("shop/personas", guide("One.", { description: "!" }))).body.version).toBe(3);
    expect((await get(`${path}/guide/versions/1`, AUTHOR)).body).toEqual(first.body);
  });

  test("F12 latest is the highest number, not the first, the last in the alphabet or the last requested version", async () => {
    for (let n = 1; n <= 11; n++) await add("numbers/personas", guide(`Number ${n}.`));
    await add("numbers/personas", guide("Number 3."));
    const path = "/api/libraries/numbers/personas/guide";
    expect((await get(path, AUTHOR)).body.version).toBe(11);
    const { body } = await get(path.replace("/guide", ""), AUTHOR);
    expect(body).toMatchObject({ personas: [{ version: 11 }] });
    const chain = await registryOf("test").persona({ library: "numbers", id: "guide" });
    expect(chain).toMatchObject({ version: 11, definition: { identity: { systemPrompt: "Number 11." } } });
    const pinned = await registryOf("test").persona({ library: "numbers", id: "guide", version: 9 });
    expect(pinned).toMatchObject({ version: 9, definition: { identity: { systemPrompt: "Number 9." } } });
    expect(await get(`${path}/versions/12`, AUTHOR)).toMatchObject({ status: 404 });
  });

  test("F12 a later version reaches new conversations only; running conversations keep theirs, after an eviction too", async () => {
    await add("desk/personas", guide("First."));
    const [latest, pinned] = [await createAgent("desk/guide"), await createAgent("desk/guide@1")];
    const before = await createConversation(latest);
    expect((await nextRequest(before)).system).toBe("First.");
    await add("desk/personas", guide("Second."));
    expect((await nextRequest(await createConversation(latest))).system).toBe("Second.");
    expect((await nextRequest(await createConversation(pinned))).system).toBe("First.");
    expect((await nextRequest(before)).system).toBe("First.");
    await before.evict();
    expect((await nextRequest(before)).system).toBe("First.");
  });

  test("A4 changing a model profile alters a new conversation's request without touching the persona", async () => {
    await add("models/model-profiles", { id: "fast", ...scripted("small") });
    const persona = await add("models/personas", {
      id: "clerk",
      identity: { systemPrompt: "You are a clerk.", modelProfileId: "fast" },
    });
    const agent = await createAgent("models/clerk");
    const before = await createConversation(agent);
    expect(await nextRequest(before)).toEqual({ model: "small", system: "You are a clerk." });
    const changed = await add("models/model-profiles", { id: "fast", ...scripted("large") });
    expect(changed.body.version).toBe(2);
    const after = await createConversation(agent);
    expect(await nextRequest(after)).toEqual({ model: "large", system: "You are a clerk." });
    await before.evict();
    expect(await nextRequest(before)).toEqual({ model: "small", system: "You are a clerk." });
    expect((await get("/api/libraries/models/personas/clerk", AUTHOR)).body).toEqual(persona.body);
  });

  test("DEFS-1 DEFS-2 writers at once get numbers without a gap, and equal content one", async () => {
    const write = (n: number) => post("/api/libraries/race/personas", guide(`Writer ${n}.`), AUTHOR);
    const answers = await Promise.all([0, 1, 2, 3, 4, 5, 0, 1, 2, 0].map(write));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(6);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4);
    const versions = answers.map(({ body }) => body.version);
    expect([...new Set(versions)].toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
    expect([versions[6], versions[7], versions[8], versions[9]]).toEqual([
      versions[0],
      versions[1],
      versions[2],
      versions[0],
    ]);
  });

  test("a definition has a limited number of versions", async () => {
    const store = new D1Definitions(database(), "many");
    const key = { library: "full", kind: "persona" as const, id: "guide" };
    const definition = { identity: { systemPrompt: "One more." } };
    const add = (hash: string) => store.add({ ...key, definition, hash }, inTenant("many"));
    await add("first");
    await database()
      .prepare("UPDATE definitions SET version = ?1 WHERE tenant = 'many' AND library = 'full'")
      .bind(MAX_VERSIONS)
      .run();
    await expect(add("second")).rejects.toMatchObject({ code: "CONFLICT" });
    expect(await add("first")).toMatchObject({ created: false });
  });
});

describe("tools by API", () => {
  const twice = {
    id: "twice",
    name: "twice",
    description: "Doubles a small number.",
    target: { task: "test/double" },
    inputSchema: {
      type: "object",
      properties: { n: { type: "integer", maximum: 9 } },
      required: ["n"],
      additionalProperties: false,
    },
  };

  const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`m${index}`, "input.n"]));

  test("F10 STEP-3 STEP-4 A6 run a task of steps; the failure of a step is the tool's, with the step's name", async () => {
    const inputSchema = {
      type: "object",
      properties: { order: { type: "string" }, strict: { type: "boolean" }, prices: { type: "string" } },
    };
    const prices = new ServedDocument();
    await prices.set([10, 20]);
    const tool = {
      id: "bill",
      name: "bill",
      description: "Bills.",
      target: { task: "test/bill" },
      inputSchema,
    };
    expect((await add("math/tools", tool)).body.definition).toMatchObject({ effect: "pure" });
    await add("math/personas", guide("Bill.", { tools: { toolIds: ["bill"] } }));
    const conversation = await createConversation(await createAgent("math/guide"));
    const { turnId } = await conversation.play({
      replies: [
        [
          { call: "bill", input: { order: "o1", strict: false } },
          { call: "bill", input: { order: "o2", strict: true } },
          { call: "bill", input: { order: "o3", strict: false, prices: prices.url } },
          { call: "bill", input: { order: "o4", strict: false, prices: "http://localhost/" } },
        ],
        [{ text: "Done." }],
      ],
    });
    const { moves } = await conversation.ended(turnId);
    expect(moves.flatMap(({ toolResult }) => toolResult ?? [])).toMatchObject([
      { success: true, result: { total: 5, checked: ["load"] } },
      { success: false, error: { code: "NOT_FOUND", message: 'Step "check": There is no order "o2".' } },
      { success: true, result: { total: 30 } },
      { success: false, error: { code: "PERMISSION_DENIED" } },
    ]);
    expect(await prices.reads()).toBe(1);
  });

  test("A6 A7 run the code of the deployed tool, on input that the posted schema accepts", async () => {
    const added = await add("math/tools", twice);
    expect(added.body.definition).toMatchObject({
      effect: "pure",
      timeoutMs: 60_000,
      target: { task: "test/double" },
    });
    await add("math/personas", guide("Count.", { tools: { toolIds: ["twice"] } }));
    const conversation = await createConversation(await createAgent("math/guide"));
    const { play, turnId } = await conversation.play({
      replies: [
        [
          { call: "twice", input: { n: 4 } },
          { call: "twice", input: { n: 40 } },
        ],
        [{ text: "Done." }],
      ],
    });
    const { moves } = await conversation.ended(turnId);
    expect(moves.map(({ toolCall, toolResult }) => [toolCall?.toolId, toolResult])).toMatchObject([
      ["math/twice", { success: true, result: { doubled: 8 } }],
      ["math/twice", { success: false, error: { code: "INVALID_INPUT" } }],
      [undefined, undefined],
    ]);
    const [request] = await play.requests(1);
    expect(request?.body.tools).toMatchObject([
      { function: { name: "twice", description: "Doubles a small number." } },
    ]);
  });

  test("A8 INMAP-1 a task gets the mapped members, and without a mapping the same input", async () => {
    const described = {
      description: "Saves.",
      inputSchema: { type: "object" },
      target: { task: "test/save" },
    };
    const inputMapping = {
      key: "input.where.key",
      n: "size(input.words.filter(w, w != ''))",
      gate: "input.gate",
    };
    const { body } = await add("mapped/tools", { id: "note", name: "note", ...described, inputMapping });
    expect(body.definition).toMatchObject({ inputMapping });
    await add("mapped/tools", { id: "plain", name: "plain", ...described });
    await add("mapped/personas", guide("Save.", { tools: { toolIds: ["note", "plain"] } }));
    const conversation = await createConversation(await createAgent("mapped/guide"));
    const words = ["a", "", "b"];
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [
          { call: "note", input: { where: { key }, words } },
          { call: "plain", input: { key, n: 7 } },
          { call: "note", input: { where: { key }, words: 3 } },
        ],
        [{ text: "Saved." }],
      ],
    }));
    const { moves } = await conversation.ended(turnId);
    expect(moves.map(({ toolCall, toolResult }) => [toolCall?.input, toolResult])).toMatchObject([
      [{ words }, { success: true, result: { n: 2 } }],
      [{ n: 7 }, { success: true, result: { n: 7 } }],
      [
        { words: 3 },
        {
          success: false,
          error: {
            code: "INVALID_INPUT",
            message: expect.stringMatching(/cannot be mapped: \/n: Type error/),
          },
        },
      ],
      [undefined, undefined],
    ]);
    const inputs = (await play.runs(2)).map(({ input }) => input);
    expect(inputs).toHaveLength(2);
    expect(inputs).toEqual(
      expect.arrayContaining([
        { key: play.key, n: 2 },
        { key: play.key, n: 7 },
      ]),
    );
  });

  test("EXPR-3 a hostile mapping ends, for all calls of a reply together, and the turn continues", async () => {
    const inputMapping = { n: "input.items.map(a, input.items.map(b, input.items.map(c, a + b + c)))" };
    const described = {
      description: "Loops.",
      inputSchema: { type: "object" },
      target: { task: "test/double" },
    };
    await add("loops/tools", { id: "loop", name: "loop", ...described, inputMapping });
    await add("loops/personas", guide("Loop.", { tools: { toolIds: ["loop"] } }));
    const conversation = await createConversation(await createAgent("loops/guide"));
    const items = Array.from({ length: 5_000 }, (_, index) => index);
    const { turnId } = await conversation.play({
      replies: [Array.from({ length: 8 }, () => ({ call: "loop", input: { items } })), [{ text: "Done." }]],
    });
    const { moves } = await conversation.ended(turnId);
    expect(moves[0]?.toolResult?.error).toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("too large to be mapped"),
    });
  });

  test("removed code answers NOT_FOUND, and the turn continues", async () => {
    await keepTool("ghost", "spook", {
      name: "spook",
      description: "Was there once.",
      inputSchema: { type: "object" },
      effect: "pure",
      timeoutMs: 1_000,
      target: { task: "test/gone" },
    });
    await add("ghost/personas", guide("Boo.", { tools: { toolIds: ["spook"] } }), {
      ...AUTHOR,
      roles: ["admin"],
    });
    const conversation = await createConversation(await createAgent("ghost/guide"));
    const { turnId } = await conversation.play({
      replies: [[{ call: "spook", input: {} }], [{ text: "Nobody." }]],
    });
    const { status, moves } = await conversation.ended(turnId);
    expect([status, moves[0]?.toolResult?.error?.code]).toEqual(["completed", "NOT_FOUND"]);
  });

  test.each([
    ["an unknown task", { target: { task: "test/nobody" } }, "/target/task"],
    ["a task of no deployed library", { target: { task: "math/twice" } }, "/target/task"],
    ["a task without a library", { target: { task: "double" } }, "/target/task"],
    ["a task with a version", { target: { task: "test/double@1" } }, "/target/task"],
    ["no target", { target: undefined }, "/target"],
    ["an effect that promises more", { target: { task: "test/charge" }, effect: "pure" }, "/effect"],
    ["an effect that promises a little more", { target: { task: "test/save" }, effect: "pure" }, "/effect"],
    [
      "a schema with patterns that take long to compile",
      { inputSchema: { type: "object", properties: { n: { pattern: "\\p{L}".repeat(20) } } } },
      "/inputSchema/properties/n/pattern",
    ],
    ["a schema of no object", { inputSchema: { type: "string" } }, "/inputSchema"],
    [
      "a type that there is not",
      { inputSchema: { type: "object", properties: { n: { type: "int" } } } },
      "/inputSchema/properties/n/type",
    ],
    [
      "a dangling reference",
      { inputSchema: { type: "object", properties: { n: { $ref: "#/$defs/n" } } } },
      "/inputSchema/properties/n/$ref",
    ],
    [
      "a reference elsewhere",
      { inputSchema: { type: "object", allOf: [{ $ref: "https://a.example/b" }] } },
      "/inputSchema/allOf/0/$ref",
    ],
    ["a schema that never ends", { inputSchema: { type: "object", allOf: [{ $ref: "#" }] } }, "/inputSchema"],
    [
      "an invalid pattern",
      { inputSchema: { type: "object", properties: { s: { pattern: "(" } } } },
      "/inputSchema/properties/s/pattern",
    ],
    ["a mapping with an error of syntax", { inputMapping: { n: "input." } }, "/inputMapping/n"],
    ["a mapping of another variable", { inputMapping: { n: "state.n" } }, "/inputMapping/n"],
    ["a mapping that is no text", { inputMapping: { n: 1 } }, "/inputMapping/n"],
    ["a mapping of too many members", { inputMapping: many }, "/inputMapping"],
    ["code", { execute: "() => 1" }, "/execute"],
    ["a timeout beyond 15 minutes", { timeoutMs: 900_001 }, "/timeoutMs"],
    ["a name that providers refuse", { name: "two words" }, "/name"],
    ["an id of other characters", { id: "two.words" }, "/id"],
  ])("LIBAPI-3 AUTHOR-4 are refused with %s", async (_, change, path) => {
    expectProblem(
      await post("/api/libraries/refused/tools", { ...twice, ...change }, AUTHOR),
      422,
      "INVALID_INPUT",
      path,
    );
    expect((await get("/api/libraries/refused", AUTHOR)).status).toBe(404);
  });

  test("AUTHOR-2 may promise less than the deployed tool, and inherits omitted members from it", async () => {
    const { body } = await add("careful/tools", {
      id: "cautious",
      name: "cautious",
      description: "Doubles, once.",
      target: { task: "test/double" },
      effect: "once",
    });
    const double = testLibrary.tools.find(({ id }) => id === "double");
    expect(body.definition).toEqual({
      ...double?.definition,
      name: "cautious",
      description: "Doubles, once.",
      effect: "once",
      target: { task: "test/double" },
    });
  });

  test.each([
    ["pure", "once"],
    ["idempotent", "once"],
  ] as const)(
    "REG-6 a tool that was %s when it was added is pinned with the present deployed code",
    async (old, now) => {
      await keepTool("older", `was-${old}`, {
        name: "was",
        description: "Charges.",
        inputSchema: { type: "object" },
        effect: old,
        timeoutMs: 1_000,
        target: { task: "test/charge" },
      });
      const { definition } = await registryOf("test").tool({ library: "older", id: `was-${old}` });
      expect(definition.effect).toBe(now);
    },
  );
});

describe("tools over tasks", () => {
  test("LIBCHECK-1 the error for an unknown task lists the known tasks, the most similar first", async () => {
    const detailOf = async (task: string) => {
      const tool = { id: "t", name: "t", description: "A tool.", target: { task } };
      const { status, body } = await post("/api/libraries/wrong/tools", tool);
      expect(status).toBe(422);
      return body.detail;
    };
    expect(await detailOf("test/Doubel")).toMatch(
      /\/target\/task: There is no deployed task or tool "test\/Doubel"\. Library "test" has: double, /,
    );
    expect(await detailOf("tset/double")).toMatch(
      /There is no task "tset\/double"\. Deployed libraries: test, /,
    );
  });

  test("TOOLFORM-1 a posted tool keeps its version when it is posted again in another form, and runs", async () => {
    await add("stored/personas", guide("Count."));
    const tool = {
      id: "doubled",
      name: "doubled",
      description: "Doubles.",
      inputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      effect: "pure",
      timeoutMs: 60_000,
    };
    const task = "test/double";
    const { body } = await add("stored/tools", { ...tool, target: { task } });
    for (const form of [{ task }, { taskId: task }]) {
      const again = await add("stored/tools", { ...tool, ...form });
      expect(again).toMatchObject({ status: 200, body: { version: 1, hash: body.hash } });
    }
    await add("stored/personas", guide("Count.", { tools: { toolIds: ["doubled"] } }));
    const conversation = await createConversation(await createAgent("stored/guide"));
    const { turnId } = await conversation.play({
      replies: [[{ call: "doubled", input: { n: 4 } }], [{ text: "Done." }]],
    });
    const { moves } = await conversation.ended(turnId);
    expect(moves[0]?.toolResult).toMatchObject({ success: true, result: { doubled: 8 } });
  });
});

describe("other forms by RPC", () => {
  test("A2 PERSONAFORM-1 an agent takes `libraryId` from a Worker, and shows our form", async () => {
    // SAFETY: the exported class implements `AgentApi`.
    const agent = exports.Agent.getByName("test:by-rpc") as unknown as AgentApi;
    const persona = { libraryId: "test/plain", version: "1" };
    const created = unwrap(await agent.create(AUTHOR, { id: "by-rpc", persona }));
    expect(created.persona).toEqual({ library: "test", id: "plain", version: 1 });
    const changed = unwrap(await agent.update(AUTHOR, { persona: { libraryId: "test", id: "plain" } }));
    expect(changed.persona).toEqual({ library: "test", id: "plain" });
  });
});

test("requests by RPC have the rules of HTTP: a change is not empty, and a persona has at most 512 KiB", async () => {
  // SAFETY: the exported class implements `AgentApi`.
  const agent = exports.Agent.getByName("test:by-rpc-too") as unknown as AgentApi;
  const id = "by-rpc-too";
  const identity = { systemPrompt: "x".repeat(512 * 1024) };
  expect(await agent.create(AUTHOR, { id, persona: { identity } })).toMatchObject({
    error: { code: "TOO_LARGE" },
  });
  unwrap(await agent.create(AUTHOR, { id, persona: "test/plain" }));
  expect(await agent.update(AUTHOR, {})).toMatchObject({
    error: { code: "INVALID_INPUT", errors: [{ path: "" }] },
  });
});

describe("personas and model profiles by API", () => {
  test.each([
    ["personas", guide("Hi.", { tools: { toolIds: ["absent"] } }), "/tools/toolIds/0"],
    ["personas", guide("Hi.", { tools: { toolIds: ["test/double", "test/absent"] } }), "/tools/toolIds/1"],
    ["personas", guide("Hi.", { tools: { toolIds: ["test/double", "test/double@1"] } }), "/tools/toolIds"],
    [
      "personas",
      { id: "p", identity: { systemPrompt: "Hi.", modelProfileId: "absent" } },
      "/identity/modelProfileId",
    ],
    [
      "personas",
      { id: "p", identity: { systemPrompt: "Hi.", modelProfileId: "a/b/c" } },
      "/identity/modelProfileId",
    ],
    [
      "personas",
      guide("Hi.", { memory: { scope: "user", extract: { profileId: "absent" } } }),
      "/memory/extract/profileId",
    ],
    [
      "personas",
      guide("Hi.", { memory: { scope: "user", consolidation: { by: { task: "test/absent" } } } }),
      "/memory/consolidation/by/task",
    ],
    [
      "personas",
      guide("Hi.", { memory: { scope: "user", consolidation: { by: { workflow: "absent" } } } }),
      "/memory/consolidation/by/workflow",
    ],
    ["personas", { id: "p", identity: {} }, "/identity/systemPrompt"],
    ["personas", { identity: { systemPrompt: "Hi." } }, "/id"],
    ["personas", { ...guide("Hi."), version: 7 }, "/version"],
    ["model-profiles", { id: "p", provider: "acme", modelId: "m" }, "/provider"],
    ["model-profiles", { id: "p", ...scripted("m"), fallbacks: ["absent"] }, "/fallbacks"],
    ["model-profiles", { id: "p", ...scripted("m"), fallbacks: ["p"] }, "/fallbacks"],
    ["model-profiles", { id: "p", ...scripted("m"), costPer1kInput: -1 }, "/costPer1kInput"],
    [
      "model-profiles",
      { id: "p", ...scripted("m"), executionConfig: { idleTimeoutMs: 0 } },
      "/executionConfig/idleTimeoutMs",
    ],
    ["model-profiles", { id: "p", ...scripted("m"), apiKey: "sk-1" }, "/apiKey"],
  ])("AUTHOR-1 LIBAPI-3 %s %j are refused, by field", async (kind, body, path) => {
    expectProblem(await post(`/api/libraries/refused/${kind}`, body, AUTHOR), 422, "INVALID_INPUT", path);
    expect((await get("/api/libraries/refused", AUTHOR)).status).toBe(404);
  });

  test.each([
    ["another host", "https://elsewhere.example/v1"],
    ["another port", "http://127.0.0.1:1/v1"],
    ["a provider's host without encryption", "http://api.openai.com/v1"],
    ["a host that only looks like one", "https://api.openai.com.elsewhere.example/v1"],
    ["a user", env.PROVIDER_URL.replace("//", "//hunter2@")],
    ["a query", `${env.PROVIDER_URL}?to=elsewhere`],
    ["an empty query, which excludes an appended path", `${env.PROVIDER_URL}/files?`],
    ["an empty fragment, which does the same", `${env.PROVIDER_URL}/files#`],
  ])(
    "AUTHOR-3 a base URL with %s is refused, and the error names the required setting",
    async (_, baseUrl) => {
      const profile = { id: "p", ...scripted("m"), baseUrl };
      const refused = await post("/api/libraries/hosts/model-profiles", profile, AUTHOR);
      expectProblem(refused, 422, "INVALID_INPUT", "/baseUrl");
      expect(refused.body.detail).toMatch(/DRAMATIS_MODEL_HOSTS.*models\.allowedHosts|Must have no user/);
      expect(refused.body.detail).not.toContain("hunter2");
    },
  );

  test.each([
    ["openai", "STRIPE_API_KEY"],
    ["openai", "GITHUB_TOKEN"],
    ["anthropic", "OPENAI_API_KEY"],
    ["gemini", "some_api_key"],
  ])("AUTHOR-3 %s gets no key of the name %s, wherever it is", async (provider, apiKeySecret) => {
    for (const address of [{}, { baseUrl: env.PROVIDER_URL }]) {
      const profile = { id: "p", provider, modelId: "m", apiKeySecret, ...address };
      const refused = await post("/api/libraries/hosts/model-profiles", profile, AUTHOR);
      expectProblem(refused, 422, "INVALID_INPUT", "/apiKeySecret");
      expect(refused.body.detail).toMatch(/DRAMATIS_MODEL_SECRETS.*models\.allowedSecrets/);
    }
  });

  test("a base URL has an end", async () => {
    const profile = { id: "p", ...scripted("m"), baseUrl: `https://a${"/".repeat(60_000)}b` };
    const refused = await post("/api/libraries/hosts/model-profiles", profile, AUTHOR);
    expectProblem(refused, 422, "INVALID_INPUT", "/baseUrl");
  });

  test.each(["offline", "ai-sdk"])("AUTHOR-3 %s takes no base URL", async (provider) => {
    const profile = { id: "p", provider, modelId: "m", baseUrl: env.PROVIDER_URL };
    const refused = await post("/api/libraries/hosts/model-profiles", profile, AUTHOR);
    expectProblem(refused, 422, "INVALID_INPUT", "/baseUrl");
  });

  test("prices, times and fallbacks are returned unchanged, and a conversation pins them", async () => {
    const full = {
      provider: "openai",
      modelId: "m",
      baseUrl: env.PROVIDER_URL,
      apiKeySecret: "SOME_API_KEY",
      parameters: { temperature: 0 },
      executionConfig: { timeoutMs: 9_000, firstByteTimeoutMs: 3_000, idleTimeoutMs: 2_000 },
      costPer1kInput: 0.1,
      costPer1kOutput: 0.4,
      costPer1kCachedInput: 0.05,
      costPer1kCacheWrite: 0.2,
    };
    await add("full/model-profiles", { id: "spare", ...scripted("spare"), fallbacks: ["test/scripted"] });
    const { body } = await add("full/model-profiles", { id: "main", ...full, fallbacks: ["spare"] });
    expect(body.definition).toEqual({ ...full, fallbacks: ["spare"] });
    await add("full/personas", { id: "p", identity: { systemPrompt: "Hi.", modelProfileId: "main" } });
    // SAFETY: the exported class implements `AgentApi`.
    const agent = exports.Agent.getByName(`test:${await createAgent("full/p")}`) as unknown as AgentApi;
    expect(unwrap(await agent.persona()).chain.fallbacks).toMatchObject([
      { library: "full", id: "spare", version: 1, definition: scripted("spare") },
      { library: "test", id: "scripted", version: 1 },
    ]);
  });

  test.each([
    ["personas", guide("x".repeat(600_000))],
    ["tools", { id: "t", name: "t", description: "x".repeat(70_000), task: "test/double" }],
    ["model-profiles", { id: "p", ...scripted("x".repeat(70_000)) }],
  ])("%s that are too large are refused before they are read to the end", async (kind, body) => {
    expectProblem(await post(`/api/libraries/refused/${kind}`, body, AUTHOR), 413, "TOO_LARGE");
  });
});

describe("skills", () => {
  const skillFile = (name: string, body = "Do it.") =>
    `---\nname: ${name}\ndescription: Does ${name}.\n---\n${body}\n`;
  const skill = (name: string, body?: string, more: Record<string, string> = {}) => ({
    files: { "SKILL.md": skillFile(name, body), ...more },
  });
  const addSkill = (library: string, name: string, body?: string) =>
    add(`${library}/skills`, { id: name, ...skill(name, body) });
  const worker = (skills: unknown[]) => ({
    identity: { systemPrompt: "You work.", modelProfileId: "test/scripted" },
    skills,
  });

  /** Returns the text that `read_skill` gives the model for each name, and the instructions of the model. */
  async function reads(conversation: TestConversation, ...names: string[]) {
    const { play, turnId } = await conversation.play({
      replies: [
        ...names.map((name) => [{ call: "read_skill", input: { skill: name } }]),
        [{ text: "Done." }],
      ],
    });
    const { moves } = await conversation.ended(turnId);
    const [first] = await play.requests(1);
    return {
      contents: moves.flatMap(({ toolResult }) =>
        toolResult === undefined ? [] : [Object(toolResult.result).content],
      ),
      note: JSON.stringify(first?.body.messages[0]),
    };
  }

  test("I14 SKILL-6 have versions, and are read like all definitions", async () => {
    const first = await addSkill("lore", "release-notes", "One.");
    expect(first).toMatchObject({
      status: 201,
      body: { library: "lore", id: "release-notes", version: 1, definition: skill("release-notes", "One.") },
    });
    const path = "/api/libraries/lore/skills";
    expect(first.headers.get("location")).toBe(`${path}/release-notes/versions/1`);
    const second = await addSkill("lore", "release-notes", "Two.");
    expect(second).toMatchObject({ status: 201, body: { version: 2 } });
    expect(await addSkill("lore", "release-notes", "One.")).toMatchObject({ status: 200, body: first.body });
    expect((await get(path, AUTHOR)).body).toEqual({ skills: [second.body] });
    expect((await get(`${path}/release-notes`, AUTHOR)).body).toEqual(second.body);
    expect((await get(`${path}/release-notes/versions`, AUTHOR)).body).toEqual({
      versions: [first.body, second.body],
    });
    expect((await get(`${path}/release-notes/versions/1`, AUTHOR)).body).toEqual(first.body);
  });

  test.each<[string, object, string]>([
    ["another id", { id: "other", ...skill("one") }, "/id"],
    ["no id", skill("one"), "/id"],
    ["no files", { id: "one" }, "/files"],
    ["no SKILL.md", { id: "one", files: { "README.md": "" } }, "/files/SKILL.md"],
    ["a name of another form", { id: "One", ...skill("One") }, "/files/SKILL.md"],
    ["a path outside of the folder", { id: "one", ...skill("one", "", { "../a": "" }) }, "/files"],
    ["a file that is no text", { id: "one", files: { "SKILL.md": 1 } }, "/files/SKILL.md"],
    ["an unknown field", { id: "one", ...skill("one"), name: "one" }, "/name"],
    ["too many bytes", { id: "one", ...skill("one", "x".repeat(256 * 1024)) }, "/files"],
  ])("I14 SKILL-3 SKILL-6 with %s are refused", async (_, body, path) => {
    const refused = await post("/api/libraries/refused/skills", body, AUTHOR);
    expectProblem(refused, 422, "INVALID_INPUT");
    const { errors } = refused.body as { errors: { path: string }[] };
    expect(errors[0]?.path).toMatch(new RegExp(`^${path}(/|$)`));
  });

  test("I14 SKILL-4 SKILL-7 of libraries and of the persona are read; a later version reaches new conversations only", async () => {
    await addSkill("crew", "review", "Review as in the first version.");
    await add("crew/personas", { id: "worker", ...worker(["review", skill("own", "Own.")]) });
    const agent = await createAgent("crew/worker");
    const before = await createConversation(agent);
    const old = { contents: ["Review as in the first version.", "Own."] };
    const first = await reads(before, "review", "own");
    expect(first).toMatchObject(old);
    expect(first.note).toContain("- review: Does review.\\n- own: Does own.");
    const { version } = (await addSkill("crew", "review", "Review anew.")).body;
    expect(version).toBe(2);
    const after = await reads(await createConversation(agent), "review", "own");
    expect(after.contents).toEqual(["Review anew.", "Own."]);
    const fixed = await createConversation(await createAgent(worker(["crew/review@1"]) as Persona));
    expect((await reads(fixed, "review")).contents).toEqual(["Review as in the first version."]);
    await before.evict();
    expect(await reads(before, "review", "own")).toMatchObject(old);
    const file = await (await request(`${before.path}/export`)).text();
    const imported = await request("/api/conversations/import", { method: "POST", body: file });
    const { id } = await imported.json<{ id: string }>();
    expect(await reads(new TestConversation(id), "review", "own")).toMatchObject(old);
  });

  test("AUTHOR-1 I14 SKILL-3 SKILL-7 a persona with a missing skill, or with too many bytes of skills, is refused", async () => {
    await addSkill("limits", "one", "x".repeat(150 * 1024));
    await addSkill("limits", "two", "x".repeat(150 * 1024));
    const agents = (skills: unknown[]) =>
      post("/api/agents", { persona: worker(skills) }, inTenant("test", ["admin"]));
    const personas = (skills: unknown[]) =>
      post("/api/libraries/limits/personas", { id: "p", ...worker(skills) }, AUTHOR);
    const missing = await agents(["limits/one", "limits/three"]);
    expectProblem(missing, 422, "INVALID_INPUT", "/persona");
    expect(missing.body.detail).toContain('/skills/1: Library "limits" has no skill "three".');
    expectProblem(await personas(["one", "three"]), 422, "INVALID_INPUT", "/skills/1");
    expectProblem(await personas(["one", skill("one")]), 422, "INVALID_INPUT", "/skills/1");
    expectProblem(await personas(["one", "two"]), 422, "INVALID_INPUT", "/skills");
    const large = await agents(["limits/one", "limits/two"]);
    expectProblem(large, 422, "INVALID_INPUT");
    expect(large.body.detail).toContain("The maximum is 262144");
    expect((await personas(["one"])).status).toBe(201);
  });

  test("LIBAPI-1 REG-4 I14 SKILL-7 other tenants neither read a skill nor give it to an agent", async () => {
    await addSkill("secretive", "known");
    const other = inTenant("curious", ["admin"]);
    expectProblem(await get("/api/libraries/secretive/skills/known", other), 404, "NOT_FOUND");
    expectProblem(await get("/api/libraries/secretive/skills", other), 404, "NOT_FOUND");
    const persona = worker(["secretive/known"]);
    expectProblem(await post("/api/agents", { persona }, other), 422, "INVALID_INPUT", "/persona");
  });
});

describe("ids that do not exist", () => {
  const TENANT = "probing";
  const KNOWN = 40;

  /** A registry over a library of many large tools, and the queries of its database. */
  async function probed() {
    const meter = metered();
    const stores = storesOf(meter.database, TENANT);
    const definition: ToolDefinition = {
      name: "large",
      description: "x".repeat(20_000),
      inputSchema: { type: "object" },
      effect: "pure",
      timeoutMs: 1_000,
      target: { task: "test/double" },
    };
    for (let n = 0; n < KNOWN; n++) {
      const key = { kind: "tool" as const, library: "large", id: `known-${String(n).padStart(2, "0")}` };
      await stores.authored.add({ ...key, hash: `${n}`, definition }, inTenant(TENANT));
    }
    const code = new DeployedCode([testLibrary]);
    return { meter, code, registry: () => new Registry(code, stores) };
  }

  const persona = (library: (n: number) => string) => ({
    identity: { systemPrompt: "Hi." },
    tools: { toolIds: Array.from({ length: 128 }, (_, n) => `${library(n)}/missing-${n}`) },
  });
  // The first ids, ordered by the number of characters shared with "missing-0".
  const numbers = [...Array(11).keys(), 20, 11, 12, 13, 14, 15, 16, 17, 18];
  const firstIds = numbers.map((n) => `known-${String(n).padStart(2, "0")}`).join(", ");
  const message = `Library "large" has no tool "missing-0". It has: ${firstIds}, and more.`;

  test("REG-7 128 of them in a persona take one statement more than 128 that exist, and no definition is read", async () => {
    const { meter, code, registry } = await probed();
    for (const library of [() => "large", (n: number) => (n === 0 ? "large" : `none-${n}`)]) {
      const checked = () => {
        const ports = { registry: registry(), tools: code, mayReach: () => true, mayReceiveKey: () => true };
        return checkedPersona(ports, { library: "own", id: "p" }, persona(library));
      };
      const resolved = () => resolveChain(registry(), persona(library), OFFLINE_PROFILE);
      for (const [action, error] of [
        [checked, { code: "INVALID_INPUT", options: { errors: [{ path: "/tools/toolIds/0", message }] } }],
        [resolved, { code: "NOT_FOUND", message: `Persona "inline", /tools/toolIds/0: ${message}` }],
      ] as const) {
        const cost = await meter.cost(() => expect(action()).rejects.toMatchObject(error));
        expect(cost).toMatchObject({ statements: 128 + 1, written: 0 });
        expect(cost.read, "the ids").toBeLessThanOrEqual(21);
      }
    }
  });

  test("REG-7 a member who requests an unknown id causes a read of ids only, and gets 20 of them", async () => {
    const { meter, registry } = await probed();
    const asked = () => registry().find("tool", { library: "large", id: "missing-0" });
    const cost = await meter.cost(() =>
      expect(asked()).rejects.toMatchObject({ code: "NOT_FOUND", message }),
    );
    expect(cost).toMatchObject({ statements: 2, written: 0 });
    expect(cost.read).toBeLessThanOrEqual(21);
    const answer = await get("/api/libraries/large/tools/missing-0", inTenant(TENANT, ["member"]));
    expectProblem(answer, 404, "NOT_FOUND");
    expect(answer.body.detail).toBe(message);
  });
});

describe("permissions", () => {
  test("LIBAPI-5 begin a library: under no id that is another's in other case, or with _ for -", async () => {
    const tenant = "alike";
    const begin = (library: string, principal: Principal) =>
      post(`/api/libraries/${library}/personas`, guide("Hi."), principal);
    const [author, admin] = [inTenant(tenant), inTenant(tenant, ["admin"], "root")];
    expect((await begin("Lib_A", author)).status).toBe(201);
    for (const id of ["lib_a", "Lib-A", "LIB_A", "Test", "TEST"]) {
      for (const principal of [author, admin]) {
        const refused = await begin(id, principal);
        expectProblem(refused, 409, "CONFLICT");
        expect(refused.body.detail).toMatch(/different/);
      }
      expect((await get(`/api/libraries/${id}`, author)).status, "LIBAPI-3").toBe(404);
      expect((await get(`/api/libraries/${id}/personas/guide`, author)).status, "LIBAPI-3").toBe(404);
    }
    for (const id of ["Lib_B", "lib-a2", "tests"]) expect((await begin(id, author)).status, id).toBe(201);
    expect((await begin("lib_a", inTenant("alike-too"))).status, "another tenant").toBe(201);
  });

  test("LIBAPI-5 continues in a library that is older than the deployed library and the rule", async () => {
    const [tenant, author] = ["earlier", inTenant("earlier")];
    const begin = database().prepare(
      "INSERT INTO libraries (tenant, id, owner, created_at) VALUES (?1, ?2, 'ann', 1)",
    );
    for (const id of ["Test", "Lib_A", "lib-a"]) {
      await begin.bind(tenant, id).run();
      expect((await post(`/api/libraries/${id}/personas`, guide("Hi."), author)).status, id).toBe(201);
    }
  });

  test("LIBAPI-5 H5 only a new library makes the database read the others", async () => {
    const meter = metered();
    const { authored } = storesOf(meter.database, "counted-alike");
    const write = (library: string, hash: string) =>
      authored.add(
        { kind: "persona", library, id: "p", hash, definition: { identity: { systemPrompt: hash } } },
        inTenant("counted-alike"),
      );
    for (let n = 0; n < 30; n++) await write(`lib-${n}`, "One.");
    expect((await meter.cost(() => write("lib-0", "Two."))).read).toBeLessThan(15);
    const another = await meter.cost(() => write("lib-30", "One."));
    expect(another).toMatchObject({ statements: 4 });
    expect(another.read).toBeLessThan(30 + 15);
  });

  test("LIBAPI-2 write: authors and administrators; into a library of somebody else, administrators only", async () => {
    const tenant = "roles";
    const write = (prompt: string, principal: Principal) =>
      post("/api/libraries/team/personas", guide(prompt), principal);
    for (const role of ["member", "operator"] as const) {
      expectProblem(await write("No.", inTenant(tenant, [role])), 403, "FORBIDDEN");
    }
    expect((await get("/api/libraries/team", inTenant(tenant))).status).toBe(404);
    expect((await write("Mine.", inTenant(tenant))).status).toBe(201);
    const other = inTenant(tenant, ["author"], "ben");
    for (const prompt of ["Mine.", "Yours."]) expectProblem(await write(prompt, other), 403, "FORBIDDEN");
    const admin = inTenant(tenant, ["admin"], "root");
    expect(await write("Ours.", admin)).toMatchObject({ status: 201, body: { version: 2, owner: "root" } });
    expect((await write("Mine again.", inTenant(tenant))).body.version).toBe(3);
    expectProblem(await write("Yours.", other), 403, "FORBIDDEN");
    const library = { id: "team", source: "api", owner: "ann" };
    expect((await get("/api/libraries/team", inTenant(tenant, ["member"], "mel"))).body).toMatchObject(
      library,
    );
    expect((await get("/api/libraries/team/personas/guide", inTenant(tenant, ["member"]))).body.version).toBe(
      3,
    );
  });

  test("LIBAPI-2 LIBAPI-3 of authors who create the same library at once, one owns it", async () => {
    const authors = ["ann", "ben", "cem", "dia"].map((name) => inTenant("begin", ["author"], name));
    const answers = await Promise.all(
      authors.map((author) => post("/api/libraries/new/personas", guide(author.subject), author)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 403, 403, 403]);
    const winner = answers.find(({ status }) => status === 201)?.body.owner;
    const { body } = await get("/api/libraries/new/personas/guide/versions", inTenant("begin"));
    expect(body).toMatchObject({ versions: [{ version: 1, owner: winner }] });
    expect((await get("/api/libraries/new", inTenant("begin"))).body).toMatchObject({ owner: winner });
  });

  test("LIBAPI-1 REG-4 two tenants with a library of the same id are separate, and both see the deployed libraries", async () => {
    const [one, two] = [inTenant("first"), inTenant("second")];
    await add("same/personas", guide("Of the first."), one);
    for (const path of [
      "",
      "/personas",
      "/personas/guide",
      "/personas/guide/versions",
      "/personas/guide/versions/1",
    ]) {
      expectProblem(await get(`/api/libraries/same${path}`, two), 404, "NOT_FOUND");
    }
    expect((await get("/api/libraries", two)).body.libraries.map(({ id }) => id)).not.toContain("same");
    const theirs = await add("same/personas", guide("Of the second."), two);
    expect(theirs).toMatchObject({ status: 201, body: { version: 1 } });
    const definition = { identity: { systemPrompt: "Of the first." } };
    expect((await get("/api/libraries/same/personas/guide", one)).body).toMatchObject({
      version: 1,
      definition,
    });
    await expect(registryOf("third").persona({ library: "same", id: "guide" })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    for (const principal of [one, two]) {
      expect((await get("/api/libraries/test/personas/plain", principal)).status).toBe(200);
    }
  });

  test("LIBAPI-2 deployed definitions are read like all others, and cannot be changed", async () => {
    for (const kind of ["personas", "tools", "model-profiles"]) {
      const refused = await post(`/api/libraries/test/${kind}`, {}, ADMIN);
      expectProblem(refused, 409, "CONFLICT");
      expect(refused.body.detail).toContain("deployed");
    }
    expect((await get("/api/libraries/test", MEMBER)).body).toEqual({
      id: "test",
      source: "code",
      owner: null,
      createdAt: null,
    });
    const { body } = await get("/api/libraries/test/personas/plain", MEMBER);
    expect(body).toMatchObject({ library: "test", id: "plain", version: 1, owner: null });
    expect(body.hash).toBe(await contentHash(body.definition as never));
    expect((await get("/api/libraries/test/personas/plain/versions/1", MEMBER)).body).toEqual(body);
    expect((await get("/api/libraries/test/personas/plain/versions", MEMBER)).body).toEqual({
      versions: [body],
    });
    for (const path of [
      "personas/none",
      "personas/none/versions",
      "personas/plain/versions/2",
      "tools/plain",
    ]) {
      expectProblem(await get(`/api/libraries/test/${path}`, MEMBER), 404, "NOT_FOUND");
    }
  });

  test("an unknown path is 404, another method 405", async () => {
    for (const path of [
      "test/nodes",
      "test/transitions",
      "test/personas/plain/versions/x",
      "test/personas/plain/versions/0",
      "Test",
      "test/personas/a%2Fb",
    ]) {
      expectProblem(await get(`/api/libraries/${path}`), 404, "NOT_FOUND");
    }
    for (const path of [
      "",
      "/test",
      "/test/personas",
      "/test/personas/plain",
      "/test/personas/plain/versions",
    ]) {
      const refused = await send(`/api/libraries${path}`, { method: "DELETE" });
      expect([refused.status, refused.headers.get("allow")?.includes("GET")]).toEqual([405, true]);
    }
  });
});

describe("lists", () => {
  /** The ids, page by page. */
  async function listed(path: string, resource: string, query: string, principal: Principal) {
    const found: string[][] = [];
    let cursor: string | undefined;
    do {
      const { status, body } = await get(
        `/api/libraries${path}?${query}${cursor === undefined ? "" : `&cursor=${cursor}`}`,
        principal,
      );
      expect(status).toBe(200);
      // SAFETY: the API names the member after the resource.
      const items = Reflect.get(body, resource) as { id: string; version?: number }[];
      found.push(items.map(({ id, version }) => (resource === "versions" ? `${version}` : id)));
      cursor = body.nextCursor;
    } while (cursor !== undefined);
    return found;
  }

  test.each([1, 2, 3, 50])("LIBAPI-4 have pages of %i, by creation and back, without loss", async (limit) => {
    const author = inTenant(`pages-${limit}`);
    const ids = ["c", "a", "d", "b"];
    for (const id of ids) await add(`${id}/personas`, guide("Hi."), author);
    for (const id of ids) await add("c/model-profiles", { id, ...scripted(id) }, author);
    for (const n of [1, 2, 3]) await add("c/model-profiles", { id: "a", ...scripted(`a${n}`) }, author);
    const deployed = ["test", "release"];
    const expected: [path: string, resource: string, ids: string[]][] = [
      ["", "libraries", [...deployed, ...ids]],
      ["/c/model-profiles", "modelProfiles", ids],
      ["/c/model-profiles/a/versions", "versions", ["1", "2", "3", "4"]],
      ["/test/model-profiles", "modelProfiles", ["scripted", "priced", "failing", "foreign", "hasty"]],
      ["/a/tools", "tools", []],
    ];
    for (const [path, resource, order] of expected) {
      const ascending = await listed(path, resource, `limit=${limit}`, author);
      const descending = await listed(path, resource, `limit=${limit}&order=desc`, author);
      const known = resource === "libraries" ? await libraryIds(order) : order;
      expect(ascending.flat()).toEqual(known);
      expect(descending.flat()).toEqual(known.toReversed());
      for (const pages of [ascending, descending])
        expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true);
    }
  });

  /** The ids of deployed libraries as they are, in place of the two that the caller wrote. */
  async function libraryIds([, , ...rest]: string[]): Promise<string[]> {
    const { body } = await get("/api/libraries", inTenant("nobody"));
    return [...body.libraries.map(({ id }) => id), ...rest];
  }

  test("a page of large definitions ends early, and the next page continues", async () => {
    const author = inTenant("large");
    for (let n = 0; n < 4; n++) {
      await add(
        "big/personas",
        { ...guide(`${n}`), id: `p${n}`, identity: { systemPrompt: `${n}` } },
        author,
      );
    }
    const store = new D1Definitions(database(), "large");
    await database()
      .prepare(
        "UPDATE definitions SET definition = json_set(definition, '$.name', ?1) WHERE tenant = 'large'",
      )
      .bind("x".repeat(1_500_000))
      .run();
    const first = await store.list("persona", "big");
    expect(first.items.map(({ id }) => id)).toEqual(["p0", "p1"]);
    const rest = await store.list("persona", "big", { cursor: first.nextCursor ?? "" });
    expect([rest.items.map(({ id }) => id), rest.nextCursor]).toEqual([["p2", "p3"], undefined]);
  });

  test.each(["limit=0", "order=up", "cursor=nonsense"])("refuse ?%s", async (query) => {
    for (const path of ["", "/test/personas"]) {
      expectProblem(await get(`/api/libraries${path}?${query}`), 422, "INVALID_INPUT");
    }
  });
});

describe("publishing deployed definitions", () => {
  const persona = (systemPrompt: string) => definePersona("guide", { identity: { systemPrompt } });
  const charge = (effect: ToolEffect) =>
    defineTool({ name: "charge", description: "Charges.", input: z.object({}), effect, execute: () => null });

  /** A deployment, as a fresh isolate has it. */
  function deployed(library: string, systemPrompt: string, effect: ToolEffect = "pure") {
    const code = new DeployedCode([
      defineLibrary(library, {
        personas: [persona(systemPrompt)],
        tools: [charge(effect)],
        modelProfiles: [defineModelProfile("offline", { provider: "offline", modelId: "offline-1" })],
      }),
    ]);
    const meter = metered();
    const registry = new Registry(code, storesOf(meter.database, "anybody"));
    const guide = (version?: number) =>
      registry.persona({ library, id: "guide", ...(version === undefined ? {} : { version }) });
    const prompt = async (version?: number) => {
      const found = await guide(version);
      return [found.version, found.definition.identity.systemPrompt];
    };
    return { registry, prompt, meter };
  }

  test("PUBLISH-1 H5 one read if all is known, writes of missing definitions only, and no statement after that", async () => {
    await migrate(database());
    const first = deployed("counted", "One.");
    await migrate(first.meter.database);
    expect(await first.meter.cost(() => first.prompt())).toEqual({
      statements: 3,
      read: expect.any(Number),
      written: 9,
    });
    expect(await first.meter.cost(() => first.prompt())).toEqual({ statements: 0, read: 0, written: 0 });
    const again = deployed("counted", "One.");
    await migrate(again.meter.database);
    const cost = await again.meter.cost(() => again.prompt());
    expect(cost).toMatchObject({ statements: 1, written: 0 });
    expect(cost.read, "the list of requested ids, and each found id").toBeLessThanOrEqual(12);
    // All at once, as for an inline persona.
    const inline = deployed("counted", "One.");
    await migrate(inline.meter.database);
    const source = {
      identity: { systemPrompt: "Hi.", modelProfileId: "counted/offline" },
      tools: { toolIds: ["counted/charge"] },
    };
    const resolve = () => resolveChain(inline.registry, source, OFFLINE_PROFILE);
    expect(await inline.meter.cost(resolve)).toMatchObject({ statements: 1, written: 0 });
    const changed = deployed("counted", "Two.");
    await migrate(changed.meter.database);
    // The row and its content's index; only a first version is in the index of the list.
    expect(await changed.meter.cost(() => changed.prompt())).toMatchObject({ statements: 3, written: 2 });
  });

  test("F12 PUBLISH-2 REG-3 latest is the deployed version: after a roll back the old number again, and others by number", async () => {
    const [one, two] = ["One.", "Two."];
    expect(await deployed("rolling", one).prompt()).toEqual([1, one]);
    expect(await deployed("rolling", two).prompt()).toEqual([2, two]);
    const back = deployed("rolling", one);
    expect(await back.prompt()).toEqual([1, one]);
    expect(await back.prompt(1)).toEqual([1, one]);
    expect(await back.prompt(2)).toEqual([2, two]);
    await expect(back.prompt(3)).rejects.toMatchObject({ code: "NOT_FOUND" });
    const reference = { library: "rolling", id: "guide" };
    expect(await back.registry.find("persona", reference)).toMatchObject({ version: 1 });
    const { items } = await back.registry.versions("persona", reference);
    expect(items.map(({ version }) => version)).toEqual([1, 2]);
    expect((await back.registry.list("persona", "rolling")).items).toMatchObject([{ version: 1 }]);
    expect(await deployed("rolling", "Three.").prompt()).toEqual([3, "Three."]);
  });

  test("DEFS-1 isolates that publish at once agree on the numbers", async () => {
    const isolates = Array.from({ length: 6 }, () => deployed("crowd", "Together."));
    expect(await Promise.all(isolates.map(({ prompt }) => prompt()))).toEqual(
      isolates.map(() => [1, "Together."]),
    );
    const others = Array.from({ length: 6 }, (_, n) => deployed("crowd", `Apart ${n}.`));
    const versions = await Promise.all(others.map(async ({ prompt }) => (await prompt())[0]));
    expect(versions.toSorted()).toEqual([2, 3, 4, 5, 6, 7]);
  });

  test("REG-6 an older version of a deployed tool is pinned with the effect that the code has now", async () => {
    const before = deployed("effects", "x", "pure");
    expect((await before.registry.tool({ library: "effects", id: "charge" })).definition.effect).toBe("pure");
    const after = deployed("effects", "x", "once");
    const old = await after.registry.tool({ library: "effects", id: "charge", version: 1 });
    expect([old.version, old.definition.effect]).toEqual([1, "once"]);
  });

  test("REG-5 while the store is away, deployed definitions continue under number 0, and the rest is UNAVAILABLE", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => log.mockRestore());
    const code = new DeployedCode([testLibrary]);
    // SAFETY: the store uses these two methods only.
    const broken = {
      prepare: (sql: string) => database().prepare(sql),
      batch: () => Promise.reject(new Error("D1 is away.")),
    } as unknown as D1Database;
    const stores = storesOf(broken, "test");
    const registry = new Registry(code, stores);
    const away = { code: "UNAVAILABLE", retriable: true };
    const plain = { library: "test", id: "plain" };
    const pinned = await registry.persona(plain);
    expect(pinned).toMatchObject({ version: 0, hash: (await new Registry(code).persona(plain)).hash });
    expect(await registry.tool({ library: "test", id: "double" })).toMatchObject({ version: 0 });
    await expect(registry.persona({ ...plain, version: 1 })).rejects.toMatchObject(away);
    await expect(registry.persona({ library: "desk", id: "guide" })).rejects.toMatchObject(away);
    await expect(stores.authored.list("persona", "desk")).rejects.toMatchObject(away);
  });

  test("without a database the deployed code answers alone, and additions are refused", async () => {
    const registry = new Registry(new DeployedCode([testLibrary]));
    const plain = { library: "test", id: "plain" };
    const found = await registry.find("persona", plain);
    expect(found).toMatchObject({ version: 1, createdAt: null, owner: null });
    expect(await registry.find("persona", { ...plain, version: 1 })).toEqual(found);
    expect(await registry.versions("persona", plain)).toEqual({ items: [found] });
    expect((await registry.libraries()).items.map(({ id }) => id)).toEqual(["test"]);
    for (const missing of [
      registry.find("persona", { ...plain, version: 2 }),
      registry.find("persona", { library: "own", id: "x" }),
      registry.list("persona", "own"),
    ]) {
      await expect(missing).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
    expect(() => registry.checkWriter(ADMIN, "own")).toThrow(
      expect.objectContaining({ code: "UNAVAILABLE" }),
    );
  });
});

function database(): D1Database {
  // SAFETY: `test/wrangler.jsonc` binds it.
  return Reflect.get(env, "DB") as D1Database;
}

function storesOf(inner: D1Database, tenant: string) {
  return { deployed: new D1Definitions(inner, CODE_TENANT), authored: new D1Definitions(inner, tenant) };
}

function registryOf(tenant: string): Registry {
  return new Registry(new DeployedCode([testLibrary]), storesOf(database(), tenant));
}

/** Puts a definition into the registry as an earlier deployment would have, without today's checks. */
async function keepTool(library: string, id: string, definition: ToolDefinition): Promise<void> {
  await new D1Definitions(database(), "test").add(
    { library, kind: "tool", id, definition, hash: await contentHash(definition) },
    inTenant("test", ["admin"]),
  );
}

/** The same database as another isolate has it, and the queries through this reference. */
function metered() {
  const inner = database();
  const total = { statements: 0, read: 0, written: 0 };
  const batch = async (statements: D1PreparedStatement[]) => {
    const results = await inner.batch(statements);
    total.statements += statements.length;
    for (const { meta } of results) {
      total.read += meta.rows_read;
      total.written += meta.rows_written;
    }
    return results;
  };
  const reference = { prepare: (sql: string) => inner.prepare(sql), batch };
  return {
    // SAFETY: the store uses these two methods only.
    database: reference as unknown as D1Database,
    /** Returns the cost of `action`. */
    async cost(action: () => Promise<unknown>) {
      Object.assign(total, { statements: 0, read: 0, written: 0 });
      await action();
      return { ...total };
    },
  };
}
