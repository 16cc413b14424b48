/**
 * The action `llm`: one call of a model, without tools.
 *
 * LLM-1  The action's own texts win over its prompt's. The input is checked against the prompt's `requires` first, and gives
 *        values only: nothing of it is read as a template.
 * LLM-2  With a schema, the response is data that fits it; otherwise text. An answer that is missing, cut off, refused or does
 *        not fit is an error, never a result.
 * LLM-3  A failure that may pass gets up to three attempts, 500 and 1 000 ms apart, or later if the provider asks for it. No pause
 *        begins that would reach the deadline.
 * LLM-4  Usage includes that of failed attempts. An error carries it, too. Tokens that a provider does not count are estimated.
 * LLM-5  Texts that are longer than the call's reservation (LEDGER-6) are not sent.
 */
import { modelError, thrownError } from "../../../adapters/errors/model-errors.ts";
import { ReplyAccumulator } from "../../../adapters/reply.ts";
import { ToolError } from "../../../library/tool-error.ts";
import { estimateTokens } from "../../../memory/session/tokens.ts";
import type { ModelContext } from "../../../model/context.ts";
import type { ModelError } from "../../../model/error.ts";
import { MODEL_TIMEOUT_MS, type ModelProfile, type ProviderId } from "../../../model/profile.ts";
import type { ModelReply } from "../../../model/reply.ts";
import { maxOutputTokens } from "../../../model/spending.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { readAnswer } from "../../../shared/json-schema/answer.ts";
import { addUsage, ModelToolError, pauseAfter } from "./attempts.ts";
import { contextOf, type PinnedLlmAction, schemaOf } from "./llm-texts.ts";
import type { ModelRun, ModelUsage } from "./ports.ts";

/** The names under which profiles limit the tokens of an answer. */
const LIMITS = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"];
const LIMIT_OF_PROVIDER: Readonly<Record<ProviderId, string | undefined>> = {
  openai: "max_tokens",
  "openai-responses": "max_output_tokens",
  anthropic: "max_tokens",
  gemini: "maxOutputTokens",
  "workers-ai": "max_tokens",
  "ai-sdk": "maxOutputTokens",
  offline: undefined,
};

/** The outcome of an `llm` action. */
export interface LlmResult {
  result: { response: Json };
  usage: ModelUsage;
}

/**
 * Runs an `llm` action with the step's input, in texts of at most `most` tokens. Throws `ToolError`, and the signal's reason after an abort.
 */
export async function runLlm(
  action: PinnedLlmAction,
  input: Json,
  most: number,
  run: ModelRun,
): Promise<LlmResult> {
  const context = contextOf(action, input, run.meter);
  const tokens = estimateTokens(textOf(context));
  if (tokens > most)
    throw new ToolError(
      `Its texts have about ${tokens} tokens, and may have ${most}. Give it less, or raise maxInputTokens.`,
      { code: "INVALID_INPUT" },
    );
  const profile = profileOf(action, run.models.defaultProfile);
  let usage: ModelUsage = { input: 0, output: 0 };
  for (let failed = 1; ; failed++) {
    const attempt = await attemptCall(profile, context, failed, run);
    usage = addUsage(usage, attempt.usage, profile);
    run.used?.(usage);
    if ("reply" in attempt) return { result: { response: responseOf(attempt.reply, action, usage) }, usage };
    await pauseAfter(attempt.error, failed, usage, run);
  }
}

function textOf({ systemInstructions, messages }: ModelContext): string {
  return [...systemInstructions, ...messages.map(({ content }) => content)].join("\n");
}

/** Returns the profile of one attempt, with the action's limits. */
function profileOf(
  { profile: own, timeoutMs, maxOutputTokens: limit }: PinnedLlmAction,
  fallback: ModelProfile,
) {
  const profile = own ?? fallback;
  const { parameters = {}, executionConfig } = profile;
  const used = LIMITS.find((name) => typeof parameters[name] === "number");
  // OpenAI's own models refuse the older name, which compatible servers take.
  const isOpenAI = profile.provider === "openai" && profile.baseUrl === undefined;
  const name = used ?? (isOpenAI ? "max_completion_tokens" : LIMIT_OF_PROVIDER[profile.provider]);
  const limits: JsonObject = name === undefined ? {} : { [name]: limit ?? maxOutputTokens(profile) };
  return {
    ...profile,
    parameters: { ...parameters, ...limits },
    executionConfig: { ...executionConfig, ...defined({ timeoutMs }) },
  } satisfies ModelProfile;
}

type Attempt = { usage: TokenUsage } & ({ reply: ModelReply } | { error: ModelError });

/** Makes one attempt. Never throws. */
async function attemptCall(
  profile: ModelProfile,
  context: ModelContext,
  attempt: number,
  { models, context: caller, signal, clock }: ModelRun,
): Promise<Attempt> {
  const { provider } = profile;
  const accumulator = new ReplyAccumulator(provider);
  let counted: TokenUsage | undefined;
  let received = "";
  let isSent = false;
  const call = async (limit: AbortSignal) => {
    const body = models.adapters(provider).buildRequest(profile, context);
    isSent = true;
    const request = { profile, body, context: caller, trace: { attempt } };
    for await (const delta of models.gateway.stream(request, limit)) {
      accumulator.add(delta);
      if (delta.type === "usage") counted = delta.usage;
      if (delta.type === "text" || delta.type === "reasoning") received += delta.text;
    }
    return accumulator.outcome();
  };
  /** Estimates the tokens of a call that the provider has not counted. It charges nothing for a request that it refuses. */
  const usage = (isCharged: boolean): TokenUsage => {
    if (counted !== undefined || !isCharged || !isSent) return counted ?? {};
    return { inputTokens: estimateTokens(textOf(context)), outputTokens: estimateTokens(received) };
  };
  const failed = (error: ModelError): Attempt => {
    const isCharged = received !== "" || error.category === "timeout" || error.category === "canceled";
    return { error, usage: usage(isCharged) };
  };
  try {
    const timeoutMs = profile.executionConfig?.timeoutMs ?? MODEL_TIMEOUT_MS;
    const outcome = await withDeadline(clock, timeoutMs, call, { outer: signal });
    return outcome.ok ? { reply: outcome.reply, usage: usage(true) } : failed(outcome.error);
  } catch (error) {
    return failed(errorOf(error, provider, signal));
  }
}

function errorOf(error: unknown, provider: ProviderId, signal: AbortSignal): ModelError {
  if (!signal.aborted && error instanceof DOMException && error.name === "TimeoutError")
    return modelError(provider, "timeout", error.message);
  if (error instanceof DramatisError && error.retriable)
    return modelError(provider, "transient", error.message);
  return thrownError(error, provider, signal);
}

/** Returns the response of an answer. Throws for an answer that is none (LLM-2). */
function responseOf(reply: ModelReply, action: PinnedLlmAction, usage: ModelUsage): Json {
  const { text, finishReason, toolCalls } = reply;
  const problem = (message: string, retriable = true) => new ModelToolError(message, usage, { retriable });
  if (finishReason === "length")
    throw problem(
      "The model's answer was cut off before it was complete: raise maxOutputTokens, or ask for less.",
      false,
    );
  if (finishReason === "content_filter") throw problem("The model refused to answer.", false);
  if (toolCalls.length > 0) throw problem("The model called a tool, although it has none.");
  if (finishReason === "paused") throw problem("The model paused before its answer was complete.");
  const schema = schemaOf(action);
  if (schema === undefined) {
    if (text.trim() === "") throw problem("The model's answer is empty.");
    return text;
  }
  const answer = readAnswer(schema, text);
  if ("value" in answer) return answer.value;
  throw problem(`The model's answer does not fit the schema: ${answer.problem}.`);
}
