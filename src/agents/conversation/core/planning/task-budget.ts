/**
 * Budgets of tasks that ask models. Pure.
 *
 * BUDGET-8  A call of a task that asks models runs only if all budgets have room for what it reserves (LEDGER-6). Otherwise its result is
 *           `BUDGET_EXCEEDED`. So it is with each further attempt: where there is no room, the failure is the result. The budget of an agent
 *           is charged when the attempt ends, so a conversation may exceed it by one attempt.
 */
import { profileAt } from "../../../../library/version-chain.ts";
import { type Amounts, addAmounts, NOTHING } from "../../../../model/spending.ts";
import { spentByRequest } from "../ledger.ts";
import type { Operation } from "../operation.ts";
import type { AttemptFacts } from "../signals.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { reservedByTask, taskOf } from "../task-spending.ts";
import type { CallingTurn, Turn } from "../turn.ts";
import { excessOf, limitsOf } from "./budget.ts";
import { failure, refusedCall } from "./tool-call.ts";

/** Reports whether the budgets have room for another attempt of a call, after one that has used up amounts. */
export function roomForAttempt(
  state: ConversationState,
  turn: Turn,
  operation: Operation,
  spent: Amounts,
): boolean {
  const task = taskOf(chainOf(state.record, turn.agentId), operation);
  const request = task === undefined ? NOTHING : reservedByTask(task, operation.input);
  if (request.modelCalls === 0) return true;
  // What the attempt before had reserved is still counted, in the place of this one's.
  return excessOf(limitsOf(state, turn), spent) === null;
}

/** The room for the tasks of one reply, which are counted one after another. */
export class TaskRoom {
  #reserved: Amounts = NOTHING;

  constructor(
    private readonly state: ConversationState,
    private readonly turn: CallingTurn,
    private readonly facts: AttemptFacts,
  ) {}

  /** Returns the call, or the same call with the result that keeps it from running. */
  admit(operation: Omit<Operation, "item" | "reply">): Omit<Operation, "item" | "reply"> {
    const { state, turn, facts } = this;
    const chain = chainOf(state.record, turn.agentId);
    const task = operation.result === undefined ? taskOf(chain, operation) : undefined;
    const request = task === undefined ? NOTHING : reservedByTask(task, operation.input);
    if (request.modelCalls === 0) return operation;
    const asked = spentByRequest(
      facts,
      profileAt(chain, turn.call.profile ?? 0) ?? chain.modelProfile.definition,
    );
    const beside = addAmounts(this.#reserved, asked);
    const limits = limitsOf(state, turn).map((limit) => ({ ...limit, used: addAmounts(limit.used, beside) }));
    if (excessOf(limits, request) === null) {
      this.#reserved = addAmounts(this.#reserved, request);
      return operation;
    }
    const message =
      "The budget has no room for the models that this task asks, so it did not run. Answer without it.";
    return refusedCall(operation, failure(operation.toolCallId, "BUDGET_EXCEEDED", message));
  }
}
