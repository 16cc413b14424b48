/**
 * The action `llm`: one call of a model, without tools.
 *
 * LLM-1  The action's own texts take precedence over its prompt's. The input must fit the prompt's `requires`. It provides values only and
 *        is never parsed as a template.
 * LLM-2  With a schema, the response is data that fits it. Otherwise it is text. A missing, truncated, refused or invalid answer is an
 *        error.
 * LLM-3  A transient failure gets up to three attempts, 500 and 1,000 ms apart, or later if the provider asks for it. A retry also needs
 *        room in the budget.
 * LLM-4  Each attempt is counted, including failed attempts. Tokens that a provider does not count are estimated.
 * LLM-5  Texts longer than `maxInputTokens` are not sent. With a budget, a request is sent only if the rest of the call's reservation
 *        covers its maximum (LEDGER-6).
 */
import { modelError, thrownError } from "../../../adapters/errors/model-errors.ts";
import { ReplyAccumulator } from "../../../adapters/reply.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import { schemaTokens } from "../../../memory/session/prompt-tokens.ts";
import { estimateTokens } from "../../../memory/session/tokens.ts";
import type { ModelContext } from "../../../model/context.ts";
import type { ModelError } from "../../../model/error.ts";
import { limitName } from "../../../model/output-limit.ts";
import { MODEL_TIMEOUT_MS, type ModelProfile, type ProviderId } from "../../../model/profile.ts";
import type { ModelReply } from "../../../model/reply.ts";
import { maxOutputTokens } from "../../../model/spending.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { readAnswer } from "../../../shared/json-schema/answer.ts";
import { pauseAfter, usageOf } from "./attempts.ts";
import { contextOf, type PinnedLlmAction, schemaOf } from "./llm-texts.ts";
import type { ModelRun } from "./ports.ts";

/** Runs an `llm` action with the step's input. Throws `ToolError`, and the signal's reason after an abort. */
export async function runLlm(
  action: PinnedLlmAction,
  input: Json,
  run: ModelRun,
): Promise<{ response: Json }> {
  const { maxInputTokens = Number.POSITIVE_INFINITY } = action;
  const context = contextOf(action, input, run.meter);
  const inputTokens = estimateTokens(textOf(context)) + schemaTokens(schemaOf(action));
  if (inputTokens > maxInputTokens)
    throw new ToolError(
      `Its texts have about ${inputTokens} tokens. The limit is ${maxInputTokens}. Give a smaller input, or raise maxInputTokens.`,
      { code: "INVALID_INPUT" },
    );
  const profile = profileOf(action, run.models.defaultProfile);
  const outputTokens = action.maxOutputTokens ?? maxOutputTokens(profile);
  const most = usageOf({ inputTokens, outputTokens }, profile);
  for (let failed = 1; ; failed++) {
    const end = run.requests.begin(most);
    const attempt = await attemptCall(profile, context, failed, run);
    end(usageOf(attempt.usage, profile));
    if ("reply" in attempt) return { response: responseOf(attempt.reply, action) };
    await pauseAfter(attempt.error, failed, run.requests.hasRoom(most), run);
  }
}

function textOf({ systemInstructions, messages }: ModelContext): string {
  return [...systemInstructions, ...messages.map(({ content }) => content)].join("\n");
}

function profileOf(
  { profile: own, timeoutMs, maxOutputTokens: limit }: PinnedLlmAction,
  fallback: ModelProfile,
) {
  const profile = own ?? fallback;
  const { parameters = {}, executionConfig } = profile;
  const limits: JsonObject = { [limitName(profile)]: limit ?? maxOutputTokens(profile) };
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
  /** Estimates the tokens of a call that the provider did not count. A refused request costs 0. */
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

/** Returns the response of a reply. Throws if it is no valid answer (LLM-2). */
function responseOf(reply: ModelReply, action: PinnedLlmAction): Json {
  const { text, finishReason, toolCalls } = reply;
  const problem = (message: string, retriable = true) => new ToolError(message, { retriable });
  if (finishReason === "length")
    throw problem("The model's answer is truncated. Raise maxOutputTokens, or ask for less.", false);
  if (finishReason === "content_filter") throw problem("The model refused to answer.", false);
  if (toolCalls.length > 0) throw problem("The model called a tool, although the call has no tools.");
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
