/** Budgets: limits of what the model calls and tool calls of a turn or a conversation may use up. */
import { z } from "zod";

/** The limits. An absent one does not limit. */
export interface Budget {
  /** Tokens of all model calls, input and output together. */
  tokens?: number;
  /** US dollars. Every model that may be called needs prices. */
  usd?: number;
  /** Calls of tools that run. */
  toolCalls?: number;
  /** Requests to models, retries included. */
  modelCalls?: number;
}

/** The amounts that model calls and tool calls have used up. */
export interface SpendingView extends Required<Budget> {
  /** Some tokens are estimates: the provider did not count them, because a call was stopped or broke. */
  estimated?: true;
}

/** A limit that a model call would exceed. */
export interface BudgetExcess {
  /** The budget: of the turn, of the conversation, or of the agent's persona. */
  scope: "turn" | "conversation" | "persona";
  limit: keyof Budget;
  allowed: number;
  /** Used up, or reserved by calls that run. */
  used: number;
  /** The reservation that does not fit. */
  needed: number;
}

/** Limits of budgets. */
const MAX_TOKENS = 1_000_000_000_000;
const MAX_USD = 1_000_000;
const MAX_CALLS = 1_000_000_000;

const calls = z.int().min(0).max(MAX_CALLS).exactOptional();

export const budgetSchema: z.ZodType<Budget> = z
  .strictObject({
    tokens: z.int().min(0).max(MAX_TOKENS).exactOptional(),
    usd: z.number().min(0).max(MAX_USD).exactOptional(),
    toolCalls: calls,
    modelCalls: calls,
  })
  .refine((budget) => Object.keys(budget).length > 0, "Give at least one limit.");
