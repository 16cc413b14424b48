/** Calls of agents by agents, as pure rules: permissions, budgets, and the envelopes of a commit. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { callEnvelopes, endedCalls } from "../../src/agents/conversation/core/call-envelopes.ts";
import { callEnd } from "../../src/agents/conversation/core/call-time.ts";
import {
  CALL_GRACE_MS,
  MAX_CALL_DEPTH,
  MAX_OPEN_CALLS,
  MAX_TURN_RESULTS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import type { PlanInput } from "../../src/agents/conversation/core/decisions.ts";
import type { Signal } from "../../src/agents/conversation/core/signals.ts";
import {
  type CallOrigin,
  type ConversationIdentity,
  type ConversationState,
  NEW_STATE,
} from "../../src/agents/conversation/core/state.ts";
import { beginCycles, settle, step } from "../../src/agents/conversation/core/step.ts";
import { beginTransition } from "../../src/agents/conversation/core/transition.ts";
import { defineTool } from "../../src/library/define/define.ts";
import { agentCall, calledChain, callMessage } from "../../src/library/tools/agent-tool.ts";
import { NOTHING } from "../../src/model/spending.ts";
import { allowAll } from "../../src/policy/gate.ts";
import {
  type AgentAskBody,
  type AgentCallBody,
  type AgentOutcome,
  type AgentReadersBody,
  type AgentResultBody,
  agentCancelSchema,
  MAX_ASKS,
  MAX_CALL_LENGTH,
  MAX_CONVERSATION_ASKS,
} from "../../src/protocol/agent-call.ts";
import type { ApprovalOutcome } from "../../src/protocol/approval.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import { calledConversationId, operationId } from "../../src/protocol/ids.ts";
import type { SubAgentBounds } from "../../src/protocol/sub-agent.ts";
import { defined } from "../../src/shared/defined.ts";
import { isConversationId } from "../../src/shared/identifiers.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { messageOfAda, PIN, PLAIN_CHAIN, recordOf } from "../support/records.ts";

const ask = (name: string, agent: string, more: object = {}) => ({
  ...PIN,
  library: "crew",
  id: name,
  definition: defineTool({ name, description: "Asks.", target: { agent }, ...more }).definition,
});
const TOOLS = [
  ask("ask", "helper"),
  ask("ask_self", "tester"),
  ask("ask_above", "boss"),
  ask("ask_again", "helper", { effect: "idempotent", retry: { maxAttempts: 2, backoffMs: 1_000 } }),
];
const CHAIN = { ...PLAIN_CHAIN, tools: TOOLS };
const STEM = "01K0000000000000ABC";
const NOW = 1_000_000;

/** The call that opened a conversation. */
const CALLED: CallOrigin = {
  operationId: "op_x",
  attempt: 1,
  path: ["boss"],
  readers: [],
  deadline: NOW + 60_000,
  caller: { agentId: "boss", turnId: "turn_x" },
  from: "conv_x",
};

function begin(members: Partial<ConversationIdentity> = {}, budget?: Budget): ConversationState {
  const standing = { ...NEW_STATE, ...(budget === undefined ? {} : { budget }) };
  return { ...standing, record: recordOf(CHAIN, members), seq: 1, active: new Map(), stored: new Map() };
}

/** Applies signals as a commit does: the state after it, its envelopes and the types of its entries. */
function commit(state: ConversationState, signals: Signal[], now = NOW, more: Partial<PlanInput> = {}) {
  const input = { now, stem: STEM, gate: allowAll, requestTokens: () => 10, ...more };
  const planned = signals.reduce((current, signal) => step(current, signal, input), beginTransition(state));
  const transition = settle(beginCycles(planned, input), input);
  const after = { ...transition.state, seq: state.seq + transition.entries.length };
  return {
    state: after,
    transition,
    envelopes: callEnvelopes(state, after, transition),
    withdrawn: endedCalls(state, after, transition).map(({ to: { id }, type }) => ({ id, type })),
    types: transition.entries.map(({ type }) => type),
  };
}

/** Returns a tool with calls that run in the background. */
function inBackground(tool: (typeof CHAIN.tools)[number]): (typeof CHAIN.tools)[number] {
  return { ...tool, definition: { ...tool.definition, async: true } };
}

const facts = { startedAt: NOW, finishedAt: NOW, usage: { inputTokens: 6, outputTokens: 4 } };

/** The reply to a turn's present call: these calls, or a text. */
function reply(state: ConversationState, said: string | [name: string, input: JsonObject][], n = 1): Signal {
  const { item = 0, attempt = 0 } = state.active.get(n)?.call ?? {};
  const calls = typeof said === "string" ? [] : said;
  return {
    type: "conversation.llm.completed",
    turn: n,
    item,
    attempt,
    facts,
    reply: {
      text: typeof said === "string" ? said : "",
      toolCalls: calls.map(([name, input], index) => ({
        id: `call-${item}-${index}`,
        name,
        arguments: input,
      })),
      finishReason: calls.length === 0 ? "stop" : "tool_calls",
    },
  };
}

/** A conversation with an agent that has made these calls. */
function calling(names: readonly string[], members: Partial<ConversationIdentity> = {}, budget?: Budget) {
  const { state } = commit(begin(members, budget), [messageOfAda("Hi")]);
  return commit(state, [
    reply(
      state,
      names.map((name) => [name, { message: "Work." }]),
    ),
  ]);
}

const ended = (item: number, outcome: AgentOutcome, attempt = 1, spent = NOTHING): Signal => {
  return { type: "conversation.agent.ended", turn: 1, item, attempt, agentId: "tester", outcome, spent };
};

/** The errors of a turn's results, by code. */
const errorsOf = (state: ConversationState) =>
  [...state.active.values()].flatMap(({ operations }) =>
    operations.map(({ result }) => result?.error?.code ?? null),
  );

function turnOf({ active }: ConversationState) {
  const turn = active.get(1);
  if (turn === undefined) throw new Error("The turn is active.");
  return turn;
}

describe("a call", () => {
  test("DELEGATE-1 A61 sends its message and the required settings, but no history of the conversation", () => {
    const { envelopes, state, types } = calling(["ask"]);
    const turn = state.active.get(1);
    const item = turn?.operations[0]?.item ?? 0;
    const id = operationId({ stem: STEM, n: 1 }, item);
    expect(envelopes).toEqual([
      {
        to: { kind: "conversation", tenant: "test", id: calledConversationId(id, 1) },
        type: "agent.call",
        body: {
          operationId: id,
          attempt: 1,
          agentId: "helper",
          caller: { agentId: "tester", turnId: expect.stringMatching(/^turn_/) },
          content: "Work.",
          projectIds: ["default"],
          path: ["tester"],
          readers: ["ada"],
          readersSeq: state.seq,
          requester: "ada",
          calls: 112,
          deadline: NOW + 600_000,
          correlationId: expect.any(String),
          traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
          workspace: { from: "conv-conv_test" },
        },
      },
    ]);
    expect(types).toContain("agent_call.started");
    expect(turn?.call).toBeNull();
  });

  test("DELEGATE-1 SPAWN-3 is sent with the projects of its caller, the bounds of a sub-agent that makes it, and its correlation id", () => {
    const bounds: SubAgentBounds = { name: "reader", tools: ["ask"], network: "none" };
    const agents = [{ id: "tester", chain: CHAIN, projectIds: ["law", "default"] }] as const;
    const message = { ...messageOfAda("Hi"), correlationId: "order-7" };
    const { state } = commit(begin({ call: { ...CALLED, bounds }, agents }), [message]);
    const { envelopes } = commit(state, [reply(state, [["ask", { message: "Work." }]])]);
    expect(envelopes[0]?.body).toMatchObject({
      projectIds: ["default", "law"],
      bounds: { ...bounds, inherited: true },
      correlationId: "order-7",
    });
  });

  test("APPROVE-2 OP-5 a call that needs an approval begins with it, with its time and its report in a stop", () => {
    const careful = TOOLS.map((tool) => ({
      ...tool,
      definition: { ...tool.definition, approval: "always" },
    }));
    const record = recordOf({ ...CHAIN, tools: careful as typeof TOOLS });
    const first = commit({ ...begin(), record }, [messageOfAda("Hi")]);
    const { state, envelopes } = commit(first.state, [reply(first.state, [["ask", { message: "Work." }]])]);
    expect(envelopes).toEqual([]);
    const { item = 0, timeoutMs = 0 } = turnOf(state).operations[0] ?? {};
    const caller = { type: "user", userId: "ada" } as const;
    const answer: Signal = { type: "conversation.approval.resolved", turn: 1, item, approved: true, caller };
    const later = NOW + 3_600_000;
    const begun = commit(state, [answer], later);
    expect(begun.envelopes).toMatchObject([{ type: "agent.call", body: { deadline: later + timeoutMs } }]);
    expect(turnOf(begun.state).operations[0]?.deadline).toBe(later + timeoutMs + CALL_GRACE_MS);
    const stopped = (from: ConversationState) => {
      const { transition } = commit(from, [{ type: "conversation.cancel", turn: 1, caller }], later);
      return transition.touched.get(1)?.operations[0]?.result?.error?.message;
    };
    expect(stopped(begun.state)).toContain("Outcome unknown");
    expect(stopped(state)).toBe('"ask" was stopped before it had a result.');
  });

  test("DELEGATE-2 H4 no agent calls itself or one above it, and no call is deeper than the limit", () => {
    const call = {
      ...CALLED,
      path: ["boss", "deputy"],
      deadline: NOW + 1,
      caller: { agentId: "deputy", turnId: "turn_x" },
    };
    const { state, envelopes } = calling(["ask", "ask_self", "ask_above"], { call });
    expect(errorsOf(state)).toEqual([null, "PERMISSION_DENIED", "PERMISSION_DENIED"]);
    expect(envelopes).toHaveLength(1);
    expect(envelopes[0]).toMatchObject({ body: { path: ["boss", "deputy", "tester"] } });
    const path = Array.from({ length: MAX_CALL_DEPTH }, (_, index) => `level-${index}`);
    const deep = calling(["ask"], { call: { ...call, path } });
    expect([errorsOf(deep.state), deep.envelopes]).toEqual([["PERMISSION_DENIED"], []]);
    const last = calling(["ask"], { call: { ...call, path: path.slice(1) } });
    expect(last.envelopes).toHaveLength(1);
  });

  test("AGENTTOOL-1 an unknown mode starts no call, and the model gets the known modes", () => {
    const { state } = commit(begin(), [messageOfAda("Hi")]);
    const wrong = commit(state, [reply(state, [["ask", { message: "Work.", invocationMode: "shout" }]])]);
    expect([wrong.envelopes, errorsOf(wrong.state)]).toEqual([[], ["INVALID_INPUT"]]);
    expect(turnOf(wrong.state).operations[0]?.result?.error?.message).toContain('"delegate" or "loop_in"');
  });

  test("DELEGATE-2 a conversation has a limited number of open calls; another call is possible after an end", () => {
    const names = Array.from({ length: MAX_OPEN_CALLS + 2 }, () => "ask");
    const { state, envelopes } = calling(names);
    expect(envelopes).toHaveLength(MAX_OPEN_CALLS);
    expect(errorsOf(state).slice(-3)).toEqual([null, "EXECUTION_FAILED", "EXECUTION_FAILED"]);
  });

  test("CALLTREE-1 a call passes a part of its calls, and an agent without calls cannot call", () => {
    const parts = (envelopes: readonly { body: unknown }[]) =>
      envelopes.map(({ body }) => (body as AgentCallBody).calls);
    expect(parts(calling(["ask", "ask"]).envelopes)).toEqual([74, 74]);
    const middle = calling(["ask", "ask", "ask"], { call: { ...CALLED, calls: 4 } });
    expect(parts(middle.envelopes)).toEqual([0, 0]);
    expect(errorsOf(middle.state)).toEqual([null, null, "EXECUTION_FAILED"]);
    const last = calling(["ask"], { call: { ...CALLED, calls: 0 } });
    expect([last.envelopes, errorsOf(last.state)]).toEqual([[], ["EXECUTION_FAILED"]]);
    expect(turnOf(last.state).operations[0]?.result?.error?.retriable).toBe(false);
  });

  test("CALLTREE-1 the part of an ended call is free again, and a repeated attempt gets a new part", () => {
    const { state, envelopes } = calling(["ask_again"]);
    const item = turnOf(state).operations[0]?.item ?? 0;
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    const failed = commit(state, [ended(item, { error })]);
    const again = commit(failed.state, [{ type: "conversation.cmd.expire" }], NOW + 1_000);
    expect(again.envelopes[0]?.body).toMatchObject({ attempt: 2, calls: 112 });
    expect(envelopes[0]?.body).toMatchObject({ attempt: 1, calls: 112 });
  });

  test("DELEGATE-11 its envelope is withdrawn when the call or its attempt ends, however it ends, and never before", () => {
    const { state, withdrawn, envelopes } = calling(["ask", "ask_again"]);
    const [one, again] = envelopes.map(({ to: { id } }) => ({ id, type: "agent.call" }));
    const [first = 0, second = 0] = turnOf(state).operations.map(({ item }) => item);
    const by = { type: "user", userId: "ada" } as const;
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    expect(withdrawn).toEqual([]);
    expect(commit(state, [{ type: "conversation.cancel", turn: 1, caller: by }]).withdrawn).toEqual([
      one,
      again,
    ]);
    expect(commit(state, [{ type: "conversation.cmd.expire" }], NOW + 700_000).withdrawn).toEqual([
      one,
      again,
    ]);
    expect(commit(state, [ended(first, { text: "Done." })]).withdrawn).toEqual([one]);
    const repeats = commit(state, [ended(second, { error })]);
    expect(repeats.withdrawn, "the attempt that failed").toEqual([again]);
    const later = commit(repeats.state, [{ type: "conversation.cmd.expire" }], NOW + 1_000);
    expect([later.withdrawn, later.envelopes.map(({ type }) => type)]).toEqual([[], ["agent.call"]]);
  });

  test("DELEGATE-12 without room in the outbox, a call fails as retriable, or is retried later; calls that fit are sent", () => {
    const { state } = commit(begin(), [messageOfAda("Hi")]);
    const long = { message: "x".repeat(10_000) };
    const asked = (room: { envelopes: number; bytes: number }, tools = ["ask", "ask", "ask_again"]) =>
      commit(
        state,
        [
          reply(
            state,
            tools.map((name) => [name, long]),
          ),
        ],
        NOW,
        { outboxRoom: () => room },
      );
    const bytes = asked({ envelopes: 9, bytes: 26_000 });
    expect(bytes.envelopes.map(({ type }) => type)).toEqual(["agent.call", "agent.call"]);
    expect(errorsOf(bytes.state)).toEqual([null, null, null]);
    expect(turnOf(bytes.state).operations[2]).toMatchObject({
      status: "pending",
      attempt: 2,
      notBefore: NOW + 1_000,
    });
    const count = asked({ envelopes: 1, bytes: 1_000_000 }, ["ask", "ask"]);
    expect(count.envelopes).toHaveLength(1);
    expect(errorsOf(count.state)).toEqual([null, "EXECUTION_FAILED"]);
    expect(turnOf(count.state).operations[1]?.result?.error).toMatchObject({ retriable: true });
    const none = asked({ envelopes: 0, bytes: -1 }, ["ask", "ask"]);
    expect([none.envelopes, errorsOf(none.state)]).toEqual([[], ["EXECUTION_FAILED", "EXECUTION_FAILED"]]);
    expect(turnOf(none.state).call, "the model continues").not.toBeNull();
  });

  test("DELEGATE-12 calls of several turns that begin with one commit share the room", () => {
    const first = commit(begin(), [messageOfAda("Hi")]);
    const both = commit(first.state, [messageOfAda("And")]).state;
    const said: [string, JsonObject][] = [["ask_again", { message: "Work." }]];
    const room = () => ({ envelopes: 1, bytes: 1_000_000 });
    const { envelopes, state } = commit(both, [reply(both, said, 1), reply(both, said, 2)], NOW, {
      outboxRoom: room,
    });
    expect(envelopes).toHaveLength(1);
    const statuses = [...state.active.values()].flatMap(({ operations }) =>
      operations.map(({ status }) => status),
    );
    expect(statuses).toEqual(["dispatched", "pending"]);
  });

  test("DELEGATE-2 the messages of all open calls have a length together, so a commit can always send them", () => {
    const { state } = commit(begin(), [messageOfAda("Hi")]);
    const long = "x".repeat(MAX_CALL_LENGTH);
    const calls = Array.from({ length: 10 }, (): [string, JsonObject] => ["ask", { message: long }]);
    const first = commit(state, [reply(state, calls)]);
    expect(first.envelopes).toHaveLength(10);
    const other = commit(first.state, [messageOfAda("And")]);
    const second = commit(other.state, [reply(other.state, calls, 2)]);
    expect(second.envelopes).toHaveLength(5);
    expect(errorsOf(second.state).slice(14)).toEqual([
      null,
      ...Array.from({ length: 5 }, () => "EXECUTION_FAILED"),
    ]);
    const tooLong = commit(state, [reply(state, [["ask", { message: `${long}x` }]])]);
    expect(errorsOf(tooLong.state)).toEqual(["INVALID_INPUT"]);
  });

  test("DELEGATE-3 LEDGER-4 the first outcome counts; later outcomes and outcomes of other attempts only charge their usage", () => {
    const spent = { ...NOTHING, tokens: 5, modelCalls: 1 };
    const { state } = calling(["ask"]);
    const item = state.active.get(1)?.operations[0]?.item ?? 0;
    const other = commit(state, [ended(item, { text: "No." }, 2, spent)]);
    expect([errorsOf(other.state), other.types]).toEqual([[null], ["agent_call.completed"]]);
    const done = commit(other.state, [ended(item, { text: "Yes." }, 1, spent)]);
    expect(done.state.active.get(1)?.operations[0]?.result).toMatchObject({ success: true, result: "Yes." });
    const late = commit(done.state, [ended(item, { text: "Other." }, 1, spent)]);
    expect(late.state.active.get(1)?.operations[0]?.result).toMatchObject({ result: "Yes." });
    expect(late.state.spent.tokens - state.spent.tokens, "LEDGER-4").toBe(15);
    expect(late.state.active.get(1)?.delegated).toEqual({ ...spent, tokens: 15, modelCalls: 3 });
  });

  test("DELEGATE-3 a failure that may pass is repeated as another conversation, if the tool may run twice", () => {
    const { state, envelopes } = calling(["ask_again"]);
    const item = state.active.get(1)?.operations[0]?.item ?? 0;
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    const failed = commit(state, [ended(item, { error })]);
    expect([failed.envelopes, errorsOf(failed.state)]).toEqual([[], [null]]);
    const again = commit(failed.state, [{ type: "conversation.cmd.expire" }], NOW + 1_000);
    expect(again.envelopes.map(({ type }) => type)).toEqual(["agent.call"]);
    expect(again.envelopes[0]?.to.id).not.toBe(envelopes[0]?.to.id);
    const late = commit(again.state, [ended(item, { text: "Of the attempt before." })]);
    expect([errorsOf(late.state), late.types]).toEqual([[null], ["agent_call.completed"]]);
    const over = commit(again.state, [ended(item, { error, partial: "Half." }, 2)]);
    expect(over.state.active.get(1)?.operations[0]?.result?.error).toMatchObject({
      code: "EXECUTION_FAILED",
      message: 'No model. It had written: "Half."',
    });
  });

  test("DELEGATE-3 APPROVE-1 no answer settles a call that waits for a person, or for its next attempt", () => {
    const careful = {
      ...CHAIN,
      tools: TOOLS.map((tool) => ({
        ...tool,
        definition: { ...tool.definition, approval: "always" as const },
      })),
    };
    const first = commit({ ...begin(), record: recordOf(careful) }, [messageOfAda("Hi")]);
    const waiting = commit(first.state, [reply(first.state, [["ask", { message: "Work." }]])]).state;
    const item = turnOf(waiting).operations[0]?.item ?? 0;
    const answered = commit(waiting, [ended(item, { text: "Forged." })]).state;
    expect(turnOf(answered).operations[0]).toMatchObject({ status: "awaiting_approval" });
    const { state } = calling(["ask_again"]);
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    const pausing = commit(state, [ended(item, { error })]).state;
    const early = commit(pausing, [ended(item, { text: "Forged." }, 2)]).state;
    expect(turnOf(early).operations[0]).toMatchObject({ status: "pending", attempt: 2 });
  });

  test("DELEGATE-5 a failure that will not pass is not repeated, whatever the tool says", () => {
    const { state } = calling(["ask_again"]);
    const item = turnOf(state).operations[0]?.item ?? 0;
    const error = { code: "AGENT_DECLINED", message: "Not mine.", retriable: false } as const;
    const over = commit(state, [ended(item, { error })]).state;
    expect(turnOf(over).operations[0]).toMatchObject({ status: "failed", attempt: 1, result: { error } });
  });

  test("DELEGATE-3 DELEGATE-7 without a pause, the next attempt begins with the failure of the previous attempt, in its own conversation", () => {
    const eager = ask("ask_eagerly", "helper", {
      effect: "idempotent",
      retry: { maxAttempts: 2, backoffMs: 0 },
    });
    const record = recordOf({ ...CHAIN, tools: [eager] });
    const first = commit({ ...begin(), record }, [messageOfAda("Hi")]);
    const called = commit(first.state, [reply(first.state, [["ask_eagerly", { message: "Work." }]])]);
    const item = turnOf(called.state).operations[0]?.item ?? 0;
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    const again = commit(called.state, [ended(item, { error })]);
    expect(again.envelopes).toMatchObject([{ type: "agent.call", body: { attempt: 2 } }]);
    const stopped = commit(again.state, [
      { type: "conversation.cancel", turn: 1, caller: { type: "user", userId: "ada" } },
    ]);
    expect(stopped.envelopes).toMatchObject([{ type: "agent.cancel", body: { attempt: 2 } }]);
  });

  test("LARGE-1 DELEGATE-3 an answer that its turn has no room for succeeded, and the model gets a view of it", () => {
    const { state } = calling(["ask"]);
    const item = turnOf(state).operations[0]?.item ?? 0;
    const done = commit(state, [ended(item, { text: "x".repeat(MAX_TURN_RESULTS) })]).state;
    const { success, result } = turnOf(done).operations[0]?.result ?? {};
    expect(success).toBe(true);
    expect(result).toMatchObject({
      stored_result: { bytes: MAX_TURN_RESULTS + 2 },
      note: expect.stringContaining("the results of one turn may have"),
    });
  });

  test("DELEGATE-7 a cancellation has as much of the reason as its envelope takes", () => {
    const { state } = calling(["ask"]);
    const error = { code: "INTERNAL_ERROR", message: "x".repeat(2_000), retriable: false } as const;
    const failed = commit(state, [{ type: "conversation.cmd.abandon", turn: 1, error }]);
    const [cancellation] = failed.envelopes;
    expect(cancellation?.type).toBe("agent.cancel");
    expect(agentCancelSchema.safeParse(cancellation?.body).success).toBe(true);
  });

  test("DELEGATE-7 a stop, an end and a time that is over each send one cancellation", () => {
    const { state } = calling(["ask", "ask_again"]);
    const stopped = commit(state, [
      { type: "conversation.cancel", turn: 1, caller: { type: "user", userId: "ada" } },
    ]);
    expect(stopped.envelopes.map(({ type }) => type)).toEqual(["agent.cancel", "agent.cancel"]);
    expect(commit(stopped.state, [{ type: "conversation.cmd.expire" }]).envelopes).toEqual([]);
    const late = commit(state, [{ type: "conversation.cmd.expire" }], NOW + 700_000);
    expect(late.envelopes.map(({ type }) => type)).toEqual(["agent.cancel", "agent.cancel"]);
    expect(errorsOf(late.state)).toEqual(["TIMEOUT", "TIMEOUT"]);
    const item = turnOf(state).operations[0]?.item ?? 0;
    const error = { code: "TIMEOUT", message: "The time of the call was over.", retriable: true } as const;
    const own = commit(state, [ended(item, { error })], NOW + 600_000);
    expect([errorsOf(own.state), own.envelopes], "the agent's own end needs no stop").toEqual([
      ["TIMEOUT", null],
      [],
    ]);
  });
});

test("DELEGATE-7 the stop of a repeated call is sent to its newest attempt", () => {
  const { state } = calling(["ask_again"]);
  const item = turnOf(state).operations[0]?.item ?? 0;
  const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
  const failed = commit(state, [ended(item, { error })]);
  const again = commit(failed.state, [{ type: "conversation.cmd.expire" }], NOW + 1_000);
  const by = { type: "user", userId: "ada" } as const;
  const stopped = commit(again.state, [{ type: "conversation.cancel", turn: 1, caller: by }]);
  const id = operationId({ stem: STEM, n: 1 }, item);
  expect(stopped.envelopes).toMatchObject([
    { to: { id: calledConversationId(id, 2) }, type: "agent.cancel", body: { operationId: id, attempt: 2 } },
  ]);
  const late = commit(again.state, [{ type: "conversation.cmd.expire" }], NOW + 1_000_000);
  expect(late.envelopes).toMatchObject([{ type: "agent.cancel", body: { attempt: 2 } }]);
});

describe("the conversation of a call", () => {
  const call = {
    operationId: "op_01K0000000000000ABCDEFGHJK",
    attempt: 1,
    path: ["boss"],
    readers: ["ada"],
    deadline: NOW + 60_000,
    caller: { agentId: "boss", turnId: "turn_x" },
    from: "conv_caller",
  };
  const asked = (more: Partial<CallOrigin> = {}, chain = calledChain(CHAIN)) => {
    const record = {
      ...recordOf(chain),
      call: { ...call, ...more },
      participants: [{ type: "agent", id: "tester" }] as const,
    };
    const state = { ...begin(), record };
    const message: Signal = {
      type: "conversation.user.message",
      caller: { type: "agent", ...call.caller },
      data: { content: "Work." },
    };
    return commit(state, [message]).state;
  };
  const resultIn = ({ envelopes }: ReturnType<typeof commit>) =>
    envelopes.map(({ to, type, body }) => ({ to: to.id, type, ...(body as unknown as AgentResultBody) }));

  test("DELEGATE-6 DELEGATE-8 ends with its turn, and sends its caller one result with its usage", () => {
    const state = asked();
    const done = commit(state, [reply(state, "Here.")]);
    expect(done.state.status).toBe("completed");
    expect(resultIn(done)).toEqual([
      {
        to: "conv_caller",
        type: "agent.result",
        operationId: call.operationId,
        attempt: 1,
        outcome: { text: "Here." },
        spent: { ...NOTHING, tokens: 10, modelCalls: 1 },
      },
    ]);
    expect(() => commit(done.state, [messageOfAda("More?")])).toThrow("has ended");
  });

  test("DELEGATE-6 DELEGATE-8 ends with the turn of the call and its answer, whatever other turn there is", () => {
    const state = commit(asked(), [messageOfAda("Say that all is well.")]).state;
    const forged = commit(state, [reply(state, "All is well.", 2)]);
    expect(forged.envelopes).toEqual([]);
    for (const before of [state, forged.state]) {
      const done = commit(before, [reply(before, "Here.")]);
      expect([done.state.status, done.state.active.size]).toEqual(["completed", 0]);
      expect(resultIn(done)).toMatchObject([{ outcome: { text: "Here." } }]);
    }
  });

  test("DELEGATE-9 the newest list of its readers holds", () => {
    const state = asked();
    const given = (after: ConversationState, readers: string[], readersSeq: number) =>
      commit(after, [{ type: "conversation.agent.readers", readers, readersSeq }]).state;
    const of = ({ record }: ConversationState) => record.call?.readers;
    const numbered = given(given(state, ["ada", "bob"], 3), ["ada"], 7);
    expect(of(numbered)).toEqual(["ada"]);
    expect(of(given(numbered, ["ada", "bob"], 6)), "older").toEqual(["ada"]);
    expect(of(given(numbered, ["ada", "bob"], 8))).toEqual(["ada", "bob"]);
  });

  test("DELEGATE-5 a decline ends it, whatever other calls the reply has", () => {
    const state = asked();
    const declined = commit(state, [
      reply(state, [
        ["ask", { message: "Work." }],
        ["decline", { reason: "Not mine." }],
      ]),
    ]);
    expect(resultIn(declined)).toMatchObject([
      { outcome: { error: { code: "AGENT_DECLINED", message: "Not mine.", retriable: false } } },
    ]);
  });

  test("DELEGATE-4 DELEGATE-6 its time limit: the turn fails, and the caller gets the partial text", () => {
    const state = asked();
    const working = commit(state, [reply(state, [["ask", { message: "Work." }]])]);
    const over = commit(working.state, [{ type: "conversation.cmd.expire" }], call.deadline);
    expect(over.envelopes.map(({ type }) => type)).toEqual(["agent.cancel", "agent.result"]);
    expect(resultIn(over)[1]).toMatchObject({ outcome: { error: { code: "TIMEOUT" } } });
  });

  test("DELEGATE-8 LEDGER-4 its result has its whole usage, and a later report has the later usage of calls below", () => {
    const state = asked({ attempt: 2 });
    const spent = { ...NOTHING, tokens: 100, modelCalls: 1 };
    const working = commit(state, [reply(state, [["ask", { message: "Work." }]])]).state;
    const item = turnOf(working).operations[0]?.item ?? 0;
    const back = commit(working, [ended(item, { text: "Done." }, 1, spent)]).state;
    const done = commit(back, [reply(back, "Here.")]);
    expect(resultIn(done)).toMatchObject([
      { type: "agent.result", attempt: 2, spent: { ...NOTHING, tokens: 120, toolCalls: 1, modelCalls: 3 } },
    ]);
    const late = commit(done.state, [ended(item, { text: "Again." }, 1, spent)]);
    expect(late.envelopes.map(({ body }) => body)).toEqual([
      { operationId: call.operationId, attempt: 2, spent },
    ]);
    const nothing = commit(done.state, [ended(item, { text: "Again." })]);
    expect(nothing.envelopes).toEqual([]);
  });

  test.each([
    ["OUTPUT_INVALID", "EXECUTION_FAILED", true],
    ["EXECUTION_FAILED", "EXECUTION_FAILED", true],
    ["BUDGET_EXCEEDED", "BUDGET_EXCEEDED", false],
  ] as const)(
    "DELEGATE-4 a turn that fails with %s is %s for its caller; retriable: %s",
    (code, shown, retriable) => {
      const error = { code, message: "No.", retriable: false } as const;
      const failed = commit(asked(), [{ type: "conversation.cmd.abandon", turn: 1, error }]);
      expect(resultIn(failed)).toMatchObject([{ outcome: { error: { code: shown, retriable } } }]);
    },
  );

  test("ASK-1 a request for approval is forwarded with its input, unless the input is too large", () => {
    const careful = { ...TOOLS[0], definition: { ...TOOLS[0]?.definition, approval: "always" } };
    const chain = { ...CHAIN, tools: [careful as (typeof TOOLS)[number]] };
    const inputOf = (message: string) => {
      const state = asked({}, chain);
      const { envelopes } = commit(state, [reply(state, [["ask", { message }]])]);
      expect(envelopes.map(({ type }) => type)).toEqual(["agent.ask"]);
      return envelopes.map(({ body }) => (body as unknown as AgentAskBody).ask.input);
    };
    expect(inputOf("Work.")).toEqual([{ message: "Work." }]);
    expect(inputOf("x".repeat(5_000))).toEqual([undefined]);
  });

  test("DELEGATE-5 a tool of the agent with that name is its own", () => {
    const own = {
      ...PIN,
      library: "crew",
      id: "decline",
      definition: defineTool({
        name: "decline",
        description: "Declines an offer.",
        input: z.object({}),
        execute: () => null,
      }).definition,
    };
    const chain = { ...CHAIN, tools: [own] };
    expect(calledChain(chain)).toBe(chain);
    const state = asked({}, chain);
    const called = commit(state, [reply(state, [["decline", {}]])]);
    expect([called.envelopes, turnOf(called.state).status]).toEqual([[], "active"]);
  });
});

describe("DELEGATE-9 the readers of a call", () => {
  const BEN = { type: "user", id: "ben" } as const;
  const caller = { type: "user", userId: "ada" } as const;
  const joins: Signal = { type: "conversation.participant.add", caller, participant: BEN };
  const readersIn = ({ envelopes }: ReturnType<typeof commit>) =>
    envelopes.map(({ type, body }) => [type, (body as unknown as AgentReadersBody).readers]);

  test("are forwarded to running calls, but not to a waiting call: it gets the readers of its start", () => {
    const { state } = calling(["ask", "ask_again"]);
    const [, second = 0] = turnOf(state).operations.map(({ item }) => item);
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    const pausing = commit(state, [ended(second, { error })]).state;
    const joined = commit(pausing, [joins]);
    expect(readersIn(joined)).toEqual([["agent.readers", ["ada", "ben"]]]);
    expect(joined.envelopes[0]?.body).toMatchObject({ attempt: 1 });
    const again = commit(joined.state, [{ type: "conversation.cmd.expire" }], NOW + 1_000);
    expect(readersIn(again)).toEqual([["agent.call", ["ada", "ben"]]]);
  });

  test("are the readers of its caller's call if the caller was called itself; the same readers again are a no-op", () => {
    const call = { ...CALLED, readers: ["ada", "ben"] };
    const called = calling(["ask"], { call, participants: [{ type: "agent", id: "tester" }] });
    expect(readersIn(called)).toEqual([["agent.call", ["ada", "ben"]]]);
    const changes = { type: "conversation.agent.readers", readers: ["ben"], readersSeq: 1 } as const;
    const changed = commit(called.state, [changes]);
    expect(readersIn(changed)).toEqual([["agent.readers", ["ben"]]]);
    const same = commit(changed.state, [changes]);
    expect([same.types, same.envelopes]).toEqual([[], []]);
  });
});

describe("the budget of a call", () => {
  test("INHERIT-1 each call gets an equal part of the rest, and the part counts until the call ends", () => {
    const { state, envelopes } = calling(["ask", "ask"], {}, { tokens: 10_010, toolCalls: 9 });
    const budgets = envelopes.map(({ body }) => (body as unknown as AgentCallBody).budget);
    const part = { tokens: 3_333, toolCalls: 2 };
    expect(budgets).toEqual([part, part]);
    const [first = 0] = state.active.get(1)?.operations.map(({ item }) => item) ?? [];
    const done = commit(state, [ended(first, { text: "Done." }, 1, { ...NOTHING, tokens: 1_000 })]);
    const other = commit(done.state, [messageOfAda("And?")]);
    // 10 of the model, 1 000 of the first call and 3 333 reserved by the second leave 5 667 of the budget.
    expect(other.state.active.get(2)?.call?.reserved).toBeDefined();
  });

  test("INHERIT-1 a call with too small a part fails, and its error names the fix", () => {
    const { transition } = commit(begin({ call: CALLED }, { tokens: 5 }), [messageOfAda("Work.")]);
    const [turn] = transition.touched.values();
    expect(turn?.error).toMatchObject({
      code: "BUDGET_EXCEEDED",
      message: expect.stringMatching(
        /^The budget of this call, a share of its caller's remaining budget, is 5 tokens\. .*Call fewer agents at once/,
      ),
    });
  });

  test("INHERIT-1 H4 a call gets no share of the reservation of the caller's running model call", () => {
    const background = { ...CHAIN, tools: CHAIN.tools.map(inBackground) };
    const record = recordOf(background);
    const first = commit({ ...begin({}, { tokens: 20_000 }), record }, [messageOfAda("Hi")]);
    const { state, envelopes } = commit(first.state, [reply(first.state, [["ask", { message: "Work." }]])]);
    const reserved = state.active.get(1)?.call?.reserved;
    const [part = 0] = envelopes.map(({ body }) => (body as unknown as AgentCallBody).budget?.tokens);
    const claimed = (reserved?.inputTokens ?? 0) + (reserved?.outputTokens ?? 0);
    expect(claimed).toBeGreaterThan(0);
    expect(part).toBe(Math.floor((20_000 - state.spent.tokens - claimed) / 2));
  });

  test("INHERIT-1 H4 the same holds for a budget of the turn", () => {
    const background = { ...CHAIN, tools: CHAIN.tools.map(inBackground) };
    const hello = messageOfAda("Hi");
    const message = { ...hello, data: { ...hello.data, budget: { tokens: 20_000 } } };
    const first = commit({ ...begin(), record: recordOf(background) }, [message]);
    const { state, envelopes } = commit(first.state, [reply(first.state, [["ask", { message: "Work." }]])]);
    const { inputTokens = 0, outputTokens = 0 } = turnOf(state).call?.reserved ?? {};
    expect(inputTokens + outputTokens).toBeGreaterThan(0);
    const [part] = envelopes.map(({ body }) => (body as unknown as AgentCallBody).budget?.tokens);
    expect(part).toBe(Math.floor((20_000 - state.spent.tokens - inputTokens - outputTokens) / 2));
  });

  test.each(["conversation", "persona"] as const)(
    "INHERIT-1 BUDGET-2 the shares of open calls count as used for other turns: the budget of the %s",
    (scope) => {
      const budget = { modelCalls: 3 };
      const { persona } = CHAIN;
      const limited = { ...CHAIN, persona: { ...persona, definition: { ...persona.definition, budget } } };
      const start = begin({}, scope === "conversation" ? budget : undefined);
      const state = { ...start, record: scope === "persona" ? recordOf(limited) : start.record };
      const first = commit(state, [messageOfAda("Hi")]);
      const called = commit(first.state, [reply(first.state, [["ask", { message: "Work." }]])]);
      expect(called.envelopes[0]?.body).toMatchObject({ budget: { modelCalls: 1 } });
      const second = commit(called.state, [messageOfAda("And?")]);
      expect(second.state.active.has(2)).toBe(true);
      const third = commit(second.state, [messageOfAda("And?")]);
      expect(third.transition.touched.get(3)?.error?.code).toBe("BUDGET_EXCEEDED");
    },
  );

  test("BUDGET-2 the budget of an agent's persona is for that agent's turns and calls", () => {
    const { persona } = CHAIN;
    const withBudget = (modelCalls: number) => ({
      ...CHAIN,
      persona: { ...persona, definition: { ...persona.definition, budget: { modelCalls } } },
    });
    const participants = ["ada", "tester", "cook"].map((id) => ({
      type: id === "ada" ? ("user" as const) : ("agent" as const),
      id,
    }));
    const agents = [
      { id: "tester", chain: withBudget(5) },
      { id: "cook", chain: withBudget(1) },
    ] as const;
    const hello = messageOfAda("Hi");
    const to = (agent: string) => ({ ...hello, data: { ...hello.data, to: agent } });
    const counted = { ...begin({ agents, participants }), spentBy: { tester: NOTHING, cook: NOTHING } };
    const first = commit(counted, [to("tester")]);
    const called = commit(first.state, [reply(first.state, [["ask", { message: "Work." }]])]);
    const busy = commit(called.state, [to("tester")]);
    const { state } = commit(busy.state, [to("cook")]);
    expect(state.active.get(3)?.call?.reserved).toBeDefined();
  });

  test("BUDGET-3 INHERIT-1 the shares of open calls count for a turn's tool calls; a refused call does not", () => {
    const hello = messageOfAda("Hi");
    const message = { ...hello, data: { ...hello.data, budget: { toolCalls: 3 } } };
    const record = recordOf({ ...CHAIN, tools: CHAIN.tools.map(inBackground) });
    const first = commit({ ...begin(), record }, [message]);
    const ask: [string, JsonObject] = ["ask", { message: "Work." }];
    const one = commit(first.state, [reply(first.state, [["ask_self", { message: "Work." }], ask])]);
    expect([one.envelopes.length, errorsOf(one.state)]).toEqual([1, ["PERMISSION_DENIED", null]]);
    const [refused] = turnOf(one.state).operations;
    expect([refused?.target, refused?.agent, refused?.deadline]).toEqual(["code", undefined, undefined]);
    const two = commit(one.state, [reply(one.state, [["ask_self", { message: "Work." }], ask, ask])]);
    expect(errorsOf(two.state).slice(2)).toEqual(["PERMISSION_DENIED", null, "BUDGET_EXCEEDED"]);
  });

  test("INHERIT-1 after the budget is removed, the next attempt of a call has no part", () => {
    const { state, envelopes } = calling(["ask_again"], {}, { tokens: 20_000 });
    expect(envelopes[0]?.body).toHaveProperty("budget");
    const item = turnOf(state).operations[0]?.item ?? 0;
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    const caller = { type: "user", userId: "ada" } as const;
    const failed = commit(state, [ended(item, { error })]).state;
    const free = commit(failed, [{ type: "conversation.update", caller, budget: null }]).state;
    const again = commit(free, [{ type: "conversation.cmd.expire" }], NOW + 1_000);
    expect(again.envelopes[0]?.body).toMatchObject({ attempt: 2 });
    expect(again.envelopes[0]?.body).not.toHaveProperty("budget");
    expect(turnOf(again.state).operations[0]?.agent).not.toHaveProperty("budget");
  });

  test("INHERIT-1 a call of an overspent budget gets zero", () => {
    const { state } = calling(["ask_again"], {}, { tokens: 20_000 });
    const item = turnOf(state).operations[0]?.item ?? 0;
    const error = { code: "EXECUTION_FAILED", message: "No model.", retriable: true } as const;
    const failed = commit(state, [ended(item, { error }, 1, { ...NOTHING, tokens: 30_000 })]);
    const again = commit(failed.state, [{ type: "conversation.cmd.expire" }], NOW + 1_000);
    expect(again.envelopes[0]?.body).toMatchObject({ budget: { tokens: 0 } });
  });

  test("INHERIT-1 H4 for any calls, their parts and the usage stay within the budget", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 100_000 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 0, max: 20 }),
        (extra, calls, back) => {
          const tokens = 10_000 + extra;
          let { state, envelopes } = calling(
            Array.from({ length: calls }, () => "ask"),
            {},
            { tokens },
          );
          const parts = envelopes.map(
            ({ body }) => (body as unknown as AgentCallBody).budget?.tokens ?? Number.NaN,
          );
          const reserved = parts.reduce((sum, part) => sum + part, 0);
          expect(parts).toHaveLength(calls);
          expect(state.spent.tokens + reserved).toBeLessThanOrEqual(tokens);
          for (const { item } of (state.active.get(1)?.operations ?? []).slice(0, back))
            ({ state, envelopes } = commit(state, [
              ended(item, { text: "." }, 1, { ...NOTHING, tokens: parts[0] ?? 0 }),
            ]));
          expect(state.spent.tokens).toBeLessThanOrEqual(tokens);
        },
      ),
      { numRuns: 200 },
    );
  });
});

test("ASK-2 the time of a call pauses while it waits for a person, and restarts with the answer", () => {
  const call = { deadline: NOW + 1_000 };
  const turn = { ...turnOf(calling(["ask"]).state), createdAt: NOW };
  const [operation] = turn.operations;
  if (operation === undefined) throw new Error("The turn has called.");
  const withOperation = (members: Partial<typeof operation>) =>
    callEnd(call, { ...turn, operations: [{ ...operation, ...members }] });
  expect(withOperation({})).toBe(NOW + 1_000);
  expect(withOperation({ status: "awaiting_approval" })).toBe(Number.POSITIVE_INFINITY);
  const agent = { id: "helper", mode: "delegate" } as const;
  const ask = { operationId: "op_x", conversationId: "c", agentId: "a", name: "pay", expiresAt: NOW };
  expect(withOperation({ agent: { ...agent, asks: [ask] } })).toBe(Number.POSITIVE_INFINITY);
  expect(withOperation({ agent: { ...agent, answeredAt: NOW + 5_000 } })).toBe(NOW + 6_000);
  expect(withOperation({ approval: { outcome: "approved", at: NOW + 7_000 } })).toBe(NOW + 8_000);
});

describe("a request for approval from below", () => {
  const ask = {
    operationId: "op_below",
    conversationId: "conv_b",
    agentId: "helper",
    name: "pay",
    expiresAt: NOW + 9,
  };
  const asked = (item: number, outcome?: ApprovalOutcome): Signal => {
    const answer = outcome === undefined ? {} : { outcome };
    return { type: "conversation.agent.asked", turn: 1, item, attempt: 1, ask, ...answer };
  };
  const itemOf = (state: ConversationState) => turnOf(state).operations[0]?.item ?? 0;

  test("ASK-1 ASYNC-2 below a call in the background: with the answer the turn waits on, and the result begins its next cycle", () => {
    const record = recordOf({ ...CHAIN, tools: CHAIN.tools.map(inBackground) });
    const first = commit({ ...begin(), record }, [messageOfAda("Hi")]);
    const { state } = commit(first.state, [reply(first.state, [["ask", { message: "Work." }]])]);
    const idle = commit(state, [reply(state, "I asked.")]);
    const item = itemOf(idle.state);
    const answered = [asked(item), asked(item, "approved")].reduce(
      (current, signal) => commit(current, [signal]).state,
      idle.state,
    );
    expect(turnOf(answered).waiting).toBe(turnOf(idle.state).waiting);
    const done = commit(answered, [ended(item, { text: "Paid." })]);
    expect(turnOf(done.state).call, "the next cycle").not.toBeNull();
  });

  test.each(["approved", "denied"] as const)("ASK-1 its answer is passed on unchanged: %s", (outcome) => {
    const { state } = calling(["ask"], { call: CALLED });
    const shown = commit(state, [asked(itemOf(state))]);
    expect(shown.envelopes).toMatchObject([{ type: "agent.ask", to: { id: "conv_x" }, body: { ask } }]);
    const over = commit(shown.state, [asked(itemOf(state), outcome)]);
    expect(over.envelopes).toMatchObject([{ type: "agent.ask", body: { ask, outcome } }]);
  });

  test("ASK-6 an answer that overtakes its request is noted, and the request is not shown then, here or above", () => {
    const call = {
      operationId: "op_x",
      attempt: 1,
      path: ["boss"],
      readers: [],
      deadline: NOW + 60_000,
      caller: { agentId: "boss", turnId: "turn_x" },
      from: "conv_x",
    };
    const { state } = calling(["ask_again"], { call });
    const item = itemOf(state);
    const early = commit(state, [asked(item, "approved")], NOW + 300_000);
    expect([early.types, early.envelopes]).toEqual([["approval.resolved"], []]);
    const operation = turnOf(early.state).operations[0];
    expect(operation?.deadline).toBe(NOW + 300_000 + (operation?.timeoutMs ?? 0) + CALL_GRACE_MS);
    const late = commit(early.state, [asked(item)]);
    expect([late.types, late.envelopes]).toEqual([[], []]);
    expect(commit(early.state, [asked(item, "denied")]).types, "the first answer counts").toEqual([]);
    const many = Array.from({ length: 100 }, (_, n): Signal => {
      const other = { ...ask, operationId: `op_other_${n}` };
      return { ...asked(item, "approved"), ask: other } as Signal;
    });
    const full = commit(early.state, many);
    expect(turnOf(full.state).operations[0]?.agent?.answered).toHaveLength(MAX_ASKS);
    const error = { code: "EXECUTION_FAILED", message: "No.", retriable: true } as const;
    const again = commit(full.state, [ended(item, { error })]);
    expect(turnOf(again.state).operations[0]?.agent?.answered).toBeUndefined();
  });

  test("ASK-1 ASK-2 the same request again is a no-op; the time restarts with the answer", () => {
    const { state } = calling(["ask"]);
    const item = itemOf(state);
    const shown = commit(state, [asked(item)]);
    expect(shown.types).toContain("approval.requested");
    expect(commit(shown.state, [asked(item)]).types).toEqual([]);
    expect(turnOf(shown.state).waiting).toBeDefined();
    const over = commit(shown.state, [asked(item, "approved")], NOW + 300_000);
    expect(turnOf(over.state).waiting, "it works again").toBeUndefined();
    const { timeoutMs = 0, deadline } = turnOf(over.state).operations[0] ?? {};
    expect(deadline).toBe(NOW + 300_000 + timeoutMs + CALL_GRACE_MS);
  });

  test("ASK-1 ASK-2 of two requests the later request keeps the call, until both are answered", () => {
    const call = { ...CALLED, deadline: NOW + 600_000 };
    const long = { ...ask, expiresAt: NOW + 900_000 };
    const short = { ...ask, operationId: "op_short", expiresAt: NOW + 700_000 };
    const of = (request: typeof ask, outcome?: ApprovalOutcome): Signal => {
      const item = itemOf(state);
      return {
        type: "conversation.agent.asked",
        turn: 1,
        item,
        attempt: 1,
        ask: request,
        ...defined({ outcome }),
      };
    };
    const { state } = calling(["ask"], { call });
    const { timeoutMs } = turnOf(state).operations[0] ?? expect.fail();
    const deadlineOf = (after: ConversationState) => turnOf(after).operations[0]?.deadline;
    const both = commit(state, [of(long), of(short)]).state;
    expect(deadlineOf(both)).toBe(long.expiresAt + timeoutMs + CALL_GRACE_MS);
    expect(callEnd(call, turnOf(both))).toBe(Number.POSITIVE_INFINITY);
    const one = commit(both, [of(short, "denied")], NOW + 1_000);
    expect(deadlineOf(one.state), "the other request still waits").toBe(
      long.expiresAt + timeoutMs + CALL_GRACE_MS,
    );
    expect(callEnd(call, turnOf(one.state))).toBe(Number.POSITIVE_INFINITY);
    const over = commit(one.state, [ended(itemOf(state), { text: "Done." })]).state;
    expect(callEnd(call, turnOf(over)), "a call that has ended asks no more").toBe(call.deadline + 1_000);
    const none = commit(one.state, [of(long, "approved")], NOW + 2_000);
    expect(deadlineOf(none.state)).toBe(NOW + 2_000 + timeoutMs + CALL_GRACE_MS);
    expect(callEnd(call, turnOf(none.state))).toBe(call.deadline + 2_000);
  });

  test("ASK-1 a stop removes the requests that callers show", () => {
    const { state } = calling(["ask"], { call: CALLED });
    const shown = commit(state, [asked(itemOf(state))]).state;
    const caller = { type: "user", userId: "ada" } as const;
    const stopped = commit(shown, [{ type: "conversation.cancel", turn: 1, caller }]);
    const asks = stopped.envelopes.filter(({ type }) => type === "agent.ask");
    expect(asks).toMatchObject([{ body: { ask, outcome: "expired" } }]);
  });

  test("ASK-1 a call shows a limited number of requests, and so do all calls together; further requests are shown below only", () => {
    const { state } = calling(["ask", "ask", "ask"]);
    const items = turnOf(state).operations.map(({ item }) => item);
    const request = (item: number, index: number): Signal => {
      const below = { ...ask, operationId: `op_${item}_${index}` };
      return { type: "conversation.agent.asked", turn: 1, item, attempt: 1, ask: below };
    };
    const many = items.flatMap((item) =>
      Array.from({ length: MAX_ASKS + 1 }, (_, index) => request(item, index)),
    );
    const shown = turnOf(commit(state, many).state).operations.map(({ agent }) => agent?.asks?.length ?? 0);
    expect(shown).toEqual([MAX_ASKS, MAX_ASKS, MAX_CONVERSATION_ASKS - 2 * MAX_ASKS]);
  });

  test("ASK-1 a request of another attempt, or of a call that has not begun, is not shown", () => {
    const { state } = calling(["ask_again"]);
    const item = itemOf(state);
    const other: Signal = { type: "conversation.agent.asked", turn: 1, item, attempt: 2, ask };
    expect(commit(state, [other]).types).toEqual([]);
    const error = { code: "EXECUTION_FAILED", message: "No.", retriable: true } as const;
    const pausing = commit(state, [ended(item, { error })]).state;
    expect(commit(pausing, [asked(item)]).types).toEqual([]);
    expect(commit(pausing, [other]).types).toEqual([]);
  });

  test("ASK-1 a call that has ended, or is repeated, asks no more", () => {
    const { state } = calling(["ask_again"]);
    const shown = commit(state, [asked(itemOf(state))]).state;
    const asksOf = (after: ConversationState) => turnOf(after).operations[0]?.agent?.asks;
    expect(asksOf(shown)).toEqual([ask]);
    expect(asksOf(commit(shown, [ended(itemOf(state), { text: "Done." })]).state)).toBeUndefined();
    const error = { code: "EXECUTION_FAILED", message: "No.", retriable: true } as const;
    const again = commit(shown, [ended(itemOf(state), { error })]).state;
    expect([turnOf(again).operations[0]?.attempt, asksOf(again)]).toEqual([2, undefined]);
  });
});

test("AGENTCALL-1 the conversation of a call has a separate id for each attempt", () => {
  const turn = { stem: STEM, n: 3 };
  const ids = [0, 1, 2].flatMap((item) =>
    [1, 2, 3].map((attempt) => calledConversationId(operationId(turn, item), attempt)),
  );
  expect(new Set(ids).size).toBe(9);
  expect(ids.every(isConversationId)).toBe(true);
});

test("AGENTTOOL-1 the message of a call is its only text, or its input as JSON; the choice of the mode is no part of it", () => {
  expect(callMessage({ message: "Do it." })).toBe("Do it.");
  expect(JSON.parse(callMessage({ task: "Do it.", by: "noon" }))).toEqual({ task: "Do it.", by: "noon" });
  expect(agentCall({ agent: "a" }, { message: "x", invocationMode: "delegate" })).toEqual({
    mode: "delegate",
    input: { message: "x" },
  });
  const wrong = { message: "x", invocationMode: "shout" };
  expect(agentCall({ agent: "a" }, wrong)).toEqual({ mode: "delegate", input: wrong });
});
