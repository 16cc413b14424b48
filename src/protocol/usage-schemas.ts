/** Schemas of the usage and cost of model calls. */
import { z } from "zod";
import type { ErrorCategory } from "../model/error.ts";
import type { Facts } from "../shared/json.ts";
import { anyValue, count, ids, time } from "./scalars.ts";

/** All categories. The compiler reports a missing one. */
const ERROR_CATEGORIES = Object.keys({
  none: true,
  auth: true,
  validation: true,
  not_found: true,
  quota: true,
  rate_limit: true,
  timeout: true,
  transient: true,
  network: true,
  canceled: true,
  safety: true,
  unknown: true,
} satisfies Record<ErrorCategory | "none", true>) as (ErrorCategory | "none")[];

export const dollars = z.number().min(0).describe("US dollars, for models that have prices.");
const optionalCount = count.exactOptional();
const optionalNumber = z.number().exactOptional();
const counts = {
  inputTokens: count,
  cachedInputTokens: count.describe("Input tokens that the provider read from its cache."),
  outputTokens: count,
  cost: dollars,
  calls: count.describe("Model calls; all attempts of a call count as one."),
};

export const usage = z
  .strictObject(counts)
  .meta({ id: "Usage", description: "Usage of model calls, including failed attempts." });

/** The usage of model calls, failed attempts included. */
export type UsageView = z.infer<typeof usage>;

export const spending = z
  .strictObject({
    tokens: count.describe("Input and output, estimated where the provider did not count."),
    usd: dollars,
    toolCalls: count,
    modelCalls: count.describe("Requests to models, retries included."),
    estimated: z.literal(true).describe("Some tokens are estimates.").exactOptional(),
  })
  .meta({ id: "Spending", description: "Usage of model calls and tool calls." });

/** The amounts that model calls and tool calls have used up. */
export type SpendingView = z.infer<typeof spending>;

export const agentUsage = z
  .strictObject({ agentId: ids.agent, conversations: count, ...counts })
  .meta({ id: "AgentUsage", description: "Total usage of an agent's conversations." });

/** The total usage of an agent's conversations. */
export type AgentUsage = z.infer<typeof agentUsage>;

export const turnTokens = z
  .strictObject({
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: optionalCount,
    cacheWriteTokens: optionalCount,
    reasoningTokens: optionalCount,
  })
  .nullable()
  .describe("Tokens of all model calls, including failed attempts; null if no provider counted them.");

/** Token counts as reported by the providers; an optional one is present if any provider reported it. */
export type TurnUsage = NonNullable<z.infer<typeof turnTokens>>;

const tokenUsage = z.strictObject({
  inputTokens: optionalCount,
  cachedInputTokens: optionalCount,
  cacheWriteTokens: optionalCount,
  outputTokens: optionalCount,
  reasoningTokens: optionalCount,
  totalTokens: optionalCount,
  breakdown: z.record(z.string(), anyValue).exactOptional(),
});

const rateLimitFeedback = z.strictObject({
  limitRequests: optionalNumber,
  remainingRequests: optionalNumber,
  resetRequestsAt: optionalNumber,
  limitTokens: optionalNumber,
  remainingTokens: optionalNumber,
  resetTokensAt: optionalNumber,
  isRateLimited: z.boolean(),
  rawHeaders: z.record(z.string(), z.string()),
});

// SAFETY: answers are JSON.
const facts = z.record(z.string(), z.unknown()) as z.ZodType<Facts>;

export const providerCall = z
  .strictObject({
    id: z.string(),
    conversationId: ids.conversation,
    turnId: ids.turn,
    provider: z.string().meta({ example: "openai" }),
    model: z.string(),
    operation: z.enum(["chat", "embedding", "other"]),
    requestId: z.string().describe("The provider's own id of the request.").exactOptional(),
    correlationId: z.string().describe("`{conversationId}:{turnId}`.").exactOptional(),
    parentCorrelationId: z.string().describe("`correlationId` of the previous turn.").exactOptional(),
    requestMetadata: facts.exactOptional(),
    responseMetadata: facts.exactOptional(),
    usage: tokenUsage.exactOptional(),
    cost: dollars.exactOptional(),
    estimated: z
      .strictObject({ inputTokens: count, outputTokens: count })
      .describe("Estimated tokens of attempts that the provider did not count.")
      .exactOptional(),
    outcome: z
      .strictObject({
        ok: z.boolean(),
        status: z.int().exactOptional(),
        errorCategory: z.enum(ERROR_CATEGORIES),
        attempts: count,
        startedAt: z.number(),
        finishedAt: z.number(),
        rateLimitFeedback: rateLimitFeedback.exactOptional(),
      })
      .exactOptional(),
    startedAt: time,
    finishedAt: time.describe("Absent while the call runs.").exactOptional(),
  })
  .meta({
    id: "ProviderCall",
    description: "One call of a model with all its attempts. Each fallback is a call of its own.",
  });

/** The record of a model call, with types that cross RPC. */
export type CallView = z.infer<typeof providerCall>;
