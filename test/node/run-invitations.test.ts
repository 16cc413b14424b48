/** The decisions about agents that runs invite, and the checks of origins. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { callEnvelopes } from "../../src/agents/conversation/core/call-envelopes.ts";
import { planQueue } from "../../src/agents/conversation/core/planning/order.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import type { RunInvited } from "../../src/agents/conversation/core/signals.ts";
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import { parseStart } from "../../src/agents/coordinator/inbound/start-run.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { calledRunId } from "../../src/protocol/ids.ts";
import { SteeredConversation } from "../support/steered-model.ts";

const operationId = `op_${"0".repeat(26)}`;
const conversationId = `conv_${"0".repeat(26)}_eu`;

describe("INVITE-1 the origin of a run", () => {
  const origin = { conversationId, turnId: "turn_1", operationId, attempt: 2, agentId: "guide" };

  test("is accepted only for the run that the operation starts", () => {
    const id = calledRunId(operationId, 2, "eu");
    expect(parseStart({ id, workflow: "a/b", origin })).toMatchObject({ origin });
    for (const other of [{ attempt: 1 }, { conversationId: `conv_${"0".repeat(26)}` }])
      expect(() => parseStart({ id, workflow: "a/b", origin: { ...origin, ...other } })).toThrow(
        "Only the run of an operation",
      );
  });
});

const wait = defineTool({
  name: "wait",
  description: "Waits.",
  effect: "once",
  input: z.object({}),
  execute: () => new Promise(() => undefined),
});

/** A conversation with a first turn that waits for a tool, and an invitation by the run of this call. */
async function waiting(order: ConversationState["order"], more: Partial<RunInvited> = {}) {
  const room = await SteeredConversation.create(defineLibrary("crew", { tools: [wait] }), { order });
  await room.say("Go.");
  (await room.request()).call(["wait", {}]);
  await room.until(() =>
    [...room.runtime.state.active.values()].some(({ operations }) => operations.length > 0),
  );
  const { state } = room.runtime;
  const [turn] = state.active.values();
  const [operation] = turn?.operations ?? [];
  if (turn === undefined || operation === undefined) throw new Error("No call waits.");
  const [{ chain }] = state.record.agents;
  const signal: RunInvited = {
    type: "conversation.run.invited",
    agentId: "architect",
    agent: { id: "architect", chain },
    by: { type: "workflow", runId: "run_1", node: "ask" },
    content: "Hello.",
    invited: { operationId, attempt: 1, path: ["tester"] },
    origin: { turn: turn.n, item: operation.item, attempt: 1 },
    ...more,
  };
  return { state, turn, operation, signal };
}

let stems = 0;
const newStem = () => String(stems++).padStart(19, "0");
const input = { now: 5, stem: "", gate: allowAll, newStem };

describe("RUNINVITE-1 RUNINVITE-3 RUNINVITE-4 an invitation of a run", () => {
  test.each(["parallel", "queued", "interrupt"] as const)(
    "joins and begins at once in %s, while a turn waits for the run",
    async (order) => {
      const { state, turn, signal } = await waiting(order);
      const decisions = plan(state, signal, input);
      expect(decisions.map(({ type }) => type)).toEqual(["ADD_PARTICIPANT", "START_TURN"]);
      expect(decisions[1]).toMatchObject({
        ...{ caller: signal.by, begins: "at once", agentId: "architect" },
        exchange: { of: turn.n, by: turn.caller },
        invited: { operationId, attempt: 1, path: ["tester"], passes: true },
      });
    },
  );

  test("takes its place in the queue if no turn waits for the run", async () => {
    const { state, turn, signal } = await waiting("queued");
    const operations = turn.operations.map((one) => ({ ...one, mode: "async" as const }));
    const busy = { ...turn, operations, call: { item: 9, attempt: 1, notBefore: 0, final: false } };
    const [, starts, queued] = plan({ ...state, active: new Map([[turn.n, busy]]) }, signal, input);
    expect(starts).toMatchObject({ invited: { operationId } });
    expect(starts).not.toHaveProperty("invited.passes");
    expect(queued).toMatchObject({ type: "QUEUE_TURN" });
  });

  test("a passing turn begins before turns that wait longer, and others still wait", async () => {
    const { state, turn } = await waiting("queued");
    const next = { ...turn, n: 2, operations: [], queued: true as const };
    const passing = { ...next, n: 3, invited: { operationId, attempt: 1, path: [], passes: true as const } };
    const begun = (turns: (typeof turn)[]) =>
      planQueue({ ...state, active: new Map(turns.map((one) => [one.n, one])) }, {});
    expect(begun([turn, next, passing])).toMatchObject([{ type: "BEGIN_TURN", turn: 3 }]);
    expect(begun([turn, next])).toEqual([]);
  });

  test.each<[string, Partial<RunInvited>, string]>([
    ["of another operation", { origin: { turn: 1, item: 99, attempt: 1 } }, "NOT_FOUND"],
    ["of another turn", { origin: { turn: 7, item: 2, attempt: 1 } }, "NOT_FOUND"],
    ["of an earlier attempt", { origin: { turn: 1, item: 2, attempt: 9 } }, "NOT_FOUND"],
    ["of the agent that waits", { agentId: "tester" }, "FORBIDDEN"],
  ])("%s is refused", async (_, more, code) => {
    const { state, signal } = await waiting("parallel", more);
    expect(() => plan(state, signal, input)).toThrow(expect.objectContaining({ code }));
  });

  test("no agent joins beyond the turn limit of the user's message", async () => {
    const { state, signal } = await waiting("parallel");
    expect(() => plan(state, signal, { ...input, agentTurns: 1 })).toThrow(
      expect.objectContaining({ code: "TOO_MANY_TURNS" }),
    );
  });
});

test("RUNINVITE-2 the end of its turn is sent to the run, and another change of it is not", async () => {
  const { state, turn } = await waiting("parallel");
  const invited = { operationId, attempt: 3, path: [] };
  const its = { ...turn, operations: [], caller: { type: "workflow" as const, runId: "run_1" }, invited };
  const before = { ...state, active: new Map([[turn.n, its]]) };
  const sent = (end: typeof its, from = before) =>
    callEnvelopes(from, { ...state, active: new Map() }, { touched: new Map([[end.n, end]]), entries: [] });
  expect(sent(its)).toEqual([]);
  const error = { code: "CANCELLED", message: "The agent has left.", retriable: false };
  const failed = { ...its, status: "failed" as const, error };
  expect(sent(failed)).toMatchObject([
    {
      ...{ type: "agent.result", to: { kind: "coordinator", id: "run_1" } },
      body: { operationId, attempt: 3, outcome: { error: { code: "CANCELLED" } } },
    },
  ]);
  expect(sent(failed, { ...state, active: new Map() }), "a turn that was over before").toEqual([]);
});
