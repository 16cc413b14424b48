/**
 * Reservations of tasks and hooks that call models. Pure.
 *
 * BUDGET-8  An attempt of a task that calls models begins only after it has reserved in all budgets and in the lease of its agent
 *           (LEDGER-6). If the lease is too small, the attempt first waits for a larger lease. If a budget refuses, a tool's result is
 *           `BUDGET_EXCEEDED`, the turn of a context hook fails, and an extraction ends. If no lease is available, a tool's result is
 *           `EXECUTION_FAILED`. An extraction ignores the budget of its turn. The reservation limits the models of the attempt (LLM-5), so
 *           its steps stay within the budget. After a crash or a transient failure, the next attempt needs a new reservation.
 */
import { type Allowance, type Amounts, NOTHING } from "../../../../model/spending.ts";
import { AMOUNT, type BudgetExcess } from "../../../../protocol/budget.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { runningExtractions } from "../hooks.ts";
import type { TaskReservation } from "../operation.ts";
import { type ConversationState, chainOf, leaseOf } from "../state.ts";
import { reservedByHook, reservedByOperation } from "../task-spending.ts";
import { openOperations } from "../turn-operations.ts";
import {
  CALL_LIMITS,
  exceeded,
  excessOf,
  isAsking,
  type Limit,
  limitsBesideModel,
  placed,
  sharedLimits,
} from "./budget.ts";
import { failTurn } from "./cancel.ts";
import { resume } from "./results.ts";
import { failure } from "./tool-call.ts";

interface Request extends TaskReservation {
  turn: number;
  item: number;
  agentId: string;
  amounts: Amounts;
  /** Walks all reservations. It is called only if the attempt does not wait for another reason. */
  limits(): readonly Limit[];
  /** Plans after a refusal. */
  refuse(error: ErrorData, excess?: BudgetExcess): AgentDecision[];
}

/** Reserves for one attempt that needs it; returns `[]` without such an attempt. Call it after every change, until it returns `[]`. */
export function planTaskReservation(state: ConversationState, input: PlanInput): AgentDecision[] {
  for (const request of requests(state, input)) {
    const decisions = reserve(state, request);
    if (decisions.length > 0) return decisions;
  }
  return [];
}

function reserve(state: ConversationState, request: Request): AgentDecision[] {
  const { turn, item, agentId, amounts, reserving, refuse } = request;
  const leasing = reserving === "leasing";
  if (isAsking(state, agentId, { leasing })) return [];
  const limits = request.limits();
  const isLeased = leaseOf(state, agentId) !== undefined;
  if (limits.length === 0 && !isLeased) return [{ type: "RESERVE_TASK", turn, item }];
  const excess = excessOf(limits, amounts);
  const place = placed(state, agentId, { excess, request: amounts }, { call: { leasing } });
  switch (place.type) {
    case "held":
      return [
        { type: "RESERVE_TASK", turn, item, reserved: allowanceOf(isLeased ? null : limits, amounts) },
        ...place.changes,
      ];
    case "waits":
      return leasing && place.changes.length === 0
        ? []
        : [{ type: "RESERVE_TASK", turn, item, reserving: "leasing" }, ...place.changes];
    case "refused": {
      const { refusal } = place;
      return "error" in refusal
        ? refuse(refusal.error)
        : refuse(exceeded(state, refusal.excess, "task"), refusal.excess);
    }
    default:
      return place satisfies never;
  }
}

/** Returns the reserved amounts that budgets limit. For `null` it returns all amounts, because a lease has all. */
function allowanceOf(limits: readonly Limit[] | null, amounts: Amounts): Allowance {
  const limited = CALL_LIMITS.filter(
    (limit) => limits?.some(({ budget }) => budget[limit] !== undefined) ?? true,
  );
  return Object.fromEntries(limited.map((limit) => [AMOUNT[limit], amounts[AMOUNT[limit]]]));
}

function* requests(state: ConversationState, input: PlanInput): Generator<Request> {
  for (const turn of state.active.values()) {
    const { n, agentId, assembly } = turn;
    const chain = chainOf(state.record, agentId);
    for (const operation of openOperations(turn)) {
      const { item, toolCallId, status, reserving } = operation;
      if (reserving === undefined || status !== "pending") continue;
      const amounts = reservedByOperation(chain, operation);
      const limits = () => limitsBesideModel(state, turn);
      const refuse = ({ message, code }: ErrorData) => {
        const why = `${message} The task did not run. Answer without it.`;
        const result = failure(
          toolCallId,
          code === "UNAVAILABLE" ? "EXECUTION_FAILED" : "BUDGET_EXCEEDED",
          why,
        );
        const isUnused = operation.attempt === 1 && turn.recoveries === 0;
        return resume(state, turn, [{ item, result, ...(isUnused && { isUnused: true as const }) }]);
      };
      yield { turn: n, item, agentId, reserving, amounts, limits, refuse };
    }
    if (assembly?.reserving !== undefined) {
      const { item, reserving } = assembly;
      const amounts = chain.contextAssembly ? reservedByHook(chain, chain.contextAssembly) : NOTHING;
      const limits = () => limitsBesideModel(state, turn);
      const refuse = (error: ErrorData, excess?: BudgetExcess): AgentDecision[] => [
        ...(excess === undefined ? [] : [{ type: "EXCEED_BUDGET" as const, turn: n, excess }]),
        failTurn(turn, error, input),
      ];
      yield { turn: n, item, agentId, reserving, amounts, limits, refuse };
    }
  }
  for (const [of, { item, agentId, reserving }] of runningExtractions(state)) {
    if (reserving === undefined) continue;
    const chain = chainOf(state.record, agentId);
    const amounts = chain.memoryExtraction ? reservedByHook(chain, chain.memoryExtraction) : NOTHING;
    const refuse = ({ code, message }: ErrorData): AgentDecision[] => [
      { type: "GIVE_UP_EXTRACTION", of, error: { code, message } },
    ];
    yield { turn: of, item, agentId, reserving, amounts, limits: () => sharedLimits(state, agentId), refuse };
  }
}
