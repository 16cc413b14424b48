/** The view of active agents: examples, and the sum of their amounts for any turns. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AgentAtWork,
  agentsAtWork,
  initialState,
  type OperationState,
  type SpendingView,
  type TurnState,
} from "../../src/client/index.ts";
import { conversationView } from "./client-script.ts";

const NOTHING: SpendingView = { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 };
const amounts = (tokens: number, usd = 0): SpendingView => ({ tokens, usd, toolCalls: 1, modelCalls: 1 });

function callOf(id: string, state: OperationState["state"], spent?: SpendingView): OperationState {
  const agent = { id, mode: "delegate" as const, conversationId: `c-${id}`, ...(spent && { spent }) };
  return { id: `op-${id}`, turnId: "t", name: `ask_${id}`, input: { message: "Draw." }, agent, state };
}

function turnOf(agentId: string, calls: OperationState[], spent?: SpendingView): TurnState {
  return {
    ...{ id: `t-${agentId}`, agentId, createdAt: "", completedAt: null, retries: [], retrying: false },
    status: spent === undefined ? "active" : "completed",
    items: calls.map((operation) => ({ type: "tool", id: operation.id, operation })),
    ...(spent && { spent }),
  };
}

function view(turns: TurnState[], joined: string[]): AgentAtWork[] {
  const participants = [
    { type: "user" as const, id: "ada" },
    ...joined.map((id) => ({ type: "agent" as const, id })),
  ];
  return agentsAtWork({ ...initialState, conversation: { ...conversationView, participants }, turns });
}

describe("VIEW-3 working agents", () => {
  test("are empty before the first snapshot", () => {
    expect(agentsAtWork(initialState)).toEqual([]);
  });

  test("participants come first, in their order; then called agents", () => {
    const turns = [turnOf("manager", [callOf("developer", "running")])];
    expect(
      view(turns, ["manager", "lawyer"]).map(({ agentId, isParticipant }) => [agentId, isParticipant]),
    ).toEqual([
      ["manager", true],
      ["lawyer", true],
      ["developer", false],
    ]);
  });

  test("work on active turns, and on calls that have no result", () => {
    const open = callOf("developer", "running");
    const turn = turnOf("manager", [open, callOf("reviewer", "completed", amounts(3))]);
    const [manager, developer, reviewer] = view([turn], ["manager"]);
    expect(manager?.tasks).toEqual([{ turn }]);
    expect(developer?.tasks).toEqual([{ turn, call: open }]);
    expect(reviewer?.tasks).toEqual([]);
    // A call that waits for approval has not reached the agent.
    expect(view([turnOf("manager", [callOf("developer", "awaiting_approval")])], [])[1]?.tasks).toEqual([]);
    expect(view([turnOf("manager", [callOf("developer", "running")], amounts(1))], [])[1]?.tasks).toEqual([]);
  });

  test("a call counts for the called agent; an agent that joins has its own turns", () => {
    const joins = { ...callOf("lawyer", "completed"), agent: { id: "lawyer", mode: "loop_in" as const } };
    const turns = [
      turnOf("manager", [callOf("developer", "completed", amounts(70, 0.2)), joins], amounts(100, 0.3)),
      turnOf("lawyer", [], { ...amounts(5), estimated: true }),
    ];
    const spent = view(turns, ["manager", "lawyer"]).map(({ agentId, spent }) => [agentId, spent]);
    expect(Object.fromEntries(spent)).toEqual({
      manager: { tokens: 30, usd: 0.1, toolCalls: 0, modelCalls: 0 },
      developer: amounts(70, 0.2),
      lawyer: { ...amounts(5), estimated: true },
    });
  });

  test("a late report of a call after its turn leaves no amount below zero", () => {
    const late = turnOf("manager", [callOf("developer", "cancelled", amounts(9))], amounts(4));
    expect(view([late], ["manager"])[0]?.spent).toEqual(NOTHING);
  });

  test("the amounts of all agents sum up to the amounts of finished turns", () => {
    const name = fc.constantFrom("manager", "developer", "reviewer");
    const some = fc.record({
      tokens: fc.nat(1000),
      usd: fc.nat(1_000_000_000).map((nano) => nano / 1e9),
      toolCalls: fc.nat(9),
      modelCalls: fc.nat(9),
    });
    const turns = fc.array(
      fc.record({ agentId: name, own: some, calls: fc.array(fc.tuple(name, some), { maxLength: 3 }) }),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(turns, (given) => {
        const total = (list: SpendingView[], key: "tokens" | "usd" | "toolCalls" | "modelCalls") =>
          list.reduce((sum, one) => sum + one[key], 0);
        const all = given.map(({ agentId, own, calls }) => {
          const parts = [own, ...calls.map(([, spent]) => spent)];
          const spent = { ...NOTHING };
          for (const key of ["tokens", "usd", "toolCalls", "modelCalls"] as const)
            spent[key] = total(parts, key);
          return turnOf(
            agentId,
            calls.map(([id, used]) => callOf(id, "completed", used)),
            spent,
          );
        });
        const shown = view(all, ["manager"]).map(({ spent }) => spent);
        for (const key of ["tokens", "usd", "toolCalls", "modelCalls"] as const)
          expect(total(shown, key)).toBeCloseTo(
            total(
              all.map(({ spent }) => spent ?? NOTHING),
              key,
            ),
            6,
          );
      }),
    );
  });
});
