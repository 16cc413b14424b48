/** Agents that other agents bring into the conversation. */

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { MAX_ACTIVE_TURNS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { callRefusal } from "../../src/agents/conversation/core/planning/call-guards.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { operationTraceparent } from "../../src/agents/conversation/core/trace.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { recordOf } from "../support/records.ts";
import { type OpenRequest, SteeredConversation } from "../support/steered-model.ts";

const ask = (agent: string, more: object = {}) =>
  defineTool({
    name: `ask_${agent}`,
    description: "Brings it in.",
    target: { agent, mode: "loop_in" },
    ...more,
  });
const add = defineTool({
  name: "add",
  description: "Adds.",
  effect: "pure",
  input: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
});
const save = defineTool({
  name: "save",
  description: "Saves.",
  effect: "once",
  input: z.object({}),
  execute: async () => "saved",
});
const CREW = defineLibrary("crew", {
  tools: [
    ask("architect"),
    ask("cook", { async: true }),
    ask("tester"),
    ask("nobody"),
    defineTool({ name: "ask_lawyer", description: "Asks.", target: { agent: "lawyer" } }),
    defineTool({
      name: "ask_clerk",
      description: "Asks.",
      target: { agent: "architect", modes: ["delegate"] },
    }),
    add,
    save,
  ],
});

const isEnd = ({ type }: Frame) => type === "turn.completed" || type === "turn.failed";
const messagesIn = ({ messages }: OpenRequest) => messages.map(({ role, content }) => `${role} ${content}`);
const results = ({ messages }: OpenRequest) =>
  messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.parse(String(content)));
const systemOf = ({ messages }: OpenRequest) => messages[0]?.content;

async function crewed(beginning: Parameters<typeof SteeredConversation.create>[1] = {}) {
  const room = await SteeredConversation.create(CREW, beginning);
  for (const id of ["architect", "cook", "lawyer"]) room.crew.set(id, `You are ${id}.`);
  return room;
}

/** Takes the next requests, one of each agent, by their instructions. */
async function requests(room: SteeredConversation, count: number): Promise<Map<unknown, OpenRequest>> {
  const found = new Map<unknown, OpenRequest>();
  for (let n = 0; n < count; n++) {
    const request = await room.request();
    found.set(systemOf(request), request);
  }
  return found;
}

const answered = (room: SteeredConversation, count: number) =>
  room.until(() => room.frames.filter(isEnd).length >= count);

describe("a call in the mode loop_in", () => {
  test("A49 08 LOOPIN-1 the agent joins, sees the conversation, answers in its own persona, visible to all, and stays", async () => {
    const room = await crewed();
    const first = await room.say("We rewrite the login. Ideas?");
    const call = await room.request();
    call.call(["ask_architect", { message: "Which risks do you see?" }]);
    const next = await requests(room, 2);
    const [guide, architect] = [next.get("Test."), next.get("You are architect.")];
    const [asking, told] = [...room.runtime.state.active.values()];
    const { item = 0 } = asking?.operations[0] ?? {};
    expect(told?.traceparent).toBe(asking && operationTraceparent(asking, item));
    expect(guide && results(guide)).toEqual([{ joined: "architect" }]);
    expect(architect && messagesIn(architect)).toEqual([
      "system You are architect.",
      expect.stringContaining('You are the agent "architect". These agents take part, too: @tester.'),
      expect.stringContaining('The user said to the agent "tester": "We rewrite the login. Ideas?"'),
      'user agent "tester": Which risks do you see?',
    ]);
    architect?.answer("Sessions.");
    guide?.answer("The architect will tell.");
    await answered(room, 2);
    const { items } = room.queries.messages(room.runtime.state);
    expect(items.map(({ role, agentId, content }) => [role, agentId, content])).toEqual([
      ["user", undefined, "We rewrite the login. Ideas?"],
      ["agent", "tester", "Which risks do you see?"],
      ["agent", "architect", "Sessions."],
      ["agent", "tester", "The architect will tell."],
    ]);
    const [, joined] = room.queries.turns().items.map(({ id }) => room.turn(id));
    expect(joined).toMatchObject({
      agentId: "architect",
      caller: { type: "agent", agentId: "tester", turnId: first },
      answer: "Sessions.",
      userMessageId: items[1]?.id,
    });
    const frame = room.frames.find(({ messageId }) => messageId === items[1]?.id);
    expect(frame).toMatchObject({
      type: "message.user",
      data: { agentId: "tester", content: "Which risks do you see?" },
    });
    expect(room.frames.filter(({ type }) => type === "participant.joined")).toHaveLength(1);
    // It stays, and keeps its session, until it is removed.
    await room.say("@architect, and the rest?");
    const again = await room.request();
    expect(messagesIn(again)).toContain("assistant Sessions.");
    again.answer("Tokens.");
    await answered(room, 3);
    await room.leave({ type: "agent", id: "architect" });
    expect(room.runtime.state.record.participants).not.toContainEqual({ type: "agent", id: "architect" });
    expect((await room.restarted()).runtime.state).toEqual(room.runtime.state);
  });

  test("A50 LOOPIN-1 the model overrides the mode of the tool, and async is ignored", async () => {
    const room = await crewed();
    await room.say("Ask them.");
    const call = await room.request();
    const tools = call.body.tools as { function: { name: string; parameters: { properties: object } } }[];
    const lawyer = tools.find((tool) => tool.function.name === "ask_lawyer");
    expect(lawyer?.function.parameters.properties).toHaveProperty("invocationMode.enum", [
      "delegate",
      "loop_in",
    ]);
    call.call(
      ["ask_lawyer", { message: "May we?", invocationMode: "loop_in" }],
      ["ask_cook", { message: "Can you?" }],
    );
    const next = await requests(room, 3);
    const guide = next.get("Test.");
    expect(guide && results(guide)).toEqual([{ joined: "lawyer" }, { joined: "cook" }]);
    const lawyers = next.get("You are lawyer.");
    expect(lawyers && messagesIn(lawyers).at(-1)).toBe('user agent "tester": May we?');
    expect(room.runtime.state.record.agents.map(({ id }) => id)).toEqual(["tester", "lawyer", "cook"]);
  });

  test("AGENTTOOL-2 a model that invites a bound agent gets INVALID_INPUT, and no agent joins", async () => {
    const room = await crewed();
    await room.say("Bring the clerk in.");
    const call = await room.request();
    const tools = call.body.tools as { function: { name: string; parameters: { properties: object } } }[];
    const clerk = tools.find((tool) => tool.function.name === "ask_clerk");
    expect(Object.keys(clerk?.function.parameters.properties ?? {})).toEqual(["message"]);
    call.call(["ask_clerk", { message: "Join us.", invocationMode: "loop_in" }]);
    expect(results(await room.request())).toMatchObject([
      { code: "INVALID_INPUT", message: expect.stringContaining('Must be "delegate"') },
    ]);
    expect(room.runtime.state.record.agents.map(({ id }) => id)).toEqual(["tester"]);
  });

  test("two loop_in beside a calculator call: three results", async () => {
    const room = await crewed();
    await room.say("Ask them, and add.");
    const call = await room.request();
    call.call(
      ["ask_architect", { message: "One" }],
      ["add", { a: 1, b: 2 }],
      ["ask_cook", { message: "Two" }],
    );
    const next = await requests(room, 3);
    const guide = next.get("Test.");
    expect(guide && results(guide)).toEqual([{ joined: "architect" }, 3, { joined: "cook" }]);
    expect([...next.keys()].sort()).toEqual(["Test.", "You are architect.", "You are cook."]);
  });

  test('a looped-in agent asks for the city; "Berlin" reaches that agent', async () => {
    const room = await crewed();
    await room.say("Find me a flat.");
    (await room.request()).call(["ask_architect", { message: "Find a flat for them." }]);
    const next = await requests(room, 2);
    next.get("Test.")?.answer("I have asked the architect.");
    await answered(room, 1);
    next.get("You are architect.")?.answer("In which city?");
    await answered(room, 2);
    const id = await room.say("Berlin");
    expect(room.turn(id).agentId).toBe("architect");
    const request = await room.request();
    expect(messagesIn(request).at(-1)).toBe("user Berlin");
    expect(messagesIn(request)).toContain("assistant In which city?");
  });

  test("request of a looped-in agent: labelled text only, no foreign tool calls", async () => {
    const room = await crewed();
    await room.say("Add 1 and 2.");
    (await room.request()).call(["add", { a: 1, b: 2 }]);
    (await room.request()).answer("It is 3.");
    await answered(room, 1);
    await room.say("Ask the architect.");
    (await room.request()).call(["ask_architect", { message: "Is 3 right?" }]);
    const next = await requests(room, 2);
    const request = next.get("You are architect.");
    expect(
      request?.messages.some(({ role, tool_calls }) => role === "tool" || role === "assistant" || tool_calls),
    ).toBe(false);
    const text = request === undefined ? "" : messagesIn(request).join("\n");
    expect(text).toContain(
      '- The user to the agent "tester": "Add 1 and 2."\n- The agent "tester": "It is 3."',
    );
    expect(text).not.toContain("call_0");
  });

  test("A28 A3 LOOPIN-2 an unknown agent, one of other projects, itself, and one beyond the bound do not join", async () => {
    const room = await crewed();
    room.crew.set("cook", new DramatisError("FORBIDDEN", "It works elsewhere."));
    await room.say("Ask them.");
    (await room.request()).call(
      ["ask_nobody", { message: "Hello" }],
      ["ask_cook", { message: "Hello" }],
      ["ask_tester", { message: "Hello" }],
    );
    const request = await room.request();
    expect(results(request).map(({ code }) => code)).toEqual([
      "NOT_FOUND",
      "PERMISSION_DENIED",
      "PERMISSION_DENIED",
    ]);
    expect(room.runtime.state.record.agents).toHaveLength(1);
    // Seven invitations of one agent use up the bound.
    const calls = (count: number) =>
      Array.from({ length: count }, () => ["ask_architect", { message: "Hello" }] as [string, object]);
    // SAFETY: the inputs are plain objects.
    request.call(...(calls(8) as Parameters<OpenRequest["call"]>));
    let guide: OpenRequest | undefined;
    for (let n = 0; n < 8; n++) {
      const one = await room.request();
      if (systemOf(one) === "Test.") guide = one;
    }
    expect(guide && results(guide).filter(({ joined }) => joined === "architect")).toHaveLength(7);
    expect(guide && results(guide).at(-1)).toMatchObject({ code: "EXECUTION_FAILED" });
    expect(
      callRefusal(
        // SAFETY: only its presence is read.
        recordOf(undefined, { call: {} as never }),
        { agentId: "tester" },
        { toolCallId: "c", name: "ask_cook", agent: { id: "cook", mode: "loop_in" }, input: {} },
        [],
      )?.error?.code,
    ).toBe("PERMISSION_DENIED");
  });

  test("LOOPIN-3 it joins once and has one turn despite crashes and repeated versions", async () => {
    const first = await crewed();
    await first.say("Ask the architect.");
    const request = await first.request();
    // The actor dies while it asks the agent.
    const isAsked = first.holdCrew();
    request.call(["ask_architect", { message: "Hello" }]);
    await isAsked;
    const { item: asked = 0 } = first.runtime.state.active.get(1)?.operations[0] ?? {};
    const other = { code: "NOT_FOUND", message: "Of another attempt.", retriable: false } as const;
    const stale = {
      type: "conversation.agent.invited",
      turn: 1,
      item: asked,
      attempt: 2,
      outcome: { error: other },
    } as const;
    expect(plan(first.runtime.state, stale, { now: 0, stem: "", gate: allowAll })).toEqual([]);
    const room = await first.restarted();
    void (await requests(room, 2));
    const { state } = room.runtime;
    expect(room.asked).toEqual(["architect"]);
    expect(state.record.agents.map(({ id }) => id)).toEqual(["tester", "architect"]);
    expect(state.active.size).toBe(2);
    const [turn] = state.active.values();
    const [operation] = turn?.operations ?? [];
    const again = {
      type: "conversation.agent.invited",
      turn: 1,
      item: operation?.item ?? 0,
      attempt: 1,
      outcome: {},
    } as const;
    expect(plan(state, again, { now: 0, stem: "", gate: allowAll })).toEqual([]);
    expect((await room.restarted()).runtime.state.active.size).toBe(2);
  });

  test("LOOPIN-3 TOOLRETRY-1 an unreachable agent is called again if the tool declares it", async () => {
    const again = defineLibrary("crew", {
      tools: [ask("architect", { effect: "idempotent", retry: { maxAttempts: 2, backoffMs: 0 } })],
    });
    const room = await SteeredConversation.create(again);
    room.crew.get = () =>
      room.asked.length === 1
        ? new DramatisError("UNAVAILABLE", "It is away.", { retriable: true })
        : "You are architect.";
    await room.say("Ask the architect.");
    (await room.request()).call(["ask_architect", { message: "Hello" }]);
    const guide = (await requests(room, 2)).get("Test.");
    expect(guide && results(guide)).toEqual([{ joined: "architect" }]);
    expect(room.asked).toEqual(["architect", "architect"]);
  });

  test("LOOPIN-2 no agent joins if too many turns are active for a new turn", async () => {
    const room = await crewed();
    for (let n = 1; n <= MAX_ACTIVE_TURNS; n++) await room.say("Ask the architect.");
    for (let n = 1; n < MAX_ACTIVE_TURNS; n++) void (await room.request());
    (await room.request()).call(["ask_architect", { message: "Hello" }]);
    await room.until(({ type }) => type === "tool.failed");
    const [operation] = room.runtime.state.active.get(MAX_ACTIVE_TURNS)?.operations ?? [];
    expect(operation?.result?.error?.message).toContain("Too many turns are active");
    expect(room.runtime.state.record.agents).toHaveLength(1);
    expect(room.runtime.state.record.participants).toHaveLength(1);
  });

  test("LOOPIN-4 the started turn gets half of the remaining budget, and the caller keeps the rest", async () => {
    const room = await crewed();
    const id = await room.say("Ask the architect.", { budget: { modelCalls: 6, toolCalls: 2 } });
    (await room.request()).call(["ask_architect", { message: "Hello" }]);
    void (await requests(room, 2));
    const [, joined] = [...room.runtime.state.active.values()];
    expect(joined?.budget).toEqual({ modelCalls: 2, toolCalls: 0 });
    // The reservation estimates its own request, not the largest request.
    expect(joined?.call?.reserved?.inputTokens).toBeLessThan(1_000);
    expect(room.turn(id).budget).toEqual({ modelCalls: 4, toolCalls: 2 });
  });

  test("LOOPIN-1 if turns are queued, the agent speaks after its caller", async () => {
    const room = await crewed({ order: "queued" });
    await room.say("Ask the architect.");
    (await room.request()).call(["ask_architect", { message: "Hello" }]);
    const guide = await room.request();
    expect(systemOf(guide)).toBe("Test.");
    expect(room.frames.filter(({ type }) => type === "turn.queued")).toHaveLength(1);
    guide.answer("It will speak.");
    const architect = await room.request();
    expect(messagesIn(architect).join("\n")).toContain('- The agent "tester": "It will speak."');
    architect.answer("Hello.");
    await answered(room, 2);
  });

  test("ORDER-4 LOOPIN-1 the words of an agent for another turn are no newer message of a user", async () => {
    const room = await crewed();
    await room.say("Ask the architect twice.");
    (await room.request()).call(["ask_architect", { message: "One" }], ["ask_architect", { message: "Two" }]);
    const taken = [await room.request(), await room.request(), await room.request()];
    const first = taken.find((request) => messagesIn(request).at(-1)?.endsWith(": One"));
    first?.call(["save", {}]);
    const next = await room.request();
    expect(results(next)).toEqual(["saved"]);
    expect(messagesIn(next).join()).not.toContain("Meanwhile the user also said");
  });
});
