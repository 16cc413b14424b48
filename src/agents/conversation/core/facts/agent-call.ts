/** The calls of agents and of runs: begun, held by a person, charged. Pure. */
import { type Amounts, addAmounts, NOTHING } from "../../../../model/spending.ts";
import { type Budget, spendingView } from "../../../../protocol/budget.ts";
import { runMember } from "../called-workflow.ts";
import { withSpending } from "../ledger.ts";
import { dispatched, withHold } from "../operation.ts";
import { startedEntries } from "../sub-agents.ts";
import { type Transition, withTurn } from "../transition.ts";
import type { Turn } from "../turn.ts";
import { blockingOperations } from "../turn-operations.ts";
import { waitForResults } from "../waits.ts";
import { type EntryOfTurn, type FrameBody, noted, silent, type TurnStep } from "./fact.ts";

export const agentCall = {
  /** Calls agents, each with its part of the budget, and of the calls that its tree may have open; starts the runs of workflows. */
  DISPATCH_CALLS(
    on: TurnStep,
    { calls }: { calls: readonly { item: number; calls?: number; budget?: Budget }[] },
  ): Transition {
    const { turn, record, now } = on;
    const operations = turn.operations.map((operation) => {
      const call = calls.find(({ item }) => item === operation.item);
      return call === undefined ? operation : dispatched(operation, call, now);
    });
    const entries = operations
      .filter(({ item }) => calls.some((call) => call.item === item))
      .flatMap((operation) =>
        operation.target === "workflow"
          ? [on.entry("workflow_run.started", operation.item, runMember(record, turn, operation))]
          : [on.entry("agent_call.started", operation.item), ...startedEntries(record, turn, operation)],
      );
    return on.change({ operations }, ...entries);
  },

  /** Notes that the agent or the run of an operation waits for a person, or waits no longer. */
  NOTE_HOLD(on: TurnStep, { item, seq, isHeld }: { item: number; seq: number; isHeld: boolean }): Transition {
    const changed = on.withOperation(item, (operation) => withHold(operation, { seq, isHeld }, on.now));
    if (isHeld) return on.replace(changed, on.entry("work.held", item));
    return on.replace(resumed(changed), on.entry("work.released", item));
  },
};

/** Decisions that also apply after the end of the turn. */
export const agentCharge = {
  /** Charges what a call of another agent has used up: to the conversation, and to the turn unless that is over. */
  CHARGE_CALL(
    transition: Transition,
    data: { turn: number; item: number; agentId: string; spent: Amounts; failed?: boolean },
  ): Transition {
    const { turn: n, item, agentId, spent, failed } = data;
    const { state } = transition;
    const entry = {
      type:
        failed === undefined
          ? ("agent_call.charged" as const)
          : failed
            ? ("agent_call.failed" as const)
            : ("agent_call.completed" as const),
      ...{ turn: n, item, data: { spent: { ...spendingView(spent) } } },
    };
    const charged = { ...transition, state: { ...state, ...withSpending(state, agentId, spent) } };
    const turn = state.active.get(n);
    if (turn === undefined) return noted(charged, entry);
    const delegated = addAmounts(turn.delegated ?? NOTHING, spent);
    const operations = turn.operations.map((operation) => {
      const { agent } = operation;
      if (operation.item !== item || agent === undefined) return operation;
      return { ...operation, agent: { ...agent, spent: addAmounts(agent.spent ?? NOTHING, spent) } };
    });
    return withTurn(charged, { ...turn, delegated, operations }, [entry]);
  },
};

/** Returns a turn after an answer of a person: it waits no longer if an agent, a run or a tool works for it. */
export function resumed(turn: Turn): Turn {
  const wait = waitForResults(blockingOperations(turn));
  const { waiting: _over, ...others } = turn;
  return wait === "tools" || wait === "agents" ? others : turn;
}

export const agentCallFrames = {
  ...silent("agent_call.started", "agent_call.completed", "agent_call.failed", "agent_call.charged"),
  ...silent("workflow_run.started", "subagent.requested", "subagent.started", "subagent.stopped"),
  "work.held": (_: undefined, { record, turn, operation }: EntryOfTurn): FrameBody => ({
    type: "work.held",
    data: operation === undefined ? {} : runMember(record, turn, operation),
  }),
  "work.released": (): FrameBody => ({ type: "work.released", data: {} }),
};
