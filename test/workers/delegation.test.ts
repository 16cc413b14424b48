/**
 * Agents that call agents, on the real Worker: each call opens a separate conversation, and only its caller gets the
 * answer.
 */
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import { isAnswering, pendingApprovals } from "../../src/client/state.ts";
import type { AgentResultApi } from "../../src/protocol/agent-call.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import { calledConversationId } from "../../src/protocol/ids.ts";
import type { MailboxPeer } from "../../src/protocol/mailbox-api.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { StepScript } from "../support/provider-script.ts";
import { Play } from "./provider.ts";
import {
  ADA,
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  TestConversation,
} from "./world.ts";

let helper: string;
let manager: string;
/** Its tool needs an approval. */
let careful: string;
/** Asks the careful agent. */
let chief: string;

const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });

/** Posts a tool that an agent answers; returns its reference. */
async function askTool(id: string, agent: string, more: object = {}): Promise<string> {
  const body = { id, name: id, description: "Asks an agent.", target: { agent }, ...more };
  const response = await request("/api/libraries/crew/tools", { method: "POST", body: JSON.stringify(body) });
  expect(response.status, await response.clone().text()).toBe(201);
  return `crew/${id}`;
}

beforeAll(async () => {
  helper = await createAgent({ identity: identity("You are the helper.") });
  const stranger = {
    id: "stranger",
    persona: { identity: identity("You are far away.") },
    projectIds: ["other"],
  };
  const made = await request("/api/agents", { method: "POST", body: JSON.stringify(stranger) });
  expect(made.status).toBe(201);
  const tools = [
    await askTool("ask_helper", helper),
    await askTool("ask_later", helper, { async: true }),
    await askTool("ask_nobody", "nobody-there"),
    await askTool("ask_stranger", "stranger"),
    await askTool("ask_briefly", helper, { timeoutMs: 2_000 }),
  ];
  const lead = await createAgent({
    identity: identity("You are the lead."),
    tools: { toolIds: tools.slice(0, 1), constraints: { maxMovesPerTurn: 2 } },
  });
  tools.push(await askTool("ask_lead", lead));
  careful = await createAgent("test/careful");
  chief = await createAgent({
    identity: identity("You are the chief."),
    tools: { toolIds: [await askTool("ask_careful", careful, { timeoutMs: 20_000 })] },
  });
  tools.push(await askTool("ask_chief", chief, { timeoutMs: 20_000 }));
  manager = await createAgent({
    identity: identity("You are the manager. Top secret: the vault is 4711."),
    tools: { toolIds: tools },
  });
});

afterEach(checkInvariants);

/** The conversation that a turn's call has opened. */
async function opened(conversation: TestConversation, turnId: string, index = 0): Promise<TestConversation> {
  const { moves } = await conversation.turn(turnId);
  const calls = moves.flatMap(({ toolCall }) => toolCall?.agent ?? []);
  return new TestConversation(calls[index]?.conversationId ?? "");
}

/** The results that the model of a request got. */
function resultsIn(
  play: { body: { messages: { role: string; content: string | null }[] } } | undefined,
): string[] {
  return play?.body.messages.flatMap(({ role, content }) => (role === "tool" ? [content ?? ""] : [])) ?? [];
}

describe("delegate", () => {
  test("07 A6 A47 A61 DELEGATE-1 the agent sees its message only, and its caller alone gets the answer", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ text: "Forty-two." }]] });
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }], [{ text: "It says 42." }]],
    });
    const turn = await conversation.ended(turnId);
    expect(turn).toMatchObject({ status: "completed", answer: "It says 42." });
    const [, second] = await play.requests();
    expect(resultsIn(second)).toEqual([JSON.stringify("Forty-two.")]);

    const [asked, ...others] = await child.requests();
    expect(others).toEqual([]);
    expect(asked?.body.messages).toEqual([
      { role: "system", content: "You are the helper." },
      { role: "user", content: child.content },
    ]);
    expect(asked?.body.tools?.map(({ function: { name } }) => name)).toEqual(["decline"]);
    expect(JSON.stringify(asked?.body)).not.toContain("4711");

    const room = await opened(conversation, turnId);
    expect(await room.view()).toMatchObject({
      status: "completed",
      agentId: helper,
      participants: [{ type: "agent", id: helper }],
    });
    expect((await conversation.view()).participants).not.toContainEqual({ type: "agent", id: helper });
    const [first] = (await room.journal()).flatMap(({ turnId: id }) => id ?? []);
    expect(await room.turn(first ?? "")).toMatchObject({
      caller: { type: "agent", agentId: manager, turnId },
      answer: "Forty-two.",
      correlationId: turn.correlationId,
    });
    const types = (await conversation.journal()).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith("agent_call."))).toEqual([
      "agent_call.started",
      "agent_call.completed",
    ]);
    expect(turn.spent.modelCalls, "LEDGER-4: of the whole tree").toBe(3);
  });

  test("LARGE-4 DELEGATE-10 an answer longer than an envelope allows is stored completely, and the manager gets a view", async () => {
    const conversation = await createConversation(manager);
    const text = "Zoë 🦊 ";
    const child = new Play({ replies: [[{ text, times: 50_000 }]] });
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }], [{ text: "It says much." }]],
    });
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "It says much." });
    const [, second] = await play.requests();
    const { stored_result: stored, tail } = JSON.parse(resultsIn(second)[0] ?? "");
    expect(tail.endsWith(`${text}"`)).toBe(true);
    const whole = await request(`${conversation.path}/attachments/${stored.id}`);
    expect(await whole.json()).toBe(text.repeat(50_000));
    expect(second?.body.tools?.map(({ function: { name } }) => name)).toContain("read_tool_result");
  });

  test("A48 DELEGATE-5 an agent declines with a reason, and the manager continues", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ call: "decline", input: { reason: "That is not my work." } }]] });
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }], [{ text: "It declined." }]],
    });
    expect((await conversation.ended(turnId)).answer).toBe("It declined.");
    const [, second] = await play.requests();
    expect(JSON.parse(resultsIn(second)[0] ?? "")).toEqual({
      code: "AGENT_DECLINED",
      message: "That is not my work.",
      retriable: false,
    });
  });

  test("A48 DELEGATE-4 a model that fails, and an answer without text, are EXECUTION_FAILED and retriable", async () => {
    const conversation = await createConversation(manager);
    const broken = new Play({ replies: [{ status: 400, message: "No." }] });
    const silent = new Play({ replies: [[{ text: "  " }]] });
    const { play, turnId } = await conversation.play({
      replies: [
        [broken, silent].map(({ content }) => ({ call: "ask_helper", input: { message: content } })),
        [{ text: "Both failed." }],
      ],
    });
    expect((await conversation.ended(turnId)).answer).toBe("Both failed.");
    const [, second] = await play.requests();
    expect(resultsIn(second).map((text) => JSON.parse(text))).toEqual([
      { code: "EXECUTION_FAILED", message: expect.stringContaining("model"), retriable: true },
      { code: "EXECUTION_FAILED", message: "The agent ended without an answer.", retriable: true },
    ]);
  });

  test("DELEGATE-10 an answer, a partial text and a reason of control characters arrive: the answer as a view, the others cut", async () => {
    const conversation = await createConversation(manager);
    const long = { text: "\u0001", times: 131_072 };
    const answers = new Play({ replies: [[long]] });
    const breaks = new Play({
      replies: [
        [
          { text: "\u0002", times: 131_072 },
          { call: "decline", input: {} },
        ],
      ],
    });
    const declines = new Play({
      replies: [[{ call: "decline", input: { reason: "\u0003".repeat(15_000) } }]],
    });
    const { play, turnId } = await conversation.play({
      replies: [
        [answers, breaks, declines].map(({ content }) => ({
          call: "ask_helper",
          input: { message: content },
        })),
        [{ text: "All ended." }],
      ],
    });
    expect((await conversation.ended(turnId)).answer).toBe("All ended.");
    const [, second] = await play.requests();
    const [answer = "", broken = "", declined = ""] = resultsIn(second);
    expect(JSON.parse(answer)).toMatchObject({ stored_result: { id: expect.stringMatching(/^att_/) } });
    expect(broken).toContain("AGENT_DECLINED");
    expect(declined).toContain("AGENT_DECLINED");
  });

  test("OPENING-1 A28 an agent that does not exist is NOT_FOUND, and no call waits", async () => {
    const conversation = await createConversation(manager);
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_nobody", input: { message: "Hello?" } }], [{ text: "Nobody." }]],
    });
    expect((await conversation.ended(turnId)).answer).toBe("Nobody.");
    const [, second] = await play.requests();
    expect(JSON.parse(resultsIn(second)[0] ?? "")).toMatchObject({ code: "NOT_FOUND", retriable: false });
  });

  test("A17 A18 in the background: the manager answers at once, and again with the result", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ gate: "work" }, { text: "Done." }]] });
    const { turnId } = await conversation.play({
      replies: [
        [{ call: "ask_later", input: { message: child.content } }],
        [{ text: "I asked." }],
        [{ text: "It is done." }],
      ],
    });
    await child.reached("work");
    const other = await conversation.play({ replies: [[{ text: "Still here." }]] });
    expect((await conversation.ended(other.turnId)).answer).toBe("Still here.");
    await child.open("work");
    expect((await conversation.ended(turnId)).answer).toBe("It is done.");
  });

  test("WAIT-2 A47 a turn works while its agent does: a chat's stream continues to the answer, and a client counts it as answering", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ gate: "work" }, { text: "Done." }]] });
    const play = new Play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }], [{ text: "It is done." }]],
    });
    const message = { id: "m1", role: "user", parts: [{ type: "text", text: play.content }] };
    const chat = request(`${conversation.path}/chat`, {
      method: "POST",
      body: JSON.stringify({ id: conversation.id, messages: [message], trigger: "submit-message" }),
    });
    await child.reached("work");
    const client = await conversation.connect();
    await client.until((state) => state.turns.length === 1);
    expect(isAnswering(client.state)).toBe(true);
    await child.open("work");
    const stream = await (await chat).text();
    expect(stream).toContain("It is done.");
    expect((await conversation.journal()).map(({ type }) => type)).not.toContain("turn.waiting");
  });

  test("E14 DELEGATE-7 a stop ends the agent's work, with its provider's request", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ text: "I be" }, { gate: "work" }, { text: "gin." }]] });
    const { turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }]],
    });
    await child.reached("work");
    const [status] = await conversation.stop(turnId);
    expect(status).toBe(200);
    await child.closes(1);
    const room = await opened(conversation, turnId);
    const client = await room.connect();
    await client.until((state) => state.conversation?.status === "completed");
    const [first] = (await room.journal()).flatMap(({ turnId: id }) => id ?? []);
    expect(await room.turn(first ?? "")).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
  });

  test("DELEGATE-6 a call that takes too long is stopped, and its caller gets the text so far", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ text: "Half of it" }, { gate: "work" }]] });
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_briefly", input: { message: child.content } }], [{ text: "Too slow." }]],
    });
    await child.reached("work");
    expect((await conversation.ended(turnId)).answer).toBe("Too slow.");
    const [, second] = await play.requests();
    const error = JSON.parse(resultsIn(second)[0] ?? "");
    expect(error).toMatchObject({ code: "TIMEOUT" });
    expect(error.message).toContain("Half of it");
  });

  test("A72 a crash of all actors while the agent works: the same conversation continues, and its answer arrives once", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ gate: "work" }, { text: "Survived." }]] });
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }], [{ text: "It survived." }]],
    });
    await child.reached("work");
    const room = await opened(conversation, turnId);
    await crash();
    await child.open("work");
    await room.wake();
    expect((await conversation.ended(turnId)).answer).toBe("It survived.");
    expect((await play.requests()).length).toBe(2);
    expect((await opened(conversation, turnId)).id).toBe(room.id);
  });

  test("OPENING-3 A3 an agent that shares no project with the caller is PERMISSION_DENIED", async () => {
    const conversation = await createConversation(manager);
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_stranger", input: { message: "Hello?" } }], [{ text: "Not ours." }]],
    });
    expect((await conversation.ended(turnId)).answer).toBe("Not ours.");
    const [, second] = await play.requests();
    expect(JSON.parse(resultsIn(second)[0] ?? "")).toMatchObject({
      code: "PERMISSION_DENIED",
      retriable: false,
    });
  });

  test("ACCESS-2 only readers of the caller's conversation may read and stop the call's conversation; no user may speak there", async () => {
    const ben: Principal = { subject: "ben", tenant: "test", roles: ["member"] };
    const eve: Principal = { subject: "eve", tenant: "test", roles: ["member"] };
    const conversation = await createConversation(manager);
    const joined = JSON.stringify({ type: "user", id: "ben" });
    await request(`${conversation.path}/participants`, { method: "POST", body: joined });
    const child = new Play({ replies: [[{ gate: "work" }, { text: "Done." }]] });
    const { turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }], [{ text: "Fine." }]],
    });
    await child.reached("work");
    const room = await opened(conversation, turnId);
    const statusOf = async (principal: Principal, path = "", init = {}) =>
      (await request(room.path + path, init, principal)).status;
    expect([await statusOf(ben), await statusOf(eve)]).toEqual([200, 404]);
    const body = JSON.stringify({ content: "Me, too." });
    expect(await statusOf(ben, "/turns", { method: "POST", body })).toBe(403);
    expect(await room.gate("cancel", undefined, ben)).toMatchObject([200, { status: "completed" }]);
    expect((await conversation.ended(turnId)).answer).toBe("Fine.");
    expect((await conversation.turn(turnId)).moves[0]?.toolResult?.error?.code).toBe("CANCELLED");
  });

  test("ACCESS-2 an admin reads the conversation of a call and answers its approval, but may not speak there, change it or end it", async () => {
    const admin: Principal = { subject: "root", tenant: "test", roles: ["admin"] };
    const conversation = await createConversation(chief);
    const client = await conversation.connect();
    const child = new Play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "The true answer." }]],
    }));
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_careful", input: { message: child.content } }], [{ text: "Fine." }]],
    });
    const { of: ask } = (await client.frame("approval.requested")).data;
    const room = new TestConversation(ask?.conversationId ?? "");
    const forged = new Play({ replies: [[{ text: "Forged." }]] });
    const signal = { type: "conversation.user.message", data: { content: forged.content } };
    const message = { id: "m1", role: "user", parts: [{ type: "text", text: forged.content }] };
    const attempts: [method: string, path: string, body: object][] = [
      ["POST", "/turns", { content: forged.content }],
      ["POST", "/chat", { id: "c", trigger: "submit-message", messages: [message] }],
      ["PATCH", "", { budget: { tokens: 9_000_000 } }],
      ["PATCH", "", { budget: null }],
      ["PATCH", "", { turns: "queued" }],
      ["PATCH", "", { orchestration: false }],
      ["POST", "/participants", { type: "user", id: "eve" }],
      ["POST", "/participants", { type: "agent", id: helper }],
      ["DELETE", `/participants/agent/${careful}`, {}],
      ["POST", "/signals", signal],
      ["POST", "/complete", {}],
    ];
    for (const [method, path, body] of attempts) {
      const sent = method === "DELETE" ? {} : { body: JSON.stringify(body) };
      const response = await request(room.path + path, { method, ...sent }, admin);
      expect([method, path, response.status, await response.json()]).toEqual([
        method,
        path,
        403,
        expect.objectContaining({ code: "FORBIDDEN", detail: expect.stringContaining(`"${chief}"`) }),
      ]);
    }
    expect((await request(room.path, {}, admin)).status).toBe(200);
    const approval = `${room.path}/operations/${ask?.operationId}/approval`;
    const answered = await request(approval, { method: "POST", body: '{"approved": true}' }, admin);
    expect(answered.status).toBe(200);
    expect((await conversation.ended(turnId)).answer).toBe("Fine.");
    const [, second] = await play.requests();
    expect(resultsIn(second)).toEqual([JSON.stringify("The true answer.")]);
    expect(await forged.requests()).toEqual([]);
  });

  test("AGENTCALL-2 a result of another conversation is refused, and so is a stop by a conversation other than the caller", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ gate: "work" }, { text: "The true one." }]] });
    const { turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }], [{ text: "Fine." }]],
    });
    await child.reached("work");
    const room = await opened(conversation, turnId);
    const { moves } = await conversation.turn(turnId);
    const operationId = moves[0]?.toolCall?.operationId ?? "";
    const other = await createConversation(manager);
    const forged = (to: string, type: string, body: object) =>
      deliver({ from: other.id, to, type, body: { operationId, attempt: 1, ...body } });
    const spent = { tokens: 0, nanoDollars: 0, toolCalls: 0, modelCalls: 0 };
    expect(
      await forged(conversation.id, "agent.result", { outcome: { text: "Forged." }, spent }),
    ).toMatchObject({
      type: "refused",
      error: { code: "FORBIDDEN" },
    });
    const ask = {
      operationId,
      conversationId: other.id,
      agentId: manager,
      name: "pay",
      expiresAt: Date.now(),
    };
    expect(await forged(conversation.id, "agent.ask", { ask })).toMatchObject({
      type: "refused",
      error: { code: "FORBIDDEN" },
    });
    expect(await forged(room.id, "agent.cancel", {})).toMatchObject({
      type: "refused",
      error: { code: "FORBIDDEN" },
    });
    await child.open("work");
    await conversation.ended(turnId);
    expect((await conversation.turn(turnId)).moves[0]?.toolResult).toEqual({
      success: true,
      result: "The true one.",
    });
  });

  test("OP-6 the late answer of a stopped call is a note in the next request, once", async () => {
    const conversation = await createConversation(manager);
    const client = await conversation.connect();
    const child = new Play({ replies: [[{ gate: "work" }, { text: "Never." }]] });
    const { turnId } = await conversation.play({
      replies: [[{ call: "ask_helper", input: { message: child.content } }]],
    });
    await child.reached("work");
    const room = await opened(conversation, turnId);
    const operationId = (await conversation.turn(turnId)).moves[0]?.toolCall?.operationId ?? "";
    await conversation.stop(turnId);
    await client.until((state) => state.turns.some((turn) => turn.id === turnId && turn.status === "failed"));
    const spent = { tokens: 3, nanoDollars: 0, toolCalls: 0, modelCalls: 1 };
    const late = { operationId, attempt: 1, outcome: { text: "The letter is sent." }, spent };
    const id = newOperationId();
    for (const _ of ["first", "again"])
      expect(
        await deliver({
          operationId: id,
          from: room.id,
          to: conversation.id,
          type: "agent.result",
          body: late,
        }),
      ).toMatchObject({ type: "done" });
    const again = await conversation.play({ replies: [[{ text: "I see." }]] });
    await conversation.ended(again.turnId);
    const [request] = await again.play.requests();
    const notes = request?.body.messages.filter(({ content }) => content?.includes("The letter is sent."));
    expect(notes).toEqual([{ role: "system", content: expect.stringContaining("it took effect") }]);
  });

  test("OPENING-2 a stop that overtakes its call: the call never runs", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ text: "Never." }]] });
    const operationId = "op_01K0000000000000ABCDEFGHJK";
    const to = calledConversationId(operationId, 1);
    const address = { operationId, attempt: 1 };
    const call = {
      ...address,
      agentId: helper,
      caller: { agentId: manager, turnId: "turn_x" },
      content: child.content,
      projectIds: ["default"],
      path: [manager],
      readers: [],
      deadline: Date.now() + 60_000,
      correlationId: "c",
    };
    const from = conversation.id;
    expect(await deliver({ from, to, type: "agent.cancel", body: address })).toMatchObject({ type: "done" });
    expect(await deliver({ from, to, type: "agent.call", body: call })).toMatchObject({ type: "done" });
    expect((await request(`/api/conversations/${to}`)).status).toBe(404);
    expect(await child.requests()).toEqual([]);
  });
});

describe("a tree of calls", () => {
  /** A manager that calls the lead, which calls the helper. Each then sends its text. */
  function tree(leaf: StepScript[]) {
    const bottom = new Play({ replies: [leaf] });
    const middle = new Play({
      replies: [[{ call: "ask_helper", input: { message: bottom.content } }], [{ text: "Lead is done." }]],
    });
    const top = {
      replies: [[{ call: "ask_lead", input: { message: middle.content } }], [{ text: "All is done." }]],
    };
    return { bottom, middle, top };
  }

  test("M#14820 LGJ#2755 H4 a stop three levels above: all are aborted, no conversation stays open, and the root knows the whole usage", async () => {
    const conversation = await createConversation(manager);
    const { bottom, middle, top } = tree([{ text: "Be" }, { gate: "work" }, { text: "gin." }]);
    const { turnId } = await conversation.play(top);
    await bottom.reached("work");
    const lead = await opened(conversation, turnId);
    const leadTurn = await turnIn(lead);
    const helper = await opened(lead, leadTurn);
    await conversation.gate("cancel");
    await bottom.closes(1);
    for (const room of [lead, helper]) {
      const client = await room.connect();
      await client.until((state) => state.conversation?.status === "completed");
      expect(await room.turn(await turnIn(room))).toMatchObject({
        status: "failed",
        error: { code: "CANCELLED" },
      });
    }
    expect((await middle.requests()).length).toBe(1);
    await expect.poll(async () => (await conversation.view()).spent?.modelCalls, { timeout: 10_000 }).toBe(3);
    const journal = await conversation.journal();
    expect(journal.filter(({ type }) => type === "agent_call.failed")).toHaveLength(1);
  });

  test("PY#3995 langfuse#14754 LEDGER-4 the tokens of three agents equal the root's usage", async () => {
    const usage = (total: number) => ({
      usage: { prompt_tokens: total - 1, completion_tokens: 1, total_tokens: total },
    });
    const bottom = new Play({ replies: [[{ text: "Leaf." }, usage(7)]] });
    const middle = new Play({
      replies: [
        [{ call: "ask_helper", input: { message: bottom.content } }, usage(20)],
        [{ text: "Lead." }, usage(30)],
      ],
    });
    const conversation = await createConversation(manager);
    const { turnId } = await conversation.play({
      replies: [
        [{ call: "ask_lead", input: { message: middle.content } }, usage(100)],
        [{ text: "Top." }, usage(200)],
      ],
    });
    const turn = await conversation.ended(turnId);
    expect(turn.spent).toMatchObject({ tokens: 357, modelCalls: 5, toolCalls: 2 });
    expect(turn.usage).toMatchObject({ inputTokens: 298, outputTokens: 2 });
    expect(turn.moves[0]?.toolCall?.agent?.spent).toMatchObject({ tokens: 57, modelCalls: 3, toolCalls: 1 });
    expect((await conversation.view()).spent).toMatchObject({ tokens: 357, modelCalls: 5 });
  });

  test("OAP#719 DELEGATE-4 an agent that uses up its steps: the caller gets its partial text", async () => {
    const child = new Play({
      replies: [[{ text: "I found one half." }, { call: "no_such_tool", input: {} }]],
      final: [{ text: "" }],
    });
    const conversation = await createConversation(manager);
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_lead", input: { message: child.content } }], [{ text: "One half." }]],
    });
    expect((await conversation.ended(turnId)).answer).toBe("One half.");
    const [, second] = await play.requests();
    const error = JSON.parse(resultsIn(second)[0] ?? "");
    expect(error).toMatchObject({ code: "EXECUTION_FAILED", retriable: true });
    expect(error.message).toContain("used up its steps");
    expect(error.message).toContain("I found one half.");
  });

  test("A52 a manager asks two agents at the same time, and puts their answers together", async () => {
    const conversation = await createConversation(manager);
    const [one, other] = ["North.", "South."].map(
      (text) => new Play({ replies: [[{ gate: "both" }, { text }]] }),
    );
    const { play, turnId } = await conversation.play({
      replies: [
        [
          { call: "ask_helper", input: { message: one?.content } },
          { call: "ask_lead", input: { message: other?.content } },
        ],
        [{ text: "North and south." }],
      ],
    });
    await Promise.all([one?.reached("both"), other?.reached("both")]);
    await other?.open("both");
    await one?.open("both");
    expect((await conversation.ended(turnId)).answer).toBe("North and south.");
    const [, second] = await play.requests();
    expect(resultsIn(second)).toEqual(['"North."', '"South."']);
  });

  test("CF#1630 A72 a crash at each level in turn: each conversation continues, and no work is repeated", async () => {
    const conversation = await createConversation(manager);
    const { bottom, middle, top } = tree([{ gate: "work" }, { text: "Leaf." }]);
    const { turnId, play } = await conversation.play(top);
    await bottom.reached("work");
    const lead = await opened(conversation, turnId);
    const helper = await opened(lead, await turnIn(lead));
    await conversation.evict();
    await lead.evict();
    await crash();
    await bottom.open("work");
    await helper.wake();
    expect((await conversation.ended(turnId)).answer).toBe("All is done.");
    expect([(await play.requests()).length, (await middle.requests()).length]).toEqual([2, 2]);
    const ids = [lead.id, helper.id];
    const again = await opened(conversation, turnId);
    expect([again.id, (await opened(again, await turnIn(again))).id]).toEqual(ids);
  });

  test("A73 an answer and a failure by RPC count once, and only for the present attempt", async () => {
    const conversation = await createConversation(manager);
    const child = new Play({ replies: [[{ gate: "work" }, { text: "Late." }]] });
    const { turnId } = await conversation.play({
      replies: [
        [1, 2].map(() => ({ call: "ask_helper", input: { message: child.content } })),
        [{ text: "Enough." }],
      ],
    });
    await child.reached("work", 2);
    const [first = "", second = ""] = (await conversation.turn(turnId)).moves.map(
      ({ toolCall }) => toolCall?.operationId,
    );
    // SAFETY: the namespace's stub has the actor's methods, which its type does not name here.
    const actor = conversation.stub as unknown as AgentResultApi;
    expect(await actor.handleAgentResult({ operationId: first, attempt: 2, text: "No." })).toEqual({
      ok: true,
      value: null,
    });
    const answer = { operationId: first, attempt: 1, text: "By RPC." };
    for (let time = 0; time < 2; time++)
      expect(await actor.handleAgentResult(answer)).toMatchObject({ ok: true });
    const error = { code: "EXECUTION_FAILED", message: "Broken.", retriable: false } as const;
    expect(await actor.handleAgentError({ operationId: second, attempt: 1, error })).toMatchObject({
      ok: true,
    });
    expect(await actor.handleAgentResult({ ...answer, operationId: newOperationId() })).toMatchObject({
      error: { code: "NOT_FOUND" },
    });
    await conversation.ended(turnId);
    expect((await conversation.turn(turnId)).moves.flatMap(({ toolResult }) => toolResult ?? [])).toEqual([
      { success: true, result: "By RPC." },
      { success: false, error },
    ]);
    await child.open("work");
  });
});

describe("a call that needs a person, below", () => {
  /** Asks the chief. The chief asks the careful agent, and its tool needs an approval. */
  async function asking() {
    const conversation = await createConversation(manager);
    const client = await conversation.connect();
    const bottom = new Play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "Paid or not." }]],
    }));
    const middle = new Play({
      replies: [[{ call: "ask_careful", input: { message: bottom.content } }], [{ text: "Told." }]],
    });
    const { play, turnId } = await conversation.play({
      replies: [[{ call: "ask_chief", input: { message: middle.content } }], [{ text: "All told." }]],
    });
    const { data } = await client.frame("approval.requested");
    return { conversation, client, bottom, middle, play, turnId, ask: data.of };
  }

  const answer = async ({ path }: TestConversation, operationId = "", approved = true) => {
    const body = JSON.stringify({ approved });
    const response = await request(`${path}/operations/${operationId}/approval`, { method: "POST", body });
    return [response.status, await response.json()] as const;
  };

  test("OAJ#243 OAJ#680 M#23626 ASK-1 is shown at the root, also after a restart, runs once after its approval there, and all turns continue", async () => {
    const { conversation, client, bottom, turnId, ask } = await asking();
    expect(ask).toMatchObject({ name: "transfer", input: { to: "Bob" }, agentId: careful });
    expect(pendingApprovals(client.state)).toMatchObject([{ id: ask?.operationId, name: "transfer" }]);
    await client.until(({ conversation: view }) => view?.status === "waiting");
    expect(isAnswering(client.state), "WAIT-1 it waits for the person").toBe(false);
    await crash();
    const again = await conversation.connect();
    await again.until((state) => pendingApprovals(state).length === 1);
    expect(await bottom.runs()).toEqual([]);
    const given = await answer(conversation, ask?.operationId);
    expect(given).toMatchObject([200, { approval: { outcome: "approved", by: { userId: "ada" } } }]);
    expect((await conversation.ended(turnId)).answer).toBe("All told.");
    expect((await bottom.runs()).length).toBe(1);
    await again.until((state) => pendingApprovals(state).length === 0);
    // The same answer again is a no-op in either conversation. A different answer comes too late.
    for (const room of [conversation, new TestConversation(ask?.conversationId ?? "")]) {
      expect(await answer(room, ask?.operationId)).toMatchObject([
        200,
        { approval: { outcome: "approved" } },
      ]);
      expect(await answer(room, ask?.operationId, false)).toMatchObject([409, { code: "CONFLICT" }]);
    }
  });

  test("ASK-1 AGUI-5 of answers to two calls below, both count or none", async () => {
    const conversation = await createConversation(manager);
    const client = await conversation.connect();
    const bottoms = ["Bob", "Eve"].map(
      (to) =>
        new Play((key) => ({ replies: [[{ call: "transfer", input: { key, to } }], [{ text: "Told." }]] })),
    );
    const middle = new Play({
      replies: [
        bottoms.map(({ content }) => ({ call: "ask_careful", input: { message: content } })),
        [{ text: "Told." }],
      ],
    });
    await conversation.play({
      replies: [[{ call: "ask_chief", input: { message: middle.content } }], [{ text: "All told." }]],
    });
    await client.until((state) => pendingApprovals(state).length === 2);
    const [first = "", second = ""] = pendingApprovals(client.state).map(({ id }) => id);
    expect((await answer(conversation, second, false))[0]).toBe(200);
    const stub = conversation.stub as unknown as ConversationApi;
    const together = (...approved: [boolean, boolean]) =>
      stub.answerCalls(ADA, {
        approvals: [first, second].map((operationId, n) => ({ operationId, approved: approved[n] === true })),
      });
    expect(await together(true, true)).toMatchObject({ ok: false, error: { code: "CONFLICT" } });
    const repeated = [first, first].map((operationId) => ({ operationId, approved: true }));
    expect(await stub.answerCalls(ADA, { approvals: repeated })).toMatchObject({
      ok: false,
      error: { code: "INVALID_INPUT" },
    });
    for (const bottom of bottoms) expect(await bottom.runs()).toEqual([]);
    expect(await together(true, false)).toEqual({ ok: true, value: [first] });
  });

  test("OAJ#243 a denial in the conversation of the agent itself: the call never runs, and the top no longer asks", async () => {
    const { conversation, client, bottom, turnId, ask } = await asking();
    const room = new TestConversation(ask?.conversationId ?? "");
    expect(await answer(room, ask?.operationId, false)).toMatchObject([
      200,
      { approval: { outcome: "denied" } },
    ]);
    expect((await conversation.ended(turnId)).status).toBe("completed");
    await client.until((state) => pendingApprovals(state).length === 0);
    expect(await bottom.runs()).toEqual([]);
    const [, second] = await bottom.requests();
    expect(resultsIn(second)[0]).toContain("APPROVAL_DENIED");
  });

  test("DELEGATE-9 a user who leaves the conversation may not read or answer below; a user who joins may do both", async () => {
    const user = (subject: string): Principal => ({ subject, tenant: "test", roles: ["member"] });
    const { conversation, client, bottom, turnId, ask } = await asking();
    const participants = `${conversation.path}/participants`;
    const join = (id: string) =>
      request(participants, { method: "POST", body: JSON.stringify({ type: "user", id }) });
    for (const id of ["eve", "ben"]) expect((await join(id)).status).toBe(200);
    const room = new TestConversation(ask?.conversationId ?? "");
    const statusOf = async (id: string) => (await request(room.path, {}, user(id))).status;
    await expect.poll(async () => [await statusOf("eve"), await statusOf("ben")]).toEqual([200, 200]);
    const watching = await room.connect({ principal: user("eve") });
    expect((await request(`${participants}/user/eve`, { method: "DELETE" })).status).toBe(204);
    expect(await watching.whenClosed()).toEqual({ code: 4401 });
    await expect.poll(async () => [await statusOf("eve"), await statusOf("ben")]).toEqual([404, 200]);
    const approve = async (where: TestConversation, id: string) => {
      const path = `${where.path}/operations/${ask?.operationId}/approval`;
      return (await request(path, { method: "POST", body: '{"approved": true}' }, user(id))).status;
    };
    expect([await approve(room, "eve"), await approve(conversation, "eve")]).toEqual([404, 404]);
    expect(await bottom.runs()).toEqual([]);
    expect(await approve(conversation, "ben")).toBe(200);
    expect((await conversation.ended(turnId)).answer).toBe("All told.");
    await client.until((state) => pendingApprovals(state).length === 0);
    expect((await bottom.runs()).length).toBe(1);
  });

  test("ASK-1 a stop at the root ends the wait, and a late answer is refused", async () => {
    const { conversation, turnId, ask } = await asking();
    await conversation.stop(turnId);
    const room = new TestConversation(ask?.conversationId ?? "");
    const client = await room.connect();
    await client.until((state) => state.conversation?.status === "completed");
    expect((await answer(room, ask?.operationId))[0]).toBe(409);
    expect((await answer(conversation, ask?.operationId))[0]).toBe(409);
  });
});

/** The only turn of the conversation of a call. */
async function turnIn(conversation: TestConversation): Promise<string> {
  const [first = ""] = (await conversation.journal()).flatMap(({ turnId }) => turnId ?? []);
  return first;
}

/** Hands an envelope to a conversation's mailbox, as another conversation. */
async function deliver({
  operationId = newOperationId(),
  from,
  to,
  type,
  body,
}: {
  operationId?: string;
  from: string;
  to: string;
  type: string;
  body: object;
}) {
  const address = (id: string) => ({ kind: "conversation", tenant: "test", id });
  // SAFETY: the namespace's stub has the actor's methods, which its type does not name here.
  const stub = exports.Conversation.getByName(`test:${to}`) as unknown as MailboxPeer;
  const envelope = {
    operationId,
    from: address(from),
    to: address(to),
    type,
    body: body as never,
    sentAt: Date.now(),
  };
  return stub.receive(envelope, { number: 1, last: false });
}
