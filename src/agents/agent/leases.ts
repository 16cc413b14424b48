/**
 * The ledger of an agent: usage and leases of its conversations. Pure.
 *
 * LEASE-1  Usage and leases together never exceed the agent's budget: a lease is granted only from the remainder. A call may use more than
 *          its estimate, so each active conversation can exceed the budget by at most one call.
 * LEASE-2  The newest request of a conversation counts. A repeated or overtaken request is a no-op, so no amount is lost or counted twice.
 * LEASE-3  A conversation gets the amount for its next call, plus at most half of the remainder. So one conversation cannot take all of a
 *          shared budget.
 * LEASE-4  If a request does not fit, the conversation keeps its lease, and the answer names the limit.
 * LEASE-10  Unused leases of other conversations return when their turns end. If a request needs them and a call waits for the answer, the
 *           request waits up to `LEASE_WAIT_MS`.
 */
import { type Amounts, addAmounts, largestAmounts, NOTHING, subtractAmounts } from "../../model/spending.ts";
import { type AgentBudget, AMOUNT, amountOf, type BudgetExcess, inUnits } from "../../protocol/budget.ts";
import type { LeaseAnswer, LeaseRequest } from "../../protocol/budget-lease.ts";

/** The lease of one conversation. Amounts are totals since its start. */
export interface Lease {
  readonly seq: number;
  readonly spent: Amounts;
  readonly granted: Amounts;
}

export interface LeaseTotals {
  readonly spent: Amounts;
  /** Used or leased. */
  readonly held: Amounts;
}

export const NO_LEASE: Lease = { seq: 0, spent: NOTHING, granted: NOTHING };
export const NO_TOTALS: LeaseTotals = { spent: NOTHING, held: NOTHING };

const LIMITS = ["modelCalls", "tokens", "usd"] as const satisfies (keyof AgentBudget)[];

/** Applies a request of a conversation. Without a budget, grants every request. */
export function applyLease(
  budget: AgentBudget,
  totals: LeaseTotals,
  before: Lease,
  request: LeaseRequest,
): { lease: Lease; totals: LeaseTotals; answer: LeaseAnswer } {
  if (request.seq <= before.seq) return { lease: before, totals, answer: { granted: before.granted } };
  const others = subtractAmounts(totals.held, leasedBy(before));
  const idle = subtractAmounts(others, subtractAmounts(totals.spent, before.spent));
  const excess = excessOf(budget, { others, idle }, request);
  const granted = excess === null ? grantOf(budget, others, request) : request.keeps;
  const lease = { seq: request.seq, spent: largestAmounts(before.spent, request.spent), granted };
  return {
    lease,
    totals: {
      spent: addAmounts(subtractAmounts(totals.spent, before.spent), lease.spent),
      held: addAmounts(others, leasedBy(lease)),
    },
    answer: { granted, ...(excess === null ? {} : { excess }) },
  };
}

/** Longest wait for leases of other conversations, in milliseconds (LEASE-10). */
export const LEASE_WAIT_MS = 20_000;

/** Reports whether the request would fit without the leases of other conversations. */
export function mayFitLater({ allowed, used, needed, leased = 0 }: BudgetExcess): boolean {
  return used - leased + needed <= allowed;
}

function leasedBy({ spent, granted }: Lease): Amounts {
  return largestAmounts(spent, granted);
}

/** Returns the first limit that a request would exceed, or `null` if it fits. */
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

/** Returns the granted amounts of a request that fits (LEASE-3). */
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
