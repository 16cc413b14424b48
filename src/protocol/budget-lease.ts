/**
 * Leases of an agent's budget: what a conversation asks its agent for, and the answer. All amounts are sums since the
 * conversation began, so a message that is repeated or late changes nothing.
 */
import { z } from "zod";
import type { Amounts } from "../model/spending.ts";
import type { BudgetExcess } from "./budget.ts";

/** The type of the envelope by which a conversation asks for a part of its agent's budget, or returns one. */
export const BUDGET_LEASE = "budget.lease";

export interface LeaseRequest {
  /** Ascends with each request of a conversation. The newest one counts. */
  seq: number;
  /** Used up by the conversation's calls of this agent. */
  spent: Amounts;
  /** The amounts that the conversation may use up until it has an answer. */
  keeps: Amounts;
  /** The amounts that its next call has to be allowed. Equal to `keeps` where it returns the rest. */
  needs: Amounts;
  /** The amounts that it asks for, so that it need not ask before each call. */
  wants: Amounts;
  /** No call waits for the answer. */
  ahead?: true;
}

export interface LeaseAnswer {
  /** The amounts that the conversation may use up from now on. */
  granted: Amounts;
  /** The limit that `needs` would exceed; absent where it fits. */
  excess?: BudgetExcess;
}

const amount = z.int().min(0);
const amounts: z.ZodType<Amounts> = z.strictObject({
  tokens: amount,
  nanoDollars: amount,
  toolCalls: amount,
  modelCalls: amount,
});

export const leaseRequestSchema: z.ZodType<LeaseRequest> = z.strictObject({
  seq: z.int().min(1),
  spent: amounts,
  keeps: amounts,
  needs: amounts,
  wants: amounts,
  ahead: z.literal(true).exactOptional(),
});

export const leaseAnswerSchema: z.ZodType<LeaseAnswer> = z.object({
  granted: amounts,
  excess: z
    .strictObject({
      scope: z.literal("agent"),
      limit: z.enum(["tokens", "usd", "modelCalls"]),
      allowed: z.number(),
      used: z.number(),
      needed: z.number(),
      leased: z.number().exactOptional(),
    })
    .exactOptional(),
});
