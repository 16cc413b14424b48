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

export const dollars = z.number().min(0).meta({ description: "US dollars, for models that have prices." });
const optionalCount = z.exactOptional(count);
const optionalNumber = z.exactOptional(z.number());
const counts = {
  inputTokens: count,
  cachedInputTokens: count.meta({ description: "Input tokens that the provider read from its cache." }),
  outputTokens: count,
  cost: dollars,
  calls: count.meta({ description: "Model calls; all attempts of a call count as one." }),
};

export const usage = z
  .strictObject(counts)
  .meta({ id: "Usage", description: "Usage of model calls, including failed attempts." });

/** The usage of model calls, failed attempts included. */
export type UsageView = z.infer<typeof usage>;

export const spending = z
  .strictObject({
    tokens: count.meta({ description: "Input and output, estimated where the provider did not count." }),
    usd: dollars,
    toolCalls: count,
    modelCalls: count.meta({ description: "Requests to models, retries included." }),
    estimated: z.exactOptional(z.literal(true).meta({ description: "Some tokens are estimates." })),
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
  .meta({
    description: "Tokens of all model calls, including failed attempts; null if no provider counted them.",
  });

/** Token counts as reported by the providers; an optional one is present if any provider reported it. */
export type TurnUsage = NonNullable<z.infer<typeof turnTokens>>;

const tokenUsage = z.strictObject({
  inputTokens: optionalCount,
  cachedInputTokens: optionalCount,
  cacheWriteTokens: optionalCount,
  outputTokens: optionalCount,
  reasoningTokens: optionalCount,
  totalTokens: optionalCount,
  breakdown: z.exactOptional(z.record(z.string(), anyValue)),
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
    requestId: z.exactOptional(z.string().meta({ description: "The provider's own id of the request." })),
    correlationId: z.exactOptional(z.string().meta({ description: "`{conversationId}:{turnId}`." })),
    parentCorrelationId: z.exactOptional(
      z.string().meta({ description: "`correlationId` of the previous turn." }),
    ),
    requestMetadata: z.exactOptional(facts),
    responseMetadata: z.exactOptional(facts),
    usage: z.exactOptional(tokenUsage),
    cost: z.exactOptional(dollars),
    estimated: z.exactOptional(
      z
        .strictObject({ inputTokens: count, outputTokens: count })
        .meta({ description: "Estimated tokens of attempts that the provider did not count." }),
    ),
    outcome: z.exactOptional(
      z.strictObject({
        ok: z.boolean(),
        status: z.exactOptional(z.int()),
        errorCategory: z.enum(ERROR_CATEGORIES),
        attempts: count,
        startedAt: z.number(),
        finishedAt: z.number(),
        rateLimitFeedback: z.exactOptional(rateLimitFeedback),
      }),
    ),
    startedAt: time,
    finishedAt: z.exactOptional(time.meta({ description: "Absent while the call runs." })),
  })
  .meta({
    id: "ProviderCall",
    description: "One call of a model with all its attempts. Each fallback is a call of its own.",
  });

/** The record of a model call, with types that cross RPC. */
export type CallView = z.infer<typeof providerCall>;
