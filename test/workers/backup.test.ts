/** Exports and imports of conversations and agents on the real Worker. */
import { env, exports } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { VersionChain } from "../../src/protocol/definitions.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import type { PinnedTask } from "../../src/protocol/task-definition.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { postTool } from "./authoring.ts";
import { Play } from "./provider.ts";
import { ADA, createAgent, createConversation, request, skipInvariants, TestConversation } from "./world.ts";

const MEMBER: Principal = { subject: "ada", tenant: "test", roles: ["member"] };
const AUTHOR: Principal = { subject: "auth", tenant: "test", roles: ["author"] };
const READER: MemoryReader = { principal: ADA };

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

const post = async (path: string, body: string, principal?: Principal) => {
  const response = await request(path, { method: "POST", body }, principal);
  return {
    status: response.status,
    body: await response.json<{ id: string; code?: string; detail?: string }>(),
  };
};

const fileOf = async (path: string, principal?: Principal) => {
  const response = await request(`${path}/export`, {}, principal);
  return { status: response.status, text: await response.text() };
};

/** A conversation with calls, a long answer, an attachment, an erased entry and another agent. */
async function fullConversation(): Promise<TestConversation> {
  const conversation = await createConversation(handy);
  skipInvariants(conversation);
  const other = await createAgent("test/plain");
  const add = { method: "POST", body: JSON.stringify({ type: "agent", id: other, handoff: "full" }) };
  const upload = { method: "POST", headers: { "content-type": "image/png" }, body: "an image" };
  const { url } = await (await request(`${conversation.path}/attachments`, upload)).json<{ url: string }>();
  const over = async (turnId: string) =>
    expect.poll(async () => (await conversation.turn(turnId)).status).not.toBe("active");
  const { turnId } = await conversation.play(
    {
      replies: [
        [{ text: "I look. " }, { call: "double", input: { n: 2 } }],
        [{ text: "Four. ", times: 2_000 }],
      ],
    },
    { idempotencyKey: "first" },
  );
  await over(turnId);
  expect((await request(`${conversation.path}/participants`, add)).status).toBe(200);
  const play = new Play({ replies: [[{ text: "Seen." }]] });
  const said = await conversation.say(
    [
      { type: "text", text: play.content },
      { type: "image", url },
    ],
    { to: other },
  );
  await over(said.turnId);
  const { turnId: third } = await conversation.play({ replies: [[{ text: "To be erased." }]] });
  await over(third);
  const erased = (await conversation.messages()).at(-1)?.id;
  expect((await request(`${conversation.path}/events/${erased}`, { method: "DELETE" })).status).toBe(204);
  return conversation;
}

/** Everything that a reader gets, without the id of the conversation. */
async function projections(conversation: TestConversation): Promise<string> {
  const messages = await conversation.messages();
  const ids = [...new Set((await conversation.journal()).flatMap(({ turnId }) => turnId ?? []))];
  const turns = await Promise.all(ids.map((id) => conversation.turn(id)));
  const { data } = await (await conversation.connect()).frame("snapshot");
  const replay = await conversation.connect({ from: 0 });
  await replay.frame("turn.completed");
  const views = [await conversation.view(), messages, turns, await conversation.journal(), data];
  return JSON.stringify(views, null, 1).replaceAll(conversation.id, "conv");
}

describe("the file of a conversation", () => {
  test("G15 BACKUP-1 BACKUP-3 creates a conversation with the same projections, which continues", async () => {
    const conversation = await fullConversation();
    const { status, text } = await fileOf(conversation.path);
    expect(status).toBe(200);
    expect(JSON.parse(text.slice(0, text.indexOf("\n")))).toMatchObject({
      dramatis: "conversation",
      version: 1,
      id: conversation.id,
    });
    const { status: created, body } = await post("/api/conversations/import", text);
    expect([created, body.detail]).toEqual([201, undefined]);
    const copy = new TestConversation(body.id);
    expect(copy.id).not.toBe(conversation.id);
    expect(await projections(copy)).toBe(await projections(conversation));
    const again = await fileOf(copy.path);
    const lines = (file: string) =>
      file
        .trimEnd()
        .split("\n")
        .slice(1)
        .map((line): unknown => JSON.parse(line));
    expect(lines(again.text)).toEqual(lines(text));
    await copy.evict();
    const { play, turnId } = await copy.play({ replies: [[{ text: "On." }]] });
    const [sent] = await play.requests(1);
    expect(JSON.stringify(sent?.body.messages)).toContain("Four. Four.");
    await expect.poll(async () => (await copy.turn(turnId)).status).toBe("completed");
    const lists = await request("/api/conversations?limit=200&order=desc");
    expect(await lists.text()).toContain(copy.id);
  });

  test("BACKUP-2 BACKUP-6 that is incomplete, or has a wrong line, creates no conversation, and the error names the line", async () => {
    const conversation = await fullConversation();
    const { text } = await fileOf(conversation.path);
    const lines = text.trimEnd().split("\n");
    const id = conversation.id.replace(/.{4}$/, "0001");
    const attempt = (file: string[], principal?: Principal) =>
      post(`/api/conversations/import?id=${id}`, file.join("\n"), principal);
    expect((await attempt(lines, AUTHOR)).body.code).toBe("FORBIDDEN");
    const at = (number: number, line: string) =>
      lines.map((known, index) => (index === number - 1 ? line : known));
    const wrong: [string[], string][] = [
      [lines.slice(0, -1), "is incomplete"],
      [lines.slice(0, 3), "is incomplete"],
      [lines.filter((_, index) => index !== 3), "Line 4: The next entry of the journal is"],
      [at(3, "{"), "Line 3: "],
      [at(3, '{"journal":{"seq":"one"}}'), "Line 3: "],
      [at(2, '{"record":{}}'), "Line 2: "],
      [at(1, '{"dramatis":"agent","version":1,"id":"a"}'), "Line 1: "],
      [at(3, '{"other":1}'), 'Line 3: Unknown kind of line "other"'],
      [lines.filter((line) => !line.startsWith('{"turn"')), "Line "],
      [[], "empty"],
    ];
    for (const [file, why] of wrong) {
      const { status, body } = await attempt(file);
      expect([status === 422 || status === 400, body.detail]).toEqual([true, expect.stringContaining(why)]);
      expect((await request(`/api/conversations/${id}`)).status).toBe(404);
    }
    expect((await attempt(lines)).status).toBe(201);
    expect((await attempt(lines)).body.code).toBe("CONFLICT");
  });

  test("BACKUP-2 is imported again after an interruption, and the interrupted import stays invisible", async () => {
    const conversation = await fullConversation();
    const lines = (await fileOf(conversation.path)).text.trimEnd().split("\n");
    const id = conversation.id.replace(/.{4}$/, "0002");
    // SAFETY: the class of the export has this interface.
    const stub = exports.Conversation.getByName(`test:${id}`) as unknown as ConversationApi;
    unwrap(await stub.importLines(ADA, { from: 1, lines: lines.slice(0, 6), isLast: false }));
    expect((await request(`/api/conversations/${id}`)).status).toBe(404);
    expect(await stub.importLines(ADA, { from: 9, lines: [], isLast: false })).toMatchObject({
      error: { code: "CONFLICT" },
    });
    const { status } = await post(`/api/conversations/import?id=${id}`, lines.join("\n"));
    expect(status).toBe(201);
    const copy = new TestConversation(id);
    expect(await projections(copy)).toBe(await projections(conversation));
  });

  test("BACKUP-2 parts of an import that another import restarted are refused, and the newer import is whole", async () => {
    const conversation = await fullConversation();
    const lines = (await fileOf(conversation.path)).text.trimEnd().split("\n");
    const id = conversation.id.replace(/.{4}$/, "0003");
    // SAFETY: the class of the export has this interface.
    const stub = exports.Conversation.getByName(`test:${id}`) as unknown as ConversationApi;
    const head = { from: 1, lines: lines.slice(0, 6), isLast: false };
    const rest = { from: 7, lines: lines.slice(6), isLast: true };
    unwrap(await stub.importLines(ADA, { ...head, attempt: "one" }));
    unwrap(await stub.importLines(ADA, { ...head, attempt: "two" }));
    expect(await stub.importLines(ADA, { ...rest, attempt: "one" })).toMatchObject({
      error: { code: "CONFLICT", message: "Another import of this id has begun. Start the import again." },
    });
    unwrap(await stub.importLines(ADA, { ...rest, attempt: "two" }));
    expect(await stub.importLines(ADA, { ...head, attempt: "one" })).toMatchObject({
      error: { code: "CONFLICT" },
    });
    expect(await projections(new TestConversation(id))).toBe(await projections(conversation));
  });

  test("BACKUP-2 an import that ends while another import of its id begins is refused, and the newer import keeps its files", async () => {
    const conversation = await fullConversation();
    const lines = (await fileOf(conversation.path)).text.trimEnd().split("\n");
    const id = conversation.id.replace(/.{4}$/, "0004");
    // SAFETY: the class of the export has this interface.
    const stub = exports.Conversation.getByName(`test:${id}`) as unknown as ConversationApi;
    const head = { from: 1, lines: lines.slice(0, -1), isLast: false };
    const rest = { from: lines.length, lines: lines.slice(-1), isLast: true };
    unwrap(await stub.importLines(ADA, { ...head, attempt: "one" }));
    const [begun, ended] = await Promise.all([
      stub.importLines(ADA, { ...head, attempt: "two" }),
      stub.importLines(ADA, { ...rest, attempt: "one" }),
    ]);
    expect(ended).toMatchObject({ error: { code: "CONFLICT" } });
    unwrap(begun);
    unwrap(await stub.importLines(ADA, { ...rest, attempt: "two" }));
    const copy = new TestConversation(id);
    expect(await projections(copy)).toBe(await projections(conversation));
    const attachments = (file: string) => file.split("\n").filter((line) => line.startsWith('{"attachment"'));
    const kept = attachments((await fileOf(copy.path)).text);
    expect(kept.length).toBeGreaterThan(0);
    expect(kept).toEqual(attachments(lines.join("\n")));
  });

  test("BACKUP-3 BACKUP-4 is refused while a turn is active and to other users, and contains no secrets", async () => {
    const conversation = await createConversation(handy);
    skipInvariants(conversation);
    const { play } = await conversation.play({ replies: [[{ text: "Half" }, { gate: "end" }]] });
    await play.reached("end");
    expect((await fileOf(conversation.path)).status).toBe(409);
    await play.open("end");
    await play.closes(1);
    await expect.poll(async () => (await fileOf(conversation.path)).status).toBe(200);
    expect((await fileOf(conversation.path, { ...MEMBER, subject: "mel" })).status).toBe(404);
    expect((await fileOf(conversation.path)).text).not.toContain("handles:");
  });
});

describe("the versions in the file of a conversation", () => {
  const LOOPBACK = "127.0.0.1:9";
  let lines: string[];

  /** Imports the file with a change of the agent's versions. */
  const changed = (change: (chain: VersionChain) => void) => {
    const line: { record: { agents: { chain: VersionChain }[] } } = JSON.parse(lines[1] ?? "");
    for (const { chain } of line.record.agents) change(chain);
    return post("/api/conversations/import", lines.with(1, JSON.stringify(line)).join("\n"));
  };
  const chainOf = async (id: string): Promise<VersionChain> => {
    const { text } = await fileOf(`/api/conversations/${id}`);
    return JSON.parse(text.split("\n")[1] ?? "").record.agents[0].chain;
  };
  const taskIn = ({ tools }: VersionChain) => {
    const [{ task } = {}] = tools.filter((tool) => tool.task !== undefined);
    if (task === undefined) throw new Error("The agent has no tool over a task.");
    return task;
  };
  const withHosts = (task: PinnedTask, hosts: string[]) => {
    for (const { action } of task.steps) if (action.kind === "http.request") action.hosts = hosts;
  };

  beforeAll(async () => {
    const library = `backup-${crypto.randomUUID().slice(0, 8)}`;
    const action = { kind: "http.request", hosts: [new URL(env.PROVIDER_CONTROL_URL).host], effect: "pure" };
    const task = { id: "get", inputSchema: { type: "object" }, steps: [{ ref: "get", action }] };
    expect((await post(`/api/libraries/${library}/tasks`, JSON.stringify(task))).status).toBe(201);
    const tool = await postTool(library, "use_get", { task: "get" });
    const agent = await createAgent({
      identity: { systemPrompt: "You help.", modelProfileId: "test/scripted" },
      tools: { toolIds: [tool, "test/transfer"] },
      memory: { memoryExtraction: { task: `${library}/get` } },
    });
    const conversation = await createConversation(agent);
    skipInvariants(conversation);
    lines = (await fileOf(conversation.path)).text.trimEnd().split("\n");
  });

  test("BACKUP-7 stay unchanged if they are valid", async () => {
    const { status, body } = await changed(() => undefined);
    expect([status, body.detail]).toEqual([201, undefined]);
    const { record } = JSON.parse(lines[1] ?? "");
    expect(await chainOf(body.id)).toEqual(record.agents[0].chain);
  });

  test("BACKUP-7 keep a task of the deployed code as deployed, with the model of its persona", async () => {
    const agent = await createAgent({
      identity: { systemPrompt: "You learn.", modelProfileId: "test/scripted" },
      memory: { scope: "agent", extract: true },
    });
    const conversation = await createConversation(agent);
    skipInvariants(conversation);
    const { text } = await fileOf(conversation.path);
    const { status, body } = await post("/api/conversations/import", text);
    expect([status, body.detail]).toEqual([201, undefined]);
    const chain = await chainOf(body.id);
    expect(chain).toEqual(await chainOf(conversation.id));
    expect(chain.memoryExtraction?.task?.steps.length).toBeGreaterThan(0);
    expect(chain.memoryExtraction?.task?.authored).toBeUndefined();
  });

  test.each<[string, string, (chain: VersionChain) => void]>([
    [
      "a model",
      "trusted host",
      ({ modelProfile }) => (modelProfile.definition.baseUrl = `http://${LOOPBACK}`),
    ],
    [
      "a key of a model",
      "allowed key",
      ({ modelProfile }) => (modelProfile.definition.apiKeySecret = "ANOTHER_API_KEY"),
    ],
    [
      "a fallback",
      "trusted host",
      (chain) => {
        const definition = { ...chain.modelProfile.definition, baseUrl: `http://${LOOPBACK}` };
        chain.fallbacks = [{ ...chain.modelProfile, definition }];
      },
    ],
    [
      "a task that claims to be deployed",
      LOOPBACK,
      (chain) => {
        delete taskIn(chain).authored;
        withHosts(taskIn(chain), [LOOPBACK]);
      },
    ],
    [
      "a task under the name of a deployed library",
      LOOPBACK,
      (chain) => {
        const task = taskIn(chain);
        delete task.authored;
        task.library = "test";
        withHosts(task, [LOOPBACK]);
      },
    ],
    [
      "a hook",
      LOOPBACK,
      ({ memoryExtraction }) => {
        if (memoryExtraction?.task === undefined) throw new Error("The agent has no hook.");
        delete memoryExtraction.task.authored;
        withHosts(memoryExtraction.task, [LOOPBACK]);
      },
    ],
  ])("BACKUP-7 are refused with the line if the tenant may not choose %s", async (_, why, change) => {
    const { status, body } = await changed(change);
    expect([status, body.detail]).toEqual([422, expect.stringMatching(`^Line 2: .*${why}`)]);
  });

  test.each<[string, string, (chain: VersionChain) => void]>([
    [
      "a persona",
      "/persona/definition/identity",
      ({ persona }) => Object.assign(persona, { definition: {} }),
    ],
    [
      "a target",
      "/tools/0/definition/target",
      ({ tools: [tool] }) => Object.assign(tool?.definition ?? {}, { target: 1 }),
    ],
    [
      "a time",
      "/tools/0/definition/timeoutMs",
      ({ tools: [tool] }) => Object.assign(tool?.definition ?? {}, { timeoutMs: -1 }),
    ],
    [
      "attempts",
      "/tools/0/definition/retry/maxAttempts",
      ({ tools: [tool] }) =>
        Object.assign(tool?.definition ?? {}, { retry: { maxAttempts: 1e9, backoffMs: 0 } }),
    ],
    [
      "an action",
      "/tools/0/task/steps/0/action/kind",
      (chain) => Object.assign(taskIn(chain).steps[0] ?? {}, { action: { kind: "shell" } }),
    ],
  ])(
    "BACKUP-14 are refused with the line and the place of %s that authors could not post",
    async (_, at, change) => {
      const { status, body } = await changed(change);
      const why = new RegExp(`^Line 2: .*: /agents/0/chain${at}: .*[A-Z]`);
      expect([status, body.code, body.detail]).toEqual([422, "INVALID_INPUT", expect.stringMatching(why)]);
    },
  );

  test("BACKUP-7 BACKUP-8 have tasks of authors as such, and the effects and approvals of the deployed code", async () => {
    const { status, body } = await changed((chain) => {
      delete taskIn(chain).authored;
      for (const { definition } of chain.tools) {
        delete definition.approval;
        definition.effect = "pure";
      }
    });
    expect([status, body.detail]).toEqual([201, undefined]);
    const chain = await chainOf(body.id);
    expect(taskIn(chain).authored).toBe(true);
    expect(chain.tools.find(({ id }) => id === "transfer")?.definition).toMatchObject({
      ...{ approval: "always", effect: "once" },
    });
  });
});

describe("the file of an agent", () => {
  test("G15 H6 BACKUP-5 makes an agent with the same identity and memories, with their logs and sources", async () => {
    const id = await createAgent("test/plain");
    // SAFETY: the class of the export has this interface.
    const stub = (name: string) => exports.Agent.getByName(`test:${name}`) as unknown as AgentApi;
    const agent = stub(id);
    const writer: MemoryWriter = {
      reader: READER,
      author: { kind: "principal", subject: "ada" },
      sources: [{ conversationId: "conv_1", turnId: "turn_1", entries: [2, 3] }],
    };
    const long = `A long story about cinnamon. ${"word ".repeat(2_000)}`;
    const written = unwrap(
      await agent.writeMemories(writer, [
        {
          content: "Ada likes green tea.",
          key: "tea",
          subject: { userId: "ada" },
          metadata: { mood: "calm" },
        },
        { content: long, type: "story" },
        { content: "Ada lived in Rome.", validFrom: "2020-01-01T00:00:00.000Z" },
      ]),
    );
    const [tea, , rome] = written.map((memory) => memory.id);
    unwrap(await agent.updateMemory(writer, tea ?? "", { content: "Ada likes black tea." }));
    unwrap(await agent.archiveMemory(writer, rome ?? ""));
    const path = `/api/agents/${id}`;
    expect((await fileOf(path, MEMBER)).status).toBe(403);
    const { status, text } = await fileOf(path, AUTHOR);
    expect(status).toBe(200);
    const { status: created, body } = await post("/api/agents/import", text, AUTHOR);
    expect([created, body.detail]).toEqual([201, undefined]);
    const copy = stub(body.id);
    const shown = async (one: AgentApi, name: string) => {
      const state = ["current" as const, "ended" as const, "archived" as const];
      const { items } = unwrap(await one.listMemories(READER, { state, limit: 100 }));
      const whole = await Promise.all(
        items.map(async (memory) => unwrap(await one.whyMemory(READER, memory.id))),
      );
      const told = whole.map(({ memory: { version: _, ...memory }, log, ...rest }) => ({
        ...{ memory, ...rest },
        log: log.filter(({ by }) => by.kind !== "import"),
      }));
      const restored = whole.map(({ memory: { version }, log: [newest] }) =>
        newest?.by.kind === "import" ? [newest.change, version - newest.version] : null,
      );
      const identity = unwrap(await one.identity());
      return { told: JSON.stringify([told, identity], null, 1).replaceAll(name, "agent"), restored };
    };
    const [before, after] = [await shown(agent, id), await shown(copy, body.id)];
    expect(after.told).toBe(before.told);
    expect(before.restored).toEqual([null, null, null]);
    expect(after.restored).toEqual([
      ["restored", 0],
      ["restored", 0],
      ["restored", 0],
    ]);
    const { matches } = unwrap(await copy.searchMemories(READER, { query: "black tea" }));
    expect(matches[0]?.memory.id).toBe(tea);
    const lines = (file: string) => file.split("\n").slice(1);
    const again = lines((await fileOf(`/api/agents/${body.id}`)).text);
    const isOther = (line: string) => !line.startsWith('{"memory"');
    expect(again.filter(isOther)).toEqual(lines(text).filter(isOther));
    expect(again).toHaveLength(lines(text).length);
    expect((await post(`/api/agents/import?id=${body.id}`, text, AUTHOR)).body.code).toBe("CONFLICT");
  });

  test("BACKUP-7 that contains its own model creates no agent: its persona names models of libraries", async () => {
    const id = await createAgent({
      identity: { systemPrompt: "You help.", modelProfileId: "test/scripted" },
    });
    const lines = (await fileOf(`/api/agents/${id}`)).text.trimEnd().split("\n");
    const attempt = (modelProfile: object) => {
      const { identity } = JSON.parse(lines[1] ?? "");
      Object.assign(identity.persona.identity, modelProfile);
      return post("/api/agents/import", lines.with(1, JSON.stringify({ identity })).join("\n"));
    };
    expect((await attempt({})).status).toBe(201);
    const own = { provider: "openai", modelId: "m", baseUrl: "http://127.0.0.1:9" };
    for (const wrong of [{ modelProfileId: own }, { modelProfile: own }, { modelProfileId: "test/none" }]) {
      const { status, body } = await attempt(wrong);
      expect([status, body.detail]).toEqual([422, expect.stringMatching(/^Line 2: /)]);
    }
  });

  test.each<[string, string, Record<string, unknown>]>([
    ["a time that no date has", "/validFrom", { validFrom: 9e15 }],
    ["an id with the highest number", "/id", { id: `mem_${"0".repeat(19)}ZZZZZZZ` }],
    ["metadata of 1 MB", "/metadata", { metadata: { text: "x".repeat(1_000_000) } }],
  ])("BACKUP-10 that contains %s is refused with the line, and creates no agent", async (_, at, change) => {
    const id = await createAgent("test/plain");
    const memories = `/api/agents/${id}/memories`;
    await request(memories, { method: "POST", body: JSON.stringify({ content: "Ada likes tea." }) });
    const lines = (await fileOf(`/api/agents/${id}`)).text.trimEnd().split("\n");
    const index = lines.findIndex((line) => line.startsWith('{"memory"'));
    const { memory } = JSON.parse(lines[index] ?? "");
    const file = lines.with(index, JSON.stringify({ memory: { ...memory, ...change } })).join("\n");
    const copy = `copy-${crypto.randomUUID().slice(0, 8)}`;
    const { status, body } = await post(`/api/agents/import?id=${copy}`, file, AUTHOR);
    const why = new RegExp(`^Line ${index + 1}: The memory is not valid: ${at}: `);
    expect([status, body.code, body.detail]).toEqual([422, "INVALID_INPUT", expect.stringMatching(why)]);
    expect((await request(`/api/agents/${copy}`)).status).toBe(404);
    expect((await post(`/api/agents/import?id=${copy}`, lines.join("\n"), AUTHOR)).status).toBe(201);
    const list = await request(`/api/agents/${copy}/memories`);
    expect([list.status, await list.text()]).toEqual([200, expect.stringContaining("Ada likes tea.")]);
  });

  test("BACKUP-2 that is wrong makes no agent", async () => {
    const { text } = await fileOf(`/api/agents/${handy}`);
    const lines = text.trimEnd().split("\n");
    const attempt = (file: string[]) => post("/api/agents/import?id=half-agent", file.join("\n"));
    expect((await attempt(lines.slice(0, -1))).body.detail).toContain("incomplete");
    const bad = [lines[0] ?? "", lines[1] ?? "", '{"memory":{"id":"x"}}'];
    expect((await attempt(bad)).body.detail).toContain("Line 3: ");
    expect((await request("/api/agents/half-agent")).status).toBe(404);
    expect((await attempt(lines)).status).toBe(201);
  });
});
