/** The engine's adapter over a format adapter and a gateway: any provider that the runtime knows. */
import { costOf } from "../adapters/cost.ts";
import { adapterFor } from "../adapters/lookup.ts";
import { ReplyAccumulator } from "../adapters/reply.ts";
import type {
  FormatAdapter,
  ModelDelta,
  ModelError,
  ModelGateway,
  ModelProfile,
  ModelReply,
  ModelRequest,
  ResponseInfo,
} from "../adapters/types.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/workers/system.ts";
import { DramatisError } from "../shared/errors.ts";
import { ProviderCallError } from "./failures.ts";
import { fromContextMessage } from "./messages.ts";
import type {
  NewMessage,
  ProviderAdapter,
  ProviderCallOptions,
  ProviderChatRequest,
  ProviderChatResult,
  ProviderStreamChunk,
} from "./provider-adapter.ts";
import { readRequest } from "./request-parameters.ts";
import type { RequestOutcome } from "./types.ts";

export interface ProviderAdapterOptions {
  /** How the model is called. A request's model and parameters win over the profile's. */
  profile: ModelProfile;
  gateway: ModelGateway;
  /** Its name among the engine's providers; the profile's provider when absent. */
  id?: string;
  /** The one of the profile's provider when absent. */
  format?: FormatAdapter;
  /** Whose requests these are, for the gateway; `default` when absent. */
  tenant?: string;
  projectId?: string;
  clock?: Pick<Clock, "now">;
}

/**
 * An adapter for the engine. `parameters` of a request may hold `tools`, `toolChoice`, `output` and `cache` in the terms
 * of `ModelContext`; all others go to the provider as they are. Calls fail with `ProviderCallError`.
 *
 * @example createProviderAdapter({ profile: { provider: "openai", modelId: "gpt-4.1-mini" }, gateway })
 */
export function createProviderAdapter(options: ProviderAdapterOptions): ProviderAdapter {
  const { profile, id = profile.provider } = options;
  const streamChat = (request: ProviderChatRequest, call: ProviderCallOptions) =>
    streamReply(options, request, call);
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
  request: ProviderChatRequest,
  call: ProviderCallOptions,
): AsyncGenerator<ProviderStreamChunk> {
  const { clock = systemClock } = options;
  const startedAt = clock.now();
  const { profile, body } = built(options, request, startedAt);
  const reply = new ReplyAccumulator(profile.provider);
  let response: ResponseInfo = {};
  const sent: ModelRequest = { profile, body, context: executionContext(options, call) };
  for await (const delta of options.gateway.stream(sent, call.signal)) {
    reply.add(delta);
    if (delta.type === "response") response = { ...response, ...delta.response };
    const piece = pieceOf(delta);
    if (piece !== undefined) yield { delta: piece, raw: delta };
  }
  const ended = reply.outcome();
  const times = { startedAt, finishedAt: clock.now() };
  const outcome = outcomeOfAttempt(response, times, ended.ok ? undefined : ended.error);
  const requestId = response.requestId ?? (ended.ok ? undefined : ended.error.requestId);
  const facts = { outcome, ...(requestId === undefined ? {} : { requestId }) };
  if (!ended.ok) throw new ProviderCallError(ended.error, facts);
  const { usage, finishReason } = ended.reply;
  // The profile's prices are those of its own model.
  const hasPrice = usage !== undefined && profile.modelId === options.profile.modelId;
  const cost = hasPrice ? costOf(usage, profile) : undefined;
  yield {
    isMessageComplete: true,
    message: messageOf(ended.reply, profile),
    ...(usage === undefined ? {} : { usage }),
    call: { ...facts, ...(cost === undefined ? {} : { cost }), responseMetadata: { finishReason } },
  };
}

/** The provider's own request. What cannot be said in it fails without an attempt. */
function built(
  { profile, format = adapterFor(profile.provider) }: ProviderAdapterOptions,
  request: ProviderChatRequest,
  now: number,
): Pick<ModelRequest, "profile" | "body"> {
  try {
    const read = readRequest(profile, request);
    return { profile: read.profile, body: format.buildRequest(read.profile, read.context) };
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    const { message, code } = error;
    const failure: ModelError = {
      ...{ category: "validation", message, retriable: false },
      provider: profile.provider,
    };
    const outcome: RequestOutcome = {
      ...{ ok: false, errorCategory: "validation", attempts: 0, startedAt: now, finishedAt: now },
    };
    throw new ProviderCallError(failure, { outcome }, code);
  }
}

function executionContext(
  { tenant = "default", projectId = "default" }: ProviderAdapterOptions,
  { agent, conversationId, turnId }: ProviderCallOptions,
): ModelRequest["context"] {
  return { tenant, projectId, agentId: agent, conversationId, turnId };
}

/** What a reader of the stream is shown of a delta: text as it is, reasoning and calls as what they are. */
function pieceOf(delta: ModelDelta): unknown {
  if (delta.type === "text") return delta.text;
  return delta.type === "reasoning" || delta.type === "tool-call" ? delta : undefined;
}

function outcomeOfAttempt(
  { status, rateLimit }: ResponseInfo,
  times: Pick<RequestOutcome, "startedAt" | "finishedAt">,
  error: ModelError | undefined,
): RequestOutcome {
  const last = error?.status ?? status;
  return {
    ok: error === undefined,
    ...(last === undefined ? {} : { status: last }),
    errorCategory: error?.category ?? "none",
    attempts: 1,
    ...times,
    ...(rateLimit === undefined ? {} : { rateLimitFeedback: rateLimit }),
  };
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
      ...(reasoning === undefined ? {} : { reasoning }),
      ...(invalid.length === 0 ? {} : { invalidArguments: Object.fromEntries(invalid) }),
    },
  });
  return { ...message, ...(providerMessageId === undefined ? {} : { providerMessageId }) };
}
