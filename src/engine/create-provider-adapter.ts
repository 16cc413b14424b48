/** A provider adapter of the engine over a format adapter and a gateway, with attempts, deadlines and fallbacks. */
import { adapterFor } from "../adapters/formats/lookup.ts";
import { ReplyAccumulator } from "../adapters/reply.ts";
import {
  createResilientGateway,
  type ResilientDelta,
  type ResilientGateway,
  type ResilientGatewayOptions,
  type ResilientRequest,
} from "../adapters/resilience/resilient-gateway.ts";
import type { RequestOutcome } from "../model/call-record.ts";
import { costOf } from "../model/cost.ts";
import type { FormatAdapter } from "../model/format-adapter.ts";
import type { ModelGateway } from "../model/gateway.ts";
import { isContinuable, joinReplies } from "../model/joined-reply.ts";
import type { ContextMessage } from "../model/messages.ts";
import type { ModelProfile } from "../model/profile.ts";
import type { ModelReply } from "../model/reply.ts";
import { systemClock, systemIds } from "../ports/system.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError } from "../shared/errors.ts";
import { ProviderCallError } from "./failures.ts";
import { fromContextMessage } from "./messages.ts";
import type {
  CallFacts,
  NewMessage,
  ProviderAdapter,
  ProviderCallOptions,
  ProviderChatRequest,
  ProviderChatResult,
  ProviderStreamChunk,
} from "./provider-adapter.ts";
import { type ReadRequest, readRequest } from "./request-parameters.ts";

export interface ProviderAdapterOptions extends Partial<ResilientGatewayOptions> {
  /** Default profile. The model and the parameters of a request override it. */
  profile: ModelProfile;
  /** Makes one attempt per call; `createModelGateway` creates one. */
  gateway: ModelGateway;
  /** Profiles to call, in order, after the first fails. The model and parameters of a request do not apply to them. */
  fallbacks?: readonly ModelProfile[];
  /** Name among the engine's providers; the profile's provider by default. */
  id?: string;
  /** Format adapter for the profile's provider; the built-in one by default. */
  format?: FormatAdapter;
  /** Tenant of the requests, for the gateway; `default` by default. */
  tenant?: string;
  /** Project of the requests, for the gateway; `default` by default. */
  projectId?: string;
}

/**
 * Creates a provider adapter. It reads `tools`, `toolChoice`, `output` and `cache` from a request's `parameters`, as in `ModelContext`, and
 * sends all others unchanged. A call fails with `ProviderCallError`, by default after up to three attempts (`resilience`).
 *
 * @example createProviderAdapter({ profile: { provider: "openai", modelId: "gpt-4.1-mini" }, gateway })
 */
export function createProviderAdapter(options: ProviderAdapterOptions): ProviderAdapter {
  const { profile, id = profile.provider } = options;
  const gateway = createResilientGateway(options.gateway, { clock: systemClock, ids: systemIds, ...options });
  const streamChat = (request: ProviderChatRequest, call: ProviderCallOptions) =>
    streamReply(options, gateway, request, call);
  return {
    id,
    supportsStreaming: true,
    streamChat,
    async sendChat(request, call) {
      const result: ProviderChatResult = { messages: [] };
      for await (const { message, usage, call: facts } of streamChat(request, call)) {
        if (message !== undefined) result.messages.push(message);
        if (usage !== undefined) result.usage = usage;
        if (facts !== undefined) result.call = facts;
      }
      return result;
    },
  };
}

async function* streamReply(
  options: ProviderAdapterOptions,
  gateway: ResilientGateway,
  request: ProviderChatRequest,
  call: ProviderCallOptions,
): AsyncGenerator<ProviderStreamChunk> {
  const { provider } = options.profile;
  let paused: PausedAnswer | undefined;
  let facts: CallFacts = {};
  for (let continuations = 0; ; continuations++) {
    let reply = new ReplyAccumulator(provider);
    let answeredBy = options.profile;
    for await (const delta of gateway.stream(resilientRequest(options, request, call, paused), call.signal)) {
      if (delta.type === "reset") reply = new ReplyAccumulator(provider);
      else if (delta.type === "outcome") {
        facts = { ...facts, outcome: joinedOutcome(facts.outcome, delta.outcome) };
        answeredBy = delta.profile;
      } else {
        reply.add(delta);
        const requestId = requestIdOf(delta);
        if (requestId !== undefined) facts = { ...facts, requestId };
      }
      const visible = visiblePart(delta);
      if (visible !== undefined) yield { ...visible, raw: delta };
      // Withdrawn text includes the text before the pause.
      if (delta.type === "reset" && paused !== undefined) yield { delta: paused.reply.text };
    }
    const ended = reply.outcome();
    if (!ended.ok) throw new ProviderCallError(ended.error, facts);
    const whole = joinReplies(paused?.reply, ended.reply);
    paused = { reply: whole, profile: answeredBy };
    if (isContinuable(whole, continuations)) continue;
    yield lastChunk(options, request, paused, facts);
    return;
  }
}

/** A reply so far, and the model that continues it. */
interface PausedAnswer {
  reply: ModelReply;
  profile: ModelProfile;
}

function joinedOutcome(before: RequestOutcome | undefined, outcome: RequestOutcome): RequestOutcome {
  if (before === undefined) return outcome;
  return { ...outcome, attempts: before.attempts + outcome.attempts, startedAt: before.startedAt };
}

function lastChunk(
  { profile }: ProviderAdapterOptions,
  request: ProviderChatRequest,
  { reply, profile: answeredBy }: PausedAnswer,
  facts: CallFacts,
): ProviderStreamChunk {
  const { usage, finishReason, native, ...rest } = reply;
  const isPaused = finishReason === "paused";
  // The parts of a reply that waits to be continued must not be sent back without the rest.
  const ended: ModelReply = isPaused ? { ...rest, finishReason: "other", ...defined({ usage }) } : reply;
  const { provider: answered, modelId: model } = answeredBy;
  const isFallback = answered !== profile.provider || model !== request.model;
  return {
    isMessageComplete: true,
    message: messageOf(ended, answeredBy),
    ...defined({ usage }),
    call: {
      ...facts,
      ...defined({ cost: costOf(usage, answeredBy) }),
      responseMetadata: {
        finishReason: ended.finishReason,
        ...(isFallback ? { answeredBy: { provider: answered, model } } : {}),
      },
    },
  };
}

function resilientRequest(
  options: ProviderAdapterOptions,
  request: ProviderChatRequest,
  call: ProviderCallOptions,
  paused?: PausedAnswer,
): ResilientRequest {
  const { agent, conversationId, turnId, parentCorrelationId, extensions, metadata } = call;
  const { profile, fallbacks = [], format, tenant = "default", projectId = "default" } = options;
  const { context, parameters } = readOrFail(options, request);
  const own = {
    ...(request.model === profile.modelId ? profile : withoutPrices(profile)),
    modelId: request.model,
    parameters: { ...profile.parameters, ...parameters },
  };
  const formatOf = (called: ModelProfile) =>
    called.provider === format?.provider ? format : adapterFor(called.provider);
  const body = (called: ModelProfile) => {
    const adapter = formatOf(called);
    const first = adapter.buildRequest(called, context);
    return paused === undefined ? first : adapter.extend(called, first, [beginningOf(paused)]);
  };
  return {
    profiles: paused === undefined ? [own, ...fallbacks] : [paused.profile],
    body,
    context: { tenant, projectId, agentId: agent, conversationId, turnId },
    trace: {
      requestClass: extensions["request.class"],
      ...defined({ parentCorrelationId, metadata }),
    },
  };
}

function beginningOf({ reply, profile: { provider, modelId } }: PausedAnswer): ContextMessage {
  const native = reply.native && { provider, modelId, parts: reply.native };
  return { role: "assistant", content: reply.text, ...defined({ native }) };
}

/** Reads a request. An invalid one fails as a call without an attempt. */
function readOrFail(
  { profile, clock = systemClock }: ProviderAdapterOptions,
  request: ProviderChatRequest,
): ReadRequest {
  try {
    return readRequest(request);
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    const { message, code } = error;
    const now = clock.now();
    throw new ProviderCallError(
      { category: "validation", message, retriable: false, provider: profile.provider },
      { outcome: { ok: false, errorCategory: "validation", attempts: 0, startedAt: now, finishedAt: now } },
      code,
    );
  }
}

/** Drops the prices of a profile, because they apply only to its own model. */
function withoutPrices({
  costPer1kInput: _input,
  costPer1kOutput: _output,
  costPer1kCachedInput: _cached,
  costPer1kCacheWrite: _written,
  ...profile
}: ModelProfile): ModelProfile {
  return profile;
}

function requestIdOf(delta: ResilientDelta): string | undefined {
  if (delta.type === "response") return delta.response.requestId;
  return delta.type === "error" ? delta.error.requestId : undefined;
}

/** Returns the part of a delta that readers of the stream see: text as text, reasoning and tool calls as deltas. */
function visiblePart(delta: ResilientDelta): Pick<ProviderStreamChunk, "delta" | "isReset"> | undefined {
  if (delta.type === "reset") return { isReset: true };
  if (delta.type === "text") return { delta: delta.text };
  return delta.type === "reasoning" || delta.type === "tool-call" ? { delta } : undefined;
}

function messageOf(reply: ModelReply, { provider, modelId }: ModelProfile): NewMessage {
  const { text, reasoning, toolCalls, native, providerMessageId, finishReason } = reply;
  const invalid = toolCalls.flatMap(({ id, invalidArguments }) =>
    invalidArguments === undefined ? [] : [[id, invalidArguments] as const],
  );
  const message = fromContextMessage({
    role: "assistant",
    content: text,
    toolCalls: toolCalls.map(({ invalidArguments: _, ...call }) => call),
    ...defined({ native: native && { provider, modelId, parts: native } }),
    metadata: {
      ...{ model: modelId, finishReason },
      ...defined({ reasoning }),
      ...(invalid.length === 0 ? {} : { invalidArguments: Object.fromEntries(invalid) }),
    },
  });
  return { ...message, ...defined({ providerMessageId }) };
}
