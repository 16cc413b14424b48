/** Agents that other agents bring into the conversation, on the real Worker. */
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { TurnSummary } from "../../src/protocol/conversation-schemas.ts";
import { postTool } from "./authoring.ts";
import { Play } from "./provider.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

let architect: string;
let cook: string;
let manager: string;

const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });

const tool = (id: string, target: object, more?: object) => postTool("company", id, target, more);

beforeAll(async () => {
  architect = await createAgent({ identity: identity("You are the architect.") });
  cook = await createAgent({ identity: identity("You are the cook.") });
  const elsewhere = { id: "elsewhere", persona: { identity: identity("Far.") }, projectIds: ["other"] };
  const made = await request("/api/agents", { method: "POST", body: JSON.stringify(elsewhere) });
  expect(made.status).toBe(201);
  const toolIds = [
    await tool("invite_architect", { agent: architect, mode: "loop_in" }, { async: true }),
    await tool("ask_cook", { agent: cook }),
    await tool("only_ask_cook", { agent: cook, modes: ["delegate"] }),
    await tool("invite_elsewhere", { agent: "elsewhere", mode: "loop_in" }),
    await tool("invite_nobody", { agent: "nobody-there", mode: "loop_in" }),
    "test/double",
  ];
  manager = await createAgent({ identity: identity("You are the manager."), tools: { toolIds } });
});

afterEach(checkInvariants);

async function turnsOf({ path }: TestConversation): Promise<TurnSummary[]> {
  const response = await request(`${path}/turns?limit=200`);
  return (await response.json<{ turns: TurnSummary[] }>()).turns;
}

/** The turns of a conversation, once there are `count` and all are over. */
function ended(conversation: TestConversation, count: number): Promise<TurnSummary[]> {
  return vi.waitFor(async () => {
    const turns = await turnsOf(conversation);
    expect(turns.map(({ status }) => status)).toEqual(Array(count).fill("completed"));
    return turns;
  }, 10_000);
}

type Asked = Awaited<ReturnType<Play["requests"]>>[number] | undefined;

/** The results that the model of a request got. */
const resultsIn = (asked: Asked): unknown[] =>
  (asked?.body.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [JSON.parse(content ?? "null")] : [],
  );
const textOf = (asked: Asked) => (asked?.body.messages ?? []).map(({ content }) => content).join("\n");

describe("loop_in", () => {
  test("A49 LOOPIN-1 08 joins, sees the conversation, answers in its own persona, visible to all, and stays until removed", async () => {
    const conversation = await createConversation(manager);
    const client = await conversation.connect();
    const invited = new Play({ replies: [[{ text: "Mind the sessions." }]] });
    const { play, turnId } = await conversation.play({
      replies: [
        [{ call: "invite_architect", input: { message: invited.content } }],
        [{ text: "The architect is here." }],
      ],
    });
    const [mine, its] = await ended(conversation, 2);
    expect(its).toMatchObject({ agentId: architect, caller: { type: "agent", agentId: manager, turnId } });
    const [, second] = await play.requests(2);
    expect(resultsIn(second)).toEqual([{ joined: architect }]);
    const [asked] = await invited.requests(1);
    expect(asked?.body.messages[0]?.content).toBe("You are the architect.");
    expect(textOf(asked)).toContain(`These agents take part, too: @${manager}.`);
    const messages = await conversation.messages();
    expect(messages.map(({ turnId: of, role, agentId }) => [of, role, agentId]).sort()).toEqual(
      [
        [mine?.id, "user", undefined],
        [mine?.id, "agent", manager],
        [its?.id, "agent", manager],
        [its?.id, "agent", architect],
      ].sort(),
    );
    const who = { type: "agent", id: architect } as const;
    expect((await conversation.view()).participants).toContainEqual(who);
    await client.frame("participant.joined", ({ data }) => data.participant.id === architect);
    await client.frame("message.user", ({ data }) => data.agentId === manager);
    await vi.waitFor(
      async () => {
        // SAFETY: the class has these methods; the type of a stub wraps what they return.
        const agent = exports.Agent.getByName(`test:${architect}`) as unknown as AgentApi;
        const found = await agent.conversations({ limit: 200 });
        expect(found.ok && found.value.items.map(({ id }) => id)).toContain(conversation.id);
      },
      { timeout: 20_000 },
    );
    const removed = await request(`${conversation.path}/participants/agent/${architect}`, {
      method: "DELETE",
    });
    expect(removed.status).toBe(204);
    expect((await conversation.view()).participants).not.toContainEqual(who);
  });

  test("A50 the mode of a call overrides the mode of its tool: delegate becomes loop_in", async () => {
    const conversation = await createConversation(manager);
    const invited = new Play({ replies: [[{ text: "Soup." }]] });
    const { play } = await conversation.play({
      replies: [
        [{ call: "ask_cook", input: { message: invited.content, invocationMode: "loop_in" } }],
        [{ text: "The cook is here." }],
      ],
    });
    await ended(conversation, 2);
    const [first, second] = await play.requests(2);
    expect(JSON.stringify(first?.body.tools)).toContain('"invocationMode"');
    expect(resultsIn(second)).toEqual([{ joined: cook }]);
    expect((await conversation.view()).participants).toContainEqual({ type: "agent", id: cook });
  });

  test("AGENTTOOL-2 a posted tool with one mode: the model has no choice, and no agent joins against it", async () => {
    const conversation = await createConversation(manager);
    const { play } = await conversation.play({
      replies: [
        [{ call: "only_ask_cook", input: { message: "Join us.", invocationMode: "loop_in" } }],
        [{ text: "The cook does not come." }],
      ],
    });
    await ended(conversation, 1);
    const [first, second] = await play.requests(2);
    const offered = first?.body.tools?.find((one) => one.function.name === "only_ask_cook")?.function;
    expect(offered).toHaveProperty("parameters.properties.message");
    expect(offered).not.toHaveProperty("parameters.properties.invocationMode");
    expect(resultsIn(second)).toMatchObject([
      {
        code: "INVALID_INPUT",
        message: '/invocationMode: Must be "delegate". Leave it out for the usual way.',
      },
    ]);
    expect((await conversation.view()).participants).toHaveLength(2);
  });

  test("A3 A28 LOOPIN-2 an agent without a common project is PERMISSION_DENIED, an unknown agent NOT_FOUND, and no agent joins", async () => {
    const conversation = await createConversation(manager);
    const { play } = await conversation.play({
      replies: [
        [
          { call: "invite_elsewhere", input: { message: "Hello" } },
          { call: "invite_nobody", input: { message: "Hello" } },
        ],
        [{ text: "Nobody came." }],
      ],
    });
    await ended(conversation, 1);
    const [, second] = await play.requests(2);
    expect(resultsIn(second)).toMatchObject([{ code: "PERMISSION_DENIED" }, { code: "NOT_FOUND" }]);
    expect((await conversation.view()).participants).toHaveLength(2);
  });

  test("two loop_in beside a calculator call: three results", async () => {
    const conversation = await createConversation(manager);
    const [one, two] = [1, 2].map(() => new Play({ replies: [[{ text: "Here." }]] }));
    const { play } = await conversation.play({
      replies: [
        [
          { call: "invite_architect", input: { message: one?.content } },
          { call: "double", input: { n: 21 } },
          { call: "ask_cook", input: { message: two?.content, invocationMode: "loop_in" } },
        ],
        [{ text: "Both are here." }],
      ],
    });
    await ended(conversation, 3);
    const [, second] = await play.requests(2);
    const results = resultsIn(second);
    expect(results).toHaveLength(3);
    expect([results[0], results[2]]).toEqual([{ joined: architect }, { joined: cook }]);
    expect(JSON.stringify(results[1])).toContain("42");
  });

  test('a looped-in agent asks for the city; "Berlin" reaches that agent', async () => {
    const conversation = await createConversation(manager);
    const invited = new Play({ replies: [[{ text: "In which city?" }]] });
    await conversation.play({
      replies: [
        [{ call: "invite_architect", input: { message: invited.content } }],
        [{ text: "The architect will ask you." }],
      ],
    });
    await ended(conversation, 2);
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Berlin it is." }]] });
    expect(await conversation.ended(turnId)).toMatchObject({ agentId: architect, answer: "Berlin it is." });
    const [asked] = await play.requests(1);
    expect(asked?.body.messages).toContainEqual({ role: "assistant", content: "In which city?" });
  });

  test("request of a looped-in agent: labelled text only, no foreign tool calls", async () => {
    const conversation = await createConversation(manager);
    const { turnId } = await conversation.play({
      replies: [[{ call: "double", input: { n: 21 } }], [{ text: "It is 42." }]],
    });
    await conversation.ended(turnId);
    const invited = new Play({ replies: [[{ text: "Right." }]] });
    await conversation.play({
      replies: [[{ call: "invite_architect", input: { message: invited.content } }], [{ text: "Asked." }]],
    });
    await ended(conversation, 3);
    const [asked] = await invited.requests(1);
    expect(asked?.body.messages.map(({ role }) => role)).not.toContain("assistant");
    expect(asked?.body.messages.map(({ role }) => role)).not.toContain("tool");
    expect(asked?.body.messages.flatMap(({ tool_calls = [] }) => tool_calls)).toEqual([]);
    expect(textOf(asked)).toContain(`- The agent "${manager}": "It is 42."`);
    expect(asked?.body.messages.at(-1)?.content).toBe(`agent "${manager}": ${invited.content}`);
  });

  test("LOOPIN-3 a crash of all actors at any time: the agent joins once, and one turn starts", async () => {
    const conversation = await createConversation(manager);
    const invited = new Play({ replies: [[{ gate: "think" }, { text: "Here." }]] });
    const { play } = await conversation.play({
      replies: [
        [{ call: "invite_architect", input: { message: invited.content } }],
        [{ gate: "wait" }, { text: "It is here." }],
      ],
    });
    await play.requests(1);
    await crash();
    await invited.reached("think");
    await crash();
    await Promise.all([invited.open("think"), play.open("wait")]);
    await ended(conversation, 2);
    const journal = await conversation.journal();
    expect(journal.filter(({ type }) => type === "participant.joined")).toHaveLength(1);
    expect(journal.filter(({ type }) => type === "turn.started")).toHaveLength(2);
  });

  test("TALK-4 an agent that joins may stay silent", async () => {
    const conversation = await createConversation(manager);
    const invited = new Play({ replies: [[{ text: "Well" }, { call: "stay_silent", input: {} }]] });
    await conversation.play({
      replies: [
        [{ call: "invite_architect", input: { message: invited.content } }],
        [{ text: "It listens." }],
      ],
    });
    const [mine, its] = await ended(conversation, 2);
    expect([mine?.silent, its?.silent]).toEqual([undefined, true]);
    expect((await conversation.messages()).map(({ agentId, role }) => [role, agentId])).toEqual([
      ["user", undefined],
      ["agent", manager],
      ["agent", manager],
    ]);
  });
});
