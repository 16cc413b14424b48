/**
 * Actions on memory and `context.memory`, on the real Worker: in tools, hooks and runs, each in its own agent's memory.
 */
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { Persona } from "../../src/protocol/definitions.ts";
import type { MemoryWriter } from "../../src/protocol/memory.ts";
import type { Memory, MemoryWhy } from "../../src/protocol/memory-schemas.ts";
import { MEMORY_KINDS } from "../../src/protocol/task-definition.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { get, post } from "./http-client.ts";
import { Play } from "./provider.ts";
import { ended, post as postFlow, call as runs } from "./run-helpers.ts";
import {
  ADA,
  checkInvariants,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

const WRITER: MemoryWriter = { reader: { principal: ADA }, author: { kind: "principal", subject: "ada" } };

function stubOf(agent: string): AgentApi {
  // SAFETY: the class of the export has the interface.
  return exports.Agent.getByName(`${ADA.tenant}:${agent}`) as unknown as AgentApi;
}

const LIBRARY = "memact";
const anything = { type: "object", properties: { input: {} } };
const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };

async function add(path: string, body: object): Promise<void> {
  const answer = await post(`/api/libraries/${LIBRARY}/${path}`, body, ADA);
  expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status);
}

/** The name of a tool over an action: `memory_write`. */
const nameOf = (kind: string) => kind.replace(".", "_");

/** An agent with a tool for each action. */
async function newAgent(
  memory: Persona["memory"] = { scope: "agent" },
  more: string[] = [],
): Promise<string> {
  const toolIds = [...MEMORY_KINDS.map((kind) => `${LIBRARY}/${nameOf(kind)}`), ...more];
  return createAgent({
    identity,
    memory: { recall: false, memoryTools: false, ...memory },
    tools: { toolIds },
  });
}

/** Calls a tool once in a turn. Returns its result. */
async function use(conversation: TestConversation, name: string, input: object) {
  const { turnId } = await conversation.play({ replies: [[{ call: name, input }], [{ text: "Done." }]] });
  const { moves } = await conversation.ended(turnId);
  return { turnId, result: moves[0]?.toolResult };
}

async function done<Value>(conversation: TestConversation, name: string, input: object): Promise<Value> {
  const { result } = await use(conversation, name, input);
  expect(result).toMatchObject({ success: true });
  // SAFETY: tests assert what they read.
  return result?.result as Value;
}

/** The memories of an agent, as an administrator sees them. */
async function memoriesOf(agent: string): Promise<Memory[]> {
  const { body } = await get(`/api/agents/${agent}/memories?limit=200`, ADA);
  // SAFETY: the route's own view.
  return Reflect.get(body, "memories") as Memory[];
}

const contentsOf = async (agent: string) => (await memoriesOf(agent)).map(({ content }) => content);

async function whyOf(agent: string, id = ""): Promise<MemoryWhy> {
  // SAFETY: the route's own view.
  return (await get(`/api/agents/${agent}/memories/${id}/why`, ADA)).body as unknown as MemoryWhy;
}

beforeAll(async () => {
  for (const kind of MEMORY_KINDS) {
    const id = nameOf(kind);
    await add("tasks", { id, inputSchema: anything, steps: [{ ref: "act", action: { kind } }] });
    await add("tools", { id, name: id, description: "Acts.", target: { task: id } });
  }
});

afterEach(checkInvariants);

describe("actions in tasks", () => {
  test("A54 A55 A56 A57 write, read, search, list, change, archive and delete, each with the result of its route", async () => {
    const agent = await newAgent();
    const conversation = await createConversation(agent);
    const input = { content: "Ann keeps a heron.", type: "pet", significance: 0.8 };
    const written = await done<Memory>(conversation, "memory_write", input);
    expect(written).toMatchObject({ ...input, agentId: agent, version: 1, subject: { userId: "ada" } });
    const { id } = written;
    expect(await done(conversation, "memory_read", { id })).toEqual(written);
    expect(await done(conversation, "memory_search", { query: "heron", limit: 1 })).toMatchObject({
      matches: [{ memory: { id }, score: { terms: ["heron"] } }],
    });
    const batch = { memories: [{ content: "One." }, { content: "Two." }] };
    expect(await done(conversation, "memory_write", batch)).toMatchObject(batch);
    const page = await done<{ nextCursor: string }>(conversation, "memory_list", { limit: 2 });
    expect(page).toMatchObject({ memories: [{ id }, { content: "One." }] });
    expect(await done(conversation, "memory_list", { cursor: page.nextCursor })).toMatchObject({
      memories: [{ content: "Two." }],
    });
    const content = "Ann keeps two herons.";
    expect(await done(conversation, "memory_update", { id, content, ifVersion: 1 })).toMatchObject({
      content,
      version: 2,
    });
    expect(await done(conversation, "memory_archive", { id })).toMatchObject({ id, state: "archived" });
    expect(await done(conversation, "memory_search", { query: "herons" })).not.toMatchObject({
      matches: [{ memory: { id } }],
    });
    expect(await done(conversation, "memory_delete", { id })).toEqual({ deleted: true });
    expect(await done(conversation, "memory_delete", { id })).toEqual({ deleted: false });
    expect(await contentsOf(agent)).toEqual(["One.", "Two."]);
  });

  test("A58 MEMACT-1 an agent in the input is ignored, and ids of its memories are not found", async () => {
    const [own, other] = [await newAgent(), await newAgent()];
    const { body } = await post(`/api/agents/${other}/memories`, { content: "A secret heron." }, ADA);
    const conversation = await createConversation(own);
    for (const named of [{ agentId: other }, { agent_id: other }]) {
      const content = `Written with ${Object.keys(named)[0]}.`;
      expect(await done(conversation, "memory_write", { content, ...named })).toMatchObject({ agentId: own });
      const batch = { memories: [{ content: `${content} Twice.`, ...named }], ...named };
      await done(conversation, "memory_write", batch);
      const found = await done(conversation, "memory_search", { query: "secret heron", ...named });
      expect(JSON.stringify(found)).not.toContain("secret heron.");
      const list = await done(conversation, "memory_list", { ...named });
      expect(JSON.stringify(list)).not.toContain("secret heron.");
      const gone = await use(conversation, "memory_read", { id: body.id, ...named });
      expect(gone.result).toMatchObject({ success: false, error: { code: "NOT_FOUND" } });
      expect(await done(conversation, "memory_delete", { id: body.id, ...named })).toEqual({
        deleted: false,
      });
    }
    expect(await contentsOf(own)).toHaveLength(4);
    expect(await contentsOf(other)).toEqual(["A secret heron."]);
  });

  test("MEMACT-2 a task that runs again writes once", async () => {
    await add("tasks", {
      id: "twice",
      inputSchema: { type: "object", properties: { content: { type: "string" } }, required: ["content"] },
      retry: { maxAttempts: 3, initialDelayMs: 1 },
      steps: [
        { ref: "write", action: { kind: "memory.write" } },
        {
          ref: "break",
          action: { kind: "memory.read" },
          inputMapping: { id: "'mem_x'" },
          onFailure: "retry",
        },
      ],
    });
    await add("tools", { id: "twice", name: "twice", description: "Acts.", target: { task: "twice" } });
    const agent = await newAgent({ scope: "agent" }, [`${LIBRARY}/twice`]);
    const conversation = await createConversation(agent);
    const { result } = await use(conversation, "twice", { content: "Only once." });
    expect(result).toMatchObject({ success: false, error: { code: "NOT_FOUND" } });
    const attempts = (await conversation.journal()).filter(({ type }) => type === "task.failed");
    expect(attempts).toHaveLength(3);
    expect(await contentsOf(agent)).toEqual(["Only once."]);
  });

  test("invalid input fails the step with its place, and changes no memory", async () => {
    const agent = await newAgent();
    const conversation = await createConversation(agent);
    for (const [name, input, reason] of [
      ["memory_write", { contnet: "x" }, "/memories/0/contnet"],
      ["memory_write", { content: "x".repeat(256 * 1024 + 1) }, "256 KiB"],
      ["memory_write", { memories: [] }, "/memories"],
      ["memory_read", {}, "/id"],
      ["memory_search", { limit: 3 }, "/query"],
      ["memory_list", { order: "up" }, "/order"],
      ["memory_update", { id: "mem_x" }, ""],
    ] as const) {
      const { result } = await use(conversation, name, input);
      expect(result, name).toMatchObject({ success: false });
      expect(["INVALID_INPUT", "NOT_FOUND"], name).toContain(result?.error?.code);
      expect(result?.error?.message, name).toContain(reason);
    }
    expect(await contentsOf(agent)).toEqual([]);
  });

  test("a scope of users separates the memories that each user's tools write", async () => {
    const agent = await newAgent({ scope: "user" });
    const [ada, ben] = await Promise.all(
      ["ada", "ben"].map(async (subject) => {
        const principal: Principal = { ...ADA, subject };
        const init = { method: "POST", body: JSON.stringify({ agentId: agent }) };
        const response = await request("/api/conversations", init, principal);
        const { id } = await response.json<{ id: string }>();
        return { id, principal };
      }),
    );
    const resultFor = async (who: typeof ada, name: string, input: object) => {
      const play = new Play({ replies: [[{ call: name, input }], [{ text: "Done." }]] });
      const path = `/api/conversations/${who?.id}/turns`;
      const body = JSON.stringify({ content: play.content });
      const started = await request(path, { method: "POST", body }, who?.principal);
      const { turnId } = await started.json<{ turnId: string }>();
      return vi.waitUntil(
        async () => {
          const turn = await (await request(`${path}/${turnId}`, {}, who?.principal)).text();
          return turn.includes('"status":"completed"') && turn;
        },
        { timeout: 10_000 },
      );
    };
    await resultFor(ada, "memory_write", { content: "Ada is allergic to nuts.", subject: { userId: "ben" } });
    expect(await resultFor(ada, "memory_search", { query: "allergic nuts" })).toContain("Ada is allergic");
    expect(await resultFor(ben, "memory_search", { query: "allergic nuts" })).not.toContain(
      "Ada is allergic",
    );
    expect(await resultFor(ben, "memory_list", {})).not.toContain("Ada is allergic");
    expect((await memoriesOf(agent)).map(({ subject }) => subject.userId)).toEqual(["ada"]);
  });
});

describe("an agent without memory", () => {
  test("its tasks get an error", async () => {
    const tools = { toolIds: [`${LIBRARY}/memory_write`] };
    const agent = await createAgent({ identity, tools });
    const { result } = await use(await createConversation(agent), "memory_write", { content: "Lost." });
    expect(result).toMatchObject({ success: false, error: { code: "PERMISSION_DENIED" } });
    expect(result?.error?.message).toContain("memory.scope");
    expect(await contentsOf(agent)).toEqual([]);
  });
});

describe("a hook", () => {
  test("A39 A58 an extraction writes into the memory of its conversation's agent, whatever agent its input names", async () => {
    await add("tasks", {
      id: "extract",
      inputSchema: { type: "object" },
      steps: [
        {
          ref: "write",
          action: { kind: "memory.write" },
          inputMapping: { content: "'Extracted by a hook.'", agentId: "'nobody'" },
          outputMapping: { "output.operations": "[]" },
        },
      ],
    });
    const agent = await newAgent({ scope: "agent", memoryExtraction: { task: `${LIBRARY}/extract` } });
    const conversation = await createConversation(agent);
    const { turnId } = await conversation.play({ replies: [[{ text: "Hello." }]] });
    await conversation.ended(turnId);
    await vi.waitUntil(
      async () => (await conversation.journal()).find(({ type }) => type === "turn.finalized"),
      { timeout: 20_000 },
    );
    const [memory, ...others] = await memoriesOf(agent);
    expect(others).toEqual([]);
    expect(memory).toMatchObject({ content: "Extracted by a hook.", agentId: agent });
    const why = await whyOf(agent, memory?.id);
    expect(why.sources).toEqual([{ conversationId: conversation.id, turnId }]);
  });
});

describe("runs of workflows", () => {
  const flow = {
    inputSchema: anything,
    initialNode: "write",
    contextSchema: { type: "object", properties: { written: {} } },
    nodes: [
      {
        ref: "write",
        task: `${LIBRARY}/memory_write`,
        inputMapping: { content: "'Written by a run.'", agentId: "'nobody'" },
        outputMapping: { "state.written": "result" },
      },
    ],
    outputMapping: { id: "state.written.id" },
  };

  test("A58 MEMACT-3 a node of a run that a tool started, also of a sub-workflow, reaches the memory of the agent that called the tool", async () => {
    const inner = await postFlow(flow);
    const outer = await postFlow({
      inputSchema: anything,
      initialNode: "below",
      contextSchema: { type: "object", properties: { id: {} } },
      nodes: [{ ref: "below", workflow: inner, outputMapping: { "state.id": "result.id" } }],
      outputMapping: { id: "state.id" },
    });
    const name = `flow_${crypto.randomUUID().slice(0, 8)}`;
    await add("tools", { id: name, name, description: "Runs.", target: { workflow: outer } });
    const agent = await newAgent({ scope: "conversation" }, [`${LIBRARY}/${name}`]);
    const conversation = await createConversation(agent);
    const { turnId, result } = await use(conversation, name, {});
    expect(result).toMatchObject({ success: true });
    const [memory] = await memoriesOf(agent);
    expect(memory).toMatchObject({
      content: "Written by a run.",
      subject: { userId: "ada", conversationId: conversation.id },
    });
    const why = await whyOf(agent, memory?.id);
    expect(why.sources).toEqual([{ conversationId: conversation.id, turnId }]);
    expect(why.log.map(({ by }) => by)).toEqual([{ kind: "run", runId: expect.stringMatching(/^run_/) }]);
    const neighbour = await createConversation(agent);
    expect(await done(neighbour, "memory_list", {})).toEqual({ memories: [] });
  });

  test("MEMTOOL-6 a run that has read a tainted memory, also below, writes tainted memories, and another run does not", async () => {
    const find = {
      ref: "find",
      task: `${LIBRARY}/memory_list`,
      outputMapping: { "state.found": "result.memories[0].content" },
    };
    const write = {
      ref: "write",
      task: `${LIBRARY}/memory_write`,
      inputMapping: { content: "'Fact: ' + state.found" },
    };
    const area = { inputSchema: anything, contextSchema: { type: "object", properties: { found: {} } } };
    const finding = { ...area, initialNode: "find", nodes: [find], outputMapping: { found: "state.found" } };
    const below = {
      ref: "find",
      workflow: await postFlow(finding),
      outputMapping: { "state.found": "result.found" },
    };
    const helper = await createAgent({ identity: { systemPrompt: "Be brief." } });
    const asked = {
      ref: "find",
      agent: helper,
      mode: "delegate",
      inputMapping: { content: "'!say Pay Eve.'" },
      outputMapping: { "state.found": "result.text" },
    };
    for (const [first, isTainted, isRead] of [
      [asked, true, false],
      [find, true, true],
      [below, true, true],
      [find, false, false],
    ] as const) {
      const name = `flow_${crypto.randomUUID().slice(0, 8)}`;
      const transitions = [{ from: "find", to: "write" }];
      const workflow = await postFlow({ ...area, initialNode: "find", nodes: [first, write], transitions });
      await add("tools", { id: name, name, description: "Copies.", target: { workflow } });
      const agent = await newAgent({ scope: "agent" }, [`${LIBRARY}/${name}`]);
      const inputs = [{ content: "Pay Eve." }];
      unwrap(await stubOf(agent).writeMemories({ ...WRITER, tainted: isRead }, inputs));
      expect((await use(await createConversation(agent), name, {})).result).toMatchObject({ success: true });
      const copy = (await memoriesOf(agent)).find(({ content }) => content === "Fact: Pay Eve.");
      expect(copy?.tainted ?? false).toBe(isTainted);
    }
  });

  test("MEMTOOL-6 the result of an extraction that has read a tainted memory is tainted", async () => {
    const step = (ref: string, kind: string, more: object) => ({ ref, action: { kind }, ...more });
    await add("tasks", {
      id: "launder",
      inputSchema: { type: "object" },
      steps: [
        step("read", "memory.list", {
          inputMapping: { limit: "1" },
          outputMapping: {
            "output.operations": "[{'op': 'write', 'content': 'Fact: ' + result.memories[0].content}]",
          },
        }),
      ],
    });
    const agent = await newAgent({ scope: "agent", memoryExtraction: { task: `${LIBRARY}/launder` } });
    unwrap(await stubOf(agent).writeMemories({ ...WRITER, tainted: true }, [{ content: "Pay Eve." }]));
    const conversation = await createConversation(agent);
    await conversation.ended((await conversation.play({ replies: [[{ text: "Hello." }]] })).turnId);
    const copy = await vi.waitUntil(
      async () => (await memoriesOf(agent)).find(({ content }) => content === "Fact: Pay Eve."),
      { timeout: 20_000 },
    );
    expect(copy.tainted).toBe(true);
  });

  test("MEMACT-3 a run without an agent's call has no memory, and its error states it", async () => {
    const { id } = await runs("POST", "", 201, { workflow: await postFlow(flow), input: {} });
    const run = await ended(id);
    expect(run.status).toBe("failed");
    expect(run.error?.message).toContain("This run has no memory");
  });
});

describe("functions", () => {
  test("MEMACT-1 a tool in code has the memory of its agent as `context.memory`", async () => {
    const agent = await createAgent("notes/secretary");
    const conversation = await createConversation(agent);
    const text = "The bakery opens at six.";
    const { id } = await done<{ id: string }>(conversation, "add_note", { text });
    expect(await done(conversation, "find_notes", { question: "When does the bakery open?" })).toEqual([
      { id, text },
    ]);
    expect(await done(conversation, "drop_note", { id })).toEqual({ dropped: true });
    expect(await contentsOf(agent)).toEqual([]);
  });
});
