/**
 * The conversation loop on workerd: real actors and executor, real adapter and gateway, and a provider on loopback that
 * follows the script in a test's message. Titles begin with the rows of the capability list.
 */
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { OFFLINE_PROFILE } from "../../src/adapters/default-profile.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { reduce } from "../../src/agents/conversation/core/reducer.ts";
import type { Signal } from "../../src/agents/conversation/core/signals.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  NEW_STATE,
} from "../../src/agents/conversation/core/state.ts";
import { beginTransition } from "../../src/agents/conversation/core/transition.ts";
import { TurnEnds } from "../../src/agents/conversation/inbound/turn-ends.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import { MAX_OUTPUT_DEPTH, type TaskResult, type TaskResultApi } from "../../src/protocol/executor-api.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Json } from "../../src/shared/json.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { RecordedBody, StepScript } from "../support/provider-script.ts";
import { testLibrary } from "./library.ts";
import { Play } from "./provider.ts";
import {
  checkInvariants,
  createAgent,
  createConversation,
  partialText,
  type TestConversation,
} from "./world.ts";

/** An agent with every tool of the test library, and the same with two moves per turn. */
let handy: string;
let brief: string;
/** An agent with a priced model. */
let priced: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
  brief = await createAgent("test/brief");
  priced = await createAgent("test/priced");
});

afterEach(checkInvariants);

const say = (text: string): StepScript[] => [{ text }];

const systemText = ({ messages }: RecordedBody) =>
  messages.flatMap(({ role, content }) => (role === "system" ? [content] : []));

/** The messages of a request after the user's last one. */
const movesIn = ({ messages }: RecordedBody) =>
  messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);

describe("personas and tools", () => {
  test("A1 a library's persona is in its agent with version, fields and default limits", async () => {
    const stub: unknown = await getAgentByName(
      exports.Agent as never,
      `test:${await createAgent("test/plain")}`,
    );
    // SAFETY: the binding's class implements `AgentApi`.
    const { chain, projectIds } = unwrap(await (stub as AgentApi).persona());
    expect(chain.persona).toMatchObject({
      library: "test",
      id: "plain",
      version: 1,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      definition: {
        identity: { systemPrompt: "You are a test." },
        memory: { recentTurnsLimit: 20 },
        tools: { constraints: { maxMovesPerTurn: 16 } },
      },
    });
    expect(projectIds).toEqual(["default"]);
    const otherVersion = await (stub as AgentApi).persona(2);
    expect(otherVersion).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
  });

  test("A2 a persona given inline and one given by reference run turns with their own system prompt", async () => {
    const inline = await createAgent({
      identity: {
        systemPrompt: "You are inline.",
        instructions: ["Be brief.", "Be kind."],
        modelProfileId: "test/scripted",
      },
    });
    const promptOf = async (agentId: string) => {
      const conversation = await createConversation(agentId);
      const { play, turnId } = await conversation.play({ replies: [say("Here.")] });
      expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", agentId });
      const [request] = await play.requests(1);
      expect(request?.body.model).toBe("scripted");
      return request === undefined ? [] : systemText(request.body);
    };
    expect(await promptOf(inline)).toEqual(["You are inline.\n\nBe brief.\n\nBe kind."]);
    expect(await promptOf(await createAgent("test/plain"))).toEqual(["You are a test."]);
  });

  test("A6 a tool bound to a task returns the task's output to the model", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ text: "Let me save. " }, { call: "save", input: { key, n: 7 } }], say("Saved.")],
    }));
    const { moves } = await conversation.ended(turnId);
    expect(moves).toMatchObject([
      {
        sequence: 1,
        reasoning: "Let me save. ",
        toolCall: { name: "save", toolId: "test/save", input: { key: play.key, n: 7 } },
        toolResult: { success: true, result: { tool: "save", n: 7 } },
      },
      { sequence: 2, reasoning: "Saved." },
    ]);
    const [, second] = await play.requests(2);
    const [, result] = second === undefined ? [] : movesIn(second.body);
    expect(JSON.parse(result?.content ?? "")).toEqual({ tool: "save", n: 7 });
    expect(await play.runs()).toMatchObject([{ operationId: moves[0]?.toolCall?.operationId }]);
  });

  test.each([
    ["input against the schema", (key: string) => ({ key, n: "seven" })],
    ["input without a required field", () => ({ n: 7 })],
    ["text that is no JSON", () => '{"key": '],
    ["JSON that is no object", () => "[1]"],
  ])("A7 %s is INVALID_INPUT, its target never runs, and the loop continues", async (_, input) => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "save", input: input(key) }], say("I see.")],
    }));
    const turn = await conversation.ended(turnId);
    expect(turn).toMatchObject({ status: "completed", issues: { toolFailures: 1 } });
    expect(turn.moves).toMatchObject([
      { toolResult: { success: false, error: { code: "INVALID_INPUT" } } },
      { reasoning: "I see." },
    ]);
    expect(await play.runs()).toEqual([]);
  });

  test("A9 an unknown tool is a move with NOT_FOUND, which the model gets, and the turn completes", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "teleport", input: { to: "Rome" } }], say("I cannot.")],
    });
    const turn = await conversation.ended(turnId);
    expect(turn).toMatchObject({ status: "completed", issues: { toolFailures: 1 } });
    expect(turn.moves).toMatchObject([
      {
        toolCall: { name: "teleport", toolId: null, input: { to: "Rome" } },
        toolResult: { success: false, error: { code: "NOT_FOUND", retriable: false } },
      },
      { reasoning: "I cannot." },
    ]);
    const [, second] = await play.requests(2);
    expect(second === undefined ? [] : movesIn(second.body)).toMatchObject([
      { role: "assistant", tool_calls: [{ function: { name: "teleport" } }] },
      { role: "tool", content: expect.stringContaining("NOT_FOUND") },
    ]);
  });

  test("A tool's own failure is sent to the model with its message, once, and counts as an issue", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [
          { call: "fails", input: { key, retriable: false } },
          { call: "fails", input: { key, retriable: true } },
        ],
        say("Out of stock."),
      ],
    }));
    const turn = await conversation.ended(turnId);
    expect(turn).toMatchObject({ status: "completed", issues: { toolFailures: 2 } });
    const error = { code: "EXECUTION_FAILED", message: "The shelf is empty." };
    expect(turn.moves.map(({ toolResult }) => toolResult?.error)).toEqual([
      { ...error, retriable: false },
      { ...error, retriable: true },
      undefined,
    ]);
    expect(await play.runs()).toHaveLength(2);
  });

  test("A10 two conversations of one agent interleave and share no state", async () => {
    const [one, two] = await Promise.all([createConversation(handy), createConversation(handy)]);
    const held = (answer: string) => ({
      replies: [[{ text: "Counting. " }, { gate: "first" }, { call: "counter", input: {} }], say(answer)],
    });
    const [ofOne, ofTwo] = await Promise.all([one.play(held("One.")), two.play(held("Two."))]);
    await Promise.all([ofOne.play.reached("first"), ofTwo.play.reached("first")]);
    await ofTwo.play.open("first");
    const second = await two.ended(ofTwo.turnId);
    expect(await one.turn(ofOne.turnId)).toMatchObject({ status: "active", moves: [] });
    await ofOne.play.open("first");
    const first = await one.ended(ofOne.turnId);
    for (const turn of [first, second]) expect(turn.moves[0]?.toolResult?.result).toEqual({ count: 1 });
    expect((await one.messages()).map(({ content }) => content)).toEqual([ofOne.play.content, "One."]);
    expect((await two.messages()).map(({ content }) => content)).toEqual([ofTwo.play.content, "Two."]);
    const again = await one.play({ replies: [[{ call: "counter", input: {} }], say("Two in one.")] });
    expect((await one.ended(again.turnId)).moves[0]?.toolResult?.result).toEqual({ count: 2 });
  });

  test("B1 a model sees only the history of its own conversation", async () => {
    const [one, two] = await Promise.all([createConversation(handy), createConversation(handy)]);
    const first = await one.play({ replies: [say("I know the secret.")] });
    await one.ended(first.turnId);
    const second = await one.play({ replies: [say("As I said.")] });
    const other = await two.play({ replies: [say("What secret?")] });
    await Promise.all([one.ended(second.turnId), two.ended(other.turnId)]);
    const [ofSecond] = await second.play.requests(1);
    const [ofOther] = await other.play.requests(1);
    const said = (body: RecordedBody | undefined) =>
      body?.messages.map(({ role, content }) => [role, content]).slice(1);
    expect(said(ofSecond?.body)).toEqual([
      ["user", first.play.content],
      ["assistant", "I know the secret."],
      ["user", second.play.content],
    ]);
    expect(said(ofOther?.body)).toEqual([["user", other.play.content]]);
  });
});

describe("the order of a turn", () => {
  test("A12 the first token reaches WebSocket and SSE clients before the call finishes", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play({
      replies: [[{ text: "First" }, { gate: "rest" }, { text: " and last." }]],
    });
    const stream = await conversation.events("/events");
    await client.until((state) => partialText(state) === "First");
    const { data } = await stream.upTo("snapshot");
    const early = data.partials[0]?.text ?? (await stream.upTo("message.delta")).data.text;
    expect(early).toBe("First");
    expect(await conversation.turn(turnId)).toMatchObject({
      status: "active",
      completedAt: null,
      latencyMs: null,
    });
    expect(await play.requests()).toHaveLength(1);
    await play.open("rest");
    await stream.upTo("turn.completed");
    await stream.cancel();
    await client.frame("turn.finalized");
    expect((await client.frame("message.completed")).data.content).toBe("First and last.");
    const order = client.frames.map(({ type }) => type).filter((type) => type !== "message.delta");
    expect(order).toEqual([
      "snapshot",
      "turn.started",
      "message.user",
      "message.started",
      "message.completed",
      "turn.completed",
      "turn.finalized",
    ]);
  });

  test("A14 no second model call before a tool's result; the second has call and result", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const { play } = await conversation.play((key) => ({
      replies: [[{ call: "charge", input: { key, gate: "bank" }, id: "call_a" }], say("Charged.")],
    }));
    await play.reached("bank");
    await client.frame("tool.requested");
    expect(await play.requests()).toHaveLength(1);
    await play.open("bank");
    await client.frame("turn.completed");
    const requests = await play.requests();
    expect(requests).toHaveLength(2);
    expect(requests[1] === undefined ? [] : movesIn(requests[1].body)).toMatchObject([
      { role: "assistant", content: null, tool_calls: [{ id: "call_a", function: { name: "charge" } }] },
      { role: "tool", tool_call_id: "call_a", content: '{"tool":"charge","n":0}' },
    ]);
  });

  test("A15 E12 several tools of one reply: one continuation after the last result, one assistant message, N results", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [
          { call: "save", input: { key, n: 1, gate: "one" } },
          { call: "charge", input: { key, n: 2, gate: "two" } },
          { call: "look_up", input: { key, n: 3, gate: "three" } },
        ],
        say("All three."),
      ],
    }));
    await Promise.all(["one", "two", "three"].map((gate) => play.reached(gate)));
    // The last asked is the first to answer.
    for (const [count, gate] of ["three", "two", "one"].entries()) {
      expect(await play.requests()).toHaveLength(1);
      await play.open(gate);
      await client.frame("tool.completed", () => true, count + 1);
    }
    await client.frame("turn.completed");
    const [first, second, ...more] = await play.requests();
    expect(more).toEqual([]);
    const moves = second === undefined ? [] : movesIn(second.body);
    expect(moves.map(({ role }) => role)).toEqual(["assistant", "tool", "tool", "tool"]);
    expect(moves[0]?.tool_calls?.map(({ id }) => id)).toEqual(
      moves.slice(1).map((message) => message.tool_call_id),
    );
    expect(moves.slice(1).map(({ content }) => JSON.parse(content ?? "").n)).toEqual([1, 2, 3]);
    expect(second?.body.messages.slice(0, first?.body.messages.length)).toEqual(first?.body.messages);
    expect((await conversation.turn(turnId)).moves.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
  });

  test("A32 the last move's reasoning is the agent's message; text beside a call is not a message", async () => {
    const conversation = await createConversation(handy);
    const { turnId } = await conversation.play({
      replies: [[{ text: "Thinking. " }, { call: "double", input: { n: 21 } }], say("It is 42.")],
    });
    const { moves, agentMessageIds } = await conversation.ended(turnId);
    const [, answer, ...more] = await conversation.messages();
    expect(more).toEqual([]);
    expect(moves.at(-1)?.reasoning).toBe("It is 42.");
    expect(answer).toMatchObject({ content: moves.at(-1)?.reasoning, id: agentMessageIds[0], role: "agent" });
  });

  test("A33 out of moves: an endlessly calling model is called once more without tools, and answers", async () => {
    const conversation = await createConversation(brief);
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "double", input: { n: 1 } }]],
      final: say("Enough."),
    });
    expect(await conversation.ended(turnId)).toMatchObject({
      status: "completed",
      moves: [{ toolCall: {} }, { toolCall: {} }, { reasoning: "Enough." }],
    });
    const choices = (await play.requests()).map(({ body }) => body.tool_choice);
    expect(choices).toEqual(["auto", "auto", "none"]);
  });

  test("A33 a model that calls tools even then gets no more: the turn completes with a notice", async () => {
    const conversation = await createConversation(brief);
    const { play, turnId } = await conversation.play({ replies: [[{ call: "double", input: { n: 1 } }]] });
    const turn = await conversation.ended(turnId);
    expect(turn.status).toBe("completed");
    expect(turn.moves.map(({ toolCall }) => toolCall?.name)).toEqual(["double", "double", undefined]);
    expect(turn.moves.at(-1)?.reasoning).toMatch(/steps/);
    expect(await play.requests()).toHaveLength(3);
    expect((await conversation.messages()).at(-1)).toMatchObject({ content: turn.moves.at(-1)?.reasoning });
  });

  test("A33 REPEAT-2 REPEAT-3 the same call with the same result again and again: a note at the third, and after the fifth an answer without tools", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "double", input: { n: 1 } }]],
      final: say("It stays 2."),
    });
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "It stays 2." });
    const requests = (await play.requests()).map(({ body }) => body);
    expect(requests.map(({ tool_choice }) => tool_choice)).toEqual([...Array(5).fill("auto"), "none"]);
    const notes = requests.map((body) => movesIn(body).filter(({ role }) => role === "system"));
    expect(notes.map(({ length }) => length)).toEqual([0, 0, 0, 1, 2, 3]);
    expect(notes.at(-1)?.map(({ content }) => content)).toEqual([
      expect.stringMatching(/"double" 3 times.*something else/),
      expect.stringContaining('"double" 4 times'),
      expect.stringMatching(/"double" 5 times.*Answer now/),
    ]);
    const prefixes = requests.slice(1).map(({ messages }, index) => {
      const before = requests[index]?.messages ?? [];
      return JSON.stringify(messages.slice(0, before.length)) === JSON.stringify(before);
    });
    expect(prefixes).toEqual(Array(5).fill(true));
  });

  test("REPEAT-3 a model that repeats its call even then gets no more: the turn completes with a notice", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play({ replies: [[{ call: "double", input: { n: 1 } }]] });
    const turn = await conversation.ended(turnId);
    expect(turn).toMatchObject({ status: "completed", answer: expect.stringContaining("the same result") });
    expect(turn.moves.filter(({ toolCall }) => toolCall !== undefined)).toHaveLength(5);
    expect(await play.requests()).toHaveLength(6);
  });

  test("A reply without any text is shown unchanged, and counts as an issue", async () => {
    const conversation = await createConversation(handy);
    const { turnId } = await conversation.play({ replies: [[{ text: " \n" }]] });
    const turn = await conversation.ended(turnId);
    expect(turn).toMatchObject({ status: "completed", issues: { emptyReply: true } });
    expect((await conversation.messages())[1]?.content).toBe(" \n");
  });
});

describe("the record of a turn", () => {
  test("A27 B7 caller, input, replied-to message, run ids, times, latency and usage", async () => {
    const conversation = await createConversation(handy);
    const usage = { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 };
    const first = await conversation.play({ replies: [[{ text: "Hello." }, { usage }]] });
    const { agentMessageIds } = await conversation.ended(first.turnId);
    const replyToMessageId = agentMessageIds[0] ?? "";
    const content = JSON.stringify({ key: crypto.randomUUID(), replies: [say("Again.")] });
    const { turnId, messageId } = await conversation.say([{ type: "text", text: content }], {
      replyToMessageId,
    });
    const turn = await conversation.ended(turnId);
    expect(turn).toEqual({
      id: turnId,
      conversationId: conversation.id,
      agentId: handy,
      status: "completed",
      answer: "Again.",
      caller: { type: "user", userId: "ada" },
      correlationId: expect.stringMatching(/^corr-[0-9a-f]{20}$/),
      input: [{ type: "text", text: content }],
      userMessageId: messageId,
      agentMessageIds: [expect.stringMatching(/^msg_/)],
      replyToMessageId,
      contextAssemblyRunId: null,
      memoryExtractionRunId: null,
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      completedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      latencyMs: Date.parse(turn.completedAt ?? "") - Date.parse(turn.createdAt),
      usage: null,
      spent: { modelCalls: 1, toolCalls: 0, usd: 0, tokens: expect.any(Number), estimated: true },
      cost: null,
      calls: [
        expect.objectContaining({
          provider: "openai",
          model: "scripted",
          correlationId: `${conversation.id}:${turnId}`,
          parentCorrelationId: `${conversation.id}:${first.turnId}`,
          outcome: expect.objectContaining({ ok: true, attempts: 1, errorCategory: "none" }),
        }),
      ],
      moves: [expect.objectContaining({ sequence: 1, reasoning: "Again." })],
    });
    expect(turn.latencyMs).toBeGreaterThanOrEqual(0);
    expect((await conversation.turn(first.turnId)).usage).toEqual({ inputTokens: 11, outputTokens: 3 });
  });

  test("CALLS-1 CALLS-2 CALLS-3 each call once with its attempts, its tokens and its cost; the sums are exact", async () => {
    const conversation = await createConversation(priced);
    const counted = (prompt_tokens: number, completion_tokens: number) => ({
      usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    });
    const { turnId } = await conversation.play({
      replies: [
        {
          attempts: [
            [{ text: "Half " }, counted(100, 10), { cut: true }],
            [...say("Whole."), counted(100, 20)],
          ],
        },
      ],
    });
    const turn = await conversation.ended(turnId);
    expect(turn.calls).toEqual([
      expect.objectContaining({
        id: expect.stringMatching(/^call_/),
        conversationId: conversation.id,
        turnId,
        operation: "chat",
        usage: { inputTokens: 200, outputTokens: 30, totalTokens: 230 },
        cost: 0.048,
        outcome: expect.objectContaining({ ok: true, attempts: 2 }),
        responseMetadata: { firstTextAt: expect.stringMatching(/Z$/) },
      }),
    ]);
    expect(turn).not.toHaveProperty("calls.0.parentCorrelationId");
    expect(turn).toMatchObject({ usage: { inputTokens: 200, outputTokens: 30 }, cost: 0.048 });
    const failed = await conversation.play({ replies: [{ status: 401, message: "No." }] });
    expect(await conversation.ended(failed.turnId)).toMatchObject({
      usage: null,
      cost: null,
      calls: [{ outcome: { ok: false, attempts: 1, errorCategory: "auth", status: 401 } }],
    });
    const again = await conversation.play({ replies: [[...say("Once more."), counted(7, 1)]] });
    expect(await conversation.ended(again.turnId)).toMatchObject({ cost: 0.00165 });
    const totals = { calls: 3, inputTokens: 207, cachedInputTokens: 0, outputTokens: 31, cost: 0.04965 };
    expect((await conversation.view()).usage).toEqual(totals);
    await conversation.evict();
    expect((await conversation.view()).usage, "as stored").toEqual(totals);
  });

  test("A29 a turn has one user message and one agent message; a failed turn has no agent message", async () => {
    const conversation = await createConversation(handy);
    const answered = await conversation.play({ replies: [say("Yes.")] });
    await conversation.ended(answered.turnId);
    const failed = await conversation.play({ replies: [{ status: 400, message: "No." }] });
    expect(await conversation.ended(failed.turnId)).toMatchObject({ status: "failed", agentMessageIds: [] });
    const messages = await conversation.messages();
    expect(messages.map(({ turnId, role }) => [turnId, role])).toEqual([
      [answered.turnId, "user"],
      [answered.turnId, "agent"],
      [failed.turnId, "user"],
    ]);
  });
});

test("FALLBACK-1 FALLBACK-2 if a model fails, the fallbacks of its profile answer; each turn starts with the first model", async () => {
  const conversation = await createConversation(await createAgent("test/backed"));
  const client = await conversation.connect();
  for (const text of ["Here I am.", "Again."]) {
    const { play, turnId } = await conversation.play({
      replies: [{ attempts: [{ status: 401, message: "No." }, say(text)] }],
    });
    expect(await conversation.ended(turnId)).toMatchObject({
      status: "completed",
      calls: [
        { model: "failing", outcome: { errorCategory: "auth", attempts: 1 } },
        { model: "scripted", outcome: { ok: true, attempts: 1 } },
      ],
    });
    expect((await play.requests(2)).map(({ body }) => body.model)).toEqual(["failing", "scripted"]);
    expect((await conversation.messages()).at(-1)?.content).toBe(text);
  }
  expect(client.framesOf("error").map(({ data }) => data.code)).toEqual(["MODEL_FAILED", "MODEL_FAILED"]);
});

describe("a turn that is run by one call", () => {
  const ada = { subject: "ada", tenant: "test", roles: ["admin"] } satisfies Principal;
  // SAFETY: the class behind the binding implements this.
  const actorOf = ({ stub }: TestConversation) => stub as unknown as ConversationApi;

  test("RUNTURN-1 the call answers the turn when it is over, as `turn` does", async () => {
    const conversation = await createConversation(handy);
    const play = new Play((key) => ({
      replies: [[{ call: "save", input: { key, gate: "hold" } }], say("Done.")],
    }));
    const running = actorOf(conversation).runTurn(ada, { content: play.content });
    await play.reached("hold");
    await play.open("hold");
    const turn = unwrap(await running);
    expect(turn).toMatchObject({ status: "completed", answer: "Done.", moves: [{}, { reasoning: "Done." }] });
    expect(turn).toEqual(await conversation.turn(turn.id));
  });

  test("RUNTURN-1 a turn that fails is an answer too, and a message that is refused is an error", async () => {
    const conversation = await createConversation(handy);
    const play = new Play({ replies: [{ status: 401, message: "Wrong key." }] });
    const failed = await actorOf(conversation).runTurn(ada, { content: play.content });
    expect(unwrap(failed)).toMatchObject({ status: "failed", answer: null, error: { code: "MODEL_FAILED" } });
    const refused = await actorOf(conversation).runTurn(ada, { content: " " });
    expect(refused).toMatchObject({ ok: false, error: { code: "INVALID_INPUT" } });
    const stranger = { ...ada, tenant: "other" };
    expect(await actorOf(conversation).runTurn(stranger, { content: "Hello" })).toMatchObject({
      ok: false,
      error: { code: "NOT_FOUND" },
    });
  });

  test.each([undefined, null, "ada", {}, { tenant: "test" }, { ...ada, roles: "admin" }, [ada]])(
    "ACCESS-1 the principal %j is refused with INVALID_INPUT, and leaves no trace in the log",
    async (principal) => {
      const log = vi.spyOn(console, "error").mockReturnValue();
      onTestFinished(() => log.mockRestore());
      const actor = actorOf(await createConversation(handy));
      // SAFETY: types end at the RPC boundary.
      const given = principal as unknown as Principal;
      const refused = {
        ok: false,
        error: { code: "INVALID_INPUT", message: expect.stringContaining("roles") },
      };
      expect(await actor.runTurn(given, { content: "Hello" })).toMatchObject(refused);
      expect(await actor.turns(given)).toMatchObject(refused);
      expect(log).not.toHaveBeenCalled();
    },
  );

  test("REPORT-4 a result by RPC is JSON: values that RPC copies and JSON has not are refused", async () => {
    const actor = actorOf(await createConversation(handy)) as unknown as TaskResultApi;
    const codeOf = async (result: unknown) => {
      const report = {
        operationId: "op_1",
        attempt: 1,
        result: { tool_call_id: "t", success: true, result },
      };
      // SAFETY: types end at the RPC boundary.
      const answer = await actor.handleTaskResult(report as TaskResult);
      return answer.ok ? null : answer.error.code;
    };
    let deepest: Json = {};
    for (let level = 1; level < MAX_OUTPUT_DEPTH; level++) deepest = [deepest];
    for (const json of [null, JSON.parse('{"__proto__": {"a": [1]}}'), deepest]) {
      expect(await codeOf(json), "valid, but of no operation").toBe("NOT_FOUND");
    }
    for (const other of [() => 1, new Map(), new Date(0), 1n, undefined, new Uint8Array(1), [deepest]]) {
      expect(await codeOf(other)).toBe("INVALID_INPUT");
      expect(await codeOf({ a: [other] })).toBe("INVALID_INPUT");
    }
  });

  test("RUNTURN-2 the same key runs one turn, waits for it while it is active, and answers it at once when it is over", async () => {
    const conversation = await createConversation(handy);
    const play = new Play({ replies: [[{ gate: "hold" }, { text: "Once." }]] });
    const input = { content: play.content, idempotencyKey: "same" };
    const both = Promise.all([
      actorOf(conversation).runTurn(ada, input),
      actorOf(conversation).runTurn(ada, input),
    ]);
    await play.reached("hold");
    await play.open("hold");
    const [first, second] = (await both).map(unwrap);
    expect(second).toEqual(first);
    expect(unwrap(await actorOf(conversation).runTurn(ada, input))).toEqual(first);
    expect(await play.requests()).toHaveLength(1);
    expect(await actorOf(conversation).runTurn(ada, { ...input, content: "Else" })).toMatchObject({
      ok: false,
      error: { code: "IDEMPOTENCY_CONFLICT" },
    });
  });

  test("RUNTURN-3 after 15 minutes the call is UNAVAILABLE and names the turn, which continues", async () => {
    const clock = new VirtualClock();
    const ends = new TurnEnds(clock);
    const waiting = ends.next("turn_1").catch((error: unknown) => error);
    await clock.advance(15 * 60_000 - 1);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(await waiting).toMatchObject({
      code: "UNAVAILABLE",
      retriable: true,
      message: expect.stringContaining("turn_1"),
    });
    expect(clock.pending).toBe(0);
  });
});

describe("G11 data as an answer", () => {
  const output = {
    name: "sum",
    schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  };

  test("G11 OUTPUT-1 OUTPUT-3 a fitting answer is parsed: in the frame, the turn, and for later clients", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const { turnId } = await conversation.play(
      { replies: [[{ call: "double", input: { n: 21 } }], say('{"n": 42}')] },
      { output },
    );
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", output: { n: 42 } });
    expect((await client.frame("turn.completed")).data).toMatchObject({ output: { n: 42 } });
    expect((await conversation.messages()).at(-1)?.content).toBe('{"n": 42}');
    const later = await conversation.connect();
    const [shown] = (await later.frame("snapshot")).data.turns;
    expect(shown?.output).toEqual({ n: 42 });
    expect(later.state.turns[0]).toMatchObject({ output: { n: 42 } });
  });

  test("G11 OUTPUT-2 an invalid answer is withdrawn, and the model gets the reason and keeps its tools", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play(
      {
        replies: [
          say("Forty-two."),
          [{ call: "double", input: { n: 21 } }],
          say('{"n": "42"}'),
          say('{"n": 42}'),
        ],
      },
      { output },
    );
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", output: { n: 42 } });
    const requests = await play.requests(4);
    expect(requests.map(({ body }) => movesIn(body).map(({ role }) => role))).toEqual([
      [],
      ["assistant", "system"],
      ["assistant", "system", "assistant", "tool"],
      ["assistant", "system", "assistant", "tool", "assistant", "system"],
    ]);
    expect(movesIn(requests[3]?.body ?? { model: "", messages: [] }).at(-1)?.content).toContain("/n: ");
    const resets = client.framesOf("message.reset").map(({ data }) => data);
    expect(resets).toEqual([{ reason: "invalid_output" }, { reason: "invalid_output" }]);
    expect((await conversation.messages()).map(({ content }) => content).slice(1)).toEqual(['{"n": 42}']);
  });

  test("G11 OUTPUT-2 after three invalid answers, the turn fails with the reason", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play({ replies: [say('{"n": 1.5}')] }, { output });
    expect(await conversation.ended(turnId)).toMatchObject({
      status: "failed",
      error: {
        code: "OUTPUT_INVALID",
        retriable: true,
        message: expect.stringContaining("after 3 tries: /n: "),
      },
      agentMessageIds: [],
    });
    expect(await play.requests()).toHaveLength(3);
  });

  test("G11 OUTPUT-4 over a socket too: an invalid schema is refused, and a key holds for one schema", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const play = new Play({ replies: [say('{"n": 1}')] });
    const start = { type: "turn.start" as const, id: "structured", content: play.content };
    client.send({ ...start, output: { name: "x", schema: { type: "object", required: "n" } } });
    expect((await client.frame("error")).data).toMatchObject({ code: "INVALID_INPUT", ref: "structured" });
    client.send({ ...start, output });
    expect((await client.frame("turn.completed")).data).toMatchObject({ output: { n: 1 } });
    const body = { content: play.content, idempotencyKey: "structured" };
    expect(await conversation.refused(body)).toEqual({ status: 409, code: "IDEMPOTENCY_CONFLICT" });
    expect(await conversation.say(play.content, { idempotencyKey: "structured", output })).toMatchObject({
      turnId: client.state.turns[0]?.id,
    });
    for (const schema of [{}, { type: "array" }, { type: "object", properties: { a: { pattern: "(" } } }]) {
      expect(await conversation.refused({ content: "x", output: { schema } })).toMatchObject({ status: 422 });
    }
  });
});

describe("the core", () => {
  afterEach(() => vi.restoreAllMocks());

  test("A71 planning uses no clock, randomness or network, does not change its input, and is repeatable", async () => {
    const chain = await resolveChain(
      new Registry(new DeployedCode([testLibrary])),
      "test/handy",
      OFFLINE_PROFILE,
    );
    const no = (what: string) => () => {
      throw new Error(`Planning used ${what}.`);
    };
    vi.spyOn(Date, "now").mockImplementation(no("the clock"));
    vi.spyOn(Math, "random").mockImplementation(no("chance"));
    vi.spyOn(crypto, "randomUUID").mockImplementation(no("chance"));
    vi.spyOn(globalThis, "fetch").mockImplementation(no("the network"));
    const input = { now: 5_000, stem: "01ARZ3NDEKTSV4RRFFQ", gate: allowAll };
    const participants = [{ type: "user" as const, id: "ada" }];
    const where = { id: "conv_a71", tenant: "test", projectId: "default" };
    const agents: ConversationIdentity["agents"] = [{ id: "handy", chain }];
    const record = { ...where, title: null, participants, agents, createdAt: 1 };
    const start: ConversationState = {
      ...NEW_STATE,
      record,
      seq: 1,
      active: new Map(),
      stored: new Map(),
    };
    const reply = { text: "Now. ", finishReason: "tool_calls" as const };
    const call = (name: string, id: string) => ({ id, name, arguments: { key: "k" } });
    const error = {
      category: "transient" as const,
      message: "Busy.",
      retriable: true,
      provider: "openai" as const,
    };
    const result = { tool_call_id: "a", success: true, result: 1 };
    const facts = { startedAt: 2, finishedAt: 3 };
    const late = { ...result, tool_call_id: "b" };
    const signals: Signal[] = [
      { type: "conversation.user.message", caller: { type: "user", userId: "ada" }, data: { content: "Go" } },
      { type: "conversation.llm.failed", turn: 1, item: 1, attempt: 1, error, facts, streamed: true },
      { type: "conversation.cmd.recover" },
      {
        type: "conversation.llm.completed",
        turn: 1,
        item: 1,
        attempt: 2,
        facts,
        reply: { ...reply, toolCalls: [call("save", "a"), call("charge", "b"), call("teleport", "c")] },
      },
      { type: "conversation.tool.completed", turn: 1, item: 2, attempt: 1, result },
      { type: "conversation.cmd.recover" },
      { type: "conversation.tool.completed", turn: 1, item: 3, attempt: 1, result: late },
      {
        type: "conversation.llm.completed",
        turn: 1,
        item: 5,
        attempt: 1,
        facts,
        reply: { text: "Done.", finishReason: "stop", toolCalls: [] },
      },
    ];
    const decided: string[][] = [];
    signals.reduce((before, signal) => {
      const state = deepFreeze(before);
      const decisions = plan(state, deepFreeze(signal), input);
      expect(plan(state, signal, input)).toEqual(decisions);
      decided.push(decisions.map(({ type }) => type));
      return reduce(beginTransition(state), decisions, input.now).state;
    }, start);
    expect(decided).toEqual([
      ["START_TURN", "BEGIN_TURN"],
      ["RECORD_ATTEMPT", "RETRY_LLM"],
      // A crash in the pause before an attempt interrupts no work.
      [],
      ["RECORD_ATTEMPT", "RECORD_MOVE", "DISPATCH_TASK", "DISPATCH_TASK", "DISPATCH_TASK"],
      ["RESUME_FROM_TOOL"],
      ["RESUME_TURN", "INTERRUPT_TASK"],
      ["RESUME_FROM_TOOL", "CALL_LLM"],
      ["RECORD_ATTEMPT", "APPEND_MESSAGE", "COMPLETE_TURN"],
    ]);
  });
});

/** The value, frozen at any depth. */
function deepFreeze<Value>(value: Value): Value {
  const members = value instanceof Map ? [...value.values()] : Object.values(Object(value));
  for (const member of members)
    if (typeof member === "object" && !Object.isFrozen(member)) deepFreeze(member);
  return Object.freeze(value);
}
