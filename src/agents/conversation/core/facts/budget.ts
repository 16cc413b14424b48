/** Budgets: reservations, charges, limits, and the leases of agents. Pure. */
import { type Amounts, addAmounts, NOTHING, type TokenEstimate } from "../../../../model/spending.ts";
import { type Budget, type BudgetExcess, inUnits, spendingView } from "../../../../protocol/budget.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import type { TaskModelUsage, TaskSummary } from "../../../../protocol/task-summary.ts";
import { defined } from "../../../../shared/defined.ts";
import type { JsonObject } from "../../../../shared/json.ts";
import { withTaskUsage } from "../calls.ts";
import { isHookRunning, runningExtractions } from "../hooks.ts";
import type { LeaseState } from "../lease.ts";
import { budgetLeft, conversationBudget, withCharge } from "../ledger.ts";
import { reservedAs, type TaskReservation } from "../operation.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { recounted, reservedByHook, withTasksRecounted } from "../task-spending.ts";
import { type Transition, withTurn } from "../transition.ts";
import { reserveExtraction } from "./extraction.ts";
import { type FrameBody, noted, silent, type TurnStep } from "./fact.ts";
import { withoutReservations } from "./side-call.ts";
import { taskEntries } from "./tool.ts";

export const turnBudget = {
  /** Reserves tokens for the current attempt of a turn's model call. */
  RESERVE(on: TurnStep, { reserved }: { reserved: TokenEstimate }): Transition {
    if (on.turn.call === null) return on.transition;
    const { leasing: _, ...call } = on.turn.call;
    return on.change({ call: { ...call, reserved } });
  },

  /** Parks the current attempt of a turn's model call until the lease reply. */
  AWAIT_LEASE(on: TurnStep): Transition {
    const { call } = on.turn;
    return call === null ? on.transition : on.change({ call: { ...call, leasing: true } });
  },

  /** Records that the next model call of a turn does not fit a budget. */
  EXCEED_BUDGET(on: TurnStep, { excess }: { excess: BudgetExcess }): Transition {
    return on.change({}, on.entry("budget.exceeded", undefined, { ...excess }));
  },

  /** Reduces the budget of a turn. The rest goes to a turn that it starts. */
  LOWER_BUDGET(on: TurnStep, { budget }: { budget: Budget }): Transition {
    return on.change({ budget });
  },
};

export const budget = {
  /** Limits the conversation; `null` removes the limits. */
  SET_BUDGET(
    transition: Transition,
    { budget: given, by }: { budget: Budget | null; by: Caller },
    now: number,
  ): Transition {
    const { budget: _before, ...others } = transition.state;
    const limited = {
      ...others,
      ...(given === null ? {} : { budget: given }),
      ...withoutReservations(others),
    };
    const smallest = conversationBudget(limited);
    const data = { budget: smallest && { ...smallest }, ...leftData(limited), by };
    const updated = noted({ ...transition, state: limited }, { type: "conversation.updated", data });
    // Running model calls reserve again. Running tasks and hooks are not stopped.
    const counted = runningExtractions(limited).reduce((current, [of, run]) => {
      const chain = chainOf(limited.record, run.agentId);
      const { memoryExtraction: hook } = chain;
      if (hook === undefined) return current;
      const most = reservedByHook(chain, hook);
      const { reserving, reserved } = recounted(run, hook.task, { most, isBegun: isHookRunning(run, now) });
      return reserveExtraction(current, of, defined({ reserving, reserved }));
    }, updated);
    return [...limited.active.values()].reduce((current, turn) => {
      const next = withTasksRecounted(turn, chainOf(limited.record, turn.agentId), now);
      if (turn.call?.reserved === undefined) return next === turn ? current : withTurn(current, next, []);
      const { reserved: _reserved, ...call } = turn.call;
      return withTurn(current, { ...next, call }, []);
    }, counted);
  },

  /** Changes the lease, and sends its newest request. */
  SET_LEASE: withLease,

  /** Takes the agent's answer. */
  LEASED(transition: Transition, data: LeaseChange): Transition {
    const { agentId, lease } = data;
    const { tokens, nanoDollars, modelCalls } = lease.granted;
    const usd = inUnits(nanoDollars, "usd");
    const refused = lease.refusal === undefined ? {} : { refused: true };
    const granted = { agentId, tokens, usd, modelCalls, ...refused };
    return noted(withLease(transition, data), { type: "budget.leased", data: granted });
  },

  /** Changes the reservation of an attempt: of a call, or of a hook. */
  RESERVE_TASK(
    transition: Transition,
    { turn: n, item, reserving, reserved }: { turn: number; item: number } & TaskReservation,
  ): Transition {
    const reservation = defined({ reserving, reserved });
    const turn = transition.state.active.get(n);
    if (turn === undefined) return reserveExtraction(transition, n, reservation);
    const { assembly } = turn;
    if (assembly?.item === item)
      return withTurn(transition, { ...turn, assembly: reservedAs(assembly, reservation) }, []);
    const operations = turn.operations.map((one) => (one.item === item ? reservedAs(one, reservation) : one));
    return withTurn(transition, { ...turn, operations }, []);
  },

  /** Counts the use of models by a task. The summary belongs to a hook, because only this entry can record its attempt. */
  CHARGE_TASK(transition: Transition, data: TaskCharge): Transition {
    const { turn: n, item, agentId, spent, models, hook, isLate } = data;
    const { state } = transition;
    const entries = hook === undefined ? [] : taskEntries(n, item, hook.summary, hook.isSuccess);
    if (isLate)
      entries.push({
        type: "workflow_run.charged",
        turn: n,
        item,
        data: { spent: { ...spendingView(spent) } },
      });
    const usage = models && { usage: withTaskUsage(state.usage, models) };
    const charged = { ...transition, state: { ...state, ...withCharge(state, agentId, spent), ...usage } };
    const turn = state.active.get(n);
    if (turn === undefined) return noted(charged, ...entries);
    return withTurn(charged, { ...turn, delegated: addAmounts(turn.delegated ?? NOTHING, spent) }, entries);
  },
};

export interface LeaseChange {
  agentId: string;
  lease: LeaseState;
}

export interface TaskCharge {
  turn: number;
  item: number;
  agentId: string;
  spent: Amounts;
  /** The use that providers counted; absent if unknown. */
  models?: TaskModelUsage;
  hook?: { summary: TaskSummary; isSuccess: boolean };
  /** The run of a workflow reports it when its turn is over: the commit needs an entry of its own. */
  isLate?: true;
}

function withLease(transition: Transition, { agentId, lease }: LeaseChange): Transition {
  const { state } = transition;
  return { ...transition, state: { ...state, leases: { ...state.leases, [agentId]: lease } } };
}

/** Returns the rest of the conversation's budget as a member of an entry's data; `{}` without a budget. */
export function leftData(
  state: Pick<ConversationState, "record" | "budget" | "spent" | "spentBy">,
): JsonObject | undefined {
  const left = budgetLeft(state);
  return left === null ? undefined : { budgetLeft: { ...left } };
}

export const budgetFrames = {
  ...silent("budget.leased", "workflow_run.charged"),
  "budget.exceeded": (data: BudgetExcess): FrameBody => ({ type: "budget.exceeded", data }),
};
