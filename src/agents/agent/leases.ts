/**
 * The ledger of an agent: what its conversations have used up, and what is leased to them. Pure.
 *
 * LEASE-1  What an agent's conversations have used up and what they are leased never exceed its budget together: a lease is
 *          granted only from what is left. A call may still use more than was estimated, so the budget is overrun by one call
 *          of each active conversation at most.
 * LEASE-2  Of a conversation's requests the newest counts. One that is repeated or overtaken changes nothing, so no amount is
 *          lost or counted twice.
 * LEASE-3  A conversation is granted what its next call needs, and at most half of what is then left beyond that. So one
 *          conversation does not take all of a budget that others need.
 * LEASE-4  A request that does not fit leaves the conversation what it holds, and names the limit.
 * LEASE-10  What other conversations hold and have not used up comes back when their turns end. A request that only that stands
 *           in the way of waits for it, `LEASE_WAIT_MS` at most, if a call waits for the answer.
 */
import { type Amounts, addAmounts, largestAmounts, NOTHING, subtractAmounts } from "../../model/spending.ts";
import { type AgentBudget, AMOUNT, amountOf, type BudgetExcess, inUnits } from "../../protocol/budget.ts";
import type { LeaseAnswer, LeaseRequest } from "../../protocol/budget-lease.ts";

/** The lease of one conversation. Amounts are sums since it began. */
export interface Lease {
  readonly seq: number;
  readonly spent: Amounts;
  readonly granted: Amounts;
}

/** The sums over all leases of an agent. */
export interface LeaseTotals {
  readonly spent: Amounts;
  /** Used up, or leased. */
  readonly held: Amounts;
}

export const NO_LEASE: Lease = { seq: 0, spent: NOTHING, granted: NOTHING };
export const NO_TOTALS: LeaseTotals = { spent: NOTHING, held: NOTHING };

const LIMITS = ["modelCalls", "tokens", "usd"] as const satisfies (keyof AgentBudget)[];

/** Applies a request of a conversation. Without a budget every request is granted. */
export function applyLease(
  budget: AgentBudget,
  totals: LeaseTotals,
  before: Lease,
  request: LeaseRequest,
): { lease: Lease; totals: LeaseTotals; answer: LeaseAnswer } {
  if (request.seq <= before.seq) return { lease: before, totals, answer: { granted: before.granted } };
  const others = subtractAmounts(totals.held, heldBy(before));
  const idle = subtractAmounts(others, subtractAmounts(totals.spent, before.spent));
  const excess = excessOf(budget, { others, idle }, request);
  const granted = excess === null ? grantOf(budget, others, request) : request.keeps;
  const lease = { seq: request.seq, spent: largestAmounts(before.spent, request.spent), granted };
  return {
    lease,
    totals: {
      spent: addAmounts(subtractAmounts(totals.spent, before.spent), lease.spent),
      held: addAmounts(others, heldBy(lease)),
    },
    answer: { granted, ...(excess === null ? {} : { excess }) },
  };
}

/** Time for which a request waits for what other conversations hold, in milliseconds (LEASE-10). */
export const LEASE_WAIT_MS = 20_000;

/** Reports whether a limit would fit without what other conversations hold. */
export function mayFitLater({ allowed, used, needed, leased = 0 }: BudgetExcess): boolean {
  return used - leased + needed <= allowed;
}

function heldBy({ spent, granted }: Lease): Amounts {
  return largestAmounts(spent, granted);
}

/** Returns the first limit that a request would exceed; `null` if it fits. */
function excessOf(
  budget: AgentBudget,
  { others, idle }: { others: Amounts; idle: Amounts },
  { keeps, needs }: LeaseRequest,
): NonNullable<LeaseAnswer["excess"]> | null {
  for (const limit of LIMITS) {
    const allowed = budget[limit];
    const amount = AMOUNT[limit];
    if (allowed === undefined || needs[amount] <= keeps[amount]) continue;
    if (others[amount] + needs[amount] <= amountOf(allowed, limit)) continue;
    return {
      scope: "agent",
      limit,
      allowed,
      used: inUnits(others[amount] + keeps[amount], limit),
      needed: inUnits(needs[amount] - keeps[amount], limit),
      ...(idle[amount] > 0 ? { leased: inUnits(idle[amount], limit) } : {}),
    };
  }
  return null;
}

/** Returns what a request that fits is granted (LEASE-3). */
function grantOf(budget: AgentBudget, others: Amounts, { needs, wants }: LeaseRequest): Amounts {
  const granted = { ...wants };
  for (const limit of LIMITS) {
    const allowed = budget[limit];
    if (allowed === undefined) continue;
    const amount = AMOUNT[limit];
    const rest = Math.max(0, amountOf(allowed, limit) - others[amount] - needs[amount]);
    granted[amount] = Math.min(wants[amount], needs[amount] + Math.floor(rest / 2));
  }
  return granted;
}
