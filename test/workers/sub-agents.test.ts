/** Sub-agents on the real Worker: their tools, their quota and their time, and their restrictions. */
import { afterEach, beforeAll, expect, test } from "vitest";
import type { StepScript } from "../support/provider-script.ts";
import { cancelledOperations } from "./library.ts";
import { Play } from "./provider.ts";
import { checkInvariants, createAgent, createConversation, request, TestConversation } from "./world.ts";

let chief: string;

const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });

async function post(tool: { name: string; [field: string]: unknown }): Promise<string> {
  const body = JSON.stringify({ id: tool.name, description: "For a test.", ...tool });
  const response = await request("/api/libraries/spawning/tools", { method: "POST", body });
  expect(response.status, await response.clone().text()).toBe(201);
  return `spawning/${tool.name}`;
}

const goal = {
  type: "object",
  properties: { goal: { type: "string" } },
  required: ["goal"],
};

/** Posts the template of a sub-agent; returns its reference. */
function spawning(name: string, agent: string, template: object, more: object = {}): Promise<string> {
  const target = { agent, template: { name, ...template } };
  return post({ name: `agent_spawn_${name}`, inputSchema: goal, target, ...more });
}

beforeAll(async () => {
  const helper = await createAgent({ identity: identity("You are the helper.") });
  const askHelper = await post({ name: "ask_helper_below", target: { agent: helper } });
  const worker = await createAgent({
    identity: identity("You are the worker."),
    tools: { toolIds: ["test/correlation", "test/double", askHelper] },
  });
  const memory = { contextAssembly: { task: "test/assemble" }, memoryExtraction: { task: "test/remember" } };
  const hooked = await createAgent({ identity: identity("You remember."), memory });
  const tools = [
    await spawning("narrow", worker, { tools: ["double"], network: "any" }),
    await spawning("offline", worker, { tools: ["double"] }),
    await spawning("quick", worker, { tools: [] }, { timeoutMs: 300 }),
    await spawning("wrong", worker, { tools: ["divide"] }),
    await spawning("many", worker, { tools: [] }, { async: true }),
    await spawning("hooked", hooked, { tools: [] }),
    await post({ name: "ask_hooked", target: { agent: hooked } }),
    await post({ name: "hire", target: { agent: worker, template: { name: "plain", tools: [] } } }),
  ];
  chief = await createAgent({
    identity: identity("You are the chief."),
    tools: { toolIds: [...tools, "test/patient"] },
  });
});

afterEach(checkInvariants);

const spawn = (template: string, play: Play): StepScript => ({
  call: `agent_spawn_${template}`,
  input: { goal: play.content },
});

type Sent = {
  body: { tools?: { function: { name: string } }[]; messages: { role: string; content: string | null }[] };
};

/** The only turn of the conversation of a call. */
const turnIn = async (room: TestConversation) =>
  (await room.journal()).find(({ turnId }) => turnId !== undefined)?.turnId ?? "";

/** The events of sub-agents in the journal, each with the reason of a stop. */
const eventsOf = async (conversation: TestConversation) =>
  (await conversation.journal()).flatMap(({ type, data }) => {
    // SAFETY: the reducer wrote the data.
    const { reason } = (data ?? {}) as { reason?: string };
    return type.startsWith("subagent.") ? [[type, ...(reason === undefined ? [] : [reason])].join(" ")] : [];
  });

const toolsIn = (sent: Sent | undefined) => (sent?.body.tools ?? []).map((tool) => tool.function.name).sort();
const resultsIn = (sent: Sent | undefined) =>
  (sent?.body.messages ?? []).filter(({ role }) => role === "tool").map(({ content }) => content ?? "");

test("E25 SPAWN-1 SPAWN-7 a sub-agent has the tools of its template only, and any other is PERMISSION_DENIED", async () => {
  const conversation = await createConversation(chief);
  const child = new Play({
    replies: [
      [
        { call: "double", input: { n: 21 } },
        { call: "correlation", input: {} },
        { call: "ask_helper_below", input: { message: "Do it for me." } },
        { call: "agent_spawn_narrow", input: { goal: "Do it again." } },
      ],
      [{ text: "42" }],
    ],
  });
  const { turnId } = await conversation.play({ replies: [[spawn("narrow", child)], [{ text: "Done." }]] });
  const turn = await conversation.ended(turnId);
  expect(turn.answer).toBe("Done.");
  expect(turn.moves[0]?.toolCall?.agent).toMatchObject({ mode: "delegate", template: "narrow" });
  expect(turn.moves[0]?.toolResult?.result).toBe("42");
  const [first, second] = await child.requests(2);
  expect(toolsIn(first)).toEqual(["decline", "double"]);
  const [product, ...refused] = resultsIn(second);
  expect(product).toContain("42");
  expect(refused.map((text) => JSON.parse(text))).toEqual(
    ["correlation", "ask_helper_below", "agent_spawn_narrow"].map((name) => ({
      code: "PERMISSION_DENIED",
      message: `A sub-agent of "narrow" has no tool "${name}". The tools are "double", "decline". Use one of these names exactly, or answer without a tool.`,
      retriable: false,
    })),
  );
  const types = (await conversation.journal()).map(({ type }) => type);
  expect(types.filter((type) => type.startsWith("agent_call."))).toEqual([
    "agent_call.started",
    "agent_call.completed",
  ]);
  expect(await eventsOf(conversation)).toEqual([
    "subagent.requested",
    "subagent.started",
    "subagent.stopped completed",
  ]);
  const started = (await conversation.journal()).find(({ type }) => type === "subagent.started");
  expect(started).toMatchObject({
    turnId,
    data: { template: "narrow", conversationId: turn.moves[0]?.toolCall?.agent?.conversationId },
  });
});

test("E9 E14 SPAWN-7 a model call, a tool, the stop of the tool and the stop of the sub-agent each have their instruction", async () => {
  const conversation = await createConversation(chief);
  const client = await conversation.connect();
  const child = new Play({ replies: [[{ text: "Half" }, { gate: "work" }]] });
  // `run_llm` calls the model, and `run_tool` runs the tool.
  const { play, turnId } = await conversation.play((key) => ({
    replies: [[spawn("narrow", child), { call: "patient", input: { key } }], [{ text: "Never." }]],
  }));
  expect(await play.requests(1)).toHaveLength(1);
  const [run] = await play.runs(1);
  await child.reached("work");
  expect((await conversation.view()).status).toBe("active");
  const stop = { method: "POST", body: JSON.stringify({ reason: "Enough." }) };
  expect((await request(`${conversation.path}/cancel`, stop)).status).toBe(200);
  // `cancel_pending_tools` aborts the tool, and `cancel_pending_subagents` ends the sub-agent with its provider's request.
  await expect.poll(() => cancelledOperations.has(run?.operationId ?? "")).toBe(true);
  expect(await child.closes(1)).toHaveLength(1);
  await client.until(({ turns }) => turns.some(({ id, status }) => id === turnId && status === "failed"));
  expect((await conversation.view()).gate).toBe("cancelled");
  const journal = await conversation.journal();
  const of = (type: string) => journal.filter((entry) => entry.type === type);
  expect(of("message.started")).toHaveLength(1);
  expect(of("tool.requested")).toHaveLength(2);
  expect(of("tool.cancelled")).toMatchObject([
    { data: { reason: "Enough." } },
    { data: { reason: "Enough." } },
  ]);
  expect(of("subagent.stopped")).toMatchObject([
    { turnId, data: { template: "narrow", reason: "cancelled", message: "Enough." } },
  ]);
  const { moves } = await conversation.turn(turnId);
  const room = new TestConversation(moves[0]?.toolCall?.agent?.conversationId ?? "");
  await expect.poll(async () => (await room.view()).status).toBe("completed");
  expect(await play.requests()).toHaveLength(1);
});

test("E25 SPAWN-7 an agent that fails stops its sub-agent with that reason", async () => {
  const conversation = await createConversation(chief);
  const child = new Play({ replies: [[{ call: "decline", input: { reason: "I cannot." } }]] });
  const { turnId } = await conversation.play({ replies: [[spawn("narrow", child)], [{ text: "I see." }]] });
  await conversation.ended(turnId);
  expect(await eventsOf(conversation)).toEqual([
    "subagent.requested",
    "subagent.started",
    "subagent.stopped failed",
  ]);
});

test("AGENTTOOL-1 a posted template takes a goal and has five minutes, whatever its tool is called", async () => {
  const response = await request("/api/libraries/spawning/tools/hire");
  expect(await response.json()).toMatchObject({ definition: { timeoutMs: 300_000 } });
  const conversation = await createConversation(chief);
  const child = new Play({ replies: [[{ text: "Hired." }]] });
  const { turnId } = await conversation.play({
    replies: [[{ call: "hire", input: { goal: child.content } }], [{ text: "Done." }]],
  });
  const turn = await conversation.ended(turnId);
  expect(turn.moves[0]?.toolResult?.result).toBe("Hired.");
  expect(turn.moves[0]?.toolCall?.agent).toMatchObject({ mode: "delegate", template: "plain" });
});

test("E25 SPAWN-2 without a network it has no tool that does not say which hosts it reaches", async () => {
  const conversation = await createConversation(chief);
  const child = new Play({
    replies: [[{ call: "double", input: { n: 21 } }], [{ text: "Nothing to do." }]],
  });
  const { turnId } = await conversation.play({ replies: [[spawn("offline", child)], [{ text: "Done." }]] });
  expect((await conversation.ended(turnId)).answer).toBe("Done.");
  const [first, second] = await child.requests(2);
  expect(toolsIn(first)).toEqual(["decline"]);
  expect(resultsIn(second).map((text) => JSON.parse(text))).toMatchObject([
    {
      code: "PERMISSION_DENIED",
      message:
        'A sub-agent of "offline" cannot use the tool "double": its template allows no network, and the tool declares no hosts.',
    },
  ]);
});

test("E25 SPAWN-4 SPAWN-7 the fourth sub-agent at a time is refused; when one has ended, there is room", async () => {
  const conversation = await createConversation(chief);
  const children = Array.from(
    { length: 3 },
    () => new Play({ replies: [[{ gate: "work" }, { text: "Worked." }]] }),
  );
  const fourth = new Play({ replies: [[{ text: "Never." }]] });
  const { play, turnId } = await conversation.play({
    replies: [
      [...children, fourth].map((child) => spawn("many", child)),
      ...Array(4).fill([{ text: "Waiting." }]),
    ],
  });
  await Promise.all(children.map((child) => child.reached("work")));
  const [, second] = await play.requests(2);
  const refusals = resultsIn(second).filter((text) => text.includes("sub-agents"));
  expect(refusals.map((text) => JSON.parse(text))).toEqual([
    {
      code: "EXECUTION_FAILED",
      message: 'At most 3 sub-agents of "many" may work at a time. Spawn another when one has ended.',
      retriable: true,
    },
  ]);
  expect(await fourth.requests()).toEqual([]);
  expect(await eventsOf(conversation)).toEqual([
    ...Array(4).fill("subagent.requested"),
    "subagent.stopped denied",
    ...Array(3).fill("subagent.started"),
  ]);
  for (const child of children) await child.open("work");
  await conversation.ended(turnId);
  const late = new Play({ replies: [[{ text: "Room." }]] });
  const next = await conversation.play({
    replies: [[spawn("many", late)], [{ text: "A." }], [{ text: "B." }]],
  });
  await late.requests(1);
  await conversation.ended(next.turnId);
});

test("E25 SPAWN-7 a sub-agent is stopped when its time is over, and so is its request to the provider", async () => {
  const conversation = await createConversation(chief);
  const child = new Play({ replies: [[{ text: "Half" }, { gate: "work" }]] });
  const { play, turnId } = await conversation.play({
    replies: [[spawn("quick", child)], [{ text: "Too slow." }]],
  });
  expect((await conversation.ended(turnId)).answer).toBe("Too slow.");
  await child.closes(1);
  const [, second] = await play.requests();
  expect(JSON.parse(resultsIn(second)[0] ?? "")).toMatchObject({ code: "TIMEOUT" });
  const { moves } = await conversation.turn(turnId);
  const room = new TestConversation(moves[0]?.toolCall?.agent?.conversationId ?? "");
  const client = await room.connect();
  await client.until((state) => state.conversation?.status === "completed");
  expect((await eventsOf(conversation)).at(-1)).toBe("subagent.stopped expired");
});

test("E25 a template with a tool that its agent lacks spawns no agent, and returns an error", async () => {
  const conversation = await createConversation(chief);
  const child = new Play({ replies: [[{ text: "Never." }]] });
  const { play, turnId } = await conversation.play({
    replies: [[spawn("wrong", child)], [{ text: "I see." }]],
  });
  expect((await conversation.ended(turnId)).answer).toBe("I see.");
  const [, second] = await play.requests();
  expect(JSON.parse(resultsIn(second)[0] ?? "")).toMatchObject({
    code: "INVALID_INPUT",
    message: expect.stringContaining('allows the tool "divide"'),
  });
  expect(await child.requests()).toEqual([]);
});

test("SPAWN-5 a sub-agent runs no hooks of its persona; called without bounds, the same agent runs them", async () => {
  for (const isBounded of [true, false]) {
    const conversation = await createConversation(chief);
    const child = new Play({ replies: [[{ text: "Done." }]] });
    const asked = { call: "ask_hooked", input: { message: child.content } };
    const { turnId } = await conversation.play({
      replies: [[isBounded ? spawn("hooked", child) : asked], [{ text: "Fine." }]],
    });
    const { answer, moves } = await conversation.ended(turnId);
    expect(answer).toBe("Fine.");
    const [request] = await child.requests();
    // The request of the hook `assemble` has no instructions.
    const roles = request?.body.messages.map(({ role }) => role);
    expect(roles).toEqual(isBounded ? ["system", "user"] : ["user"]);
    const room = new TestConversation(moves[0]?.toolCall?.agent?.conversationId ?? "");
    const hooks = async () =>
      (await room.journal())
        .map(({ type }) => type)
        .filter((type) => /^(context_assembly|memory_extraction)\./.test(type) && !type.endsWith(".started"));
    const run = ["context_assembly.completed", "memory_extraction.completed", "memory_extraction.applied"];
    await expect.poll(hooks, { timeout: 10_000 }).toEqual(isBounded ? [] : run);
    expect(await room.turn(await turnIn(room))).toMatchObject(
      isBounded
        ? { contextAssemblyRunId: null, memoryExtractionRunId: null }
        : { contextAssemblyRunId: expect.any(String), memoryExtractionRunId: expect.any(String) },
    );
  }
});

test("E25 by API a template is checked when it is posted", async () => {
  const bad = [
    { template: { name: "x" } },
    { template: { name: "x", tools: [], network: ["https://a.example"] } },
    { template: { name: "x", tools: [], quota: 0 } },
    { mode: "loop_in", template: { name: "x", tools: [] } },
    { handoff: "full", template: { name: "x", tools: [] } },
  ];
  for (const [index, target] of bad.entries()) {
    const body = {
      id: `bad_${index}`,
      name: `bad_${index}`,
      description: "Bad.",
      target: { agent: chief, ...target },
    };
    const response = await request("/api/libraries/spawning/tools", {
      method: "POST",
      body: JSON.stringify(body),
    });
    expect(response.status, JSON.stringify(target)).toBe(422);
  }
});
