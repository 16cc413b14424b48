/** Takes the answers of agents to requests for their budgets. */
import { BUDGET_LEASE, leaseAnswerSchema, leaseRequestSchema } from "../../protocol/budget-lease.ts";
import { validate } from "../../shared/validation.ts";
import type { DeliveryOutcome, OutcomeHandler } from "../base/mailbox/handlers.ts";
import type { BudgetLeased } from "./core/signals.ts";
import type { ConversationUnit } from "./runtime.ts";

/** Registers the handler of outcomes. It stages the answer in the transaction that takes the request out of the outbox. */
export function takeLeaseAnswers(
  mailbox: { outcomes(type: string, handler: OutcomeHandler): void },
  begin: () => ConversationUnit,
): void {
  mailbox.outcomes(BUDGET_LEASE, (outcome) => {
    const unit = begin();
    unit.stage([signalOf(outcome)]);
    outcome.afterCommit(() => unit.release());
  });
}

function signalOf({ envelope, outcome }: DeliveryOutcome): BudgetLeased {
  const { seq } = validate(leaseRequestSchema, envelope.body);
  const address = { type: "conversation.budget.leased", agentId: envelope.to.id, seq } as const;
  if (outcome.status === "delivered") {
    return { ...address, answer: validate(leaseAnswerSchema, outcome.result) };
  }
  const { message } = outcome.error;
  const error = {
    code: "UNAVAILABLE" as const,
    message: `The agent did not answer a request for its budget: ${message}`,
    retriable: true,
  };
  return { ...address, answer: { error } };
}
