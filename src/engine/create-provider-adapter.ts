/**
 * The engine's adapter over a format adapter and a gateway: any provider that the runtime knows, with attempts, deadlines
 * and fallbacks around it.
 */

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
import type { ModelError } from "../model/error.ts";
import type { FormatAdapter } from "../model/format-adapter.ts";
import type { ModelGateway } from "../model/gateway.ts";
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
import { readRequest } from "./request-parameters.ts";

export interface ProviderAdapterOptions extends Partial<ResilientGatewayOptions> {
  /** How the model is called. A request's model and parameters win over the profile's. */
  profile: ModelProfile;
  /** Makes one attempt a call, as `createModelGateway` does. */
  gateway: ModelGateway;
  /** Who answers when that model cannot, in order. A request's model and own parameters are not theirs. */
  fallbacks?: readonly ModelProfile[];
  /** Its name among the engine's providers; the profile's provider when absent. */
  id?: string;
  /** For the profile's provider; the built-in one when absent. */
  format?: FormatAdapter;
  /** Whose requests these are, for the gateway; `default` when absent. */
  tenant?: string;
  projectId?: string;
}

/**
 * An adapter for the engine. Of a request's `parameters`, `tools`, `toolChoice`, `output` and `cache` are as in
 * `ModelContext`; all others go to the provider as they are. Calls fail with `ProviderCallError`. A model is asked three
 * times at most where `resilience` does not say otherwise.
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
  let reply = new ReplyAccumulator(provider);
  let facts: CallFacts = {};
  let answeredBy = options.profile;
  for await (const delta of gateway.stream(resilientRequest(options, request, call), call.signal)) {
    if (delta.type === "reset") reply = new ReplyAccumulator(provider);
    else if (delta.type === "outcome") {
      facts = { ...facts, outcome: delta.outcome };
      answeredBy = delta.profile;
    } else {
      reply.add(delta);
      const requestId = requestIdOf(delta);
      if (requestId !== undefined) facts = { ...facts, requestId };
    }
    const piece = pieceOf(delta);
    if (piece !== undefined) yield { ...piece, raw: delta };
  }
  const ended = reply.outcome();
  if (!ended.ok) throw new ProviderCallError(ended.error, facts);
  const { usage, finishReason } = ended.reply;
  const cost = costOf(usage, answeredBy);
  const { provider: answered, modelId } = answeredBy;
  const isFallback = answered !== provider || modelId !== request.model;
  yield {
    isMessageComplete: true,
    message: messageOf(ended.reply, answeredBy),
    ...defined({ usage }),
    call: {
      ...facts,
      ...defined({ cost }),
      responseMetadata: {
        finishReason,
        ...(isFallback ? { answeredBy: { provider: answered, model: modelId } } : {}),
      },
    },
  };
}

/** What is asked of whom. A request that makes no sense fails without an attempt. */
function resilientRequest(
  options: ProviderAdapterOptions,
  request: ProviderChatRequest,
  call: ProviderCallOptions,
): ResilientRequest {
  const { agent, conversationId, turnId, parentCorrelationId, extensions, metadata } = call;
  const { profile, fallbacks = [], format, tenant = "default", projectId = "default" } = options;
  const { context, parameters } = understood(options, request);
  const own = {
    ...(request.model === profile.modelId ? profile : withoutPrices(profile)),
    modelId: request.model,
    parameters: { ...profile.parameters, ...parameters },
  };
  const formatOf = (asked: ModelProfile) =>
    asked.provider === format?.provider ? format : adapterFor(asked.provider);
  return {
    profiles: [own, ...fallbacks],
    body: (asked) => formatOf(asked).buildRequest(asked, context),
    context: { tenant, projectId, agentId: agent, conversationId, turnId },
    trace: {
      requestClass: extensions["request.class"],
      ...defined({ parentCorrelationId, metadata }),
    },
  };
}

function understood({ profile, clock = systemClock }: ProviderAdapterOptions, request: ProviderChatRequest) {
  try {
    return readRequest(request);
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    const { message, code } = error;
    const failure: ModelError = {
      ...{ category: "validation", message, retriable: false },
      provider: profile.provider,
    };
    const now = clock.now();
    const outcome: RequestOutcome = {
      ...{ ok: false, errorCategory: "validation", attempts: 0, startedAt: now, finishedAt: now },
    };
    throw new ProviderCallError(failure, { outcome }, code);
  }
}

/** The prices of a profile are those of its own model. */
function withoutPrices(profile: ModelProfile): ModelProfile {
  const {
    costPer1kInput: _i,
    costPer1kOutput: _o,
    costPer1kCachedInput: _c,
    costPer1kCacheWrite: _w,
    ...rest
  } = profile;
  return rest;
}

function requestIdOf(delta: ResilientDelta): string | undefined {
  if (delta.type === "response") return delta.response.requestId;
  return delta.type === "error" ? delta.error.requestId : undefined;
}

/** What a reader of the stream is shown: text as it is, reasoning and calls as what they are, and that all was void. */
function pieceOf(delta: ResilientDelta): Pick<ProviderStreamChunk, "delta" | "isReset"> | undefined {
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
    ...(toolCalls.length === 0
      ? {}
      : { toolCalls: toolCalls.map(({ id, name, arguments: given }) => ({ id, name, arguments: given })) }),
    ...(native === undefined ? {} : { native: { provider, modelId, parts: native } }),
    metadata: {
      ...{ model: modelId, finishReason },
      ...defined({ reasoning }),
      ...(invalid.length === 0 ? {} : { invalidArguments: Object.fromEntries(invalid) }),
    },
  });
  return { ...message, ...defined({ providerMessageId }) };
}
