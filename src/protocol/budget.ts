/** Budgets: limits on the model calls and tool calls of a turn or a conversation. */
import { z } from "zod";
import type { Amounts } from "../model/spending.ts";
import type { SpendingView } from "./usage-schemas.ts";

/** Limits of budgets. */
const MAX_TOKENS = 1_000_000_000_000;
const MAX_USD = 1_000_000;
const MAX_CALLS = 1_000_000_000;

const calls = z.int().min(0).max(MAX_CALLS).exactOptional();
const limits = z.strictObject({
  /** Tokens of all model calls, input and output together. */
  tokens: z.int().min(0).max(MAX_TOKENS).exactOptional(),
  /** US dollars. Every model that may be called needs prices. */
  usd: z.number().min(0).max(MAX_USD).exactOptional(),
  /** Calls of tools that run. */
  toolCalls: calls,
  /** Requests to models, retries included. */
  modelCalls: calls,
});
const hasLimit = (budget: object) => Object.keys(budget).length > 0;
const LIMIT_RULE = "Give at least one limit.";

export const budgetSchema = limits.refine(hasLimit, LIMIT_RULE);

/** The limits. An absent limit does not limit. */
export type Budget = z.infer<typeof budgetSchema>;

export const agentBudgetSchema = limits.omit({ toolCalls: true }).refine(hasLimit, LIMIT_RULE);

export type AgentBudget = z.infer<typeof agentBudgetSchema>;

/** A limit that a model call would exceed. */
export interface BudgetExcess {
  scope: "turn" | "conversation" | "persona" | "agent";
  limit: keyof Budget;
  allowed: number;
  /** Used up, or reserved by calls that run. */
  used: number;
  /** The reservation that does not fit. */
  needed: number;
  /** The part of `used` that other conversations of the agent hold and have not spent. */
  leased?: number;
}

const amount = z.int().min(0);

/** The shape of amounts in messages between actors. */
export const amountsSchema = z.object({
  tokens: amount,
  nanoDollars: amount,
  toolCalls: amount,
  modelCalls: amount,
});

/** Billionths in a dollar. */
const NANO = 1_000_000_000;

export const BUDGET_LIMITS = [
  "tokens",
  "usd",
  "toolCalls",
  "modelCalls",
] as const satisfies readonly (keyof Budget)[];

export const AMOUNT = {
  tokens: "tokens",
  usd: "nanoDollars",
  toolCalls: "toolCalls",
  modelCalls: "modelCalls",
} as const satisfies Record<keyof Budget, keyof Amounts>;

export function amountOf(allowed: number, limit: keyof Budget): number {
  return limit === "usd" ? Math.round(allowed * NANO) : allowed;
}

export function inUnits(amount: number, limit: keyof Budget): number {
  return limit === "usd" ? amount / NANO : amount;
}

export function spendingView({ nanoDollars, ...counts }: Amounts): SpendingView {
  return { ...counts, usd: inUnits(nanoDollars, "usd") };
}
