/**
 * The lease of a conversation: the part of its agent's budget that it may use up. Pure.
 *
 * LEASE-5  A call of an agent with a budget starts only within the lease. The conversation never holds more than its agent has granted it:
 *          an answer counts only if no later request was sent.
 * LEASE-6  A conversation requests enough for several calls. It requests more before the rest is too small for another call, so a call
 *          seldom waits for its agent. It has at most one open request.
 * LEASE-7  A conversation that no longer calls models returns the rest of its lease, and reports its use beyond the lease.
 *
 * A conversation leases from the agents of its turns. For a call of another agent, the share of the caller's budget is the `budget` of the
 * called conversation. That limit applies in addition to the lease.
 */
import { type Amounts, addAmounts, isWithin, largestAmounts, NOTHING } from "../../../model/spending.ts";
import type { BudgetExcess } from "../../../protocol/budget.ts";
import type { LeaseRequest } from "../../../protocol/budget-lease.ts";
import { defined } from "../../../shared/defined.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { LEASED_CALLS } from "./conversation-limits.ts";

/** Amounts are sums since the conversation began. */
export interface LeaseState {
  /** Number of the newest request. */
  readonly seq: number;
  readonly spent: Amounts;
  readonly granted: Amounts;
  readonly asked?: LeaseQuestion;
  /** The refusal of the last question. Calls that waited for it fail. */
  readonly refusal?: LeaseRefusal;
  /** The last question had no answer, so the agent may have granted it. */
  readonly unsure?: true;
}

export interface LeaseQuestion {
  readonly needs: Amounts;
  readonly wants: Amounts;
  /** No call waits for it. */
  readonly ahead?: true;
}

/** The limit that was reached, or the error if the agent cannot be reached. */
export type LeaseRefusal = { readonly excess: BudgetExcess } | { readonly error: ErrorData };

export const NEW_LEASE: LeaseState = { seq: 0, spent: NOTHING, granted: NOTHING };

/** Reports whether the lease covers a call in addition to the reserved amounts. */
export function holds({ spent, granted }: LeaseState, reserved: Amounts, call: Amounts): boolean {
  return isWithin(addAmounts(addAmounts(spent, reserved), call), granted);
}

/** Asks for a call, and for those after it. */
export function ask(
  { seq, spent, granted }: LeaseState,
  reserved: Amounts,
  call: Amounts,
  { ahead = false } = {},
): LeaseState {
  const used = addAmounts(spent, reserved);
  const needs = largestAmounts(granted, addAmounts(used, call));
  const block = Array.from({ length: LEASED_CALLS }, () => call).reduce(addAmounts, used);
  const asked = { needs, wants: largestAmounts(needs, block), ...(ahead ? { ahead } : {}) };
  return { seq: seq + 1, spent, granted, asked };
}

/** Applies the answer to the newest request. Older answers are ignored. */
export function answered(
  lease: LeaseState,
  seq: number,
  answer: { granted: Amounts } | LeaseRefusal,
): LeaseState {
  const { asked, refusal: _, ...rest } = lease;
  if (seq !== lease.seq || asked === undefined) return lease;
  if ("granted" in answer) return { ...rest, granted: answer.granted };
  const unsure = "error" in answer ? (true as const) : undefined;
  return { ...rest, ...defined({ refusal: asked.ahead ? undefined : answer, unsure }) };
}

/** Returns the rest of a lease (LEASE-7). Returns the same lease if there is nothing to return. */
export function returned(lease: LeaseState): LeaseState {
  const { seq, spent, granted, asked, unsure } = lease;
  const isSettled = isWithin(granted, spent) && isWithin(spent, granted) && !unsure;
  if (asked !== undefined || isSettled) return lease;
  return { seq: seq + 1, spent, granted: spent };
}

export function leaseRequest({ seq, spent, granted, asked }: LeaseState): JsonObject {
  const { needs = granted, wants = granted, ahead } = asked ?? {};
  const request: LeaseRequest = { seq, spent, keeps: granted, needs, wants, ...defined({ ahead }) };
  // SAFETY: amounts are numbers.
  return request as unknown as JsonObject;
}
